//! Line with the smallest sum of relative errors, `Σ |intercept + slope · x - y| / y`, for quantities above 0 that span
//! decades. Each point counts by its error in percent, and outliers count no more than that.
//!
//! The sum is convex in intercept and slope, and linear between the lines through two points, so one of these lines is the
//! best. The best slope through a given point is a weighted median. From the second point on that line, the search continues
//! until neither of the two points can be replaced (Wesolowsky, "A new descent algorithm for the least absolute value
//! regression problem", 1981).

use super::{
    StatsError, check, check_pairs, out_of_range,
    regression::{Line, nearest_allowed},
};

/// Line with the smallest sum of relative errors, with intercept and slope at or above 0. Points with a single x give a
/// level line.
///
/// # Errors
/// No point, lists of different length, numbers that are not finite, an x below 0, or a y that is not above 0.
pub fn relative_line_at_least_zero(x: &[f64], y: &[f64]) -> Result<Line, StatsError> {
    check_relative(x, y)?;
    weighted_line_at_least_zero(x, y, &inverses(y))
}

/// Line with the smallest `Σ weight · |intercept + slope · x - y|`, with intercept and slope at or above 0.
///
/// # Errors
/// No point, lists of different length, or numbers that are not finite.
pub fn weighted_line_at_least_zero(
    x: &[f64],
    y: &[f64],
    weights: &[f64],
) -> Result<Line, StatsError> {
    check_pairs("x", x, "y", y)?;
    check_pairs("x", x, "weights", weights)?;
    [x, y, weights]
        .into_iter()
        .try_for_each(|values| check("line", values, 1))?;
    Ok(WeightedPoints { x, y, weights }.line_at_least_zero())
}

/// Largest value without a finite inverse that could serve as a weight.
const LEAST: f64 = 1e-300;

pub(super) fn check_relative(x: &[f64], y: &[f64]) -> Result<(), StatsError> {
    check_pairs("x", x, "y", y)?;
    check("line", x, 1)?;
    check("line", y, 1)?;
    match (
        x.iter().find(|x| **x < 0.0),
        y.iter().find(|y| **y <= LEAST),
    ) {
        (Some(x), _) => out_of_range("x", *x, "a number of at least 0"),
        (_, Some(y)) => out_of_range("y", *y, "a number above 1e-300"),
        _ => Ok(()),
    }
}

/// Weights that turn absolute errors into relative ones.
pub(super) fn inverses(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| 1.0 / value).collect()
}

/// Points that were checked. The three lists have the same length.
#[derive(Clone, Copy)]
pub(super) struct WeightedPoints<'a> {
    pub x: &'a [f64],
    pub y: &'a [f64],
    pub weights: &'a [f64],
}

impl<'a> WeightedPoints<'a> {
    pub(super) fn between(self, from: usize, to: usize) -> WeightedPoints<'a> {
        WeightedPoints {
            x: &self.x[from..to],
            y: &self.y[from..to],
            weights: &self.weights[from..to],
        }
    }

    /// Sum of weighted errors, which the lines here minimize.
    pub(super) fn errors(self, line: &Line) -> f64 {
        self.all()
            .map(|(_, (x, y, weight))| (line.at(x) - y).abs() * weight)
            .sum()
    }

    pub(super) fn line_at_least_zero(self) -> Line {
        let free = self.free_line();
        if free.intercept >= 0.0 && free.slope >= 0.0 {
            return free;
        }
        let slope = self
            .best_slope(0.0, 0.0, &mut Vec::new())
            .map_or(0.0, |slope| slope.value);
        nearest_allowed(free, slope, self.level().value, |line| self.errors(line))
    }

    fn free_line(self) -> Line {
        let start = self.level();
        let mut best = Line {
            intercept: start.value,
            slope: 0.0,
        };
        let (mut least, mut pivot) = (self.errors(&best), start.at);
        let mut slopes = Vec::with_capacity(self.x.len());
        loop {
            let (x, y) = (self.x[pivot], self.y[pivot]);
            let Some(Weighted {
                value: slope, at, ..
            }) = self.best_slope(x, y, &mut slopes)
            else {
                return best;
            };
            let line = Line {
                intercept: y - slope * x,
                slope,
            };
            let errors = self.errors(&line);
            // A decrease by rounding alone would repeat forever.
            if errors >= least * (1.0 - 1e-12) {
                return best;
            }
            (best, least, pivot) = (line, errors, at);
        }
    }

    /// Best slope of a line through the given place. `None` if no point has a different x.
    fn best_slope(self, own_x: f64, own_y: f64, slopes: &mut Vec<Weighted>) -> Option<Weighted> {
        slopes.clear();
        let others = self.all().filter(|(_, (x, ..))| *x != own_x);
        slopes.extend(others.map(|(at, (x, y, weight))| Weighted {
            value: (y - own_y) / (x - own_x),
            weight: (x - own_x).abs() * weight,
            at,
        }));
        weighted_median(slopes)
    }

    /// Height of the best level line.
    fn level(self) -> Weighted {
        let mut heights: Vec<Weighted> = self
            .all()
            .map(|(at, (_, value, weight))| Weighted { value, weight, at })
            .collect();
        weighted_median(&mut heights).expect("there is a point")
    }

    fn all(self) -> impl Iterator<Item = (usize, (f64, f64, f64))> + use<'a> {
        let values = self.x.iter().zip(self.y).zip(self.weights);
        values.map(|((x, y), weight)| (*x, *y, *weight)).enumerate()
    }
}

