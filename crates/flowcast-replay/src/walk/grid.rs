//! Times as whole numbers of a tick, so that their sums are exact.
//!
//! A tick is a power of two. Multiples of it below 2^53 ticks are numbers of a double, and so are their sums: nothing is
//! rounded but each cost, once.

use flowcast_units::Time;

/// A tick, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LaneGrid {
    /// 2^52 ticks, or nothing: what a time is added to and taken from to round it.
    reach: Time,
}

/// Ticks in the longest time that is added to others exactly.
const REACH: i64 = 1 << 52;

impl LaneGrid {
    /// Times stay what they are.
    pub(super) const NONE: LaneGrid = LaneGrid { reach: Time::ZERO };

    /// The finest grid on which times up to this one can be added; `None` if that is no finite time above 0.
    pub(super) fn reaching(time: Time) -> Option<LaneGrid> {
        let nanos = time.as_nanos();
        let reach = 2f64.powi(nanos.log2().ceil() as i32);
        (nanos > 0.0 && reach.is_finite() && reach > 0.0).then_some(LaneGrid {
            reach: Time::from_nanos(reach),
        })
    }

    /// The nearest multiple of the tick.
    #[inline(always)]
    pub(super) fn round(self, time: Time) -> Time {
        (time + self.reach) - self.reach
    }

    /// How many ticks a time is; `None` if it is beyond reach.
    pub(super) fn ticks(self, time: Time) -> Option<i64> {
        let ticks = time.as_nanos() / self.tick();
        (ticks < REACH as f64).then_some(ticks as i64)
    }

    /// The time of so many ticks, exact up to 2^53 of them.
    pub(super) fn time(self, ticks: i128) -> Time {
        Time::from_nanos(ticks as f64 * self.tick())
    }

    /// Whether so many ticks can be added to others exactly.
    pub(super) fn reaches(ticks: i128) -> bool {
        ticks < i128::from(REACH)
    }

    fn tick(self) -> f64 {
        self.reach.as_nanos() / REACH as f64
    }
}
