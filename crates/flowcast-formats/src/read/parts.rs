//! Files of a trace: compressed files, lists with one name per line, and SimGrid's deployments.

use std::{
    borrow::Cow,
    io::{self, Read},
    ops::Range,
    sync::Arc,
};

use super::{
    scan::{ScanInput, lines},
    unknown,
};
use flowcast_program::{TraceError, program::SharedBytes};
use flowcast_units::{Bytes, plain_text};

/// Function that opens further files of a trace: it returns the bytes of the file with a name from the trace.
pub type OpenPart<'a> = &'a mut dyn FnMut(&str) -> io::Result<SharedBytes>;

/// Name and content of a file.
pub type TracePart = (String, SharedBytes);

/// Returns `true` for a list of files: each line has one printable word with a dot or a slash in it.
pub(super) fn is_list(text: &[u8]) -> bool {
    text.len() < 1 << 24
        && std::str::from_utf8(text).is_ok()
        && content_lines(text).next().is_some()
        && content_lines(text).all(|range| is_name(&text[range]))
}

/// Returns `true` if the line is one word that names a file.
fn is_name(line: &[u8]) -> bool {
    words_of(line).count() == 1
        && line.iter().any(|byte| matches!(byte, b'.' | b'/'))
        && line
            .iter()
            .all(|byte| byte.is_ascii_graphic() || *byte == b' ' || *byte >= 0x80)
}

/// Returns `true` for a SimGrid deployment: XML with the actors, each of which has its file as an argument.
pub(super) fn is_deployment(text: &[u8]) -> bool {
    let head = &text[..text.len().min(1 << 16)];
    head.trim_ascii_start().starts_with(b"<")
        && [&b"<actor"[..], b"<process"]
            .iter()
            .any(|tag| memchr::memmem::find(head, tag).is_some())
        && !files_of_actors(text).is_empty()
}

/// Returns the positions of the actors' arguments that are names of files, outside comments.
fn files_of_actors(text: &[u8]) -> Vec<Range<usize>> {
    let mut files = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', &text[at..]) {
        at += found;
        let is_comment = text[at..].starts_with(b"<!--");
        let end: &[u8] = if is_comment { b"-->" } else { b">" };
        let Some(length) = memchr::memmem::find(&text[at..], end) else {
            break;
        };
        if text[at..].starts_with(b"<argument") {
            files.extend(
                value_in(text, at..at + length).filter(|value| is_name(&text[value.clone()])),
            );
        }
        at += length;
    }
    files
}

/// Returns the position of the `value` of a tag, without its quotes.
fn value_in(text: &[u8], tag: Range<usize>) -> Option<Range<usize>> {
    let quote = tag.start + memchr::memmem::find(&text[tag.clone()], b"value=")? + "value=".len();
    let mark = *text
        .get(quote)
        .filter(|mark| matches!(mark, b'"' | b'\''))?;
    let length = memchr::memchr(mark, &text[quote + 1..tag.end.max(quote + 1)])?;
    Some(quote + 1..quote + 1 + length)
}

/// Returns the files of a list or of a deployment, with their contents.
///
/// # Errors
/// A file cannot be read or decompressed.
pub(super) fn named(
    name: &str,
    text: &[u8],
    open: OpenPart<'_>,
) -> Result<Vec<TracePart>, TraceError> {
    let mut unpacking = Unpacking::default();
    ranges_of_names(text)
        .into_iter()
        .map(|range| {
            let file = file_name(text, &range);
            let content = open(&file).map_err(|error| TraceError::Part {
                place: ScanInput { name, text }.place(range.start),
                file: file.clone(),
                error,
            })?;
            let content = unpacking.unpack(&file, content)?;
            Ok((file, content))
        })
        .collect()
}

/// Returns the names of files in a list or deployment; empty if the text is neither.
pub fn listed(text: &[u8]) -> Vec<String> {
    let text = &*plain_text(text);
    let ranges = if is_deployment(text) || is_list(text) {
        ranges_of_names(text)
    } else {
        Vec::new()
    };
    ranges.iter().map(|range| file_name(text, range)).collect()
}

