//! ReproMPI's `mpibenchmark`: the call `Send_Recv`, whose run time is a round trip between the ranks of `--pingpong-ranks`.
//!
//! The names in the header determine the columns. There are three kinds of headers:
//!
//! | output | header |
//! |---|---|
//! | every run time | `test nrep count runtime_sec` |
//! | `--summary` | `test count total_nrep valid_nrep mean_sec median_sec ...` |
//! | `-v` | `process test nrep count loc_tstart_sec loc_tend_sec` |
//!
//! `count` is in elements of `#@datatype_size_bytes`, `msize_bytes` in bytes. With windows, a column `errorcode` marks
//! invalid run times. In a summary, the median takes precedence over the mean, the minimum and the maximum. With `-v`, the
//! first of `#@pingpong_ranks` times a round trip.

use flowcast_network::csv::CsvError;
use flowcast_units::{Bytes, Time};

use super::numbers::{SizedTime, positive, size};
use crate::benchmark_log::{LogRow, LogSection, formats::REPROMPI_TIMES};

/// Returns half of each round trip in the section of a call.
///
/// # Errors
/// A row that lacks a column, or an invalid number, with its line.
pub(super) fn half_trips(section: &LogSection<'_>) -> Result<Vec<SizedTime>, CsvError> {
    let columns = ReprompiColumns::find(&section.columns).expect("the header was recognised");
    let [element, ranks] = [("datatype_size_bytes", "1"), ("pingpong_ranks", "0")]
        .map(|(name, default)| section.settings.get(name).copied().unwrap_or(default));
    let element = size(section.line, element)?.0.max(1);
    let first_rank = ranks.split(',').next().unwrap_or(ranks);
    let trips = section
        .rows
        .iter()
        .map(|row| columns.row(row, element, first_rank));
    trips.filter_map(Result::transpose).collect()
}

/// Indices of the columns of one header.
struct ReprompiColumns {
    names: usize,
    size: usize,
    is_count: bool,
    process: Option<usize>,
    error: Option<usize>,
    time: ReprompiTiming,
}

enum ReprompiTiming {
    /// Column of the time.
    Taken(usize),
    /// Columns of the start and the end.
    Ends(usize, usize),
}

impl ReprompiColumns {
    fn find(words: &[&str]) -> Option<ReprompiColumns> {
        let place = |name: &str| words.iter().position(|word| *word == name);
        let taken = REPROMPI_TIMES
            .iter()
            .find_map(|name| place(name))
            .map(ReprompiTiming::Taken);
        let time = taken.or_else(|| {
            Some(ReprompiTiming::Ends(
                place("loc_tstart_sec")?,
                place("loc_tend_sec")?,
            ))
        })?;
        let bytes = place("msize_bytes");
        Some(ReprompiColumns {
            names: words.len(),
            size: bytes.or_else(|| place("count"))?,
            is_count: bytes.is_none(),
            process: place("process"),
            error: place("errorcode"),
            time,
        })
    }

    /// Returns half of a round trip. `None` for a row of another process and for an invalid run time.
    fn row(
        &self,
        row: &LogRow<'_>,
        element: u64,
        first_rank: &str,
    ) -> Result<Option<SizedTime>, CsvError> {
        let (line, words) = (row.line, &row.words);
        let wanted = [(self.process, first_rank), (self.error, "0")];
        let mut wanted = wanted.into_iter();
        if wanted.any(|(place, word)| place.is_some_and(|at| words.get(at) != Some(&word))) {
            return Ok(None);
        }
        if words.len() != self.names {
            return Err(CsvError::at(
                line,
                format!("{} columns", words.len()),
                format!("{}", self.names),
            ));
        }
        let count = size(line, words[self.size])?;
        let bytes = count.0.checked_mul(if self.is_count { element } else { 1 });
        let bytes = bytes.ok_or_else(|| {
            CsvError::at(
                line,
                format!("count `{}`", count.0),
                "fewer bytes than 2^64",
            )
        })?;
        let seconds = match self.time {
            ReprompiTiming::Taken(at) => positive(line, words.get(at), "time")?,
            ReprompiTiming::Ends(start, end) => {
                let [start, end] = [
                    positive(line, words.get(start), "start")?,
                    positive(line, words.get(end), "end")?,
                ];
                if end <= start {
                    return Err(CsvError::at(
                        line,
                        format!("end {end}"),
                        format!("a time after the start {start}"),
                    ));
                }
                end - start
            }
        };
        Ok(Some((Bytes(bytes), Time::from_seconds(seconds / 2.0))))
    }
}

#[cfg(test)]
mod tests {
    use crate::import::{ImportChoice, read};

    fn of(text: &str) -> Vec<(u64, f64)> {
        read(text, &ImportChoice::default())
            .unwrap()
            .one_way
            .into_iter()
            .map(|(size, time)| (size.0, (time.as_micros() * 2e3).round() / 1e3))
            .collect()
    }

    fn refused(text: &str) -> String {
        read(text, &ImportChoice::default())
            .unwrap_err()
            .to_string()
    }

    const HEAD: &str = "#@datatype=MPI_INT\n#@datatype_size_bytes=4\n#@pingpong_ranks=2,3\n#@reproMPIcommitSHA1=abc\n";

    #[test]
    fn run_times_summaries_and_ends_are_round_trips_of_elements() {
        let each = format!(
            "{HEAD}  test nrep count runtime_sec \nSend_Recv 0 8 0.0000030000\nSend_Recv 1 8 0.0000034000\nMPI_Bcast 0 8 0.1\n\
             # Benchmark started at now\n"
        );
        assert_eq!(of(&each), [(32, 3.0), (32, 3.4)]);
        let summary = format!(
            "{HEAD}test count total_nrep valid_nrep mean_sec median_sec \nSend_Recv 8 10 10  0.000009  0.000005 \n"
        );
        assert_eq!(of(&summary), [(32, 5.0)]);
        let ends = format!(
            "{HEAD}process test nrep count loc_tstart_sec loc_tend_sec \n0 Send_Recv 0 8 10.0 10.5\n2 Send_Recv 0 8 10.0 10.000004\n"
        );
        assert_eq!(of(&ends), [(32, 4.0)]);
        let windows = "test nrep msize_bytes errorcode runtime_sec \nSend_Recv 0 8 1 0.5\nSend_Recv 1 8 0 0.000002\n";
        assert_eq!(of(windows), [(8, 2.0)]);
    }

    #[test]
    fn bad_rows_are_named_with_their_line() {
        let row = |row: &str| refused(&format!("test nrep count runtime_sec\n{row}\n"));
        assert_eq!(row("Send_Recv 0 8"), "line 2: found 3 columns, expected 4");
        assert_eq!(
            row("Send_Recv 0 x 1.0"),
            "line 2: found size `x`, expected a whole number of bytes"
        );
        assert_eq!(
            row("Send_Recv 0 8 -1"),
            "line 2: found time `-1`, expected a number above 0"
        );
        let ends = refused(
            "process test nrep count loc_tstart_sec loc_tend_sec\n0 Send_Recv 0 8 2.0 1.0\n",
        );
        assert_eq!(
            ends,
            "line 2: found end 1, expected a time after the start 2"
        );
        assert!(
            refused(&format!(
                "#@datatype_size_bytes=4\ntest nrep count runtime_sec\nSend_Recv 0 {} 1.0\n",
                u64::MAX
            ))
            .contains("fewer bytes")
        );
    }
}
