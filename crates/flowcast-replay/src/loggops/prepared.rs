//! A schedule in the layout of the fast engine: few bytes per operation, matches by number.
//!
//! With many ranks, each walks through its own memory, in too many streams for the processor to read ahead. The speed is
//! then determined by the number of cache lines per message. Constant data (24 bytes per operation) are therefore separate
//! from changing data (4 bytes: the number of dependencies that it waits for). Adjacent dependents are not listed, and
//! channels are numbered in the order of the receiver's receives.

use super::message::ScheduleMessage;
use flowcast_program::{
    key_map::KeyMap,
    schedule::{Graph, Operation, Schedule},
};
use flowcast_units::{Bytes, Rank};
use std::borrow::Borrow;

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum OperationKind {
    Send = 0,
    Recv = 1,
    Calc = 2,
    /// Not an operation: the message of a send, in flight.
    Message = 3,
}

/// An operation.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct PreparedOp {
    /// For a computation, the bits of its nanoseconds; otherwise the index of the size, and above it the index of the
    /// channel.
    pub payload: u64,
    /// The receiver for a send; otherwise the rank itself.
    pub peer: u32,
    /// Start of its dependents: `by_start` operations that its start releases, then `by_end` that its end releases; see
    /// `is_run`.
    pub first: u32,
    pub by_end: u32,
    pub by_start: u16,
    pub kind: OperationKind,
    /// `true` if the dependents are adjacent and `first` is the first of them, not an index into the list.
    pub is_run: bool,
}

impl PreparedOp {
    pub(super) fn size(&self) -> u32 {
        self.payload as u32
    }

    pub(super) fn channel(&self) -> u32 {
        (self.payload >> 32) as u32
    }
}

/// A schedule without wildcards, with one processor and one interface in each rank.
#[derive(Default)]
pub struct PreparedOperations {
    /// First operation of each rank, and the number of all operations.
    pub(super) bases: Vec<u32>,
    pub(super) ops: Vec<PreparedOp>,
    pub(super) dependents: Vec<u32>,
    /// Number of dependencies that each operation waits for at the start, and above that ([`KIND_SHIFT`]) its kind.
    pub(super) open: Vec<u32>,
    pub(super) sizes: Vec<Bytes>,
    pub(super) channels: usize,
    /// Tag of each channel; -1 if it has none.
    tags: Vec<i32>,
}

/// Position of an operation's kind, above its number or above the number of its dependencies.
pub(super) const KIND_SHIFT: u32 = 30;

/// Limit of the number of operations: more do not fit into the keys of events.
const MOST: usize = 1 << KIND_SHIFT;

impl PreparedOperations {
    /// Lays out a schedule. Returns `None` if the schedule has wildcards or several processors or interfaces in a rank, or
    /// is too large.
    pub fn new(schedule: &Schedule) -> Option<PreparedOperations> {
        let numbers = Numbers::from_schedule(schedule)?;
        Some(PreparedOperations::from_graphs(
            schedule.graphs.iter(),
            numbers,
        ))
    }

    /// Lays out a schedule and drops each rank's part of it once it is laid out, so that both layouts never occupy memory at
    /// the same time.
    ///
    /// # Errors
    /// The schedule, if [`PreparedOperations::new`] would return `None`.
    pub fn instead_of(schedule: Schedule) -> Result<PreparedOperations, Schedule> {
        match Numbers::from_schedule(&schedule) {
            Some(numbers) => Ok(PreparedOperations::from_graphs(
                schedule.graphs.into_iter(),
                numbers,
            )),
            None => Err(schedule),
        }
    }

    fn from_graphs(
        graphs: impl Iterator<Item = impl Borrow<Graph>>,
        mut numbers: Numbers,
    ) -> PreparedOperations {
        let mut prepared = PreparedOperations {
            bases: vec![0],
            ..PreparedOperations::default()
        };
        prepared.ops.reserve_exact(numbers.operations);
        prepared.open.reserve_exact(numbers.operations);
        for (rank, graph) in (0..).map(Rank).zip(graphs) {
            prepared.add(rank, graph.borrow(), &mut numbers);
        }
        prepared.sizes = numbers.sizes.keys().collect();
        prepared.channels = numbers.channels.len();
        prepared.tags = numbers
            .channels
            .keys()
            .map(|(_, _, tag): PreparedChannel| tag.map_or(-1, |tag| tag as i32))
            .collect();
        prepared
    }

