//! Sections of the ranks in the text, and the beginning of each rank's lines.

use super::{DimSection, Header};
use crate::read::{cursor::Cursor, scan::ScanInput};
use flowcast_program::{TraceError, build::RankBuilder};
use flowcast_units::Rank;

/// Divides the body into sections, one for each thread of each task. The sections must be in ascending order.
pub(super) fn find_sections(
    input: ScanInput<'_>,
    body: usize,
    header: &Header,
) -> Result<Vec<DimSection>, TraceError> {
    let end = records_end(input.text, body);
    let mut sections = Vec::new();
    let mut at = body;
    for (task, threads) in header.threads.iter().enumerate() {
        for thread in 0..*threads {
            let start = at;
            // The records after the last thread belong to the next task, for any thread number on the lines.
            let last = if thread + 1 == *threads {
                i64::MAX
            } else {
                i64::from(thread)
            };
            at = first_line_past(input.text, at..end, (task as i64, last));
            let builder = RankBuilder::default();
            sections.push(DimSection {
                task: task as u32,
                thread,
                start,
                end: at,
                builder,
                error: None,
            });
        }
    }
    if at < end {
        let found = input.shown(at);
        let expected = format!(
            "records of tasks 0 to {}, grouped by task",
            header.tasks() - 1
        );
        return Err(input.fault(at, found, expected));
    }
    Ok(sections)
}

/// Returns the start of the footer (`s:` lines).
fn records_end(text: &[u8], body: usize) -> usize {
    let mut end = text.len();
    while end > body {
        let line_end = if text[end - 1] == b'\n' { end - 1 } else { end };
        let start = memchr::memrchr(b'\n', &text[..line_end])
            .map_or(0, |at| at + 1)
            .max(body);
        let line = &text[start..line_end];
        if !line.starts_with(b"s:") && !line.iter().all(u8::is_ascii_whitespace) {
            break;
        }
        end = start;
    }
    end
}

/// Returns the first line in `range` whose task and thread are after `last`, by galloping and bisection over line starts.
fn first_line_past(text: &[u8], range: std::ops::Range<usize>, last: (i64, i64)) -> usize {
    let next_line = |at: usize| {
        let rest = &text[at..range.end];
        memchr::memchr(b'\n', rest).map_or(range.end, |length| at + length + 1)
    };
    let past = |at: usize| place_of(&text[at..range.end]).is_some_and(|found| found > last);
    let mut low = range.start;
    if low >= range.end || past(low) {
        return low;
    }
    // Invariant: the line at `low` is not after `last`; `high` is the start of a line after it, or the end.
    let mut step = 1 << 10;
    let mut high = range.end;
    while low + step < range.end {
        let probe = next_line(low + step);
        if probe < range.end && !past(probe) {
            low = probe;
            step *= 2;
        } else {
            high = probe;
            break;
        }
    }
    while next_line(low) < high {
        let middle = low + (high - low) / 2;
        let probe = next_line(middle);
        let probe = if probe >= high { next_line(low) } else { probe };
        if past(probe) {
            high = probe;
        } else {
            low = probe;
        }
    }
    high
}

/// Returns the second and the third field of the line that begins here.
fn place_of(line: &[u8]) -> Option<(i64, i64)> {
    let mut cursor = Cursor { text: line, at: 0 };
    cursor.integer()?;
    let task = cursor.integer_after(b':')?;
    Some((task, cursor.integer_after(b':').unwrap_or(0)))
}

pub(super) fn is_record_of(line: &[u8], task: Rank) -> bool {
    place_of(line).is_some_and(|(found, _)| found == i64::from(task.0))
}

/// Text after the number on each line of a rank: `:task:thread:`.
pub(super) struct Prefix {
    /// The text itself.
    pub(super) bytes: Vec<u8>,
    /// Text as a number, and a mask of its bytes. Not used if the text is longer than 16 bytes.
    word: u128,
    mask: u128,
}

impl Prefix {
    pub(super) fn new(task: u32, thread: u32) -> Prefix {
        let bytes = format!(":{task}:{thread}:").into_bytes();
        let (mut word, mut mask) = ([0; 16], [0; 16]);
        let length = bytes.len().min(16);
        word[..length].copy_from_slice(&bytes[..length]);
        mask[..length].fill(0xFF);
        let [word, mask] = [word, mask].map(u128::from_le_bytes);
        Prefix { bytes, word, mask }
    }

    /// Moves past the prefix if it is next. Returns `true` if it was.
    #[inline(always)]
    pub(super) fn eat(&self, cursor: &mut Cursor<'_>) -> bool {
        let block = cursor
            .text
            .get(cursor.at..)
            .and_then(|rest| rest.first_chunk());
        let Some(block) = block.filter(|_| self.bytes.len() <= 16) else {
            return cursor.eat_all(&self.bytes);
        };
        let next = (u128::from_le_bytes(*block) ^ self.word) & self.mask == 0;
        cursor.at += if next { self.bytes.len() } else { 0 };
        next
    }
}
