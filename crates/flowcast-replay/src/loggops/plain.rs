//! A direct implementation of the rules: one queue of all events, and blocked events return to it.
//!
//! It is the reference for [`super::queues`], and the engine for everything that [`super::queues`] does not support: several
//! processors or interfaces in a rank, any source, any tag.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
};

use super::{
    Loggops,
    costs::{FlowCarrier, LogGopsCosts, Travel},
    room,
};
use crate::{
    SimulateError,
    deadlock::{Wait, deadlock},
    matching::{MatchPattern, MatchQueue},
    observer::{Observer, ReceivedMessage, Sent},
    outcome::{Outcome, RankOutcome},
    timeline::{Activity, Segment, busiest},
    transit::Delivery,
};
use flowcast_program::{
    schedule::{Operation, OperationNode, Schedule},
    slot::Slot,
};
use flowcast_units::{Bytes, Rank, Time};

/// Replays a schedule and reports its events to an observer, as [`super::placed`] does.
///
/// # Errors
/// [`SimulateError`]: messages or receives without counterpart, operations that wait for each other; errors of a sharing
/// model.
pub fn run<O: Observer>(
    schedule: &Schedule,
    costs: LogGopsCosts<'_>,
    observer: &mut O,
) -> Result<Outcome, SimulateError> {
    let mut engine = PlainEngine::new(schedule, FlowCarrier::new(schedule, costs)?, observer);
    engine.run()?;
    engine.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PlainEvent {
    Operation { rank: Rank, node: u32 },
    Message(PlainMessage),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PlainMessage {
    to: Rank,
    from: Rank,
    node: u32,
    size: Bytes,
    tag: Option<u32>,
    cpu: u8,
    nic: u8,
}

impl PlainMessage {
    fn channel(&self) -> Channel {
        (self.from, self.to, self.tag)
    }
}

/// Sender, receiver and tag.
type Channel = (Rank, Rank, Option<u32>);

/// An entry of the queue, ordered by time, then by creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PlainEntry {
    time: Time,
    created: u64,
    event: PlainEvent,
}

/// Clocks and queues of a rank.
#[derive(Default, Clone)]
struct PlainHost {
    cpus: Vec<Time>,
    sending: Vec<Time>,
    receiving: Vec<Time>,
    /// Posted receives, as operations.
    posted: MatchQueue<u32>,
    /// Messages that arrived before a receive was posted.
    unexpected: MatchQueue<PlainMessage>,
    /// Number of dependencies that each operation still waits for.
    open: Vec<u32>,
    free: Vec<u32>,
    done: usize,
    compute: Time,
    overhead: Time,
    /// Computation and overhead of a rank with several processors, which may overlap in time.
    work: Vec<Segment>,
}

struct PlainEngine<'a, O> {
    schedule: &'a Schedule,
    observer: &'a mut O,
    /// Number of each rank's first operation, as observers count operations.
    bases: Vec<u32>,
    parameters: Loggops,
    carrier: FlowCarrier<'a>,
    /// Messages that share the network, keyed by slot; `true` if the last byte has arrived.
    flows: HashMap<Slot, (PlainMessage, bool)>,
    /// Messages of each channel in the order of their sends, in which they are matched, as MPI guarantees.
    in_order: HashMap<Channel, VecDeque<Slot>>,
    hosts: Vec<PlainHost>,
    queue: BinaryHeap<Reverse<PlainEntry>>,
    created: u64,
    messages: u64,
    bytes: u64,
    /// The first message that met a smaller receive, with that receive's operation.
    truncated: Option<(PlainMessage, u32)>,
}

