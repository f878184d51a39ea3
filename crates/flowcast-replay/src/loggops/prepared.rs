//! A schedule laid out for the fast engine: few bytes for each operation, matches by number.
//!
//! With many ranks each walks through memory of its own, too many for the processor to read ahead: the speed is that of
//! the cache lines that each message takes. So what never changes (24 bytes an operation) stands apart from what does (4,
//! how many others it waits for), dependents that are neighbours are not listed, and channels are numbered in the order
//! in which their receiver asks.

use super::message::ScheduleMessage;
use flowcast_program::{
    key_map::KeyMap,
    schedule::{Graph, Operation, Schedule},
};
use flowcast_units::{Bytes, Rank};
use std::borrow::Borrow;

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum OperationKind {
    Send = 0,
    Recv = 1,
    Calc = 2,
    /// Not an operation: the message of a send, on its way.
    Message = 3,
}

/// An operation.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct PreparedOp {
    /// Of a computation the nanoseconds as bits; else the number of the size, and above it that of the channel.
    pub payload: u64,
    /// The rank itself of a computation or receive, the receiver of a send.
    pub peer: u32,
    /// Whom it releases: so many by its start, then so many by its end, from the first on; see `is_run`.
    pub first: u32,
    pub by_end: u32,
    pub by_start: u16,
    pub kind: OperationKind,
    /// Whether the dependents are neighbours and `first` is the first of them, not a place in the list.
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
    /// The first operation of each rank, and the end.
    pub(super) bases: Vec<u32>,
    pub(super) ops: Vec<PreparedOp>,
    pub(super) dependents: Vec<u32>,
    /// How many others each operation waits for at the beginning, and above that ([`KIND_SHIFT`]) its kind.
    pub(super) open: Vec<u32>,
    pub(super) sizes: Vec<Bytes>,
    pub(super) channels: usize,
    /// The tag of each channel.
    tags: Vec<i32>,
}

/// Where the kind of an operation stands above its number or above the count of those that it waits for.
pub(super) const KIND_SHIFT: u32 = 30;

/// More operations than this do not fit the keys of events.
const MOST: usize = 1 << KIND_SHIFT;

impl PreparedOperations {
    /// `None` if the schedule has wildcards or several processors or interfaces in a rank, or is too large.
    pub fn new(schedule: &Schedule) -> Option<PreparedOperations> {
        let numbers = Numbers::from_schedule(schedule)?;
        Some(PreparedOperations::from_graphs(
            schedule.graphs.iter(),
            numbers,
        ))
    }

    /// The same, and each rank's part of the schedule is given up once it is laid out, so that the memory of both is never
    /// needed at once.
    ///
    /// # Errors
    /// The schedule, where [`PreparedOperations::new`] gives nothing.
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

    /// What an operation sends.
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

    /// The first of neighbours, or where a list of dependents begins, which is appended unless it is the one before: what
    /// is waited for together releases the same.
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

/// Receiver, sender and tag, which are known.
type PreparedChannel = (Rank, Option<Rank>, Option<u32>);

#[derive(Default)]
struct Numbers {
    operations: usize,
    channels: KeyMap<PreparedChannel>,
    sizes: KeyMap<Bytes>,
}

impl Numbers {
    /// With the channels of all receives; `None` if the schedule has something that the fast engine has not.
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
