//! Checks of compiled programs. Their tables and streams must be as consistent as those of a linked program, so that replays
//! and writers need no checks.
//!
//! The properties that linking establishes are checked again: every slot has one sender; every member of a communicator
//! makes each of its calls once and in order, with the same operation; a wait follows the operation that it waits for; a
//! progress stream communicates only with its rank.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Damage;
use crate::{
    opcodes::{self, Op},
    program::Program,
    slot::Slot,
};
use flowcast_units::{Bytes, Rank};

/// Properties of the whole program, computed from its streams.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub bytes: Bytes,
    pub self_messages: bool,
    /// Number of its last sends that a stream may still wait for, indexed by stream.
    pub awaited_sends: Vec<u32>,
}

/// Checks a program.
///
/// # Errors
/// The first inconsistency.
pub(super) fn check(program: &Program) -> Result<Totals, Damage> {
    check_tables(program).ok_or("found a table with a reference outside the tables")?;
    check_progress(program)
        .ok_or("found progress streams that are not in the order of their ranks' communicators")?;
    check_threads(program)
        .ok_or("found threads that are not numbered in the order of their tasks")?;
    let mut check = ProgramCheck::new(program)?;
    for stream in Rank::all(program.streams()) {
        check.stream(stream)?;
    }
    check.whole()
}

fn is_inside(value: u32, limit: usize) -> Option<()> {
    ((value as usize) < limit).then_some(())
}

fn check_tables(program: &Program) -> Option<()> {
    let (streams, ranks) = (program.streams(), program.ranks());
    program
        .progress
        .iter()
        .try_for_each(|rank| is_inside(rank.0, ranks))?;
    for communicator in &program.communicators {
        communicator
            .members
            .iter()
            .try_for_each(|rank| is_inside(rank.0, streams))?;
    }
    program
        .instances
        .iter()
        .try_for_each(|index| is_inside(*index, program.communicators.len()))?;
    for call in &program.calls {
        is_inside(call.communicator, program.communicators.len())?;
        call.root
            .map_or(Some(()), |root| is_inside(root.0, ranks))?;
    }
    program.accesses.iter().try_for_each(|access| {
        access
            .target()
            .map_or(Some(()), |rank| is_inside(rank.0, ranks))
    })
}

/// Checks that a communicator with a progress stream consists of that stream and its rank.
fn check_progress(program: &Program) -> Option<()> {
    let is_stream = |rank: &Rank| rank.index() >= program.ranks();
    let beside = program
        .communicators
        .iter()
        .filter(|communicator| communicator.members.iter().any(is_stream));
    beside
        .map(|communicator| &communicator.members)
        .all(|members| matches!(members[..], [rank, stream] if !is_stream(&rank) && program.owner(stream) == rank))
        .then_some(())
}

/// Checks that each rank is the next thread of its task, or the first of the next task.
fn check_threads(program: &Program) -> Option<()> {
    let threads = &program.threads;
    let is_whole = threads.len() == program.ranks()
        && threads.first() == Some(&(0, 0))
        && threads.windows(2).all(|pair| {
            let ((task, thread), next) = (pair[0], pair[1]);
            Some(next) == thread.checked_add(1).map(|thread| (task, thread))
                || Some(next) == task.checked_add(1).map(|task| (task, 0))
        });
    (threads.is_empty() || is_whole).then_some(())
}

/// State after the streams checked so far.
struct ProgramCheck<'a> {
    program: &'a Program,
    /// `true` if a send fills the slot, indexed by slot.
    filled: Vec<bool>,
    /// Members of each communicator, each once and sorted.
    members: Vec<Vec<Rank>>,
    /// Number of members that have called each execution, and the index of the latest of these calls.
    executions: Vec<(u32, u32)>,
    totals: Totals,
}

/// Operations that a stream has started.
#[derive(Default)]
struct OpenRecord {
    received: u32,
    sent: u32,
    /// Last execution that was called, by communicator.
    last_call: HashMap<u32, u32>,
    /// Non-blocking executions that have not been waited for.
    collectives: HashSet<u32>,
}

