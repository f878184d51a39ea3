//! Messages of a schedule. Observers know a message by the number of its send among all operations.

use super::{
    message::ScheduleMessage,
    prepared::{OperationKind, PreparedOperations},
};
use flowcast_program::{
    schedule::{Operation, Schedule},
    slot::Slot,
};
use flowcast_units::Rank;

/// Messages of a schedule in the form that observers need.
pub struct Sends<'a> {
    source: SendSource<'a>,
    /// First operation of each rank, and the number of all operations.
    bases: Vec<u32>,
    /// One bit for each operation, set if it is a send, in groups of 64; `before` is the number of sends before each group.
    words: Vec<u64>,
    before: Vec<u32>,
    count: u32,
}

#[derive(Clone, Copy)]
enum SendSource<'a> {
    Graphs(&'a Schedule),
    Prepared(&'a PreparedOperations),
}

impl<'a> Sends<'a> {
    /// Lists the messages of a schedule as it was read.
    pub fn from_schedule(schedule: &'a Schedule) -> Sends<'a> {
        let nodes = schedule.graphs.iter().flat_map(|graph| &graph.nodes);
        let sends = nodes.map(|node| matches!(node.operation, Operation::Send { .. }));
        Sends::new(SendSource::Graphs(schedule), schedule.bases(), sends)
    }

    /// Lists the messages of a schedule in the layout of the fast engine.
    pub(crate) fn of_prepared(prepared: &'a PreparedOperations) -> Sends<'a> {
        let sends = prepared.ops.iter().map(|op| op.kind == OperationKind::Send);
        Sends::new(
            SendSource::Prepared(prepared),
            prepared.bases.clone(),
            sends,
        )
    }

    fn new(
        source: SendSource<'a>,
        bases: Vec<u32>,
        sends: impl Iterator<Item = bool>,
    ) -> Sends<'a> {
        let (mut words, mut before, mut count) = (Vec::new(), Vec::new(), 0);
        for (operation, sends) in sends.enumerate() {
            if operation % 64 == 0 {
                words.push(0);
                before.push(count);
            }
            words[operation / 64] |= u64::from(sends) << (operation % 64);
            count += u32::from(sends);
        }
        Sends {
            source,
            bases,
            words,
            before,
            count,
        }
    }

    /// Number of messages, one for each send of the schedule.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Number of ranks of the schedule.
    pub fn ranks(&self) -> usize {
        self.bases.len() - 1
    }

    /// Number of a message among all sends.
    pub fn number(&self, slot: Slot) -> u32 {
        let (word, bit) = (slot.index() / 64, slot.0 % 64);
        self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones()
    }

    /// Rank that sends the message of this slot.
    pub fn sender(&self, slot: Slot) -> Rank {
        Rank(self.bases.partition_point(|base| *base <= slot.0) as u32 - 1)
    }

    /// The message that the given sender sends with this slot.
    pub fn sent(&self, from: Rank, slot: Slot) -> ScheduleMessage {
        match self.source {
            SendSource::Prepared(prepared) => prepared.sent(slot.0),
            SendSource::Graphs(schedule) => {
                let node = slot.0 - self.bases[from];
                match schedule.graphs[from].nodes[node as usize].operation {
                    Operation::Send { to, size, tag } => ScheduleMessage {
                        to,
                        size,
                        tag: tag.map_or(-1, |tag| tag as i32),
                    },
                    Operation::Recv { .. } | Operation::Calc(_) => {
                        unreachable!("only sends make messages")
                    }
                }
            }
        }
    }

    /// All messages with their senders, in the order of their slots.
    pub fn all(&self) -> impl Iterator<Item = (Rank, ScheduleMessage)> + '_ {
        (0..self.ranks()).flat_map(move |rank| {
            let slots = (self.bases[rank]..self.bases[rank + 1]).map(Slot);
            let sends =
                slots.filter(|slot| self.words[slot.index() / 64] >> (slot.0 % 64) & 1 == 1);
            sends.map(move |slot| (Rank(rank as u32), self.sent(Rank(rank as u32), slot)))
        })
    }

    /// Number of processors of the rank that uses the most.
    pub fn cpus(&self) -> usize {
        match self.source {
            SendSource::Prepared(_) => 1,
            SendSource::Graphs(schedule) => schedule.cpus(),
        }
    }
}
