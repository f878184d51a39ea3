//! Times of single messages from the rows of a section.

use flowcast_network::csv::CsvError;
use flowcast_units::Time;

use super::{
    USUAL_WINDOW,
    numbers::{SizedTime, micros, positive, size},
    reprompi,
};
use crate::benchmark_log::{
    Benchmark::*,
    LogRow, LogSection,
    formats::{WINDOW, is_void},
    netpipe,
};

/// Measurement of messages from one process to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageTest {
    /// Half a round trip.
    HalfTrip,
    /// A window of messages in a row and a short answer.
    Window,
}

/// Returns the measurement of a section. `None` for tests of anything but messages from one process to one other.
pub(super) fn message_test(section: &LogSection<'_>) -> Option<MessageTest> {
    let test = section.test.as_deref()?.to_ascii_lowercase();
    if section.processes().is_some_and(|count| count != 2) {
        return None;
    }
    let is_half_trip = match section.benchmark {
        Osu => match osu_test(&test) {
            "bandwidth test" | "osu_bw" => return Some(MessageTest::Window),
            test => matches!(test, "latency test" | "osu_latency"),
        },
        Imb => test == "pingpong" && section.column("t[usec]").is_some(),
        Perftest => matches!(
            test.trim_start_matches("ib_"),
            "send latency test"
                | "send_imm latency test"
                | "rdma_write latency test"
                | "rdma_write_imm latency test"
                | "send_lat"
                | "write_lat"
        ),
        Skampi => test.contains("pingpong") && !test.contains("sendrecv"),
        Reprompi => test == "send_recv",
        NcclTests => matches!(test.as_str(), "sendrecv" | "sendrecv_perf"),
        Netpipe => !section.settings.contains_key("mode"),
        Netgauge => true,
    };
    is_half_trip.then_some(MessageTest::HalfTrip)
}

/// Returns the name of an OSU test after its library, which is `mpi`, `mpi-cuda`, `nccl`, or absent in Java.
fn osu_test(test: &str) -> &str {
    let test = test.strip_prefix("python mpi ").map_or(test, |program| {
        program.strip_suffix(" test").unwrap_or(program)
    });
    match test.split_once(' ') {
        Some((library, rest))
            if ["mpi", "nccl", "rccl"].contains(&library.split('-').next().unwrap_or_default()) =>
        {
            rest
        }
        _ => test,
    }
}

/// Returns sizes and times of all rows: half round trips or whole windows.
///
/// # Errors
/// An invalid number, with its line.
pub(super) fn times(
    section: &LogSection<'_>,
    test: MessageTest,
) -> Result<Vec<SizedTime>, CsvError> {
    if section.benchmark == Reprompi {
        return reprompi::half_trips(section);
    }
    let valid = section
        .rows
        .iter()
        .filter(|row| !is_void(section, &row.words));
    valid
        .map(|row: &LogRow<'_>| match (section.benchmark, test) {
            (_, MessageTest::Window) => window_time(row, window(section)?),
            (Skampi, _) => skampi(row),
            (Netpipe, _) => Ok(netpipe::row(&row.words).expect("rows were recognised")),
            _ => half_trip(section, row),
        })
        .collect()
}

fn half_trip(section: &LogSection<'_>, row: &LogRow<'_>) -> Result<SizedTime, CsvError> {
    let words = &row.words;
    let (word, column) = match section.benchmark {
        Imb => (section.word(words, "t[usec]"), "t[usec]"),
        Perftest => match section.column("t_typical[usec]") {
            Some(at) => (words.get(at).copied(), "t_typical[usec]"),
            None => {
                let mean = section.column("t_avg[usec]");
                (mean.and_then(|at| words.get(at).copied()), "t_avg[usec]")
            }
        },
        // The first of two times is the one out of place.
        NcclTests => (section.word(words, "time"), "time"),
        Netgauge if words.get(1) == Some(&"-") => return netgauge(row),
        Netgauge => (words.get(3).copied(), "RTT/2"),
        _ => (words.get(1).copied(), "latency"),
    };
    if word.is_none() {
        let expected = format!("the column {column}");
        return Err(CsvError::at(
            row.line,
            "a table without times in microseconds",
            expected,
        ));
    }
    Ok((
        size(row.line, words[0])?,
        micros(row.line, word.as_ref(), column)?,
    ))
}

/// Number of messages in a row of a bandwidth test, or the default if the test does not contain it.
///
/// # Errors
/// An invalid number, or a number that is not above 0.
pub(super) fn window(section: &LogSection<'_>) -> Result<u32, CsvError> {
    let Some(said) = section.settings.get(WINDOW) else {
        return Ok(USUAL_WINDOW);
    };
    let window = said.parse().ok().filter(|window: &u32| *window > 0);
    window.ok_or_else(|| {
        let found = format!("a window of `{said}` messages");
        CsvError::at(section.line, found, "a whole number above 0")
    })
}

/// Time of a window. A rate in megabytes of a million bytes per second equals bytes per microsecond.
fn window_time(row: &LogRow<'_>, window: u32) -> Result<SizedTime, CsvError> {
    let size = size(row.line, row.words[0])?;
    let rate = positive(row.line, row.words.get(1), "bandwidth")?;
    let micros = f64::from(window) * size.0 as f64 / rate;
    Ok((size, Time::from_micros(micros)))
}

/// Reads pairs of `variable= value`, then size, microseconds of a round trip, standard deviation, and more.
fn skampi(row: &LogRow<'_>) -> Result<SizedTime, CsvError> {
    let plain: Vec<&str> = row
        .words
        .iter()
        .copied()
        .filter(|word| *word != "#")
        .collect();
    let pairs = plain.chunks(2).take_while(|pair| pair[0].ends_with('='));
    let rest = &plain[(2 * pairs.count()).min(plain.len())..];
    let own = size(row.line, rest.first().copied().unwrap_or_default())?;
    Ok((own, micros(row.line, rest.get(1), "time")? / 2.0))
}

/// Reads `SIZE - blocking - half round trip - throughput`, each with minimum, mean and median.
fn netgauge(row: &LogRow<'_>) -> Result<SizedTime, CsvError> {
    let parts = row.words.split(|word| *word == "-").nth(2);
    let median = parts.and_then(|half| half.get(2));
    Ok((
        size(row.line, row.words[0])?,
        micros(row.line, median, "RTT/2")?,
    ))
}
