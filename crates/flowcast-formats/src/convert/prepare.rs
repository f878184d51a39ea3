//! What some formats need done to a program before it is written.

use super::Losses;
use flowcast_program::{blocking, program::Program};

const NON_BLOCKING: &str = "non-blocking collectives; the format has none, they are written as blocking ones where they start";

/// The program with its non-blocking collectives as blocking ones where they start; `None` if it has none.
pub fn with_blocking_collectives(program: &Program) -> Option<(Program, Losses)> {
    let (changed, concerned) = blocking::with_blocking_collectives(program)?;
    let mut losses = Losses::default();
    losses.add(NON_BLOCKING, concerned);
    Some((changed, losses))
}

/// Whether a communicator is all ranks in their order.
pub fn is_plain_world(program: &Program, communicator: u32) -> bool {
    let members = &program.communicators()[communicator as usize].members;
    members.len() == program.ranks()
        && members
            .iter()
            .zip(0..)
            .all(|(member, rank)| member.0 == rank)
}
