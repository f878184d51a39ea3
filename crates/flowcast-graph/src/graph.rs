//! Events in an order in which each comes behind those that it waits for.

mod record;
mod schedule;

use flowcast_program::slot::Slot;
use flowcast_replay::{
    ReplayEngine, SimulateError,
    loggops::{costs::LogGopsCosts, sends::Sends},
    outcome::Outcome,
    time_part::TimePart,
    walk::Replay,
};
use flowcast_units::{CollectiveOp, Node as NodeNumber, Rank, Time};

pub use record::ProgramRecorder;
pub use schedule::ScheduleRecorder;

/// No event, no message.
pub(crate) const NONE: u32 = u32::MAX;

/// What an event is the end of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The start of the program, or time that no cost of the network explains; the item is the [`TimePart`] that it is spent on.
    Spent,
    /// A computation; the item is its user function.
    Compute,
    /// The sender's overhead, of a message.
    Send,
    /// The interface is free for a message that its sender has left to it.
    Depart,
    /// The receiver's overhead, of a message.
    Receive,
    /// A message begins to move once its sender is ready, and its receiver if that was asked before.
    Move,
    /// The same, where the receiver comes to a blocking receive.
    MoveAtReceive,
    /// A message's last byte arrives, where that takes another time than it would alone; where the receiver's interface takes
    /// it, of a schedule, once that is free.
    Arrive,
    /// A sender goes on that its message held.
    Release,
    /// Ranks have come to a collective, the item.
    Meet,
    /// A collective, the item, is done.
    Collective,
}

const KINDS: [EventKind; 11] = [
    EventKind::Spent,
    EventKind::Compute,
    EventKind::Send,
    EventKind::Depart,
    EventKind::Receive,
    EventKind::Move,
    EventKind::MoveAtReceive,
    EventKind::Arrive,
    EventKind::Release,
    EventKind::Meet,
    EventKind::Collective,
];
const KIND_SHIFT: u32 = 28;

/// An event: it happens at the later of `first + cost` and `second + more`, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventNode {
    pub first: u32,
    pub second: u32,
    pub cost: f64,
    pub more: f64,
    pub item: u32,
    /// Kind and rank.
    tag: u32,
}

/// One of the two events that an event waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    First,
    Second,
}

impl EventNode {
    pub(crate) fn new(kind: EventKind, rank: Rank, item: u32) -> EventNode {
        let tag = (kind as u32) << KIND_SHIFT | rank.0;
        EventNode {
            first: 0,
            second: NONE,
            cost: 0.0,
            more: 0.0,
            item,
            tag,
        }
    }

    /// Time that no cost explains.
    pub(crate) fn spent(part: TimePart, rank: Rank) -> EventNode {
        EventNode::new(EventKind::Spent, rank, part as u32)
    }

    pub(crate) fn after(self, first: u32, cost: f64) -> EventNode {
        EventNode {
            first,
            cost,
            ..self
        }
    }

    pub(crate) fn and(self, second: u32, more: f64) -> EventNode {
        EventNode {
            second,
            more,
            ..self
        }
    }

    pub(crate) fn kind(&self) -> EventKind {
        KINDS[(self.tag >> KIND_SHIFT) as usize]
    }

    pub(crate) fn rank(&self) -> Rank {
        Rank(self.tag & ((1 << KIND_SHIFT) - 1))
    }

    /// The message of an event that belongs to one.
    pub(crate) fn slot(&self) -> Slot {
        Slot(self.item)
    }

    /// Whether another event is the same one of another replay, and waits for the same events.
    pub(crate) fn is_like(&self, other: &EventNode) -> bool {
        let waits = |node: &EventNode| (node.first, node.second, node.item, node.tag);
        waits(self) == waits(other)
    }

    /// When it happens, where events before it happen at these times, in nanoseconds.
    pub(crate) fn time(&self, times: &[f64]) -> f64 {
        let first = times[self.first as usize] + self.cost;
        match self.second {
            NONE => first,
            second => first.max(times[second as usize] + self.more),
        }
    }

    /// The event of an edge and the cost behind it; none where there is one edge only.
    #[inline]
    pub(crate) fn edge(&self, edge: Edge) -> Option<(u32, f64)> {
        match edge {
            Edge::First => Some((self.first, self.cost)),
            Edge::Second => (self.second != NONE).then_some((self.second, self.more)),
        }
    }
}

/// Events while they are recorded: each stands behind those that it waits for.
pub(crate) struct RecordedEvents {
    pub nodes: Vec<EventNode>,
    /// By event, in nanoseconds.
    pub times: Vec<f64>,
    /// By rank or stream: its last event.
    pub ends: Vec<u32>,
    /// Whether the costs of the network explain all times.
    pub is_explained: bool,
}

impl RecordedEvents {
    /// Of a replay that has not begun, with room for so many.
    fn new(streams: usize, room: usize) -> RecordedEvents {
        let (mut nodes, mut times) = (Vec::with_capacity(room), Vec::with_capacity(room));
        nodes.push(EventNode::spent(TimePart::Other, Rank(0)));
        times.push(0.0);
        RecordedEvents {
            nodes,
            times,
            ends: vec![0; streams],
            is_explained: true,
        }
    }

    /// Adds an event. Where it happened is not where its costs put it, they are changed to what they were: what came late did so
    /// after all that it waits for.
    fn push(&mut self, mut node: EventNode, happened: Option<Time>) -> u32 {
        let mut time = node.time(&self.times);
        if let Some(happened) = happened.map(Time::as_nanos) {
            if !is_near(happened, time) {
                self.is_explained = false;
                let late = (happened - time).max(0.0);
                node.cost = (node.cost + late).min(happened - self.times[node.first as usize]);
                if node.second != NONE {
                    node.more = (node.more + late).min(happened - self.times[node.second as usize]);
                }
            }
            time = happened;
        }
        self.nodes.push(node);
        self.times.push(time);
        (self.nodes.len() - 1) as u32
    }

