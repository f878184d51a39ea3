//! Round trips from the outputs of other benchmarks. A log is read as sections ([`benchmark_log`](crate::benchmark_log)).
//! The sections of the following tests are used, the others are skipped and reported:
//!
//! | benchmark | test | measured time |
//! |---|---|---|
//! | OSU | `osu_latency`, `osu_bw` | half a round trip; a window of messages and a short answer |
//! | IMB | PingPong | half a round trip |
//! | perftest | `ib_send_lat`, `ib_write_lat` | half a round trip, the median; with `-D` the mean |
//! | SKaMPI 5 | `Pingpong_*` except `Sendrecv` | a round trip |
//! | ReproMPI | `Send_Recv` | a round trip; several of each size |
//! | Netgauge | `one_one` | half a round trip, the median, or on the terminal the minimum |
//! | NetPIPE | ping-pong, on the screen or in `np.out` | half a round trip |
//! | nccl-tests | `sendrecv_perf` | a message in each direction at the same time, out of place |
//!
//! All except ReproMPI give one time for a size, so there are no intervals. `osu_bw` sends a window of messages in a row for
//! one answer of four bytes. A window has 64 messages, unless the log or the command contains another number. If
//! `osu_latency` is available as well, the additional time of an answer with the size of the messages is added. The result
//! is the round trip `PRTT_{window,0}(s)`. If the sizes start again, another run begins.

mod half_trips;
mod numbers;
mod reprompi;

use std::fmt;

use flowcast_network::csv::CsvError;
use flowcast_units::{Bytes, Time};
use thiserror::Error;

use crate::{
    benchmark_log::{
        Benchmark, LogSection, WITHOUT_NAME, formats,
        lines::{self, LogLine},
        sections,
    },
    prtt::PrttPoint,
    samples::PrttSamples,
};
use half_trips::{MessageTest, message_test, times};
use numbers::SizedTime;

/// Default number of messages in a row of `osu_bw`.
const USUAL_WINDOW: u32 = 64;

/// Tests that measure a message between two processes.
const EXPECTED: &str = "osu_latency, osu_bw, IMB PingPong, ib_send_lat, ib_write_lat, SKaMPI Pingpong without Sendrecv, ReproMPI \
                        Send_Recv, sendrecv_perf, NetPIPE or Netgauge one_one";

/// Error for a rejected output.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ImportError {
    /// The text has neither samples nor the output of a known benchmark. Contains the names of the known benchmarks.
    #[error(
        "found no samples and no output of a known benchmark, expected columns of samples (`flowcast fit --help`) or one of {0}"
    )]
    Unknown(String),
    /// The banner of a benchmark follows an unknown prefix.
    #[error(
        "line {line}: found `{prefix}` before the banner of a benchmark, expected the banner alone or after a rank, a \
         node or a time"
    )]
    Prefix {
        /// The line of the banner.
        line: usize,
        /// The text before it.
        prefix: String,
    },
    /// Invalid content in the output of a benchmark, with its line.
    #[error(transparent)]
    Line(#[from] CsvError),
    /// No test in the output measures a message between two processes.
    #[error("found {found}, expected a message between two processes: {EXPECTED}")]
    NoMessages {
        /// The tests that were found, with their lines.
        found: String,
    },
    /// A table without the name of its test.
    #[error(
        "line {line}: found a table of {benchmark} that does not name its test{reason}, expected its \
         banner or the name of the test, such as --test {example}"
    )]
    Unnamed {
        /// The first line of the table.
        line: usize,
        /// The benchmark.
        benchmark: Benchmark,
        /// Reason for the missing name, if known.
        reason: &'static str,
        /// Example of a valid test.
        example: &'static str,
    },
    /// The user named a test, but every table names its own.
    #[error("--test: found the name of each test in the output, expected a table without a name")]
    AllNamed,
    /// Several runs that the user could mean.
    #[error(
        "found {found}, expected one run: choose with --section {example}, or fit several together with --section {all}"
    )]
    SeveralRuns {
        /// The runs with their lines.
        found: String,
        /// Line of the first run.
        example: usize,
        /// Lines of all runs.
        all: String,
    },
    /// The user chose a section that does not exist.
    #[error("--section {line}: found no such section, expected the first line of one: {found}")]
    NoSection {
        /// The line given by the user.
        line: usize,
        /// The sections that can be chosen.
        found: String,
    },
    /// A size with a bandwidth but without a latency, so that its round trip is unknown.
    #[error("osu_bw: found no osu_latency of {size}, expected it together with the bandwidths")]
    NoLatency {
        /// A size with only a bandwidth.
        size: Bytes,
    },
}

/// The user's choices for an ambiguous output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportChoice {
    /// Test of the tables without a name.
    pub test: Option<String>,
    /// First lines of the sections to read. Empty for the only run.
    pub sections: Vec<usize>,
}

