//! The samples file: a CSV with one round trip per row, under a header of `# key: value` lines.
//!
//! ```csv
//! # schema: flowcast/prtt-samples/1
//! # host: a
//! n,d_us,size_B,prtt_us
//! 1,0,1,11.24
//! ```
//!
//! Columns may stand in any order; a column, a row or a number that does not belong is refused with its line.

use std::collections::BTreeMap;
use std::fmt::Write;

use thiserror::Error;

use super::prtt::PrttPoint;
use flowcast_units::{Bytes, Time};

/// The schema that this version reads and writes. A file without header lines is read as well.
pub const SCHEMA: &str = "flowcast/prtt-samples/1";

const COLUMNS: [&str; 4] = ["n", "d_us", "size_B", "prtt_us"];

/// Why a samples file was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SamplesError {
    /// A line that does not fit.
    #[error("line {line}: found {found}, expected {expected}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What stands there.
        found: String,
        /// What would have been right.
        expected: String,
    },
    /// No line with column names, or none after it.
    #[error("found no {missing}, expected the columns {expected} and rows of numbers")]
    Missing {
        /// What the file lacks.
        missing: &'static str,
        /// The columns, as they have to stand.
        expected: &'static str,
    },
}

/// Round trips, gathered by what they consist of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PrttSamples {
    /// Where they come from: the header's `key: value` pairs apart from the schema.
    pub provenance: BTreeMap<String, String>,
    points: BTreeMap<PrttPoint, Vec<Time>>,
}

impl PrttSamples {
    /// Adds a round trip.
    pub fn push(&mut self, point: PrttPoint, time: Time) {
        self.points.entry(point).or_default().push(time);
    }

    /// The round trips of each point, in the order of n, d and size.
    pub fn points(&self) -> impl Iterator<Item = (PrttPoint, &[Time])> {
        self.points.iter().map(|(point, times)| (*point, times.as_slice()))
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
    pub fn from_csv(text: &str) -> Result<PrttSamples, SamplesError> {
        let mut samples = PrttSamples::default();
        let mut columns = None;
        for (index, raw) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let (line, content) = (index + 1, raw.trim());
            match (content.strip_prefix('#'), &columns) {
                (Some(comment), _) => read_comment(line, comment, SCHEMA, &mut samples.provenance)?,
                (None, _) if content.is_empty() => {}
                (None, None) => columns = Some(Columns::read(line, content)?),
                (None, Some(columns)) => {
                    let (point, time) = columns.read_row(line, content)?;
                    samples.push(point, time);
                }
            }
        }
        let missing = if columns.is_none() { "column names" } else { "row" };
        let expected = "n,d_us,size_B,prtt_us";
        if samples.is_empty() { Err(SamplesError::Missing { missing, expected }) } else { Ok(samples) }
    }

    /// The file's text.
    pub fn to_csv(&self) -> String {
        let mut text = csv_header(&self.provenance);
        for (point, times) in self.points() {
            for time in times {
                push_row(&mut text, point, *time);
            }
        }
        text
    }
}

