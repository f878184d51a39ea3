//! Lines of numbers and names, as the standard library would print them and several times as fast: a trace of a million
//! messages has eight million lines.

use std::io::{self, Write};

/// Text on its way to a file.
pub(super) struct Text<'a> {
    out: &'a mut dyn Write,
    bytes: Vec<u8>,
}

/// So much is handed over at a time.
const ENOUGH: usize = 1 << 18;

/// The numbers below 100 with two digits each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Most digits of a number.
const DIGITS: usize = 20;

impl<'a> Text<'a> {
    /// Nothing is written yet. [`Text::finish`] hands over what is left in the end.
    pub(super) fn new(out: &'a mut dyn Write) -> Text<'a> {
        Text {
            out,
            bytes: Vec::with_capacity(ENOUGH + (1 << 12)),
        }
    }

    /// Text as it is.
    #[inline]
    pub(super) fn put(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    /// One character below 128.
    #[inline]
    pub(super) fn sign(&mut self, sign: u8) -> &mut Self {
        self.bytes.push(sign);
        self
    }

    /// A whole number.
    #[inline]
    pub(super) fn number(&mut self, mut number: u64) -> &mut Self {
        let mut digits = [b'0'; DIGITS];
        let mut at = DIGITS;
        while number >= 100 {
            at -= 2;
            digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
            number /= 100;
        }
        let [tens, ones] = PAIRS[number as usize];
        at -= 1;
        digits[at] = ones;
        if number >= 10 {
            at -= 1;
            digits[at] = tens;
        }
        self.bytes.extend_from_slice(&digits[at..]);
        self
    }

    /// A whole number that may be negative.
    #[inline]
    pub(super) fn signed(&mut self, number: i64) -> &mut Self {
        if number < 0 {
            self.sign(b'-');
        }
        self.number(number.unsigned_abs())
    }

    /// A finite number with the fewest digits that differ from those of all others, and without an exponent.
    pub(super) fn decimal(&mut self, number: f64) -> &mut Self {
        let mut buffer = zmij::Buffer::new();
        let shortest = buffer.format(number);
        // An exponent has a sign and three digits at most.
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
        self.bytes.resize(self.bytes.len() + count, b'0');
        self
    }

    /// The end of a line.
    ///
    /// # Errors
    /// Those of the file.
    #[inline]
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        self.bytes.push(b'\n');
        if self.bytes.len() < ENOUGH {
            Ok(())
        } else {
            self.hand_over()
        }
    }

    /// Hands over what is left.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.hand_over()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(print: impl Fn(&mut Text<'_>)) -> String {
        let mut out = Vec::new();
        let mut text = Text::new(&mut out);
        print(&mut text);
        text.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    fn print_one(print: impl for<'a, 'b> Fn(&'a mut Text<'b>) -> &'a mut Text<'b>) -> String {
        printed(|text| {
            print(text);
        })
    }

    proptest! {
        #[test]
        fn numbers_look_as_the_standard_library_prints_them(
            number: u64, signed: i64, small in 0u64..20_000, any: f64, seconds in 0.0..1e4f64, nanos in 0u64..1 << 40,
        ) {
            for number in [number, small, nanos] {
                prop_assert_eq!(print_one(|text| text.number(number)), number.to_string());
            }
            prop_assert_eq!(print_one(|text| text.signed(signed)), signed.to_string());
            let decimals = [any, seconds, seconds / 1e9, nanos as f64 / 1e9, nanos as f64, small as f64 * 1e18];
            for number in decimals.into_iter().filter(|number| number.is_finite()) {
                for number in [number, -number] {
                    let (own, usual) = (print_one(|text| text.decimal(number)), number.to_string());
                    // Of two texts that are as short and as near, either may be taken: 1447655783922576.25 has two.
                    let is_other = own.len() == usual.len() && own.parse() == Ok(number);
                    prop_assert!(own == usual || is_other, "{own}, not {usual}");
                }
            }
        }
    }

    #[test]
    fn all_lines_are_handed_over() {
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
