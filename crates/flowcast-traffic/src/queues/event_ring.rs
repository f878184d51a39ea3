//! A first-in, first-out queue in which any place after the first can be read in a few instructions. With `VecDeque`
//! instead, a message under limited links costs 3 % more instructions and an eighth more writes (`cargo xtask bench
//! limits`).

/// A ring with a power of two of places, so that a mask is enough to continue with the first place after the last.
#[derive(Debug, Clone)]
pub(super) struct EventRing<T> {
    places: Vec<T>,
    /// Number of values that were ever taken, and ever put: indices modulo the number of places.
    taken: usize,
    put: usize,
}

/// Number of places after the first growth.
const FIRST_PLACES: usize = 16;

impl<T> EventRing<T> {
    /// Creates an empty ring, which needs no memory.
    pub(super) fn new() -> EventRing<T> {
        EventRing {
            places: Vec::new(),
            taken: 0,
            put: 0,
        }
    }

    /// `true` if the ring is empty.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.taken == self.put
    }
}

impl<T: Copy + Default> EventRing<T> {
    /// Appends a value. A full ring first doubles its number of places.
    #[inline(always)]
    pub(super) fn push_back(&mut self, value: T) {
        if self.put - self.taken == self.places.len() {
            self.grow();
        }
        let mask = self.places.len() - 1;
        self.places[self.put & mask] = value;
        self.put += 1;
    }

    /// Doubles the number of places.
    #[cold]
    fn grow(&mut self) {
        let count = self.places.len();
        let first = self.taken & count.saturating_sub(1);
        self.places.rotate_left(first);
        self.places
            .resize((2 * count).max(FIRST_PLACES), T::default());
        (self.taken, self.put) = (0, count);
    }

    /// Takes the first value.
    #[inline(always)]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        let first = self.get(0)?;
        self.taken += 1;
        Some(first)
    }

    /// Value this many places after the first; `None` if there is none.
    #[inline(always)]
    pub(super) fn get(&self, behind: usize) -> Option<T> {
        if behind >= self.put - self.taken {
            return None;
        }
        let mask = self.places.len() - 1;
        Some(self.places[(self.taken + behind) & mask])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn a_ring_returns_the_same_events_as_a_list(steps in proptest::collection::vec(0u8..5, 1..300)) {
            let (mut ring, mut list) = (EventRing::new(), VecDeque::new());
            for (number, step) in steps.into_iter().enumerate() {
                if step < 3 {
                    ring.push_back(number);
                    list.push_back(number);
                } else {
                    prop_assert_eq!(ring.pop_front(), list.pop_front());
                }
                prop_assert_eq!(ring.is_empty(), list.is_empty());
                for behind in [0, 1, list.len().saturating_sub(1), list.len()] {
                    prop_assert_eq!(ring.get(behind), list.get(behind).copied());
                }
            }
        }
    }
}
