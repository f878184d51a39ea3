//! Patterns carried by MPI: each rank is a process of this program with the installed MPI library loaded.
//!
//! Rank 0 reads orders from its standard input and answers on its standard output, one per line:
//!
//! ```text
//! > (started)
//! < {"ready":"Open MPI v4.1.4, ..."}         version of the library
//! < {"hosts":["node0","node1"]}              host of each rank
//! > [[0,1,4000000,0],[1,0,4000000,250]]      source rank, destination rank, bytes, start in ns of each message
//! < {"carried":[[1200,680012345],...]}       start and end in ns of each message, from the common start on
//! ```
//!
//! The end of the input ends all ranks. Messages use `MPI_Isend` and `MPI_Irecv`; a receiver posts its receives before the
//! common start.

mod carry;
#[expect(unsafe_code, reason = "calls the C functions of the MPI library")]
mod library;
mod orders;

use std::io;

use thiserror::Error;

pub use carry::{CarriedMessage, MOST_FLOWS, MpiCarrier};
pub use library::Mpi;
pub use orders::{Order, Reply, serve};

/// Error of a rank.
#[derive(Debug, Error)]
pub enum MpiError {
    /// No MPI library with one of these names exists.
    #[error("found no MPI library, expected one of {0}; start this under mpirun")]
    NoLibrary(String),
    /// The library lacks a function of MPI 3.
    #[error("the MPI library has no {0}, expected a library of MPI 3 or later")]
    NoSymbol(String),
    /// A call of MPI failed.
    #[error("{function} failed with code {code}")]
    Refused {
        /// Name of the function.
        function: &'static str,
        /// Error code that it returned.
        code: i32,
    },
    /// The message is too long: MPI counts bytes with 31 bits.
    #[error("found a message of {0} bytes, expected at most 2147483647")]
    TooLong(usize),
    /// The order is invalid.
    #[error("found the order `{0}`, expected a list with four numbers for each message")]
    Order(String),
    /// Orders could not be read, or answers could not be written.
    #[error(transparent)]
    Stream(#[from] io::Error),
}
