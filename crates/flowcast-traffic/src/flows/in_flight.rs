//! Flows in flight and the remaining work of each, for patterns ([`fluid`](super::fluid)) and replays
//! ([`traffic`](super::traffic)).
//!
//! The remaining work and the end of a flow are computed only when its rate changes. The cost of an event is therefore
//! proportional to the number of rates that it changes. A flow without others on its links is not passed to a model that
//! would give it its uncontended share. If many flows share few paths, `flow_classes` is faster.

use super::progress::{FlowProgress, RateChange};
use crate::queues::indexed::IndexedHeap;
use flowcast_network::sharing::{
    Changes, RateModel, SharingError,
    active_flows::ActiveFlows,
    completion::FlowCompletion,
    fabric::{AllocatedFraction, Allocation, Fabric, Limit, LinkId},
};
use flowcast_units::Time;

const NOTHING_YET: Allocation = Allocation {
    share: AllocatedFraction(0.0),
    limit: Limit::Alone,
};

#[derive(Debug, Clone, Copy)]
struct InFlightProgress {
    /// Time of the last change of the share.
    since: Time,
    /// Remaining work at that time.
    left: Time,
    /// Time in flight until then.
    before: Time,
    allocation: Allocation,
    /// Turn among flows that end at the same time.
    turn: u32,
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

/// Flows in flight, whose rates a model computes when flows start or end.
#[derive(Debug, Clone, Default)]
pub struct FlowsInFlight {
    active_flows: ActiveFlows,
    progress: Vec<InFlightProgress>,
    ends: IndexedHeap,
    count: usize,
    changes: Changes,
    /// The only flow over each link, if it is alone on all of its links, indexed by link; empty if the model must know such
    /// flows.
    lone: Vec<u32>,
}

/// Value for a link without a lone flow.
const NONE: u32 = u32::MAX;

impl FlowsInFlight {
    /// Creates traffic without flows, on the links of a fabric.
    pub fn new(fabric: &Fabric, model: &dyn RateModel) -> FlowsInFlight {
        let links = fabric.link_count();
        FlowsInFlight {
            active_flows: ActiveFlows::within(links, model.reach()),
            lone: if model.spares_lone_flows() {
                vec![NONE; links]
            } else {
                Vec::new()
            },
            ..FlowsInFlight::default()
        }
    }

    /// Lets the model omit the limits of flows, because no caller needs them.
    pub(super) fn ignore_limits(&mut self) {
        self.changes.ignores_limits = true;
    }

    /// Starts a flow like [`FlowProgress::start`]. The turn orders flows that end at the same time. It differs from the
    /// flow's number if the numbers of ended flows are reused.
    pub(super) fn start_in_turn(
        &mut self,
        fabric: &Fabric,
        flow: u32,
        now: Time,
        work: Time,
        turn: u32,
    ) {
        let nothing = InFlightProgress {
            since: Time::ZERO,
            left: Time::ZERO,
            before: Time::ZERO,
            allocation: NOTHING_YET,
            turn,
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
        self.count += 1;
        if self.is_lone(fabric, flow) {
            self.note_lone(fabric, flow);
        } else {
            self.active_flows.insert(flow, &fabric.paths[flow as usize]);
        }
    }

    /// Returns `true` if a flow that starts shares no link. Lone flows that it meets are passed to the model.
    fn is_lone(&mut self, fabric: &Fabric, flow: u32) -> bool {
        if self.lone.is_empty() {
            return false;
        }
        let links = fabric.paths[flow as usize].data();
        let mut is_lone = true;
        for link in links {
            let lone = self.lone[link.index()];
            if lone != NONE {
                self.forget_lone(fabric, lone);
                self.active_flows.insert(lone, &fabric.paths[lone as usize]);
            }
            is_lone &= self.active_flows.members(*link).is_empty();
        }
        is_lone
    }

    /// Withdraws a flow from the model if it is alone again after another flow over this link has ended.
    fn withdraw_lone(&mut self, fabric: &Fabric, link: LinkId) {
        let [flow] = *self.active_flows.members(link) else {
            return;
        };
        let path = &fabric.paths[flow as usize];
        if path
            .data()
            .iter()
            .all(|link| self.active_flows.members(*link).len() == 1)
        {
            self.active_flows.remove(flow, path);
            self.note_lone(fabric, flow);
        }
    }

    /// Gives a flow that is alone on all its links its uncontended share.
    fn note_lone(&mut self, fabric: &Fabric, flow: u32) {
        let path = &fabric.paths[flow as usize];
        for link in path.data() {
            self.lone[link.index()] = flow;
        }
        let share = fabric.uncontended_share(path);
        let limit = Limit::Alone;
        self.changes.flows.push((flow, Allocation { share, limit }));
    }

    fn forget_lone(&mut self, fabric: &Fabric, flow: u32) {
        for link in fabric.paths[flow as usize].data() {
            self.lone[link.index()] = NONE;
        }
    }
}

impl FlowProgress for FlowsInFlight {
    fn count(&self) -> usize {
        self.count
    }

    fn flows_over(&self, link: LinkId) -> u64 {
        let is_lone = self
            .lone
            .get(link.index())
            .is_some_and(|flow| *flow != NONE);
        u64::from(self.active_flows.flows_over(link)) + u64::from(is_lone)
    }

    fn next_end(&self) -> Option<Time> {
        self.ends.first().map(|(end, _)| end)
    }

    fn start(&mut self, fabric: &Fabric, flow: u32, now: Time, work: Time) {
        self.start_in_turn(fabric, flow, now, work, flow);
    }

    fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<(u32, FlowCompletion)> {
        let (end, flow) = self.ends.first().filter(|(end, _)| *end <= limit)?;
        self.ends.pop();
        let progress = &mut self.progress[flow as usize];
        progress.is_in_flight = false;
        let duration = progress.before + progress.remaining_time();
        let path = &fabric.paths[flow as usize];
        if self.lone.get(path.out().index()) == Some(&flow) {
            self.forget_lone(fabric, flow);
        } else {
            self.active_flows.remove(flow, path);
            if !self.lone.is_empty() {
                for link in path.data() {
                    self.withdraw_lone(fabric, *link);
                }
            }
        }
        self.count -= 1;
        Some((flow, FlowCompletion { end, duration }))
    }

    fn update_rates(
        &mut self,
        fabric: &Fabric,
        model: &mut dyn RateModel,
        now: Time,
        mut notify: impl FnMut(RateChange),
    ) -> Result<(), SharingError> {
        let mut changes = std::mem::take(&mut self.changes);
        if !self.active_flows.touched().is_empty() {
            model.update(fabric, &mut self.active_flows, &mut changes)?;
            self.active_flows.settle();
        }
        for (flow, allocation) in changes.flows.drain(..) {
            let progress = &mut self.progress[flow as usize];
            if !progress.is_in_flight || progress.allocation == allocation {
                continue;
            }
            notify(RateChange { flow, allocation });
            progress.allocation.limit = allocation.limit;
            if progress.allocation.share != allocation.share {
                settle(progress, now);
                progress.allocation.share = allocation.share;
                self.ends.set_in_turn(flow, progress.end(), progress.turn);
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
