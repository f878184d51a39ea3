//! Recorder of the event graph during the replay of a program.

use std::collections::{HashMap, HashSet};

use flowcast_network::network::MessageRule;
use flowcast_program::{
    paraver_events::REGION,
    program::{CollectiveMode, Program},
    slot::Slot,
};
use flowcast_replay::{
    ReplayEngine,
    costs::PathCosts,
    observer::{Accessed, ObservedCollective, Observer, ReceivedMessage, Sent},
    time_part::TimePart,
    walk::Replay,
};
use flowcast_units::{CollectiveOp, Rank, Time};

use super::{EventGraph, EventKind, EventNode, NONE, RecordedEvents, ReplayedInput};

/// An observer that records the dependencies of events in the replay of a program.
pub struct ProgramRecorder<'a> {
    replay: &'a Replay<'a>,
    program: &'a Program,
    /// `true` if the order of events depends on no cost.
    is_free: bool,
    /// `true` if ranks progress messages only in calls.
    polls: bool,
    events: RecordedEvents,
    class_of: Vec<u32>,
    sender_of: Vec<u32>,
    /// Latency that cables add to each message, indexed by slot. Empty if cables add nothing.
    cables: Vec<Time>,
    function_of: Vec<u32>,
    functions: Vec<i64>,
    ops: Vec<CollectiveOp>,
    /// Last send of each rank.
    last_sends: Vec<u32>,
    /// Event from which each message moves, indexed by slot.
    messages: Vec<u32>,
    /// Event before the receive was posted, indexed by slot. Empty unless senders wait for receivers.
    posted: Vec<u32>,
    /// `true` if senders wait for messages to leave busy interfaces.
    has_queues: bool,
    /// Event at which each message started to move, indexed by slot. Empty unless senders wait for receivers or interfaces.
    moves: Vec<u32>,
    /// User function that each rank is in.
    inside: Vec<u32>,
    instances: RecordedInstances,
}

/// State of the executions of collectives that are computed by a formula.
#[derive(Default)]
struct RecordedInstances {
    modes: Vec<CollectiveMode>,
    /// The call that determines the duration of the collective: the call of a root, otherwise of the last rank that makes
    /// one.
    deciding: Vec<Option<(u32, Rank)>>,
    roots: HashSet<(u32, Rank)>,
    /// Pairs of an execution and a rank that has entered it and continues without waiting for all ranks.
    entered: HashSet<(u32, Rank)>,
    entries: HashMap<u32, Vec<u32>>,
    finished: HashMap<u32, u32>,
}

