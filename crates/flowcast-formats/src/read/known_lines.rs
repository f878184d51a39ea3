//! Cache of recent lines and their effects: a program in a loop writes the same few message records again and again.

use super::cursor::Cursor;

/// Effect of a message record on its rank, with the numbers that the builder assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Send on this route.
    Send(u32),
    /// Receive on this channel.
    Recv(u32),
    /// Non-blocking receive on this channel.
    Irecv(u32),
    /// Wait on this channel.
    Wait(u32),
}

/// Line including its end, of at most 32 bytes, padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SplitLine {
    words: [u64; 4],
    /// Number of bytes, including the end of the line.
    length: u8,
}

const LONGEST: usize = 32;

/// Mask of a line's bytes among 32, by length.
const MASKS: [[u64; 4]; LONGEST + 1] = {
    let mut masks = [[0; 4]; LONGEST + 1];
    let mut length = 0;
    while length <= LONGEST {
        let mut at = 0;
        while at < length {
            masks[length][at / 8] |= 0xFF << (at % 8 * 8);
            at += 1;
        }
        length += 1;
    }
    masks
};

type Block = [u64; 4];

/// Returns the next 32 bytes, unless the text ends before.
#[inline(always)]
fn block_at(cursor: &Cursor<'_>) -> Option<Block> {
    let bytes: &[u8; LONGEST] = cursor.text.get(cursor.at..)?.first_chunk()?;
    Some(std::array::from_fn(|index| {
        u64::from_le_bytes(
            bytes[index * 8..index * 8 + 8]
                .try_into()
                .expect("eight bytes"),
        )
    }))
}

impl SplitLine {
    /// Returns the line that begins here, if it is short enough.
    #[inline]
    fn find(block: &Block) -> Option<SplitLine> {
        let index = block.iter().position(|word| is_end(*word) != 0)?;
        let length = index * 8 + is_end(block[index]).trailing_zeros() as usize / 8 + 1;
        let masks = &MASKS[length];
        Some(SplitLine {
            words: std::array::from_fn(|index| block[index] & masks[index]),
            length: length as u8,
        })
    }

    /// Returns `true` if this line begins here.
    #[inline(always)]
    fn begins(&self, block: &Block) -> bool {
        let masks = &MASKS[usize::from(self.length)];
        let differ = (0..4).map(|index| (self.words[index] ^ block[index]) & masks[index]);
        differ.fold(0, |all, other| all | other) == 0
    }

    #[inline]
    fn index(&self) -> usize {
        let [a, b, c, d] = self.words;
        let mixed =
            (a ^ b.rotate_left(21) ^ c.rotate_left(42) ^ d).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (64 - BITS)) as usize
    }
}

fn is_end(word: u64) -> u64 {
    let others = word ^ 0x0A0A_0A0A_0A0A_0A0A;
    others.wrapping_sub(0x0101_0101_0101_0101) & !others & 0x8080_8080_8080_8080
}

const BITS: u32 = 8;

/// Text after the peer in the previous message record, of sends or of receives. Most of the time, the next record has the
/// same text, even for another peer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tail {
    known: Option<(SplitLine, TailFields)>,
}

/// Thread, bytes, tag, communicator, and the last field.
pub(super) type TailFields = [i64; 5];

impl Tail {
    /// Reads the fields after the peer, each preceded by a colon. Returns `None` if some are missing. An older form has no
    /// thread, which is then -1.
    #[inline(always)]
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Option<TailFields> {
        let block = block_at(cursor);
        if let (Some(block), Some((line, fields))) = (&block, &self.known)
            && line.begins(block)
        {
            cursor.at += usize::from(line.length) - 1;
            return Some(*fields);
        }
        self.read_anew(cursor, block.as_ref())
    }

    #[inline(never)]
    fn read_anew(&mut self, cursor: &mut Cursor<'_>, block: Option<&Block>) -> Option<TailFields> {
        if !cursor.eat(b':') {
            return None;
        }
        let [first, second, third, fourth] = cursor.integers()?;
        let fields = if cursor.eat(b':') {
            [first, second, third, fourth, cursor.integer()?]
        } else {
            [-1, first, second, third, fourth]
        };
        if cursor.peek() == b'\n' {
            self.known = block.and_then(SplitLine::find).map(|line| (line, fields));
        }
        Some(fields)
    }
}

/// Line and its effect.
#[derive(Debug, Clone, Copy)]
struct KnownLine {
    line: SplitLine,
    repeat: Repeat,
    /// Entry of the message record that followed last time. The same record usually follows again.
    next: u8,
}

/// Empty entry, which does not match any text.
const NO_LINE: KnownLine = KnownLine {
    line: SplitLine {
        words: [u64::MAX; 4],
        length: LONGEST as u8,
    },
    repeat: Repeat::Send(0),
    next: 0,
};

