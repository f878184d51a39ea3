//! Records what waits for what, beside a replay.

use std::collections::{HashMap, HashSet};

use flowcast_model::network::Rule;
use flowcast_replay::{
    Engine,
    costs::PathCosts,
    observer::{Accessed, Gathered, Observer, ReceivedMessage, Sent},
    walk::Replay,
};
use flowcast_trace::{
    opcodes::Op,
    program::{CollectiveMode, Program},
    read::REGION,
    slot::Slot,
};
use flowcast_units::{CollectiveOp, Rank, Time};

use super::{Kind, NONE, Node};
use crate::parts;

/// Follows a replay; see [`EventGraph`](crate::EventGraph) for what it keeps.
pub(crate) struct GraphRecorder<'a> {
    replay: &'a Replay<'a>,
    program: &'a Program,
    /// Whether the order of events depends on no cost.
    pub is_free: bool,
    pub nodes: Vec<Node>,
    pub times: Vec<f64>,
    /// By rank: its last event so far; in the end of the ranks alone.
    pub ends: Vec<u32>,
    pub class_of: Vec<u32>,
    pub sender_of: Vec<u32>,
    pub function_of: Vec<u32>,
    pub functions: Vec<i64>,
    pub ops: Vec<CollectiveOp>,
    /// Whether the costs of the network explain all times.
    pub is_explained: bool,
    /// By rank: the last send.
    last_sends: Vec<u32>,
    /// By slot: the event from which its message moves.
    messages: Vec<u32>,
    /// By slot, where senders wait for receivers: the event before the receive was posted.
    posted: Vec<u32>,
    /// Whether senders wait for messages to leave busy interfaces.
    has_queues: bool,
    /// By slot, where senders wait for receivers or interfaces: when the message began to move.
    moves: Vec<u32>,
    /// By rank: the user function that it is in.
    inside: Vec<u32>,
    instances: RecordedInstances,
}

/// What is known of the executions of collectives by formula.
#[derive(Default)]
struct RecordedInstances {
    modes: Vec<CollectiveMode>,
    /// The call that says how long it takes: that of a root, else of the last rank that makes one.
    deciding: Vec<Option<(u32, Rank)>>,
    roots: HashSet<(u32, Rank)>,
    /// Those that ranks have entered and go on.
    entered: HashSet<(u32, Rank)>,
    entries: HashMap<u32, Vec<u32>>,
    finished: HashMap<u32, u32>,
}

