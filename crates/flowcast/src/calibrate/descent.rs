//! The parameters that leave the smallest sum of squared residuals: Levenberg and Marquardt's method inside bounds, with
//! derivatives by differences. Made for at most a handful of parameters.

use flowcast_model::stats::linear_system;

/// Bounds of a parameter.
pub(crate) type Range = (f64, f64);

/// A step that is a smaller part of the range, or gains a smaller part of the sum, ends the search.
const STILL: f64 = 1e-7;
const NO_GAIN: f64 = 1e-6;
const MOST_STEPS: usize = 60;
/// The difference that derivatives are taken over, as a part of the range: wide against what models are solved to.
const DIFFERENCE: f64 = 1e-3;
/// A parameter that changes no residual by more than this, for a change by one, is not felt and does not move: its
/// derivative would be noise.
const FELT: f64 = 1e-5;

/// Where a search ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lowest {
    /// The parameters at the lowest point.
    pub at: Vec<f64>,
    /// Their sum of squared residuals.
    pub squares: f64,
    /// Whether any residual depends on the parameter.
    pub is_felt: Vec<bool>,
}

/// Goes down from `start`; `None` if there are no residuals there.
pub(crate) fn descend(
    start: &[f64],
    ranges: &[Range],
    residuals: &mut dyn FnMut(&[f64]) -> Option<Vec<f64>>,
) -> Option<Lowest> {
    descend_until(NO_GAIN, start, ranges, residuals)
}

/// Goes down from `start` until a step gains a smaller part of the sum than `no_gain`.
pub(crate) fn descend_until(
    no_gain: f64,
    start: &[f64],
    ranges: &[Range],
    residuals: &mut dyn FnMut(&[f64]) -> Option<Vec<f64>>,
) -> Option<Lowest> {
    let mut at: Vec<f64> = start
        .iter()
        .zip(ranges)
        .map(|(x, (low, high))| x.clamp(*low, *high))
        .collect();
    let mut values = residuals(&at)?;
    let mut damping = 1e-3;
    let mut slopes = derivatives(&at, &values, ranges, residuals);
    for _ in 0..MOST_STEPS {
        let Some((next, next_values)) =
            better(&at, &values, &slopes, ranges, &mut damping, residuals)
        else {
            break;
        };
        let moved = at
            .iter()
            .zip(&next)
            .zip(ranges)
            .map(|((a, b), (low, high))| (a - b).abs() / (high - low));
        let gains_nothing =
            sum_of_squares(&next_values) > sum_of_squares(&values) * (1.0 - no_gain);
        let is_still = gains_nothing || moved.fold(0.0, f64::max) < STILL;
        (at, values) = (next, next_values);
        if is_still {
            break;
        }
        slopes = derivatives(&at, &values, ranges, residuals);
    }
    let is_felt = slopes.iter().map(|column| is_felt(column)).collect();
    Some(Lowest {
        squares: sum_of_squares(&values),
        at,
        is_felt,
    })
}

/// A step that lowers the sum, with as much damping as that takes.
fn better(
    at: &[f64],
    values: &[f64],
    slopes: &[Vec<f64>],
    ranges: &[Range],
    damping: &mut f64,
    residuals: &mut dyn FnMut(&[f64]) -> Option<Vec<f64>>,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let now = sum_of_squares(values);
    while *damping < 1e9 {
        let step = damped_step(at, values, slopes, ranges, *damping);
        let bounded = at.iter().zip(&step).zip(ranges);
        let next: Vec<f64> = bounded
            .map(|((x, step), (low, high))| (x + step).clamp(*low, *high))
            .collect();
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

/// By parameter, then by residual. A side without residuals gives way to the other.
fn derivatives(
    at: &[f64],
    values: &[f64],
    ranges: &[Range],
    residuals: &mut dyn FnMut(&[f64]) -> Option<Vec<f64>>,
) -> Vec<Vec<f64>> {
    (0..at.len())
        .map(&mut |parameter: usize| {
            let (low, high) = ranges[parameter];
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

/// Solves `(JᵀJ + damping·diag(JᵀJ)) step = -Jᵀr` for the parameters that can move; the others stay.
fn damped_step(
    at: &[f64],
    values: &[f64],
    slopes: &[Vec<f64>],
    ranges: &[Range],
    damping: f64,
) -> Vec<f64> {
    let pull: Vec<f64> = slopes
        .iter()
        .map(|column| -product(column, values))
        .collect();
    let free: Vec<usize> = (0..at.len())
        .filter(|parameter: &usize| {
            let ((low, high), x) = (ranges[*parameter], at[*parameter]);
            is_felt(&slopes[*parameter])
                && !(x <= low && pull[*parameter] < 0.0 || x >= high && pull[*parameter] > 0.0)
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
    // Damped and of columns that are felt, the system is positive definite.
    for (place, solution) in free
        .iter()
        .zip(linear_system::solve(rows, 0.0).into_iter().flatten())
    {
        step[*place] = solution[0];
    }
    step
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()
}

fn is_felt(slopes: &[f64]) -> bool {
    slopes.iter().any(|slope| slope.abs() > FELT)
}

fn sum_of_squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
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
            &[(0.0, 9.0), (0.0, 9.0), (0.0, 9.0)],
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
    fn a_parameter_that_nothing_depends_on_stays_and_is_told() {
        let found = descend(
            &[1.0, 0.4],
            &[(0.0, 9.0), (0.0, 1.0)],
            &mut |p: &[f64]| Some(vec![p[0] - 3.0, 2.0 * (p[0] - 3.0)]),
        )
        .unwrap();
        assert!((found.at[0] - 3.0).abs() < 1e-9);
        assert_eq!((found.at[1], found.is_felt), (0.4, vec![true, false]));
    }

    #[test]
    fn the_lowest_place_may_be_on_a_bound_or_beside_a_region_without_residuals() {
        let found = descend(
            &[0.5, 0.5],
            &[(0.0, 2.0), (0.0, 9.0)],
            &mut |p: &[f64]| Some(vec![p[0] + p[1] - 5.0, p[0] - p[1] - 2.0]),
        )
        .unwrap();
        assert!(
            (found.at[0] - 2.0).abs() < 1e-9 && (found.at[1] - 1.5).abs() < 1e-6,
            "{found:?}"
        );
        let mut gap = |p: &[f64]| (p[0] < 4.0).then(|| vec![p[0] - 3.9]);
        let found = descend(&[1.0], &[(0.0, 9.0)], &mut gap).unwrap();
        assert!((found.at[0] - 3.9).abs() < 1e-6);
        assert_eq!(descend(&[5.0], &[(0.0, 9.0)], &mut gap), None);
    }

    #[test]
    fn noise_in_one_parameter_does_not_keep_another_from_moving() {
        let found = descend(
            &[1.0, 0.0],
            &[(0.0, 9.0), (0.0, 2.0)],
            &mut |p: &[f64]| Some(vec![p[0] - 3.0 + 1e-12 * (p[1] * 1e6).sin(), 0.5]),
        )
        .unwrap();
        assert!((found.at[0] - 3.0).abs() < 1e-6, "{found:?}");
    }
}
