//! Times as whole numbers of a tick, so that their sums are exact.
//!
//! A tick is a power of two. A double represents multiples of it below 2^53 ticks, and their sums, exactly: only each cost
//! is rounded, once.

use flowcast_units::Time;

/// A grid with a tick, or no grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LaneGrid {
    /// 2^52 ticks, or zero without a grid. Adding it to a time and subtracting it again rounds the time.
    reach: Time,
}

/// Number of ticks in the longest time whose sums are exact.
const REACH: i64 = 1 << 52;

impl LaneGrid {
    /// No grid: times are not rounded.
    pub(super) const NONE: LaneGrid = LaneGrid { reach: Time::ZERO };

    /// The finest grid on which times up to this one can be added exactly; `None` if the time is not finite and positive.
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

    /// Number of ticks of a time; `None` if it is too long for the grid.
    pub(super) fn ticks(self, time: Time) -> Option<i64> {
        let ticks = time.as_nanos() / self.tick();
        (ticks < REACH as f64).then_some(ticks as i64)
    }

    /// Time of a number of ticks, exact up to 2^53 of them.
    pub(super) fn time(self, ticks: i128) -> Time {
        Time::from_nanos(ticks as f64 * self.tick())
    }

    /// `true` if this number of ticks can be added to other times exactly.
    pub(super) fn reaches(ticks: i128) -> bool {
        ticks < i128::from(REACH)
    }

    fn tick(self) -> f64 {
        self.reach.as_nanos() / REACH as f64
    }
}
