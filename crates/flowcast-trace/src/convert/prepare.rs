//! What some formats need done to a program before it is written.

use super::Losses;
use crate::opcodes::{self, Op};
use crate::program::{CollectiveMode, Program, Stream, StreamWords};
use flowcast_units::Rank;

const NON_BLOCKING: &str =
    "non-blocking collectives; the format has none, they are written as blocking ones where they start";

/// The program with its non-blocking collectives as blocking ones where they start; `None` if it has none.
pub fn with_blocking_collectives(program: &Program) -> Option<(Program, Losses)> {
    if program.calls.iter().all(|call| call.mode != CollectiveMode::NonBlocking) {
        return None;
    }
    let is_non_blocking = |call: u32| program.calls[call as usize].mode == CollectiveMode::NonBlocking;
    let mut losses = Losses::default();
    for (_, op) in (0..program.ranks() as u32).flat_map(|rank| program.ops(Rank(rank))) {
        if matches!(op, Op::Collective { call, .. } if is_non_blocking(call)) {
            losses.count(NON_BLOCKING);
        }
    }
    let mut changed = program.clone();
    for call in changed.calls.iter_mut().filter(|call| call.mode == CollectiveMode::NonBlocking) {
        call.mode = CollectiveMode::Blocking;
    }
    for (rank, stream) in (0u32..).zip(&mut changed.streams) {
        let first_slot = stream.first_slot;
        *stream = Stream { words: StreamWords::Owned(without_waits(program.words(Rank(rank)))), first_slot };
    }
    Some((changed, losses))
}

fn without_waits(old: &[u32]) -> Vec<u32> {
    let mut new = Vec::with_capacity(old.len());
    opcodes::rewrite(old, &mut new, |op| if matches!(op, Op::WaitCollective(_)) { Op::Nothing } else { op });
    new
}

/// Whether a communicator is all ranks in their order.
pub fn is_plain_world(program: &Program, communicator: u32) -> bool {
    let members = &program.communicators()[communicator as usize].members;
    members.len() == program.ranks() && members.iter().zip(0..).all(|(member, rank)| member.0 == rank)
}
