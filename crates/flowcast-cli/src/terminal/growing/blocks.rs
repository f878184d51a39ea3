//! Text in blocks, each behind a line with its length and its checksum: `# block BYTES CRC32`.
//!
//! What a kill has cut off or a disk has changed is recognised, and the blocks around it stay.

/// How the line before a block begins; to what reads the text otherwise it is a comment.
const MARK: &str = "# block ";

/// What is left of blocks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks<'a> {
    /// Those that are as they were written.
    pub(crate) whole: Vec<&'a str>,
    /// Whether the first of them is the first that was written.
    pub(crate) begins: bool,
    /// Bytes of those before anything that is incomplete or changed.
    pub(crate) unspoilt: usize,
    /// Bytes that are incomplete or changed.
    pub(crate) spoilt: usize,
}

/// The text as a block.
pub(crate) fn sealed(text: &str) -> String {
    format!(
        "{MARK}{} {:08x}\n{text}",
        text.len(),
        crc32fast::hash(text.as_bytes())
    )
}

/// Whether a block begins in it, or could if it went on.
pub(crate) fn are_in(bytes: &[u8]) -> bool {
    MARK.as_bytes().starts_with(bytes)
        || bytes.starts_with(MARK.as_bytes())
        || next_mark(bytes).is_some()
}

/// Reads what [`sealed`] has written.
pub(crate) fn read(bytes: &[u8]) -> Blocks<'_> {
    let (mut blocks, mut at) = (Blocks::default(), 0);
    while at < bytes.len() {
        if let Some((text, length)) = first(&bytes[at..]) {
            blocks.begins |= at == 0;
            blocks.whole.push(text);
            at += length;
            if blocks.spoilt == 0 {
                blocks.unspoilt = at;
            }
        } else {
            let next = next_mark(&bytes[at..]).unwrap_or(bytes.len() - at);
            blocks.spoilt += next;
            at += next;
        }
    }
    blocks
}

/// The block at the beginning and the bytes that it takes with its line.
fn first(bytes: &[u8]) -> Option<(&str, usize)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&bytes[..end]).ok()?;
    let (length, checksum) = line.strip_prefix(MARK)?.split_once(' ')?;
    let behind = (end + 1).checked_add(length.parse().ok()?)?;
    let text = bytes.get(end + 1..behind)?;
    let fits = u32::from_str_radix(checksum, 16) == Ok(crc32fast::hash(text));
    fits.then_some((std::str::from_utf8(text).ok()?, behind))
}

/// Where the next block may begin: also in the middle of a line, whose end may be what has changed.
fn next_mark(bytes: &[u8]) -> Option<usize> {
    (1..bytes.len()).find(|at| bytes[*at..].starts_with(MARK.as_bytes()))
}
