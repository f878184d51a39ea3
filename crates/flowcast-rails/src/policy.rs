//! Choice of the rail of each message, and estimates of the rails' speed from acknowledgements.

use flowcast_network::loggp::LogGp;
use flowcast_scheduler::{
    RailId, RailScheduler, RailSet, RailsError,
    adaptive::{Adaptive, AdaptiveRule, Completion},
    clock::Ticks,
    discipline::{BoxedScheduler, SchedulerName},
    split::{Split, SplitRule, Splitter},
    turns::Shares,
};
use flowcast_units::Bytes;

/// Rule for the choice of rails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Steering {
    /// A scheduler with constant parameters.
    Fixed(SchedulerName),
    /// Earliest delivery, with long messages divided over the rails.
    Dividing(SplitRule),
    /// Earliest delivery, with parameters that follow the rails. Long messages may be divided.
    Adaptive(AdaptiveRule, Option<SplitRule>),
}

/// The scheduler in use.
pub(crate) enum RailPolicy {
    Fixed(BoxedScheduler<Ticks>),
    Dividing(Box<Splitter>),
    Adaptive(Box<Adaptive>),
}

impl RailPolicy {
    /// Creates a policy for idle rails.
    pub(crate) fn new(steering: Steering, rails: &[LogGp]) -> Result<RailPolicy, RailsError> {
        Ok(match steering {
            Steering::Fixed(name) => {
                RailPolicy::Fixed(name.scheduler(rails, Shares::by_bandwidth(rails)?, ())?)
            }
            Steering::Dividing(rule) => RailPolicy::Dividing(Box::new(Splitter::new(rails, rule)?)),
            Steering::Adaptive(rule, split) => {
                let adaptive = Adaptive::new(rails, rule)?;
                RailPolicy::Adaptive(Box::new(match split {
                    Some(split) => adaptive.dividing(split),
                    None => adaptive,
                }))
            }
        })
    }

    pub(crate) fn pick(&mut self, now: Ticks, size: Bytes, usable: RailSet) -> Option<RailId> {
        match self {
            RailPolicy::Fixed(scheduler) => scheduler.pick(now, size, usable),
            RailPolicy::Dividing(splitter) => splitter.pick(now, size, usable),
            RailPolicy::Adaptive(adaptive) => adaptive.pick(now, size, usable),
        }
    }

    /// Returns the division of a message, or `None` if it should stay whole.
    pub(crate) fn divide(&self, now: Ticks, size: Bytes, usable: RailSet) -> Option<Split> {
        match self {
            RailPolicy::Fixed(_) => None,
            RailPolicy::Dividing(splitter) => splitter.divide(now, size, usable),
            RailPolicy::Adaptive(adaptive) => adaptive.divide(now, size, usable),
        }
    }

    /// Records that a piece of a divided message takes this rail.
    pub(crate) fn give(&mut self, rail: RailId, now: Ticks, size: Bytes) {
        match self {
            RailPolicy::Fixed(_) => {}
            RailPolicy::Dividing(splitter) => splitter.give(rail, now, size),
            RailPolicy::Adaptive(adaptive) => adaptive.give(rail, now, size),
        }
    }

    /// Records messages that arrived. `seen` is the time by which something had arrived, which may also be a message that
    /// another policy assigned to the rail.
    pub(crate) fn completed(
        &mut self,
        rail: RailId,
        seen: Ticks,
        together: impl Iterator<Item = Completion>,
    ) {
        if let RailPolicy::Adaptive(adaptive) = self {
            adaptive.completed(rail, together);
            adaptive.was_busy(rail, seen);
        }
    }

    /// Updates the estimates of rails whose messages are overdue.
    pub(crate) fn overdue(&mut self, now: Ticks) {
        if let RailPolicy::Adaptive(adaptive) = self {
            adaptive.overdue(now);
        }
    }

    /// Estimated slowdown of a rail relative to its measured parameters, and the number of detected changes.
    pub(crate) fn slowdown(&self, rail: RailId) -> (f64, u64) {
        match self {
            RailPolicy::Fixed(_) | RailPolicy::Dividing(_) => (1.0, 0),
            RailPolicy::Adaptive(adaptive) => (adaptive.slowdown(rail), adaptive.changes(rail)),
        }
    }

    /// Current parameters of a rail, or `None` if they do not differ from the measured ones.
    pub(crate) fn remeasured(&self, rail: RailId) -> Option<LogGp> {
        match self {
            RailPolicy::Fixed(_) | RailPolicy::Dividing(_) => None,
            RailPolicy::Adaptive(adaptive) => adaptive.remeasured(rail),
        }
    }

    /// Records that messages assigned to a rail will not be sent there.
    pub(crate) fn taken_back(
        &mut self,
        rail: RailId,
        now: Ticks,
        sizes: impl Iterator<Item = Bytes>,
    ) {
        if let RailPolicy::Adaptive(adaptive) = self {
            sizes.for_each(|size| adaptive.taken_back(rail, now, size));
        }
    }
}