impl<'a, O: Observer> PlainEngine<'a, O> {
    fn new(
        schedule: &'a Schedule,
        carrier: FlowCarrier<'a>,
        observer: &'a mut O,
    ) -> PlainEngine<'a, O> {
        let (cpus, nics) = (schedule.cpus(), schedule.nics());
        let hosts = schedule
            .graphs
            .iter()
            .map(|graph: &flowcast_program::schedule::Graph| PlainHost {
                cpus: vec![Time::ZERO; cpus],
                sending: vec![Time::ZERO; nics],
                receiving: vec![Time::ZERO; nics],
                open: graph.nodes.iter().map(|node| node.dependencies).collect(),
                ..PlainHost::default()
            })
            .collect();
        PlainEngine {
            schedule,
            observer,
            bases: schedule.bases(),
            parameters: carrier.costs.parameters,
            carrier,
            flows: HashMap::new(),
            in_order: HashMap::new(),
            hosts,
            queue: BinaryHeap::new(),
            created: 0,
            messages: 0,
            bytes: 0,
            truncated: None,
        }
    }

    fn run(&mut self) -> Result<(), SimulateError> {
        for rank in Rank::all(self.hosts.len()) {
            let open = &self.hosts[rank].open;
            let roots = (0..open.len() as u32)
                .filter(|node| open[*node as usize] == 0)
                .collect();
            self.hosts[rank].free = roots;
            self.queue_free(rank);
        }
        loop {
            if let Some(delivery) = self
                .carrier
                .deliver(self.queue.peek().map(|Reverse(entry)| entry.time))?
            {
                self.deliver(delivery);
                continue;
            }
            let Some(Reverse(entry)) = self.queue.pop() else {
                return Ok(());
            };
            match entry.event {
                PlainEvent::Operation { rank, node } => self.start(entry, rank, node),
                PlainEvent::Message(message) => self.arrive(entry, message),
            }
        }
    }

    /// Handles the arrival of the last byte of a message that shared the network.
    fn deliver(&mut self, delivery: Delivery) {
        let Delivery {
            slot,
            start,
            arrival,
            ..
        } = delivery;
        self.observer.moved(slot, start, arrival);
        let (message, is_here) = self
            .flows
            .get_mut(&slot)
            .expect("an arriving message has departed");
        *is_here = true;
        let channel = message.channel();
        let mut slots = self.in_order.remove(&channel).unwrap_or_default();
        while let Some(first) = slots.front()
            && let Some(&(message, true)) = self.flows.get(first)
        {
            self.flows.remove(first);
            slots.pop_front();
            self.push(arrival, PlainEvent::Message(message));
        }
        self.in_order.insert(channel, slots);
    }

    fn node(&self, rank: Rank, node: u32) -> &'a OperationNode {
        &self.schedule.graphs[rank].nodes[node as usize]
    }

    fn start(&mut self, entry: PlainEntry, rank: Rank, index: u32) {
        let node = self.node(rank, index);
        let (cpu, nic) = (usize::from(node.cpu), usize::from(node.nic));
        match node.operation {
            Operation::Calc(time) => {
                let host = &mut self.hosts[rank];
                if host.cpus[cpu] > entry.time {
                    return self.requeue(entry, self.hosts[rank].cpus[cpu]);
                }
                host.cpus[cpu] = entry.time + time;
                host.book(Activity::Compute, entry.time, time);
                self.observer.computed(rank, entry.time, entry.time + time);
                self.mark_started(rank, index);
                self.mark_done(rank, index);
                self.queue_free(rank);
            }
            Operation::Send { to, size, tag } => {
                let travel = self.carrier.costs.travel(rank, to, size);
                let host = &self.hosts[rank];
                let interface = travel.interface.map_or(Time::ZERO, |_| host.sending[nic]);
                let free = host.cpus[cpu].max(interface);
                if free > entry.time {
                    return self.requeue(entry, free);
                }
                let message = PlainMessage {
                    to,
                    from: rank,
                    node: index,
                    size,
                    tag,
                    cpu: node.cpu,
                    nic: node.nic,
                };
                self.send(entry.time, message, travel);
            }
            Operation::Recv { from, size, tag } => {
                let pattern = MatchPattern {
                    peer: from.map(|from| from.0),
                    tag,
                };
                self.post(entry.time, rank, index, size, pattern);
            }
        }
    }

    fn send(&mut self, now: Time, message: PlainMessage, travel: Travel) {
        let Travel {
            latency,
            bytes,
            interface,
            on_receiver,
            shares,
        } = travel;
        let overhead = self.parameters.overhead;
        let host = &mut self.hosts[message.from];
        let call = std::mem::replace(&mut host.cpus[usize::from(message.cpu)], now + overhead);
        if let Some((gap, bytes)) = interface {
            host.sending[usize::from(message.nic)] = now + gap + bytes;
        }
        host.book(Activity::Overhead, now, overhead);
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(message.size.0);
        let slot = self.slot(message);
        let (start, end) = (now, now + overhead);
        let arrival = if shares {
            Time::NEVER
        } else {
            end + latency + bytes
        };
        self.observer.sent(
            message.from,
            slot,
            Sent {
                class: slot.0,
                call,
                start,
                processor: Time::ZERO,
                end,
                departs: end,
                arrival,
            },
        );
        self.mark_started(message.from, message.node);
        if shares {
            self.flows.insert(slot, (message, false));
            self.in_order
                .entry(message.channel())
                .or_default()
                .push_back(slot);
            self.carrier
                .depart(slot, message.size, now + overhead, travel);
        } else {
            // The bytes that the receiver's processor moves are not included in this time.
            self.push(
                now + overhead + latency + (bytes - on_receiver),
                PlainEvent::Message(message),
            );
        }
        if !self.parameters.is_rendezvous(message.size) {
            self.mark_done(message.from, message.node);
        }
        self.queue_free(message.from);
    }

    fn post(&mut self, now: Time, rank: Rank, index: u32, size: Bytes, pattern: MatchPattern) {
        let node = self.node(rank, index);
        self.mark_started(rank, index);
        let mut touched = [rank, rank];
        match self.hosts[rank].unexpected.take(pattern) {
            Some(message) => {
                self.compare(message, index);
                let slot = self.slot(message);
                self.observer.posted(slot, now);
                // The receive decides by its own size, but a sender that has already continued cannot be released again.
                if self.parameters.is_rendezvous(size)
                    && self.parameters.is_rendezvous(message.size)
                {
                    self.observer.queued(slot, now);
                    self.release_sender(now, message, node.cpu, node.nic);
                    touched[0] = message.from;
                }
                self.mark_done(rank, index);
            }
            None => self.hosts[rank].posted.push(pattern, index),
        }
        self.queue_touched(touched);
    }

    fn arrive(&mut self, entry: PlainEntry, message: PlainMessage) {
        let overhead = self.parameters.overhead;
        let (cpu, nic) = (usize::from(message.cpu), usize::from(message.nic));
        let Travel {
            interface,
            on_receiver,
            ..
        } = self
            .carrier
            .costs
            .travel(message.from, message.to, message.size);
        let slot = self.slot(message);
        let host = &mut self.hosts[message.to];
        let free = host.cpus[cpu].max(interface.map_or(Time::ZERO, |_| host.receiving[nic]));
        if free > entry.time {
            return self.requeue(entry, free);
        }
        let end = entry.time + overhead + on_receiver;
        let call = std::mem::replace(&mut host.cpus[cpu], end);
        if let Some((gap, bytes)) = interface {
            host.receiving[nic] = entry.time + gap + bytes;
        }
        host.book(Activity::Overhead, entry.time, overhead + on_receiver);
        let received = ReceivedMessage {
            call,
            processor: Time::ZERO,
            before: call,
            taken: entry.time,
            end,
        };
        self.observer.received(message.to, slot, received);
        let pattern = MatchPattern {
            peer: Some(message.from.0),
            tag: message.tag,
        };
        let mut touched = [message.to, message.to];
        match host.posted.take(pattern) {
            Some(recv) => {
                self.compare(message, recv);
                if self.parameters.is_rendezvous(message.size) {
                    self.release_sender(entry.time, message, message.cpu, message.nic);
                    touched[0] = message.from;
                }
                self.mark_done(message.to, recv);
            }
            None => host.unexpected.push(pattern, message),
        }
        self.queue_touched(touched);
    }

    /// Records a receive that is too small for its message.
    fn compare(&mut self, message: PlainMessage, recv: u32) {
        if matches!(self.node(message.to, recv).operation, Operation::Recv { size, .. } if size < message.size)
        {
            self.truncated.get_or_insert((message, recv));
        }
    }

    /// Lets the sender of a rendezvous message continue now.
    fn release_sender(&mut self, now: Time, message: PlainMessage, cpu: u8, nic: u8) {
        self.mark_done(message.from, message.node);
        let slot = self.slot(message);
        let sender = &mut self.hosts[message.from];
        let (cpu, nic) = (
            &mut sender.cpus[usize::from(cpu)],
            &mut sender.sending[usize::from(nic)],
        );
        if now > *cpu {
            self.observer.held(message.from, slot, *cpu, now);
        }
        *cpu = now.max(*cpu);
        *nic = now.max(*nic);
    }

    /// Number by which observers know a message.
    fn slot(&self, message: PlainMessage) -> Slot {
        Slot(self.bases[message.from].wrapping_add(message.node))
    }

    fn mark_started(&mut self, rank: Rank, node: u32) {
        let graph = &self.schedule.graphs[rank];
        self.hosts[rank].release(graph.released_by_start(node));
    }

    fn mark_done(&mut self, rank: Rank, node: u32) {
        let graph = &self.schedule.graphs[rank];
        let host = &mut self.hosts[rank];
        host.done += 1;
        host.release(graph.released_by_end(node));
    }

    fn queue_touched(&mut self, mut ranks: [Rank; 2]) {
        ranks.sort_unstable();
        self.queue_free(ranks[0]);
        self.queue_free(ranks[1]);
    }

    /// Queues the operations of a rank that have become free: sends, then receives, then computations.
    fn queue_free(&mut self, rank: Rank) {
        let mut free = std::mem::take(&mut self.hosts[rank].free);
        free.sort_by_key(|node| match self.node(rank, *node).operation {
            Operation::Send { .. } => 0,
            Operation::Recv { .. } => 1,
            Operation::Calc(_) => 2,
        });
        for index in free.drain(..) {
            let node = self.node(rank, index);
            let host = &self.hosts[rank];
            let cpu = host.cpus[usize::from(node.cpu)];
            let time = match node.operation {
                Operation::Send { to, size, .. } => {
                    let interface = self.carrier.costs.travel(rank, to, size).interface;
                    cpu.max(interface.map_or(Time::ZERO, |_| host.sending[usize::from(node.nic)]))
                }
                _ => cpu,
            };
            self.push(time, PlainEvent::Operation { rank, node: index });
        }
        self.hosts[rank].free = free;
    }

    fn push(&mut self, time: Time, event: PlainEvent) {
        self.queue.push(Reverse(PlainEntry {
            time,
            created: self.created,
            event,
        }));
        self.created += 1;
    }

    fn requeue(&mut self, entry: PlainEntry, time: Time) {
        self.queue.push(Reverse(PlainEntry { time, ..entry }));
    }

    fn finish(self) -> Result<Outcome, SimulateError> {
        if let Some((message, recv)) = self.truncated
            && room::is_lacking(self.schedule)
        {
            return Err(self.truncated_message(message, recv));
        }
        if self
            .hosts
            .iter()
            .zip(&self.schedule.graphs)
            .any(|(host, graph)| host.done < graph.nodes.len())
        {
            return Err(self.explain_stop());
        }
        if let Some(message) = self.hosts.iter().find_map(|host| host.unexpected.first()) {
            return Err(self.unmatched_message(message));
        }
        let ranks = self.hosts.iter().map(PlainHost::outcome).collect();
        Ok(Outcome {
            ranks,
            messages: self.messages,
            bytes: Bytes(self.bytes),
            ..Outcome::default()
        })
    }

    fn truncated_message(&self, message: PlainMessage, recv: u32) -> SimulateError {
        let sent = self.schedule.place(message.from.index(), message.node);
        SimulateError::Unmatched {
            place: self.schedule.place(message.to.index(), recv),
            found: format!(
                "a receive that is smaller than its message of {} ({sent})",
                message.size
            ),
            expected: "room for the whole message, as in MPI".to_owned(),
        }
    }

    fn unmatched_message(&self, message: PlainMessage) -> SimulateError {
        SimulateError::Unmatched {
            place: self.schedule.place(message.from.index(), message.node),
            found: format!(
                "a send from rank {} to rank {} without a receive",
                message.from, message.to
            ),
            expected: "a receive with its source and tag".to_owned(),
        }
    }

    /// Finds the reason why some operations never ran: a receive without a message, or operations that wait for each other.
    fn explain_stop(&self) -> SimulateError {
        // A rank that has executed all its operations will never send or receive anything else: that is the fault to report.
        let is_done = |rank: Rank| self.hosts[rank].done == self.schedule.graphs[rank].nodes.len();
        let mut waits = Vec::new();
        for (index, host) in self.hosts.iter().enumerate() {
            if let Some(message) = host
                .unexpected
                .first()
                .filter(|_| is_done(Rank(index as u32)))
            {
                return self.unmatched_message(message);
            }
            match host.posted.first_entry() {
                Some((
                    MatchPattern {
                        peer: Some(peer), ..
                    },
                    node,
                )) if is_done(Rank(peer)) => {
                    return SimulateError::Unmatched {
                        place: self.schedule.place(index, node),
                        found: format!("a receive of rank {index} from rank {peer} without a send"),
                        expected: "a send with its destination and tag".to_owned(),
                    };
                }
                Some((pattern, node)) => waits.push(self.recv_wait(index, pattern, node)),
                None if !is_done(Rank(index as u32)) => waits.push(self.other_wait(index, host)),
                None => {}
            }
        }
        deadlock(&waits)
    }

    fn recv_wait(&self, rank: usize, pattern: MatchPattern, node: u32) -> Wait {
        let tag = pattern
            .tag
            .map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
        let from = pattern
            .peer
            .map_or("any rank".to_owned(), |peer| format!("rank {peer}"));
        Wait {
            rank: Rank(rank as u32),
            owner: Rank(rank as u32),
            place: self.schedule.place(rank, node),
            what: format!("a message from {from} ({tag})"),
            on: pattern.peer.map(Rank).into_iter().collect(),
        }
    }

    /// The wait of a rank whose operations wait for a rendezvous or for each other.
    fn other_wait(&self, rank: usize, host: &PlainHost) -> Wait {
        let rank_id = Rank(rank as u32);
        let sent = |message: &PlainMessage| message.from == rank_id;
        let waiting = self
            .hosts
            .iter()
            .find_map(|other| other.unexpected.iter().find(|message| sent(message)));
        if let Some(message) = waiting.filter(|message| self.parameters.is_rendezvous(message.size))
        {
            return Wait {
                rank: rank_id,
                owner: rank_id,
                place: self.schedule.place(rank, message.node),
                what: format!("rank {} to receive its message", message.to),
                on: vec![message.to],
            };
        }
        let stuck = host.open.iter().position(|open| *open > 0).unwrap_or(0);
        Wait {
            rank: rank_id,
            owner: rank_id,
            place: self.schedule.place(rank, stuck as u32),
            what: "its own operations, which require each other in a cycle".to_owned(),
            on: vec![rank_id],
        }
    }
}

impl PlainHost {
    fn book(&mut self, activity: Activity, start: Time, takes: Time) {
        match activity {
            _ if self.cpus.len() > 1 => self.work.push(Segment {
                start,
                end: start + takes,
                activity,
            }),
            Activity::Compute => self.compute += takes,
            _ => self.overhead += takes,
        }
    }

    fn outcome(&self) -> RankOutcome {
        let end = self.cpus.iter().copied().max().unwrap_or_default();
        let (mut compute, mut overhead) = (self.compute, self.overhead);
        for Segment {
            start,
            end,
            activity,
        } in busiest(self.work.iter().copied())
        {
            let sum = if activity == Activity::Compute {
                &mut compute
            } else {
                &mut overhead
            };
            *sum += end - start;
        }
        RankOutcome::new(end, compute, overhead)
    }

    fn release(&mut self, dependents: &[u32]) {
        for dependent in dependents {
            let open = &mut self.open[*dependent as usize];
            *open -= 1;
            if *open == 0 {
                self.free.push(*dependent);
            }
        }
    }
}
