//! Preparations of a program for formats that require them.

use super::Losses;
use flowcast_program::{blocking, program::Program};

const NON_BLOCKING: &str =
    "non-blocking collectives; the format has none, so each becomes a blocking one at its start";

/// Returns the program with its non-blocking collectives replaced by blocking ones at their starts, or `None` if it has
/// none.
pub fn with_blocking_collectives(program: &Program) -> Option<(Program, Losses)> {
    let (changed, concerned) = blocking::with_blocking_collectives(program)?;
    let mut losses = Losses::default();
    losses.add(NON_BLOCKING, concerned);
    Some((changed, losses))
}

/// Returns `true` if a communicator contains all ranks in their order.
pub fn is_plain_world(program: &Program, communicator: u32) -> bool {
    let members = &program.communicators()[communicator as usize].members;
    members.len() == program.ranks()
        && members
            .iter()
            .zip(0..)
            .all(|(member, rank)| member.0 == rank)
}
