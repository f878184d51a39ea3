//! A position in a text that moves over numbers and separators, without looking for line ends first.

/// Where reading stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    /// The whole text of the file.
    pub text: &'a [u8],
    /// Index of the next byte.
    pub at: usize,
}

impl Cursor<'_> {
    /// The next byte, 0 at the end.
    #[inline(always)]
    pub(super) fn peek(&self) -> u8 {
        if self.at < self.text.len() { self.text[self.at] } else { 0 }
    }

    /// Moves over `byte` if it is next.
    #[inline(always)]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let next = self.peek() == byte && self.at < self.text.len();
        self.at += usize::from(next);
        next
    }

    /// Moves over `bytes` if they are next.
    #[inline(always)]
    pub(super) fn eat_all(&mut self, bytes: &[u8]) -> bool {
        let next = self.text[self.at..].starts_with(bytes);
        self.at += if next { bytes.len() } else { 0 };
        next
    }

    /// The whole number that begins here; does not move if there is none or it does not fit.
    #[inline(always)]
    pub(super) fn integer(&mut self) -> Option<i64> {
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
            // Leading zeros pad some headers; anything else this long overflows.
            return if count > 18 { self.long_integer(digits) } else { None };
        }
        Some(if negative { -value } else { value })
    }

    #[cold]
    fn long_integer(&mut self, digits: usize) -> Option<i64> {
        let end = digits + self.text[digits..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let value = std::str::from_utf8(&self.text[self.at..end]).ok()?.parse().ok()?;
        self.at = end;
        Some(value)
    }

    /// Whole numbers separated by colons.
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

    /// The bytes up to `byte` or the end of the line.
    #[inline]
    pub(super) fn until(&mut self, byte: u8) -> &[u8] {
        let start = self.at;
        let end = memchr::memchr2(byte, b'\n', &self.text[start..]).map_or(self.text.len(), |length| start + length);
        self.at = end;
        &self.text[start..end]
    }

    /// Moves over blanks and the end of the line; false if something else stands there.
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

    /// Moves behind the end of the line.
    pub(super) fn skip_line(&mut self) {
        self.at = memchr::memchr(b'\n', &self.text[self.at..]).map_or(self.text.len(), |length| self.at + length + 1);
    }

    /// Whether everything is read.
    #[inline(always)]
    pub(super) fn finished(&self) -> bool {
        self.at >= self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_up_to_what_is_no_digit() {
        let mut cursor = Cursor { text: b"12:-3\n00000000000000000000007", at: 0 };
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
