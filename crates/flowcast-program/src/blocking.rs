//! Programs for formats that have no non-blocking collectives.

use crate::{
    opcodes::{self, Op},
    program::{CollectiveCall, CollectiveMode, Program, RankStream},
};
use flowcast_units::Rank;

/// Returns the program with its non-blocking collectives made blocking at their starts, and the number of changed collective
/// instructions. Returns `None` if the program has no non-blocking collective.
pub fn with_blocking_collectives(program: &Program) -> Option<(Program, u64)> {
    if !program.calls.iter().any(CollectiveCall::is_non_blocking) {
        return None;
    }
    let calls = program.collective_ops();
    let concerned = calls.filter(|(_, call, _)| program.calls[*call as usize].is_non_blocking());
    let concerned = concerned.count();
    let mut changed = program.clone();
    for call in &mut changed.calls {
        if call.is_non_blocking() {
            call.mode = CollectiveMode::Blocking;
        }
    }
    for (rank, stream) in (0u32..).zip(&mut changed.streams) {
        let first_slot = stream.first_slot;
        *stream = RankStream::new(without_waits(program.words(Rank(rank))), first_slot);
    }
    Some((changed, concerned as u64))
}

fn without_waits(old: &[u32]) -> Vec<u32> {
    let mut new = Vec::with_capacity(old.len());
    opcodes::rewrite(old, &mut new, |op| {
        if matches!(op, Op::WaitCollective(_)) {
            Op::Nothing
        } else {
            op
        }
    });
    new
}
