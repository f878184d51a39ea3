//! Writers of generated workloads, one step after the other: the memory does not grow with the number of messages.

use std::io::{self, Write};

use super::generate::ProgramShape;
use flowcast_units::Rank;

/// Writes a Dimemas trace.
///
/// # Errors
/// The errors of `out`, or a computation that no reader accepts.
pub fn dim(shape: ProgramShape, out: &mut dyn Write) -> io::Result<()> {
    shape.check()?;
    super::dim_steps(
        shape.workload.name(),
        shape.ranks,
        |rank| shape.steps(rank),
        out,
    )
}

/// Writes a GOAL schedule.
///
/// # Errors
/// The errors of `out`, or a computation that no reader accepts.
pub fn goal(shape: ProgramShape, out: &mut dyn Write) -> io::Result<()> {
    shape.check()?;
    super::goal_steps(shape.ranks, |rank| shape.steps(rank), out)
}

/// Writes one rank of a SimGrid time-independent trace; computations count operations of a host of 1 Gflop/s.
///
/// # Errors
/// The errors of `out`, or a computation that no reader accepts.
pub fn simgrid_rank(shape: ProgramShape, rank: Rank, out: &mut dyn Write) -> io::Result<()> {
    shape.check()?;
    super::ti_steps(shape.steps(rank), rank, out)
}
