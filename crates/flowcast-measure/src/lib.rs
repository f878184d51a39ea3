//! Measurements over real networks: the part of Flowcast that uses clocks and sockets.
//!
//! [`prtt`] measures parametrised round-trip times, from which `flowcast-fit` estimates LogGP parameters. It accesses its
//! network only as a [`transport::Transport`]:
//!
//! - [`tcp`] connects two processes, [`loopback`] two threads of one process, [`shm`] two processes of one machine through
//!   its memory;
//! - [`virtual_network`] simulates a network with given LogGP parameters and virtual time. A measurement over it and the fit
//!   return these parameters.
//!
//! [`check`] determines within two seconds whether a network still matches its file. [`clocks`] gives all ranks a common
//! time. [`mpi`] carries patterns of concurrent flows between the ranks of an installed MPI library. [`lab`] is a virtual
//! cluster of Linux namespaces.

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