impl<'a> ProgramRecorder<'a> {
    /// Creates a recorder for a replay by this engine.
    pub fn new(engine: &'a ReplayEngine<'a>) -> ProgramRecorder<'a> {
        let replay = engine.free();
        let program = replay.program();
        let (slots, streams) = (program.messages() as usize, program.streams());
        let has_queues = program.awaits_sends() && replay.costs().has_busy_interfaces();
        let waits = if replay.costs().has_rendezvous() {
            slots
        } else {
            0
        };
        let holds = if has_queues { slots } else { waits };
        let tells = program.events().iter().any(|(kind, _)| *kind == REGION);
        let (instances, ops) = RecordedInstances::new(program);
        let polls = replay.costs().needs_polling();
        let room = Rank::all(streams).map(|stream| program.words(stream).len());
        ProgramRecorder {
            replay,
            program,
            is_free: engine.is_free() && !polls,
            polls,
            events: RecordedEvents::new(streams, room.sum()),
            class_of: vec![0; slots],
            sender_of: vec![0; slots],
            cables: engine.cable_latencies(),
            function_of: vec![0; if tells { slots } else { 0 }],
            functions: vec![0],
            ops,
            last_sends: vec![NONE; streams],
            messages: vec![NONE; slots],
            posted: vec![NONE; waits],
            has_queues,
            moves: vec![NONE; holds],
            inside: vec![0; streams],
            instances,
        }
    }

    /// Returns the graph after the replay has ended.
    pub fn finish(mut self) -> EventGraph<'a> {
        let is_exact =
            self.is_free && self.events.is_explained && self.program.accesses().is_empty();
        self.events.ends.truncate(self.program.ranks());
        EventGraph {
            source: ReplayedInput::Program(self.replay),
            nodes: self.events.nodes,
            times: self.events.times,
            ends: self.events.ends,
            class_of: self.class_of,
            sender_of: self.sender_of,
            cables: self.cables,
            function_of: self.function_of,
            functions: self.functions,
            ops: self.ops,
            is_exact,
        }
    }

    /// Records that other ranks occupied the processor until a rank's call.
    fn reach(&mut self, rank: Rank, time: Time) {
        self.events.spend(rank, time, TimePart::Processor);
    }

    /// Returns the last message that the interface of a rank took, and the time from that message until the interface takes
    /// the next one. `overhead` is the overhead of the next send.
    fn interface(&self, rank: Rank, overhead: f64) -> Option<(u32, f64)> {
        let last = self.last_sends[rank];
        // An interface without a gap now may have one with other costs.
        if last == NONE || self.replay.costs().network().point_to_point.rule != MessageRule::Loggops
        {
            return None;
        }
        let before = self.events.nodes[last as usize].slot();
        let (path, class) = (self.path(before), self.class_of[before]);
        let cost = &path.classes[class as usize];
        let rest = cost.busy - cost.send;
        Some((last, rest.as_nanos() + overhead))
    }

    fn path(&self, slot: Slot) -> &'a PathCosts {
        &self.replay.costs().paths[self.replay.route_number(slot)]
    }

    /// Returns the event of a message's arrival, or `from` if the flight takes the same time as alone.
    fn arrive(&mut self, slot: Slot, from: u32, arrival: Time) -> u32 {
        let cables = self.cables.get(slot.index()).copied().unwrap_or_default();
        let delay = self.path(slot).classes[self.class_of[slot] as usize].delay + cables;
        let rank = Rank(self.sender_of[slot]);
        self.events.arrive(slot, rank, from, delay, arrival)
    }

    /// Returns the event at which a message starts to move: at `start`, or as soon as sender and receiver are ready.
    fn moving(&mut self, slot: Slot, start: Option<Time>) -> u32 {
        let place = slot.index();
        let (path, sender) = (self.path(slot), Rank(self.sender_of[place]));
        let is_rendezvous = path.classes[self.class_of[place] as usize].rendezvous;
        let begun = self.moves.get(place).copied().unwrap_or(NONE);
        let (departs, receiver) = (self.messages[place], self.program.receiver(slot));
        let (kind, second, more) = match self.posted.get(place) {
            _ if !is_rendezvous => return departs,
            _ if begun != NONE => return begun,
            None | Some(&NONE) => {
                let asked = self.events.ends[receiver];
                (EventKind::MoveAtReceive, asked, path.recv_before.as_nanos())
            }
            Some(posted) => (EventKind::Move, *posted, 0.0),
        };
        let mut node = EventNode::new(kind, sender, slot.0);
        node = node.after(departs, 0.0).and(second, more);
        let start = start.filter(|start| start.as_nanos() > node.time(&self.events.times));
        if let Some(start) = start.filter(|_| kind == EventKind::MoveAtReceive && !self.polls) {
            // The receiver waited for a processor.
            node.more = start.as_nanos() - self.events.times[second as usize];
        }
        self.events.push(node, None)
    }

    /// Handles ranks that progress messages only in calls. If a message starts to move after both ranks are ready, it has
    /// waited until its receiver, or its sender, made a call.
    fn seen(&mut self, slot: Slot, moving: u32, start: Time) -> u32 {
        if !self.polls || start.as_nanos() <= self.events.times[moving as usize] {
            return moving;
        }
        let sender = Rank(self.sender_of[slot]);
        let receiver = self.program.receiver(slot);
        let calls = [receiver, sender].map(|rank| self.events.ended_at(rank, start));
        match calls.into_iter().flatten().next() {
            Some(called) => {
                let node = EventNode::new(EventKind::Move, sender, slot.0).after(moving, 0.0);
                self.events.push(node.and(called, 0.0), Some(start))
            }
            None => moving,
        }
    }

    /// Continues a sender that its message has held, possibly for longer than the message alone would have held it.
    fn release(&mut self, rank: Rank, slot: Slot, happened: Option<Time>) {
        let class = &self.path(slot).classes[self.class_of[slot] as usize];
        let mut held = if class.rendezvous {
            class.held.as_nanos()
        } else {
            class.leaves().as_nanos()
        };
        let moved = match self.moves.get(slot.index()) {
            Some(&NONE) if class.rendezvous => {
                let moving = self.moving(slot, None);
                let begun = happened.map(|happened| happened - class.held);
                let moved = begun.map_or(moving, |begun| self.seen(slot, moving, begun));
                self.moves[slot.index()] = moved;
                moved
            }
            Some(&NONE) | None => return,
            Some(moved) => *moved,
        };
        let node =
            EventNode::new(EventKind::Release, rank, slot.0).after(self.events.ends[rank], 0.0);
        if let Some(happened) = happened.map(Time::as_nanos) {
            let took = happened - self.events.times[moved as usize];
            held = if super::is_near(took, held) {
                held
            } else {
                took.max(held)
            };
        }
        self.events.go_on(rank, node.and(moved, held), happened);
    }

    /// Duration of a collective after all ranks have reached it.
    fn alone(&self, instance: u32) -> Time {
        let Some((call, rank)) = self.instances.deciding[instance as usize] else {
            return Time::ZERO;
        };
        let made = self.program.call(call);
        match made.mode {
            CollectiveMode::RootSynchronous => Time::ZERO,
            _ => self.replay.costs().collective(
                made.op,
                made.communicator,
                rank,
                made.send,
                made.recv,
            ),
        }
    }

    /// Returns the event at which a rank reached a collective. For the last rank, this adds the arrival, because another
    /// rank leaves before the observer is notified of it.
    fn entry(&mut self, member: Rank, gathered: &ObservedCollective) -> u32 {
        let entry = self.events.ends[member];
        if member != gathered.last_rank {
            return entry;
        }
        let start_up = gathered.came - gathered.call - gathered.processor;
        let begun = gathered.last - start_up;
        let begun = self.events.late(entry, member, begun, TimePart::Processor);
        self.events
            .late(begun, member, gathered.last, TimePart::Overhead)
    }

    /// Returns the event at which the data of the last rank are at the root. The root continues before the observer is
    /// notified of that rank.
    fn part_of_last(&mut self, gathered: &ObservedCollective) -> u32 {
        let ObservedCollective {
            instance,
            last,
            last_rank,
            end,
            ..
        } = *gathered;
        let came = self.entry(last_rank, gathered);
        let part = EventNode::new(EventKind::Collective, last_rank, instance);
        let takes = (end - last).as_nanos();
        self.events.push(part.after(came, takes), Some(end))
    }

    /// Returns the event at which all ranks have reached a collective and it is complete.
    fn finished(&mut self, rank: Rank, gathered: &ObservedCollective) -> u32 {
        let instance = gathered.instance;
        if let Some(finished) = self.instances.finished.get(&instance) {
            return *finished;
        }
        let last = gathered.last_rank;
        let mut entries = self.instances.entries.remove(&instance).unwrap_or_default();
        match self.instances.modes[instance as usize] {
            CollectiveMode::Blocking => {
                let communicator = self.program.communicator_of(instance);
                let members = &self.program.communicator(communicator).members;
                let come = members.iter().map(|member| self.entry(*member, gathered));
                entries = come.collect();
            }
            CollectiveMode::RootSynchronous => {
                entries.push(self.events.ends[rank]);
                if last != rank && !self.instances.entered.contains(&(instance, last)) {
                    entries.push(self.part_of_last(gathered));
                }
            }
            CollectiveMode::NonBlocking => {
                if !self.instances.entered.contains(&(instance, last)) {
                    entries.push(self.entry(last, gathered));
                }
            }
        }
        let mut met = entries.first().copied().unwrap_or(0);
        for entry in entries.into_iter().skip(1).filter(|entry| *entry != 0) {
            let node = EventNode::new(EventKind::Meet, rank, instance).after(met, 0.0);
            met = self.events.push(node.and(entry, 0.0), None);
        }
        let takes = if gathered.end > gathered.came {
            gathered.end.as_nanos() - self.events.times[met as usize]
        } else {
            // The collective ended long ago, so the rank does not observe its duration.
            self.alone(instance).as_nanos()
        };
        let done = self.events.push(
            EventNode::new(EventKind::Collective, rank, instance).after(met, takes),
            Some(gathered.end).filter(|end| *end > gathered.came),
        );
        self.instances.finished.insert(instance, done);
        done
    }
}

