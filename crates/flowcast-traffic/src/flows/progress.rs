//! What a simulation from event to event asks of the flows in flight.

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
    /// Its share, and what limits it.
    pub allocation: Allocation,
}

/// Flows in flight and how much of each is left.
pub(super) trait FlowProgress {
    /// How many flows there are.
    fn count(&self) -> usize;

    /// How many flows go over a link.
    fn flows_over(&self, link: LinkId) -> u64;

    /// The next end at the rates of now.
    fn next_end(&self) -> Option<Time>;

    /// A flow starts on its path in the fabric, with this much time at the share 1 to go.
    fn start(&mut self, fabric: &Fabric, flow: u32, now: Time, work: Time);

    /// Ends the next flow if its end is not after `limit`.
    fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<(u32, FlowCompletion)>;

    /// Lets the model allocate anew what the last starts and ends have changed; `notify` may be called for each change.
    ///
    /// # Errors
    /// Those of the model.
    fn update_rates(
        &mut self,
        fabric: &Fabric,
        model: &mut dyn RateModel,
        now: Time,
        notify: impl FnMut(RateChange),
    ) -> Result<(), SharingError>;
}
