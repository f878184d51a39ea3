//! Concurrent flows: as fluids whose rates change from event to event, with queues that follow, or packet by packet.
//!
//! [`concurrent`] predicts how long a communication pattern takes and chooses the method.

pub mod concurrent;
mod end_queue;
pub mod fluid;
pub mod in_flight;
pub mod quasi_dynamic;
pub mod traffic;
pub mod transient;