/// A section that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedSection {
    /// Its first line.
    pub line: usize,
    /// Its benchmark.
    pub benchmark: Benchmark,
    /// Full name of its test. `None` if the output does not contain it.
    pub test: Option<String>,
    /// Reason for skipping it.
    pub reason: &'static str,
}

impl fmt::Display for SkippedSection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let test = self.test.as_deref().unwrap_or(WITHOUT_NAME);
        let SkippedSection {
            line,
            benchmark,
            reason,
            ..
        } = self;
        write!(out, "line {line}: {benchmark} {test} ({reason})")
    }
}

/// Times of messages in one output.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    /// Sizes and halves of round trips.
    one_way: Vec<SizedTime>,
    /// Number of messages of each window, with the size of a message and the time of the window and its short answer.
    windows: Vec<(u32, SizedTime)>,
    /// Sections of other tests, in their order.
    pub skipped: Vec<SkippedSection>,
    /// Notes on lines that were left out of the sections that were read.
    pub notes: Vec<String>,
}

/// Reads the output of any known benchmarks. From all sections, this takes the only run that measures messages between two
/// processes, or the chosen sections.
///
/// # Errors
/// No known benchmark, no test of messages, several runs of one test, or an invalid number, with its line.
pub fn read(text: &str, choice: &ImportChoice) -> Result<Imported, ImportError> {
    let lines = lines::lines(text);
    let mut sections = sections(&lines);
    if sections.is_empty() {
        return Err(unknown(text));
    }
    name_tests(&mut sections, choice.test.as_deref())?;
    let chosen = choose(&sections, &choice.sections)?;
    let mut imported = Imported::default();
    for section in &sections {
        match message_test(section).filter(|_| chosen.contains(&section.line)) {
            Some(test) => imported.take(section, test)?,
            None => imported.skipped.push(skipped(section)),
        }
    }
    Ok(imported)
}

/// Maximum number of characters before a banner.
const LONGEST_PREFIX: usize = 200;

/// Error for a text without a banner at the start of a line. A banner may stand after an unknown prefix.
fn unknown(text: &str) -> ImportError {
    for (line, text) in (1..).zip(text.lines()) {
        let starts = text.char_indices().take(LONGEST_PREFIX).skip(1);
        for (at, _) in starts.filter(|(at, _)| text[*at..].starts_with('#')) {
            let words: Vec<&str> = text[at..].split_whitespace().collect();
            if formats::mark(&words).is_some() {
                let prefix = text[..at].to_owned();
                return ImportError::Prefix { line, prefix };
            }
        }
    }
    ImportError::Unknown(Benchmark::NAMES.map(|(_, name)| name).join(", "))
}

