//! The recorder: it is loaded into an MPI program before its MPI library and writes down the program's calls.
//!
//! Each relevant function of MPI has a wrapper under each of its names (C, Fortran, `mpi_f08`). `binding` redirects the
//! program's MPI calls to the wrappers, but only for functions that the MPI library has; `loading` determines when. Handles
//! and buffers pass through as machine words, so one recorder serves all libraries; the constants are chosen at run time. A
//! call enters at `wrap`, and `note` writes it down. The crate `flowcast_recording` defines the file format.
//!
//! MPICH's Fortran functions call its C functions, which are recorded. Open MPI's Fortran functions call the profiling
//! names, which cannot be intercepted, so the Fortran names are recorded there. The names of `mpi_f08` are recorded with
//! both libraries. A call within another call is passed through.
//!
//! The recorder must not fail, because it runs inside the user's program. A call that cannot be recorded is passed through,
//! and `flowcast record` reports the reason afterwards.

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
