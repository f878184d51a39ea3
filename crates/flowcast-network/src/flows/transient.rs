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
//! `rate = window / sum of (B/C) over the whole path`.
//!
//! # Steps
//!
//! A step takes `theta` of what leaves a link from the contents at its end and the rest from those at its begin. `theta` is
//! 1/2, which is exact to second order, where less than twice what is there could leave in a step, and nearer to 1 where a
//! queue is short for the step, so that nothing becomes negative and links that are not full let through what comes,
//! however long the step is. With the parts that leave the links given, each flow's window is a ring of linear equations
//! (`loops`); the parts follow from what all flows bring to a link, and both are found in turn (`links`). So steps are
//! as long as the queues change little, up to a part of the round trip. A flow whose window is a small part of the queues
//! that it joins may start within a step; others end the step before. Where nothing changes any more the rates hold until
//! the next start or end. [`stepwise`] is the reference implementation, with steps of `tau / 4` or shorter.

mod links;
mod loops;
mod reference;

use flowcast_model::{
    cluster::flow::Flow,
    sharing::{
        SharingError,
        completion::{FlowCompletion, Interval},
        fabric::{AllocatedFraction, Fabric, Limit, LinkId, Path},
        protocol::Windows,
    },
};
use flowcast_units::{Rate, Time};
use links::LinkQueues;
use loops::WindowLoops;
pub use reference::stepwise;

/// The shortest step, as a part of the time that the smallest flow takes alone, and its bounds in the time of a full packet.
const SHORTEST: f64 = 1.0 / 80.0;
const SHORTEST_IN_PACKETS: (f64, f64) = (0.25, 1.0);

/// Where so many flows start more often than in this many times of a packet, the shortest step is as long as that: they are too
/// many to follow each start by itself.
const CROWDED: f64 = 2.0;
const MANY: usize = 10_000;

/// Times that differ by this part of the shortest step are one.
const SAME_TIME: f64 = 1e-6;

/// The most by which a queue may change in a longer step, relative to it.
const MOST_CHANGE: f64 = 0.1;

/// The most of its window that a flow may have more or less in a queue after a longer step.
const MOST_MOVED: f64 = 0.26;

/// A flow that has more than this part of a queue that it joins, or that it leaves, ends the step.
const STRONG: f64 = 0.11;

/// Turns in which links and flows have to agree.
const MOST_TURNS: u32 = 8;

/// Changes below this part of what a step may change are none.
const AT_REST: f64 = 1e-7;

/// Steps without a longer one after one that was too long.
const STEPS_BEFORE_LONGER: u32 = 6;

/// A flow that has ended leaves its queues when less than this is left in them, in bytes.
const LEAST_CONTENT: f64 = 40.0;

/// Average shares are noted so many times in the life of a flow.
const NOTES: f64 = 32.0;

/// What became of the flows.
#[derive(Debug, Clone, PartialEq)]
pub struct TransientFlows {
    /// Completion of each flow, in the order in which the flows were given.
    pub completions: Vec<FlowCompletion>,
    /// Average shares over 1/32 of each flow, with the longest queue at its end; empty where they are not kept.
    pub intervals: Vec<Vec<Interval>>,
}

/// Windows are followed over at most so many links.
const MOST_HOPS: usize = 64;

/// Follows all flows, each with the same window, over links whose capacities are in units of `rate`, the goodput of a flow
/// alone.
///
/// # Errors
/// A path over more links than are followed.
pub fn simulate(
    flows: &[Flow],
    fabric: &Fabric,
    windows: Windows,
    rate: Rate,
    keeps_intervals: bool,
) -> Result<TransientFlows, SharingError> {
    let lengths = fabric.paths.iter().map(|path| path.data().len());
    if let Some(found) = lengths.max().filter(|found| *found > MOST_HOPS) {
        return Err(SharingError::TooManyHops {
            found,
            most: MOST_HOPS,
        });
    }
    let input = SettlingInput {
        flows,
        fabric,
        windows,
        rate: rate.as_bytes_per_second(),
    };
    Ok(Settling::new(input, keeps_intervals).run())
}

/// What is given.
#[derive(Clone, Copy)]
struct SettlingInput<'a> {
    flows: &'a [Flow],
    fabric: &'a Fabric,
    windows: Windows,
    /// Bytes per second.
    rate: f64,
}

