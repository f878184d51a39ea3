//! Text in blocks, each after a line with its length and the checksum of all text up to its end: `# part BYTES CRC32`.
//!
//! A checksum depends on all blocks before it. Readers therefore stop at the first block that was cut off, changed, removed,
//! repeated or taken from another file.

/// Start of the line before a block. Readers of the text see it as a comment.
const MARK: &str = "# part ";

/// Checksum of all text so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chain(u32);

impl Chain {
    fn with(self, text: &[u8]) -> Chain {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        hasher.update(text);
        Chain(hasher.finalize())
    }

    /// Formats the text as the next block.
    pub(crate) fn seal(&mut self, text: &str) -> String {
        *self = self.with(text.as_bytes());
        format!("{MARK}{} {:08x}\n{text}", text.len(), self.0)
    }
}

/// Intact blocks from the start of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks<'a> {
    pub(crate) texts: Vec<&'a str>,
    /// Length of the blocks in the file, in bytes.
    pub(crate) bytes: usize,
    /// Checksum of all blocks.
    pub(crate) chain: Chain,
}

/// Number of places at which a block may start. A file that was cut off in its first mark has one.
pub(crate) fn beginnings(bytes: &[u8]) -> usize {
    let mark = MARK.as_bytes();
    if mark.starts_with(bytes) {
        return 1;
    }
    bytes
        .windows(mark.len())
        .filter(|found| *found == mark)
        .count()
}

/// Reads blocks up to the first that is incomplete or changed.
pub(crate) fn read(bytes: &[u8]) -> Blocks<'_> {
    let mut blocks = Blocks::default();
    while let Some((text, length, chain)) = next(&bytes[blocks.bytes..], blocks.chain) {
        blocks.texts.push(text);
        blocks.bytes += length;
        blocks.chain = chain;
    }
    blocks
}

/// First block, its length with its line in bytes, and the checksum at its end.
fn next(bytes: &[u8], chain: Chain) -> Option<(&str, usize, Chain)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&bytes[..end]).ok()?;
    let (length, checksum) = line.strip_prefix(MARK)?.split_once(' ')?;
    let behind = (end + 1).checked_add(length.parse().ok()?)?;
    let text = bytes.get(end + 1..behind)?;
    let chain = chain.with(text);
    let is_whole = u32::from_str_radix(checksum, 16) == Ok(chain.0);
    is_whole.then_some((std::str::from_utf8(text).ok()?, behind, chain))
}
