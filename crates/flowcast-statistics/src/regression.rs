//! Straight lines through points, `y = intercept + slope · x`.
//!
//! There are three methods: least squares (Lichei, section 3.3.4; the printed denominator lacks a square and must read
//! `Σx² - n · mean(x)²`), least squares with both coefficients at or above 0, and Theil and Sen's line, which is robust
//! against a quarter of outliers.

use super::{StatsError, check, check_pairs, linear_fit::product, sample::median_in_place};

/// The straight line `y = intercept + slope · x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// `y` at `x = 0`.
    pub intercept: f64,
    /// Increase of `y` for an increase of `x` by 1.
    pub slope: f64,
}

impl Line {
    /// Value of the line at `x`, inside or outside of the range of the fitted points.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// Line with the smallest sum of squared vertical distances.
///
/// # Errors
/// Fewer than two points, lists of different length, numbers that are not finite, or a single x.
pub fn least_squares(x: &[f64], y: &[f64]) -> Result<Line, StatsError> {
    check_points(x, y)?;
    let count = x.len() as f64;
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / count, y.iter().sum::<f64>() / count);
    // Σ(x - mean)(y - mean) is Σxy - n·mean(x)·mean(y) without the cancellation.
    let spread: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let common: f64 = x
        .iter()
        .zip(y)
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let slope = common / spread;
    Ok(Line {
        intercept: mean_y - slope * mean_x,
        slope,
    })
}

/// Line of least squares with intercept and slope at or above 0. If the unconstrained line has a negative coefficient, the
/// best allowed line lies on that bound: it passes through the origin, or is level.
///
/// # Errors
/// The errors of [`least_squares`].
pub fn least_squares_at_least_zero(x: &[f64], y: &[f64]) -> Result<Line, StatsError> {
    let free = least_squares(x, y)?;
    let level = y.iter().sum::<f64>() / y.len() as f64;
    Ok(nearest_allowed(
        free,
        product(x, y) / product(x, x),
        level,
        |line: &Line| {
            x.iter()
                .zip(y)
                .map(|(x, y)| (y - line.at(*x)).powi(2))
                .sum::<f64>()
        },
    ))
}

/// `free` if it is allowed, otherwise the closer of the line through the origin and the level one.
pub(super) fn nearest_allowed(
    free: Line,
    slope: f64,
    level: f64,
    distance: impl Fn(&Line) -> f64,
) -> Line {
    if free.intercept >= 0.0 && free.slope >= 0.0 {
        return free;
    }
    let through_origin = Line {
        intercept: 0.0,
        slope: slope.max(0.0),
    };
    let level = Line {
        intercept: level.max(0.0),
        slope: 0.0,
    };
    if distance(&through_origin) <= distance(&level) {
        through_origin
    } else {
        level
    }
}

/// Line with the median of the slopes between all pairs of points, and with the median of the remaining intercepts.
///
/// # Errors
/// The errors of [`least_squares`].
pub fn theil_sen(x: &[f64], y: &[f64]) -> Result<Line, StatsError> {
    check_points(x, y)?;
    let mut slopes = Vec::with_capacity(x.len() * (x.len() - 1) / 2);
    for first in 0..x.len() {
        for second in first + 1..x.len() {
            if x[first] != x[second] {
                slopes.push((y[second] - y[first]) / (x[second] - x[first]));
            }
        }
    }
    let slope = median_in_place(&mut slopes);
    let mut intercepts: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - slope * x).collect();
    Ok(Line {
        intercept: median_in_place(&mut intercepts),
        slope,
    })
}

/// [`theil_sen`] with intercept and slope at or above 0. If the unconstrained line is not allowed, the result is the median
/// slope through the origin or the median level, whichever has the smaller sum of distances.
///
/// # Errors
/// The errors of [`least_squares`].
pub fn theil_sen_at_least_zero(x: &[f64], y: &[f64]) -> Result<Line, StatsError> {
    let free = theil_sen(x, y)?;
    let mut slopes: Vec<f64> = x
        .iter()
        .zip(y)
        .filter(|(x, _)| **x != 0.0)
        .map(|(x, y)| y / x)
        .collect();
    let slope = median_in_place(&mut slopes);
    let level = median_in_place(&mut y.to_vec());
    Ok(nearest_allowed(free, slope, level, |line: &Line| {
        x.iter()
            .zip(y)
            .map(|(x, y)| (y - line.at(*x)).abs())
            .sum::<f64>()
    }))
}

