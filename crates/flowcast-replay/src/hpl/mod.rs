//! How long High Performance Linpack takes on a machine.

mod factor;
mod machine;
mod simulation;

pub use machine::{Channel, Machine, SendCost};
pub use simulation::Simulation;
