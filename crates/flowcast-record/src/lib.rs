//! The recorder: loaded into an MPI program before its MPI library, it writes down what the program calls.
//!
//! Each function of MPI that matters is exported under its own names (C, Fortran, `mpi_f08`) and forwards to the real
//! one, which the dynamic linker finds behind it. Handles and buffers pass through as machine words, so that one
//! library serves Open MPI and MPICH alike; which of them it is is seen at run time. A call comes in
//! at `wrap` and is written down by `note`; the format of the files is that of the crate `flowcast_recording`.
//!
//! MPICH's Fortran functions call those of C, which are recorded. Open MPI's call the profiling names, which nobody can
//! intercept, so there the Fortran names are recorded, and those of `mpi_f08` in both. A call inside of another is
//! passed through.
//!
//! Nothing here may fail loudly inside somebody's program: what cannot be recorded is passed through.

#![expect(
    unsafe_code,
    reason = "called by MPI programs, and calls their MPI library"
)]

mod arguments;
mod clock;
mod communicators;
mod completions;
mod dictionary;
pub mod encoder;
mod entry;
mod functions;
mod handles;
mod idle;
mod library;
mod lock;
mod neighbours;
mod note;
mod own_file;
mod requests;
mod session;
mod start;
mod synchronise;
mod threads;
mod wrap;
mod wrappers;
