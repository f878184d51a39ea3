//! Readers: one file for each format, chosen by content.

pub(super) mod calls;
mod chakra;
mod cursor;
mod dim;
mod dumpi;
mod fault;
mod goal;
mod known_lines;
mod liballprof;
mod paraver;
mod parts;
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
    if is_part(text) {
        return read_parts(name, vec![(name.to_owned(), Arc::clone(&bytes))], options);
    }
    if simgrid::recognises(text) {
        let parts = parts::named(name, bytes, open)?;
        let of_ranks = parts.first().is_some_and(|(_, bytes)| is_part((**bytes).as_ref()));
        return match of_ranks {
            true => read_parts(name, parts, options),
            false => simgrid::read(name, &parts, options).map(Trace::Program),
        };
    }
    Err(TraceError::Unrecognised { name: name.to_owned(), found: beginning(text) })
}

/// A file's name and content.
pub type Part = (String, SharedBytes);

/// Whether a file holds what one rank did, in a format that has a file for each rank.
pub fn is_part(text: &[u8]) -> bool {
    liballprof::recognises(text) || dumpi::recognises(text) || chakra::recognises(text)
}

/// Reads a trace with a file for each rank, in the order of the ranks; the first file tells the format.
///
/// # Errors
/// [`TraceError`], as [`read`].
pub fn read_parts(name: &str, parts: Vec<Part>, options: ReadOptions) -> Result<Trace, TraceError> {
    let unpack = |(name, bytes): Part| unpacked(&name, bytes).map(|bytes| (name, bytes));
    let parts: Vec<Part> = parts.into_iter().map(unpack).collect::<Result<_, _>>()?;
    let first = parts.first().map_or(&[][..], |(_, bytes)| (**bytes).as_ref());
    if liballprof::recognises(first) {
        return liballprof::read(name, &parts, options).map(Trace::Program);
    }
    if dumpi::recognises(first) {
        return dumpi::read(name, &parts, options).map(Trace::Program);
    }
    if chakra::recognises(first) {
        return chakra::read(name, &parts, options).map(Trace::Program);
    }
    Err(TraceError::Unrecognised { name: name.to_owned(), found: beginning(first) })
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