    /// The message that an operation sends.
    pub(super) fn sent(&self, operation: u32) -> ScheduleMessage {
        let op = &self.ops[operation as usize];
        let (size, tag) = (
            self.sizes[op.size() as usize],
            self.tags[op.channel() as usize],
        );
        ScheduleMessage {
            to: Rank(op.peer),
            size,
            tag,
        }
    }

    fn add(&mut self, rank: Rank, graph: &Graph, numbers: &mut Numbers) {
        let base = self.ops.len() as u32;
        for (index, node) in (0..).zip(&graph.nodes) {
            let (kind, peer, payload) = match node.operation {
                Operation::Calc(time) => (OperationKind::Calc, rank, time.as_nanos().to_bits()),
                Operation::Send { to, size, tag } => (
                    OperationKind::Send,
                    to,
                    numbers.payload((to, Some(rank), tag), size),
                ),
                Operation::Recv { from, size, tag } => (
                    OperationKind::Recv,
                    rank,
                    numbers.payload((rank, from, tag), size),
                ),
            };
            let (starts, ends) = (graph.released_by_start(index), graph.released_by_end(index));
            let all = starts.iter().chain(ends).map(|later| base + later);
            let (first, is_run) = self.put_dependents(all);
            let (by_start, by_end) = (starts.len() as u16, ends.len() as u32);
            self.ops.push(PreparedOp {
                payload,
                peer: peer.0,
                first,
                by_end,
                by_start,
                kind,
                is_run,
            });
            self.open
                .push((kind as u32) << KIND_SHIFT | node.dependencies);
        }
        self.bases.push(self.ops.len() as u32);
    }

    /// Stores a list of dependents. Returns the first of them and `true` if they are adjacent, otherwise the start of the
    /// list and `false`. A list equal to the one before is not stored again: operations that are waited for together release
    /// the same dependents.
    fn put_dependents(&mut self, list: impl Iterator<Item = u32> + Clone) -> (u32, bool) {
        let first = list.clone().next().unwrap_or(0);
        if list
            .clone()
            .zip(first..)
            .all(|(dependent, neighbour)| dependent == neighbour)
        {
            return (first, true);
        }
        let start = self.dependents.len();
        self.dependents.extend(list);
        let own = start..self.dependents.len();
        let before = start
            .checked_sub(own.len())
            .filter(|before| self.dependents[*before..start] == self.dependents[own.clone()]);
        if before.is_some() {
            self.dependents.truncate(start);
        }
        (before.unwrap_or(start) as u32, false)
    }
}

/// Receiver, sender and tag; the latter two are always present.
type PreparedChannel = (Rank, Option<Rank>, Option<u32>);

#[derive(Default)]
struct Numbers {
    operations: usize,
    channels: KeyMap<PreparedChannel>,
    sizes: KeyMap<Bytes>,
}

impl Numbers {
    /// Numbers the channels of all receives; `None` if the schedule has a feature that the fast engine does not support.
    fn from_schedule(schedule: &Schedule) -> Option<Numbers> {
        let operations: usize = schedule.graphs.iter().map(|graph| graph.nodes.len()).sum();
        let dependencies: usize = schedule.graphs.iter().map(Graph::count_dependencies).sum();
        if operations >= MOST || schedule.ranks() >= MOST || u32::try_from(dependencies).is_err() {
            return None;
        }
        let mut numbers = Numbers {
            operations,
            ..Numbers::default()
        };
        for (rank, graph) in (0..).map(Rank).zip(&schedule.graphs) {
            for (index, node) in (0..).zip(&graph.nodes) {
                let started = graph.released_by_start(index).len();
                let waits_for_most = node.dependencies as usize >= MOST;
                if (node.cpu, node.nic) != (0, 0)
                    || started > usize::from(u16::MAX)
                    || waits_for_most
                {
                    return None;
                }
                match node.operation {
                    Operation::Recv { from, tag, .. } => {
                        numbers.channels.number((rank, Some(from?), Some(tag?)));
                    }
                    Operation::Send { tag, .. } => _ = tag?,
                    Operation::Calc(_) => {}
                }
            }
        }
        Some(numbers)
    }

    fn payload(&mut self, channel: PreparedChannel, size: Bytes) -> u64 {
        u64::from(self.channels.number(channel)) << 32 | u64::from(self.sizes.number(size))
    }
}
