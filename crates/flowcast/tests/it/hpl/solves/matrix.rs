//! The matrix of HPL's test program and its pivots, which a recording of the program does not contain.

/// The row with which each column is swapped when the random matrix of this order is factored with partial pivoting.
pub(crate) fn pivots(order: usize) -> Vec<u64> {
    let mut matrix = random_columns(order);
    let mut pivots = Vec::with_capacity(order);
    for column in 0..order {
        let below = (column + 1..order).fold(column, |largest, row| {
            if matrix[column][row].abs() > matrix[column][largest].abs() {
                row
            } else {
                largest
            }
        });
        pivots.push(below as u64);
        for values in &mut matrix {
            values.swap(column, below);
        }
        let (done, rest) = matrix.split_at_mut(column + 1);
        let factors = &mut done[column];
        let pivot = factors[column];
        factors[column + 1..]
            .iter_mut()
            .for_each(|value| *value /= pivot);
        for values in rest {
            let first = values[column];
            for (value, factor) in values[column + 1..].iter_mut().zip(&factors[column + 1..]) {
                *value -= factor * first;
            }
        }
    }
    pivots
}

/// Columns, one after the other, from one sequence of the linear congruential generator with which HPL fills its matrix.
fn random_columns(order: usize) -> Vec<Vec<f64>> {
    const FACTOR: u64 = 6_364_136_223_846_793_005;
    const SEED: u64 = 100;
    let mut state = SEED.wrapping_mul(FACTOR).wrapping_add(1);
    let mut next = || {
        let (low, high) = (state & 0xFFFF_FFFF, state >> 32);
        state = state.wrapping_mul(FACTOR).wrapping_add(1);
        0.5 - (low as f64 / 2f64.powi(31) * 0.5 + high as f64) / 2f64.powi(31) * 0.5
    };
    (0..order)
        .map(|_| (0..order).map(|_| next()).collect())
        .collect()
}
