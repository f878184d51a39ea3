//! Weighted least squares of values that are linear in some parameters, with the weight of each value in the solution.

use super::linear_system::{Matrix, inverse_of_symmetric};

/// A measured value of `columns · parameters`, with an error of this variance.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearRow {
    /// Derivative of the value with respect to each parameter.
    pub columns: Vec<f64>,
    /// Measured value; in a row for a prior, the prior value of the parameter.
    pub value: f64,
    /// Variance of the value, above 0.
    pub variance: f64,
}

/// Parameters that fit the rows best.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearFit {
    /// Parameters, in the order of the columns.
    pub values: Vec<f64>,
    /// Weight of each row's value, indexed by parameter and row.
    pub weights: Vec<Vec<f64>>,
    /// Covariance of the parameters.
    pub covariance: Matrix,
}

impl LinearFit {
    /// Solves the weighted normal equations. `None` without rows, or if the rows do not determine every parameter.
    pub fn new(rows: &[LinearRow]) -> Option<LinearFit> {
        let count = rows.first()?.columns.len();
        let mut products = vec![vec![0.0; count]; count];
        for row in rows {
            add_outer(&mut products, &row.columns, 1.0 / row.variance);
        }
        let covariance = inverse_of_symmetric(&products)?;
        let weights: Vec<Vec<f64>> = covariance
            .iter()
            .map(|of| {
                let weights = rows.iter();
                weights
                    .map(|row| product(of, &row.columns) / row.variance)
                    .collect()
            })
            .collect();
        let measured: Vec<f64> = rows.iter().map(|row| row.value).collect();
        let values = weights.iter().map(|of| product(of, &measured)).collect();
        Some(LinearFit {
            values,
            weights,
            covariance,
        })
    }

    /// Value of the fit for a row.
    pub fn at(&self, row: &LinearRow) -> f64 {
        product(&row.columns, &self.values)
    }

    /// Residual of row `at` against a fit without this row, in standard errors. 0 if the other rows do not determine it.
    pub fn score_without(&self, rows: &[LinearRow], at: usize) -> f64 {
        let row = &rows[at];
        let weights = row.columns.iter().zip(&self.weights);
        let own: f64 = weights.map(|(column, weights)| column * weights[at]).sum();
        let rest = 1.0 - own;
        if rest > 1e-6 {
            (row.value - self.at(row)) / (rest * row.variance).sqrt()
        } else {
            0.0
        }
    }
}

/// `matrix += times · column · columnᵀ`.
pub fn add_outer(matrix: &mut [Vec<f64>], column: &[f64], times: f64) {
    for (own, one) in matrix.iter_mut().zip(column) {
        own.iter_mut()
            .zip(column)
            .for_each(|(sum, other)| *sum += one * other * times);
    }
}

/// Scalar product of two vectors.
pub fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_of_different_variance_agrees_with_a_hand_calculation() {
        // y = 1 + 2x, and an outlier with a hundredth of the weight.
        let points = [(0.0, 1.0, 1.0), (1.0, 3.0, 1.0), (2.0, 105.0, 100.0)];
        let rows = points.map(|(x, value, variance)| LinearRow {
            columns: vec![1.0, x],
            value,
            variance,
        });
        let fit = LinearFit::new(&rows).unwrap();
        // Σw = 2.01, Σwx = 1.02, Σwxx = 1.04, Σwy = 5.05, Σwxy = 5.1.
        let determinant = 2.01 * 1.04 - 1.02 * 1.02;
        let slope = (2.01 * 5.1 - 1.02 * 5.05) / determinant;
        assert!((fit.values[1] - slope).abs() < 1e-12, "{fit:?}");
        assert!((fit.covariance[1][1] - 2.01 / determinant).abs() < 1e-12);
        assert!((fit.at(&rows[0]) - fit.values[0]).abs() < 1e-12);
        // Without the outlier the line is exact: the outlier is 100 above 5, with a variance of 100 + 5.
        assert!((fit.score_without(&rows, 2) - 100.0 / 105f64.sqrt()).abs() < 1e-9);
        assert_eq!(LinearFit::new(&rows[..1]), None);
    }
}
