//! Nonlinear least squares: Levenberg and Marquardt's method within bounds, with derivatives by differences. It is made for
//! at most a few dozen parameters. For linear residuals, see [`linear_fit`](super::linear_fit).

use super::{linear_fit::product, linear_system};

/// Parameter of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundedParameter {
    /// Lower bound, in the unit of the parameter; at most `high`.
    pub low: f64,
    /// Upper bound, in the same unit; finite.
    pub high: f64,
    /// Mean and standard deviation (above 0) of the prior, which adds the residual `(x - mean) / deviation`.
    pub prior: Option<[f64; 2]>,
}

impl BoundedParameter {
    /// Parameter between two bounds, without a prior.
    pub fn between(low: f64, high: f64) -> BoundedParameter {
        BoundedParameter {
            low,
            high,
            prior: None,
        }
    }

    /// Parameter with a prior. Its bounds are `deviations` standard deviations (above 0) from `value`.
    pub fn around(value: f64, deviation: f64, deviations: f64) -> BoundedParameter {
        BoundedParameter {
            prior: Some([value, deviation]),
            ..BoundedParameter::between(
                value - deviations * deviation,
                value + deviations * deviation,
            )
        }
    }
}

/// Step below which the search ends, as a fraction of the range.
const STILL: f64 = 1e-7;
const MOST_STEPS: usize = 60;
/// Difference for derivatives, as a fraction of the range. It is large compared with the accuracy of the models.
const DIFFERENCE: f64 = 1e-3;
/// Change of the residuals per unit of a parameter up to which the parameter counts as having no effect. It is kept fixed,
/// because its derivative would be noise.
const FELT: f64 = 1e-5;

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowest {
    /// Parameters at the minimum.
    pub at: Vec<f64>,
    /// Sum of squared residuals at the minimum.
    pub squares: f64,
    /// Indexed by parameter: `true` if a residual or a prior depends on it.
    pub is_felt: Vec<bool>,
}

/// Descends from `start` until a step reduces the sum of squares by a smaller fraction than `no_gain`. `None` if `start` has
/// no residuals.
///
/// # Panics
/// If a lower bound is above its upper bound.
pub fn descend(
    start: &[f64],
    parameters: &[BoundedParameter],
    no_gain: f64,
    residuals: &mut dyn FnMut(&[f64]) -> Option<Vec<f64>>,
) -> Option<Lowest> {
    let residuals = &mut |at: &[f64]| with_priors(parameters, at, residuals);
    let mut at = bounded(start, parameters);
    let mut values = residuals(&at)?;
    let mut damping = 1e-3;
    let mut slopes = derivatives(&at, &values, parameters, residuals);
    for _ in 0..MOST_STEPS {
        let Some((next, next_values)) =
            better(&at, &values, &slopes, parameters, &mut damping, residuals)
        else {
            break;
        };
        let moved = at.iter().zip(&next).zip(parameters);
        let moved = moved.map(|((a, b), of)| (a - b).abs() / (of.high - of.low));
        let gains_nothing =
            sum_of_squares(&next_values) > sum_of_squares(&values) * (1.0 - no_gain);
        let is_still = gains_nothing || moved.fold(0.0, f64::max) < STILL;
        (at, values) = (next, next_values);
        if is_still {
            break;
        }
        slopes = derivatives(&at, &values, parameters, residuals);
    }
    let is_felt = slopes.iter().map(|column| is_felt(column)).collect();
    Some(Lowest {
        squares: sum_of_squares(&values),
        at,
        is_felt,
    })
}

/// Finds a step that lowers the sum, and increases the damping as far as necessary.
fn better(
    at: &[f64],
    values: &[f64],
    slopes: &[Vec<f64>],
    parameters: &[BoundedParameter],
    damping: &mut f64,
    residuals: &mut dyn FnMut(&[f64]) -> Option<Vec<f64>>,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let now = sum_of_squares(values);
    while *damping < 1e9 {
        let step = damped_step(at, values, slopes, parameters, *damping);
        let next: Vec<f64> = at.iter().zip(&step).map(|(x, step)| x + step).collect();
        let next = bounded(&next, parameters);
        if next == at {
            return None;
        }
        match residuals(&next).filter(|found| sum_of_squares(found) < now) {
            Some(found) => {
                *damping = (*damping / 10.0).max(1e-12);
                return Some((next, found));
            }
            None => *damping *= 10.0,
        }
    }
    None
}

/// Derivatives of the residuals, indexed by parameter and then by residual. If the residuals do not exist on one side, the
/// other side is used.
fn derivatives(
    at: &[f64],
    values: &[f64],
    parameters: &[BoundedParameter],
    residuals: &mut dyn FnMut(&[f64]) -> Option<Vec<f64>>,
) -> Vec<Vec<f64>> {
    (0..at.len())
        .map(&mut |parameter: usize| {
            let BoundedParameter { low, high, .. } = parameters[parameter];
            let width = (high - low) * DIFFERENCE;
            for difference in [width, -width] {
                let mut near = at.to_vec();
                near[parameter] += difference;
                if (low..=high).contains(&near[parameter])
                    && let Some(found) = residuals(&near)
                {
                    return found
                        .iter()
                        .zip(values)
                        .map(|(near, here)| (near - here) / difference)
                        .collect();
                }
            }
            vec![0.0; values.len()]
        })
        .collect()
}

