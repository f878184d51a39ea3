//! A schedule laid out for the fast engine: few bytes for each operation, matches by number.
//!
//! With many ranks each walks through memory of its own, too many for the processor to read ahead: the speed is that of
//! the bytes that each message takes.

use std::collections::HashMap;

use crate::trace::schedule::{Graph, Operation, Schedule};
use crate::units::{Bytes, Rank};

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    Send = 0,
    Recv = 1,
    Calc = 2,
    /// Not an operation: the message of a send, on its way.
    Message = 3,
}

/// An operation.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Op {
    /// Of a computation the nanoseconds as bits; else the number of the size, and above it that of the channel.
    pub payload: u64,
    /// The rank itself of a computation or receive, the receiver of a send.
    pub peer: u32,
    /// Whom it releases: so many by its start, then so many by its end, from the first on.
    pub first: u32,
    pub by_start: u16,
    pub by_end: u16,
    pub kind: Kind,
}

impl Op {
    pub fn size(&self) -> usize {
        self.payload as u32 as usize
    }

    pub fn channel(&self) -> usize {
        (self.payload >> 32) as usize
    }
}

/// What of an operation changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    /// How many operations it waits for.
    pub open: u32,
    /// The next in its channel.
    pub behind: u32,
}

/// Names no operation.
pub(super) const NOBODY: u32 = u32::MAX;

/// A schedule without wildcards, with one processor and one interface in each rank.
pub struct Prepared<'a> {
    pub(super) schedule: &'a Schedule,
    /// The first operation of each rank, and the end.
    pub(super) bases: Vec<u32>,
    pub(super) ops: Vec<Op>,
    pub(super) dependents: Vec<u32>,
    /// By operation, at the beginning.
    pub(super) states: Vec<State>,
    pub(super) sizes: Vec<Bytes>,
    pub(super) channels: usize,
}

/// More operations than this do not fit the keys of events.
const MOST: usize = 1 << 30;

impl<'a> Prepared<'a> {
    /// `None` if the schedule has wildcards or several processors or interfaces in a rank, or is too large.
    pub fn new(schedule: &'a Schedule) -> Option<Prepared<'a>> {
        let nodes: usize = schedule.graphs.iter().map(|graph| graph.nodes.len()).sum();
        if nodes >= MOST || schedule.cpus() > 1 || schedule.nics() > 1 {
            return None;
        }
        let mut prepared = Prepared {
            schedule,
            bases: vec![0],
            ops: Vec::with_capacity(nodes),
            dependents: Vec::new(),
            states: Vec::with_capacity(nodes),
            sizes: Vec::new(),
            channels: 0,
        };
        let mut numbers = Numbers::default();
        for (rank, graph) in schedule.graphs.iter().enumerate() {
            prepared.add(Rank(rank as u32), graph, &mut numbers)?;
        }
        prepared.sizes = numbers.size_list;
        prepared.channels = numbers.channels.len();
        Some(prepared)
    }

    fn add(&mut self, rank: Rank, graph: &Graph, numbers: &mut Numbers) -> Option<()> {
        let base = self.ops.len() as u32;
        for (index, node) in (0..).zip(&graph.nodes) {
            let (kind, peer, payload) = match node.operation {
                Operation::Calc(time) => (Kind::Calc, rank, time.as_nanos().to_bits()),
                Operation::Send { to, size, tag } => (Kind::Send, to, numbers.payload((to, rank, tag?), size)),
                Operation::Recv { from, size, tag } => (Kind::Recv, rank, numbers.payload((rank, from?, tag?), size)),
            };
            let (starts, ends) = (graph.released_by_start(index), graph.released_by_end(index));
            let first = self.put_dependents(starts.iter().chain(ends).map(|later| base + later))?;
            let (by_start, by_end) = (u16::try_from(starts.len()).ok()?, u16::try_from(ends.len()).ok()?);
            self.ops.push(Op { payload, peer: peer.0, first, by_start, by_end, kind });
            self.states.push(State { open: node.dependencies, behind: NOBODY });
        }
        self.bases.push(self.ops.len() as u32);
        Some(())
    }
}

impl Prepared<'_> {
    /// Appends a list of dependents, unless it is the one before: what is waited for together releases the same.
    fn put_dependents(&mut self, list: impl Iterator<Item = u32>) -> Option<u32> {
        let start = self.dependents.len();
        self.dependents.extend(list);
        let own = start..self.dependents.len();
        let before = start
            .checked_sub(own.len())
            .filter(|before| !own.is_empty() && self.dependents[*before..start] == self.dependents[own.clone()]);
        if before.is_some() {
            self.dependents.truncate(start);
        }
        u32::try_from(before.unwrap_or(start)).ok()
    }
}

/// Receiver, sender and tag.
type Channel = (Rank, Rank, u32);

#[derive(Default)]
struct Numbers {
    channels: HashMap<Channel, u32>,
    sizes: HashMap<Bytes, u32>,
    size_list: Vec<Bytes>,
}

impl Numbers {
    fn payload(&mut self, channel: Channel, size: Bytes) -> u64 {
        let next = self.channels.len() as u32;
        let channel = *self.channels.entry(channel).or_insert(next);
        let list = &mut self.size_list;
        let size = *self.sizes.entry(size).or_insert_with(|| {
            list.push(size);
            list.len() as u32 - 1
        });
        u64::from(channel) << 32 | u64::from(size)
    }
}
