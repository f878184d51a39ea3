//! The files that a trace consists of: packed ones, lists with a name on each line, and SimGrid's deployments.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use super::scan::{Input, lines};
use super::unknown;
use crate::TraceError;
use crate::program::SharedBytes;

/// Opens the files that a trace consists of beside the first: gives the bytes of a name as the trace writes it.
pub type OpenPart<'a> = &'a mut dyn FnMut(&str) -> io::Result<SharedBytes>;

/// A file's name and content.
pub type Part = (String, SharedBytes);

/// Names of files: one printable word on each line, with a dot or a slash in it.
pub(super) fn is_list(text: &[u8]) -> bool {
    text.len() < 1 << 24
        && std::str::from_utf8(text).is_ok()
        && content_lines(text).next().is_some()
        && content_lines(text).all(|range| is_name(&text[range]))
}

/// One word that names a file.
fn is_name(line: &[u8]) -> bool {
    words_of(line).count() == 1
        && line.iter().any(|byte| matches!(byte, b'.' | b'/'))
        && line.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ' || *byte >= 0x80)
}

/// A SimGrid deployment: XML with the actors, each of which has its file as an argument.
pub(super) fn is_deployment(text: &[u8]) -> bool {
    let head = &text[..text.len().min(1 << 16)];
    head.trim_ascii_start().starts_with(b"<")
        && [&b"<actor"[..], b"<process"].iter().any(|tag| memchr::memmem::find(head, tag).is_some())
        && files_of_actors(text).next().is_some()
}

/// Where the arguments of actors that are names of files stand.
fn files_of_actors(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let arguments = memchr::memmem::find_iter(text, b"<argument").filter(|at| !is_in_comment(&text[..*at]));
    arguments.filter_map(|at| {
        let value = at + memchr::memmem::find(&text[at..], b"value=")? + "value=".len();
        let quote = *text.get(value)?;
        let length = memchr::memchr(quote, &text[value + 1..])?;
        let is_name = matches!(quote, b'"' | b'\'') && is_name(&text[value + 1..value + 1 + length]);
        is_name.then_some(value + 1..value + 1 + length)
    })
}

fn is_in_comment(before: &[u8]) -> bool {
    let last = |mark: &[u8]| memchr::memmem::rfind(before, mark);
    last(b"<!--").is_some_and(|opened| last(b"-->").is_none_or(|closed| closed < opened))
}

/// The files of a list, or of a deployment, with their contents.
///
/// # Errors
/// A file cannot be read or unpacked.
pub(super) fn named(name: &str, text: &[u8], open: OpenPart<'_>) -> Result<Vec<Part>, TraceError> {
    let read = |range: Range<usize>| {
        let file = file_name(text, &range);
        let place = || Input { name, text }.place(range.start);
        let content = open(&file).map_err(|error| TraceError::Part { place: place(), file: file.clone(), error })?;
        let content = unpacked(&file, content)?;
        Ok((file, content))
    };
    ranges_of_names(text).into_iter().map(read).collect()
}

/// The names of files in a list or deployment; none if the text is neither.
pub fn listed(text: &[u8]) -> Vec<String> {
    let ranges = if is_deployment(text) || is_list(text) { ranges_of_names(text) } else { Vec::new() };
    ranges.iter().map(|range| file_name(text, range)).collect()
}

fn ranges_of_names(text: &[u8]) -> Vec<Range<usize>> {
    if is_deployment(text) { files_of_actors(text).collect() } else { content_lines(text).collect() }
}

fn file_name(text: &[u8], range: &Range<usize>) -> String {
    String::from_utf8_lossy(text[range.clone()].trim_ascii()).into_owned()
}

/// The content behind gzip or zstd, or the bytes themselves.
///
/// # Errors
/// [`TraceError::Damaged`] for damage, and for an archive of files.
pub fn unpacked(name: &str, bytes: SharedBytes) -> Result<SharedBytes, TraceError> {
    let packed = (*bytes).as_ref();
    let mut plain = Vec::new();
    let (packing, done) = if packed.starts_with(&[0x1F, 0x8B]) {
        ("gzip", flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut plain))
    } else if packed.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) {
        ("zstd", zstd::stream::read::Decoder::new(packed).and_then(|mut decoder| decoder.read_to_end(&mut plain)))
    } else {
        return Ok(bytes);
    };
    let problem = match done {
        Err(error) => format!("cannot unpack: {error}"),
        Ok(_) if unknown::is_tar(&plain) => {
            format!("found a tar archive, {packing}, expected one trace: unpack it first")
        }
        Ok(_) => return Ok(Arc::new(plain)),
    };
    Err(TraceError::Damaged { name: name.to_owned(), problem })
}

/// The lines that are neither empty nor a comment.
pub(super) fn content_lines(text: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    lines(text, 0).filter(|range| {
        let line = text[range.clone()].trim_ascii();
        !line.is_empty() && line[0] != b'#'
    })
}

/// The words of a line.
pub(super) fn words_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty())
}
