//! Flows in flight and how much of each is left; patterns ([`fluid`](super::fluid)) and replays ([`traffic`](super::traffic))
//! use it.
//!
//! What is left of a flow, and when it ends, is computed only when its rate changes. So an event costs as much as the
//! number of rates that it changes.

use crate::queues::indexed::IndexedHeap;
use flowcast_model::sharing::{
    Changes, RateModel, SharingError,
    active_flows::{ActiveFlows, Reach},
    completion::FlowCompletion,
    fabric::{AllocatedFraction, Allocation, Fabric, Limit},
};
use flowcast_units::Time;

const NOTHING_YET: Allocation = Allocation {
    share: AllocatedFraction(0.0),
    limit: Limit::Alone,
};

#[derive(Debug, Clone, Copy)]
struct InFlightProgress {
    /// When the share last changed.
    since: Time,
    /// Work left then.
    left: Time,
    /// Time in flight until then.
    before: Time,
    allocation: Allocation,
    is_in_flight: bool,
}

impl InFlightProgress {
    fn remaining_time(&self) -> Time {
        Time::from_nanos(self.left.as_nanos() / self.allocation.share.0)
    }

    fn end(&self) -> Time {
        self.since + self.remaining_time()
    }
}

/// A flow's new allocation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateChange {
    /// Index of the flow whose allocation changes.
    pub flow: u32,
    /// Its share, and what limits it.
    pub allocation: Allocation,
}

/// The flows in flight.
#[derive(Debug, Clone, Default)]
pub struct FlowsInFlight {
    active_flows: ActiveFlows,
    progress: Vec<InFlightProgress>,
    ends: IndexedHeap,
    count: usize,
    changes: Changes,
}

impl FlowsInFlight {
    /// No flows, on the links of a fabric, for a model of this reach.
    pub fn new(fabric: &Fabric, reach: Reach) -> FlowsInFlight {
        FlowsInFlight {
            active_flows: ActiveFlows::within(fabric.link_count(), reach),
            ..FlowsInFlight::default()
        }
    }

    /// How many flows there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The next end at the rates of now; flows that have just started have none before [`FlowsInFlight::update_rates`].
    pub fn next_end(&self) -> Option<Time> {
        self.ends.first().map(|(end, _)| end)
    }

    /// A flow starts on its path in the fabric, with this much time at the share 1 to go.
    pub fn start(&mut self, fabric: &Fabric, flow: u32, now: Time, work: Time) {
        let nothing = InFlightProgress {
            since: Time::ZERO,
            left: Time::ZERO,
            before: Time::ZERO,
            allocation: NOTHING_YET,
            is_in_flight: false,
        };
        if self.progress.len() <= flow as usize {
            self.progress.resize(flow as usize + 1, nothing);
        }
        self.progress[flow as usize] = InFlightProgress {
            since: now,
            left: work,
            is_in_flight: true,
            ..nothing
        };
        self.active_flows.insert(flow, &fabric.paths[flow as usize]);
        self.count += 1;
    }

    /// Ends the next flow if its end is not after `limit`.
    pub fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<(u32, FlowCompletion)> {
        let (end, flow) = self.ends.first().filter(|(end, _)| *end <= limit)?;
        self.ends.pop();
        let progress = &mut self.progress[flow as usize];
        progress.is_in_flight = false;
        let duration = progress.before + progress.remaining_time();
        self.active_flows.remove(flow, &fabric.paths[flow as usize]);
        self.count -= 1;
        Some((flow, FlowCompletion { end, duration }))
    }

    /// Lets the model allocate anew what the last starts and ends have changed; each change goes to `notify`.
    ///
    /// # Errors
    /// Those of the model.
    pub fn update_rates(
        &mut self,
        fabric: &Fabric,
        model: &mut dyn RateModel,
        now: Time,
        mut notify: impl FnMut(RateChange),
    ) -> Result<(), SharingError> {
        if self.active_flows.touched().is_empty() {
            return Ok(());
        }
        let mut changes = std::mem::take(&mut self.changes);
        model.update(fabric, &mut self.active_flows, &mut changes)?;
        self.active_flows.settle();
        for (flow, allocation) in changes.drain(..) {
            let progress = &mut self.progress[flow as usize];
            if !progress.is_in_flight || progress.allocation == allocation {
                continue;
            }
            notify(RateChange { flow, allocation });
            progress.allocation.limit = allocation.limit;
            if progress.allocation.share != allocation.share {
                settle(progress, now);
                progress.allocation.share = allocation.share;
                self.ends.set(flow, progress.end());
            }
        }
        self.changes = changes;
        Ok(())
    }
}

fn settle(progress: &mut InFlightProgress, now: Time) {
    let share = progress.allocation.share.0;
    if share > 0.0 {
        let elapsed = now - progress.since;
        progress.left = (progress.left - elapsed * share).max(Time::ZERO);
        progress.before += elapsed;
        progress.since = now;
    }
}
