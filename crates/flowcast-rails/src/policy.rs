//! The choice of the rail of each message, and what acknowledgements reveal about the speed of the rails.

use flowcast_model::loggp::LogGp;
use flowcast_scheduler::{
    RailId, RailScheduler, RailSet, RailsError,
    adaptive::{Adaptive, AdaptiveRule, Completion},
    clock::Ticks,
    discipline::{BoxedScheduler, SchedulerName},
    split::{Split, SplitRule, Splitter},
    turns::Shares,
};
use flowcast_units::Bytes;

/// How rails are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Steering {
    /// By a scheduler that believes its parameters for ever.
    Fixed(SchedulerName),
    /// By earliest delivery, with long messages divided over the rails.
    Dividing(SplitRule),
    /// By earliest delivery, with parameters that follow the rails; long messages may be divided.
    Adaptive(AdaptiveRule, Option<SplitRule>),
}

/// A scheduler at work.
pub(crate) enum Policy {
    Fixed(BoxedScheduler<Ticks>),
    Dividing(Box<Splitter>),
    Adaptive(Box<Adaptive>),
}

impl Policy {
    /// For rails with nothing to send.
    pub(crate) fn new(steering: Steering, rails: &[LogGp]) -> Result<Policy, RailsError> {
        Ok(match steering {
            Steering::Fixed(name) => {
                Policy::Fixed(name.scheduler(rails, Shares::by_bandwidth(rails)?, ())?)
            }
            Steering::Dividing(rule) => Policy::Dividing(Box::new(Splitter::new(rails, rule)?)),
            Steering::Adaptive(rule, split) => {
                let adaptive = Adaptive::new(rails, rule)?;
                Policy::Adaptive(Box::new(match split {
                    Some(split) => adaptive.dividing(split),
                    None => adaptive,
                }))
            }
        })
    }

    pub(crate) fn pick(&mut self, now: Ticks, size: Bytes, usable: RailSet) -> Option<RailId> {
        match self {
            Policy::Fixed(scheduler) => scheduler.pick(now, size, usable),
            Policy::Dividing(splitter) => splitter.pick(now, size, usable),
            Policy::Adaptive(adaptive) => adaptive.pick(now, size, usable),
        }
    }

    /// How a message is to be divided, if it is.
    pub(crate) fn divide(&self, now: Ticks, size: Bytes, usable: RailSet) -> Option<Split> {
        match self {
            Policy::Fixed(_) => None,
            Policy::Dividing(splitter) => splitter.divide(now, size, usable),
            Policy::Adaptive(adaptive) => adaptive.divide(now, size, usable),
        }
    }

    /// A piece of a divided message takes this rail.
    pub(crate) fn give(&mut self, rail: RailId, now: Ticks, size: Bytes) {
        match self {
            Policy::Fixed(_) => {}
            Policy::Dividing(splitter) => splitter.give(rail, now, size),
            Policy::Adaptive(adaptive) => adaptive.give(rail, now, size),
        }
    }

    /// Something had arrived by `seen`: these, and perhaps what another policy gave to the rail.
    pub(crate) fn completed(
        &mut self,
        rail: RailId,
        seen: Ticks,
        together: impl Iterator<Item = Completion>,
    ) {
        if let Policy::Adaptive(adaptive) = self {
            adaptive.completed(rail, together);
            adaptive.was_busy(rail, seen);
        }
    }

    /// Rails that have become slower since the last call, beside those that have become faster.
    pub(crate) fn overdue(&mut self, now: Ticks) {
        if let Policy::Adaptive(adaptive) = self {
            adaptive.overdue(now);
        }
    }

    /// How many times slower than measured a rail is believed to be, and how often it was found to have changed.
    pub(crate) fn slowdown(&self, rail: RailId) -> (f64, u64) {
        match self {
            Policy::Fixed(_) | Policy::Dividing(_) => (1.0, 0),
            Policy::Adaptive(adaptive) => (adaptive.slowdown(rail), adaptive.changes(rail)),
        }
    }

    /// What a rail costs now, where it no longer is what was measured.
    pub(crate) fn remeasured(&self, rail: RailId) -> Option<LogGp> {
        match self {
            Policy::Fixed(_) | Policy::Dividing(_) => None,
            Policy::Adaptive(adaptive) => adaptive.remeasured(rail),
        }
    }

    /// Messages that were given to a rail will not be sent there.
    pub(crate) fn taken_back(
        &mut self,
        rail: RailId,
        now: Ticks,
        sizes: impl Iterator<Item = Bytes>,
    ) {
        if let Policy::Adaptive(adaptive) = self {
            sizes.for_each(|size| adaptive.taken_back(rail, now, size));
        }
    }
}