    /// The event that a rank has come to.
    fn go_on(&mut self, rank: Rank, node: EventNode, happened: Option<Time>) {
        self.ends[rank] = self.push(node, happened);
    }

    /// Time that no cost explains has passed up to an event of a rank.
    fn spend(&mut self, rank: Rank, until: Time, part: TimePart) {
        self.ends[rank] = self.late(self.ends[rank], rank, until, part);
    }

    /// The event at which time that no cost explains is over, behind another: that itself if none has passed.
    fn late(&mut self, event: u32, rank: Rank, until: Time, part: TimePart) -> u32 {
        let (at, until) = (self.times[event as usize], until.as_nanos());
        if until <= at || is_near(until, at) {
            return event;
        }
        self.is_explained = false;
        let node = EventNode::spent(part, rank).after(event, until - at);
        self.push(node, Some(Time::from_nanos(until)))
    }

    /// The event at which a message is there that moves from another on, where that takes longer than its delay alone; else that
    /// other one.
    fn arrive(&mut self, slot: Slot, sender: Rank, from: u32, delay: Time, arrival: Time) -> u32 {
        let (begun, arrival) = (self.times[from as usize], arrival.as_nanos());
        if is_near(arrival, begun + delay.as_nanos()) {
            return from;
        }
        self.is_explained = false;
        let node = EventNode::new(EventKind::Arrive, sender, slot.0).after(from, arrival - begun);
        self.push(node, Some(Time::from_nanos(arrival)))
    }

    /// What a rank did that ended at a time, if it did.
    fn ended_at(&self, rank: Rank, time: Time) -> Option<u32> {
        let (mut event, time) = (self.ends[rank], time.as_nanos());
        loop {
            let at = self.times[event as usize];
            if is_near(at, time) {
                return Some(event);
            }
            if event == 0 || at <= time {
                return None;
            }
            event = self.nodes[event as usize].first;
        }
    }

    fn kind(&self, event: u32) -> EventKind {
        self.nodes[event as usize].kind()
    }
}

/// Of times, apart from rounding.
fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 + 1e-12 * a.abs()
}

/// What was replayed.
pub(crate) enum ReplayedInput<'a> {
    Program(&'a Replay<'a>),
    Schedule(&'a Sends<'a>, LogGopsCosts<'a>),
}

/// The events of a replay, and what each of them waits for.
pub struct EventGraph<'a> {
    pub(crate) source: ReplayedInput<'a>,
    pub(crate) nodes: Vec<EventNode>,
    /// By event, in nanoseconds.
    pub(crate) times: Vec<f64>,
    /// By rank: its last event.
    pub(crate) ends: Vec<u32>,
    /// By slot of a program's message.
    pub(crate) class_of: Vec<u32>,
    /// By slot of a program's message.
    pub(crate) sender_of: Vec<u32>,
    /// By slot of a program's message: what cables add to its latency; empty if nothing.
    pub(crate) cables: Vec<Time>,
    /// By slot of a message: the user function that sends it, counted as in `functions`; empty if the trace tells none.
    pub(crate) function_of: Vec<u32>,
    /// Values of the trace's event of user functions; the first stands for none.
    pub(crate) functions: Vec<i64>,
    /// By execution of a collective.
    pub(crate) ops: Vec<CollectiveOp>,
    is_exact: bool,
}

impl<'a> EventGraph<'a> {
    /// Replays, and records what waits for what.
    ///
    /// # Errors
    /// As [`ReplayEngine::run`].
    pub fn record(
        engine: &'a ReplayEngine<'a>,
    ) -> Result<(Outcome, EventGraph<'a>), SimulateError> {
        let mut recorder = ProgramRecorder::new(engine);
        let outcome = engine.observed(&mut recorder)?;
        Ok((outcome, recorder.finish()))
    }

    /// Whether the order of events depends on no cost, so that the graph with other costs is the replay with other costs.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// How many events it has.
    pub fn events(&self) -> usize {
        self.nodes.len()
    }

    /// When the last rank ends.
    pub fn makespan(&self) -> Time {
        Time::from_nanos(
            self.ends
                .iter()
                .map(|end| self.times[*end as usize])
                .fold(0.0, f64::max),
        )
    }

    /// When each rank ends.
    pub fn ends(&self) -> impl Iterator<Item = Time> + '_ {
        self.ends
            .iter()
            .map(|end| Time::from_nanos(self.times[*end as usize]))
    }

    /// The rank that a rank or a stream of non-blocking collectives belongs to.
    pub(crate) fn owner(&self, stream: Rank) -> Rank {
        match self.source {
            ReplayedInput::Program(replay) => replay.program().owner(stream),
            ReplayedInput::Schedule(..) => stream,
        }
    }

    /// The node that a rank runs on; without a placement each has its own.
    pub(crate) fn node(&self, rank: Rank) -> NodeNumber {
        let placement = match &self.source {
            ReplayedInput::Program(replay) => Some(replay.placement()),
            ReplayedInput::Schedule(_, costs) => costs.placed.map(|placed| placed.placement),
        };
        placement.map_or(NodeNumber(rank.0), |placement| placement.node(rank))
    }

    /// Below this many nanoseconds, differences of times are rounding.
    pub fn rounding(&self) -> f64 {
        1e-6 + 1e-13 * self.makespan().as_nanos()
    }
}
