//! The samples file: a CSV with one round trip per row, under a header of `# key: value` lines.
//!
//! ```csv
//! # schema: flowcast/prtt-samples/1
//! # host: a
//! n,d_us,size_B,prtt_us
//! 1,0,1,11.24
//! ```
//!
//! A fifth column, `busy_us`, says for how long the sender's processor was busy with the messages of the row. Columns may stand
//! in any order; a column, a row or a number that does not belong is refused with its line.

use std::{collections::BTreeMap, fmt::Write, iter, ops::RangeInclusive};

use super::prtt::PrttPoint;
use flowcast_model::csv::{self, CsvError};
use flowcast_units::{Bytes, Time};

/// The schema that this version reads and writes. A file without header lines is read as well.
pub const SCHEMA: &str = "flowcast/prtt-samples/1";

const COLUMNS: [&str; 4] = ["n", "d_us", "size_B", "prtt_us"];
const BUSY_COLUMNS: [&str; 5] = ["n", "d_us", "size_B", "prtt_us", "busy_us"];

/// Round trips, gathered by what they consist of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PrttSamples {
    /// Where they come from: the header's `key: value` pairs apart from the schema.
    pub provenance: BTreeMap<String, String>,
    points: BTreeMap<PrttPoint, Vec<Time>>,
    /// Of each round trip of a point in turn, where the sender timed its sends.
    busy: BTreeMap<PrttPoint, Vec<Time>>,
}

impl PrttSamples {
    /// Adds a round trip.
    pub fn push(&mut self, point: PrttPoint, time: Time) {
        self.points.entry(point).or_default().push(time);
    }

    /// Adds a round trip whose sender was busy for so long, from its first send to the end of its last. Of a point either all
    /// round trips have this or none.
    pub fn push_timed(&mut self, point: PrttPoint, time: Time, busy: Time) {
        self.push(point, time);
        self.busy.entry(point).or_default().push(busy);
    }

    /// How long the sender was busy in each round trip of a point; empty where nobody timed it.
    pub fn busy(&self, point: PrttPoint) -> &[Time] {
        self.busy.get(&point).map_or(&[], Vec::as_slice)
    }

    /// The round trips of each point, in the order of n, d and size.
    pub fn points(&self) -> impl Iterator<Item = (PrttPoint, &[Time])> {
        self.points
            .iter()
            .map(|(point, times)| (*point, times.as_slice()))
    }

    /// The round trips of one point.
    pub fn at(&self, point: PrttPoint) -> &[Time] {
        self.points.get(&point).map_or(&[], Vec::as_slice)
    }

