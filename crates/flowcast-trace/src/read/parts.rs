//! The files that a trace consists of: packed ones, and lists with a name on each line, relative to the list.

use std::io::{self, Read};
use std::sync::Arc;

use super::scan::lines;
use crate::TraceError;
use crate::program::SharedBytes;
use flowcast_units::Bytes;

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

/// How many times its size a packed file may have inside. Traces are packed to a tenth or a hundredth.
const USUAL_RATIO: u64 = 200;
/// A small file may have so much inside whatever its size.
const USUAL_LEAST: Bytes = Bytes(64 << 20);
/// The window of a zstd frame is no larger than 2 to this power; that of its usual levels is at most 27.
const MOST_ZSTD_WINDOW: u32 = 27;

/// The most that a packed file of so many bytes is unpacked to unless the caller says more: 64 MiB, or 200 times its size
/// if that is more. Memory then stays in proportion to what was given.
pub fn usual_limit(packed: Bytes) -> Bytes {
    USUAL_LEAST.max(Bytes(packed.0.saturating_mul(USUAL_RATIO)))
}

/// The content behind gzip or zstd, or the bytes themselves, within [`usual_limit`].
///
/// # Errors
/// [`TraceError::Damaged`], [`TraceError::TooLarge`].
pub fn unpacked(name: &str, bytes: SharedBytes) -> Result<SharedBytes, TraceError> {
    let most = usual_limit(Bytes((*bytes).as_ref().len() as u64));
    unpacked_within(name, bytes, most)
}

/// The same, within a limit.
///
/// # Errors
/// As [`unpacked`].
pub fn unpacked_within(name: &str, bytes: SharedBytes, most: Bytes) -> Result<SharedBytes, TraceError> {
    let packed = (*bytes).as_ref();
    let damaged =
        |error: io::Error| TraceError::Damaged { name: name.to_owned(), problem: format!("cannot unpack: {error}") };
    let content: Box<dyn Read + '_> = if packed.starts_with(&[0x1F, 0x8B]) {
        Box::new(flate2::read::MultiGzDecoder::new(packed))
    } else if packed.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) {
        let mut decoder = zstd::stream::read::Decoder::new(packed).map_err(damaged)?;
        decoder.window_log_max(MOST_ZSTD_WINDOW).map_err(damaged)?;
        Box::new(decoder)
    } else {
        return Ok(bytes);
    };
    let mut plain = Vec::new();
    content.take(most.0.saturating_add(1)).read_to_end(&mut plain).map_err(damaged)?;
    if plain.len() as u64 > most.0 {
        return Err(TraceError::TooLarge { name: name.to_owned(), packed: Bytes(packed.len() as u64), most });
    }
    Ok(Arc::new(plain))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn of_zeros(bytes: u64) -> [Vec<u8>; 2] {
        let zstd = zstd::stream::encode_all(io::repeat(0).take(bytes), 1).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        io::copy(&mut io::repeat(0).take(bytes), &mut gzip).unwrap();
        gzip.flush().unwrap();
        [zstd, gzip.finish().unwrap()]
    }

    #[test]
    fn a_small_file_with_much_inside_is_refused_unless_the_limit_is_raised() {
        for packed in of_zeros(USUAL_LEAST.0 + 1) {
            let packed: SharedBytes = Arc::new(packed);
            let refused = unpacked("x", packed.clone()).err().unwrap().to_string();
            assert!(refused.starts_with("x: found more than 64MiB in a packed file of "), "{refused}");
            let plain = unpacked_within("x", packed, Bytes(USUAL_LEAST.0 + 1)).ok().unwrap();
            assert_eq!((*plain).as_ref().len() as u64, USUAL_LEAST.0 + 1);
        }
        for packed in of_zeros(1 << 20) {
            assert_eq!((*unpacked("x", Arc::new(packed)).ok().unwrap()).as_ref().len(), 1 << 20);
        }
    }
}
