//! Paraver traces (`.prv`), written by Extrae and Dimemas: running states, messages, collective calls and events.
//!
//! A trace in this format records the times of events, not the program's calls. The calls are reconstructed. Computation
//! follows from the running states. Each message becomes a non-blocking eager send at its logical send time, a non-blocking
//! receive at its logical receive time, and a wait for it at the time when both were called and the data had arrived. At
//! equal times, sends precede waits, so every wait is for an earlier send. The result can therefore always be replayed, even
//! if clocks are out of step. Time in other states is predicted by the network.

mod body;
mod header;
mod program;

use super::scan::{ScanInput, bytes_of};
use flowcast_program::{
    ReadOptions, TraceError,
    program::{Program, SharedBytes},
};

/// First bytes of the format.
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
