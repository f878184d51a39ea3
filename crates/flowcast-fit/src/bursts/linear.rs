//! Weighted least squares whose solution says how each row weighs in it.

use flowcast_model::stats::linear_system::inverse_of_symmetric;

/// A measured mean: `value = columns · parameters`.
pub(super) struct Row {
    pub columns: Vec<f64>,
    pub value: f64,
    pub variance: f64,
    pub burst: bool,
}

/// Parameters, and for each parameter the weights of the rows.
pub(super) struct Solved {
    pub values: Vec<f64>,
    pub weights: Vec<Vec<f64>>,
}

impl Solved {
    /// How many standard errors a row lies above what the others say; 0 where they leave it open.
    pub(super) fn score_without(&self, rows: &[Row], at: usize) -> f64 {
        let Row {
            columns,
            value,
            variance,
            ..
        } = &rows[at];
        let expected: f64 = columns
            .iter()
            .zip(&self.values)
            .map(|(column, value)| column * value)
            .sum();
        let own: f64 = columns
            .iter()
            .zip(&self.weights)
            .map(|(column, weights)| column * weights[at])
            .sum();
        let rest = 1.0 - own;
        if rest > 1e-6 {
            (value - expected) / (rest * variance).sqrt()
        } else {
            0.0
        }
    }

    /// The part of the covariance of two parameters that comes from bursts, or from single messages.
    pub(super) fn variance(&self, one: usize, other: usize, rows: &[Row], burst: bool) -> f64 {
        let both = self.weights[one].iter().zip(&self.weights[other]).zip(rows);
        both.filter(|(_, row)| row.burst == burst)
            .map(|((one, other), row)| one * other * row.variance)
            .sum()
    }
}

/// None where the rows leave a parameter open.
pub(super) fn weighted_least_squares(rows: &[Row]) -> Option<Solved> {
    let count = rows.first()?.columns.len();
    let mut products = vec![vec![0.0; count]; count];
    for row in rows {
        add_outer(&mut products, &row.columns, 1.0 / row.variance);
    }
    let inverse = inverse_of_symmetric(&products)?;
    let weights: Vec<Vec<f64>> = inverse
        .iter()
        .map(|of| rows.iter().map(|row| weight(of, row)).collect())
        .collect();
    Some(Solved {
        values: weights
            .iter()
            .map(|of: &Vec<f64>| {
                of.iter()
                    .zip(rows)
                    .map(|(weight, row)| weight * row.value)
                    .sum()
            })
            .collect(),
        weights,
    })
}

fn weight(of: &[f64], row: &Row) -> f64 {
    of.iter()
        .zip(&row.columns)
        .map(|(own, column)| own * column)
        .sum::<f64>()
        / row.variance
}

/// `matrix += times · column · columnᵀ`.
pub(super) fn add_outer(matrix: &mut [Vec<f64>], column: &[f64], times: f64) {
    for (own, one) in matrix.iter_mut().zip(column) {
        own.iter_mut()
            .zip(column)
            .for_each(|(sum, other)| *sum += one * other * times);
    }
}