/// Lines of one rank.
pub(super) struct KnownLines {
    /// Entries; the first is empty.
    entries: Vec<KnownLine>,
    /// Number of the entry at each index; `SplitLine::index` computes the index of a line.
    places: [u8; 1 << BITS],
    /// Entry that was used last.
    last: u8,
    /// Line that is being read and is not in the cache.
    reading: Option<SplitLine>,
    found: u32,
    missed: u32,
    /// Tails of the last send and of the last receive.
    pub tails: [Tail; 2],
}

impl Default for KnownLines {
    fn default() -> KnownLines {
        KnownLines {
            entries: vec![NO_LINE],
            places: [0; 1 << BITS],
            last: 0,
            reading: None,
            found: 0,
            missed: 0,
            tails: [Tail::default(); 2],
        }
    }
}

impl KnownLines {
    /// Returns the effect and the length in bytes of the message record at the cursor. `None` if it is not in the cache; the
    /// caller may then call [`KnownLines::learn`].
    #[inline(always)]
    pub(super) fn find(&mut self, cursor: &Cursor<'_>) -> Option<(Repeat, usize)> {
        let block = block_at(cursor)?;
        let next = self.entries[usize::from(self.last)].next;
        let known = &self.entries[usize::from(next)];
        if known.line.begins(&block) {
            self.last = next;
            self.found += 1;
            return Some((known.repeat, usize::from(known.line.length)));
        }
        self.search(&block)
    }

    #[inline(never)]
    fn search(&mut self, block: &Block) -> Option<(Repeat, usize)> {
        // A line that is too long for the cache does not change the successor of the previous one.
        self.reading = SplitLine::find(block);
        let line = self.reading?;
        let number = self.places[line.index()];
        let known = self.entries[usize::from(number)];
        if known.line == line {
            self.follow(number);
            self.found += 1;
            return Some((known.repeat, usize::from(line.length)));
        }
        self.missed += 1;
        None
    }

    /// Makes an entry the successor of the previous one.
    fn follow(&mut self, number: u8) {
        self.entries[usize::from(self.last)].next = number;
        self.last = number;
    }

    /// Returns `true` if a search is worthwhile. A rank with many peers repeats its lines too late for the cache.
    #[inline(always)]
    pub(super) fn pays(&self) -> bool {
        self.missed < 1 << BITS || self.found > self.missed
    }

    /// Stores the effect of the line that was searched last.
    pub(super) fn learn(&mut self, repeat: Repeat) {
        let Some(line) = self.reading.take() else {
            return;
        };
        let Ok(number) = u8::try_from(self.entries.len()) else {
            // The cache is full, so new lines replace all old ones.
            *self = KnownLines {
                found: self.found,
                missed: self.missed,
                ..KnownLines::default()
            };
            return;
        };
        self.entries.push(KnownLine {
            line,
            repeat,
            next: 0,
        });
        self.places[line.index()] = number;
        self.follow(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_after_the_peer_are_read_independently_of_earlier_lines(
            lines in proptest::collection::vec(
                prop_oneof![
                    2 => Just(":0:8192:5:1:0".to_owned()),
                    2 => Just(":8192:5:1:0".to_owned()),
                    1 => Just(":0:8192:5:1:0 \r".to_owned()),
                    1 => Just(":-1:123456789012345678:5:1:2".to_owned()),
                    2 => "[:0-9-]{0,24}",
                ],
                1..20,
            ),
        ) {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>() + &"x".repeat(LONGEST);
            let mut tail = Tail::default();
            let mut start = 0;
            for line in &lines {
                let (mut own, mut other) = (Cursor { text: text.as_bytes(), at: start }, Cursor { text: text.as_bytes(), at: start });
                prop_assert_eq!(tail.read(&mut own), Tail::default().read(&mut other));
                prop_assert_eq!(own.at, other.at);
                start += line.len() + 1;
            }
        }
    }

    #[test]
    fn a_line_is_unaffected_by_a_longer_one_after_it() {
        let text = b"32:0:0:0\n2:0:0:1:-1:9000000000000000:0:1:2\n32:0:0:0\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
        let mut known = KnownLines::default();
        assert_eq!(known.find(&Cursor { text, at: 0 }), None);
        assert_eq!(known.find(&Cursor { text, at: 9 }), None);
        known.learn(Repeat::Send(7));
        assert_eq!(known.find(&Cursor { text, at: 43 }), None);
    }

    #[test]
    fn all_bytes_of_a_line_and_no_others_identify_it() {
        let text = b"2:0:0:1:-1:8:1:1:0\n2:0:0:1:-1:8:1:1:2\n2:0:0:1:-1:8:1:1:0\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
        let at = |at| Cursor { text, at };
        let mut known = KnownLines::default();
        assert_eq!(known.find(&at(0)), None);
        known.learn(Repeat::Send(7));
        assert_eq!(known.find(&at(38)), Some((Repeat::Send(7), 19)));
        assert_eq!(known.find(&at(19)), None);
        known.learn(Repeat::Send(8));
        for (start, route) in [(0, 7), (19, 8), (38, 7), (38, 7)] {
            assert_eq!(known.find(&at(start)), Some((Repeat::Send(route), 19)));
        }
        assert_eq!(known.find(&at(57)), None);
        assert_eq!(known.find(&at(58)), None);
    }
}
