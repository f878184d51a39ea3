//! A map from small keys to dense numbers, in the order of first appearance.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use indexmap::IndexSet;

type Build = BuildHasherDefault<MultiplyHasher>;

/// Keys seen lately, by the low bits of their hash: a trace repeats few of them over and over.
const RECENT: usize = 32;

/// Numbers distinct keys 0, 1, 2, ...
#[derive(Debug, Clone)]
pub struct KeyMap<K> {
    set: IndexSet<K, Build>,
    recent: [Option<(K, u32)>; RECENT],
}

impl<K: Copy> Default for KeyMap<K> {
    fn default() -> KeyMap<K> {
        KeyMap { set: IndexSet::default(), recent: [None; RECENT] }
    }
}

impl<K: Copy + Eq + Hash> KeyMap<K> {
    /// The key's number; a new key gets the next one.
    #[inline]
    pub fn number(&mut self, key: K) -> u32 {
        let recent = Build::default().hash_one(key) as usize % RECENT;
        if let Some((known, number)) = self.recent[recent]
            && known == key
        {
            return number;
        }
        let number = self.set.insert_full(key).0 as u32;
        self.recent[recent] = Some((key, number));
        number
    }

    /// The key's number, if it has one.
    #[inline]
    pub fn get(&self, key: &K) -> Option<u32> {
        self.set.get_index_of(key).map(|number| number as u32)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// The key of a number.
    #[inline]
    pub fn key(&self, number: u32) -> K {
        self.set[number as usize]
    }

    /// The keys by number.
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.set.iter().copied()
    }
}

/// Multiplies and folds each word of the key: the keys are ranks, tags and sizes that no adversary chooses for a gain.
#[derive(Debug, Clone, Copy, Default)]
pub struct MultiplyHasher(u64);

impl Hasher for MultiplyHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9E37_79B9_7F4A_7C15_u128;
        self.0 = (product as u64) ^ (product >> 64) as u64 ^ word.rotate_left(32);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    #[inline]
    fn write_i32(&mut self, word: i32) {
        self.write_u64(u64::from(word as u32));
    }

    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    #[inline]
    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }
}
