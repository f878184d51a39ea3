//! Numbered values whose numbers are reused, so that only few values are stored at the same time.

use crate::prefetch::prefetch_behind;
use std::ops::{Index, IndexMut};

/// Values, indexed by number. The number that was returned last is reused first: its place is still in the cache.
#[derive(Debug, Clone)]
pub(crate) struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            values: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Creates a slab with room for this number of values at the same time.
    pub(crate) fn with_capacity(count: usize) -> Slab<T> {
        Slab {
            values: Vec::with_capacity(count),
            free: Vec::with_capacity(count),
        }
    }

    /// Returns an unused number. Its value is the one last stored there, or `new`.
    #[inline(always)]
    pub(crate) fn take(&mut self, new: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.values.push(new());
            self.values.len() as u32 - 1
        })
    }

    /// Stores a value and returns its number.
    #[inline(always)]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let Some(number) = self.free.pop() else {
            self.values.push(value);
            return self.values.len() as u32 - 1;
        };
        self.values[number as usize] = value;
        number
    }

    /// Prefetches the value of a number, which need not be in use.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: u32) {
        prefetch_behind(&self.values, number as usize);
    }

    /// Releases a number, which may then be given out again.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline(always)]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.values[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_numbers_are_reused_before_new_ones() {
        let mut slab = Slab::default();
        let (first, second) = (slab.insert(1.0), slab.insert(2.0));
        slab[second] = 3.0;
        slab.give_back(first);
        assert_eq!(slab.take(|| 4.0), first);
        assert_eq!((slab[first], slab[second]), (1.0, 3.0));
        assert_eq!(slab.insert(5.0), 2);
    }
}
