//! How far predictions are from measurements.
//!
//! Signed error `(predicted - measured) / measured`: -0.8 says that the measured time is five times the predicted one.
//! Over a set of flows (RR-5910, Table 3): the mean of the absolute errors, the error of the sums, and the best and
//! worst flow.

use super::{StatsError, check, check_pairs};

/// The errors of a set of predictions, as shares (0.05 is 5 %).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorSummary {
    /// Mean of the absolute errors.
    pub mean_absolute: f64,
    /// Absolute error of the sum of all times.
    pub global: f64,
    /// The smallest absolute error.
    pub best: ErrorOfOne,
    /// The largest absolute error.
    pub worst: ErrorOfOne,
}

/// The absolute error of one prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorOfOne {
    /// Which one, counted from 0; the first of equals.
    pub index: usize,
    /// Its absolute error, a share.
    pub error: f64,
}

/// `(predicted - measured) / measured` for each pair.
///
/// # Errors
/// Lists of different length, numbers that are not finite, or a measured value that is not above 0.
pub fn signed_errors(predicted: &[f64], measured: &[f64]) -> Result<Vec<f64>, StatsError> {
    check_pairs(("predicted", predicted), ("measured", measured))?;
    check("error", predicted, 1)?;
    check("error", measured, 1)?;
    if let Some(&found) = measured.iter().find(|value| **value <= 0.0) {
        return Err(StatsError::OutOfRange {
            name: "measured",
            found,
            expected: "a number above 0",
        });
    }
    Ok(predicted
        .iter()
        .zip(measured)
        .map(|(predicted, measured)| (predicted - measured) / measured)
        .collect())
}

/// The errors of a set of predictions.
///
/// # Errors
/// As [`signed_errors`].
pub fn error_summary(predicted: &[f64], measured: &[f64]) -> Result<ErrorSummary, StatsError> {
    let errors: Vec<f64> = signed_errors(predicted, measured)?
        .into_iter()
        .map(f64::abs)
        .collect();
    let total: f64 = measured.iter().sum();
    let pick = |better: fn(f64, f64) -> bool| {
        let first = ErrorOfOne {
            index: 0,
            error: errors[0],
        };
        errors
            .iter()
            .enumerate()
            .fold(first, |chosen, (index, &error)| {
                if better(error, chosen.error) {
                    ErrorOfOne { index, error }
                } else {
                    chosen
                }
            })
    };
    Ok(ErrorSummary {
        mean_absolute: errors.iter().sum::<f64>() / errors.len() as f64,
        global: (predicted.iter().sum::<f64>() - total).abs() / total,
        best: pick(|error, chosen| error < chosen),
        worst: pick(|error, chosen| error > chosen),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_flows_have_the_errors_of_a_hand_calculation() {
        let summary = error_summary(&[1.0, 2.0, 3.0, 4.0], &[1.1, 1.9, 3.3, 4.0]).unwrap();
        assert!((summary.mean_absolute * 100.0 / 5.861_244_019_138_758 - 1.0).abs() < 1e-9);
        assert!((summary.global * 100.0 / 2.912_621_359_223_307 - 1.0).abs() < 1e-9);
        assert_eq!(
            summary.best,
            ErrorOfOne {
                index: 3,
                error: 0.0
            }
        );
        assert_eq!(summary.worst.index, 0);
        assert!((summary.worst.error * 100.0 / 9.090_909_090_909_099 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_time_five_times_too_short_is_an_error_of_minus_eighty_percent() {
        let errors = signed_errors(&[1.0, 2.0, 0.5], &[5.0, 1.0, 1.0]).unwrap();
        assert_eq!(errors, [-0.8, 1.0, -0.5]);
    }

    #[test]
    fn measured_times_of_zero_have_no_relative_error() {
        assert_eq!(
            signed_errors(&[1.0], &[0.0]).unwrap_err().to_string(),
            "measured: found 0, expected a number above 0"
        );
        assert!(error_summary(&[1.0, 2.0], &[1.0]).is_err());
        assert!(error_summary(&[], &[]).is_err());
    }
}
