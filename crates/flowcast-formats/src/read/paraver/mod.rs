//! Paraver traces (`.prv`): running states, messages, collective calls and events, as Extrae and Dimemas write them.
//!
//! A trace of this form says when things happened, not what the program called. What it called is put together again:
//! computation from the running states; for each message a non-blocking eager send at its logical send time, a non-blocking
//! receive at its logical receive time, and a wait for it at the time when both were called and the data was there.
//! Sends stand before waits of the same time, so that every wait is for a send that stands earlier: what is read can
//! always be replayed, clocks out of step included. Time in other states is left to the network to predict.

mod body;
mod header;
mod program;

use super::scan::{ScanInput, bytes_of};
use flowcast_program::{
    ReadOptions, TraceError,
    program::{Program, SharedBytes},
};

/// How the format begins.
pub(super) const MAGIC: &[u8] = b"#Paraver";

/// Reads a trace.
pub(super) fn read(
    name: &str,
    bytes: SharedBytes,
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let input = ScanInput {
        name,
        text: bytes_of(&bytes),
    };
    let (header, at) = header::read(input)?;
    let body = body::read(input, at, &header)?;
    program::build(name, header, body, options)
}

#[cfg(test)]
mod tests;
