//! Nonlinear complementarity: find `u >= 0` with `F(u) >= 0` and `u_l * F_l(u) = 0` for each `l`.
//!
//! Newton's method on the Fischer-Burmeister function `u + F - sqrt(u^2 + F^2)`, whose zeros are the solutions, with
//! Levenberg and Marquardt's regularisation because delays need not be unique, and a line search (De Luca, Facchinei
//! and Kanzow, 1996). It takes turns with a damped fixed point that finds out which unknowns are positive.

/// A complementarity problem whose `F` is `1 - load/capacity`.
pub(super) trait Complementarity {
    /// Number of unknowns.
    fn len(&self) -> usize;
    /// `F(u)`; none where it is not defined.
    fn slack(&self, unknowns: &[f64]) -> Option<Vec<f64>>;
    /// Row by row, the derivatives of `F`.
    fn jacobian(&self, unknowns: &[f64]) -> Vec<f64>;
    /// Exponent of the fixed point `u <- u * (1 - F)^damping`.
    fn damping(&self) -> f64;
}

/// The last iterate and how far it is from a solution.
pub(super) struct Iterate {
    pub unknowns: Vec<f64>,
    /// Largest `|min(u, F)|`.
    pub residual: f64,
}

const ENOUGH: f64 = 1e-12;
const ROUNDS: usize = 16;
const FIXED_POINT_STEPS: usize = 20;
const NEWTON_STEPS: usize = 12;
/// Steps of Newton's method alone from the best point found, while each makes the merit smaller.
const LAST_STEPS: usize = 100;
const HALVINGS: usize = 12;

/// Iterates from `start` until the residual is about rounding, or no more is to be had.
pub(super) fn solve(problem: &impl Complementarity, start: Vec<f64>) -> Iterate {
    let mut best = iterate(problem, start);
    if best.residual <= ENOUGH {
        return best;
    }
    // An unknown at zero would stay there for ever under the multiplicative fixed point.
    let mut steady: Vec<f64> = best.unknowns.iter().map(|unknown| unknown.max(1e-2)).collect();
    let mut bold = steady.clone();
    for round in 1..=ROUNDS {
        bold = newton(problem, fixed_point(problem, bold, FIXED_POINT_STEPS), NEWTON_STEPS);
        best = better(best, iterate(problem, bold.clone()));
        if best.residual <= ENOUGH {
            return best;
        }
        bold.iter_mut().for_each(|unknown| *unknown = unknown.max(1e-9));
        // Newton's method may end in a local minimum of its merit; here the fixed point goes on from its own last step.
        steady = fixed_point(problem, steady, round.min(8) * FIXED_POINT_STEPS);
        best = better(best, iterate(problem, newton(problem, steady.clone(), NEWTON_STEPS)));
        if best.residual <= ENOUGH {
            return best;
        }
    }
    let last = newton(problem, best.unknowns.clone(), LAST_STEPS);
    better(best, iterate(problem, last))
}

fn iterate(problem: &impl Complementarity, unknowns: Vec<f64>) -> Iterate {
    let residual = problem.slack(&unknowns).map_or(f64::INFINITY, |slack| {
        slack.iter().zip(&unknowns).map(|(slack, unknown)| slack.min(*unknown).abs()).fold(0.0, f64::max)
    });
    Iterate { unknowns, residual }
}

fn better(one: Iterate, other: Iterate) -> Iterate {
    if other.residual < one.residual { other } else { one }
}

fn fixed_point(problem: &impl Complementarity, mut unknowns: Vec<f64>, steps: usize) -> Vec<f64> {
    for _ in 0..steps {
        let Some(slack) = problem.slack(&unknowns) else { break };
        for (unknown, slack) in unknowns.iter_mut().zip(slack) {
            *unknown *= (1.0 - slack).clamp(1e-3, 1e3).powf(problem.damping());
        }
    }
    unknowns
}

fn newton(problem: &impl Complementarity, mut unknowns: Vec<f64>, steps: usize) -> Vec<f64> {
    for _ in 0..steps {
        let Some(slack) = problem.slack(&unknowns) else { break };
        let merit = merit(&unknowns, &slack);
        if merit == 0.0 {
            break;
        }
        let Some(direction) = newton_direction(problem, &unknowns, &slack) else { break };
        match line_search(problem, &unknowns, &direction, merit) {
            Some(found) => unknowns = found,
            None => break,
        }
    }
    unknowns
}

fn fischer_burmeister(unknown: f64, slack: f64) -> f64 {
    unknown + slack - unknown.hypot(slack)
}

