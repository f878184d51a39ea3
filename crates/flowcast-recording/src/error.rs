//! Errors in recordings: unexpected content and damaged files of ranks.

use thiserror::Error;

/// Error in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordingError {
    /// The recording contains something unexpected.
    #[error("{place}: found {found}, expected {expected}")]
    At {
        /// `file:line` of the recording.
        place: String,
        /// Content at this place.
        found: String,
        /// Content that was expected.
        expected: String,
    },
    /// A rank's file is damaged.
    #[error("{name}: {problem}")]
    Damaged {
        /// Name of the file.
        name: String,
        /// Description of the damage.
        problem: String,
    },
}
