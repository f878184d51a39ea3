//! Flows in flight whose rates follow quasi-dynamic queues ([`flowcast_network::sharing::quasi_dynamic`]).
//!
//! Delays change in steps of a fraction of a full packet's time, since no queue changes faster than packets arrive. The rate
//! of a flow is constant during a step, unless a flow over the same links starts or ends. A step visits every flow in flight
//! once, regardless of the number of events in it. While all delays are at rest, there are no steps until the next event.
//! The completions converge as the steps become shorter.

use crate::queues::indexed::IndexedHeap;
use flowcast_network::{
    network::Network,
    sharing::{
        active_flows::ActiveFlows,
        closed_loop::Feedback,
        fabric::{Fabric, LinkId},
        protocol::SEGMENT,
        quasi_dynamic::QuasiDynamicQueues,
    },
};
use flowcast_units::{Bytes, Time};

/// Speed at which delays approach their balance, and number of steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Time in which the distance to the balance falls by a factor of e.
    pub lag: Time,
    /// Number of steps in that time, for each link of the longest possible path.
    pub fineness: u32,
}

impl Pace {
    /// Returns the pace of a network: the lag is the time of a full packet, with two steps for each link of a path.
    pub fn from_network(network: &Network) -> Pace {
        Pace {
            lag: network.nic.time_for(Bytes(SEGMENT)),
            fineness: 2,
        }
    }
}

/// Flows in flight, whose rates follow the delays of quasi-dynamic queues in steps of equal length.
#[derive(Debug, Clone)]
pub struct QuasiDynamicFlows {
    active_flows: ActiveFlows,
    queues: QuasiDynamicQueues,
    flows: Flows,
    /// Length of a step, in nanoseconds; infinite if the lag is 0.
    step: f64,
    /// Fraction of the distance to their balance that delays cover in a step.
    part: f64,
}

impl QuasiDynamicFlows {
    /// Creates traffic without flows, on the links of a fabric.
    pub fn new(fabric: &Fabric, feedback: Feedback, pace: Pace) -> QuasiDynamicFlows {
        let steps = f64::from(fabric.most_hops() * pace.fineness);
        let lag = pace.lag.as_nanos();
        QuasiDynamicFlows {
            active_flows: ActiveFlows::new(fabric.link_count()),
            queues: QuasiDynamicQueues::new(fabric, feedback),
            flows: Flows {
                until: f64::INFINITY,
                ..Flows::default()
            },
            step: if lag > 0.0 {
                lag / steps
            } else {
                f64::INFINITY
            },
            part: 1.0 - (-1.0 / steps).exp(),
        }
    }

    /// Number of flows over a link.
    pub fn flows_over(&self, link: LinkId) -> u64 {
        u64::from(self.active_flows.flows_over(link))
    }

    /// Time of the next end, if it is within the step.
    pub fn next_end(&self) -> Option<Time> {
        self.flows.ends.first().map(|(end, _)| end)
    }

    /// Time at which the step ends; `None` while all delays are at rest.
    pub fn next_step(&self) -> Option<Time> {
        Some(self.flows.until)
            .filter(|until| until.is_finite())
            .map(Time::from_nanos)
    }

    /// Starts a flow on its path in the fabric. Its work is the time that it needs at the share 1.
    pub fn start(&mut self, fabric: &Fabric, flow: u32, work: Time) {
        let path = &fabric.paths[flow as usize];
        self.queues.enter(flow, path);
        self.active_flows.insert(flow, path);
        self.flows.enter(flow, work.as_nanos());
    }

    /// Ends the next flow if its end is not after `limit`.
    pub fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<u32> {
        let (_, flow) = self.flows.ends.first().filter(|(end, _)| *end <= limit)?;
        self.flows.leave(flow);
        self.active_flows.remove(flow, &fabric.paths[flow as usize]);
        Some(flow)
    }

