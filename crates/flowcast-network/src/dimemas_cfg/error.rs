//! What can be wrong with a `.cfg` or a file that it names.

use std::{fmt, io};

use thiserror::Error;

/// Why a `.cfg` was refused.
#[derive(Debug, Error)]
pub enum DimemasConfigError {
    /// A field that is not what it should be.
    #[error("{place}: found `{found}`, expected {expected}")]
    Field {
        /// Where.
        place: Place,
        /// What stands there.
        found: String,
        /// The type or the choices.
        expected: String,
    },
    /// A line that is no record, or a record that is not complete.
    #[error("line {line}: found `{found}`, expected {expected}")]
    Line {
        /// Line in the file, counted from 1.
        line: usize,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// A record that every `.cfg` has.
    #[error("found no \"{0}\" record, expected at least one")]
    Missing(&'static str),
    /// A file that is named but cannot be had.
    #[error("{place}: cannot read {name}: {source}")]
    Open {
        /// Where it is named.
        place: Place,
        /// Name of the file, as the field has it.
        name: String,
        /// The system's reason why it cannot be read.
        source: io::Error,
    },
    /// Something wrong in a named file.
    #[error("{name}: {error}")]
    InFile {
        /// Name of the file that is named.
        name: String,
        /// What is wrong in that file, with its own lines.
        error: Box<DimemasConfigError>,
    },
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Name of the record, without its quotes.
    pub record: String,
    /// The field's place in the record, counted from 1.
    pub number: usize,
    /// What the field holds, such as `number of nodes`.
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

/// The beginning of a text, enough to find it by.
pub(super) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}
