//! Errors in a `.cfg` or in a file that it names.

use std::{fmt, io};

use thiserror::Error;

/// Reason why a `.cfg` was rejected.
#[derive(Debug, Error)]
pub enum DimemasConfigError {
    /// A field has an unexpected value.
    #[error("{place}: found `{found}`, expected {expected}")]
    Field {
        /// Position of the field.
        place: Place,
        /// Value that was found.
        found: String,
        /// Expected type, or the allowed values.
        expected: String,
    },
    /// A line is not a record, or the record is incomplete.
    #[error("line {line}: found `{found}`, expected {expected}")]
    Line {
        /// Line in the file, counted from 1.
        line: usize,
        /// Content that was found.
        found: String,
        /// Description of the expected content.
        expected: String,
    },
    /// A record that every `.cfg` must have is missing.
    #[error("found no \"{0}\" record, expected at least one")]
    Missing(&'static str),
    /// A named file cannot be read.
    #[error("{place}: cannot read {name}: {source}")]
    Open {
        /// Field that names the file.
        place: Place,
        /// Name of the file as written in the field.
        name: String,
        /// Error of the caller's function that opens named files.
        source: io::Error,
    },
    /// A named file contains an error.
    #[error("{name}: {error}")]
    InFile {
        /// Name of the file.
        name: String,
        /// The error in that file, with line numbers of that file.
        error: Box<DimemasConfigError>,
    },
}

/// Position of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Name of the record, without its quotes.
    pub record: String,
    /// Index of the field in the record, counted from 1.
    pub number: usize,
    /// Meaning of the field, such as `number of nodes`.
    pub field: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, \"{}\", field {} ({})",
            self.line, self.record, self.number, self.field
        )
    }
}

/// The beginning of a text, long enough to find it in the file.
pub(super) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}
