//! When a flow was complete, and the rates that it had until then.

use flowcast_units::Time;

use super::fabric::{AllocatedFraction, Limit};

/// When a flow's last byte arrived.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FlowCompletion {
    /// When, counted from the start of the pattern.
    pub end: Time,
    /// Time since its start.
    pub duration: Time,
}

/// An interval in which a flow has one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateInterval {
    /// Instant from which on the flow has this rate.
    pub from: Time,
    /// Instant at which the rate changes or the flow's data end.
    pub to: Time,
    /// The flow's rate in units of a node's interface.
    pub share: AllocatedFraction,
    /// What keeps it from more.
    pub limit: Limit,
}
