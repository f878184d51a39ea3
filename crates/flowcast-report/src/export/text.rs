//! Lines of numbers and names, in the format of the standard library and several times as fast. A trace of a million
//! messages has eight million lines.

use std::io::{self, Write};

/// Buffered text for a file.
pub(super) struct ExportText<'a> {
    out: &'a mut dyn Write,
    /// Buffer. The bytes before `end` are text; the others are free.
    bytes: Vec<u8>,
    end: usize,
}

/// Number of bytes that are written to the file at a time.
const ENOUGH: usize = 1 << 18;

/// Additional space, enough for most lines.
const LINE: usize = 1 << 12;

/// A text at the start of many lines, padded so that it is copied as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShortText {
    bytes: [u8; SHORT],
    length: usize,
}

/// Capacity of a [`ShortText`], in bytes.
const SHORT: usize = 48;

impl ShortText {
    /// Creates a short text of at most 48 bytes.
    pub(super) fn new(text: &str) -> ShortText {
        let mut bytes = [0; SHORT];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        ShortText {
            bytes,
            length: text.len(),
        }
    }
}

/// Converts a number below 10^8 to eight digits with values from 0 to 9, the first in the lowest byte. The halves of the
/// number are divided in parallel.
#[inline(always)]
fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7F_0000_007F;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (twos - tens * 10) << 8
}

/// Eight zero characters, to be added to eight digits.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Smallest number with more than eight digits.
const EIGHT_DIGITS: u64 = 100_000_000;

impl<'a> ExportText<'a> {
    /// Creates an empty buffer. [`ExportText::finish`] writes the remaining text at the end.
    pub(super) fn new(out: &'a mut dyn Write) -> ExportText<'a> {
        ExportText {
            out,
            bytes: vec![0; ENOUGH + LINE],
            end: 0,
        }
    }

    /// Returns space for `N` bytes behind the text.
    #[inline(always)]
    fn room<const N: usize>(&mut self) -> &mut [u8; N] {
        if self.bytes.len() < self.end + N {
            self.make_room(N);
        }
        (&mut self.bytes[self.end..self.end + N])
            .try_into()
            .expect("the slice has N bytes")
    }

    #[cold]
    fn make_room(&mut self, count: usize) {
        self.bytes.resize(self.end + count + LINE, 0);
    }

    /// Appends text as it is, without quotes or an end of line.
    #[inline]
    pub(super) fn put(&mut self, text: &str) -> &mut Self {
        if self.bytes.len() - self.end < text.len() {
            self.make_room(text.len());
        }
        self.bytes[self.end..self.end + text.len()].copy_from_slice(text.as_bytes());
        self.end += text.len();
        self
    }

    /// Appends a short text with its first character replaced by `sign`.
    #[inline(always)]
    pub(super) fn short_beginning_with(&mut self, sign: u8, text: &ShortText) -> &mut Self {
        let room = self.room();
        *room = text.bytes;
        room[0] = sign;
        self.end += text.length;
        self
    }

    /// Appends a short text without its first character.
    #[inline(always)]
    pub(super) fn short_behind_first(&mut self, text: &ShortText) -> &mut Self {
        let [_, behind @ ..] = &text.bytes;
        *self.room() = *behind;
        self.end += text.length - 1;
        self
    }

    /// Appends one ASCII character.
    #[inline(always)]
    pub(super) fn sign(&mut self, sign: u8) -> &mut Self {
        *self.room() = [sign];
        self.end += 1;
        self
    }

    /// Appends a whole number.
    #[inline(always)]
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        if number < 10 {
            return self.sign(b'0' + number as u8);
        }
        self.number_and(number, b' ');
        self.end -= 1;
        self
    }

    /// Appends a whole number, followed by an ASCII character.
    #[inline(always)]
    pub(super) fn number_and(&mut self, number: u64, sign: u8) -> &mut Self {
        if number >= EIGHT_DIGITS {
            return self.long_number_and(number, sign);
        }
        let digits = eight_digits(number);
        let zeros = (digits.trailing_zeros() / 8).min(7);
        self.eight_and((digits | ZEROS) >> (8 * zeros), 8 - zeros, sign)
    }

    /// The variant for more than eight digits: the first ones as a number, the last eight with leading zeros.
    #[inline(always)]
    fn long_number_and(&mut self, number: u64, sign: u8) -> &mut Self {
        let (first, last) = (number / EIGHT_DIGITS, number % EIGHT_DIGITS);
        if first < EIGHT_DIGITS {
            let digits = eight_digits(first);
            let zeros = (digits.trailing_zeros() / 8).min(7);
            *self.room() = ((digits | ZEROS) >> (8 * zeros)).to_le_bytes();
            self.end += 8 - zeros as usize;
        } else {
            self.put_first_of_many(first);
        }
        self.eight_and(eight_digits(last) | ZEROS, 8, sign)
    }

