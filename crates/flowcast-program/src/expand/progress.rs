//! Non-blocking collectives, whose messages move while their rank continues.
//!
//! Each is carried out on a *progress stream* of its rank: an additional stream of instructions on the same node, which
//! occupies no processor. The rank and its progress stream synchronise twice, in collectives of the two that take no time.
//! The first one is at the call of the operation; the progress stream then starts to work. The second one is at the rank's
//! wait for the end. A rank has as many progress streams as it has operations in flight at the same time. Therefore, no
//! operation waits for an earlier one.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Executions;
use crate::{
    build::CallRecord,
    opcodes::Op,
    program::{CollectiveMode, Communicator, Program},
};
use flowcast_units::Rank;

/// Progress streams that carry out the non-blocking operations of a program.
#[derive(Default)]
pub(super) struct ProgressStreams {
    /// Rank of each progress stream.
    pub owners: Vec<Rank>,
    /// Index of each rank's first progress stream, with one more entry at the end.
    firsts: Vec<u32>,
    /// Communicator on which each progress stream synchronises with its rank.
    meetings: Vec<i32>,
    /// Streams of the members of each non-blocking execution, in the order of the communicator.
    members: HashMap<u32, Vec<Rank>>,
}

/// A progress stream of a rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgressStream {
    /// Number among the progress streams of the rank.
    pub number: usize,
    /// Communicator of the rank and the progress stream.
    pub meeting: i32,
}

impl ProgressStreams {
    /// Creates the progress streams that the expanded executions of a program need.
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

    /// Adds the progress streams of a rank. A stream is free again after the rank has waited for it. Each operation uses the
    /// lowest free stream.
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

    /// Number of progress streams of a rank.
    pub(super) fn count(&self, rank: Rank) -> usize {
        (self.firsts[rank.index() + 1] - self.firsts[rank.index()]) as usize
    }

    /// Streams that carry out an execution; `None` unless any member's call is non-blocking.
    pub(super) fn members(&self, instance: u32) -> Option<&[Rank]> {
        self.members.get(&instance).map(Vec::as_slice)
    }

    /// Returns the progress stream with this number among all streams.
    pub(super) fn stream(&self, stream: Rank) -> ProgressStream {
        let index = stream.index() - (self.firsts.len() - 1);
        let first = self.firsts[self.owners[index].index()] as usize;
        ProgressStream {
            number: index - first,
            meeting: self.meetings[index],
        }
    }

    /// Communicators of ranks with their progress streams.
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
    /// Returns the collective that synchronises the rank and the stream, at the start or the end of an operation.
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