impl<'a> GraphRecorder<'a> {
    pub(crate) fn new(engine: &'a Engine<'a>) -> GraphRecorder<'a> {
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
        GraphRecorder {
            replay,
            program,
            is_free: engine.is_free() && !replay.costs().needs_polling(),
            nodes: vec![Node::new(Kind::Wait, Rank(0), NONE)],
            times: vec![0.0],
            ends: vec![0; streams],
            class_of: vec![0; slots],
            sender_of: vec![0; slots],
            function_of: vec![0; if tells { slots } else { 0 }],
            functions: vec![0],
            ops,
            is_explained: true,
            last_sends: vec![NONE; streams],
            messages: vec![NONE; slots],
            posted: vec![NONE; waits],
            has_queues,
            moves: vec![NONE; holds],
            inside: vec![0; streams],
            instances,
        }
    }

    pub(crate) fn finish(mut self) -> Self {
        self.ends.truncate(self.program.ranks());
        self
    }

    /// Adds an event. Where it happened is not where its costs put it, they are changed to what they were.
    fn push(&mut self, mut node: Node, happened: Option<Time>) -> u32 {
        let of = |event: u32| self.times[event as usize];
        let mut time = node.time(&self.times);
        if let Some(happened) = happened
            .map(Time::as_nanos)
            .filter(|happened| !is_near(*happened, time))
        {
            self.is_explained = false;
            if happened > time {
                node.cost = happened - of(node.first);
            } else {
                node.cost = node.cost.min(happened - of(node.first));
                node.more = if node.second == NONE {
                    0.0
                } else {
                    node.more.min(happened - of(node.second))
                };
            }
            time = node.time(&self.times);
        }
        self.nodes.push(node);
        self.times.push(time);
        (self.nodes.len() - 1) as u32
    }

    /// The event that a rank has come to.
    fn go_on(&mut self, rank: Rank, node: Node, happened: Option<Time>) {
        self.ends[rank] = self.push(node, happened);
    }

    /// Time that nothing accounts for has passed.
    fn reach(&mut self, rank: Rank, time: Time) {
        let (end, time) = (self.ends[rank], time.as_nanos());
        let passed = time - self.times[end as usize];
        if passed > 0.0 && !is_near(time, self.times[end as usize]) {
            self.is_explained = false;
            self.go_on(
                rank,
                Node::new(Kind::Wait, rank, NONE).after(end, passed),
                None,
            );
        }
    }

    /// Of a rank that sends with this overhead: the last message that its interface took, and how long after that it takes the
    /// next one.
    fn interface(&self, rank: Rank, overhead: f64) -> Option<(u32, f64)> {
        let last = self.last_sends[rank];
        // Where it takes no time it may take some with other costs.
        if last == NONE || self.replay.costs().network().point_to_point.rule != Rule::Loggops {
            return None;
        }
        let before = self.nodes[last as usize].slot();
        let (path, class) = (self.path(before), self.class_of[before]);
        let rest = path.classes[class as usize].busy - parts::send_overhead(path, class);
        Some((last, rest.as_nanos() + overhead))
    }

    fn path(&self, slot: Slot) -> &'a PathCosts {
        &self.replay.costs().paths[self.replay.route_number(slot)]
    }

    /// The event of a message's arrival, where that is not what the message would take alone.
    fn arrive(&mut self, slot: Slot, from: u32, arrival: Time) -> u32 {
        let delay = self.path(slot).classes[self.class_of[slot] as usize].delay;
        let begun = self.times[from as usize];
        if is_near(arrival.as_nanos(), begun + delay.as_nanos()) {
            return from;
        }
        self.is_explained = false;
        let rank = Rank(self.sender_of[slot]);
        self.push(
            Node::new(Kind::Arrive, rank, slot.0).after(from, arrival.as_nanos() - begun),
            None,
        )
    }

    fn release(&mut self, rank: Rank, slot: Slot, happened: Option<Time>) {
        let Some(moved) = self
            .moves
            .get(slot.index())
            .copied()
            .filter(|moved| *moved != NONE)
        else {
            return;
        };
        let class = &self.path(slot).classes[self.class_of[slot] as usize];
        let held = if class.rendezvous {
            class.held
        } else {
            class.leaves()
        };
        let node = Node::new(Kind::Release, rank, slot.0).after(self.ends[rank], 0.0);
        self.go_on(rank, node.and(moved, held.as_nanos()), happened);
    }

    /// What a collective takes after all have come.
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
                (made.send, made.recv),
            ),
        }
    }

    /// The event at which all have come to a collective and it has taken its time.
    fn finished(&mut self, rank: Rank, gathered: &Gathered) -> u32 {
        let instance = gathered.instance;
        if let Some(finished) = self.instances.finished.get(&instance) {
            return *finished;
        }
        let mut entries = self.instances.entries.remove(&instance).unwrap_or_default();
        match self.instances.modes[instance as usize] {
            CollectiveMode::Blocking => {
                let communicator = self.program.communicator_of(instance);
                let members = &self.program.communicator(communicator).members;
                entries = members.iter().map(|member| self.ends[*member]).collect();
            }
            CollectiveMode::RootSynchronous => entries.push(self.ends[rank]),
            CollectiveMode::NonBlocking => {}
        }
        let mut met = entries.first().copied().unwrap_or(0);
        for entry in entries.into_iter().skip(1).filter(|entry| *entry != 0) {
            met = self.push(
                Node::new(Kind::Meet, rank, instance)
                    .after(met, 0.0)
                    .and(entry, 0.0),
                None,
            );
        }
        let takes = if gathered.end > gathered.came {
            gathered.end.as_nanos() - self.times[met as usize]
        } else {
            // It is over for long, so that the rank does not see how long it took.
            self.alone(instance).as_nanos()
        };
        let done = self.push(
            Node::new(Kind::Collective, rank, instance).after(met, takes),
            None,
        );
        self.instances.finished.insert(instance, done);
        done
    }
}

/// Of times, apart from rounding.
fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 + 1e-12 * a.abs()
}

impl RecordedInstances {
    /// Those of a program, and the operation of each.
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
        for rank in Rank::all(program.streams()) {
            for (_, op) in program.ops(rank) {
                let Op::Collective { call, instance } = op else {
                    continue;
                };
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
        }
        (instances, ops)
    }
}

