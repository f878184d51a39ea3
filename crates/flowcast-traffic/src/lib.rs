//! Concurrent flows over a network: event queues, simulations packet by packet, and fluid simulations.
//!
//! [`flows::concurrent`] predicts patterns of messages and chooses between fluids and packets. [`queues`] contains the event
//! queues of both and of the replay.

pub mod flows;
pub mod packet;
pub mod queues;
