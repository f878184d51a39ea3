//! How long a collective operation takes that nothing else disturbs, from the steps of its algorithm.
//!
//! The replay of programs could tell it as well; what is here takes a tenth of its time, because messages are matched once
//! for all sizes and machines ([`CollectivePlan`]), and knows what single operations on real machines are made of: what a
//! message costs by its size and the level of the network that it crosses ([`MessageCosts`]), long messages that share a
//! port, ranks that share an interface, late arrivals by chance. `tests/it/collective_steps.rs` compares the two.

mod clocks;
mod plan;
mod shared_ports;

pub(crate) use clocks::{MessageCosts, StepCosts, slowest_rank};
pub(crate) use plan::{CollectivePlan, MessageSize};
pub(crate) use shared_ports::SharedPorts;
