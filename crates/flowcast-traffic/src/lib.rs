//! Concurrent flows over a network: event queues, packet by packet, and as fluids.
//!
//! [`flows::concurrent`] predicts patterns of messages and chooses between fluids and packets; [`queues`] are the event
//! queues of both and of the replay.

pub mod flows;
pub mod packet;
pub mod queues;
