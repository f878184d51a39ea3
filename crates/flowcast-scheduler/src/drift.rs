//! Estimate of a rail's slowdown relative to its measured parameters, and detection of changes.
//!
//! The estimate is one factor, the slowdown `f`: a message with the expected time `e` occupies the rail for `f·e`.
//! Observations are pairs of an observed and an expected duration. Two cumulative sums of time watch the estimate (Page's
//! test): the time lost beyond `(1+tolerance)·f·e`, and the time saved below `(1-tolerance)·f·e`, neither of which falls
//! below zero. When one exceeds the required evidence, the rail has changed. The slowdown since the sum last left zero,
//! observed over expected time, then replaces the estimate. Until then the estimate follows slowly.
//!
//! These are sums of time, not of ratios. Completions that are reported at the same time (all the time on the first, none on
//! the others) and single small messages thus have an appropriate weight.

use flowcast_units::Time;

/// Criterion for a changed rail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DriftRule {
    /// Tolerated difference of an observation from the estimate, as a fraction of it.
    pub tolerance: f64,
    /// Time lost or saved beyond the tolerance that proves a change.
    pub evidence: Time,
    /// Expected time within which the estimate follows.
    pub memory: Time,
}

impl Default for DriftRule {
    /// Defaults: a quarter, 2 ms, and 100 ms.
    fn default() -> DriftRule {
        DriftRule {
            tolerance: 0.25,
            evidence: Time::from_micros(2000.0),
            memory: Time::from_micros(100_000.0),
        }
    }
}

/// Limits of the slowdown. Even a rail that stands still has to be tried again eventually.
const SLOWDOWNS: (f64, f64) = (0.25, 1000.0);

/// Estimate for one rail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drift {
    rule: DriftRule,
    slowdown: f64,
    slower: DriftRun,
    faster: DriftRun,
    changes: u64,
}

/// Observations since a cumulative sum left zero, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct DriftRun {
    excess: f64,
    observed: f64,
    expected: f64,
}

/// Effect of an observation on the estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DriftVerdict {
    /// The observation matches the estimate, or the evidence does not suffice.
    Steady,
    /// The rail has changed.
    Changed,
}

impl Drift {
    /// Creates the estimate for a rail that matches its measured parameters.
    pub(crate) fn new(rule: DriftRule) -> Drift {
        Drift {
            rule,
            slowdown: 1.0,
            slower: DriftRun::default(),
            faster: DriftRun::default(),
            changes: 0,
        }
    }

    /// Estimated slowdown relative to the measured parameters, from 0.25 to 1000; 1 at the start.
    pub(crate) fn slowdown(&self) -> f64 {
        self.slowdown
    }

    /// Number of changes of the rail.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Records that work with the expected time `expected` at slowdown 1 took `observed`.
    pub(crate) fn observe(&mut self, observed: Time, expected: Time) -> DriftVerdict {
        let (observed, expected) = (observed.as_nanos(), expected.as_nanos());
        let believed = self.slowdown * expected;
        let DriftRule {
            tolerance,
            evidence,
            memory,
        } = self.rule;
        self.slower
            .add(observed - (1.0 + tolerance) * believed, observed, expected);
        self.faster
            .add((1.0 - tolerance) * believed - observed, observed, expected);
        for run in [self.slower, self.faster] {
            if run.excess > evidence.as_nanos() {
                self.replace(run.observed / run.expected);
                return DriftVerdict::Changed;
            }
        }
        if expected > 0.0 {
            let weight = believed / (believed + memory.as_nanos());
            // A single extreme sample moves the estimate no further than the tolerance would.
            let ratio = (observed / expected).clamp(self.slowdown * 0.5, self.slowdown * 2.0);
            self.slowdown = bounded(self.slowdown + weight * (ratio - self.slowdown));
        }
        DriftVerdict::Steady
    }

    /// Replaces the estimate by `slowdown`.
    pub(crate) fn replace(&mut self, slowdown: f64) {
        self.slowdown = bounded(slowdown);
        (self.slower, self.faster) = (DriftRun::default(), DriftRun::default());
        self.changes += 1;
    }
}

fn bounded(slowdown: f64) -> f64 {
    if slowdown.is_nan() {
        1.0
    } else {
        slowdown.clamp(SLOWDOWNS.0, SLOWDOWNS.1)
    }
}

impl DriftRun {
    fn add(&mut self, excess: f64, observed: f64, expected: f64) {
        self.excess += excess;
        self.observed += observed;
        self.expected += expected;
        if self.excess <= 0.0 {
            *self = DriftRun::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(micros: f64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn a_rail_ten_times_slower_is_detected_after_one_message_with_enough_loss() {
        let mut drift = Drift::new(DriftRule::default());
        for _ in 0..50 {
            assert_eq!(
                drift.observe(micros(510.0), micros(500.0)),
                DriftVerdict::Steady
            );
        }
        assert_eq!(
            drift.observe(micros(5000.0), micros(500.0)),
            DriftVerdict::Changed
        );
        assert!((drift.slowdown() - 10.0).abs() < 1e-9);
        let back = (1..)
            .find(|_| drift.observe(micros(500.0), micros(500.0)) == DriftVerdict::Changed)
            .unwrap();
        assert!((drift.slowdown() - 1.0).abs() < 1e-9 && back == 1, "{back}");
        assert_eq!(drift.changes(), 2);
    }

    #[test]
    fn completions_reported_together_are_no_change() {
        let mut drift = Drift::new(DriftRule::default());
        for _ in 0..200 {
            for observed in [400.0, 0.0, 0.0, 0.0] {
                assert_eq!(
                    drift.observe(micros(observed), micros(100.0)),
                    DriftVerdict::Steady
                );
            }
        }
        assert!((drift.slowdown() - 1.0).abs() < 0.1, "{}", drift.slowdown());
    }

    #[test]
    fn a_rail_that_delivers_nothing_is_estimated_as_stalled() {
        let mut drift = Drift::new(DriftRule::default());
        assert_eq!(
            drift.observe(micros(2500.0), Time::ZERO),
            DriftVerdict::Changed
        );
        assert_eq!(drift.slowdown(), SLOWDOWNS.1);
    }

    proptest! {
        #[test]
        fn a_rail_within_the_tolerance_is_never_reported_as_changed(
            samples in prop::collection::vec((0.8f64..1.2, 1.0f64..10_000.0), 0..200),
        ) {
            let mut drift = Drift::new(DriftRule { memory: Time::from_seconds(1e9), ..DriftRule::default() });
            for (ratio, expected) in samples {
                prop_assert_eq!(drift.observe(micros(ratio * expected), micros(expected)), DriftVerdict::Steady);
            }
        }

        #[test]
        fn a_change_is_estimated_to_its_full_size(factor in 1.6f64..100.0, expected in 50.0f64..5000.0) {
            let mut drift = Drift::new(DriftRule::default());
            for _ in 0..2000 {
                drift.observe(micros(factor * expected), micros(expected));
            }
            prop_assert!((drift.slowdown() / factor - 1.0).abs() < 0.01, "{} {factor}", drift.slowdown());
        }
    }
}
