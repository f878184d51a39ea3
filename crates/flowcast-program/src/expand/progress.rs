//! Non-blocking collectives, whose messages move while their rank does something else.
//!
//! Each is carried out on a *progress stream* of its rank: a further stream of instructions on the same node, which takes
//! no processor. Rank and progress stream meet twice, in collectives of the two that cost nothing: where the operation is
//! called, from where on the progress stream works, and where the rank waits for the end. A rank has as many progress
//! streams as it has operations in flight at once, so that none waits for another that was called before it.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Executions;
use crate::{
    build::CallRecord,
    opcodes::Op,
    program::{CollectiveMode, Communicator, Program},
};
use flowcast_units::Rank;

/// Who carries out the non-blocking operations of a program.
#[derive(Default)]
pub(super) struct ProgressStreams {
    /// By progress stream: its rank.
    pub owners: Vec<Rank>,
    /// By rank: its first progress stream; one more at the end.
    firsts: Vec<u32>,
    /// By progress stream: the communicator on which it meets its rank.
    meetings: Vec<i32>,
    /// By non-blocking execution: the streams of the members, in the order of the communicator.
    members: HashMap<u32, Vec<Rank>>,
}

/// A non-blocking call of a rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgressStream {
    /// Its number among those of the rank.
    pub number: usize,
    /// The communicator of the two.
    pub meeting: i32,
}

impl ProgressStreams {
    /// Those that the expanded executions of a program need.
    pub(super) fn new(program: &Program, found: &Executions) -> ProgressStreams {
        let mut progress = ProgressStreams {
            firsts: vec![0],
            ..ProgressStreams::default()
        };
        if program
            .calls
            .iter()
            .all(|call| call.mode != CollectiveMode::NonBlocking)
        {
            progress.firsts.resize(program.ranks() + 1, 0);
            return progress;
        }
        for rank in Rank::all(program.ranks()) {
            progress.add_rank(program, found, rank);
        }
        let known: HashSet<i32> = program
            .communicators
            .iter()
            .map(|communicator| communicator.id)
            .collect();
        progress.meetings = (i32::MIN..)
            .filter(|id| !known.contains(id))
            .take(progress.owners.len())
            .collect();
        progress
    }

    /// A progress stream serves a rank again once the rank has waited for it; of those at rest the lowest is taken.
    fn add_rank(&mut self, program: &Program, found: &Executions, rank: Rank) {
        let first = program.ranks() as u32 + self.owners.len() as u32;
        let (mut count, mut resting, mut busy) = (0, BTreeSet::new(), HashMap::new());
        for (_, op) in program.ops(rank) {
            match op {
                Op::Collective { call, instance } => {
                    let call = &program.calls[call as usize];
                    if call.mode != CollectiveMode::NonBlocking
                        || found.groups_of[instance as usize].is_none()
                    {
                        continue;
                    }
                    let number = resting.pop_first().unwrap_or(count);
                    count = count.max(number + 1);
                    busy.insert(instance, number);
                    let members = &program.communicators[call.communicator as usize].members;
                    let place = found
                        .place(call.communicator, rank)
                        .expect("a member made the call");
                    let streams = self
                        .members
                        .entry(instance)
                        .or_insert_with(|| members.clone());
                    streams[place as usize] = Rank(first + number);
                }
                Op::WaitCollective(instance) => resting.extend(busy.remove(&instance)),
                _ => {}
            }
        }
        self.owners
            .extend(std::iter::repeat_n(rank, count as usize));
        self.firsts.push(self.owners.len() as u32);
    }

    /// The number of streams of a rank.
    pub(super) fn count(&self, rank: Rank) -> usize {
        (self.firsts[rank.index() + 1] - self.firsts[rank.index()]) as usize
    }

    /// The streams that carry out an execution, if any member's call is non-blocking.
    pub(super) fn members(&self, instance: u32) -> Option<&[Rank]> {
        self.members.get(&instance).map(Vec::as_slice)
    }

    /// The progress stream that is this stream.
    pub(super) fn stream(&self, stream: Rank) -> ProgressStream {
        let index = stream.index() - (self.firsts.len() - 1);
        let first = self.firsts[self.owners[index].index()] as usize;
        ProgressStream {
            number: index - first,
            meeting: self.meetings[index],
        }
    }

    /// The communicators of ranks with their progress streams.
    pub(super) fn communicators(&self) -> impl Iterator<Item = Communicator> + '_ {
        let ranks = self.firsts.len() as u32 - 1;
        let streams = (ranks..).map(Rank);
        let pairs = self
            .owners
            .iter()
            .zip(streams)
            .map(|(rank, stream)| vec![*rank, stream]);
        self.meetings
            .iter()
            .zip(pairs)
            .map(|(id, members)| Communicator { id: *id, members })
    }
}

impl ProgressStream {
    /// A meeting of the two, at the begin or the end of an operation.
    pub(super) fn meets(
        &self,
        op: flowcast_units::CollectiveOp,
        mode: CollectiveMode,
    ) -> CallRecord {
        CallRecord {
            op,
            ..CallRecord::barrier(self.meeting, mode)
        }
    }
}