    #[cold]
    fn put_first_of_many(&mut self, number: u64) {
        self.number(number);
    }

    /// Appends the first `count` of eight characters, and one more character.
    #[inline(always)]
    fn eight_and(&mut self, eight: u64, count: u32, sign: u8) -> &mut Self {
        let all = u128::from(eight) | u128::from(sign) << (8 * count);
        *self.room() = all.to_le_bytes();
        self.end += count as usize + 1;
        self
    }

    /// Appends a whole number that may be negative.
    #[inline]
    pub(super) fn signed(&mut self, number: i64) -> &mut Self {
        if number < 0 {
            self.sign(b'-');
        }
        self.number(number.unsigned_abs())
    }

    /// Appends a finite number with the fewest digits that identify it, without an exponent.
    pub(super) fn decimal(&mut self, number: f64) -> &mut Self {
        let mut buffer = zmij::Buffer::new();
        let shortest = buffer.format(number);
        // An exponent has a sign and at most three digits.
        let tail = shortest.len().saturating_sub(5);
        let Some(at) = shortest.as_bytes()[tail..]
            .iter()
            .position(|sign| *sign == b'e')
        else {
            return self.put(shortest.strip_suffix(".0").unwrap_or(shortest));
        };
        let (mantissa, exponent) = (&shortest[..tail + at], &shortest[tail + at + 1..]);
        let exponent: i32 = exponent.parse().expect("an exponent is a number");
        let (sign, mantissa) = mantissa.split_at(usize::from(mantissa.starts_with('-')));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        self.put(sign);
        if exponent < 0 {
            self.put("0.")
                .zeros(-exponent as usize - whole.len())
                .put(whole)
                .put(fraction)
        } else {
            self.put(whole)
                .put(fraction)
                .zeros(exponent as usize - fraction.len())
        }
    }

    fn zeros(&mut self, count: usize) -> &mut Self {
        (0..count).for_each(|_| _ = self.sign(b'0'));
        self
    }

    /// Ends a line.
    ///
    /// # Errors
    /// Errors of the file.
    #[inline]
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        self.sign(b'\n');
        if self.end < ENOUGH {
            Ok(())
        } else {
            self.hand_over()
        }
    }

    /// Writes the remaining text.
    ///
    /// # Errors
    /// Errors of the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.hand_over()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes[..self.end])?;
        self.end = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(print: impl Fn(&mut ExportText<'_>)) -> String {
        let mut out = Vec::new();
        let mut text = ExportText::new(&mut out);
        print(&mut text);
        text.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    fn print_one(
        print: impl for<'a, 'b> Fn(&'a mut ExportText<'b>) -> &'a mut ExportText<'b>,
    ) -> String {
        printed(|text| {
            print(text);
        })
    }

    proptest! {
        #[test]
        fn numbers_look_as_the_standard_library_prints_them(
            number: u64, signed: i64, small in 0u64..20_000, any: f64, seconds in 0.0..1e4f64, nanos in 0u64..1 << 40,
        ) {
            let powers = (0..20).map(|power| 10u64.pow(power)).flat_map(|power| [power - 1, power]);
            for number in powers.chain([number, small, nanos, u64::MAX]) {
                prop_assert_eq!(print_one(|text| text.number(number)), number.to_string());
            }
            prop_assert_eq!(print_one(|text| text.signed(signed)), signed.to_string());
            let decimals = [any, seconds, seconds / 1e9, nanos as f64 / 1e9, nanos as f64, small as f64 * 1e18];
            for number in decimals.into_iter().filter(|number| number.is_finite()) {
                for number in [number, -number] {
                    let (own, usual) = (print_one(|text| text.decimal(number)), number.to_string());
                    // If two texts are equally short and equally near, either is correct: 1447655783922576.25 has two.
                    let is_other = own.len() == usual.len() && own.parse() == Ok(number);
                    prop_assert!(own == usual || is_other, "{own}, not {usual}");
                }
            }
        }
    }

    #[test]
    fn texts_longer_than_a_line_stay_unchanged() {
        let long = "long".repeat(LINE);
        let own = printed(|text| {
            let short = ShortText::new("1:2");
            text.put(&long).short_beginning_with(b'3', &short);
            text.sign(b':').put(&long).number(7);
        });
        assert_eq!(own, format!("{long}3:2:{long}7"));
    }

    #[test]
    fn all_lines_are_written() {
        let written =
            printed(|text| (0..100_000).for_each(|line| text.number(line).end_line().unwrap()));
        assert!(
            written
                .lines()
                .map(|line| line.parse::<u64>().unwrap())
                .eq(0..100_000)
        );
    }
}
