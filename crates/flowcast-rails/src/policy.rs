//! The choice of the rail of each message, and what acknowledgements reveal about the speed of the rails.

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
pub(crate) enum RailPolicy {
    Fixed(BoxedScheduler<Ticks>),
    Dividing(Box<Splitter>),
    Adaptive(Box<Adaptive>),
}

impl RailPolicy {
    /// For rails with nothing to send.
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

    /// How a message is to be divided, if it is.
    pub(crate) fn divide(&self, now: Ticks, size: Bytes, usable: RailSet) -> Option<Split> {
        match self {
            RailPolicy::Fixed(_) => None,
            RailPolicy::Dividing(splitter) => splitter.divide(now, size, usable),
            RailPolicy::Adaptive(adaptive) => adaptive.divide(now, size, usable),
        }
    }

    /// A piece of a divided message takes this rail.
    pub(crate) fn give(&mut self, rail: RailId, now: Ticks, size: Bytes) {
        match self {
            RailPolicy::Fixed(_) => {}
            RailPolicy::Dividing(splitter) => splitter.give(rail, now, size),
            RailPolicy::Adaptive(adaptive) => adaptive.give(rail, now, size),
        }
    }

    /// Something had arrived by `seen`: these, and perhaps what another policy gave to the rail.
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

    /// Rails that have become slower since the last call, beside those that have become faster.
    pub(crate) fn overdue(&mut self, now: Ticks) {
        if let RailPolicy::Adaptive(adaptive) = self {
            adaptive.overdue(now);
        }
    }

    /// How many times slower than measured a rail is believed to be, and how often it was found to have changed.
    pub(crate) fn slowdown(&self, rail: RailId) -> (f64, u64) {
        match self {
            RailPolicy::Fixed(_) | RailPolicy::Dividing(_) => (1.0, 0),
            RailPolicy::Adaptive(adaptive) => (adaptive.slowdown(rail), adaptive.changes(rail)),
        }
    }

    /// What a rail costs now, where it no longer is what was measured.
    pub(crate) fn remeasured(&self, rail: RailId) -> Option<LogGp> {
        match self {
            RailPolicy::Fixed(_) | RailPolicy::Dividing(_) => None,
            RailPolicy::Adaptive(adaptive) => adaptive.remeasured(rail),
        }
    }

    /// Messages that were given to a rail will not be sent there.
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
