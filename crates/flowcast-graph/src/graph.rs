//! Events in an order in which each comes behind those that it waits for.

mod record;

use flowcast_replay::{Engine, SimulateError, outcome::Outcome, walk::Replay};
use flowcast_trace::{program::Program, slot::Slot};
use flowcast_units::{CollectiveOp, Rank, Time};

use record::GraphRecorder;

/// No event, no message.
pub(crate) const NONE: u32 = u32::MAX;

/// What an event is the end of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The start of the program, or time that nothing accounts for.
    Wait,
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
    /// A message's last byte arrives, where that takes another time than it would alone.
    Arrive,
    /// A sender goes on that its message held.
    Release,
    /// Ranks have come to a collective, the item.
    Meet,
    /// A collective, the item, is done.
    Collective,
}

const KINDS: [Kind; 11] = [
    Kind::Wait,
    Kind::Compute,
    Kind::Send,
    Kind::Depart,
    Kind::Receive,
    Kind::Move,
    Kind::MoveAtReceive,
    Kind::Arrive,
    Kind::Release,
    Kind::Meet,
    Kind::Collective,
];
const KIND_SHIFT: u32 = 28;

/// An event: it happens at the later of `first + cost` and `second + more`, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
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

impl Node {
    pub(crate) fn new(kind: Kind, rank: Rank, item: u32) -> Node {
        let tag = (kind as u32) << KIND_SHIFT | rank.0;
        Node {
            first: 0,
            second: NONE,
            cost: 0.0,
            more: 0.0,
            item,
            tag,
        }
    }

    pub(crate) fn after(self, first: u32, cost: f64) -> Node {
        Node {
            first,
            cost,
            ..self
        }
    }

    pub(crate) fn and(self, second: u32, more: f64) -> Node {
        Node {
            second,
            more,
            ..self
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        KINDS[(self.tag >> KIND_SHIFT) as usize]
    }

    pub(crate) fn rank(&self) -> Rank {
        Rank(self.tag & ((1 << KIND_SHIFT) - 1))
    }

    /// The message of an event that belongs to one.
    pub(crate) fn slot(&self) -> Slot {
        Slot(self.item)
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

/// The events of a replay, and what each of them waits for.
pub struct EventGraph<'a> {
    pub(crate) replay: &'a Replay<'a>,
    pub(crate) nodes: Vec<Node>,
    /// By event, in nanoseconds.
    pub(crate) times: Vec<f64>,
    /// By rank: its last event.
    pub(crate) ends: Vec<u32>,
    /// By slot of a message.
    pub(crate) class_of: Vec<u32>,
    /// By slot of a message.
    pub(crate) sender_of: Vec<u32>,
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
    /// As [`Engine::run`].
    pub fn record(engine: &'a Engine<'a>) -> Result<(Outcome, EventGraph<'a>), SimulateError> {
        let mut recorder = GraphRecorder::new(engine);
        let outcome = engine.observed(&mut recorder)?;
        let recorded = recorder.finish();
        let is_exact = recorded.is_free
            && recorded.is_explained
            && engine.free().program().accesses().is_empty();
        let graph = EventGraph {
            replay: engine.free(),
            nodes: recorded.nodes,
            times: recorded.times,
            ends: recorded.ends,
            class_of: recorded.class_of,
            sender_of: recorded.sender_of,
            function_of: recorded.function_of,
            functions: recorded.functions,
            ops: recorded.ops,
            is_exact,
        };
        Ok((outcome, graph))
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

    /// The program whose events these are.
    pub fn program(&self) -> &'a Program {
        self.replay.program()
    }

    /// Below this, differences of times are rounding.
    pub(crate) fn rounding(&self) -> f64 {
        1e-6 + 1e-13 * self.makespan().as_nanos()
    }
}
