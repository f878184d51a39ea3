//! Statistics: medians, intervals, regression, errors of predictions.
//!
//! All numbers are plain `f64` in a unit that the caller chooses, because the same formulas apply to times, rates and
//! ratios. The callers restore the units.

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
pub mod stability;
pub mod two_sample;
pub mod two_way;

use thiserror::Error;

/// Reasons why a statistic cannot be computed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StatsError {
    /// Fewer values than the statistic needs.
    #[error("{statistic}: found {found} values, expected at least {expected}")]
    TooFew {
        /// Name of the statistic.
        statistic: &'static str,
        /// Number of given values.
        found: usize,
        /// Minimum number of values.
        expected: usize,
    },
    /// A value that is infinite or not a number.
    #[error("value {position}: found {found}, expected a finite number")]
    NotFinite {
        /// Position in the input, counted from 1.
        position: usize,
        /// The value, infinite or not a number.
        found: f64,
    },
    /// Two lists that belong together have different lengths.
    #[error("found {left} {left_name} and {right} {right_name}, expected the same number of both")]
    Lengths {
        /// Name of the first list.
        left_name: &'static str,
        /// Length of the first list.
        left: usize,
        /// Name of the second list.
        right_name: &'static str,
        /// Length of the second list.
        right: usize,
    },
    /// A number outside its range.
    #[error("{name}: found {found}, expected {expected}")]
    OutOfRange {
        /// Name of the argument.
        name: &'static str,
        /// Value of the argument.
        found: f64,
        /// Expected range, as text for the message.
        expected: &'static str,
    },
    /// All points of a regression have the same x.
    #[error("found only the x {0}, expected at least two different x for a line")]
    OneX(f64),
}

/// Refuses short lists, and values that are infinite or not numbers.
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

/// Refuses lists of different lengths.
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
    out_of_range("confidence level", level, "a number between 0 and 1")
}

/// Refuses a number outside its range.
fn out_of_range<T>(
    name: &'static str,
    found: f64,
    expected: &'static str,
) -> Result<T, StatsError> {
    Err(StatsError::OutOfRange {
        name,
        found,
        expected,
    })
}
