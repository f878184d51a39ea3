//! Why an experiment failed.

use thiserror::Error;

use crate::{clocks::ClockError, transport::TransportError};
use flowcast_fit::error::FitError;

/// Why an experiment failed.
#[derive(Debug, Error)]
pub enum PrttError {
    /// The connection to the other end failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The other end asked for the time, and that failed.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The other end is no flowcast, or of another version.
    #[error("found `{0}` at the other end, expected a flowcast that speaks flowcast-prtt/1")]
    Stranger(String),
    /// The other end asked for less or more than this one gives.
    #[error("the other end asked for {found} {what}, expected {least} to {most}")]
    Script {
        /// What the other end asked for.
        what: &'static str,
        /// How much.
        found: u32,
        /// The least that makes sense.
        least: u32,
        /// The most that this end gives.
        most: u32,
    },
    /// A plan that cannot be carried out.
    #[error("{field}: found {found}, expected {expected}")]
    Plan {
        /// What is wrong.
        field: &'static str,
        /// Its value.
        found: String,
        /// What would have been right.
        expected: String,
    },
    /// The warm-up gave no delay.
    #[error("cannot choose a delay: {0}")]
    Delay(#[from] FitError),
}
