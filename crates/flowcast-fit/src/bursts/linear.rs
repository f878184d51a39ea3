//! Weighted least squares whose solution says how each row weighs in it.

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
        let Row { columns, value, variance, .. } = &rows[at];
        let expected: f64 = columns.iter().zip(&self.values).map(|(column, value)| column * value).sum();
        let own: f64 = columns.iter().zip(&self.weights).map(|(column, weights)| column * weights[at]).sum();
        let rest = 1.0 - own;
        if rest > 1e-6 { (value - expected) / (rest * variance).sqrt() } else { 0.0 }
    }

    /// The part of the covariance of two parameters that comes from bursts, or from single messages.
    pub(super) fn variance(&self, one: usize, other: usize, rows: &[Row], burst: bool) -> f64 {
        let both = self.weights[one].iter().zip(&self.weights[other]).zip(rows);
        both.filter(|(_, row)| row.burst == burst).map(|((one, other), row)| one * other * row.variance).sum()
    }
}

/// None where the rows leave a parameter open.
pub(super) fn weighted_least_squares(rows: &[Row]) -> Option<Solved> {
    let count = rows.first()?.columns.len();
    let mut products = vec![vec![0.0; count]; count];
    for row in rows {
        add_outer(&mut products, &row.columns, 1.0 / row.variance);
    }
    let inverse = inverse(&products)?;
    let weight = |of: &Vec<f64>, row: &Row| {
        of.iter().zip(&row.columns).map(|(own, column)| own * column).sum::<f64>() / row.variance
    };
    let weights: Vec<Vec<f64>> = inverse.iter().map(|of| rows.iter().map(|row| weight(of, row)).collect()).collect();
    let value = |of: &Vec<f64>| of.iter().zip(rows).map(|(weight, row)| weight * row.value).sum();
    Some(Solved { values: weights.iter().map(value).collect(), weights })
}

/// `matrix += times · column · columnᵀ`.
pub(super) fn add_outer(matrix: &mut [Vec<f64>], column: &[f64], times: f64) {
    for (own, one) in matrix.iter_mut().zip(column) {
        own.iter_mut().zip(column).for_each(|(sum, other)| *sum += one * other * times);
    }
}

/// The inverse of a symmetric matrix without negative eigenvalues, by elimination on its scaled form; none if it has none.
pub(super) fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let count = matrix.len();
    let scale: Vec<f64> = (0..count).map(|at| matrix[at][at].sqrt()).collect();
    if scale.iter().any(|scale| !(*scale > 0.0 && scale.is_finite())) {
        return None;
    }
    let unit = |one: usize, other: usize| f64::from(u8::from(one == other));
    let mut rows: Vec<Vec<f64>> = (0..count)
        .map(|one| {
            let scaled = (0..count).map(|other| matrix[one][other] / scale[one] / scale[other]);
            scaled.chain((0..count).map(|other| unit(one, other))).collect()
        })
        .collect();
    for column in 0..count {
        let pivot =
            (column..count).max_by(|one, other| rows[*one][column].abs().total_cmp(&rows[*other][column].abs()))?;
        rows.swap(column, pivot);
        if rows[column][column].abs() < 1e-13 {
            return None;
        }
        let pivot: Vec<f64> = rows[column].iter().map(|value| value / rows[column][column]).collect();
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let times = row[column];
            row.iter_mut().zip(&pivot).for_each(|(own, other)| *own -= times * other);
        }
        rows[column] = pivot;
    }
    let of = |one: usize| (0..count).map(|other| rows[one][count + other] / scale[one] / scale[other]).collect();
    Some((0..count).map(of).collect())
}
