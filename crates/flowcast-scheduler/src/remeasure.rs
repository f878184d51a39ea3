//! Estimates of a rail's parameters from its traffic, if they differ from the measured ones.
//!
//! The slowdown of [`drift`](super::drift) follows a rail within milliseconds, up and down. The question whether a rail
//! still matches its file is different: ten thousand messages must not lead to a single wrong answer. It is decided by the
//! sequential test of [`StillHolds`], on the ratio of the time that messages took to the time expected from the parameters.
//! Each window of observations is one test. If the median of a window lies outside the tolerance, the rail's g and G are
//! estimated from that window, by least squares of the relative errors of `took = n g + (bytes - n) G`. If all messages have
//! about the same length, the measured g and G are both multiplied by the slowdown of the window.

use flowcast_network::loggp::LogGp;
use flowcast_statistics::stability::{StabilityVerdict, StillHolds};
use flowcast_units::{Bytes, Time, TimePerByte};

/// Probability that a window raises a false alarm.
const LEVEL: f64 = 0.001;
/// Number of observations after which a window ends without a verdict.
const LONGEST_WINDOW: u32 = 200;
/// Number of observations between two evaluations of the test.
const EVERY: u32 = 4;
/// Determinant of the normal equations below which lengths are too similar to distinguish g and G, as a fraction of the
/// product of the diagonal.
const ALIKE: f64 = 0.01;

/// One rail under test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remeasure {
    measured: LogGp,
    test: StillHolds,
    sums: RemeasureSums,
    found: Option<LogGp>,
}

/// Sums over a window, each row divided by its observed time.
#[derive(Debug, Clone, Copy, Default)]
struct RemeasureSums {
    messages: f64,
    bytes: f64,
    messages_squared: f64,
    bytes_squared: f64,
    product: f64,
    /// Sum of expected over observed time.
    expected: f64,
    expected_squared: f64,
}

impl Remeasure {
    /// Creates the test of a rail with the parameters `measured`. A median within the fraction `tolerance` of the expected
    /// time counts as unchanged.
    pub(crate) fn new(measured: LogGp, tolerance: f64) -> Remeasure {
        Remeasure {
            measured,
            test: StillHolds::within(1.0 + tolerance, LEVEL),
            sums: RemeasureSums::default(),
            found: None,
        }
    }

    /// Current parameters of the rail; `None` while they match the measured ones.
    pub(crate) fn found(&self) -> Option<LogGp> {
        self.found
    }

    /// Records that `messages` messages (at least one) with a total of `bytes` bytes occupied the rail for `took`.
    pub(crate) fn observe(&mut self, messages: u32, bytes: Bytes, took: Time) {
        let (count, beyond) = (
            f64::from(messages),
            bytes.0.saturating_sub(u64::from(messages)) as f64,
        );
        let expected =
            self.measured.gap.as_nanos() * count + self.measured.gap_per_byte.as_nanos() * beyond;
        if took <= Time::ZERO || expected <= 0.0 {
            return;
        }
        self.sums.add(count, beyond, expected, took.as_nanos());
        self.test.count_in(took.as_nanos() / expected);
        if self.test.count().is_multiple_of(EVERY)
            && let Some(verdict) = self.test.end_window(LONGEST_WINDOW)
        {
            match verdict {
                StabilityVerdict::Open => {}
                StabilityVerdict::Between => self.found = None,
                StabilityVerdict::Above | StabilityVerdict::Below => {
                    self.found = Some(self.sums.fit(self.measured))
                }
            }
            self.sums = RemeasureSums::default();
        }
    }
}

impl RemeasureSums {
    fn add(&mut self, messages: f64, bytes: f64, expected: f64, took: f64) {
        let [messages, bytes, expected] = [messages, bytes, expected].map(|part| part / took);
        self.messages += messages;
        self.bytes += bytes;
        self.messages_squared += messages * messages;
        self.bytes_squared += bytes * bytes;
        self.product += messages * bytes;
        self.expected += expected;
        self.expected_squared += expected * expected;
    }

