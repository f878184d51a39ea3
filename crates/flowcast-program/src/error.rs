//! Why a trace was refused.

use flowcast_units::Bytes;
use thiserror::Error;

/// Why a trace was refused.
#[derive(Debug, Error)]
pub enum TraceError {
    /// One place holds something else than it must.
    #[error("{place}: found {found}, expected {expected}")]
    At {
        /// `file:line`, or rank and record where there is no text.
        place: String,
        /// What stands there.
        found: String,
        /// What could stand there.
        expected: String,
    },
    /// No format that is known.
    #[error("{name}: found {found}, expected {expected}")]
    Unknown {
        /// The file.
        name: String,
        /// What it begins with.
        found: String,
        /// The formats that are read.
        expected: String,
    },
    /// A packed or compiled file is damaged.
    #[error("{name}: {problem}")]
    Damaged {
        /// The packed file.
        name: String,
        /// What does not fit.
        problem: String,
    },
    /// Packed files hold more than they may.
    #[error("{name}: found more than {most} unpacked from {packed}, expected no more{}", if *.files > 1 { " of all files of a trace together" } else { "" })]
    TooLarge {
        /// The file, of several the one that was too much.
        name: String,
        /// How many there were up to it.
        files: usize,
        /// Their size, packed.
        packed: Bytes,
        /// The most that they are unpacked to.
        most: Bytes,
    },
    /// A file that the trace names cannot be read.
    #[error("{place}: cannot read {file}: {error}")]
    Part {
        /// Where it is named.
        place: String,
        /// Name of the file, as it is named there.
        file: String,
        /// The system's reason why it cannot be read.
        error: std::io::Error,
    },
    /// Larger than the form can hold.
    #[error("found {0}")]
    Limit(&'static str),
    /// A recording was refused.
    #[error(transparent)]
    Recording(#[from] flowcast_recording::RecordingError),
}

impl TraceError {
    /// [`TraceError::Damaged`].
    pub fn damaged(name: &str, problem: impl Into<String>) -> TraceError {
        TraceError::Damaged {
            name: name.to_owned(),
            problem: problem.into(),
        }
    }
}
