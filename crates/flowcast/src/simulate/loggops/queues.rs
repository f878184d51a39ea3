//! The same rules without putting blocked events back: four queues in each rank, each first in, first out.
//!
//! What waits in a rank can be told from its clocks at any time:
//! - a computation starts when the processor is free, a send when processor and sending interface are: neither before
//!   an older one of its kind;
//! - a receive is posted at the time the processor was to be free when the receive became free;
//! - a message is taken when it is there and processor and receiving interface are free. All messages travel equally
//!   long, so those to one rank arrive in the order of their creation.
//!
//! So the next event of a rank is the least of four, by time and then by creation, and a heap over the ranks gives the
//! next of all. No event is looked at twice, where the plain engine looks at each blocked one again whenever the
//! processor becomes free: `n` sends at once cost it `n^2` looks. After the queues have grown, nothing is allocated.

use std::collections::VecDeque;

use super::host_heap::{HostHeap, NEVER};
use super::prepared::{Kind, NOBODY, Op, Prepared, State};
use super::{Loggops, plain};
use crate::simulate::SimulateError;
use crate::simulate::outcome::{Outcome, RankOutcome, Waits};
use crate::units::{Bytes, Time};

/// Runs a schedule.
///
/// # Errors
/// As [`plain::run`].
pub fn run(prepared: &Prepared<'_>, parameters: Loggops) -> Result<Outcome, SimulateError> {
    let mut engine = Engine::new(prepared, parameters);
    engine.run();
    match engine.outcome() {
        Some(outcome) => Ok(outcome),
        // The plain engine stops at the same place and tells why.
        None => plain::run(prepared.schedule, parameters),
    }
}

/// An event but for its time: when it was created, the operation, what it is; ordered by creation.
#[derive(Debug, Clone, Copy)]
struct Event(u64);

impl Event {
    #[inline(always)]
    fn new(created: u32, node: u32, kind: Kind) -> Event {
        Event(u64::from(created) << 32 | u64::from(node) << 2 | kind as u64)
    }

    #[inline(always)]
    fn node(self) -> u32 {
        self.0 as u32 >> 2
    }

    #[inline(always)]
    fn kind(self) -> Kind {
        [Kind::Send, Kind::Recv, Kind::Calc, Kind::Message][self.0 as usize & 3]
    }

    /// With its time, in the order in which events happen.
    #[inline(always)]
    fn key(self, time: f64) -> u128 {
        u128::from(time.to_bits()) << 64 | u128::from(self.0)
    }
}

/// A rank.
#[derive(Default)]
struct Host {
    cpu: f64,
    sending: f64,
    receiving: f64,
    sends: VecDeque<Event>,
    calcs: VecDeque<Event>,
    recvs: VecDeque<(f64, Event)>,
    messages: VecDeque<(f64, Event)>,
    compute: f64,
    overhead: f64,
    done: u32,
}

impl Host {
    /// The key of its next event.
    #[inline(always)]
    fn next(&self) -> u128 {
        let mut least = NEVER;
        if let Some(event) = self.sends.front() {
            least = least.min(event.key(later(self.cpu, self.sending)));
        }
        if let Some((time, event)) = self.recvs.front() {
            least = least.min(event.key(*time));
        }
        if let Some((arrival, event)) = self.messages.front() {
            least = least.min(event.key(later(*arrival, later(self.cpu, self.receiving))));
        }
        if let Some(event) = self.calcs.front() {
            least = least.min(event.key(self.cpu));
        }
        least
    }
}

#[inline(always)]
fn later(one: f64, other: f64) -> f64 {
    if one > other { one } else { other }
}

/// Receives of a channel that wait for messages, or messages that wait for receives: never both.
#[derive(Debug, Clone, Copy)]
struct Channel {
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct SizeCost {
    bytes: f64,
    rendezvous: bool,
}

struct Engine<'a> {
    prepared: &'a Prepared<'a>,
    parameters: Loggops,
    costs: Vec<SizeCost>,
    hosts: Vec<Host>,
    heap: HostHeap,
    states: Vec<State>,
    channels: Vec<Channel>,
    free: Vec<u32>,
    set_aside: Vec<u32>,
    created: u32,
    messages: u64,
    bytes: u64,
}

