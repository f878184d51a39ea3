//! Numbers in the rows of a log. Errors contain the line.

use flowcast_network::csv::CsvError;
use flowcast_units::{Bytes, Time};

/// Size of a message and its time.
pub(super) type SizedTime = (Bytes, Time);

pub(super) fn size(line: usize, word: &str) -> Result<Bytes, CsvError> {
    let whole = word.parse().map(Bytes);
    whole.map_err(|_| CsvError::at(line, format!("size `{word}`"), "a whole number of bytes"))
}

pub(super) fn micros(line: usize, word: Option<&&str>, what: &str) -> Result<Time, CsvError> {
    positive(line, word, what).map(Time::from_micros)
}

pub(super) fn positive(line: usize, word: Option<&&str>, what: &str) -> Result<f64, CsvError> {
    let word = word.copied().unwrap_or_default();
    let number = word
        .parse()
        .ok()
        .filter(|number: &f64| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| CsvError::at(line, format!("{what} `{word}`"), "a number above 0"))
}
