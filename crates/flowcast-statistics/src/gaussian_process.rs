//! Gaussian process: prediction of normal variates from others with a known covariance (kriging; Rasmussen and Williams,
//! Gaussian processes for machine learning, 2006, algorithm 2.1).

use super::{
    linear_fit::product,
    linear_system::{Matrix, cholesky},
};

/// Values with a known covariance, prepared for predictions of others.
#[derive(Debug, Clone, PartialEq)]
pub struct GaussianProcess {
    /// Cholesky factor of the covariance, a lower triangle.
    factor: Matrix,
    /// Product of the inverse covariance and the values.
    weights: Vec<f64>,
}

impl GaussianProcess {
    /// Prepares values whose covariance, noise included, is `covariance`. `None` if it is not positive definite.
    pub fn new(covariance: &[Vec<f64>], values: &[f64]) -> Option<GaussianProcess> {
        let factor = cholesky(covariance)?;
        let half = forward(&factor, values);
        Some(GaussianProcess {
            weights: backward(&factor, half),
            factor,
        })
    }

    /// Mean of a value that has these covariances with the known ones.
    pub fn mean(&self, with_known: &[f64]) -> f64 {
        product(with_known, &self.weights)
    }

    /// Returns `L⁻¹ k` for a value with the covariances `k` to the known ones. The scalar product of the results for two
    /// values is the part of their covariance that the known values explain.
    pub fn explained(&self, with_known: &[f64]) -> Vec<f64> {
        forward(&self.factor, with_known)
    }
}

/// Solves `L x = b`.
fn forward(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut solved: Vec<f64> = Vec::with_capacity(right.len());
    for (row, value) in factor.iter().zip(right) {
        let known = product(row, &solved);
        solved.push((value - known) / row[solved.len()]);
    }
    solved
}

/// Solves `Lᵀ x = b`.
fn backward(factor: &[Vec<f64>], mut right: Vec<f64>) -> Vec<f64> {
    for at in (0..right.len()).rev() {
        right[at] /= factor[at][at];
        let solved = right[at];
        for (value, element) in right[..at].iter_mut().zip(&factor[at]) {
            *value -= element * solved;
        }
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_predicted_by_its_neighbour() {
        // Two values with variance 1 and covariance 0.8. The first was measured as 2, with noise of variance 0.25.
        let known = GaussianProcess::new(&[vec![1.25]], &[2.0]).unwrap();
        assert!((known.mean(&[0.8]) - 1.28).abs() < 1e-12);
        let explained = known.explained(&[0.8]);
        let variance = 1.0 - explained[0] * explained[0];
        assert!((variance - (1.0 - 0.64 / 1.25)).abs() < 1e-12);
    }

    #[test]
    fn a_known_value_without_noise_is_predicted_exactly() {
        let covariance = [
            vec![1.0, 0.5, 0.2],
            vec![0.5, 1.0, 0.4],
            vec![0.2, 0.4, 1.0],
        ];
        let known = GaussianProcess::new(&covariance, &[0.3, -1.0, 2.0]).unwrap();
        assert!((known.mean(&covariance[1]) + 1.0).abs() < 1e-12);
        let explained = known.explained(&covariance[1]);
        let variance = 1.0 - explained.iter().map(|x| x * x).sum::<f64>();
        assert!(variance.abs() < 1e-12);
        assert_eq!(
            GaussianProcess::new(&[vec![1.0, 2.0], vec![2.0, 1.0]], &[0.0, 0.0]),
            None
        );
    }
}
