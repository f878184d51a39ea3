//! A map from small keys to dense numbers, in the order of first appearance.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

type Build = BuildHasherDefault<MultiplyHasher>;

/// Largest number of keys that are searched one by one: most ranks have few neighbours, and a trace can have a million
/// ranks, each with its own maps.
const FEW: usize = 8;

/// Numbers distinct keys 0, 1, 2, ...
///
/// ```
/// use flowcast_program::key_map::KeyMap;
///
/// let mut numbers = KeyMap::new();
/// assert_eq!(["a", "b", "a"].map(|key| numbers.number(key)), [0, 1, 0]);
/// assert_eq!(numbers.key(1), "b");
/// ```
#[derive(Debug, Clone)]
pub struct KeyMap<K> {
    /// Keys, indexed by number, in the order of first appearance.
    keys: Vec<K>,
    /// Hash table with open addressing that holds the numbers of keys, at most half full; empty up to [`FEW`] keys.
    places: Vec<u32>,
    /// Number after the last key's number: keys often return in the order in which they first appeared.
    next: u32,
}

/// Value of a place in the hash table without a key.
const FREE: u32 = u32::MAX;

impl<K> Default for KeyMap<K> {
    fn default() -> KeyMap<K> {
        KeyMap::new()
    }
}

impl<K> KeyMap<K> {
    /// Creates a map without keys, which needs no memory.
    pub const fn new() -> KeyMap<K> {
        KeyMap {
            keys: Vec::new(),
            places: Vec::new(),
            next: 0,
        }
    }

    /// Creates a map without keys, with memory for `keys` of them.
    pub fn with_capacity(keys: usize) -> KeyMap<K> {
        let places = if keys > FEW {
            (keys * 2).next_power_of_two()
        } else {
            0
        };
        KeyMap {
            keys: Vec::with_capacity(keys),
            places: vec![FREE; places],
            next: 0,
        }
    }
}

impl<K: Copy + Eq + Hash> KeyMap<K> {
    /// Returns the key's number; a new key gets the next one.
    #[inline]
    pub fn number(&mut self, key: K) -> u32 {
        if self.keys.get(self.next as usize) == Some(&key) {
            self.next += 1;
            return self.next - 1;
        }
        let place = match self.look(&key) {
            Ok(number) => {
                self.next = number + 1;
                return number;
            }
            Err(place) => place,
        };
        let number = self.keys.len() as u32;
        self.keys.push(key);
        if self.keys.len() > FEW && self.keys.len() * 2 > self.places.len() {
            self.grow();
        } else if let Some(place) = self.places.get_mut(place) {
            *place = number;
        }
        number
    }

    /// Returns the number of each of these keys; new keys get the next numbers.
    pub fn numbers(&mut self, keys: impl Iterator<Item = K>) -> Vec<u32> {
        keys.map(|key| self.number(key)).collect()
    }

    /// Returns the key's number, if it has one.
    #[inline]
    pub fn get(&self, key: &K) -> Option<u32> {
        self.look(key).ok()
    }

    /// Returns the key's number, or the place for it in the hash table.
    #[inline]
    fn look(&self, key: &K) -> Result<u32, usize> {
        if self.places.is_empty() {
            return self
                .keys
                .iter()
                .position(|known| known == key)
                .map(|number| number as u32)
                .ok_or(0);
        }
        let mask = self.places.len() - 1;
        let mut place = Build::default().hash_one(key) as usize & mask;
        loop {
            match self.places[place] {
                FREE => return Err(place),
                number if self.keys[number as usize] == *key => return Ok(number),
                _ => place = (place + 1) & mask,
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let length = (self.keys.len() * 2).next_power_of_two();
        self.places = vec![FREE; length];
        for (number, key) in (0..).zip(&self.keys) {
            let mut place = Build::default().hash_one(key) as usize & (length - 1);
            while self.places[place] != FREE {
                place = (place + 1) & (length - 1);
            }
            self.places[place] = number;
        }
    }

    /// Number of keys, which is also the number that the next new key gets.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// `true` if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Key with this number.
    #[inline]
    pub fn key(&self, number: u32) -> K {
        self.keys[number as usize]
    }

    /// Keys in the order of their numbers.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = K> + '_ {
        self.keys.iter().copied()
    }

    /// Frees the memory reserved for further keys.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.keys.shrink_to_fit();
    }
}

/// Hashes by multiplying and folding each word. It does not resist hash flooding, which is no risk for ranks, tags and
/// sizes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MultiplyHasher(u64);

impl Hasher for MultiplyHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
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

/// Returns the number of a key; a new key gets the next number, counted from 0.
pub fn number_of<K: Ord>(known: &mut std::collections::BTreeMap<K, usize>, key: K) -> usize {
    let next = known.len();
    *known.entry(key).or_insert(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_numbered_as_they_first_appear(keys in proptest::collection::vec((0u32..60, 0i32..3), 0..300)) {
            let mut map = KeyMap::default();
            let mut seen: Vec<(u32, i32)> = Vec::new();
            for key in keys {
                prop_assert_eq!(map.get(&key), seen.iter().position(|known| *known == key).map(|number| number as u32));
                if !seen.contains(&key) {
                    seen.push(key);
                }
                let number = map.number(key);
                prop_assert_eq!(seen[number as usize], key);
                prop_assert_eq!(map.key(number), key);
            }
            prop_assert_eq!(map.len(), seen.len());
            prop_assert_eq!(map.keys().collect::<Vec<_>>(), seen);
        }
    }
}
