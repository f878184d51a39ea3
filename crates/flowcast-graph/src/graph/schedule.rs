//! Recorder of the event graph during the replay of a schedule whose ranks have one processor each.
//!
//! Every activity of a rank starts when its processor is free. A send also waits for the sending interface, and an arrived
//! message for the receiving one. A requirement of an operation is not an event of its own: it was met when the processor
//! became free, or the activity that freed the processor met it.

use flowcast_program::slot::Slot;
use flowcast_replay::{
    loggops::{
        costs::{LogGopsCosts, Travel},
        message::ScheduleMessage,
        sends::Sends,
    },
    observer::{Observer, ReceivedMessage, Sent},
    time_part::TimePart,
};
use flowcast_units::{Rank, Time};

use super::{EventGraph, EventKind, EventNode, NONE, RecordedEvents, ReplayedInput};

/// An observer that records the dependencies of events in the replay of a schedule.
pub struct ScheduleRecorder<'a> {
    sends: &'a Sends<'a>,
    costs: LogGopsCosts<'a>,
    events: RecordedEvents,
    /// Last message that the sending interface of each rank took; `last_receipts` is the same for receiving interfaces.
    last_sends: Vec<u32>,
    last_receipts: Vec<u32>,
    /// Present event of each message: first the one from which it moves, then its arrival, then its receipt.
    messages: Vec<u32>,
}

impl<'a> ScheduleRecorder<'a> {
    /// Creates a recorder for a replay of these messages at these costs. `None` if a rank has several processors, whose
    /// work overlaps.
    pub fn new(sends: &'a Sends<'a>, costs: LogGopsCosts<'a>) -> Option<ScheduleRecorder<'a>> {
        let ranks = sends.ranks();
        (sends.cpus() <= 1).then(|| ScheduleRecorder {
            sends,
            costs,
            events: RecordedEvents::new(ranks, 3 * sends.count()),
            last_sends: vec![NONE; ranks],
            last_receipts: vec![NONE; ranks],
            messages: vec![NONE; sends.count()],
        })
    }

    /// Returns the graph after the replay has ended.
    pub fn finish(self) -> EventGraph<'a> {
        EventGraph {
            source: ReplayedInput::Schedule(self.sends, self.costs),
            nodes: self.events.nodes,
            times: self.events.times,
            ends: self.events.ends,
            class_of: Vec::new(),
            sender_of: Vec::new(),
            function_of: Vec::new(),
            functions: Vec::new(),
            ops: Vec::new(),
            cables: Vec::new(),
            is_exact: false,
        }
    }

    fn travel(&self, slot: Slot) -> Travel {
        let from = self.sends.sender(slot);
        let ScheduleMessage { to, size, .. } = self.sends.sent(from, slot);
        self.costs.travel(from, to, size)
    }

    fn place(&self, slot: Slot) -> usize {
        self.sends.number(slot) as usize
    }

    /// Time that the receiver's processor spends on a message, in nanoseconds.
    fn handled(&self, travel: Travel) -> f64 {
        (self.costs.parameters.overhead + travel.on_receiver).as_nanos()
    }

    /// Returns the event of the last message at an interface, and the time after it at which the interface is free again.
    fn freed(&self, last: u32, took: impl Fn(Travel) -> f64) -> Option<(u32, f64)> {
        if last == NONE {
            return None;
        }
        let travel = self.travel(self.events.nodes[last as usize].slot());
        let (gap, bytes) = travel.interface?;
        Some((last, (gap + bytes).as_nanos() - took(travel)))
    }
}

impl ScheduleRecorder<'_> {
    /// Returns the event at which a busy receiving interface takes a message. `None` unless the message arrives, and the
    /// processor is free, before the interface is.
    fn busy_interface(&mut self, rank: Rank, slot: Slot, from: u32, delay: f64) -> Option<u32> {
        let (last, rest) = self.freed(self.last_receipts[rank], |travel| self.handled(travel))?;
        let arrival = self.events.nodes[from as usize];
        let (sent, delay) = match arrival.kind() {
            EventKind::Arrive => (arrival.first, arrival.cost),
            _ => (from, delay),
        };
        let node = EventNode::new(EventKind::Arrive, rank, slot.0).after(sent, delay);
        let times = &self.events.times;
        let (free, there) = (times[last as usize] + rest, node.time(times));
        let other = there.max(times[self.events.ends[rank] as usize]);
        let binds = free > other && !super::is_near(free, other);
        binds.then(|| self.events.push(node.and(last, rest), None))
    }
}

impl Observer for ScheduleRecorder<'_> {
    fn computed(&mut self, rank: Rank, start: Time, end: Time) {
        self.events.spend(rank, start, TimePart::Other);
        self.events.compute(rank, 0, start, end);
    }

    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        let overhead = self.costs.parameters.overhead.as_nanos();
        let mut node =
            EventNode::new(EventKind::Send, rank, slot.0).after(self.events.ends[rank], overhead);
        if self.travel(slot).interface.is_some() {
            if let Some((last, rest)) = self.freed(self.last_sends[rank], |_| overhead) {
                node = node.and(last, rest + overhead);
            }
            self.last_sends[rank] = self.events.nodes.len() as u32;
        }
        self.events.go_on(rank, node, Some(sent.end));
        let place = self.place(slot);
        self.messages[place] = self.events.ends[rank];
    }

    fn moved(&mut self, slot: Slot, _start: Time, arrival: Time) {
        let (place, travel) = (self.place(slot), self.travel(slot));
        let alone = travel.latency + travel.bytes;
        let (sender, from) = (self.sends.sender(slot), self.messages[place]);
        self.messages[place] = self.events.arrive(slot, sender, from, alone, arrival);
    }

    fn received(&mut self, rank: Rank, slot: Slot, received: ReceivedMessage) {
        let (place, travel) = (self.place(slot), self.travel(slot));
        let (sent, handled) = (self.messages[place], self.handled(travel));
        let flight = travel.latency + travel.bytes - travel.on_receiver;
        let ready = self.events.ends[rank];
        let (mut from, mut delay) = match self.events.kind(sent) {
            EventKind::Arrive => (sent, 0.0),
            _ => (sent, flight.as_nanos()),
        };
        if travel.interface.is_some() {
            let taken = self.busy_interface(rank, slot, from, delay);
            (from, delay) = taken.map_or((from, delay), |taken| (taken, 0.0));
            self.last_receipts[rank] = self.events.nodes.len() as u32;
        }
        let node = EventNode::new(EventKind::Receive, rank, slot.0).after(ready, handled);
        let node = node.and(from, delay + handled);
        self.events.go_on(rank, node, Some(received.end));
        self.messages[place] = self.events.ends[rank];
    }

    fn held(&mut self, rank: Rank, slot: Slot, _start: Time, end: Time) {
        let (place, travel) = (self.place(slot), self.travel(slot));
        let (receipt, handled) = (self.messages[place], self.handled(travel));
        let receiver = self.sends.sent(self.sends.sender(slot), slot).to;
        let node =
            EventNode::new(EventKind::Release, rank, slot.0).after(self.events.ends[rank], 0.0);
        let taken = self.events.times[receipt as usize] - handled;
        let node = match self.events.ended_at(receiver, end) {
            _ if super::is_near(taken, end.as_nanos()) => node.and(receipt, -handled),
            Some(event) => node.and(event, 0.0),
            None => node,
        };
        self.events.go_on(rank, node, Some(end));
    }
}