/// Solves `(JᵀJ + damping·diag(JᵀJ)) step = -Jᵀr` for the parameters that can move. The others remain fixed.
fn damped_step(
    at: &[f64],
    values: &[f64],
    slopes: &[Vec<f64>],
    parameters: &[BoundedParameter],
    damping: f64,
) -> Vec<f64> {
    let pull: Vec<f64> = slopes
        .iter()
        .map(|column| -product(column, values))
        .collect();
    let free: Vec<usize> = (0..at.len())
        .filter(|parameter: &usize| {
            let (of, x) = (parameters[*parameter], at[*parameter]);
            is_felt(&slopes[*parameter])
                && !(x <= of.low && pull[*parameter] < 0.0
                    || x >= of.high && pull[*parameter] > 0.0)
        })
        .collect();
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(free.len());
    for row in &free {
        let mut line: Vec<f64> = free
            .iter()
            .map(|column| product(&slopes[*row], &slopes[*column]))
            .collect();
        line[rows.len()] *= 1.0 + damping;
        line.push(pull[*row]);
        rows.push(line);
    }
    let mut step = vec![0.0; at.len()];
    // With damping, and only with columns that have an effect, the system is positive definite.
    for (place, solution) in free
        .iter()
        .zip(linear_system::solve(rows, 0.0).into_iter().flatten())
    {
        step[*place] = solution[0];
    }
    step
}

fn bounded(at: &[f64], parameters: &[BoundedParameter]) -> Vec<f64> {
    let bounded = at.iter().zip(parameters);
    bounded.map(|(x, of)| x.clamp(of.low, of.high)).collect()
}

/// Residuals, followed by the deviation of each parameter with a prior from its prior.
fn with_priors(
    parameters: &[BoundedParameter],
    at: &[f64],
    residuals: &mut dyn FnMut(&[f64]) -> Option<Vec<f64>>,
) -> Option<Vec<f64>> {
    let mut all = residuals(at)?;
    let known = parameters.iter().zip(at);
    all.extend(
        known.filter_map(|(of, x)| of.prior.map(|[value, deviation]| (x - value) / deviation)),
    );
    Some(all)
}

fn is_felt(slopes: &[f64]) -> bool {
    slopes.iter().any(|slope| slope.abs() > FELT)
}

fn sum_of_squares(values: &[f64]) -> f64 {
    product(values, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_gives_back_its_parameters() {
        let curve = |p: &[f64], x: f64| p[0] * (-p[1] * x).exp() + p[2];
        let truth = [2.0, 0.7, 0.3];
        let found = descend(
            &[1.0, 0.2, 1.0],
            &[BoundedParameter::between(0.0, 9.0); 3],
            1e-6,
            &mut |p: &[f64]| {
                Some(
                    (0..12)
                        .map(|x| curve(p, f64::from(x)) - curve(&truth, f64::from(x)))
                        .collect(),
                )
            },
        )
        .unwrap();
        for (found, truth) in found.at.iter().zip(truth) {
            assert!((found - truth).abs() < 1e-6, "{found} {truth}");
        }
    }

    #[test]
    fn a_parameter_without_influence_stays_and_is_marked() {
        let found = descend(
            &[1.0, 0.4],
            &[
                BoundedParameter::between(0.0, 9.0),
                BoundedParameter::between(0.0, 1.0),
            ],
            1e-6,
            &mut |p: &[f64]| Some(vec![p[0] - 3.0, 2.0 * (p[0] - 3.0)]),
        )
        .unwrap();
        assert!((found.at[0] - 3.0).abs() < 1e-9);
        assert_eq!((found.at[1], found.is_felt), (0.4, vec![true, false]));
    }

    #[test]
    fn the_minimum_may_be_on_a_bound_or_beside_a_region_without_residuals() {
        let found = descend(
            &[0.5, 0.5],
            &[
                BoundedParameter::between(0.0, 2.0),
                BoundedParameter::between(0.0, 9.0),
            ],
            1e-6,
            &mut |p: &[f64]| Some(vec![p[0] + p[1] - 5.0, p[0] - p[1] - 2.0]),
        )
        .unwrap();
        assert!(
            (found.at[0] - 2.0).abs() < 1e-9 && (found.at[1] - 1.5).abs() < 1e-6,
            "{found:?}"
        );
        let mut gap = |p: &[f64]| (p[0] < 4.0).then(|| vec![p[0] - 3.9]);
        let parameters = [BoundedParameter::between(0.0, 9.0)];
        let found = descend(&[1.0], &parameters, 1e-6, &mut gap).unwrap();
        assert!((found.at[0] - 3.9).abs() < 1e-6);
        assert_eq!(descend(&[5.0], &parameters, 1e-6, &mut gap), None);
    }

    #[test]
    fn a_prior_counts_as_one_more_residual() {
        let known = BoundedParameter::around(1.0, 0.5, 4.0);
        let found = descend(&[1.0], &[known], 1e-6, &mut |p: &[f64]| {
            Some(vec![p[0] - 2.0])
        });
        // (x - 2) + (x - 1) / 0.25 = 0.
        assert!((found.unwrap().at[0] - 1.2).abs() < 1e-6);
    }

    #[test]
    fn noise_in_one_parameter_does_not_hold_another() {
        let found = descend(
            &[1.0, 0.0],
            &[
                BoundedParameter::between(0.0, 9.0),
                BoundedParameter::between(0.0, 2.0),
            ],
            1e-6,
            &mut |p: &[f64]| Some(vec![p[0] - 3.0 + 1e-12 * (p[1] * 1e6).sin(), 0.5]),
        )
        .unwrap();
        assert!((found.at[0] - 3.0).abs() < 1e-6, "{found:?}");
    }
}