impl<'a> ProgramCheck<'a> {
    fn new(program: &'a Program) -> Result<ProgramCheck<'a>, Damage> {
        let mut ids = BTreeSet::new();
        if !program
            .communicators
            .iter()
            .all(|communicator| ids.insert(communicator.id))
        {
            return Err("found a communicator twice".into());
        }
        Ok(ProgramCheck {
            program,
            filled: vec![false; program.slots as usize],
            members: program
                .communicators
                .iter()
                .map(|communicator| sorted(&communicator.members))
                .collect(),
            executions: vec![(0, 0); program.instances.len()],
            totals: Totals {
                awaited_sends: vec![0; program.streams()],
                ..Totals::default()
            },
        })
    }

    fn stream(&mut self, stream: Rank) -> Result<(), Damage> {
        let words = self.program.words(stream);
        let mut begun = OpenRecord::default();
        let mut at = 0;
        while at < words.len() {
            let (op, next) = opcodes::decode(words, at)
                .ok_or("found an instruction that is unknown or incomplete")?;
            self.instruction(stream, op, &mut begun)?;
            at = next;
        }
        if begun.received != self.program.posts(stream) {
            return Err("found different numbers of receives in a stream and in the tables".into());
        }
        Ok(())
    }

    fn instruction(&mut self, stream: Rank, op: Op, begun: &mut OpenRecord) -> Result<(), Damage> {
        let program = self.program;
        let is_right = match op {
            Op::Send { class, slot } => {
                begun.sent += 1;
                self.send(stream, class, slot)
            }
            Op::Recv | Op::Irecv => {
                begun.received += 1;
                Some(())
            }
            Op::WaitRecv(slot) => is_inside(slot, begun.received as usize),
            Op::WaitSend(ago) => {
                let awaited = &mut self.totals.awaited_sends[stream.index()];
                *awaited = (*awaited).max(ago + 1);
                is_inside(ago, begun.sent as usize)
            }
            Op::Collective { call, instance } => {
                return self.collective(stream, call, instance, begun);
            }
            Op::WaitCollective(instance) => begun.collectives.remove(&instance).then_some(()),
            Op::Event(event) => is_inside(event, program.events.len()),
            Op::Access(access) => is_inside(access, program.accesses.len()),
            Op::Compute(_) | Op::Accelerator(_) | Op::Nothing | Op::Ignored(_) => Some(()),
        };
        Ok(is_right.ok_or(
            "found an instruction with a reference outside the tables, \
                            or to an operation that was not started",
        )?)
    }

    fn send(&mut self, stream: Rank, class: u32, slot: Slot) -> Option<()> {
        let class = self.program.classes.get(class as usize)?;
        let filled = self.filled.get_mut(slot.index())?;
        self.totals.bytes.0 = self.totals.bytes.0.saturating_add(class.size.0);
        self.totals.self_messages |= self.program.receiver(slot) == stream;
        (!std::mem::replace(filled, true)).then_some(())
    }

    fn collective(
        &mut self,
        stream: Rank,
        call: u32,
        instance: u32,
        begun: &mut OpenRecord,
    ) -> Result<(), Damage> {
        let program = self.program;
        let made = program
            .calls
            .get(call as usize)
            .ok_or("found a collective call outside the table")?;
        let on = *program
            .instances
            .get(instance as usize)
            .ok_or("found a collective outside the table")?;
        if on != made.communicator {
            return Err(
                "found a collective call on another communicator than its execution".into(),
            );
        }
        if self.members[on as usize].binary_search(&stream).is_err() {
            return Err("found a collective call of a rank outside the communicator".into());
        }
        if begun
            .last_call
            .insert(on, instance)
            .is_some_and(|last| last >= instance)
        {
            return Err("found the collectives of a communicator out of order".into());
        }
        if made.is_non_blocking() {
            begun.collectives.insert(instance);
        }
        let (called, first) = &mut self.executions[instance as usize];
        if *called > 0 && program.calls[*first as usize].op != made.op {
            return Err("found different operations in one execution of a collective".into());
        }
        (*called, *first) = (*called + 1, call);
        Ok(())
    }

    fn whole(self) -> Result<Totals, Damage> {
        if self.filled.contains(&false) {
            return Err("found a receive without a send".into());
        }
        if !self
            .executions
            .iter()
            .zip(&self.program.instances)
            .all(|(execution, on)| execution.0 as usize == self.members[*on as usize].len())
        {
            return Err(
                "found a collective that only some members of its communicator call".into(),
            );
        }
        Ok(self.totals)
    }
}

fn sorted(members: &[Rank]) -> Vec<Rank> {
    let mut members = members.to_vec();
    members.sort_unstable();
    members.dedup();
    members
}