/// A value, its weight, and the point that it belongs to.
#[derive(Clone, Copy)]
struct Weighted {
    value: f64,
    weight: f64,
    at: usize,
}

/// Value at which half of the weight is reached. `None` without values.
fn weighted_median(values: &mut [Weighted]) -> Option<Weighted> {
    values.sort_unstable_by(|a, b| a.value.total_cmp(&b.value));
    let half: f64 = values.iter().map(|value| value.weight).sum::<f64>() / 2.0;
    let mut reached = 0.0;
    let at = values.iter().position(|value| {
        reached += value.weight;
        reached >= half
    });
    at.map(|at| values[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn relative_errors(line: &Line, x: &[f64], y: &[f64]) -> f64 {
        WeightedPoints {
            x,
            y,
            weights: &inverses(y),
        }
        .errors(line)
    }

    #[test]
    fn outliers_do_not_bend_the_line_and_small_values_count_as_much_as_large_ones() {
        let x = [0.0, 10.0, 1e3, 2e3, 1e4, 1e5];
        let mut y = x.map(|x| 2.0 + 0.5 * x);
        y[4] *= 3.0;
        let line = relative_line_at_least_zero(&x, &y).unwrap();
        assert!(
            (line.intercept - 2.0).abs() < 1e-9 && (line.slope - 0.5).abs() < 1e-12,
            "{line:?}"
        );
    }

    #[test]
    fn lines_with_a_single_x_are_horizontal() {
        assert_eq!(
            relative_line_at_least_zero(&[8.0], &[3.0]),
            Ok(Line {
                intercept: 3.0,
                slope: 0.0
            })
        );
        let falling = relative_line_at_least_zero(&[1.0, 2.0, 3.0], &[5.0, 4.0, 3.0]).unwrap();
        assert_eq!(
            falling,
            Line {
                intercept: 4.0,
                slope: 0.0
            }
        );
        let steep = relative_line_at_least_zero(&[1.0, 2.0, 4.0], &[1.0, 2.0, 8.0]).unwrap();
        assert_eq!((steep.intercept, steep.slope), (0.0, 1.0));
    }

    #[test]
    fn values_of_zero_are_refused() {
        let message = relative_line_at_least_zero(&[1.0], &[0.0])
            .unwrap_err()
            .to_string();
        assert_eq!(message, "y: found 0, expected a number above 1e-300");
        assert!(relative_line_at_least_zero(&[1.0, 2.0], &[1e-320, 1.0]).is_err());
        assert!(
            relative_line_at_least_zero(&[-1.0], &[1.0]).is_err()
                && relative_line_at_least_zero(&[], &[]).is_err()
        );
    }

    /// Candidates: lines through two points, level lines through one point, and lines through the origin and one point.
    fn reference(x: &[f64], y: &[f64]) -> f64 {
        let all = || x.iter().zip(y);
        let pairs = all().flat_map(|(x, y)| {
            all()
                .filter(move |(other, _)| *other != x)
                .map(move |(other_x, other_y)| {
                    let slope = (other_y - y) / (other_x - x);
                    Line {
                        intercept: y - slope * x,
                        slope,
                    }
                })
        });
        let bounds = all().flat_map(|(x, y)| {
            [
                Line {
                    intercept: *y,
                    slope: 0.0,
                },
                Line {
                    intercept: 0.0,
                    slope: y / x.max(1e-300),
                },
            ]
        });
        let allowed = pairs
            .chain(bounds)
            .filter(|line| line.intercept >= 0.0 && line.slope >= 0.0);
        allowed
            .map(|line| relative_errors(&line, x, y))
            .fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn no_other_line_through_two_points_is_better(points in prop::collection::vec((0.0..1e4f64, 0.1..1e4f64), 1..12)) {
            let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            let line = relative_line_at_least_zero(&x, &y).unwrap();
            prop_assert!(line.intercept >= 0.0 && line.slope >= 0.0);
            prop_assert!(relative_errors(&line, &x, &y) <= reference(&x, &y) * (1.0 + 1e-9));
        }
    }
}
