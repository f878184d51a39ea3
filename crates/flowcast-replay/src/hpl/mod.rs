//! How long High Performance Linpack takes on a machine.

mod factor;
mod machine;
mod simulation;

pub use machine::{HplChannel, Machine};
pub use simulation::{HplOutcome, Simulation, Spent};
