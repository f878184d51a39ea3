//! A map from small keys to dense numbers, in the order of first appearance.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Numbers distinct keys 0, 1, 2, ...
#[derive(Debug, Clone)]
pub struct KeyMap<K> {
    numbers: HashMap<K, u32, BuildHasherDefault<MultiplyHasher>>,
    keys: Vec<K>,
    last: Option<(K, u32)>,
}

impl<K> Default for KeyMap<K> {
    fn default() -> KeyMap<K> {
        KeyMap { numbers: HashMap::default(), keys: Vec::new(), last: None }
    }
}

impl<K: Copy + Eq + Hash> KeyMap<K> {
    /// The key's number; a new key gets the next one.
    #[inline]
    pub fn number(&mut self, key: K) -> u32 {
        if let Some((known, number)) = self.last
            && known == key
        {
            return number;
        }
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        self.last = Some((key, number));
        number
    }

    /// The key's number, if it has one.
    #[inline]
    pub fn get(&self, key: &K) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// The keys by number.
    pub fn keys(&self) -> &[K] {
        &self.keys
    }

    /// The keys by number, without the map.
    pub fn into_keys(self) -> Vec<K> {
        self.keys
    }
}

/// Multiplies and folds each word of the key: the keys are ranks, tags and sizes that no adversary chooses for a gain.
#[derive(Debug, Clone, Copy, Default)]
pub struct MultiplyHasher(u64);

impl MultiplyHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834_u128;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }
}

impl Hasher for MultiplyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.add(u64::from(word));
    }

    #[inline]
    fn write_i32(&mut self, word: i32) {
        self.add(u64::from(word as u32));
    }

    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.add(u64::from(word));
    }
}