impl RecordedInstances {
    /// Returns the collectives of a program and the operation of each execution.
    fn new(program: &Program) -> (RecordedInstances, Vec<CollectiveOp>) {
        let count = program.instances().len();
        let modes = vec![CollectiveMode::Blocking; count];
        let mut instances = RecordedInstances {
            modes,
            deciding: vec![None; count],
            ..RecordedInstances::default()
        };
        let mut ops = vec![CollectiveOp::Barrier; count];
        if count == 0 {
            return (instances, ops);
        }
        for (rank, call, instance) in program.collective_ops() {
            let made = program.call(call);
            ops[instance as usize] = made.op;
            instances.modes[instance as usize] = made.mode;
            let deciding = &mut instances.deciding[instance as usize];
            if made.is_root || deciding.is_none_or(|(known, _)| !program.call(known).is_root) {
                *deciding = Some((call, rank));
            }
            if made.is_root {
                instances.roots.insert((instance, rank));
            }
        }
        (instances, ops)
    }
}

impl Observer for ProgramRecorder<'_> {
    fn computed(&mut self, rank: Rank, start: Time, end: Time) {
        self.reach(rank, start);
        self.events.compute(rank, self.inside[rank], start, end);
    }

    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        self.reach(rank, sent.call);
        let (path, place) = (self.path(slot), slot.index());
        let class = &path.classes[sent.class as usize];
        let overhead = class.send.as_nanos();
        let takes = overhead + sent.processor.as_nanos();
        let node =
            EventNode::new(EventKind::Send, rank, slot.0).after(self.events.ends[rank], takes);
        (self.class_of[place], self.sender_of[place]) = (sent.class, rank.0);
        if let Some(function) = self.function_of.get_mut(place) {
            *function = self.inside[rank];
        }
        let (before, interface) = match self.interface(rank, overhead) {
            Some((last, rest)) if class.queues => (None, Some((last, rest))),
            before => (before, None),
        };
        let node = match before {
            Some((last, rest)) => node.and(last, rest + sent.processor.as_nanos()),
            None => node,
        };
        self.events.go_on(rank, node, Some(sent.end));
        let mut departs = self.events.ends[rank];
        if let Some((last, rest)) = interface {
            let node = EventNode::new(EventKind::Depart, rank, slot.0).after(departs, 0.0);
            departs = self.events.push(node.and(last, rest), Some(sent.departs));
        }
        self.last_sends[rank] = departs;
        if self.has_queues && !class.rendezvous {
            self.moves[place] = departs;
        }
        self.messages[place] = if sent.arrival < Time::NEVER {
            self.arrive(slot, departs, sent.arrival)
        } else {
            departs
        };
    }

    fn moved(&mut self, slot: Slot, start: Time, arrival: Time) {
        let place = slot.index();
        let sender = Rank(self.sender_of[place]);
        let moving = self.moving(slot, Some(start));
        let seen = self.seen(slot, moving, start);
        let moved = self.events.late(seen, sender, start, TimePart::Contention);
        if let Some(known) = self.moves.get_mut(place) {
            *known = moved;
        }
        self.messages[place] = moved;
        if arrival < Time::NEVER {
            self.messages[place] = self.arrive(slot, moved, arrival);
        }
    }

    fn posted(&mut self, slot: Slot, _time: Time) {
        if let Some(posted) = self.posted.get_mut(slot.index()) {
            *posted = self.events.ends[self.program.receiver(slot)];
        }
    }

    fn marked(&mut self, rank: Rank, event: u32, _time: Time) {
        let (kind, value) = self.program.events()[event as usize];
        if kind == REGION {
            let known = self
                .functions
                .iter()
                .position(|function| *function == value);
            let index = known.unwrap_or_else(|| {
                self.functions.push(value);
                self.functions.len() - 1
            });
            self.inside[rank] = index as u32;
        }
    }

    fn held(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        if !self.is_free {
            self.reach(rank, start);
            self.release(rank, slot, Some(end));
        }
    }

    fn left(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        self.held(rank, slot, start, end);
    }

    fn released(&mut self, rank: Rank, slot: Slot) {
        if self.is_free {
            self.release(rank, slot, None);
        }
    }

    fn received(&mut self, rank: Rank, slot: Slot, received: ReceivedMessage) {
        self.reach(rank, received.call);
        let (path, class) = (self.path(slot), self.class_of[slot]);
        let after = path.classes[class as usize].receive.as_nanos();
        let arrival = self.messages[slot];
        let delay = match self.events.kind(arrival) {
            EventKind::Arrive => 0.0,
            _ => path.classes[class as usize].delay.as_nanos(),
        };
        let before = (path.recv_before + received.processor).as_nanos();
        let node = EventNode::new(EventKind::Receive, rank, slot.0);
        let node = node.after(self.events.ends[rank], before + after);
        self.events
            .go_on(rank, node.and(arrival, delay + after), Some(received.end));
    }

    fn accessed(&mut self, rank: Rank, accessed: Accessed) {
        self.reach(rank, accessed.call);
        accessed.each_part(|part, until| self.events.spend(rank, until, part));
    }

    fn gathered(&mut self, rank: Rank, gathered: ObservedCollective) {
        let ObservedCollective {
            instance,
            call,
            processor,
            came,
            end,
            ..
        } = gathered;
        self.reach(rank, call);
        self.events
            .spend(rank, call + processor, TimePart::Processor);
        if came > call + processor {
            let node = EventNode::spent(TimePart::Overhead, rank)
                .after(self.events.ends[rank], (came - call - processor).as_nanos());
            self.events.go_on(rank, node, Some(came));
        }
        let mode = self.instances.modes[instance as usize];
        let enters = match mode {
            CollectiveMode::Blocking => false,
            CollectiveMode::NonBlocking => self.instances.entered.insert((instance, rank)),
            CollectiveMode::RootSynchronous => {
                let is_root = self.instances.roots.contains(&(instance, rank));
                !is_root && self.instances.entered.insert((instance, rank))
            }
        };
        if enters {
            if end > came {
                let node = EventNode::new(EventKind::Collective, rank, instance);
                let node = node.after(self.events.ends[rank], (end - came).as_nanos());
                self.events.go_on(rank, node, Some(end));
            }
            let entries = self.instances.entries.entry(instance).or_default();
            entries.push(self.events.ends[rank]);
            return;
        }
        let done = self.finished(rank, &gathered);
        if mode == CollectiveMode::NonBlocking {
            let node =
                EventNode::new(EventKind::Meet, rank, instance).after(self.events.ends[rank], 0.0);
            self.events.go_on(rank, node.and(done, 0.0), Some(end));
        } else {
            self.events.ends[rank] = done;
            self.reach(rank, end);
        }
    }

    fn ended(&mut self, rank: Rank, time: Time) {
        self.reach(rank, time);
    }
}
