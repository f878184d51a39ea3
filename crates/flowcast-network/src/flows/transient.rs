//! The closed loop while it settles: how much of each flow's window waits in which queue.
//!
//! The steady rates of [`closed_loop`](flowcast_model::sharing::closed_loop) hold some round trips after an event, and
//! where they leave open which of several full links holds a queue, the past decides. Here a flow has `x_k` bytes in
//! queue k of its data path, and acknowledgements for `x_k` bytes in queue k of the way back. The queue of a link of
//! capacity `C` holds `B = sum of x over data + a * sum of x over acknowledgements`, and serves all that it holds in
//! proportion:
//!
//! `dx_k/dt = d_(k-1) - d_k`, `d_k = x_k * min(C/B, 1/tau)`,
//!
//! with `a` the bytes of an acknowledgement on the wire for each byte of data, and `tau` the time of a full packet. What
//! comes back is sent again as long as something is left; a flow begins with its whole window. A mixture has no
//! order, so the last byte is followed by itself: it waits in each queue for `B/C` as it finds it.
//!
//! At rest this is the closed loop with `alpha = kappa = 1` and the acknowledgements' own bytes, by Little's law:
//! `rate = window / sum of (B/C) over the whole path`. Explicit steps of `tau / 4`, shorter before a start.

use flowcast_model::{
    cluster::flow::Flow,
    sharing::{
        completion::{FlowCompletion, Interval},
        fabric::{AllocatedFraction, Fabric, Limit, LinkId, Path},
        protocol::Windows,
    },
};
use flowcast_units::{Bytes, Rate, Time};

/// Steps in the time of a full packet.
const STEPS: f64 = 4.0;

/// A flow that has ended leaves its queues when less than this is left in them.
const LEAST_CONTENT: f64 = 1.0;

/// Average shares are noted so many times in the life of a flow.
const NOTES: f64 = 32.0;

/// What became of the flows.
#[derive(Debug, Clone, PartialEq)]
pub struct TransientFlows {
    /// Completion of each flow, in the order in which the flows were given.
    pub completions: Vec<FlowCompletion>,
    /// Average shares over 1/32 of each flow, with the longest queue at its end.
    pub intervals: Vec<Vec<Interval>>,
}

/// Steps all flows, each with the same window, over links whose capacities are in units of `rate`, the goodput of a flow
/// alone.
pub fn simulate(flows: &[Flow], fabric: &Fabric, windows: Windows, rate: Rate) -> TransientFlows {
    let rate = rate.as_bytes_per_second();
    let mut waiting: Vec<usize> = (0..flows.len())
        .filter(|flow| flows[*flow].size.0 > 0)
        .collect();
    waiting.sort_by_key(|flow| std::cmp::Reverse((flows[*flow].start, *flow)));
    let mut queues = TransientQueues::new(fabric, windows.segment, rate);
    let mut settled = TransientFlows {
        completions: flows
            .iter()
            .map(|flow| FlowCompletion {
                end: flow.start,
                duration: Time::ZERO,
            })
            .collect(),
        intervals: vec![Vec::new(); flows.len()],
    };
    let mut in_flight: Vec<Loop> = Vec::new();
    let mut now = 0.0;
    loop {
        let next_start = waiting
            .last()
            .map(|flow| flows[*flow].start.as_nanos() * 1e-9);
        if in_flight.is_empty() {
            match next_start {
                Some(start) => now = start,
                None => return settled,
            }
        }
        while let Some(flow) = waiting.pop_if(|flow| flows[*flow].start.as_nanos() * 1e-9 <= now) {
            in_flight.push(Loop::new(
                flow,
                &flows[flow],
                &fabric.paths[flow],
                windows,
                now,
            ));
        }
        let until_start = waiting.last().map_or(f64::INFINITY, |flow| {
            flows[*flow].start.as_nanos() * 1e-9 - now
        });
        let step = queues.step.min(until_start);
        queues.fill(&in_flight);
        in_flight
            .iter_mut()
            .for_each(|one| one.advance(&queues, now, step));
        now += step;
        in_flight.retain_mut(|one| {
            one.report(&queues, now, &mut settled);
            !one.has_left()
        });
    }
}

/// The links, and what waits before them.
struct TransientQueues {
    /// Bytes per second.
    capacities: Vec<f64>,
    /// `B`, in bytes.
    contents: Vec<f64>,
    rate: f64,
    /// Bytes of a full packet.
    segment: f64,
    /// Time of it, in seconds.
    packet: f64,
    step: f64,
}

impl TransientQueues {
    fn new(fabric: &Fabric, segment: Bytes, rate: f64) -> TransientQueues {
        let links = fabric.link_count();
        let packet = segment.0 as f64 / rate;
        TransientQueues {
            capacities: (0..links as u32)
                .map(|link| fabric.capacity(LinkId(link)).0 * rate)
                .collect(),
            contents: vec![0.0; links],
            rate,
            segment: segment.0 as f64,
            packet,
            step: packet / STEPS,
        }
    }

    fn fill(&mut self, in_flight: &[Loop]) {
        self.contents.fill(0.0);
        for stage in in_flight.iter().flat_map(|one| &one.stages) {
            self.contents[stage.link.index()] += stage.weight * stage.content;
        }
    }

