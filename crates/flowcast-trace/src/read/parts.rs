//! Lists of the files that a trace consists of: a name on each line, relative to the list.

use super::scan::{bytes_of, lines};
use super::{OpenPart, Part, simgrid, unpacked};
use crate::TraceError;
use crate::program::SharedBytes;

/// Names of files: one printable word on each line, with a dot or a slash in it.
pub fn is_list(text: &[u8]) -> bool {
    let is_name = |line: &[u8]| {
        words_of(line).count() == 1
            && line.iter().any(|byte| matches!(byte, b'.' | b'/'))
            && line.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ' || *byte >= 0x80)
    };
    text.len() < 1 << 24 && std::str::from_utf8(text).is_ok() && content_lines(text).all(|range| is_name(&text[range]))
}

/// The files of a list with their contents; a trace in one file is its own only part.
///
/// # Errors
/// A file cannot be read or unpacked.
pub fn named(name: &str, bytes: SharedBytes, open: OpenPart<'_>) -> Result<Vec<Part>, TraceError> {
    let text = bytes_of(&bytes);
    if content_lines(text).next().is_none_or(|first| simgrid::is_action(&text[first])) {
        return Ok(vec![(name.to_owned(), bytes)]);
    }
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

/// The lines that are neither empty nor a comment.
pub fn content_lines(text: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    lines(text, 0).filter(|range| {
        let line = text[range.clone()].trim_ascii();
        !line.is_empty() && line[0] != b'#'
    })
}

/// The words of a line.
pub fn words_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty())
}