    /// Parameters with the smallest sum of squared relative errors.
    fn fit(&self, measured: LogGp) -> LogGp {
        let RemeasureSums {
            messages,
            bytes,
            messages_squared,
            bytes_squared,
            product,
            ..
        } = *self;
        let determinant = messages_squared * bytes_squared - product * product;
        let gap = (messages * bytes_squared - bytes * product) / determinant;
        let per_byte = (bytes * messages_squared - messages * product) / determinant;
        let is_told =
            determinant > ALIKE * messages_squared * bytes_squared && gap >= 0.0 && per_byte >= 0.0;
        if is_told {
            let gap_per_byte = TimePerByte::from_nanos(per_byte);
            return LogGp {
                gap: Time::from_nanos(gap),
                gap_per_byte,
                ..measured
            };
        }
        let times = self.expected / self.expected_squared;
        let gap_per_byte = TimePerByte::from_nanos(measured.gap_per_byte.as_nanos() * times);
        LogGp {
            gap: measured.gap * times,
            gap_per_byte,
            ..measured
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rail(gap: f64, per_byte: f64) -> LogGp {
        LogGp {
            gap: Time::from_micros(gap),
            gap_per_byte: TimePerByte::from_nanos(per_byte),
            ..LogGp::default()
        }
    }

    fn took(cost: &LogGp, bytes: u64) -> Time {
        cost.gap + cost.gap_per_byte.time_for(Bytes(bytes - 1))
    }

    /// Sends messages of these lengths in turn over a rail with the parameters `now`, until new parameters are found.
    fn until_found(remeasure: &mut Remeasure, now: &LogGp, lengths: &[u64]) -> usize {
        let each = lengths.iter().cycle().take(1000).enumerate();
        for (at, bytes) in each {
            remeasure.observe(
                1,
                Bytes(*bytes),
                took(now, *bytes) * (1.0 + 0.1 * f64::from((at % 3) as u32) - 0.1),
            );
            if remeasure.found().is_some() {
                return at + 1;
            }
        }
        panic!("not seen in 1000 messages");
    }

    #[test]
    fn a_rail_of_another_rate_is_measured_by_its_messages() {
        let mut remeasure = Remeasure::new(rail(3.0, 8.0), 0.25);
        let now = rail(5.0, 80.0);
        assert_eq!(
            until_found(&mut remeasure, &now, &[1, 64, 1500, 30_000]),
            16
        );
        let found = remeasure.found().unwrap();
        assert!(
            (found.gap_per_byte.as_nanos() / 80.0 - 1.0).abs() < 0.1,
            "{found:?}"
        );
        assert!(
            (found.gap.as_micros() / 5.0 - 1.0).abs() < 0.15,
            "{found:?}"
        );
    }

    #[test]
    fn messages_of_one_length_scale_both_parameters() {
        let mut remeasure = Remeasure::new(rail(3.0, 8.0), 0.25);
        until_found(&mut remeasure, &rail(6.0, 16.0), &[4096]);
        let found = remeasure.found().unwrap();
        assert!(
            (found.gap.as_micros() / 6.0 - 1.0).abs() < 0.05,
            "{found:?}"
        );
        assert!(
            (found.gap_per_byte.as_nanos() / 16.0 - 1.0).abs() < 0.05,
            "{found:?}"
        );
    }

    #[test]
    fn a_rail_that_recovers_needs_no_new_parameters() {
        let mut remeasure = Remeasure::new(rail(3.0, 8.0), 0.25);
        until_found(&mut remeasure, &rail(3.0, 80.0), &[1500, 9000]);
        let back = (1..100).find(|_| {
            remeasure.observe(1, Bytes(1500), took(&rail(3.0, 8.0), 1500));
            remeasure.found().is_none()
        });
        assert_eq!(
            back,
            Some(16),
            "fourteen within the tolerance are enough, and every fourth message is checked"
        );
    }

    #[test]
    fn a_rail_within_the_tolerance_is_never_measured_again() {
        let mut remeasure = Remeasure::new(rail(3.0, 8.0), 0.25);
        for at in 0..20_000u64 {
            let ratio = if at % 5 == 0 {
                4.0
            } else {
                0.85 + 0.05 * (at % 7) as f64
            };
            remeasure.observe(1, Bytes(3000), took(&rail(3.0, 8.0), 3000) * ratio);
            assert!(remeasure.found().is_none(), "{at}");
        }
    }
}