    /// Adapts the queues and the shares to the flows that have started or ended.
    pub fn adapt(&mut self, fabric: &Fabric, now: Time) {
        if self.active_flows.touched().is_empty() {
            return;
        }
        self.queues.fit(fabric, &self.active_flows);
        let was_at_rest = self.flows.until == f64::INFINITY;
        if was_at_rest && !self.queues.approach(fabric, &self.flows.active, 0.0) {
            self.flows.begin_step(now.as_nanos(), self.step);
        }
        for link in self.active_flows.touched() {
            for flow in self
                .active_flows
                .members(*link)
                .iter()
                .chain(self.active_flows.acknowledging(*link))
            {
                self.flows
                    .change(*flow, self.queues.share(fabric, *flow), now.as_nanos());
            }
        }
        self.active_flows.settle();
    }

    /// Ends the step and begins the next.
    pub(crate) fn step_on(&mut self, fabric: &Fabric) {
        let now = self.flows.until;
        let at_rest = self.queues.approach(fabric, &self.flows.active, self.part);
        self.flows
            .begin_step(now, if at_rest { f64::INFINITY } else { self.step });
        self.flows
            .change_all(|flow| self.queues.share(fabric, flow));
    }
}

/// Progress of the flows.
#[derive(Debug, Clone, Default)]
struct Flows {
    active: Vec<u32>,
    /// Index of each flow among the active ones, indexed by flow.
    indices: Vec<u32>,
    /// Progress of each flow, indexed by flow.
    progress: Vec<QuasiDynamicProgress>,
    /// Ends of the flows that end within the step.
    ends: IndexedHeap,
    /// Start and end of the step, in nanoseconds; infinite when all delays are at rest.
    since: f64,
    until: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct QuasiDynamicProgress {
    /// Work that would have remained at the start of the step if the flow had had its present share since then.
    left: f64,
    share: f64,
}

impl Flows {
    fn enter(&mut self, flow: u32, work: f64) {
        if self.progress.len() <= flow as usize {
            self.progress
                .resize(flow as usize + 1, QuasiDynamicProgress::default());
            self.indices.resize(flow as usize + 1, 0);
        }
        self.progress[flow as usize] = QuasiDynamicProgress {
            left: work,
            share: 0.0,
        };
        self.indices[flow as usize] = self.active.len() as u32;
        self.active.push(flow);
    }

    fn leave(&mut self, flow: u32) {
        self.ends.remove(flow);
        let index = self.indices[flow as usize];
        self.active.swap_remove(index as usize);
        if let Some(other) = self.active.get(index as usize) {
            self.indices[*other as usize] = index;
        }
    }

    /// Begins a step at `now`, which is not after the end of the last step.
    fn begin_step(&mut self, now: f64, step: f64) {
        let elapsed = now - self.since;
        for flow in &self.active {
            let progress = &mut self.progress[*flow as usize];
            progress.left = (progress.left - progress.share * elapsed).max(0.0);
        }
        (self.since, self.until) = (now, now + step);
    }

    fn change(&mut self, flow: u32, share: f64, now: f64) {
        let progress = &mut self.progress[flow as usize];
        if progress.share == share {
            return;
        }
        let elapsed = now - self.since;
        let left = (progress.left - progress.share * elapsed).max(0.0);
        *progress = QuasiDynamicProgress {
            left: left + share * elapsed,
            share,
        };
        self.note_end(flow);
    }

    /// Changes the shares of all flows at the beginning of a step.
    fn change_all(&mut self, share: impl Fn(u32) -> f64) {
        for place in 0..self.active.len() {
            let flow = self.active[place];
            self.progress[flow as usize].share = share(flow);
            self.note_end(flow);
        }
    }

    fn note_end(&mut self, flow: u32) {
        let QuasiDynamicProgress { left, share } = self.progress[flow as usize];
        let end = self.since + left / share;
        if end <= self.until {
            self.ends.set(flow, Time::from_nanos(end));
        } else {
            self.ends.remove(flow);
        }
    }
}

#[cfg(test)]
mod tests;
