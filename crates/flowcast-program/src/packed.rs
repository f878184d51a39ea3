//! Spans of time with a code each, and lists of numbers, stored as differences of variable length.
//!
//! Full blocks are compressed with zstd. If the program repeats itself, each record then takes a byte or two.

/// Size of a block before compression, in bytes.
const BLOCK: usize = 1 << 14;

const ZSTD_LEVEL: i32 = 1;

/// Spans in time order. Each is the distance from the end of the one before, its length and its code; small numbers
/// take one byte.
///
/// ```
/// use flowcast_program::packed::Packed;
///
/// let mut spans = Packed::default();
/// spans.push(10, 25, 3);
/// spans.push(25, 40, 1);
/// assert_eq!(spans.spans().collect::<Vec<_>>(), [(10, 25, 3), (25, 40, 1)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Packed {
    stream: PackedStream,
    end: u64,
}

impl Packed {
    /// Appends a span, which must not begin before the end of the last one; the part before that end is cut off.
    pub fn push(&mut self, start: u64, end: u64, code: u64) {
        let start = start.max(self.end);
        let end = end.max(start);
        for value in [start - self.end, end - start, code] {
            self.stream.put(value);
        }
        self.stream.finish_item();
        self.end = end;
    }

    /// End of the last span.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Start, end and code of each span.
    pub fn spans(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let mut values = self.stream.values();
        let mut reached = 0;
        std::iter::from_fn(move || {
            let start = reached + values.next()?;
            let end = start + values.next()?;
            reached = end;
            Some((start, end, values.next()?))
        })
    }
}

/// Numbers in any order; the closer each is to the one before, the fewer bytes they take.
#[derive(Debug, Clone, Default)]
pub struct PackedNumbers {
    stream: PackedStream,
    last: u32,
}

impl PackedNumbers {
    /// Appends a number, in fewer bytes the closer it is to the one before.
    pub fn push(&mut self, number: u32) {
        let step = i64::from(number) - i64::from(self.last);
        // Zigzag encoding: small negative steps are small numbers as well.
        self.stream.put((step << 1 ^ step >> 63) as u64);
        self.stream.finish_item();
        self.last = number;
    }

    /// The numbers in the order in which they were appended.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut last = 0;
        self.stream.values().map(move |value| {
            let step = (value >> 1) as i64 ^ -((value & 1) as i64);
            last += step;
            last as u32
        })
    }
}

/// A sequence of numbers of variable length, in compressed blocks.
#[derive(Debug, Clone, Default)]
struct PackedStream {
    full: Vec<Box<[u8]>>,
    bytes: Vec<u8>,
}

impl PackedStream {
    #[inline]
    fn put(&mut self, mut value: u64) {
        while value >= 1 << 7 {
            self.bytes.push(value as u8 | 1 << 7);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Ends an item: the numbers since the last call. An item is never split between blocks.
    #[inline]
    fn finish_item(&mut self) {
        if self.bytes.len() >= BLOCK {
            self.pack();
        }
    }

    #[inline(never)]
    fn pack(&mut self) {
        let packed =
            zstd::bulk::compress(&self.bytes, ZSTD_LEVEL).expect("writing to memory does not fail");
        self.full.push(packed.into());
        self.bytes.clear();
    }

    fn values(&self) -> PackedValues<'_> {
        PackedValues {
            stream: self,
            block: 0,
            unpacked: Vec::new(),
            at: 0,
        }
    }
}

/// The numbers of a [`PackedStream`].
struct PackedValues<'a> {
    stream: &'a PackedStream,
    /// Index of the next block.
    block: usize,
    /// Content of the current block.
    unpacked: Vec<u8>,
    at: usize,
}

/// Upper limit for the size of a block: the longest item may begin after `BLOCK - 1` bytes.
const MOST: usize = BLOCK + 64;

impl Iterator for PackedValues<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.at == self.unpacked.len() {
            self.turn();
        }
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = *self.unpacked.get(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 1 << 7 {
                return Some(value);
            }
            shift += 7;
        }
    }
}

impl PackedValues<'_> {
    /// Decompresses the next block; after the last one, blocks are empty.
    #[inline(never)]
    fn turn(&mut self) {
        self.unpacked = match self.stream.full.get(self.block) {
            Some(packed) => {
                zstd::bulk::decompress(packed, MOST).expect("the packed data are valid")
            }
            None if self.block == self.stream.full.len() => self.stream.bytes.clone(),
            None => Vec::new(),
        };
        self.at = 0;
        self.block += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_spans_are_read_back_unchanged(
            spans in proptest::collection::vec((0u64..1 << 40, 0u64..1 << 40, any::<u64>()), 0..50), times in 1usize..200,
        ) {
            let mut packed = Packed::default();
            let mut expected = Vec::new();
            let mut reached = 0;
            for (gap, length, code) in spans.iter().cycle().take(times * spans.len()) {
                let span = (reached + gap, reached + gap + length, *code);
                packed.push(span.0, span.1, *code);
                reached = span.1;
                expected.push(span);
            }
            prop_assert_eq!(packed.end(), reached);
            prop_assert_eq!(packed.spans().collect::<Vec<_>>(), expected);
        }

        #[test]
        fn packed_numbers_are_read_back_unchanged(numbers in proptest::collection::vec(any::<u32>(), 0..50), times in 1usize..1000) {
            let mut packed = PackedNumbers::default();
            let all: Vec<u32> = numbers.iter().copied().cycle().take(times * numbers.len()).collect();
            all.iter().for_each(|number| packed.push(*number));
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn repetitions_need_little_space() {
        let mut packed = Packed::default();
        for step in 0..100_000 {
            packed.push(step * 500, step * 500 + 300 + step % 3, step % 5);
        }
        let bytes: usize = packed.stream.full.iter().map(|block| block.len()).sum();
        assert!(packed.stream.full.len() > 5 && bytes < 50_000, "{bytes}");
        assert_eq!(packed.spans().count(), 100_000);
    }

    #[test]
    fn a_span_that_begins_too_early_is_cut() {
        let mut packed = Packed::default();
        packed.push(5, 10, 1);
        packed.push(8, 9, 2);
        packed.push(9, 20, 3);
        assert_eq!(
            packed.spans().collect::<Vec<_>>(),
            [(5, 10, 1), (10, 10, 2), (10, 20, 3)]
        );
    }
}
