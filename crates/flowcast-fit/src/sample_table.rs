//! Table of measurements: a CSV file with a row for each time, after a header of `# key: value` lines that describe the
//! origin.
//!
//! ```csv
//! # schema: flowcast/samples/2
//! # host: a
//! what,n,d_us,size_B,time_us
//! round-trip,1,0,1,11.24
//! ```
//!
//! A file has the columns that its samples need ([`SampleForm`]), in any order. An unexpected column, row or number is an
//! error, which contains the line. Conflicts in the former schema and round trips of other programs use other names for
//! some columns.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write},
    ops::RangeInclusive,
};

use flowcast_network::{
    csv::{self, CsvError, Table},
    former_schemas,
    name::is_hidden,
};
use flowcast_units::{Bytes, Node, Time};

/// Schema that this version writes. Files without header lines can be read as well.
pub const SCHEMA: &str = "flowcast/samples/2";

/// Returns the present name of a column, given its name in conflicts of the former schema or in round trips of other
/// programs.
fn current(name: &str) -> &str {
    match name {
        "conflict" => "what",
        "src" => "from",
        "dst" => "to",
        "src_rack" => "from_rack",
        "dst_rack" => "to_rack",
        "start_us" => "d_us",
        "flow" => "step",
        "prtt_us" | "duration_us" => "time_us",
        name => name,
    }
}

/// One measured time. Fields without a column in the file are empty or 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample<'a> {
    /// Column `what`, the kind of measurement: `round-trip`, the concurrent load of a message, a conflict, or a scheduler.
    pub what: &'a str,
    /// Column `kind`, the purpose of a conflict.
    pub kind: &'a str,
    /// Columns `from` and `to`, the nodes that send and receive the message.
    pub ends: [Node; 2],
    /// Columns `from_rack` and `to_rack`, the racks of the nodes. Empty if there are none.
    pub racks: [&'a str; 2],
    /// Column `size_B`, at most 2^50.
    pub size: Bytes,
    /// Column `n`, the number of messages in a row or in flight together. As for steps and repetitions, it ranges from 1 to
    /// a million.
    pub messages: u32,
    /// Column `d_us`, the delay of each message after the previous one, or of a flow after the start.
    pub delay: Time,
    /// Column `step`, the flow of a conflict, starting with 1.
    pub step: u32,
    /// Column `repetition`, the number of measurements up to and including this one.
    pub repetition: u32,
    /// Column `time_us`, the measured time.
    pub time: Time,
    /// Column `busy_us`, the time that the sender's processor spent.
    pub busy: Time,
}

impl<'a> Sample<'a> {
    fn set(&mut self, column: &str, cell: Cell<'a>) -> Result<(), CsvError> {
        match column {
            "what" => self.what = cell.text,
            "kind" => self.kind = cell.text,
            "from" => self.ends[0] = cell.node()?,
            "to" => self.ends[1] = cell.node()?,
            "from_rack" => self.racks[0] = cell.text,
            "to_rack" => self.racks[1] = cell.text,
            "size_B" => self.size = cell.size()?,
            "n" => self.messages = cell.count()?,
            "d_us" => self.delay = cell.micros()?,
            "step" => self.step = cell.count()?,
            "repetition" => self.repetition = cell.count()?,
            "time_us" => self.time = cell.micros()?,
            _ => self.busy = cell.micros()?,
        }
        Ok(())
    }

    /// Appends the row of this sample to a file with these columns.
    pub fn push(&self, columns: &[&str], text: &mut String) {
        for (at, column) in columns.iter().enumerate() {
            let field: &dyn Display = match *column {
                "what" => &self.what,
                "kind" => &self.kind,
                "from" => &self.ends[0],
                "to" => &self.ends[1],
                "from_rack" => &self.racks[0],
                "to_rack" => &self.racks[1],
                "size_B" => &self.size.0,
                "n" => &self.messages,
                "d_us" => &self.delay.as_micros(),
                "step" => &self.step,
                "repetition" => &self.repetition,
                "time_us" => &self.time.as_micros(),
                _ => &self.busy.as_micros(),
            };
            let comma = if at == 0 { "" } else { "," };
            write!(text, "{comma}{field}").expect("text grows");
        }
        text.push('\n');
    }

    /// Returns the sender and the receiver of the message.
    ///
    /// # Errors
    /// A message from a node to itself, or a time of 0.
    pub fn message(&self, line: usize) -> Result<[Node; 2], CsvError> {
        let [from, to] = self.ends;
        if from == to {
            let found = format!("from node {from} to itself");
            return Err(CsvError::at(line, found, "two different nodes"));
        }
        if self.time == Time::ZERO {
            return Err(CsvError::field(line, "time_us", "0", "a time above 0"));
        }
        Ok(self.ends)
    }
}

/// The columns of one kind of samples.
#[derive(Debug, Clone, Copy)]
pub struct SampleForm {
    /// Columns that each file must have.
    pub required: &'static [&'static str],
    /// Columns that a file may have in addition.
    pub optional: &'static [&'static str],
}

