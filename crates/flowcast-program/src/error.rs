//! Errors in traces: invalid content, unknown formats, files that are damaged, too large or unreadable, and exceeded limits.

use flowcast_units::Bytes;
use thiserror::Error;

/// Reason why a trace was refused.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The content of a place is invalid.
    #[error("{place}: found {found}, expected {expected}")]
    At {
        /// `file:line`, or rank and record if there is no text.
        place: String,
        /// Content of the place.
        found: String,
        /// Valid content of the place.
        expected: String,
    },
    /// The format is unknown.
    #[error("{name}: found {found}, expected {expected}")]
    Unknown {
        /// Name of the file.
        name: String,
        /// Beginning of the file's content.
        found: String,
        /// Formats that can be read.
        expected: String,
    },
    /// A packed or compiled file is damaged.
    #[error("{name}: {problem}")]
    Damaged {
        /// Name of the file.
        name: String,
        /// Description of the damage.
        problem: String,
    },
    /// Packed files contain more than is allowed.
    #[error("{name}: found more than {most} decompressed from {packed}, expected no more{}", if *.files > 1 { " in all files of a trace" } else { "" })]
    TooLarge {
        /// Name of the file that exceeded the limit.
        name: String,
        /// Number of files up to this one.
        files: usize,
        /// Total packed size of these files.
        packed: Bytes,
        /// Largest size to which they are unpacked.
        most: Bytes,
    },
    /// A file that the trace names cannot be read.
    #[error("{place}: cannot read {file}: {error}")]
    Part {
        /// Place at which the file is named.
        place: String,
        /// Name of the file, as given there.
        file: String,
        /// Error of the system when the file was opened or read.
        error: std::io::Error,
    },
    /// The trace exceeds a limit of its form in memory.
    #[error("found {0}")]
    Limit(&'static str),
    /// A recording was refused.
    #[error(transparent)]
    Recording(#[from] flowcast_recording::RecordingError),
}

impl TraceError {
    /// Creates a [`TraceError::Damaged`] from the file's name and a description of the damage.
    pub fn damaged(name: &str, problem: impl Into<String>) -> TraceError {
        TraceError::Damaged {
            name: name.to_owned(),
            problem: problem.into(),
        }
    }
}
