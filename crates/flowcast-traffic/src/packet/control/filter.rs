//! Largest of the last samples.

use std::collections::VecDeque;

/// A maximum over a window of rounds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LargestOf {
    /// Rounds and values of the samples that can still become the largest, in the order of falling values.
    samples: VecDeque<(u32, f64)>,
}

impl LargestOf {
    /// Largest value; 0 before the first sample.
    pub(super) fn value(&self) -> f64 {
        self.samples.front().map_or(0.0, |(_, value)| *value)
    }

    /// Adds a sample and forgets samples that are more than `rounds` rounds old.
    pub(super) fn add(&mut self, value: f64, round: u32, rounds: u32) {
        while self
            .samples
            .back()
            .is_some_and(|(_, smaller)| *smaller <= value)
        {
            self.samples.pop_back();
        }
        self.samples.push_back((round, value));
        while self
            .samples
            .front()
            .is_some_and(|(old, _)| old + rounds < round)
        {
            self.samples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_maximum_covers_only_the_last_rounds(values in prop::collection::vec((0u32..3, 0u8..50), 1..50)) {
            let (mut filter, mut all, mut round) = (LargestOf::default(), Vec::new(), 0);
            for (later, value) in values {
                round += later;
                filter.add(f64::from(value), round, 10);
                all.push((round, f64::from(value)));
                let recent = all.iter().filter(|(at, _)| at + 10 >= round).map(|(_, value)| *value);
                prop_assert_eq!(filter.value(), recent.fold(0.0, f64::max));
            }
        }
    }
}