impl<'a> Engine<'a> {
    fn new(prepared: &'a Prepared<'a>, parameters: Loggops) -> Engine<'a> {
        let ranks = prepared.bases.len() as u32 - 1;
        let cost = |size: &Bytes| SizeCost {
            bytes: parameters.bytes_time(*size).as_nanos(),
            rendezvous: parameters.is_rendezvous(*size),
        };
        Engine {
            prepared,
            parameters,
            costs: prepared.sizes.iter().map(cost).collect(),
            hosts: (0..ranks).map(|_| Host::default()).collect(),
            heap: HostHeap::new(ranks),
            states: prepared.states.clone(),
            channels: vec![Channel { first: NOBODY, last: NOBODY }; prepared.channels],
            free: Vec::new(),
            set_aside: Vec::new(),
            created: 0,
            messages: 0,
            bytes: 0,
        }
    }

    fn run(&mut self) {
        for rank in 0..self.hosts.len() as u32 {
            let (first, last) = (self.prepared.bases[rank as usize], self.prepared.bases[rank as usize + 1]);
            self.free.extend((first..last).filter(|node| self.states[*node as usize].open == 0));
            self.queue_free(rank);
        }
        while let Some((key, rank)) = self.heap.first() {
            let (now, event) = (f64::from_bits((key >> 64) as u64), Event(key as u64));
            let op = &self.prepared.ops[event.node() as usize];
            match event.kind() {
                Kind::Send => self.send(now, rank, event.node(), op),
                Kind::Recv => self.post(now, rank, event.node(), op),
                Kind::Calc => self.compute(now, rank, op),
                Kind::Message => self.arrive(now, rank, event.node(), op),
            }
        }
    }

    fn compute(&mut self, now: f64, rank: u32, op: &Op) {
        let host = &mut self.hosts[rank as usize];
        host.calcs.pop_front();
        let time = f64::from_bits(op.payload);
        host.cpu = now + time;
        host.compute += time;
        self.start(op);
        self.end(rank, op);
        self.queue_free(rank);
    }

    fn send(&mut self, now: f64, rank: u32, node: u32, op: &Op) {
        let overhead = self.parameters.overhead.as_nanos();
        let cost = self.costs[op.size()];
        let host = &mut self.hosts[rank as usize];
        host.sends.pop_front();
        host.cpu = now + overhead;
        host.sending = now + self.parameters.gap.as_nanos() + cost.bytes;
        host.overhead += overhead;
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(self.prepared.sizes[op.size()].0);
        self.start(op);
        let arrival = now + overhead + self.parameters.latency.as_nanos();
        let event = Event::new(self.created, node, Kind::Message);
        self.created += 1;
        if !cost.rendezvous {
            self.end(rank, op);
        }
        let receiver = &mut self.hosts[op.peer as usize];
        receiver.messages.push_back((arrival, event));
        if op.peer != rank && receiver.messages.len() == 1 {
            self.heap.set(op.peer, receiver.next());
        }
        self.queue_free(rank);
    }

    fn post(&mut self, now: f64, rank: u32, node: u32, op: &Op) {
        self.hosts[rank as usize].recvs.pop_front();
        self.start(op);
        let Some(sent) = self.meet(node, op, Kind::Send) else { return self.queue_free(rank) };
        // The receive decides by its own size, but a sender that went on at once cannot be released again.
        let waits = self.costs[self.prepared.ops[sent as usize].size()].rendezvous;
        if waits && self.costs[op.size()].rendezvous {
            return self.finish_both(now, (rank, op), sent);
        }
        self.end(rank, op);
        self.queue_free(rank);
    }

    fn arrive(&mut self, now: f64, rank: u32, node: u32, op: &Op) {
        let overhead = self.parameters.overhead.as_nanos();
        let cost = self.costs[op.size()];
        let host = &mut self.hosts[rank as usize];
        host.messages.pop_front();
        host.cpu = now + overhead + cost.bytes;
        host.receiving = now + self.parameters.gap.as_nanos() + cost.bytes;
        host.overhead += overhead;
        let Some(posted) = self.meet(node, op, Kind::Recv) else { return self.queue_free(rank) };
        let posted = &self.prepared.ops[posted as usize];
        if cost.rendezvous {
            return self.finish_both(now, (rank, posted), node);
        }
        self.end(rank, posted);
        self.queue_free(rank);
    }

    /// Takes the first of the other kind out of the channel, or joins the channel.
    #[inline(always)]
    fn meet(&mut self, node: u32, op: &Op, other: Kind) -> Option<u32> {
        let channel = &mut self.channels[op.channel()];
        let first = channel.first;
        if first != NOBODY && self.prepared.ops[first as usize].kind == other {
            channel.first = self.states[first as usize].behind;
            return Some(first);
        }
        match first {
            NOBODY => channel.first = node,
            _ => self.states[channel.last as usize].behind = node,
        }
        channel.last = node;
        None
    }

    /// A rendezvous: the sender goes on now, then the receiver; of the ranks the lower first.
    #[inline(never)]
    fn finish_both(&mut self, now: f64, (rank, recv): (u32, &Op), sent: u32) {
        let sender = self.prepared.bases.partition_point(|base| *base <= sent) as u32 - 1;
        let host = &mut self.hosts[sender as usize];
        host.cpu = later(now, host.cpu);
        host.sending = later(now, host.sending);
        let sent = &self.prepared.ops[sent as usize];
        if sender > rank {
            self.end(rank, recv);
            self.queue_free(rank);
        }
        if sender != rank {
            // What the start of the receive has freed is its own rank's.
            std::mem::swap(&mut self.free, &mut self.set_aside);
            self.end(sender, sent);
            self.queue_free(sender);
            std::mem::swap(&mut self.free, &mut self.set_aside);
        } else {
            self.end(sender, sent);
        }
        if sender <= rank {
            self.end(rank, recv);
            self.queue_free(rank);
        }
    }

    #[inline(always)]
    fn start(&mut self, op: &Op) {
        self.release(op.first, op.by_start);
    }

    #[inline(always)]
    fn end(&mut self, rank: u32, op: &Op) {
        self.hosts[rank as usize].done += 1;
        self.release(op.first + u32::from(op.by_start), op.by_end);
    }

    #[inline(always)]
    fn release(&mut self, first: u32, count: u16) {
        let first = first as usize;
        for dependent in &self.prepared.dependents[first..first + usize::from(count)] {
            let open = &mut self.states[*dependent as usize].open;
            *open -= 1;
            if *open == 0 {
                self.free.push(*dependent);
            }
        }
    }

    /// Queues the operations that have become free, sends, then receives, then computations, and sets the rank's key.
    #[inline(always)]
    fn queue_free(&mut self, rank: u32) {
        let ops = &self.prepared.ops;
        let host = &mut self.hosts[rank as usize];
        let mut queue = |node: u32, kind: Kind| {
            let event = Event::new(self.created, node, kind);
            self.created += 1;
            match kind {
                Kind::Send => host.sends.push_back(event),
                Kind::Calc => host.calcs.push_back(event),
                _ => host.recvs.push_back((host.cpu, event)),
            }
        };
        if let [node] = self.free[..] {
            queue(node, ops[node as usize].kind);
        } else {
            for kind in [Kind::Send, Kind::Recv, Kind::Calc] {
                let of_kind = self.free.iter().filter(|node| ops[**node as usize].kind == kind);
                of_kind.for_each(|node| queue(*node, kind));
            }
        }
        self.free.clear();
        self.heap.set(rank, host.next());
    }

    /// `None` if something was left undone.
    fn outcome(self) -> Option<Outcome> {
        let operations = self.prepared.bases.windows(2).map(|ends| ends[1] - ends[0]);
        let all_done = self.hosts.iter().zip(operations).all(|(host, all)| host.done == all);
        if !all_done || self.channels.iter().any(|channel| channel.first != NOBODY) {
            return None;
        }
        let rank = |host: &Host| {
            let nanos = Time::from_nanos;
            let (end, compute, overhead) = (nanos(host.cpu), nanos(host.compute), nanos(host.overhead));
            RankOutcome { end, compute, overhead, blocked: Time::ZERO.max(end - compute - overhead) }
        };
        let ranks = self.hosts.iter().map(rank).collect();
        Some(Outcome { ranks, messages: self.messages, bytes: Bytes(self.bytes), waits: Waits::default() })
    }
}
