//! The part of Flowcast that has a clock and a network: transports, and the experiments that run over them.
//!
//! An experiment knows its network only as a [`transport::Transport`]: real TCP ([`tcp`]), or a network made of LogGP
//! parameters with a clock of its own ([`virtual_network`]), over which measuring and fitting must give these
//! parameters back.

pub mod loopback;
pub mod mpi;
pub mod prtt;
mod script;
pub mod tcp;
pub mod transport;
pub mod virtual_network;
