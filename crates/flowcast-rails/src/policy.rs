//! Which rail takes the next message, and what is learnt from how it fared.

use flowcast::model::loggp::LogGp;
use flowcast::rails::adaptive::{Adaptive, AdaptiveRule, Completion};
use flowcast::rails::discipline::{BoxedScheduler, SchedulerName};
use flowcast::rails::moment::Ticks;
use flowcast::rails::turns::Shares;
use flowcast::rails::{RailId, RailScheduler, RailSet, RailsError};
use flowcast::units::Bytes;

/// How rails are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Steering {
    /// By a scheduler that believes its parameters for ever.
    Fixed(SchedulerName),
    /// By earliest delivery, with parameters that follow the rails.
    Adaptive(AdaptiveRule),
}

/// A scheduler at work.
pub enum Policy {
    /// Of fixed parameters.
    Fixed(BoxedScheduler<Ticks>),
    /// Of parameters that follow the rails.
    Adaptive(Box<Adaptive>),
}

impl Policy {
    /// For rails with nothing to send.
    ///
    /// # Errors
    /// No rail, or more than 16.
    pub fn new(steering: Steering, rails: &[LogGp]) -> Result<Policy, RailsError> {
        Ok(match steering {
            Steering::Fixed(name) => Policy::Fixed(name.scheduler(rails, Shares::by_bandwidth(rails)?, ())?),
            Steering::Adaptive(rule) => Policy::Adaptive(Box::new(Adaptive::new(rails, rule)?)),
        })
    }

    /// The rail of a message.
    pub fn pick(&mut self, now: Ticks, size: Bytes, usable: RailSet) -> Option<RailId> {
        match self {
            Policy::Fixed(scheduler) => scheduler.pick(now, size, usable),
            Policy::Adaptive(adaptive) => adaptive.pick(now, size, usable),
        }
    }

    /// A message has arrived.
    pub fn completed(&mut self, rail: RailId, completion: Completion) {
        if let Policy::Adaptive(adaptive) = self {
            adaptive.completed(rail, completion);
        }
    }

    /// Rails that have become slower since the last call, beside those that have become faster.
    pub fn overdue(&mut self, now: Ticks) {
        if let Policy::Adaptive(adaptive) = self {
            adaptive.overdue(now);
        }
    }

    /// What is believed of a rail: how many times slower than measured, and how often that has changed.
    pub fn slowdown(&self, rail: RailId) -> (f64, u64) {
        match self {
            Policy::Fixed(_) => (1.0, 0),
            Policy::Adaptive(adaptive) => (adaptive.slowdown(rail), adaptive.changes(rail)),
        }
    }

    /// Messages that were given to a rail will not be sent there.
    pub fn taken_back(&mut self, rail: RailId, now: Ticks, sizes: impl Iterator<Item = Bytes>) {
        if let Policy::Adaptive(adaptive) = self {
            sizes.for_each(|size| adaptive.taken_back(rail, now, size));
        }
    }
}
