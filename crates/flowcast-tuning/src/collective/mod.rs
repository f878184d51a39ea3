//! Time of a collective operation that nothing else disturbs, from the steps of its algorithm.
//!
//! This evaluation knows the parts of single operations on real machines, which the replay of programs does not: the cost of a
//! message by its size and the level of the network that it crosses ([`MessageCosts`]), long messages that share a port, ranks
//! that share an interface, and random late arrivals. Messages are matched once for all sizes and machines ([`CollectivePlan`]).
//! `tests/it/collective_steps.rs` compares both where they model the same.

mod clocks;
mod plan;
mod shared_ports;

pub(crate) use clocks::{MessageCosts, StepCosts, slowest_rank};
pub(crate) use plan::{CollectivePlan, MessageSize};
pub(crate) use shared_ports::SharedPorts;
