//! Values that are kept under numbers which are used again, so that few of them are ever stored at once.

use crate::prefetch::prefetch_behind;
use std::ops::{Index, IndexMut};

/// Values by number. The number that came back last is given out first: its place is still in the cache.
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
    /// With room for so many values at once.
    pub(crate) fn with_capacity(count: usize) -> Slab<T> {
        Slab {
            values: Vec::with_capacity(count),
            free: Vec::with_capacity(count),
        }
    }

    /// A number that nobody uses. Its value is what was kept there before, or `new`.
    #[inline(always)]
    pub(crate) fn take(&mut self, new: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.values.push(new());
            self.values.len() as u32 - 1
        })
    }

    /// Keeps a value under a number that nobody uses.
    #[inline(always)]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let Some(number) = self.free.pop() else {
            self.values.push(value);
            return self.values.len() as u32 - 1;
        };
        self.values[number as usize] = value;
        number
    }

    /// Asks for the value of a number, which need not be one in use.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: u32) {
        prefetch_behind(&self.values, number as usize);
    }

    /// The number may be given out again.
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
    fn numbers_that_came_back_are_given_out_before_new_ones() {
        let mut slab = Slab::default();
        let (first, second) = (slab.insert(1.0), slab.insert(2.0));
        slab[second] = 3.0;
        slab.give_back(first);
        assert_eq!(slab.take(|| 4.0), first);
        assert_eq!((slab[first], slab[second]), (1.0, 3.0));
        assert_eq!(slab.insert(5.0), 2);
    }
}
