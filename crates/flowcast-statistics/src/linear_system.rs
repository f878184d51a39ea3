//! Small dense linear systems: elimination with pivots, inverses and Cholesky factors.

/// A matrix as a list of its rows.
pub type Matrix = Vec<Vec<f64>>;

/// Smallest pivot of a scaled matrix that is not singular.
const SMALLEST_SCALED_PIVOT: f64 = 1e-13;

/// Solutions `x` of `A x = b`, by Gauss-Jordan elimination with partial pivoting.
///
/// Each row contains a row of the square matrix `A`, followed by its elements of one or several right sides `b`. Each row of
/// the result contains one element of `x` for each right side. `None` if `A` is singular, that is, if a pivot is not above
/// `smallest_pivot`.
pub fn solve(mut rows: Matrix, smallest_pivot: f64) -> Option<Matrix> {
    let count = rows.len();
    for column in 0..count {
        let pivot = (column..count).max_by(|one: &usize, other: &usize| {
            rows[*one][column]
                .abs()
                .total_cmp(&rows[*other][column].abs())
        })?;
        rows.swap(column, pivot);
        if rows[column][column].abs() <= smallest_pivot {
            return None;
        }
        let pivot_row: Vec<f64> = rows[column]
            .iter()
            .map(|value| value / rows[column][column])
            .collect();
        for (at, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if at != column && factor != 0.0 {
                row[column..]
                    .iter_mut()
                    .zip(&pivot_row[column..])
                    .for_each(|(own, other)| *own -= factor * other);
            }
        }
        rows[column] = pivot_row;
    }
    Some(rows.into_iter().map(|row| row[count..].to_vec()).collect())
}

/// Inverse of a symmetric matrix without negative eigenvalues. It is computed from the scaled matrix, so that parameters
/// with different units have the same weight. `None` if the matrix is singular to 13 digits.
pub fn inverse_of_symmetric(matrix: &[Vec<f64>]) -> Option<Matrix> {
    let count = matrix.len();
    let scale: Vec<f64> = (0..count).map(|at| matrix[at][at].sqrt()).collect();
    if scale
        .iter()
        .any(|scale| !(*scale > 0.0 && scale.is_finite()))
    {
        return None;
    }
    let mut scaled = vec![vec![0.0; 2 * count]; count];
    for (row, own) in scaled.iter_mut().enumerate() {
        for column in 0..count {
            own[column] = matrix[row][column] / scale[row] / scale[column];
        }
        own[count + row] = 1.0;
    }
    let mut inverse = solve(scaled, SMALLEST_SCALED_PIVOT)?;
    for (row, own) in inverse.iter_mut().enumerate() {
        own.iter_mut()
            .zip(&scale)
            .for_each(|(value, other)| *value /= scale[row] * other);
    }
    Some(inverse)
}

/// Lower triangle `L` with `L Lᵀ` = the matrix. `None` if the matrix is not positive definite.
pub fn cholesky(matrix: &[Vec<f64>]) -> Option<Matrix> {
    let mut factor = vec![vec![0.0; matrix.len()]; matrix.len()];
    for row in 0..matrix.len() {
        for column in 0..=row {
            let known: f64 = (0..column)
                .map(|at| factor[row][at] * factor[column][at])
                .sum();
            let rest: f64 = matrix[row][column] - known;
            factor[row][column] = match row == column {
                true if rest > 0.0 => rest.sqrt(),
                true => return None,
                false => rest / factor[column][column],
            };
        }
    }
    Some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_whose_first_pivot_is_zero_is_solved() {
        // 2y = 4, x + y = 5; and with a second right side 2y = 0, x + y = 1.
        let solved = solve(
            vec![vec![0.0, 2.0, 4.0, 0.0], vec![1.0, 1.0, 5.0, 1.0]],
            0.0,
        );
        assert_eq!(solved, Some(vec![vec![3.0, 1.0], vec![2.0, 0.0]]));
        assert_eq!(
            solve(vec![vec![1.0, 2.0, 1.0], vec![2.0, 4.0, 2.0]], 1e-13),
            None
        );
    }

    #[test]
    fn an_inverse_of_very_different_scales_is_one() {
        let matrix = [vec![4e18, 1e9], vec![1e9, 1.0]];
        let inverse = inverse_of_symmetric(&matrix).unwrap();
        let product = |row: usize, column: usize| {
            (0..2)
                .map(|at| matrix[row][at] * inverse[at][column])
                .sum::<f64>()
        };
        assert!((product(0, 0) - 1.0).abs() < 1e-12 && (product(1, 1) - 1.0).abs() < 1e-12);
        assert_eq!(
            inverse_of_symmetric(&[vec![1.0, 1.0], vec![1.0, 1.0]]),
            None
        );
    }
}
