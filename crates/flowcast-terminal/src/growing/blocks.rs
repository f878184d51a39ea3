//! Text in blocks, each behind a line with its length and the checksum of all text up to its end: `# part BYTES CRC32`.
//!
//! A checksum depends on every block before it, so that a block that was cut off, changed, removed, repeated or taken from
//! another file ends what is trusted.

/// Start of the line before a block; readers of the text take that line for a comment.
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

    /// The text as the next block.
    pub(crate) fn seal(&mut self, text: &str) -> String {
        *self = self.with(text.as_bytes());
        format!("{MARK}{} {:08x}\n{text}", text.len(), self.0)
    }
}

/// The blocks that can be trusted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks<'a> {
    pub(crate) texts: Vec<&'a str>,
    /// Bytes of the file that they take.
    pub(crate) bytes: usize,
    /// Checksum of all of them.
    pub(crate) chain: Chain,
}

/// Number of places where a block may begin; a file that was cut off in its first mark has one.
pub(crate) fn beginnings(bytes: &[u8]) -> usize {
    let mark = MARK.as_bytes();
    match mark.starts_with(bytes) {
        true => 1,
        false => bytes
            .windows(mark.len())
            .filter(|found| *found == mark)
            .count(),
    }
}

/// Reads blocks as far as nothing is missing and nothing was changed.
pub(crate) fn read(bytes: &[u8]) -> Blocks<'_> {
    let mut blocks = Blocks::default();
    while let Some((text, length, chain)) = next(&bytes[blocks.bytes..], blocks.chain) {
        blocks.texts.push(text);
        blocks.bytes += length;
        blocks.chain = chain;
    }
    blocks
}

/// The block at the beginning, the bytes that it takes with its line, and the checksum at its end.
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