impl SettlingInput<'_> {
    fn start(&self, flow: u32) -> f64 {
        self.flows[flow as usize].start.as_nanos() * 1e-9
    }

    fn size(&self, flow: u32) -> f64 {
        self.flows[flow as usize].size.0 as f64
    }

    fn window(&self) -> f64 {
        self.windows.window.0 as f64
    }

    /// What a flow sends at once.
    fn first(&self, flow: u32) -> f64 {
        self.size(flow).min(self.window())
    }

    /// For flows by start and the time of a packet, in seconds.
    fn shortest_step(&self, order: &[u32], packet: f64) -> f64 {
        let [first, .., last] = order else {
            return SHORTEST_IN_PACKETS.0 * packet;
        };
        let each = (self.start(*last) - self.start(*first)) / order.len() as f64;
        if order.len() > MANY && each > 0.0 && each < CROWDED * packet {
            return CROWDED * packet;
        }
        let smallest = order.iter().map(|flow| self.size(*flow));
        let alone = smallest.fold(f64::INFINITY, f64::min) / self.rate;
        let (least, most) = SHORTEST_IN_PACKETS;
        (SHORTEST * alone).clamp(least * packet, most * packet)
    }
}

/// Where the last byte is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LastByte {
    Unsent,
    /// In a stage of the data, which it leaves at this time.
    Waits {
        stage: usize,
        leaves: f64,
    },
    /// In this step, at this time.
    Arrived(f64),
    /// Arrived before; something of the flow may be left in the queues.
    Gone,
}

/// What is known of a flow in flight beside its window.
#[derive(Debug, Clone, Copy)]
struct FlowProgress {
    flow: u32,
    last: LastByte,
    delivered: f64,
    /// When the last interval ended, and what had been delivered then.
    noted: (f64, f64),
}

struct Settling<'a> {
    input: SettlingInput<'a>,
    /// By start, of which so many have started.
    order: Vec<u32>,
    started: usize,
    now: f64,
    /// The step that is tried next and the shortest one, in seconds; how many steps are made before a longer one is tried.
    step: f64,
    shortest: f64,
    steps_before_longer: u32,
    is_at_rest: bool,
    links: LinkQueues,
    loops: WindowLoops,
    /// As in `loops`.
    progress: Vec<FlowProgress>,
    sums: Vec<f64>,
    found: TransientFlows,
    keeps_intervals: bool,
}