/// Gives the test named by the user to the tables without a name.
fn name_tests(sections: &mut [LogSection<'_>], test: Option<&str>) -> Result<(), ImportError> {
    let Some(test) = test else { return Ok(()) };
    let mut unnamed = sections
        .iter_mut()
        .filter(|section| section.test.is_none())
        .peekable();
    if unnamed.peek().is_none() {
        return Err(ImportError::AllNamed);
    }
    unnamed.for_each(|section| section.test = Some(test.to_owned()));
    Ok(())
}

/// Returns the first lines of the sections to read: the requested ones, or the only run of each kind.
fn choose(sections: &[LogSection<'_>], asked: &[usize]) -> Result<Vec<usize>, ImportError> {
    let measured = sections.iter().filter(|section| !section.rows.is_empty());
    let with_messages = measured.filter_map(|section| Some((section, message_test(section)?)));
    let all: Vec<&LogSection<'_>> = with_messages.clone().map(|(section, _)| section).collect();
    if all.is_empty() {
        return Err(no_messages(sections));
    }
    if let Some(line) = asked
        .iter()
        .find(|line| all.iter().all(|known| known.line != **line))
    {
        let (line, found) = (*line, listed(&all));
        return Err(ImportError::NoSection { line, found });
    }
    if !asked.is_empty() {
        return Ok(asked.to_owned());
    }
    for kind in [MessageTest::HalfTrip, MessageTest::Window] {
        if with_messages
            .clone()
            .filter(|(_, test)| *test == kind)
            .count()
            > 1
        {
            let lines: Vec<String> = all.iter().map(|section| section.line.to_string()).collect();
            return Err(ImportError::SeveralRuns {
                found: listed(&all),
                example: all[0].line,
                all: lines.join(","),
            });
        }
    }
    Ok(all.iter().map(|section| section.line).collect())
}

fn listed(sections: &[&LogSection<'_>]) -> String {
    let names = sections
        .iter()
        .map(|section| format!("{} (line {})", section.name(), section.line));
    names.collect::<Vec<_>>().join(", ")
}

fn no_messages(sections: &[LogSection<'_>]) -> ImportError {
    let Some(LogSection {
        line, benchmark, ..
    }) = sections
        .iter()
        .find(|section| section.test.is_none() && !section.rows.is_empty())
    else {
        let without_rows = sections.iter().all(|section| section.rows.is_empty());
        let mut found = listed(&sections.iter().collect::<Vec<_>>());
        found += if without_rows { " without rows" } else { "" };
        let mut strays = sections
            .iter()
            .filter_map(|section| Some(stray(section.strays.first()?, section)));
        if let Some(stray) = strays.next().filter(|_| without_rows) {
            found = format!("{found}, as {stray}");
        }
        return ImportError::NoMessages { found };
    };
    let (reason, example) = match benchmark {
        Benchmark::NcclTests => (" (versions before 2.17 do not)", "sendrecv"),
        Benchmark::Perftest => ("", "ib_send_lat"),
        Benchmark::Imb => ("", "PingPong"),
        _ => ("", "osu_latency"),
    };
    let (line, benchmark) = (*line, *benchmark);
    ImportError::Unnamed {
        line,
        benchmark,
        reason,
        example,
    }
}

fn skipped(section: &LogSection<'_>) -> SkippedSection {
    let reason = match message_test(section) {
        _ if section.rows.is_empty() => "without rows",
        _ if section.test.is_none() => "its test is not named",
        Some(_) => "not chosen",
        None => "not a message between two processes",
    };
    SkippedSection {
        line: section.line,
        benchmark: section.benchmark,
        test: section.test.clone(),
        reason,
    }
}

impl Imported {
    fn take(&mut self, section: &LogSection<'_>, test: MessageTest) -> Result<(), ImportError> {
        one_writer(section)?;
        let times = times(section, test)?;
        if times.is_empty() {
            let found = "only rows that the benchmark marks as wrong";
            return Err(CsvError::at(section.rows[0].line, found, "a valid row").into());
        }
        match test {
            MessageTest::HalfTrip => self.one_way.extend(times),
            MessageTest::Window => {
                let window = half_trips::window(section)?;
                self.windows
                    .extend(times.into_iter().map(|time| (window, time)));
            }
        }
        if let Some(first) = section.strays.first() {
            let more = match section.strays.len() - 1 {
                0 => "",
                1 => ", and one more line",
                _ => ", and more lines",
            };
            let stray = stray(first, section);
            self.notes.push(format!("{stray} and is left out{more}"));
        }
        let void = section
            .rows
            .iter()
            .filter(|row| formats::is_void(section, &row.words));
        self.notes.extend(void.map(|row| {
            let (line, size, name) = (row.line, row.words[0], section.name());
            format!(
                "line {line}: {name} found wrong data in messages of {size} B, which are left out"
            )
        }));
        Ok(())
    }
}

/// Describes a line inside a table that is not a row of it.
fn stray(line: &LogLine, section: &LogSection<'_>) -> String {
    let text: String = line.text.trim().chars().take(60).collect();
    format!(
        "line {}: `{text}` is no row of {}",
        line.number,
        section.name()
    )
}

/// Checks that one rank wrote all rows, and that either all rows or none have a prefix.
fn one_writer(section: &LogSection<'_>) -> Result<(), CsvError> {
    let Some((first, rest)) = section.rows.split_first() else {
        return Ok(());
    };
    let Some(other) = rest.iter().find(|row| row.prefix != first.prefix) else {
        return Ok(());
    };
    let found = match other.prefix.label.as_str() {
        label if label == first.prefix.label => {
            "a row with another kind of time before it".to_owned()
        }
        "" => "a row without a prefix".to_owned(),
        label => format!("a row after `{label}`"),
    };
    let expected = match first.prefix.label.as_str() {
        "" => format!("none, as in line {}", first.line),
        label => format!(
            "rows of one process, after `{label}` as in line {}",
            first.line
        ),
    };
    Err(CsvError::at(other.line, found, expected))
}

/// Combines several outputs into the round trips of one network.
///
/// # Errors
/// Windows of messages of a size without a measured single message.
pub fn samples<'a>(
    all: impl Iterator<Item = &'a Imported> + Clone,
) -> Result<PrttSamples, ImportError> {
    let one_way = all.clone().flat_map(|imported| &imported.one_way).copied();
    let mut samples = PrttSamples::default();
    one_way
        .clone()
        .for_each(|(size, time)| samples.push(PrttPoint::round_trip(size), time * 2.0));
    let shortest = one_way.clone().min_by_key(|(size, _)| *size);
    let windows = all.flat_map(|imported| &imported.windows);
    for (window, (size, time)) in windows.copied() {
        let same = one_way.clone().find(|(other, _)| *other == size);
        let (Some((_, own)), Some((_, shortest))) = (same, shortest) else {
            return Err(ImportError::NoLatency { size });
        };
        let longer = Time::from_nanos((own.as_nanos() - shortest.as_nanos()).max(0.0));
        samples.push(PrttPoint::new(window, Time::ZERO, size), time + longer);
    }
    Ok(samples)
}

#[cfg(test)]
mod tests;
