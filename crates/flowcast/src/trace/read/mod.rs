//! Readers: one file for each format, chosen by content.

mod cursor;
mod dim;
mod goal;
mod known_lines;
mod paraver;
mod recorded;
mod scan;
mod simgrid;

use std::io::{self, Read};
use std::sync::Arc;

use super::program::SharedBytes;
use super::{ReadOptions, Trace, TraceError, compiled};

pub use recorded::{
    Clock, REGION, files as recorded_files, program as recorded_program, region_names as recorded_regions,
};

/// Opens the files that a trace consists of beside the first: gives the bytes of a name as the trace writes it.
pub type OpenPart<'a> = &'a mut dyn FnMut(&str) -> io::Result<SharedBytes>;

/// Reads a trace of any known format. `name` stands in messages only.
///
/// # Errors
/// [`TraceError`]: what was found at which line, and what was expected.
pub fn read(name: &str, bytes: SharedBytes, open: OpenPart<'_>, options: ReadOptions) -> Result<Trace, TraceError> {
    let bytes = unpacked(name, bytes)?;
    let text = (*bytes).as_ref();
    if text.starts_with(compiled::MAGIC) {
        return compiled::read(name, bytes);
    }
    if text.starts_with(b"#DIMEMAS:") {
        return dim::read(name, bytes, options).map(Trace::Program);
    }
    if text.starts_with(paraver::MAGIC) {
        return paraver::read(name, bytes, options).map(Trace::Program);
    }
    if recorded::recognises(text) {
        return recorded::read(name, text, open, options).map(Trace::Program);
    }
    if goal::recognises(text) {
        return goal::read(name, text).map(Trace::Schedule);
    }
    if simgrid::recognises(text) {
        return simgrid::read(name, bytes, open, options).map(Trace::Program);
    }
    Err(TraceError::Unrecognised { name: name.to_owned(), found: beginning(text) })
}

/// The content behind gzip or zstd, or the bytes themselves.
///
/// # Errors
/// [`TraceError::Damaged`].
pub fn unpacked(name: &str, bytes: SharedBytes) -> Result<SharedBytes, TraceError> {
    let packed = (*bytes).as_ref();
    let mut plain = Vec::new();
    let done = if packed.starts_with(&[0x1F, 0x8B]) {
        flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut plain)
    } else if packed.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) {
        zstd::stream::read::Decoder::new(packed).and_then(|mut decoder| decoder.read_to_end(&mut plain))
    } else {
        return Ok(bytes);
    };
    match done {
        Ok(_) => Ok(Arc::new(plain)),
        Err(error) => Err(TraceError::Damaged { name: name.to_owned(), problem: format!("cannot unpack: {error}") }),
    }
}

fn beginning(text: &[u8]) -> String {
    if text.is_empty() {
        return "an empty file".to_owned();
    }
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or(text);
    let shown = String::from_utf8_lossy(&line[..line.len().min(40)]);
    format!("`{}`", shown.escape_default())
}
