//! The files that a trace consists of: packed ones, and lists with a name on each line, relative to the list.

use std::io::{self, Read};
use std::sync::Arc;

use super::scan::lines;
use crate::TraceError;
use crate::program::SharedBytes;

/// Opens the files that a trace consists of beside the first: gives the bytes of a name as the trace writes it.
pub type OpenPart<'a> = &'a mut dyn FnMut(&str) -> io::Result<SharedBytes>;

/// A file's name and content.
pub type Part = (String, SharedBytes);

/// Names of files: one printable word on each line, with a dot or a slash in it.
pub(super) fn is_list(text: &[u8]) -> bool {
    let is_name = |line: &[u8]| {
        words_of(line).count() == 1
            && line.iter().any(|byte| matches!(byte, b'.' | b'/'))
            && line.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ' || *byte >= 0x80)
    };
    text.len() < 1 << 24
        && std::str::from_utf8(text).is_ok()
        && content_lines(text).next().is_some()
        && content_lines(text).all(|range| is_name(&text[range]))
}

/// The files of a list with their contents.
///
/// # Errors
/// A file cannot be read or unpacked.
pub(super) fn named(name: &str, text: &[u8], open: OpenPart<'_>) -> Result<Vec<Part>, TraceError> {
    let mut parts = Vec::new();
    for (index, range) in lines(text, 0).enumerate() {
        let line = text[range].trim_ascii();
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        let file = String::from_utf8_lossy(line).into_owned();
        let place = || format!("{name}:{}", index + 1);
        let content = open(&file).map_err(|error| TraceError::Part { place: place(), file: file.clone(), error })?;
        let content = unpacked(&file, content)?;
        parts.push((file, content));
    }
    Ok(parts)
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
