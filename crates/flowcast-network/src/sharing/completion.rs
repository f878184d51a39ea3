//! Completion of a flow, and the rates that it had until then.

use flowcast_units::Time;

use super::fabric::{AllocatedFraction, Limit};

/// Arrival of a flow's last byte.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FlowCompletion {
    /// Time of arrival, counted from the start of the pattern.
    pub end: Time,
    /// Time since the start of the flow.
    pub duration: Time,
}

/// An interval in which a flow has a constant rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateInterval {
    /// Start of the interval.
    pub from: Time,
    /// End of the interval: the rate changes or the flow's data end.
    pub to: Time,
    /// Rate of the flow, in units of a node's interface.
    pub share: AllocatedFraction,
    /// Limit that keeps the rate from being higher.
    pub limit: Limit,
}