/// Header lines and column names.
pub fn csv_header(provenance: &BTreeMap<String, String>) -> String {
    header(SCHEMA, provenance, &COLUMNS.join(","))
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

/// Appends one row.
pub fn push_row(text: &mut String, point: PrttPoint, time: Time) {
    let PrttPoint { messages, delay, size } = point;
    writeln!(text, "{messages},{},{},{}", delay.as_micros(), size.0, time.as_micros()).expect("text grows");
}

/// Place of each of [`COLUMNS`] in a row.
struct Columns {
    places: [usize; 4],
    count: usize,
}

impl Columns {
    fn read(line: usize, content: &str) -> Result<Columns, SamplesError> {
        let names: Vec<&str> = content.split(',').map(str::trim).collect();
        let expected = || format!("the columns {}", COLUMNS.join(","));
        if let Some(unknown) = names.iter().find(|name| !COLUMNS.contains(name)) {
            return Err(refused(line, format!("column `{unknown}`"), expected()));
        }
        let mut places = [0; 4];
        for (place, column) in places.iter_mut().zip(COLUMNS) {
            let mut found = names.iter().enumerate().filter(|(_, name)| **name == column);
            match (found.next(), found.next()) {
                (Some((at, _)), None) => *place = at,
                (None, _) => return Err(refused(line, format!("no column `{column}`"), expected())),
                (Some(_), Some(_)) => return Err(refused(line, format!("column `{column}` twice"), expected())),
            }
        }
        Ok(Columns { places, count: names.len() })
    }

    fn read_row(&self, line: usize, content: &str) -> Result<(PrttPoint, Time), SamplesError> {
        let fields: Vec<&str> = content.split(',').map(str::trim).collect();
        if fields.len() != self.count {
            return Err(refused(line, format!("{} fields", fields.len()), format!("{}", self.count)));
        }
        let [n, d, size, prtt] = self.places.map(|place| fields[place]);
        let messages = whole(line, COLUMNS[0], n, 1_000_000)? as u32;
        let delay = micros(line, COLUMNS[1], d)?;
        let size = Bytes(whole(line, COLUMNS[2], size, 1 << 50)?);
        Ok((PrttPoint::new(messages, delay, size), micros(line, COLUMNS[3], prtt)?))
    }
}

/// A header line: a pair of key and value, or the schema, which has to be this one.
pub fn read_comment(
    line: usize,
    comment: &str,
    schema: &str,
    provenance: &mut BTreeMap<String, String>,
) -> Result<(), SamplesError> {
    let Some((key, value)) = comment.split_once(':') else { return Ok(()) };
    let (key, value) = (key.trim(), value.trim());
    if key == "schema" && value != schema {
        return Err(refused(line, format!("schema `{value}`"), format!("`{schema}`")));
    }
    if key != "schema" {
        provenance.insert(key.to_owned(), value.to_owned());
    }
    Ok(())
}

/// The whole number in a field of a line.
///
/// # Errors
/// It is something else, or above `largest`.
pub fn whole(line: usize, column: &str, field: &str, largest: u64) -> Result<u64, SamplesError> {
    let number = field.parse().ok().filter(|number| (1..=largest).contains(number));
    number.ok_or_else(|| refused(line, format!("{column} = `{field}`"), format!("a whole number from 1 to {largest}")))
}

/// The time in microseconds in a field of a line.
///
/// # Errors
/// It is no number, or negative.
pub fn micros(line: usize, column: &str, field: &str) -> Result<Time, SamplesError> {
    let plain = field.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    // Through the text with its unit, so that whole nanoseconds come back exactly.
    let time = Time::parse(&format!("{field}us")).ok().filter(|_| plain);
    time.ok_or_else(|| refused(line, format!("{column} = `{field}`"), "microseconds, a finite number from 0 on".into()))
}

/// What a line holds instead of what it must.
pub fn refused(line: usize, found: String, expected: String) -> SamplesError {
    SamplesError::Line { line, found, expected }
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
        let text =
            "# schema: flowcast/prtt-samples/1\n# host: a:b\n# free text\r\nprtt_us, n,size_B,d_us\n\n11.24,1,1,0\n";
        let samples = PrttSamples::from_csv(text).unwrap();
        assert_eq!(samples.at(PrttPoint::round_trip(Bytes(1))), [Time::from_nanos(11_240.0)]);
        assert_eq!(samples.provenance["host"], "a:b");
    }

    #[test]
    fn bad_lines_are_named_with_what_was_expected() {
        let columns = "n,d_us,size_B,prtt_us\n";
        assert_eq!(
            error(&format!("{columns}1,0,1,-3\n")),
            "line 2: found prtt_us = `-3`, expected microseconds, a finite number from 0 on"
        );
        assert!(error(&format!("{columns}1,0,1,3\n1,0,1,nan\n")).starts_with("line 3: found prtt_us = `nan`"));
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
