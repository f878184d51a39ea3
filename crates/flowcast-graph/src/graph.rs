//! Graph of the events of a replay. Each event stands behind those that it waits for.

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

/// Index that stands for no event and no message.
pub(crate) const NONE: u32 = u32::MAX;

/// Kind of an event. The event is the end of the activity described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The start of the program, or time that no cost of the network explains. The item is the [`TimePart`] that it is
    /// spent on.
    Spent,
    /// A computation. The item is its user function.
    Compute,
    /// The sender's overhead for a message.
    Send,
    /// The interface is free for a message that its sender has left to it.
    Depart,
    /// The receiver's overhead for a message.
    Receive,
    /// A message starts to move: its sender is ready, and its receive has been posted.
    Move,
    /// A message starts to move when the receiver reaches a blocking receive.
    MoveAtReceive,
    /// The last byte of a message arrives, at another time than it would alone. In a schedule: the receiving interface
    /// takes the message once it is free.
    Arrive,
    /// A sender continues after its message has held it.
    Release,
    /// Ranks have reached a collective, which is the item.
    Meet,
    /// A collective, which is the item, is complete.
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

/// An event. It happens at the later of `first + cost` and `second + more`, in nanoseconds.
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

    /// Creates an event for time that no cost explains.
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

    /// Returns the message of an event that belongs to one.
    pub(crate) fn slot(&self) -> Slot {
        Slot(self.item)
    }

    /// Returns `true` if another event is the counterpart of this one in another replay and waits for the same events.
    pub(crate) fn is_like(&self, other: &EventNode) -> bool {
        let waits = |node: &EventNode| (node.first, node.second, node.item, node.tag);
        waits(self) == waits(other)
    }

    /// Returns the time of the event, given the times of the events before it, in nanoseconds.
    pub(crate) fn time(&self, times: &[f64]) -> f64 {
        let first = times[self.first as usize] + self.cost;
        match self.second {
            NONE => first,
            second => first.max(times[second as usize] + self.more),
        }
    }

    /// Returns the event at the start of an edge and the cost of the edge. `None` for the second edge of an event with only
    /// one.
    #[inline]
    pub(crate) fn edge(&self, edge: Edge) -> Option<(u32, f64)> {
        match edge {
            Edge::First => Some((self.first, self.cost)),
            Edge::Second => (self.second != NONE).then_some((self.second, self.more)),
        }
    }
}

/// Events of a replay that is still running. Each stands behind those that it waits for.
pub(crate) struct RecordedEvents {
    pub nodes: Vec<EventNode>,
    /// Time of each event, in nanoseconds.
    pub times: Vec<f64>,
    /// Last event of each rank or stream.
    pub ends: Vec<u32>,
    /// `true` if the costs of the network explain all times.
    pub is_explained: bool,
}

impl RecordedEvents {
    /// Creates the events of a replay that has not started, with room for `room` events.
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

    /// Adds an event. If it happened at another time than its costs predict, the costs are adjusted to the observed time.
    /// The delay of a late event is added to the costs of all its edges.
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

    /// Adds the next event of a rank.
    fn go_on(&mut self, rank: Rank, node: EventNode, happened: Option<Time>) {
        self.ends[rank] = self.push(node, happened);
    }

    /// Adds a computation of a rank; `item` is its region or call, as in [`EventNode::new`].
    fn compute(&mut self, rank: Rank, item: u32, start: Time, end: Time) {
        if end > start {
            let node = EventNode::new(EventKind::Compute, rank, item);
            let node = node.after(self.ends[rank], (end - start).as_nanos());
            self.go_on(rank, node, Some(end));
        }
    }

    /// Records time of a rank, up to `until`, that no cost explains.
    fn spend(&mut self, rank: Rank, until: Time, part: TimePart) {
        self.ends[rank] = self.late(self.ends[rank], rank, until, part);
    }

    /// Returns the event at which unexplained time after another event ends. Returns that other event if no time has
    /// passed.
    fn late(&mut self, event: u32, rank: Rank, until: Time, part: TimePart) -> u32 {
        let (at, until) = (self.times[event as usize], until.as_nanos());
        if until <= at || is_near(until, at) {
            return event;
        }
        self.is_explained = false;
        let node = EventNode::spent(part, rank).after(event, until - at);
        self.push(node, Some(Time::from_nanos(until)))
    }