fn check_points(x: &[f64], y: &[f64]) -> Result<(), StatsError> {
    check_pairs("x", x, "y", y)?;
    check("line", x, 2)?;
    check("line", y, 2)?;
    if x.iter().all(|value| *value == x[0]) {
        Err(StatsError::OneX(x[0]))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: [f64; 5] = [1.0, 2049.0, 4097.0, 6145.0, 8193.0];

    #[test]
    fn the_denominator_is_the_corrected_one() {
        let line = least_squares(&SIZES, &[2.0, 4.5, 6.4, 8.7, 11.1]).unwrap();
        assert!((line.slope / 0.001_093_75 - 1.0).abs() < 1e-9, "{line:?}");
        assert!(
            (line.intercept / 2.058_906_25 - 1.0).abs() < 1e-9,
            "{line:?}"
        );
    }

    #[test]
    fn a_line_needs_two_different_x() {
        assert_eq!(
            least_squares(&[3.0, 3.0], &[1.0, 2.0]),
            Err(StatsError::OneX(3.0))
        );
        assert!(theil_sen(&[3.0], &[1.0]).is_err());
        assert!(least_squares(&[1.0, 2.0], &[1.0]).is_err());
        assert!(least_squares(&[1.0, f64::NAN], &[1.0, 2.0]).is_err());
    }

    #[test]
    fn a_negative_intercept_becomes_a_line_through_the_origin() {
        // Free line: -1 + 2x. Through the origin: Σxy/Σx² = (1·1 + 2·3 + 3·5)/14.
        let line = least_squares_at_least_zero(&[1.0, 2.0, 3.0], &[1.0, 3.0, 5.0]).unwrap();
        assert_eq!(
            line,
            Line {
                intercept: 0.0,
                slope: 22.0 / 14.0
            }
        );
        let falling = least_squares_at_least_zero(&[0.0, 1.0, 2.0], &[3.0, 2.0, 1.0]).unwrap();
        assert_eq!(
            falling,
            Line {
                intercept: 2.0,
                slope: 0.0
            }
        );
    }

    #[test]
    fn theil_and_sens_line_has_no_negative_intercept_either() {
        let line = theil_sen_at_least_zero(&[1.0, 2.0, 3.0], &[1.0, 3.0, 6.0]).unwrap();
        assert_eq!(
            line,
            Line {
                intercept: 0.0,
                slope: 1.5
            }
        );
    }

    #[test]
    fn one_outlier_does_not_bend_theil_and_sens_line() {
        let mut y = SIZES.map(|x| 3.0 + 0.5 * x);
        y[4] = 1e6;
        let line = theil_sen(&SIZES, &y).unwrap();
        assert!(
            (line.slope - 0.5).abs() < 1e-12 && (line.intercept - 3.0).abs() < 1e-9,
            "{line:?}"
        );
    }

    proptest! {
        #[test]
        fn points_on_a_line_give_that_line(intercept in 0.0..1e3f64, slope in 0.0..10.0f64, step in 1.0..5e3f64) {
            let x: Vec<f64> = (0..12).map(|index| index as f64 * step).collect();
            let y: Vec<f64> = x.iter().map(|x| intercept + slope * x).collect();
            for line in [least_squares(&x, &y), least_squares_at_least_zero(&x, &y), theil_sen(&x, &y), theil_sen_at_least_zero(&x, &y)] {
                let line = line.unwrap();
                prop_assert!((line.intercept - intercept).abs() < 1e-8 * (1.0 + y[11]));
                prop_assert!((line.slope - slope).abs() < 1e-9 * (1.0 + slope));
            }
        }

        #[test]
        fn no_allowed_line_is_closer_than_the_constrained_one(
            y in prop::collection::vec(-5.0..10.0f64, 5..6), intercept in 0.0..5.0f64, slope in 0.0..3.0f64,
        ) {
            let x = [0.0, 1.0, 2.0, 3.0, 4.0];
            let best = least_squares_at_least_zero(&x, &y).unwrap();
            let distance = |line: Line| x.iter().zip(&y).map(|(x, y)| (y - line.at(*x)).powi(2)).sum::<f64>();
            prop_assert!(best.intercept >= 0.0 && best.slope >= 0.0);
            let other = Line { intercept, slope };
            prop_assert!(distance(best) <= distance(other) + 1e-9);
        }
    }
}
