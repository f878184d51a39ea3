//! Reading of fields from bytes: numbers, and descriptions of invalid content.

use std::{ops::Range, str::FromStr};

use super::fault::Fault;
use flowcast_program::{TraceError, opcodes::is_duration, program::SharedBytes};
use flowcast_units::Rank;

/// Name and text of a file that is being read.
#[derive(Clone, Copy)]
pub(super) struct ScanInput<'a> {
    /// Name of the file in error messages.
    pub name: &'a str,
    /// Whole text of the file.
    pub text: &'a [u8],
}

impl ScanInput<'_> {
    /// Returns an error for the line that contains byte `at`.
    pub(super) fn fault(
        &self,
        at: usize,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> TraceError {
        TraceError::At {
            place: self.place(at),
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// Returns the error of a fault in the line that contains byte `at`.
    pub(super) fn refuse(&self, at: usize, fault: Fault) -> TraceError {
        fault.at(self.place(at), || self.shown(at))
    }

    /// Returns the file and the line that contains byte `at`.
    pub(super) fn place(&self, at: usize) -> String {
        let line = memchr::memchr_iter(b'\n', &self.text[..at.min(self.text.len())]).count() + 1;
        format!("{}:{line}", self.name)
    }

    /// Returns the line that contains byte `at`, for messages.
    pub(super) fn shown(&self, at: usize) -> String {
        let start =
            memchr::memrchr(b'\n', &self.text[..at.min(self.text.len())]).map_or(0, |end| end + 1);
        let rest = &self.text[start..];
        shown(rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())].trim_ascii())
    }
}

/// Returns a field or line for messages: short, printable and quoted.
pub(super) fn shown(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "the end of the line".to_owned();
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
    format!("`{}`", text.trim_end().escape_default())
}

/// Returns the value that the standard library reads from a text, such as a number.
pub(super) fn parsed<T: FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Returns the lines of a text as byte ranges, without their ends (`\n` or `\r\n`).
pub(super) fn lines(text: &[u8], from: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = from;
    std::iter::from_fn(move || {
        if at >= text.len() {
            return None;
        }
        let start = at;
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |length| start + length);
        at = end + 1;
        let end = if end > start && text[end - 1] == b'\r' {
            end - 1
        } else {
            end
        };
        Some(start..end)
    })
}

/// Reads seconds with at most nine decimals as whole nanoseconds, without rounding; other numbers are parsed by the standard
/// library. Returns `None` if the text is not a number, is negative or is not finite.
#[inline]
pub(super) fn seconds_as_nanos(text: &[u8]) -> Option<f64> {
    let mut text = text.trim_ascii();
    while let [b'0' | b'+', b'0'..=b'9', ..] = text {
        text = &text[1..];
    }
    let mut value: u64 = 0;
    let mut point = None;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() && index > 0 => point = Some(index),
            _ => return slow_nanos(text),
        }
        if index == 18 {
            return slow_nanos(text);
        }
    }
    const POWERS: [u64; 10] = [
        1,
        10,
        100,
        1_000,
        10_000,
        100_000,
        1_000_000,
        10_000_000,
        100_000_000,
        1_000_000_000,
    ];
    let decimals = point.map_or(0, |point| text.len() - point - 1);
    if text.is_empty() || decimals > 9 {
        return slow_nanos(text);
    }
    match value.checked_mul(POWERS[9 - decimals]) {
        Some(nanos) => Some(nanos as f64),
        None => slow_nanos(text),
    }
}

#[cold]
fn slow_nanos(text: &[u8]) -> Option<f64> {
    let seconds: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    let nanos = seconds * 1e9;
    is_duration(nanos).then_some(nanos.abs())
}

/// Checks that a communicator's definition has the stated number of tasks, each of them once.
pub(super) fn check_members(id: i64, members: &[Rank], count: i64) -> Result<(), Fault> {
    if members.len() as i64 != count {
        return Err(Fault::value(
            format!("{} tasks in communicator {id}", members.len()),
            format!("{count} tasks"),
        ));
    }
    let mut distinct = members.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() == members.len() {
        Ok(())
    } else {
        Err(Fault::value(
            format!("a task twice in communicator {id}"),
            "each task once",
        ))
    }
}

/// Returns the bytes of a shared owner.
pub(super) fn bytes_of(shared: &SharedBytes) -> &[u8] {
    (**shared).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the number as the standard library reads it, but without rounding if it has at most nine decimals and 18
    /// digits.
    fn plain(text: &str) -> Option<f64> {
        let text = text.trim_ascii();
        let seconds: f64 = text.parse().ok()?;
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{decimals:0<9}");
        let exact = digits.parse::<i128>().ok().filter(|nanos| {
            decimals.len() <= 9 && !whole.is_empty() && nanos.abs() < 1_000_000_000_000_000_000
        });
        let nanos = exact.map_or(seconds * 1e9, |nanos| nanos as f64);
        (0.0..=1e27).contains(&nanos).then_some(nanos)
    }

    proptest! {
        #[test]
        fn seconds_equal_those_of_the_plain_parser(
            text in prop_oneof![
                "[ +-]{0,2}[0-9]{0,12}(\\.[0-9]{0,12})?[ +-]{0,1}",
                "-?0{1,20}\\.[0-9]{9}",
                "[0-9.eE+-]{0,12}",
                "\\PC{0,8}",
            ],
        ) {
            let read = seconds_as_nanos(text.as_bytes());
            match (read, plain(&text)) {
                (Some(read), Some(plain)) => prop_assert!((read - plain).abs() <= plain * 1e-15, "{text}: {read}, {plain}"),
                (read, plain) => prop_assert_eq!(read, plain, "{}", text),
            }
        }
    }

    #[test]
    fn seconds_are_exact_to_the_nanosecond() {
        assert_eq!(seconds_as_nanos(b"0.000058284"), Some(58284.0));
        assert_eq!(seconds_as_nanos(b"1"), Some(1e9));
        assert_eq!(seconds_as_nanos(b"2.5e-6"), Some(2500.0));
        assert_eq!(seconds_as_nanos(b"0.0000000005"), Some(0.5));
        for wrong in [&b""[..], b"-1.0", b"nan", b"inf", b"1.2.3", b".", b"abc"] {
            assert_eq!(
                seconds_as_nanos(wrong),
                None,
                "{}",
                String::from_utf8_lossy(wrong)
            );
        }
    }
}
