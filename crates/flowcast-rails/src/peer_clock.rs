//! Conversion of the other end's clock into ours.
//!
//! Acknowledgements carry the time at which a message arrived, on the receiver's clock. The message arrived after it was
//! assigned to the rail and before its acknowledgement arrived, both on our clock. The offset of the clocks therefore lies
//! between the largest `arrived - acknowledged` and the smallest `arrived - given`; their mean is used. It does not depend
//! on any parameter of a rail. Both bounds widen by 100 us each second, which exceeds the drift of quartz clocks.

use flowcast_scheduler::clock::{ClockArithmetic, Ticks};

/// Time in which a clock may drift by a nanosecond, in nanoseconds.
const DRIFT: i64 = 10_000;

/// The offset of the other end's clock.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PeerClock {
    bounds: Option<Bounds>,
}

/// Bounds of the offset and the time of the last update, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    least: i64,
    most: i64,
    at: i64,
}

/// Times of a message that has arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receipt {
    /// Time at which the message was assigned to its rail, on our clock.
    pub given: Ticks,
    /// Arrival time, in nanoseconds on the other clock.
    pub arrived: u64,
    /// Arrival of its acknowledgement, on our clock.
    pub acknowledged: Ticks,
}

impl PeerClock {
    /// Returns the arrival time of the message on our clock, limited to the interval from its assignment to its
    /// acknowledgement.
    pub(crate) fn seen(&mut self, receipt: Receipt) -> Ticks {
        let (given, acknowledged) = (nanos(receipt.given), nanos(receipt.acknowledged));
        let arrived = receipt.arrived as i64;
        let own = Bounds {
            least: arrived - acknowledged,
            most: arrived - given,
            at: acknowledged,
        };
        let bounds = self.bounds.map_or(own, |before| before.narrowed(own));
        self.bounds = Some(bounds);
        let seen = arrived - (bounds.least + bounds.most) / 2;
        Ticks::from_nanos(seen.clamp(given, acknowledged.max(given)).max(0) as u64)
    }
}

fn nanos(at: Ticks) -> i64 {
    at.time(()).as_nanos() as i64
}

impl Bounds {
    /// Combines two bounds. If they contradict each other, the clock was set, and only the new bounds count.
    fn narrowed(self, by: Bounds) -> Bounds {
        let drift = (by.at - self.at).max(0) / DRIFT + 1;
        let least = by.least.max(self.least - drift);
        let most = by.most.min(self.most + drift);
        if least <= most {
            Bounds {
                least,
                most,
                at: by.at,
            }
        } else {
            by
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(clock: &mut PeerClock, given: u64, arrived: u64, acknowledged: u64) -> Ticks {
        let micros = |micros: u64| Ticks::from_nanos(micros * 1000);
        clock.seen(Receipt {
            given: micros(given),
            arrived: arrived * 1000,
            acknowledged: micros(acknowledged),
        })
    }

    #[test]
    fn a_quick_answer_yields_the_offset_and_late_answers_then_yield_times_of_arrival() {
        let mut clock = PeerClock::default();
        let micros = |micros: u64| Ticks::from_nanos(micros * 1000);
        assert_eq!(
            seen(&mut clock, 100, 50_120, 140),
            micros(120),
            "offset 50 ms, known to 20 us"
        );
        assert_eq!(
            seen(&mut clock, 200, 50_900, 3000),
            micros(900),
            "700 us in flight, its acknowledgement 2.1 ms"
        );
        let at = seen(&mut clock, 1000, 51_001, 1500);
        assert!(
            at > micros(1010) && at < micros(1011),
            "the offset is now below 50.001 ms: {at:?}"
        );
    }

    proptest! {
        #[test]
        fn arrivals_are_known_to_half_the_quickest_answer(
            offset in 0u64..1_000_000,
            trips in prop::collection::vec((0u64..500, 1u64..2000, 1u64..2000), 1..50),
        ) {
            let (mut clock, mut now, mut quickest) = (PeerClock::default(), 0, u64::MAX);
            for (pause, there, back) in trips {
                let given = now + pause;
                let (arrived, acknowledged) = (given + there, given + there + back);
                quickest = quickest.min(there + back);
                let found = seen(&mut clock, given, offset + arrived, acknowledged).time(()).as_micros();
                prop_assert!((found - arrived as f64).abs() <= quickest as f64 / 2.0 + 20.0, "{found} {arrived}");
                now = acknowledged;
            }
        }
    }
}
