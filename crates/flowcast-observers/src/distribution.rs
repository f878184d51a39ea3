//! Distribution of times: counts in classes on a logarithmic scale, for any number of times.

use flowcast_units::Time;

/// Number of classes between a time and twice that time.
const PER_DOUBLING: usize = 64;

/// Number of doublings of a nanosecond with classes of their own, up to five hours.
const DOUBLINGS: usize = 44;

/// Numbers and sums of times in logarithmic classes. Times below a nanosecond have a class of their own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimeDistribution {
    classes: Vec<Class>,
    number: u64,
    total: Time,
    longest: Time,
}

/// The times of a class.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Class {
    number: u32,
    total: Time,
}

impl TimeDistribution {
    /// Adds a time, which must not be negative.
    pub fn add(&mut self, time: Time) {
        if self.classes.is_empty() {
            self.classes = vec![Class::default(); PER_DOUBLING * DOUBLINGS + 1];
        }
        let class = &mut self.classes[class(time.as_nanos())];
        class.number += 1;
        class.total += time;
        self.number += 1;
        self.total += time;
        self.longest = self.longest.max(time);
    }

    /// Number of times counted so far.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Sum of all times; 0 if there are none.
    pub fn total(&self) -> Time {
        self.total
    }

    /// The longest time; 0 if there are none.
    pub fn longest(&self) -> Time {
        self.longest
    }

    /// Median: the time that half of the times do not exceed, to 1.6 %; 0 if there are none. It is the mean of its class,
    /// and therefore exact if all times near it are equal.
    pub fn median(&self) -> Time {
        let mut below = 0;
        let middle = self.classes.iter().find(|class| {
            below += u64::from(class.number);
            2 * below >= self.number && class.number > 0
        });
        middle.map_or(Time::ZERO, |class| class.total / f64::from(class.number))
    }

    /// Number of times from each power of two of nanoseconds (or 0) to the next, from the first to the last class with any
    /// times.
    pub fn doublings(&self) -> Vec<(Time, u64)> {
        let Some((below, others)) = self.classes.split_first() else {
            return Vec::new();
        };
        let sums = others.chunks(PER_DOUBLING).enumerate();
        let all = sums
            .map(|(doubling, counts)| (Time::from_nanos((1u64 << doubling) as f64), sum(counts)));
        let all: Vec<_> = std::iter::once((Time::ZERO, u64::from(below.number)))
            .chain(all)
            .collect();
        let (first, last) = (all.iter().position(has_any), all.iter().rposition(has_any));
        first
            .zip(last)
            .map_or(Vec::new(), |(first, last)| all[first..=last].to_vec())
    }
}

fn sum(classes: &[Class]) -> u64 {
    classes
        .iter()
        .map(|class| u64::from(class.number))
        .sum::<u64>()
}

fn has_any((_, count): &(Time, u64)) -> bool {
    *count > 0
}

/// Class of a time: its exponent and the first six bits of its fraction.
fn class(nanos: f64) -> usize {
    if nanos < 1.0 {
        return 0;
    }
    let class = (nanos.to_bits() >> 46) as usize - (1023 << 6) + 1;
    class.min(PER_DOUBLING * DOUBLINGS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_double_and_empty_ones_between_are_kept() {
        let mut distribution = TimeDistribution::default();
        assert_eq!(
            (distribution.median(), distribution.doublings()),
            (Time::ZERO, vec![])
        );
        [0.0, 5.0, 7.9, 32.0]
            .map(Time::from_nanos)
            .into_iter()
            .for_each(|time| distribution.add(time));
        let counts = distribution
            .doublings()
            .into_iter()
            .map(|(from, count)| (from.as_nanos(), count));
        let expected = [
            (0.0, 1),
            (1.0, 0),
            (2.0, 0),
            (4.0, 2),
            (8.0, 0),
            (16.0, 0),
            (32.0, 1),
        ];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
        assert_eq!(
            (distribution.number(), distribution.longest()),
            (4, Time::from_nanos(32.0))
        );
    }

    #[test]
    fn the_median_of_equal_times_is_exact() {
        let mut distribution = TimeDistribution::default();
        [6100.0, 6100.0, 6100.0, 9000.0]
            .map(Time::from_nanos)
            .into_iter()
            .for_each(|time| distribution.add(time));
        assert_eq!(distribution.median(), Time::from_nanos(6100.0));
    }

    proptest! {
        #[test]
        fn the_median_equals_that_of_the_sorted_times(mut times in prop::collection::vec(0.0..1e12f64, 1..200)) {
            let mut distribution = TimeDistribution::default();
            times.iter().for_each(|nanos| distribution.add(Time::from_nanos(*nanos)));
            times.sort_by(f64::total_cmp);
            let (found, expected) = (distribution.median().as_nanos(), times[(times.len() - 1) / 2]);
            prop_assert!((found - expected).abs() <= 1.0 + expected / PER_DOUBLING as f64, "{found} {expected}");
        }
    }
}