impl Observer for GraphRecorder<'_> {
    fn computed(&mut self, rank: Rank, start: Time, end: Time) {
        self.reach(rank, start);
        if end > start {
            let node = Node::new(Kind::Compute, rank, self.inside[rank]);
            self.go_on(
                rank,
                node.after(self.ends[rank], (end - start).as_nanos()),
                None,
            );
        }
    }

    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        self.reach(rank, sent.call);
        let path = self.path(slot);
        let overhead = parts::send_overhead(path, sent.class).as_nanos();
        let node = Node::new(Kind::Send, rank, slot.0).after(self.ends[rank], overhead);
        let place = slot.index();
        (self.class_of[place], self.sender_of[place]) = (sent.class, rank.0);
        if let Some(function) = self.function_of.get_mut(place) {
            *function = self.inside[rank];
        }
        let departs = match self.interface(rank, overhead) {
            Some((last, rest)) if path.classes[sent.class as usize].queues => {
                self.go_on(rank, node, Some(sent.end));
                let node = Node::new(Kind::Depart, rank, slot.0).after(self.ends[rank], 0.0);
                self.push(node.and(last, rest), Some(sent.departs))
            }
            Some((last, rest)) => {
                self.go_on(rank, node.and(last, rest), Some(sent.end));
                self.ends[rank]
            }
            None => {
                self.go_on(rank, node, Some(sent.end));
                self.ends[rank]
            }
        };
        self.last_sends[rank] = departs;
        if self.has_queues && !path.classes[sent.class as usize].rendezvous {
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
        let (path, sender) = (self.path(slot), Rank(self.sender_of[place]));
        let moves = |kind| Node::new(kind, sender, slot.0).after(self.messages[place], 0.0);
        let receiver = self.ends[self.program.receiver(slot)];
        let node = match self.posted.get(place) {
            Some(_) if !path.classes[self.class_of[place] as usize].rendezvous => moves(Kind::Move),
            None => moves(Kind::Move),
            Some(&NONE) => moves(Kind::MoveAtReceive).and(receiver, path.recv_before.as_nanos()),
            Some(posted) => moves(Kind::Move).and(*posted, 0.0),
        };
        let moved = self.push(node, Some(start));
        if let Some(known) = self.moves.get_mut(place) {
            *known = moved;
        }
        self.messages[place] = self.arrive(slot, moved, arrival);
    }

    fn posted(&mut self, slot: Slot, _time: Time) {
        if let Some(posted) = self.posted.get_mut(slot.index()) {
            *posted = self.ends[self.program.receiver(slot)];
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
        if !self.is_free {
            self.reach(rank, start);
            self.release(rank, slot, Some(end));
        }
    }

    fn released(&mut self, rank: Rank, slot: Slot) {
        if self.is_free {
            self.release(rank, slot, None);
        }
    }

    fn received(&mut self, rank: Rank, slot: Slot, received: ReceivedMessage) {
        self.reach(rank, received.call);
        let (path, class) = (self.path(slot), self.class_of[slot]);
        let after = parts::receive_overhead(path, class).as_nanos();
        let arrival = self.messages[slot];
        let delay = match self.nodes[arrival as usize].kind() {
            Kind::Arrive => 0.0,
            _ => path.classes[class as usize].delay.as_nanos(),
        };
        let node = Node::new(Kind::Receive, rank, slot.0);
        let node = node.after(self.ends[rank], path.recv_before.as_nanos() + after);
        self.go_on(rank, node.and(arrival, delay + after), Some(received.end));
    }

    fn accessed(&mut self, rank: Rank, accessed: Accessed) {
        self.reach(rank, accessed.end);
    }

    fn gathered(&mut self, rank: Rank, gathered: Gathered) {
        self.reach(rank, gathered.call);
        let Gathered {
            instance,
            call,
            came,
            end,
            ..
        } = gathered;
        let own = |recorder: &mut Self, kind: Kind, takes: Time| {
            let node = Node::new(kind, rank, instance).after(recorder.ends[rank], takes.as_nanos());
            recorder.go_on(rank, node, None);
        };
        if came > call {
            own(self, Kind::Wait, came - call);
        }
        let enters = match self.instances.modes[instance as usize] {
            CollectiveMode::Blocking => false,
            CollectiveMode::NonBlocking => self.instances.entered.insert((instance, rank)),
            CollectiveMode::RootSynchronous => !self.instances.roots.contains(&(instance, rank)),
        };
        if enters {
            if end > came {
                own(self, Kind::Collective, end - came);
            }
            self.instances
                .entries
                .entry(instance)
                .or_default()
                .push(self.ends[rank]);
            return;
        }
        let done = self.finished(rank, &gathered);
        let is_wait = self.instances.modes[instance as usize] == CollectiveMode::NonBlocking;
        if is_wait {
            let node = Node::new(Kind::Meet, rank, instance).after(self.ends[rank], 0.0);
            self.go_on(rank, node.and(done, 0.0), Some(end));
        } else {
            self.ends[rank] = done;
            self.reach(rank, end);
        }
    }

    fn ended(&mut self, rank: Rank, time: Time) {
        self.reach(rank, time);
    }
}
