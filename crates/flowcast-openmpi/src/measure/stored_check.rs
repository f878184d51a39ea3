//! Whether a rail still is what an earlier run stored, by the sequential test of `flowcast measure check`.
//!
//! Trains of messages are compared with what the stored parameters predict. Stored results rest on the shortest of several
//! trains, and ranks that just start are disturbed, so that a median within a third below and a half above is no change. A
//! rail that is slow beyond measure would need longer for a verdict than there is: the sizes are such that all planned trains take
//! half of the time, and where not even those fit into all of it the rail has changed as well.

use std::time::Duration;

use flowcast_fit::prtt::{PrttPoint, prtt};
use flowcast_network::loggp::LogGp;
use flowcast_statistics::still::{StillHolds, StillVerdict};
use flowcast_units::{Bytes, Time};

use super::plan::TRAIN;

/// Probability of a measurement that was not needed.
const LEVEL: f64 = 0.05;
/// A median that differs by this factor is a change.
const CHANGED: f64 = 1.5;
/// Trains that have to fit: eight alike give a verdict, some may differ.
const PLANNED: u32 = 12;
/// Sizes of a train's messages, the first that fits: smaller ones pass a traffic shaper unhindered.
const SIZES: [u64; 4] = [32 * 1024, 16 * 1024, 8 * 1024, 4096];

/// What became of a stored result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredCheck {
    /// The rail is as it was measured.
    Holds,
    /// The rail has become slower.
    Slower,
    /// The rail has become faster.
    Faster,
    /// There was no time to tell.
    Unknown,
}

/// Compares a rail with what is stored of it, for about `time` at most. `round_trip` gives none where the time is over.
pub(super) fn holding(
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
    // The first opens the connection.
    let Some(mut spent) = round_trip(*train) else {
        return StoredCheck::Unknown;
    };
    while spent < limit {
        let Some(time) = round_trip(*train) else {
            break;
        };
        spent += time;
        match test.observe(time.as_nanos() / predicted) {
            StillVerdict::Above => return StoredCheck::Slower,
            StillVerdict::Below => return StoredCheck::Faster,
            StillVerdict::Between => return StoredCheck::Holds,
            StillVerdict::Open => {}
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

    /// What becomes of 1000 Mbit/s stored where the rail now is `now`, and how many trains that took.
    fn of(stored: &LogGp, now: &LogGp, noise: impl Fn(u32) -> f64) -> (StoredCheck, u32) {
        let mut count = 0;
        let found = holding(stored, Duration::from_millis(80), |train| {
            count += 1;
            Some(prtt(now, train) * noise(count))
        });
        (found, count)
    }

    #[test]
    fn a_rail_as_it_was_stored_holds_after_few_trains() {
        assert_eq!(
            of(&rail(1000.0), &rail(1000.0), |_| 1.0),
            (StoredCheck::Holds, 9)
        );
        // A machine that starts a job: up to 1.4 times as long, and every fifth train twice.
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
    fn a_rail_of_another_rate_does_not_hold() {
        assert_eq!(
            of(&rail(1000.0), &rail(500.0), |_| 1.0),
            (StoredCheck::Slower, 9)
        );
        assert_eq!(
            of(&rail(500.0), &rail(1000.0), |_| 1.0),
            (StoredCheck::Faster, 9)
        );
        // A hundredth of the rate: two trains take all the time.
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