impl<'a> Settling<'a> {
    fn new(input: SettlingInput<'a>, keeps_intervals: bool) -> Settling<'a> {
        let flows = input.flows;
        let mut order: Vec<u32> = (0..flows.len() as u32)
            .filter(|flow| flows[*flow as usize].size.0 > 0)
            .collect();
        order.sort_by_key(|flow| flows[*flow as usize].start);
        let links = LinkQueues::new(input.fabric, input.windows, input.rate);
        let paths = input.fabric.paths.iter();
        let hops = paths.map(|path| path.data().len().max(path.acknowledgements().len()));
        let at_once = |flow: &Flow| FlowCompletion {
            end: flow.start,
            duration: Time::ZERO,
        };
        let shortest = input.shortest_step(&order, links.packet());
        let intervals = if keeps_intervals { flows.len() } else { 0 };
        Settling {
            order,
            started: 0,
            now: 0.0,
            step: shortest,
            shortest,
            steps_before_longer: 0,
            is_at_rest: false,
            sums: links.empty_sums(),
            loops: WindowLoops::new(hops.max().unwrap_or(0)),
            links,
            progress: Vec::new(),
            found: TransientFlows {
                completions: flows.iter().map(at_once).collect(),
                intervals: vec![Vec::new(); intervals],
            },
            keeps_intervals,
            input,
        }
    }

    fn run(mut self) -> TransientFlows {
        loop {
            if self.progress.is_empty() {
                match self.next_start() {
                    Some(start) => self.now = start,
                    None => return self.found,
                }
            }
            self.start_until(self.now);
            if self.is_at_rest {
                self.rest();
            } else {
                self.advance();
            }
        }
    }

    fn next_start(&self) -> Option<f64> {
        self.order
            .get(self.started)
            .map(|flow| self.input.start(*flow))
    }

    /// Flows that start now.
    fn start_until(&mut self, now: f64) {
        let now_or_soon = now + SAME_TIME * self.shortest;
        let first = self.started;
        // Each finds the queues as they were before.
        while self.next_start().is_some_and(|start| start <= now_or_soon) {
            self.push_next(now);
        }
        for flow in &self.order[first..self.started] {
            let path = &self.input.fabric.paths[*flow as usize];
            self.links.add(path.out(), self.input.first(*flow));
            self.is_at_rest = false;
        }
    }

    /// Adds the next flow, which starts now.
    fn push_next(&mut self, now: f64) {
        let flow = self.order[self.started];
        self.started += 1;
        let path = &self.input.fabric.paths[flow as usize];
        let first = self.input.first(flow);
        let unsent = self.input.size(flow) - first;
        self.loops.push(&self.links, path, first, unsent);
        let rate = self.first_rate(path);
        for link in path.data().iter().chain(path.acknowledgements()) {
            self.links.note_rate(*link, rate);
        }
        self.progress.push(FlowProgress {
            flow,
            last: LastByte::Unsent,
            delivered: 0.0,
            noted: (now, 0.0),
        });
    }

    /// One step, as long as it may be.
    fn advance(&mut self) {
        loop {
            let step = self.until_strong_event(self.step);
            let started = self.started;
            self.start_within(step);
            let change = self.try_step(step);
            if change <= 1.0 || step <= self.shortest {
                return self.take(step, change);
            }
            self.loops.without_late();
            self.progress.truncate(self.loops.count());
            self.started = started;
            while self.step >= step {
                self.step /= 2.0;
            }
            self.step = self.step.max(self.shortest);
            self.steps_before_longer = STEPS_BEFORE_LONGER;
        }
    }

    /// Until a flow starts or ends to which the queues are short, or the whole step.
    fn until_strong_event(&self, step: f64) -> f64 {
        let mut until = step;
        let shortest = self.shortest;
        for flow in &self.order[self.started..] {
            let after = self.input.start(*flow) - self.now;
            if after >= until {
                break;
            }
            let path = &self.input.fabric.paths[*flow as usize];
            let mut links = path.data().iter();
            let rate = self.first_rate(path);
            if after > shortest && links.any(|link| self.is_strong(*link, rate)) {
                until = after;
            }
        }
        for (slot, source) in self.loops.sources().iter().enumerate() {
            if source.unsent < source.rate * until {
                let after = source.unsent / source.rate;
                let mut links = self
                    .loops
                    .data_places(slot)
                    .iter()
                    .filter(|place| self.links.is_somewhere(**place))
                    .map(|place| self.links.link(*place));
                if after > shortest && links.any(|link| self.is_strong(link, source.rate)) {
                    until = after;
                }
            }
        }
        until
    }

    /// Of a flow that starts now.
    fn first_rate(&self, path: &Path) -> f64 {
        let links = path.data().iter().chain(path.acknowledgements());
        let wait: f64 = links.map(|link| self.links.wait(*link)).sum();
        self.input.window() / (wait + self.input.window() / self.input.rate)
    }

    /// Whether a window is much of what waits there.
    fn is_strong(&self, link: LinkId, rate: f64) -> bool {
        self.input.window() > STRONG * self.links.scale(link, rate)
    }

    /// Flows that start in the step that begins now.
    fn start_within(&mut self, step: f64) {
        let end = self.now + step;
        while let Some(start) = self.next_start().filter(|start| *start < end) {
            self.push_next(start);
            self.loops.come_late(end - start);
        }
    }

    /// The largest change that such a step makes, in units of what it may change; infinite where links and flows do not
    /// agree.
    fn try_step(&mut self, step: f64) -> f64 {
        self.links.begin(step);
        self.loops.begin();
        self.sums.fill(0.0);
        for _ in 0..MOST_TURNS {
            self.loops.carry(&self.links, &mut self.sums);
            if self.links.balance(&self.sums) {
                let of_links = self.links.largest_change() / MOST_CHANGE;
                let of_flows = self.loops.largest_change() / (self.input.window() * MOST_MOVED);
                return of_links.max(of_flows);
            }
        }
        f64::INFINITY
    }

    /// Makes the step that was tried.
    fn take(&mut self, step: f64, change: f64) {
        self.now += step;
        self.links.end(step);
        let mut has_sent_all = false;
        for slot in 0..self.loops.count() {
            let carried = self.loops.end_of(slot, step);
            let progress = &mut self.progress[slot];
            progress.delivered += carried.arrived;
            if let (LastByte::Unsent, Some(before)) = (progress.last, carried.last_sent) {
                has_sent_all = true;
                let place = self.loops.data_places(slot)[0];
                let wait = self.links.wait_before(place, before, carried.missed);
                progress.last = LastByte::Waits {
                    stage: 0,
                    leaves: self.now - before + wait,
                };
            }
            self.follow_last_byte(slot);
        }
        self.loops.end();
        self.loops.note_rates(&mut self.links);
        self.note_and_leave();
        self.steps_before_longer = self.steps_before_longer.saturating_sub(1);
        if change < 0.5 && step == self.step && self.steps_before_longer == 0 {
            self.step = 2.0 * step;
        }
        self.is_at_rest =
            !has_sent_all && change < AT_REST && step > self.links.longest_wait() / 8.0;
    }

    /// Until the next start or end everything goes on as it is.
    fn rest(&mut self) {
        let until_start = self
            .next_start()
            .map_or(f64::INFINITY, |start| start - self.now);
        let sources = self.loops.sources().iter();
        let until = sources
            .filter(|source| source.unsent > 0.0)
            .map(|source| source.unsent / source.rate)
            .fold(until_start, f64::min);
        if until > self.shortest && until < f64::INFINITY {
            for (slot, progress) in self.progress.iter_mut().enumerate() {
                let source = self.loops.source(slot);
                if source.unsent > 0.0 {
                    let carried = source.rate * until;
                    source.unsent = (source.unsent - carried).max(0.0);
                    progress.delivered += carried;
                }
            }
            self.now += until;
            self.step = self.shortest;
        }
        self.is_at_rest = false;
    }

    /// Follows the last byte of a flow through the step that has just been made.
    fn follow_last_byte(&mut self, slot: usize) {
        let places = self.loops.data_places(slot);
        let progress = &mut self.progress[slot];
        while let LastByte::Waits { stage, leaves } = progress.last
            && leaves <= self.now
        {
            let next = places
                .get(stage + 1)
                .filter(|place| self.links.is_somewhere(**place));
            progress.last = match next {
                Some(place) => LastByte::Waits {
                    stage: stage + 1,
                    leaves: leaves + self.links.wait_before(*place, self.now - leaves, 0.0),
                },
                None => LastByte::Arrived(leaves),
            };
        }
    }

    /// Notes average shares and ends; flows leave that have ended and emptied their queues.
    fn note_and_leave(&mut self) {
        for slot in (0..self.progress.len()).rev() {
            match self.progress[slot].last {
                LastByte::Gone if self.loops.data_held(slot) < LEAST_CONTENT => {
                    self.progress.swap_remove(slot);
                    self.loops.swap_remove(slot);
                }
                LastByte::Gone => {}
                LastByte::Arrived(at) => self.end(slot, at),
                _ if self.keeps_intervals => self.note(slot),
                _ => {}
            }
        }
    }

    fn end(&mut self, slot: usize, at: f64) {
        let flow = self.progress[slot].flow;
        let start = self.input.flows[flow as usize].start;
        let end = time(at).max(start);
        self.found.completions[flow as usize] = FlowCompletion {
            end,
            duration: end - start,
        };
        if self.keeps_intervals {
            self.note_interval(slot, at, self.input.size(flow));
        }
        self.progress[slot].last = LastByte::Gone;
    }

    fn note(&mut self, slot: usize) {
        let FlowProgress {
            flow,
            delivered,
            noted,
            ..
        } = self.progress[slot];
        if delivered - noted.1 >= self.input.size(flow) / NOTES {
            self.note_interval(slot, self.now, delivered);
        }
    }

    /// Since the last one.
    fn note_interval(&mut self, slot: usize, to: f64, delivered: f64) {
        let limit = self.limit(slot);
        let progress = &mut self.progress[slot];
        let (from, before) = std::mem::replace(&mut progress.noted, (to, delivered));
        if to > from {
            self.found.intervals[progress.flow as usize].push(Interval {
                from: time(from),
                to: time(to),
                share: AllocatedFraction((delivered - before) / ((to - from) * self.input.rate)),
                limit,
            });
        }
    }

    /// The longest queue of its path, if others wait in it too.
    fn limit(&self, slot: usize) -> Limit {
        let (mut longest, mut found) = (0.0, Limit::Alone);
        for (stage, (place, held)) in self.loops.held(slot).enumerate() {
            let link = self.links.link(place);
            if !self.links.is_somewhere(place) || self.links.wait(link) <= longest {
                continue;
            }
            longest = self.links.wait(link);
            let others = self.links.contents(link) - self.links.weight(place) * held;
            found = if others <= self.links.segment() {
                Limit::Alone
            } else if stage < self.loops.data_places(slot).len() {
                Limit::Link(link)
            } else {
                Limit::Acknowledgements(link)
            };
        }
        found
    }
}

fn time(seconds: f64) -> Time {
    Time::from_nanos(seconds * 1e9)
}