    /// How long what comes now waits.
    fn wait(&self, link: LinkId) -> f64 {
        self.contents[link.index()] / self.capacities[link.index()]
    }

    /// The part of a queue's contents that leaves it in a step.
    fn leaving(&self, link: LinkId, step: f64) -> f64 {
        step / self.wait(link).max(self.packet)
    }
}

/// What a flow has in a queue.
struct TransientStage {
    link: LinkId,
    /// Bytes on the wire for each byte of `content`, data being 1.
    weight: f64,
    content: f64,
}

/// Where the last byte is.
struct LastByte {
    /// Stage that it waits in.
    stage: usize,
    /// When it leaves it.
    leaves: f64,
}

/// A flow in flight.
struct Loop {
    flow: usize,
    stages: Vec<TransientStage>,
    /// Stages of the data path; those of the acknowledgements follow.
    data: usize,
    start: Time,
    size: f64,
    unsent: f64,
    delivered: f64,
    last: Option<LastByte>,
    has_ended: bool,
    /// When the last interval ended, and what had been delivered then.
    noted: (f64, f64),
}

impl Loop {
    fn new(index: usize, flow: &Flow, path: &Path, windows: Windows, now: f64) -> Loop {
        let stage = |weight| {
            move |link| TransientStage {
                link,
                weight,
                content: 0.0,
            }
        };
        let data = path.data_in_order().map(stage(1.0));
        // Of a link that both directions share, the goodput accounts for the flow's own ACKs.
        let back = |link: LinkId| {
            stage(if path.data().contains(&link) {
                0.0
            } else {
                windows.acknowledgement()
            })(link)
        };
        let mut stages: Vec<TransientStage> = data
            .chain(path.acknowledgements_in_order().map(back))
            .collect();
        let size = flow.size.0 as f64;
        let first = size.min(windows.window.0 as f64);
        stages[0].content = first;
        Loop {
            flow: index,
            stages,
            data: path.data().len(),
            start: flow.start,
            size,
            unsent: size - first,
            delivered: 0.0,
            last: None,
            has_ended: false,
            noted: (now, 0.0),
        }
    }

    /// All stages give at once, from what they held before.
    fn advance(&mut self, queues: &TransientQueues, now: f64, step: f64) {
        let mut coming = 0.0;
        for (place, stage) in self.stages.iter_mut().enumerate() {
            let leaving = stage.content * queues.leaving(stage.link, step);
            stage.content += coming - leaving;
            coming = leaving;
            if place + 1 == self.data {
                self.delivered += leaving;
            }
        }
        let again = coming.min(self.unsent);
        self.unsent -= again;
        self.stages[0].content += again;
        if self.unsent <= 0.0 && !self.has_ended {
            self.follow_last_byte(queues, now, step);
        }
    }

    fn follow_last_byte(&mut self, queues: &TransientQueues, now: f64, step: f64) {
        let stages = &self.stages;
        let last = self.last.get_or_insert_with(|| LastByte {
            stage: 0,
            leaves: now + queues.wait(stages[0].link),
        });
        while last.stage < self.data && last.leaves <= now + step {
            last.stage += 1;
            if last.stage < self.data {
                last.leaves += queues.wait(stages[last.stage].link);
            }
        }
        self.has_ended = last.stage == self.data;
    }

    fn report(&mut self, queues: &TransientQueues, now: f64, settled: &mut TransientFlows) {
        let intervals = &mut settled.intervals[self.flow];
        if let Some(last) = self.last.take_if(|last| last.stage == self.data) {
            let end = time(last.leaves).max(self.start);
            settled.completions[self.flow] = FlowCompletion {
                end,
                duration: end - self.start,
            };
            intervals.extend(self.interval(queues, last.leaves, self.size));
        } else if !self.has_ended && self.delivered - self.noted.1 >= self.size / NOTES {
            intervals.extend(self.interval(queues, now, self.delivered));
            self.noted = (now, self.delivered);
        }
    }

    /// Since the last one.
    fn interval(&self, queues: &TransientQueues, to: f64, delivered: f64) -> Option<Interval> {
        let (from, before) = self.noted;
        let share = AllocatedFraction((delivered - before) / ((to - from) * queues.rate));
        (to > from).then(|| Interval {
            from: time(from),
            to: time(to),
            share,
            limit: self.limit(queues),
        })
    }

    /// The longest queue of its path, if others wait in it too.
    fn limit(&self, queues: &TransientQueues) -> Limit {
        let mut longest = (0.0, Limit::Alone);
        for (place, stage) in self.stages.iter().enumerate() {
            let others = queues.contents[stage.link.index()] - stage.weight * stage.content;
            let wait = queues.wait(stage.link);
            if wait > longest.0 {
                let limit = if place < self.data {
                    Limit::Link
                } else {
                    Limit::Acknowledgements
                };
                longest = (
                    wait,
                    if others > queues.segment {
                        limit(stage.link)
                    } else {
                        Limit::Alone
                    },
                );
            }
        }
        longest.1
    }

    fn has_left(&self) -> bool {
        self.has_ended
            && self.stages[..self.data]
                .iter()
                .map(|stage| stage.content)
                .sum::<f64>()
                < LEAST_CONTENT
    }
}

fn time(seconds: f64) -> Time {
    Time::from_nanos(seconds * 1e9)
}