fn ranges_of_names(text: &[u8]) -> Vec<Range<usize>> {
    if is_deployment(text) {
        files_of_actors(text)
    } else {
        content_lines(text).collect()
    }
}

fn file_name(text: &[u8], range: &Range<usize>) -> String {
    String::from_utf8_lossy(text[range.clone()].trim_ascii()).into_owned()
}

/// Largest ratio of decompressed to compressed size. Compression reduces traces to a tenth or a hundredth.
const USUAL_RATIO: u64 = 200;
/// Decompressed size that is allowed for a file of any compressed size.
const USUAL_LEAST: Bytes = Bytes(64 << 20);
/// Largest window of a zstd frame, as a power of two; the usual levels need at most 27.
const MOST_ZSTD_WINDOW: u32 = 27;

/// Returns the decompressed content of gzip or zstd, or the bytes themselves. The result and the limit are those of
/// [`Unpacking`].
///
/// # Errors
/// [`TraceError::Damaged`] for damage and for an archive of files; [`TraceError::TooLarge`] above the limit.
pub fn unpacked(name: &str, bytes: SharedBytes) -> Result<SharedBytes, TraceError> {
    Unpacking::default().unpack(name, bytes)
}

/// Decompression of the files of a trace within a common limit: 64 MiB, or 200 times the compressed size if that is more,
/// unless the caller sets another. Memory thus stays proportional to the input.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unpacking {
    given: Option<Bytes>,
    files: usize,
    packed: Bytes,
    plain: Bytes,
}

impl Unpacking {
    /// Creates a decompression with a limit that replaces the default. `None` keeps the default.
    pub fn within(most: Option<Bytes>) -> Unpacking {
        Unpacking {
            given: most,
            ..Unpacking::default()
        }
    }

    /// Returns the decompressed content of gzip or zstd, or the bytes themselves. A text is converted as by [`plain_text`].
    ///
    /// # Errors
    /// Same errors as [`unpacked`].
    pub fn unpack(&mut self, name: &str, bytes: SharedBytes) -> Result<SharedBytes, TraceError> {
        let packed = Bytes(self.packed.0.saturating_add((*bytes).as_ref().len() as u64));
        let most = self
            .given
            .unwrap_or(USUAL_LEAST.max(Bytes(packed.0.saturating_mul(USUAL_RATIO))));
        let files = self.files + 1;
        let left = Bytes(most.0.saturating_sub(self.plain.0));
        let plain: SharedBytes = match content(name, bytes, left)? {
            PartContent::Plain(bytes) => bytes,
            PartContent::TooLarge => {
                return Err(TraceError::TooLarge {
                    name: name.to_owned(),
                    files,
                    packed,
                    most,
                });
            }
            PartContent::Unpacked(plain) => {
                (self.files, self.packed, self.plain.0) =
                    (files, packed, self.plain.0 + plain.len() as u64);
                Arc::new(plain)
            }
        };
        Ok(match plain_text((*plain).as_ref()) {
            Cow::Owned(text) => Arc::new(text),
            Cow::Borrowed(_) => plain,
        })
    }
}

enum PartContent {
    Plain(SharedBytes),
    Unpacked(Vec<u8>),
    TooLarge,
}

