//! Lines met lately and what they did: a program in a loop writes the same few message records over and over.

use super::cursor::Cursor;

/// What a message record did to its rank, by the numbers that the builder gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// A send by this route.
    Send(u32),
    /// A receive on this channel.
    Recv(u32),
    /// A non-blocking receive on this channel.
    Irecv(u32),
    /// A wait on this channel.
    Wait(u32),
}

/// A line with its end, of at most 32 bytes, padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    words: [u64; 4],
    /// Its bytes, the end of the line among them.
    pub length: u8,
}

impl Line {
    /// The line that begins here, if it is short enough and not at the very end of the text.
    #[inline(always)]
    pub(super) fn at(cursor: &Cursor<'_>) -> Option<Line> {
        let block = cursor.text.get(cursor.at..cursor.at + 32)?;
        let length = memchr::memchr(b'\n', block)? + 1;
        let mut words = [0; 4];
        for (index, word) in words.iter_mut().enumerate() {
            let bytes = block[index * 8..index * 8 + 8].try_into().expect("eight bytes");
            let kept = length.saturating_sub(index * 8).min(8) as u32;
            let mask = if kept == 8 { u64::MAX } else { (1 << (8 * kept)) - 1 };
            *word = u64::from_le_bytes(bytes) & mask;
        }
        Some(Line { words, length: length as u8 })
    }

    #[inline(always)]
    fn index(&self) -> usize {
        let [a, b, c, d] = self.words;
        let mixed = (a ^ b.rotate_left(21) ^ c.rotate_left(42) ^ d).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (64 - BITS)) as usize
    }
}

const BITS: u32 = 7;

/// The lines of one rank.
pub(super) struct KnownLines {
    entries: Vec<(Line, Repeat)>,
    /// The line that is being read and was not known.
    reading: Line,
    found: u32,
    missed: u32,
}

const NO_LINE: Line = Line { words: [0; 4], length: 0 };

impl Default for KnownLines {
    fn default() -> KnownLines {
        KnownLines { entries: vec![(NO_LINE, Repeat::Send(0)); 1 << BITS], reading: NO_LINE, found: 0, missed: 0 }
    }
}

impl KnownLines {
    /// What the line did before. If that is not known, [`KnownLines::learn`] may follow.
    #[inline(always)]
    pub(super) fn find(&mut self, line: &Line) -> Option<Repeat> {
        let (known, repeat) = &self.entries[line.index()];
        if known == line {
            self.found += 1;
            return Some(*repeat);
        }
        self.missed += 1;
        self.reading = *line;
        None
    }

    /// Whether looking pays: a rank that talks to many others repeats itself too late to be remembered.
    #[inline(always)]
    pub(super) fn pays(&self) -> bool {
        self.missed < 1 << 10 || self.found > self.missed
    }

    /// The line that was asked for last did this.
    #[inline]
    pub(super) fn learn(&mut self, repeat: Repeat) {
        if self.reading.length > 0 {
            self.entries[self.reading.index()] = (self.reading, repeat);
            self.reading = NO_LINE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_by_all_its_bytes_and_no_others() {
        let text = b"2:0:0:1:-1:8:1:1:0\n2:0:0:1:-1:8:1:1:2\n2:0:0:1:-1:8:1:1:0\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
        let line = |at| Line::at(&Cursor { text, at }).unwrap();
        let mut known = KnownLines::default();
        assert_eq!(known.find(&line(0)), None);
        known.learn(Repeat::Send(7));
        assert_eq!(known.find(&line(38)), Some(Repeat::Send(7)));
        assert_eq!(known.find(&line(19)), None);
        assert!(Line::at(&Cursor { text, at: 57 }).is_none());
    }
}
