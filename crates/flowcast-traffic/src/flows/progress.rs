//! Interface of the flows in flight for a simulation from event to event.

use flowcast_network::sharing::{
    RateModel, SharingError,
    completion::FlowCompletion,
    fabric::{Allocation, Fabric, LinkId},
};
use flowcast_units::Time;

/// A flow's new allocation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateChange {
    /// Index of the flow whose allocation changes.
    pub flow: u32,
    /// Share of the flow, and the limit that keeps it from being larger.
    pub allocation: Allocation,
}

/// Flows in flight and the remaining work of each.
pub(super) trait FlowProgress {
    /// Number of flows in flight.
    fn count(&self) -> usize;

    /// Number of flows over a link.
    fn flows_over(&self, link: LinkId) -> u64;

    /// Time of the next end at the current rates.
    fn next_end(&self) -> Option<Time>;

    /// Starts a flow on its path in the fabric. Its work is the time that it needs at the share 1.
    fn start(&mut self, fabric: &Fabric, flow: u32, now: Time, work: Time);

    /// Ends the next flow if its end is not after `limit`.
    fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<(u32, FlowCompletion)>;

    /// Lets the model update the rates after the last starts and ends; `notify` may be called for each change.
    ///
    /// # Errors
    /// Errors of the model.
    fn update_rates(
        &mut self,
        fabric: &Fabric,
        model: &mut dyn RateModel,
        now: Time,
        notify: impl FnMut(RateChange),
    ) -> Result<(), SharingError>;
}