    /// Returns the event at which a message arrives whose flight starts at `from`. Returns `from` itself if the flight
    /// takes the same time as alone.
    fn arrive(&mut self, slot: Slot, sender: Rank, from: u32, delay: Time, arrival: Time) -> u32 {
        let (begun, arrival) = (self.times[from as usize], arrival.as_nanos());
        if is_near(arrival, begun + delay.as_nanos()) {
            return from;
        }
        self.is_explained = false;
        let node = EventNode::new(EventKind::Arrive, sender, slot.0).after(from, arrival - begun);
        self.push(node, Some(Time::from_nanos(arrival)))
    }

    /// Returns the event at which an activity of a rank ended at `time`. `None` if there is none.
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

/// Compares two times, in nanoseconds, apart from rounding.
fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 + 1e-12 * a.abs()
}

/// Input of the replay: a program or a schedule.
pub(crate) enum ReplayedInput<'a> {
    Program(&'a Replay<'a>),
    Schedule(&'a Sends<'a>, LogGopsCosts<'a>),
}

/// The events of a replay and the events that each of them waits for.
pub struct EventGraph<'a> {
    pub(crate) source: ReplayedInput<'a>,
    pub(crate) nodes: Vec<EventNode>,
    /// Time of each event, in nanoseconds.
    pub(crate) times: Vec<f64>,
    /// Last event of each rank.
    pub(crate) ends: Vec<u32>,
    /// Class of each message of a program, indexed by slot.
    pub(crate) class_of: Vec<u32>,
    /// Sender of each message of a program, indexed by slot.
    pub(crate) sender_of: Vec<u32>,
    /// Latency that cables add to each message of a program, indexed by slot. Empty if cables add nothing.
    pub(crate) cables: Vec<Time>,
    /// User function that sends each message, as an index into `functions`, indexed by slot. Empty if the trace does not
    /// record functions.
    pub(crate) function_of: Vec<u32>,
    /// Values of the trace's event of user functions. The first stands for no function.
    pub(crate) functions: Vec<i64>,
    /// Operation of each execution of a collective.
    pub(crate) ops: Vec<CollectiveOp>,
    is_exact: bool,
}

impl<'a> EventGraph<'a> {
    /// Replays and records the events that each event waits for.
    ///
    /// # Errors
    /// Errors of [`ReplayEngine::run`].
    pub fn record(
        engine: &'a ReplayEngine<'a>,
    ) -> Result<(Outcome, EventGraph<'a>), SimulateError> {
        let mut recorder = ProgramRecorder::new(engine);
        let outcome = engine.observed(&mut recorder)?;
        Ok((outcome, recorder.finish()))
    }

    /// Returns `true` if the order of events depends on no cost. The graph with changed costs then equals the replay with
    /// changed costs.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Number of events, which are the nodes of the graph.
    pub fn events(&self) -> usize {
        self.nodes.len()
    }

    /// Time at which the last rank ends.
    pub fn makespan(&self) -> Time {
        Time::from_nanos(
            self.ends
                .iter()
                .map(|end| self.times[*end as usize])
                .fold(0.0, f64::max),
        )
    }

    /// Times at which the ranks end, in rank order.
    pub fn ends(&self) -> impl Iterator<Item = Time> + '_ {
        self.ends
            .iter()
            .map(|end| Time::from_nanos(self.times[*end as usize]))
    }

    /// Returns the rank that a stream belongs to: the rank itself, or the owner of a stream of non-blocking collectives.
    pub(crate) fn owner(&self, stream: Rank) -> Rank {
        match self.source {
            ReplayedInput::Program(replay) => replay.program().owner(stream),
            ReplayedInput::Schedule(..) => stream,
        }
    }

    /// Returns the node that a rank runs on. Without a placement, each rank has its own node.
    pub(crate) fn node(&self, rank: Rank) -> NodeNumber {
        let placement = match &self.source {
            ReplayedInput::Program(replay) => Some(replay.placement()),
            ReplayedInput::Schedule(_, costs) => costs.placed.map(|placed| placed.placement),
        };
        placement.map_or(NodeNumber(rank.0), |placement| placement.node(rank))
    }

    /// Differences of times below this many nanoseconds are rounding.
    pub fn rounding(&self) -> f64 {
        1e-6 + 1e-13 * self.makespan().as_nanos()
    }
}