fn merit(unknowns: &[f64], slack: &[f64]) -> f64 {
    unknowns.iter().zip(slack).map(|(unknown, slack)| fischer_burmeister(*unknown, *slack).powi(2)).sum()
}

fn line_search(problem: &impl Complementarity, from: &[f64], direction: &[f64], merit_before: f64) -> Option<Vec<f64>> {
    let mut step = 1.0;
    for _ in 0..HALVINGS {
        let trial: Vec<f64> = from.iter().zip(direction).map(|(at, along)| (at + step * along).max(0.0)).collect();
        let is_better = |slack: Vec<f64>| merit(&trial, &slack) < merit_before * (1.0 - 1e-4 * step);
        if problem.slack(&trial).is_some_and(is_better) {
            return Some(trial);
        }
        step /= 2.0;
    }
    None
}

/// Solves `(J'J + mu) d = -J' phi` with `J` an element of the Fischer-Burmeister function's generalised Jacobian.
fn newton_direction(problem: &impl Complementarity, unknowns: &[f64], slack: &[f64]) -> Option<Vec<f64>> {
    let size = problem.len();
    let mut jacobian = problem.jacobian(unknowns);
    let mut phi = Vec::with_capacity(size);
    for row in 0..size {
        let (unknown, slack) = (unknowns[row], slack[row]);
        let length = unknown.hypot(slack);
        let (toward_unknown, toward_slack) = match length {
            0.0 => (1.0 - std::f64::consts::FRAC_1_SQRT_2, 1.0 - std::f64::consts::FRAC_1_SQRT_2),
            _ => (1.0 - unknown / length, 1.0 - slack / length),
        };
        phi.push(fischer_burmeister(unknown, slack));
        let line = &mut jacobian[row * size..(row + 1) * size];
        line.iter_mut().for_each(|value| *value *= toward_slack);
        line[row] += toward_unknown;
    }
    let error = phi.iter().map(|phi| phi * phi).sum::<f64>().sqrt();
    let (mut normal, mut right) = normal_equations(&jacobian, &phi);
    for row in 0..size {
        normal[row * size + row] += (1e-3 * error).min(1e-2) + 1e-15;
    }
    solve_positive_definite(&mut normal, &mut right).then_some(right)
}

fn normal_equations(jacobian: &[f64], phi: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let size = phi.len();
    let mut normal = vec![0.0; size * size];
    let mut right = vec![0.0; size];
    for (line, phi) in jacobian.chunks_exact(size).zip(phi) {
        let entries: Vec<(usize, f64)> = line.iter().copied().enumerate().filter(|(_, value)| *value != 0.0).collect();
        for (row, value) in &entries {
            right[*row] -= value * phi;
            for (column, other) in entries.iter().take_while(|(column, _)| column <= row) {
                normal[row * size + column] += value * other;
            }
        }
    }
    (normal, right)
}

/// Cholesky's factorisation in the lower triangle; false if the matrix is not positive definite.
fn solve_positive_definite(matrix: &mut [f64], right: &mut [f64]) -> bool {
    let size = right.len();
    for column in 0..size {
        for row in column..size {
            let (above, below) = matrix.split_at(row * size);
            let other = if row == column { &below[..column] } else { &above[column * size..column * size + column] };
            let sum: f64 = below[..column].iter().zip(other).map(|(left, right)| left * right).sum();
            let value = matrix[row * size + column] - sum;
            if row != column {
                matrix[row * size + column] = value / matrix[column * size + column];
            } else if value > 0.0 {
                matrix[row * size + column] = value.sqrt();
            } else {
                return false;
            }
        }
    }
    for row in 0..size {
        let sum: f64 = (0..row).map(|column| matrix[row * size + column] * right[column]).sum();
        right[row] = (right[row] - sum) / matrix[row * size + row];
    }
    for row in (0..size).rev() {
        let sum: f64 = (row + 1..size).map(|below| matrix[below * size + row] * right[below]).sum();
        right[row] = (right[row] - sum) / matrix[row * size + row];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_positive_definite_system_is_solved() {
        let mut matrix = vec![4.0, 0.0, 0.0, 2.0, 3.0, 0.0, 1.0, 0.5, 2.0];
        let mut right = vec![4.0 + 4.0 + 3.0, 2.0 + 6.0 + 1.5, 1.0 + 1.0 + 6.0];
        assert!(solve_positive_definite(&mut matrix, &mut right));
        for (found, expected) in right.iter().zip([1.0, 2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{right:?}");
        }
        assert!(!solve_positive_definite(&mut [1.0, 0.0, 2.0, 1.0], &mut [1.0, 1.0]));
    }
}
