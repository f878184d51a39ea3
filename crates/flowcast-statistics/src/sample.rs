//! Statistics of a sample.
//!
//! A message is never faster than its hardware, but anything may delay it. Transmission times are therefore skewed, and the
//! median represents the sample (Lichei, section 3.3.2).

use super::{StatsError, check, out_of_range};

/// Median: the middle value, or the mean of the two middle ones for an even count.
///
/// ```
/// use flowcast_statistics::sample::median;
///
/// assert_eq!(median(&[3.0, 1.0, 2.0, 100.0]), Ok(2.5));
/// assert!(median(&[]).is_err());
/// ```
///
/// # Errors
/// No value, or one that is not finite.
pub fn median(values: &[f64]) -> Result<f64, StatsError> {
    check("median", values, 1)?;
    Ok(median_in_place(&mut values.to_vec()))
}

/// [`median`] of a list that may be reordered, for inner loops. The list must have at least one value, and only numbers.
pub fn median_in_place(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if even => f64::midpoint(lower, *upper),
        _ => *upper,
    }
}

/// Value below which the share `share` of the sample lies, interpolated linearly between neighbours (Hyndman and Fan's type
/// 7, the default of R and NumPy).
///
/// # Errors
/// No value, one that is not finite, or a share outside [0, 1].
pub fn quantile(values: &[f64], share: f64) -> Result<f64, StatsError> {
    check("quantile", values, 1)?;
    if !(0.0..=1.0).contains(&share) {
        return out_of_range("share", share, "a number from 0 to 1");
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(quantile_of_sorted(&sorted, share))
}

/// [`quantile`] of a sorted list, which must not be empty.
pub(crate) fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

/// Returns the places of the values from the smallest value to the largest; equal values keep their order.
pub fn sorted_places(values: &[f64]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    places.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    places
}

/// Arithmetic mean.
///
/// # Errors
/// No value, or one that is not finite.
pub fn mean(values: &[f64]) -> Result<f64, StatsError> {
    check("mean", values, 1)?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation of the population behind the sample, with n - 1 in the denominator.
///
/// # Errors
/// Fewer than two values, or one that is not finite.
pub fn standard_deviation(values: &[f64]) -> Result<f64, StatsError> {
    check("standard deviation", values, 2)?;
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Ok((squares / (values.len() - 1) as f64).sqrt())
}

/// Correlation of two quantities, from -1 to 1 (Pearson). `None` if one of them is constant. The lists must have the same
/// length.
pub fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    let (of_x, of_y) = (mean(x).ok()?, mean(y).ok()?);
    let (mut together, mut own_x, mut own_y) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        together += (x - of_x) * (y - of_y);
        own_x += (x - of_x).powi(2);
        own_y += (y - of_y).powi(2);
    }
    let found = together / (own_x * own_y).sqrt();
    found.is_finite().then(|| found.clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_that_fall_as_the_other_rises_are_correlated_by_minus_one() {
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[6.0, 4.0, 2.0]), Some(-1.0));
        assert!((correlation(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 2.0], &[3.0, 3.0]), None);
        assert_eq!(correlation(&[], &[]), None);
    }

    #[test]
    fn the_median_is_the_middle_value_and_not_the_one_above_it() {
        assert_eq!(median(&[5.0, 1.0, 100.0, 3.0, 2.0]), Ok(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Ok(2.5));
        assert_eq!(median(&[7.0]), Ok(7.0));
    }

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        let values = [40.0, 10.0, 20.0, 30.0];
        assert_eq!(quantile(&values, 0.0), Ok(10.0));
        assert_eq!(quantile(&values, 1.0), Ok(40.0));
        assert_eq!(quantile(&values, 0.25), Ok(17.5));
        assert!(quantile(&values, 1.5).is_err());
    }

    #[test]
    fn empty_samples_and_values_that_are_not_numbers_are_refused() {
        assert_eq!(
            median(&[]),
            Err(StatsError::TooFew {
                statistic: "median",
                found: 0,
                expected: 1
            })
        );
        assert_eq!(
            mean(&[1.0, f64::INFINITY]).unwrap_err().to_string(),
            "value 2: found inf, expected a finite number"
        );
        assert!(median(&[1.0, f64::NAN]).is_err());
        assert!(standard_deviation(&[1.0]).is_err());
    }

    proptest! {
        #[test]
        fn the_median_is_the_quantile_at_one_half(values in prop::collection::vec(-1e6..1e6f64, 1..40)) {
            let (median, quantile) = (median(&values).unwrap(), quantile(&values, 0.5).unwrap());
            prop_assert!((median - quantile).abs() <= 1e-9 * median.abs().max(1.0));
        }

        #[test]
        fn as_many_values_lie_below_the_median_as_above(values in prop::collection::vec(-1e6..1e6f64, 1..40)) {
            let middle = median(&values).unwrap();
            let below = values.iter().filter(|value| **value < middle).count();
            let above = values.iter().filter(|value| **value > middle).count();
            prop_assert!(below <= values.len() / 2 && above <= values.len() / 2);
        }
    }
}
