//! Lines of a call.

use super::super::scan::{ScanInput, lines, shown};
use flowcast_program::TraceError;

/// Text after the name and a space on the first line of a call.
pub(super) const ENTERING: &str = "entering at walltime ";
const RETURNING: &str = "returning at walltime ";

/// Call with its arguments as text.
pub(super) struct DumpiRecord<'a> {
    /// Position of the first line.
    pub at: usize,
    /// Name of the function, without `MPI_`.
    pub name: &'a str,
    /// Names and values of arguments.
    pub arguments: Vec<(&'a str, &'a str)>,
    /// Number of the thread that made the call.
    pub thread: u32,
    /// Start of the call, in ns.
    pub begin: u64,
    /// Return of the call, in ns.
    pub end: u64,
}

/// Returns `true` if a line is the first line of a call.
pub(super) fn is_entering(line: &[u8]) -> bool {
    let name = memchr::memchr(b' ', line);
    name.is_some_and(|end| line[end + 1..].starts_with(ENTERING.as_bytes()))
}

/// Returns start and end of each rank's text. A rank starts at a header or at another `MPI_Init`.
pub(super) fn sections(text: &[u8]) -> Vec<(usize, usize)> {
    let mut starts = Vec::new();
    let mut has_calls = true;
    for range in lines(text, 0) {
        let line = &text[range.clone()];
        let is_init = line.starts_with(b"MPI_Init")
            && is_entering(line)
            && !line.starts_with(b"MPI_Initialized");
        if line.starts_with(b"version=") || is_init && has_calls {
            starts.push(range.start);
            has_calls = false;
        }
        has_calls |= is_init;
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().copied().zip(ends).collect()
}

/// Iterator over the calls of one rank.
pub(super) struct LineReader<'a> {
    input: ScanInput<'a>,
    at: usize,
    end: usize,
    /// `true` if the last call has no end.
    pub is_unfinished: bool,
}

impl<'a> LineReader<'a> {
    /// Creates a reader of the text from `at` to `end`.
    pub(super) fn new(input: ScanInput<'a>, at: usize, end: usize) -> LineReader<'a> {
        LineReader {
            input,
            at,
            end,
            is_unfinished: false,
        }
    }

    /// Returns the next call.
    ///
    /// # Errors
    /// A line is malformed.
    pub(super) fn next(&mut self) -> Result<Option<DumpiRecord<'a>>, TraceError> {
        let text: &'a [u8] = &self.input.text[..self.end];
        let mut open: Option<DumpiRecord<'a>> = None;
        for range in lines(text, self.at) {
            let line = std::str::from_utf8(&text[range.clone()]).map_err(|_| {
                self.input
                    .fault(range.start, "bytes that are not UTF-8", "text")
            })?;
            match &mut open {
                None if is_entering(line.as_bytes()) => {
                    open = Some(self.entering(range.start, line)?);
                }
                // Headers, and counts after the calls.
                None => {}
                Some(record) => {
                    if let Some((name, times)) = split_at(line, RETURNING) {
                        if name.strip_prefix("MPI_") != Some(record.name) {
                            let expected = format!("the end of MPI_{}", record.name);
                            return Err(self.input.fault(
                                range.start,
                                shown(line.as_bytes()),
                                expected,
                            ));
                        }
                        record.end = self.times(range.start, times)?.0;
                        self.at = range.end;
                        return Ok(open);
                    }
                    if is_entering(line.as_bytes()) {
                        let expected = format!("an argument or the end of MPI_{}", record.name);
                        return Err(self.input.fault(
                            range.start,
                            shown(line.as_bytes()),
                            expected,
                        ));
                    }
                    record.arguments.extend(argument(line));
                }
            }
        }
        self.at = self.end;
        self.is_unfinished = open.is_some();
        Ok(None)
    }

    fn entering(&self, at: usize, line: &'a str) -> Result<DumpiRecord<'a>, TraceError> {
        let (name, times) = split_at(line, ENTERING).unwrap_or((line, ""));
        let (begin, thread) = self.times(at, times)?;
        let name = name
            .strip_prefix("MPI_")
            .or_else(|| name.strip_prefix("MPIO_"))
            .ok_or_else(|| {
                self.input
                    .fault(at, shown(line.as_bytes()), "MPI_NAME entering at walltime")
            })?;
        Ok(DumpiRecord {
            at,
            name,
            arguments: Vec::new(),
            thread,
            begin,
            end: begin,
        })
    }

    fn times(&self, at: usize, text: &str) -> Result<(u64, u32), TraceError> {
        times(text).ok_or_else(|| {
            self.input.fault(
                at,
                shown(text.as_bytes()),
                "SECONDS.NANOSECONDS, cputime ... in thread N.",
            )
        })
    }
}

/// Reads nanoseconds and thread from `S.NNNNNNNNN, cputime ... in thread T.`
fn times(text: &str) -> Option<(u64, u32)> {
    let (wall, rest) = text.split_once(',')?;
    let (seconds, nanos) = wall.split_once('.')?;
    let mut digits = seconds.bytes().chain(nanos.bytes());
    if !digits.all(|byte| byte.is_ascii_digit()) || nanos.len() != 9 {
        return None;
    }
    let (seconds, nanos): (u64, u64) = (seconds.parse().ok()?, nanos.parse().ok()?);
    let (_, thread) = rest.rsplit_once("thread ")?;
    let thread = thread.trim_end_matches('.').parse().ok()?;
    (seconds < 1 << 33).then(|| (seconds * 1_000_000_000 + nanos, thread))
}

/// Returns the name and the times of the first or the last line of a call.
fn split_at<'a>(line: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let (name, rest) = line.split_once(' ')?;
    Some((name, rest.strip_prefix(mark)?))
}

/// Reads `TYPE NAME=VALUE` or `TYPE NAME[N]=VALUE`.
fn argument(line: &str) -> Option<(&str, &str)> {
    let (left, value) = line.split_once('=')?;
    let (_, name) = left.rsplit_once(' ')?;
    Some((name.split('[').next().unwrap_or(name), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn times_have_nine_decimals_and_no_sign(wall in "[+-]?[0-9]{0,12}\\.[+-]?[0-9]{7,10}") {
            let read = times(&format!("{wall}, cputime 0.000000001 seconds in thread 3."));
            let (seconds, decimals) = wall.split_once('.').unwrap();
            let is_unsigned = !wall.contains(['+', '-']);
            let plain = format!("{seconds}{decimals}").parse::<u64>().ok().filter(|nanos| {
                is_unsigned && !seconds.is_empty() && decimals.len() == 9 && *nanos < 1_000_000_000 << 33
            });
            prop_assert_eq!(read, plain.map(|nanos| (nanos, 3)));
        }
    }
}
