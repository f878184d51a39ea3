//! Numbers that are given away and come back: the slots of requests, of which the lowest free one is the next.

use std::{cmp::Reverse, collections::BinaryHeap};

/// The numbers from 0 that are free.
#[derive(Debug, Default)]
pub(crate) struct LowestFree {
    returned: BinaryHeap<Reverse<usize>>,
    /// No number from this one on was given away.
    next: usize,
}

impl LowestFree {
    /// Takes the lowest free number.
    pub(crate) fn take(&mut self) -> usize {
        self.returned.pop().map_or_else(
            || {
                self.next += 1;
                self.next - 1
            },
            |Reverse(number)| number,
        )
    }

    /// A number that was taken is free again.
    pub(crate) fn free(&mut self, number: usize) {
        self.returned.push(Reverse(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_the_next() {
        let mut numbers = LowestFree::default();
        assert_eq!([(); 4].map(|()| numbers.take()), [0, 1, 2, 3]);
        numbers.free(2);
        numbers.free(0);
        assert_eq!([(); 3].map(|()| numbers.take()), [0, 2, 4]);
    }
}