    /// Number of round trips.
    pub fn len(&self) -> usize {
        self.points.values().map(Vec::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Reads a samples file.
    ///
    /// # Errors
    /// Another schema, a missing, doubled or unknown column, a row of another length, or a number that is negative,
    /// not a number, or too large.
    pub fn from_csv(text: &str) -> Result<PrttSamples, CsvError> {
        let mut samples = PrttSamples {
            provenance: provenance(text, SCHEMA)?,
            ..PrttSamples::default()
        };
        let row = |line: usize, [n, d, size, prtt]: [&str; 4]| {
            let messages = whole(line, COLUMNS[0], n, 1_000_000)? as u32;
            let delay = micros(line, COLUMNS[1], d)?;
            let size = Bytes(whole(line, COLUMNS[2], size, 1 << 50)?);
            Ok::<_, CsvError>((
                PrttPoint::new(messages, delay, size),
                micros(line, COLUMNS[3], prtt)?,
            ))
        };
        let rows = if csv::has_columns(text, BUSY_COLUMNS) {
            csv::read(text, BUSY_COLUMNS, |line, [n, d, size, prtt, busy]| {
                let (point, time) = row(line, [n, d, size, prtt])?;
                samples.push_timed(point, time, micros(line, BUSY_COLUMNS[4], busy)?);
                Ok(())
            })?
        } else {
            csv::read(text, COLUMNS, |line, fields| {
                let (point, time) = row(line, fields)?;
                samples.push(point, time);
                Ok(())
            })?
        };
        if rows == 0 {
            Err(CsvError::no_row(&COLUMNS))
        } else {
            Ok(samples)
        }
    }

    /// The samples as a CSV file: their provenance, the names of the columns, a row for each round trip.
    pub fn to_csv(&self) -> String {
        let mut text = csv_header(&self.provenance, self.are_timed());
        for (point, times) in self.points() {
            let busy = self
                .busy(point)
                .iter()
                .copied()
                .map(Some)
                .chain(iter::repeat(None));
            times
                .iter()
                .zip(busy)
                .for_each(|(time, busy)| push_row(&mut text, point, *time, busy));
        }
        text
    }

    /// Whether the sender's processor time is known of the round trips.
    pub fn are_timed(&self) -> bool {
        !self.busy.is_empty()
    }
}

/// Header lines and column names, with that of the sender's processor time where the rows are `timed`.
pub fn csv_header(provenance: &BTreeMap<String, String>, timed: bool) -> String {
    let columns: &[&str] = if timed { &BUSY_COLUMNS } else { &COLUMNS };
    header(SCHEMA, provenance, &columns.join(","))
}

/// Header lines and column names of a form.
pub fn header(schema: &str, provenance: &BTreeMap<String, String>, columns: &str) -> String {
    let mut text = format!("# schema: {schema}\n");
    for (key, value) in provenance {
        // A line break inside a value would end the comment.
        let value = value.replace(['\n', '\r'], " ");
        writeln!(text, "# {key}: {value}").expect("text grows");
    }
    text + columns + "\n"
}

/// Appends the row of one round trip: times in microseconds, the size in bytes; last, where it is known, for how long the
/// sender was busy.
pub fn push_row(text: &mut String, point: PrttPoint, time: Time, busy: Option<Time>) {
    let PrttPoint {
        messages,
        delay,
        size,
    } = point;
    let busy = busy.map_or(String::new(), |busy| format!(",{}", busy.as_micros()));
    writeln!(
        text,
        "{messages},{},{},{}{busy}",
        delay.as_micros(),
        size.0,
        time.as_micros()
    )
    .expect("text grows");
}

/// The pairs of key and value in the header lines.
///
/// # Errors
/// A schema that is not this one.
pub fn provenance(text: &str, schema: &str) -> Result<BTreeMap<String, String>, CsvError> {
    let mut pairs = BTreeMap::new();
    for (line, comment) in csv::comments(text) {
        let Some((key, value)) = comment.split_once(':') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if key == "schema" && value != schema {
            return Err(CsvError::at(
                line,
                format!("schema `{value}`"),
                format!("`{schema}`"),
            ));
        }
        if key != "schema" {
            pairs.insert(key.to_owned(), value.to_owned());
        }
    }
    Ok(pairs)
}

/// The whole number in a field of a line.
///
/// # Errors
/// It is something else, or above `largest`.
pub fn whole(line: usize, column: &str, field: &str, largest: u64) -> Result<u64, CsvError> {
    whole_in(line, column, field, 1..=largest)
}

/// The size in a field of a line; 0 is one.
///
/// # Errors
/// It is no whole number, or above 2^50.
pub(crate) fn whole_from_zero(line: usize, column: &str, field: &str) -> Result<Bytes, CsvError> {
    whole_in(line, column, field, 0..=1 << 50).map(Bytes)
}

fn whole_in(
    line: usize,
    column: &str,
    field: &str,
    range: RangeInclusive<u64>,
) -> Result<u64, CsvError> {
    let number = field.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        CsvError::field(line, column, field, expected)
    })
}

