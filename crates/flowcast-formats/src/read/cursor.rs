//! Position in a text that moves past numbers and separators, without a search for line ends.

use super::{fault::Fault, scan::parsed};

/// Position of a reader in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    /// Whole text of the file.
    pub text: &'a [u8],
    /// Index of the next byte.
    pub at: usize,
}

impl Cursor<'_> {
    /// Returns the next byte, or 0 at the end.
    #[inline(always)]
    pub(super) fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Moves past `byte` if it is next. Returns `true` if it was.
    #[inline(always)]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let next = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(next);
        next
    }

    /// Moves past `bytes` if they are next. Returns `true` if they were.
    #[inline(always)]
    pub(super) fn eat_all(&mut self, bytes: &[u8]) -> bool {
        let next = self.text[self.at..].starts_with(bytes);
        self.at += if next { bytes.len() } else { 0 };
        next
    }

    /// Reads the whole number that begins here. Does not move if there is none or if it is too large.
    #[inline(always)]
    pub(super) fn integer(&mut self) -> Option<i64> {
        if let Some(block) = self
            .text
            .get(self.at..)
            .and_then(|rest| rest.first_chunk::<8>())
        {
            let is_negative = block[0] == b'-';
            let (value, digits) =
                leading_digits(u64::from_le_bytes(*block) >> (8 * u32::from(is_negative)));
            let length = digits + usize::from(is_negative);
            // More digits may follow eight bytes.
            if digits > 0 && length < 8 {
                self.at += length;
                return Some(if is_negative {
                    -(value as i64)
                } else {
                    value as i64
                });
            }
        }
        self.any_integer()
    }

    /// Reads the number digit by digit: for long numbers, and at the end of the text.
    fn any_integer(&mut self) -> Option<i64> {
        let start = self.at;
        let negative = self.eat(b'-');
        let digits = self.at;
        let mut value: i64 = 0;
        while let digit @ 0..=9 = self.peek().wrapping_sub(b'0') {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
            self.at += 1;
        }
        let count = self.at - digits;
        if count == 0 || count > 18 {
            self.at = start;
            // Some headers pad numbers with leading zeros; any other number of this length overflows.
            return if count > 18 {
                self.long_integer(digits)
            } else {
                None
            };
        }
        Some(if negative { -value } else { value })
    }

    #[cold]
    fn long_integer(&mut self, digits: usize) -> Option<i64> {
        let end = digits
            + self.text[digits..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
        let value = parsed(&self.text[self.at..end])?;
        self.at = end;
        Some(value)
    }

    /// Reads the whole number after `byte`, if both are next.
    pub(super) fn integer_after(&mut self, byte: u8) -> Option<i64> {
        if self.eat(byte) { self.integer() } else { None }
    }

    /// Moves past the end of the line. Fails if anything else comes first.
    #[inline(always)]
    pub(super) fn end_line(&mut self, expected: &'static str) -> Result<(), Fault> {
        if self.eat_line_end() {
            Ok(())
        } else {
            Err(Fault::malformed(expected))
        }
    }

    /// Reads whole numbers separated by colons.
    #[inline(always)]
    pub(super) fn integers<const N: usize>(&mut self) -> Option<[i64; N]> {
        let mut values = [0; N];
        for (index, value) in values.iter_mut().enumerate() {
            if index > 0 && !self.eat(b':') {
                return None;
            }
            *value = self.integer()?;
        }
        Some(values)
    }

    /// Returns the bytes up to `byte` or the end of the line.
    #[inline]
    pub(super) fn until(&mut self, byte: u8) -> &[u8] {
        let start = self.at;
        let end = memchr::memchr2(byte, b'\n', &self.text[start..])
            .map_or(self.text.len(), |length| start + length);
        self.at = end;
        &self.text[start..end]
    }

    /// Moves past blanks and the end of the line. Returns `false` if anything else comes first.
    #[inline(always)]
    pub(super) fn eat_line_end(&mut self) -> bool {
        if self.peek() == b'\n' {
            self.at += 1;
            return true;
        }
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
        self.at >= self.text.len() || self.eat(b'\n')
    }

    /// Moves to the start of the next line.
    pub(super) fn skip_line(&mut self) {
        self.at = memchr::memchr(b'\n', &self.text[self.at..])
            .map_or(self.text.len(), |length| self.at + length + 1);
    }

    /// Returns `true` at the end of the text.
    #[inline(always)]
    pub(super) fn finished(&self) -> bool {
        self.at >= self.text.len()
    }
}

/// Returns the number at the start of eight bytes, the first of which is in the lowest place, and its number of digits.
#[inline(always)]
pub(super) fn leading_digits(bytes: u64) -> (u64, usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let digits = bytes ^ (EACH * b'0' as u64);
    // Sets the top bit of each byte that is not a digit: values above 9, or so far above that the sum would carry.
    let others = (digits.wrapping_add(EACH * 0x76) | digits) & (EACH * 0x80);
    let count = others.trailing_zeros() / 8;
    if count == 1 {
        return (digits & 0xFF, 1);
    }
    // The first digit moves to the lowest place but `count - 1`, after leading zeros.
    let value = digits.checked_shl(64 - 8 * count).unwrap_or(0);
    let pairs = value.wrapping_mul(10).wrapping_add(value >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
    (
        fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF,
        count as usize,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn eight_digits_at_a_time_give_the_same_as_single_digits(
            text in proptest::collection::vec(prop_oneof![4 => b'0'..=b'9', 1 => Just(b'-'), 1 => any::<u8>()], 0..24),
        ) {
            for at in 0..=text.len() {
                let (mut fast, mut slow) = (Cursor { text: &text, at }, Cursor { text: &text, at });
                prop_assert_eq!(fast.integer(), slow.any_integer());
                prop_assert_eq!(fast.at, slow.at);
            }
        }

        #[test]
        fn a_number_equals_the_result_of_the_standard_library(
            text in prop_oneof!["[+-]{0,2}[0-9]{0,24}[+.:e-]{0,2}[0-9]{0,3}", "-?0{0,12}9223372036854775(80[78])?"],
        ) {
            let unsigned = text.strip_prefix('-').unwrap_or(&text);
            let end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
            let number = &text[..text.len() - unsigned.len() + end];
            let mut cursor = Cursor { text: text.as_bytes(), at: 0 };
            let read = cursor.integer();
            prop_assert_eq!(read, number.parse().ok());
            prop_assert_eq!(cursor.at, if read.is_some() { number.len() } else { 0 });
        }
    }

    #[test]
    fn numbers_end_before_the_first_non_digit() {
        let mut cursor = Cursor {
            text: b"12:-3\n00000000000000000000007",
            at: 0,
        };
        assert_eq!(cursor.integer(), Some(12));
        assert!(cursor.eat(b':'));
        assert_eq!(cursor.integer(), Some(-3));
        assert!(cursor.eat_line_end());
        assert_eq!(cursor.integer(), Some(7));
        assert!(cursor.eat_line_end() && cursor.finished());
        for wrong in [&b""[..], b"-", b"x", b"99999999999999999999"] {
            assert_eq!(Cursor { text: wrong, at: 0 }.integer(), None);
        }
    }
}
