//! Time of a collective operation without disturbance, from the steps of its algorithm.
//!
//! In contrast to the replay of programs, this evaluation models the details of single operations on real machines: costs of
//! a message by its size and by the level of the network that it crosses ([`MessageCosts`]), long messages that share a
//! port, ranks that share an interface, and random late arrivals. Messages are matched once for all sizes and machines
//! ([`CollectivePlan`]). `tests/it/collective_steps.rs` compares this evaluation with the replay where both have the same
//! model.

mod clocks;
mod plan;
mod shared_ports;

pub(crate) use clocks::{MessageCosts, StepCosts, slowest_rank};
pub(crate) use plan::{CollectivePlan, MessageSize};
pub(crate) use shared_ports::SharedPorts;