/// The time in microseconds in a field of a line.
///
/// # Errors
/// It is no number, or negative.
pub fn micros(line: usize, column: &str, field: &str) -> Result<Time, CsvError> {
    let plain = field
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    // Through the text with its unit, so that whole nanoseconds come back exactly.
    let time = Time::parse(&format!("{field}us")).ok().filter(|_| plain);
    time.ok_or_else(|| {
        CsvError::field(
            line,
            column,
            field,
            "microseconds, a finite number from 0 on",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        PrttSamples::from_csv(text).unwrap_err().to_string()
    }

    #[test]
    fn columns_are_found_by_name_and_the_header_is_kept() {
        let text = "# schema: flowcast/prtt-samples/1\n# host: a:b\n# free text\r\nprtt_us, n,size_B,d_us\n\n11.24,1,1,0\n";
        let samples = PrttSamples::from_csv(text).unwrap();
        assert_eq!(
            samples.at(PrttPoint::round_trip(Bytes(1))),
            [Time::from_nanos(11_240.0)]
        );
        assert_eq!(samples.provenance["host"], "a:b");
    }

    #[test]
    fn bad_lines_are_named_with_what_was_expected() {
        let columns = "n,d_us,size_B,prtt_us\n";
        assert_eq!(
            error(&format!("{columns}1,0,1,-3\n")),
            "line 2: found prtt_us = `-3`, expected microseconds, a finite number from 0 on"
        );
        assert!(
            error(&format!("{columns}1,0,1,3\n1,0,1,nan\n"))
                .starts_with("line 3: found prtt_us = `nan`")
        );
        assert!(error(&format!("{columns}1,0,1,inf\n")).contains("`inf`"));
        assert!(error(&format!("{columns}0,0,1,3\n")).contains("n = `0`"));
        assert!(error(&format!("{columns}1,0,1.5,3\n")).contains("size_B = `1.5`"));
        assert!(error(&format!("{columns}1,0,1\n")).contains("found 3 fields, expected 4"));
        assert!(error(&format!("{columns}1,0,1,3m\n")).contains("prtt_us = `3m`"));
        assert!(error("n,size_B,prtt_us\n1,1,3\n").contains("line 1: found no column `d_us`"));
        assert!(error("n,n,d_us,size_B,prtt_us\n").contains("column `n` twice"));
        assert!(error("n,d_us,size,prtt_us\n").contains("column `size`"));
        assert!(error("# schema: other/1\n").contains("line 1: found schema `other/1`"));
        assert!(error("").contains("no column names"));
        assert!(error(columns).contains("no row"));
    }

    #[test]
    fn the_sender_s_own_time_is_kept_with_its_round_trip() {
        let point = PrttPoint::round_trip(Bytes(9));
        let mut samples = PrttSamples::default();
        samples.push_timed(point, Time::from_micros(50.0), Time::from_micros(3.5));
        let text = samples.to_csv();
        assert!(
            text.ends_with("n,d_us,size_B,prtt_us,busy_us\n1,0,9,50,3.5\n"),
            "{text}"
        );
        assert_eq!(PrttSamples::from_csv(&text).unwrap(), samples);
        assert!(error("n,d_us,size_B,prtt_us,busy_us\n1,0,9,50,-1\n").contains("busy_us = `-1`"));
    }

    proptest! {
        #[test]
        fn a_written_file_reads_back_equal(
            rows in prop::collection::vec((1u32..20, 0u64..1_000_000, 1u64..1 << 40, 0u64..1 << 50), 1..40),
            host in "[a-z ]{0,10}[a-z]",
        ) {
            let mut samples = PrttSamples::default();
            samples.provenance.insert("host".into(), host.trim().into());
            for (messages, delay, size, nanos) in rows {
                let point = PrttPoint::new(messages, Time::from_nanos(delay as f64), Bytes(size));
                samples.push(point, Time::from_nanos(nanos as f64));
            }
            prop_assert_eq!(PrttSamples::from_csv(&samples.to_csv()).unwrap(), samples);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(n,d_us,size_B,prtt_us\n)?[-0-9a-z.,#:\n ]{0,80}") {
            let _ = PrttSamples::from_csv(&text);
        }
    }
}
