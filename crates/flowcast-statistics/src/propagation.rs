//! Propagation of the errors of measured values to results (Lichei, section 3.3.3).
//!
//! For independent errors: `z = x ± y` gives `Δz = sqrt(Δx² + Δy²)`, and `z = C · x^α · y^β` gives
//! `|Δz / z| = sqrt((α·Δx/x)² + (β·Δy/y)²)`; the constant C does not change the relative error.

/// A value and its error (standard deviation), both in the same unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uncertain {
    /// Best estimate of the quantity.
    pub value: f64,
    /// Standard deviation of the estimate, in the unit of `value`.
    pub error: f64,
}

impl Uncertain {
    /// Error as a share of the value.
    pub(crate) fn relative_error(&self) -> f64 {
        (self.error / self.value).abs()
    }
}

/// Error of the sum or the difference of two values.
pub fn error_of_sum(x: Uncertain, y: Uncertain) -> f64 {
    x.error.hypot(y.error)
}

/// Relative error of `C · x^alpha · y^beta`: product for 1, 1; quotient for 1, -1.
pub fn relative_error_of_product(x: Uncertain, alpha: f64, y: Uncertain, beta: f64) -> f64 {
    (alpha * x.relative_error()).hypot(beta * y.relative_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Uncertain = Uncertain {
        value: 10.0,
        error: 0.3,
    };
    const Y: Uncertain = Uncertain {
        value: 4.0,
        error: 0.4,
    };

    #[test]
    fn errors_of_sums_add_in_squares() {
        assert!((error_of_sum(X, Y) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn relative_errors_of_products_are_weighted_by_the_exponents() {
        assert!(
            (relative_error_of_product(X, 1.0, Y, -1.0) / 0.104_403_065_089_105_5 - 1.0).abs()
                < 1e-12
        );
        assert!(
            (relative_error_of_product(X, 2.0, Y, -1.0) / 0.116_619_037_896_906_02 - 1.0).abs()
                < 1e-12
        );
    }
}
