//! When everything happens: replay of traces, and the stepping of concurrent flows.

mod collectives;
pub mod concurrent;
pub mod costs;
pub mod critical_path;
mod deadlock;
pub mod fluid;
pub mod loggops;
mod matching;
pub mod outcome;
pub mod placement;
pub mod record;
pub mod replay;
pub mod timeline;

use thiserror::Error;

/// Why a trace cannot be replayed to its end.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SimulateError {
    /// Ranks wait for each other.
    #[error("deadlock, {waiting} ranks wait: {story}")]
    Deadlock {
        /// How many.
        waiting: usize,
        /// Who waits where for what.
        story: String,
    },
    /// A message without receive, or a receive without message.
    #[error("{place}: found {found}, expected {expected}")]
    Unmatched {
        /// Where.
        place: String,
        /// What stands there.
        found: String,
        /// What is missing.
        expected: String,
    },
    /// The machine and the program do not fit together.
    #[error("{0}")]
    Placement(String),
}
