//! Check of a rail against the parameters stored by an earlier run, with the sequential test of `flowcast measure check`.
//!
//! Trains of messages are compared with the predictions from the stored parameters. The stored parameters come from the
//! shortest of several trains, and starting ranks disturb the check. A median from a third below to a half above the
//! prediction therefore does not count as a change. A much slower rail would need more time for a verdict than is available.
//! The size is therefore chosen such that the planned trains are predicted to take at most half of the time. If fewer trains
//! fit into the whole time, the rail counts as slower.

use std::time::Duration;

use flowcast_fit::prtt::{PrttPoint, prtt};
use flowcast_network::loggp::LogGp;
use flowcast_statistics::stability::{StabilityVerdict, StillHolds};
use flowcast_units::{Bytes, Time};

use super::plan::TRAIN;

/// Probability of an unnecessary measurement.
const LEVEL: f64 = 0.05;
/// Factor by which a median has to differ to count as a change.
const CHANGED: f64 = 1.5;
/// Number of trains that have to fit. Eight similar ones give a verdict; the others allow for some that differ.
const PLANNED: u32 = 12;
/// Message sizes of a train, in bytes; the first that fits is used. Smaller messages pass a traffic shaper without delay.
const SIZES: [u64; 4] = [32 * 1024, 16 * 1024, 8 * 1024, 4096];

/// Result of the check of stored parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredCheck {
    /// The rail matches its stored parameters.
    Holds,
    /// The rail has become slower.
    Slower,
    /// The rail has become faster.
    Faster,
    /// The time did not suffice for a verdict.
    Unknown,
}

/// Compares a rail with its stored parameters, for about `time` at most. `round_trip` returns `None` after the deadline.
pub(super) fn check_stored(
    stored: &LogGp,
    time: Duration,
    mut round_trip: impl FnMut(PrttPoint) -> Option<Time>,
) -> StoredCheck {
    let limit = Time::from_seconds(time.as_secs_f64());
    let trains = SIZES.map(|size| PrttPoint::new(TRAIN, Time::ZERO, Bytes(size)));
    let Some(train) = trains
        .iter()
        .find(|train: &&PrttPoint| prtt(stored, **train) * (2.0 * f64::from(PLANNED)) <= limit)
    else {
        return StoredCheck::Unknown;
    };
    let predicted = prtt(stored, *train).as_nanos();
    let mut test = StillHolds::within(CHANGED, LEVEL);
    // The first round trip opens the connection.
    let Some(mut spent) = round_trip(*train) else {
        return StoredCheck::Unknown;
    };
    while spent < limit {
        let Some(time) = round_trip(*train) else {
            break;
        };
        spent += time;
        match test.observe(time.as_nanos() / predicted) {
            StabilityVerdict::Above => return StoredCheck::Slower,
            StabilityVerdict::Below => return StoredCheck::Faster,
            StabilityVerdict::Between => return StoredCheck::Holds,
            StabilityVerdict::Open => {}
        }
    }
    if test.count() < PLANNED {
        StoredCheck::Slower
    } else {
        StoredCheck::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::{super::plan::tests::rail, *};

    /// Checks the stored parameters against a rail with the parameters `now`. Returns the result and the number of trains.
    fn of(stored: &LogGp, now: &LogGp, noise: impl Fn(u32) -> f64) -> (StoredCheck, u32) {
        let mut count = 0;
        let found = check_stored(stored, Duration::from_millis(80), |train| {
            count += 1;
            Some(prtt(now, train) * noise(count))
        });
        (found, count)
    }

    #[test]
    fn an_unchanged_rail_holds_after_few_trains() {
        assert_eq!(
            of(&rail(1000.0), &rail(1000.0), |_| 1.0),
            (StoredCheck::Holds, 9)
        );
        // A machine that starts a job: up to 1.4 times the time, and twice the time for every fifth train.
        let busy = |count: u32| {
            if count.is_multiple_of(5) {
                2.0
            } else {
                1.0 + 0.1 * f64::from(count % 5)
            }
        };
        assert_eq!(of(&rail(1000.0), &rail(1000.0), busy).0, StoredCheck::Holds);
    }

    #[test]
    fn a_rail_with_another_rate_does_not_hold() {
        assert_eq!(
            of(&rail(1000.0), &rail(500.0), |_| 1.0),
            (StoredCheck::Slower, 9)
        );
        assert_eq!(
            of(&rail(500.0), &rail(1000.0), |_| 1.0),
            (StoredCheck::Faster, 9)
        );
        // At a hundredth of the rate two trains take all the time.
        let (found, count) = of(&rail(1000.0), &rail(10.0), |_| 1.0);
        assert!(
            found == StoredCheck::Slower && count <= 3,
            "{found:?} {count}"
        );
    }

    #[test]
    fn a_rail_that_is_too_slow_for_twelve_trains_is_believed() {
        assert_eq!(
            of(&rail(1.0), &rail(1.0), |_| 1.0),
            (StoredCheck::Unknown, 0)
        );
    }
}
