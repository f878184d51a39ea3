//! A schedule laid out for the fast engine: few bytes for each operation, matches by number.
//!
//! With many ranks each walks through memory of its own, too many for the processor to read ahead: the speed is that of
//! the cache lines that each message takes. So what never changes (24 bytes an operation) stands apart from what does (4,
//! how many others it waits for), dependents that are neighbours are not listed, and channels are numbered in the order
//! in which their receiver asks.

use crate::trace::key_map::KeyMap;
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
    /// Whom it releases: so many by its start, then so many by its end, from the first on; see `is_run`.
    pub first: u32,
    pub by_start: u16,
    pub by_end: u16,
    pub kind: Kind,
    /// Whether the dependents are neighbours and `first` is the first of them, not a place in the list.
    pub is_run: bool,
}

impl Op {
    pub fn size(&self) -> u32 {
        self.payload as u32
    }

    pub fn channel(&self) -> u32 {
        (self.payload >> 32) as u32
    }
}

/// A schedule without wildcards, with one processor and one interface in each rank.
pub struct Prepared<'a> {
    pub(super) schedule: &'a Schedule,
    /// The first operation of each rank, and the end.
    pub(super) bases: Vec<u32>,
    pub(super) ops: Vec<Op>,
    pub(super) dependents: Vec<u32>,
    /// How many others each operation waits for at the beginning.
    pub(super) open: Vec<u32>,
    pub(super) sizes: Vec<Bytes>,
    pub(super) channels: usize,
}

/// More operations than this do not fit the keys of events.
const MOST: usize = 1 << 30;

impl<'a> Prepared<'a> {
    /// `None` if the schedule has wildcards or several processors or interfaces in a rank, or is too large.
    pub fn new(schedule: &'a Schedule) -> Option<Prepared<'a>> {
        let nodes: usize = schedule.graphs.iter().map(|graph| graph.nodes.len()).sum();
        if nodes >= MOST || schedule.ranks() >= MOST || schedule.cpus() > 1 || schedule.nics() > 1 {
            return None;
        }
        let mut prepared = Prepared {
            schedule,
            bases: vec![0],
            ops: Vec::with_capacity(nodes),
            dependents: Vec::new(),
            open: Vec::with_capacity(nodes),
            sizes: Vec::new(),
            channels: 0,
        };
        let mut numbers = Numbers::of_receives(schedule)?;
        for (rank, graph) in schedule.graphs.iter().enumerate() {
            prepared.add(Rank(rank as u32), graph, &mut numbers)?;
        }
        prepared.sizes = numbers.sizes.keys().collect();
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
            let (by_start, by_end) = (u16::try_from(starts.len()).ok()?, u16::try_from(ends.len()).ok()?);
            let all = starts.iter().chain(ends).map(|later| base + later);
            let (first, is_run) = self.put_dependents(all)?;
            self.ops.push(Op { payload, peer: peer.0, first, by_start, by_end, kind, is_run });
            self.open.push(node.dependencies);
        }
        self.bases.push(self.ops.len() as u32);
        Some(())
    }

    /// The first of neighbours, or where a list of dependents begins, which is appended unless it is the one before: what
    /// is waited for together releases the same.
    fn put_dependents(&mut self, list: impl Iterator<Item = u32> + Clone) -> Option<(u32, bool)> {
        let first = list.clone().next().unwrap_or(0);
        if list.clone().zip(first..).all(|(dependent, neighbour)| dependent == neighbour) {
            return Some((first, true));
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
        Some((u32::try_from(before.unwrap_or(start)).ok()?, false))
    }
}

/// Receiver, sender and tag.
type Channel = (Rank, Rank, u32);

#[derive(Default)]
struct Numbers {
    channels: KeyMap<Channel>,
    sizes: KeyMap<Bytes>,
}

impl Numbers {
    /// With the channels of all receives; `None` if one may take messages of several channels.
    fn of_receives(schedule: &Schedule) -> Option<Numbers> {
        let mut numbers = Numbers::default();
        for (rank, graph) in (0..).map(Rank).zip(&schedule.graphs) {
            for node in &graph.nodes {
                if let Operation::Recv { from, tag, .. } = node.operation {
                    numbers.channels.number((rank, from?, tag?));
                }
            }
        }
        Some(numbers)
    }

    fn payload(&mut self, channel: Channel, size: Bytes) -> u64 {
        u64::from(self.channels.number(channel)) << 32 | u64::from(self.sizes.number(size))
    }
}
