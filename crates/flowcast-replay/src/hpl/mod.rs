//! How long High Performance Linpack takes on a machine.

mod factor;
mod machine;
mod simulation;

pub use machine::{Channel, Machine};
pub use simulation::{Outcome, Simulation, Spent};
