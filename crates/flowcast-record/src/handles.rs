//! Map from handles to numbers, with open addressing and backward shift, because requests are added and removed all the
//! time.

/// Map from handles to small numbers.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    /// Key plus one, and value; a key of 0 marks a free place.
    places: Vec<(u64, u32)>,
    used: usize,
}

impl Handles {
    #[inline]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.places.len() - 1)
    }

    #[inline]
    fn find(&self, handle: u64) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let key = handle.wrapping_add(1);
        let mut at = self.home(key);
        loop {
            match self.places[at].0 {
                0 => return None,
                found if found == key => return Some(at),
                _ => at = (at + 1) & (self.places.len() - 1),
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, handle: u64) -> Option<u32> {
        self.find(handle).map(|at| self.places[at].1)
    }

    #[inline]
    pub(crate) fn set(&mut self, handle: u64, value: u32) {
        if let Some(at) = self.find(handle) {
            self.places[at].1 = value;
            return;
        }
        if self.used * 2 >= self.places.len() {
            self.grow();
        }
        self.insert(handle.wrapping_add(1), value);
    }

    fn insert(&mut self, key: u64, value: u32) {
        let mut at = self.home(key);
        while self.places[at].0 != 0 {
            at = (at + 1) & (self.places.len() - 1);
        }
        self.places[at] = (key, value);
        self.used += 1;
    }

    fn grow(&mut self) {
        let more = (self.places.len() * 2).max(64);
        let old = std::mem::replace(&mut self.places, vec![(0, 0); more]);
        self.used = 0;
        old.into_iter()
            .filter(|(key, _)| *key != 0)
            .for_each(|(key, value)| self.insert(key, value));
    }

    #[inline]
    pub(crate) fn remove(&mut self, handle: u64) {
        let Some(mut hole) = self.find(handle) else {
            return;
        };
        self.used -= 1;
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let key = self.places[at].0;
            if key == 0 {
                break;
            }
            // An entry behind the hole moves into it unless its home lies between the two.
            if (at.wrapping_sub(self.home(key)) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole] = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_behaves_like_an_ordinary_map(steps in proptest::collection::vec((0u64..40, any::<bool>()), 0..400)) {
            let (mut handles, mut twin) = (Handles::default(), BTreeMap::new());
            for (at, (handle, set)) in steps.into_iter().enumerate() {
                // Pointers differ in their higher bits.
                let handle = handle << 4;
                if set {
                    handles.set(handle, at as u32);
                    twin.insert(handle, at as u32);
                } else {
                    handles.remove(handle);
                    twin.remove(&handle);
                }
                for handle in (0..40).map(|handle| handle << 4) {
                    prop_assert_eq!(handles.get(handle), twin.get(&handle).copied());
                }
            }
        }
    }
}
