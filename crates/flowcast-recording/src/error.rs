//! Why a recording was refused.

use thiserror::Error;

/// Why a recording was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordingError {
    /// One place holds something else than it must.
    #[error("{place}: found {found}, expected {expected}")]
    At {
        /// `file:line` of the recording.
        place: String,
        /// What stands there.
        found: String,
        /// What could stand there.
        expected: String,
    },
    /// A rank's file is damaged.
    #[error("{name}: {problem}")]
    Damaged {
        /// The file.
        name: String,
        /// What does not fit.
        problem: String,
    },
}
