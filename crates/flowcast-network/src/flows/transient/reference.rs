//! The reference implementation of [`simulate`](super::simulate): explicit Euler steps of equal length, in each of which all stages of all
//! flows give at once what leaves them.

use flowcast_model::{
    cluster::flow::Flow,
    sharing::{
        completion::FlowCompletion,
        fabric::{Fabric, LinkId, Path},
        protocol::Windows,
    },
};
use flowcast_units::{Bytes, Rate, Time};

/// A flow that has ended leaves its queues when less than this is left in them.
const LEAST_CONTENT: f64 = 1.0;

/// Completion of each flow, with so many steps in the time of a full packet; at least 4, and exact as they become many.
pub fn stepwise(
    flows: &[Flow],
    fabric: &Fabric,
    windows: Windows,
    rate: Rate,
    steps: u32,
) -> Vec<FlowCompletion> {
    let mut waiting: Vec<usize> = (0..flows.len())
        .filter(|flow| flows[*flow].size.0 > 0)
        .collect();
    waiting.sort_by_key(|flow| std::cmp::Reverse((flows[*flow].start, *flow)));
    let mut queues = TransientQueues::new(fabric, windows.segment, rate, steps);
    let at_once = |flow: &Flow| FlowCompletion {
        end: flow.start,
        duration: Time::ZERO,
    };
    let mut completions: Vec<FlowCompletion> = flows.iter().map(at_once).collect();
    let mut in_flight: Vec<Loop> = Vec::new();
    let mut now = 0.0;
    loop {
        let start_of = |flow: &usize| flows[*flow].start.as_nanos() * 1e-9;
        if in_flight.is_empty() {
            match waiting.last().map(start_of) {
                Some(start) => now = start,
                None => return completions,
            }
        }
        while let Some(flow) = waiting.pop_if(|flow| start_of(flow) <= now) {
            in_flight.push(Loop::new(flow, &flows[flow], &fabric.paths[flow], windows));
        }
        let until_start = waiting
            .last()
            .map_or(f64::INFINITY, |flow| start_of(flow) - now);
        let step = queues.step.min(until_start);
        queues.fill(&in_flight);
        in_flight
            .iter_mut()
            .for_each(|one| one.advance(&queues, now, step));
        now += step;
        in_flight.retain_mut(|one| {
            if let Some(end) = one.end() {
                completions[one.flow] = FlowCompletion {
                    end,
                    duration: end - one.start,
                };
            }
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
    /// Time of a full packet, in seconds.
    packet: f64,
    step: f64,
}

impl TransientQueues {
    fn new(fabric: &Fabric, segment: Bytes, rate: Rate, steps: u32) -> TransientQueues {
        let (links, rate) = (fabric.link_count(), rate.as_bytes_per_second());
        let packet = segment.0 as f64 / rate;
        TransientQueues {
            capacities: (0..links as u32)
                .map(|link| fabric.capacity(LinkId(link)).0 * rate)
                .collect(),
            contents: vec![0.0; links],
            packet,
            step: packet / f64::from(steps),
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
    unsent: f64,
    last: Option<LastByte>,
    has_ended: bool,
}

impl Loop {
    fn new(index: usize, flow: &Flow, path: &Path, windows: Windows) -> Loop {
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
            unsent: size - first,
            last: None,
            has_ended: false,
        }
    }

    /// All stages give at once, from what they held before.
    fn advance(&mut self, queues: &TransientQueues, now: f64, step: f64) {
        let mut coming = 0.0;
        for stage in &mut self.stages {
            let leaving = stage.content * queues.leaving(stage.link, step);
            stage.content += coming - leaving;
            coming = leaving;
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

    /// When the last byte came, if it did in this step.
    fn end(&mut self) -> Option<Time> {
        let last = self.last.take_if(|last| last.stage == self.data)?;
        Some(Time::from_nanos(last.leaves * 1e9).max(self.start))
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
