//! Statistics: medians, intervals, regression, errors of predictions.
//!
//! The numbers here are plain `f64` of one unit that the caller chooses, because the same formula serves times, rates
//! and ratios; the stages that call it put the unit back on.

pub mod conformal;
pub mod descent;
pub mod gaussian_process;
pub mod grouping;
pub mod interval;
pub mod linear_fit;
pub mod linear_system;
pub mod observation;
pub mod piecewise;
pub mod propagation;
pub mod regression;
pub mod relative_line;
pub mod resampling;
pub mod sample;
pub mod still;
pub mod two_sample;
pub mod two_way;

use thiserror::Error;

/// Why a statistic cannot be computed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StatsError {
    /// Fewer values than the statistic is defined for.
    #[error("{statistic}: found {found} values, expected at least {expected}")]
    TooFew {
        /// What was asked for.
        statistic: &'static str,
        /// Values given.
        found: usize,
        /// Values needed.
        expected: usize,
    },
    /// A value that is not a number, or infinite.
    #[error("value {position}: found {found}, expected a finite number")]
    NotFinite {
        /// Place in the input, counted from 1.
        position: usize,
        /// The value, infinite or not a number.
        found: f64,
    },
    /// Two lists that belong together differ in length.
    #[error("found {left} {left_name} and {right} {right_name}, expected as many of both")]
    Lengths {
        /// Name of the first list.
        left_name: &'static str,
        /// Its length.
        left: usize,
        /// Name of the second list.
        right_name: &'static str,
        /// Its length.
        right: usize,
    },
    /// A number outside its range.
    #[error("{name}: found {found}, expected {expected}")]
    OutOfRange {
        /// The argument.
        name: &'static str,
        /// Its value.
        found: f64,
        /// What would have been right.
        expected: &'static str,
    },
    /// A regression over points that all have the same x.
    #[error("a line needs at least two different x, found only {0}")]
    OneX(f64),
}

/// Refuses short lists and values that are no numbers.
pub fn check(statistic: &'static str, values: &[f64], expected: usize) -> Result<(), StatsError> {
    if values.len() < expected {
        return Err(StatsError::TooFew {
            statistic,
            found: values.len(),
            expected,
        });
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(StatsError::NotFinite {
            position: at + 1,
            found: values[at],
        }),
        None => Ok(()),
    }
}

/// Refuses lists of different length.
fn check_pairs(
    left_name: &'static str,
    left: &[f64],
    right_name: &'static str,
    right: &[f64],
) -> Result<(), StatsError> {
    if left.len() == right.len() {
        return Ok(());
    }
    Err(StatsError::Lengths {
        left_name,
        left: left.len(),
        right_name,
        right: right.len(),
    })
}

/// Refuses a confidence level outside (0, 1).
fn check_level(level: f64) -> Result<(), StatsError> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(StatsError::OutOfRange {
        name: "confidence level",
        found: level,
        expected: "a number between 0 and 1",
    })
}
