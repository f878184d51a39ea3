//! Spans of time with a code each, as differences of variable length.

/// Spans in time order. Each is the distance from the end of the one before, its length and its code; small numbers
/// take one byte.
#[derive(Debug, Clone, Default)]
pub struct Packed {
    bytes: Vec<u8>,
    end: u64,
}

impl Packed {
    /// Appends a span, which must not begin before the end of the one before; what lies before it is cut off.
    pub fn push(&mut self, (start, end): (u64, u64), code: u64) {
        let start = start.max(self.end);
        let end = end.max(start);
        self.put(start - self.end);
        self.put(end - start);
        self.put(code);
        self.end = end;
    }

    /// Where the last span ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Start, end and code of each.
    pub fn spans(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let mut at = 0;
        let mut reached = 0;
        std::iter::from_fn(move || {
            if at >= self.bytes.len() {
                return None;
            }
            let start = reached + self.get(&mut at);
            let end = start + self.get(&mut at);
            reached = end;
            Some((start, end, self.get(&mut at)))
        })
    }

    #[inline]
    fn put(&mut self, mut value: u64) {
        while value >= 1 << 7 {
            self.bytes.push(value as u8 | 1 << 7);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    #[inline]
    fn get(&self, at: &mut usize) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.bytes[*at];
            *at += 1;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 1 << 7 {
                return value;
            }
            shift += 7;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spans_come_back_as_they_were(spans in proptest::collection::vec((0u64..1 << 40, 0u64..1 << 40, any::<u64>()), 0..50)) {
            let mut packed = Packed::default();
            let mut expected = Vec::new();
            let mut reached = 0;
            for (gap, length, code) in spans {
                let span = (reached + gap, reached + gap + length, code);
                packed.push((span.0, span.1), code);
                reached = span.1;
                expected.push(span);
            }
            prop_assert_eq!(packed.spans().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_span_that_begins_too_early_is_cut() {
        let mut packed = Packed::default();
        packed.push((5, 10), 1);
        packed.push((8, 9), 2);
        packed.push((9, 20), 3);
        assert_eq!(packed.spans().collect::<Vec<_>>(), [(5, 10, 1), (10, 10, 2), (10, 20, 3)]);
    }
}
