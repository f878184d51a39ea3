//! Measurements over real networks: the part of Flowcast that has a clock and sockets.
//!
//! [`prtt`] measures parametrised round-trip times, from which `flowcast-fit` estimates LogGP parameters. It knows its
//! network only as a [`transport::Transport`]:
//!
//! - [`tcp`] connects two processes, [`loopback`] two threads of one, [`shm`] two processes of one machine in its memory;
//! - [`virtual_network`] is a fake made of LogGP parameters with a clock of its own: a measurement over it and the fit
//!   return these parameters.
//!
//! [`check`] tells in two seconds whether a network still is what its file says. [`clocks`] gives all ranks one time. [`mpi`] carries
//! patterns of concurrent flows between the ranks of an installed MPI library. [`lab`] is a testbed of Linux namespaces.

pub mod budget;
pub mod check;
pub mod clocks;
mod error;
#[cfg(target_os = "linux")]
pub mod lab;
pub mod loopback;
pub mod mpi;
pub mod prtt;
mod script;
#[cfg(target_os = "linux")]
pub mod shm;
pub mod tcp;
pub mod transport;
pub mod virtual_network;
mod wire;
