//! Flows under way and how far they are. What both the stepping of patterns and the replay of traces stand on.
//!
//! A flow's progress is brought up to date only when its share changes, and its end moves only then; a change of one
//! flow costs as much as it changes.

use super::end_queue::EndQueue;
use flowcast_model::sharing::active_flows::ActiveFlows;
use flowcast_model::sharing::completion::FlowCompletion;
use flowcast_model::sharing::fabric::{Allocation, Fabric, Limit, Share};
use flowcast_model::sharing::{Changes, RateModel, SharingError};
use flowcast_units::Time;

const NOTHING_YET: Allocation = Allocation { share: Share(0.0), limit: Limit::Alone };

#[derive(Debug, Clone, Copy)]
struct Progress {
    /// When the share last changed.
    since: Time,
    /// Work left then.
    left: Time,
    /// Time under way until then.
    before: Time,
    allocation: Allocation,
    is_in_flight: bool,
}

impl Progress {
    fn remaining_time(&self) -> Time {
        Time::from_nanos(self.left.as_nanos() / self.allocation.share.0)
    }

    fn end(&self) -> Time {
        self.since + self.remaining_time()
    }
}

/// A flow gets something else than before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The flow.
    pub flow: u32,
    /// What it gets.
    pub allocation: Allocation,
}

/// The flows under way.
#[derive(Debug, Clone, Default)]
pub struct FlowsInFlight {
    active_flows: ActiveFlows,
    progress: Vec<Progress>,
    ends: EndQueue,
    count: usize,
    changes: Changes,
}

impl FlowsInFlight {
    /// Nobody, on the links of a fabric.
    pub fn new(fabric: &Fabric) -> FlowsInFlight {
        FlowsInFlight { active_flows: ActiveFlows::new(fabric.link_count()), ..FlowsInFlight::default() }
    }

    /// How many flows there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The next end as far as is known; flows that have just started have none before [`FlowsInFlight::update_rates`].
    pub fn next_end(&self) -> Option<Time> {
        self.ends.first().map(|(end, _)| end)
    }

    /// A flow starts on its path in the fabric, with this much time at the share 1 to go.
    pub fn start(&mut self, fabric: &Fabric, flow: u32, now: Time, work: Time) {
        let nothing = Progress {
            since: Time::ZERO,
            left: Time::ZERO,
            before: Time::ZERO,
            allocation: NOTHING_YET,
            is_in_flight: false,
        };
        if self.progress.len() <= flow as usize {
            self.progress.resize(flow as usize + 1, nothing);
        }
        self.progress[flow as usize] = Progress { since: now, left: work, is_in_flight: true, ..nothing };
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

    /// Asks the model for what has changed, and tells.
    pub fn update_rates(
        &mut self,
        fabric: &Fabric,
        model: &mut dyn RateModel,
        now: Time,
        mut tell: impl FnMut(Change),
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
            tell(Change { flow, allocation });
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

fn settle(progress: &mut Progress, now: Time) {
    let share = progress.allocation.share.0;
    if share > 0.0 {
        let elapsed = now - progress.since;
        progress.left = (progress.left - elapsed * share).max(Time::ZERO);
        progress.before += elapsed;
        progress.since = now;
    }
}
