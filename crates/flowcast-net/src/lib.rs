//! Measurements over real networks: the part of Flowcast that has a clock and sockets.
//!
//! [`prtt`] measures parametrised round-trip times, from which `flowcast-fit` estimates LogGP parameters. It knows its
//! network only as a [`transport::Transport`]:
//!
//! - [`tcp`] connects two processes, [`loopback`] two threads of one;
//! - [`virtual_network`] is a fake made of LogGP parameters with a clock of its own: a measurement over it and the fit
//!   return these parameters.
//!
//! [`mpi`] carries patterns of concurrent flows between the ranks of an installed MPI library.

#![deny(unsafe_code)]
#![deny(unreachable_pub)]

pub mod loopback;
pub mod mpi;
mod pilot;
pub mod prtt;
mod script;
pub mod tcp;
pub mod transport;
pub mod virtual_network;