fn content(name: &str, bytes: SharedBytes, most: Bytes) -> Result<PartContent, TraceError> {
    let packed = (*bytes).as_ref();
    let unread =
        |error: io::Error| TraceError::damaged(name, format!("cannot decompress: {error}"));
    let (packing, packed): (_, Box<dyn Read + '_>) = if packed.starts_with(&[0x1F, 0x8B]) {
        ("gzip", Box::new(flate2::read::MultiGzDecoder::new(packed)))
    } else if packed.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) {
        let mut decoder = zstd::stream::read::Decoder::new(packed).map_err(unread)?;
        decoder.window_log_max(MOST_ZSTD_WINDOW).map_err(unread)?;
        ("zstd", Box::new(decoder))
    } else {
        return Ok(PartContent::Plain(bytes));
    };
    let mut plain = Vec::new();
    packed
        .take(most.0.saturating_add(1))
        .read_to_end(&mut plain)
        .map_err(unread)?;
    if plain.len() as u64 > most.0 {
        return Ok(PartContent::TooLarge);
    }
    if unknown::is_tar(&plain) {
        return Err(TraceError::damaged(
            name,
            format!(
                "found a tar archive compressed with {packing}, expected one trace: unpack the archive first"
            ),
        ));
    }
    Ok(PartContent::Unpacked(plain))
}

/// Returns the lines that are neither empty nor a comment.
pub(super) fn content_lines(text: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    lines(text, 0).filter(|range| {
        let line = text[range.clone()].trim_ascii();
        !line.is_empty() && line[0] != b'#'
    })
}

/// Returns the words of a line.
pub(super) fn words_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn arguments_of_actors_that_name_files_are_the_files_of_a_deployment() {
        let text = b"<?xml version='1.0'?>\n<platform version=\"4.1\">\n<!-- <argument value=\"no.txt\"/> -->\n\
            <actor host=\"a\"><argument value=\"0\"/><argument  value='p/0.txt'/></actor>\n\
            <process host=\"b\"><argument value=\"p/1.txt\" /></process>\n</platform>\n";
        assert_eq!(listed(text), ["p/0.txt", "p/1.txt"]);
        assert_eq!(
            listed(b"p/0.txt\n# p/2.txt\np/1.txt\n"),
            ["p/0.txt", "p/1.txt"]
        );
        for other in [
            &b"<platform><host id=\"a.b\"/></platform>"[..],
            b"<actor><argument value=",
            b"<actor><argument value=\">",
        ] {
            assert_eq!(listed(other), [""; 0]);
        }
    }

    fn of_zeros(bytes: u64) -> [Vec<u8>; 2] {
        let zstd = zstd::stream::encode_all(io::repeat(0).take(bytes), 1).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        io::copy(&mut io::repeat(0).take(bytes), &mut gzip).unwrap();
        gzip.flush().unwrap();
        [zstd, gzip.finish().unwrap()]
    }

    #[test]
    fn a_small_file_with_large_content_is_refused_unless_the_limit_is_raised() {
        for packed in of_zeros(USUAL_LEAST.0 + 1) {
            let packed: SharedBytes = Arc::new(packed);
            let refused = unpacked("x", packed.clone()).err().unwrap().to_string();
            assert!(
                refused.starts_with("x: found more than 64MiB decompressed from "),
                "{refused}"
            );
            let mut raised = Unpacking::within(Some(Bytes(USUAL_LEAST.0 + 1)));
            let plain = raised.unpack("x", packed).ok().unwrap();
            assert_eq!((*plain).as_ref().len() as u64, USUAL_LEAST.0 + 1);
        }
        for packed in of_zeros(1 << 20) {
            assert_eq!(
                (*unpacked("x", Arc::new(packed)).ok().unwrap())
                    .as_ref()
                    .len(),
                1 << 20
            );
        }
    }

    #[test]
    fn the_files_of_a_list_share_one_limit() {
        let [packed, _] = of_zeros(USUAL_LEAST.0 / 4);
        let list: String = (0..6).map(|rank| format!("r{rank}.zst\n")).collect();
        let mut opened = 0;
        let refused = named("list", list.as_bytes(), &mut |_: &str| {
            opened += 1;
            Ok::<SharedBytes, io::Error>(Arc::new(packed.clone()))
        })
        .err()
        .unwrap()
        .to_string();
        assert!(
            refused.starts_with("r4.zst: found more than 64MiB decompressed from "),
            "{refused}"
        );
        assert!(
            refused.ends_with("in all files of a trace") && opened == 5,
            "{refused}"
        );
    }
}