/// Reads a file. `take` gets each row with its line. Returns the origin of the samples: the header's `key: value` pairs
/// without the schema.
///
/// # Errors
/// Another schema, a missing, doubled or unknown column, no row, a row of another length, a number out of range, and errors
/// of `take`.
pub fn read(
    text: &str,
    form: &SampleForm,
    mut take: impl FnMut(usize, &Sample<'_>) -> Result<(), CsvError>,
) -> Result<BTreeMap<String, String>, CsvError> {
    let provenance = provenance(text)?;
    let table = Table::parse(text)?;
    let columns = table.only(form.required, form.optional, current)?;
    let mut rows = table.rows().peekable();
    if rows.peek().is_none() {
        return Err(CsvError::no_row(form.required));
    }
    for (line, fields) in rows {
        let mut sample = Sample::default();
        for ((column, name), text) in columns.iter().zip(table.names()).zip(fields) {
            sample.set(column, Cell { line, name, text })?;
        }
        take(line, &sample)?;
    }
    Ok(provenance)
}

/// Returns `true` if a file is a table and has a column.
pub fn has(text: &str, column: &str) -> bool {
    Table::parse(text).is_ok_and(|table| table.names().any(|name| current(name) == column))
}

/// Returns the header lines and column names of a file.
pub fn head(provenance: &BTreeMap<String, String>, columns: &[&str]) -> String {
    let mut text = format!("# schema: {SCHEMA}\n");
    for (key, value) in provenance {
        // A line break inside a value would end the comment.
        let value = value.replace(is_hidden, " ");
        writeln!(text, "# {key}: {value}").expect("text grows");
    }
    text + &columns.join(",") + "\n"
}

/// Returns the pairs of key and value in the header lines, without the schema.
///
/// # Errors
/// An unknown schema.
pub fn provenance(text: &str) -> Result<BTreeMap<String, String>, CsvError> {
    let mut pairs = BTreeMap::new();
    for (line, comment) in csv::comments(text) {
        let Some((key, value)) = comment.split_once(':') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if key != "schema" {
            pairs.insert(key.to_owned(), value.to_owned());
        } else if ![SCHEMA, former_schemas::CONFLICT_SAMPLES].contains(&value) {
            let (found, expected) = (format!("schema `{value}`"), format!("`{SCHEMA}`"));
            return Err(CsvError::at(line, found, expected));
        }
    }
    Ok(pairs)
}

/// A field with the name of its column in the file.
#[derive(Clone, Copy)]
pub(crate) struct Cell<'a> {
    pub line: usize,
    pub name: &'a str,
    pub text: &'a str,
}

impl<'a> Cell<'a> {
    fn refused(self, expected: impl Into<String>) -> CsvError {
        CsvError::field(self.line, self.name, self.text, expected)
    }

    pub(crate) fn size(self) -> Result<Bytes, CsvError> {
        self.whole(0..=1 << 50).map(Bytes)
    }

    fn count(self) -> Result<u32, CsvError> {
        self.whole(1..=1_000_000).map(|count| count as u32)
    }

    fn whole(self, range: RangeInclusive<u64>) -> Result<u64, CsvError> {
        csv::whole_number(self.line, self.name, self.text, range)
    }

    fn node(self) -> Result<Node, CsvError> {
        let number = self.text.parse().map(Node);
        number.map_err(|_| self.refused("the number of a node"))
    }

    fn micros(self) -> Result<Time, CsvError> {
        let mut bytes = self.text.bytes();
        let plain = bytes.all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        // Parsing the text together with its unit makes whole nanoseconds exact.
        let time = Time::parse(&format!("{}us", self.text)).ok();
        time.filter(|_| plain)
            .ok_or_else(|| self.refused("microseconds, a finite number of 0 or more"))
    }
}

#[cfg(test)]
mod tests {
    use crate::samples::PrttSamples;

    #[test]
    fn round_trips_of_other_programs_need_no_schema() {
        let round_trips = |text: &str| PrttSamples::from_csv(text).unwrap();
        assert_eq!(
            round_trips("# host: a\nn,d_us,size_B,prtt_us,busy_us\n16,2.5,8,9,3\n"),
            round_trips(
                "# schema: flowcast/samples/2\n# host: a\nwhat,n,d_us,size_B,time_us,busy_us\nround-trip,16,2.5,8,9,3\n"
            )
        );
    }

    #[test]
    fn a_column_is_named_once_and_samples_of_another_kind_are_refused() {
        let error = |text: &str| PrttSamples::from_csv(text).unwrap_err().to_string();
        assert!(error("n,d_us,size_B,prtt_us,time_us\n").contains("found column `time_us` twice"));
        assert!(error("n,d_us,size_B,time_us,from\n").contains("found column `from`"));
        assert_eq!(
            error("what,n,d_us,size_B,time_us\nalone,1,0,8,5\n"),
            "line 2: found what = `alone`, expected round-trip"
        );
        assert!(error("# schema: flowcast/network/1\n").contains("schema `flowcast/network/1`"));
    }
}
