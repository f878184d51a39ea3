//! Errors of experiments: connection, clocks, requests of the other end, plan and choice of a delay.

use thiserror::Error;

use crate::{clocks::ClockError, transport::TransportError};
use flowcast_fit::error::FitError;

/// Error of an experiment.
#[derive(Debug, Error)]
pub enum PrttError {
    /// The connection to the other end failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The other end requested the time, and the synchronisation failed.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The other end is not flowcast, or has a different version.
    #[error("found `{0}` at the other end, expected flowcast with the protocol flowcast-prtt/1")]
    Stranger(String),
    /// The other end requested less or more than this end supports.
    #[error("the other end requested {found} {what}, expected {least} to {most}")]
    Script {
        /// Quantity that the other end requested.
        what: &'static str,
        /// Requested value, which is less than `least` or more than `most`.
        found: u32,
        /// Smallest value that this end supports.
        least: u32,
        /// Largest value that this end supports.
        most: u32,
    },
    /// A field of the plan has a value outside its valid range.
    #[error("{field}: found {found}, expected {expected}")]
    Plan {
        /// Field that is wrong.
        field: &'static str,
        /// Value of the field.
        found: String,
        /// Range of valid values.
        expected: String,
    },
    /// The warm-up did not yield a delay.
    #[error("cannot choose a delay: {0}")]
    Delay(#[from] FitError),
}
