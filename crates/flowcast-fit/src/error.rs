//! Errors for samples that do not determine the parameters.

use thiserror::Error;

use flowcast_statistics::StatsError;
use flowcast_units::{Bytes, Rounded, Time};

/// Error for samples that do not determine the parameters.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FitError {
    /// Fewer than the two sizes that a line needs.
    #[error(
        "{parameter}: found {found} sizes with samples of {rows} (and of n = 1 at the same size), expected at least 2"
    )]
    TooFewSizes {
        /// The parameter that cannot be fitted.
        parameter: &'static str,
        /// The kind of rows that it needs.
        rows: &'static str,
        /// Number of sizes with such rows.
        found: usize,
    },
    /// The overhead hides the gap at nearly every size.
    #[error(
        "g and G: found {found} sizes above {knee:.0} B, where the gap exceeds the overhead, expected at least 2: \
         measure larger sizes, or fit every size"
    )]
    TooFewAboveKnee {
        /// Number of sizes above the knee.
        found: usize,
        /// Size at the knee, in bytes.
        knee: f64,
    },
    /// No sample shows the overhead.
    #[error(
        "o: found no samples with n > 1 and d_us > 0 (and of n = 1 at the same size), expected at least one point"
    )]
    NoDelay,
    /// The gap hides the overhead.
    #[error(
        "o: found delays up to {} at {}, where the gap is {}, expected a delay above the gap",
        Rounded(*delay),
        Rounded(*size),
        Rounded(*gap)
    )]
    ShortDelay {
        /// The longest measured delay.
        delay: Time,
        /// Size of the messages with this delay.
        size: Bytes,
        /// The gap at this size.
        gap: Time,
    },
    /// A statistic that cannot be computed.
    #[error(transparent)]
    Stats(#[from] StatsError),
}
