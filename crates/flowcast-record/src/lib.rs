//! The recorder: loaded into an MPI program before its MPI library, it writes down what the program calls.
//!
//! Each function of MPI that matters has a wrapper under each of its names (C, Fortran, `mpi_f08`). `binding` puts the wrappers
//! where the program finds the functions of its MPI library, and only those that the library has; `loading` says when. Handles
//! and buffers pass through as machine words, so that one recorder serves each library; its constants are chosen at run time.
//! A call comes in at `wrap` and is written down by `note`; the format of the files is that of the crate `flowcast_recording`.
//!
//! MPICH's Fortran functions call those of C, which are recorded. Open MPI's call the profiling names, which nobody can
//! intercept, so there the Fortran names are recorded, and those of `mpi_f08` in both. A call inside of another is
//! passed through.
//!
//! Nothing here may fail inside somebody's program: what cannot be recorded is passed through, and the reason is left for
//! `flowcast record` to say.

#![expect(
    unsafe_code,
    reason = "called by MPI programs, and calls their MPI library"
)]

mod arguments;
mod binding;
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
#[cfg_attr(sanitized, allow(dead_code))]
mod loading;
mod lock;
mod memory;
mod neighbours;
mod note;
mod objects;
mod own_file;
mod requests;
mod session;
mod start;
mod synchronise;
mod threads;
mod wrap;
mod wrappers;
