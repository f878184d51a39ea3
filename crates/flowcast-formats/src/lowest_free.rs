//! Reusable numbers, such as the slots of requests: the lowest free number is assigned next.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Free numbers, from 0 on.
#[derive(Debug, Default)]
pub(crate) struct LowestFree {
    returned: BinaryHeap<Reverse<usize>>,
    /// Lowest number that was never taken.
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

    /// Frees a number that was taken.
    pub(crate) fn free(&mut self, number: usize) {
        self.returned.push(Reverse(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_used_next() {
        let mut numbers = LowestFree::default();
        assert_eq!([(); 4].map(|()| numbers.take()), [0, 1, 2, 3]);
        numbers.free(2);
        numbers.free(0);
        assert_eq!([(); 3].map(|()| numbers.take()), [0, 2, 4]);
    }
}
