//! Intervals of predictions, from the errors of earlier ones.
//!
//! Split conformal prediction (Papadopoulos and others, 2002): given `n` residuals of cases that are exchangeable with the
//! next one, the next residual lies below the `⌈(n+1)·p⌉`-th smallest with at least the probability `p`, for any
//! distribution. Residuals are `ln(measured / predicted)`, so the interval of a prediction is a pair of factors.
//!
//! With at least `2/(1-level) - 1` residuals (19 for 90 %), both ends come from the signed residuals. With at least
//! `1/(1-level) - 1` (9), they come from the absolute ones. With fewer, the level cannot be reached: the largest residual
//! gives `n/(n+1)`.
//!
//! Other uncertainties of the prediction, such as those of the network's parameters, are a sample of further residuals. Each
//! of them is added to each of the errors, and the ends are taken at the same ranks of the sums.

use statrs::distribution::{Beta, ContinuousCDF};

use super::{StatsError, check, check_level, out_of_range, resampling::percentile_interval};

/// Range in which the next residual is expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin {
    /// Lower end, `ln(measured / predicted)`.
    pub low: f64,
    /// Upper end, `ln(measured / predicted)`.
    pub high: f64,
    /// Probability of the range. It is less than the requested one if there are too few errors.
    pub level: f64,
}

/// Margin of the next prediction. `residuals` are `ln(measured / predicted)` of earlier ones, and each of `further` is added
/// to each of them. One of the lists may be empty.
///
/// # Errors
/// Both lists empty, a residual that is not finite, or a level outside (0, 1).
pub fn margin(residuals: &[f64], further: &[f64], level: f64) -> Result<Margin, StatsError> {
    check_level(level)?;
    if residuals.is_empty() {
        let (low, high) = percentile_interval(further, level)?;
        return Ok(Margin { low, high, level });
    }
    check("margin", residuals, 1)?;
    check("margin", further, 0)?;
    let further = if further.is_empty() { &[0.0] } else { further };
    let mut sums: Vec<f64> = residuals
        .iter()
        .flat_map(|error| further.iter().map(move |more| error + more))
        .collect();
    let count = residuals.len();
    if let Some(rank) = rank(count, f64::midpoint(1.0, level)) {
        sums.sort_unstable_by(f64::total_cmp);
        return Ok(Margin {
            low: sums[(count - rank) * further.len()],
            high: sums[rank * further.len() - 1],
            level,
        });
    }
    sums.iter_mut().for_each(|sum| *sum = sum.abs());
    sums.sort_unstable_by(f64::total_cmp);
    let (rank, level) = match rank(count, level) {
        Some(rank) => (rank, level),
        None => (count, count as f64 / (count + 1) as f64),
    };
    let high = sums[rank * further.len() - 1];
    Ok(Margin {
        low: -high,
        high,
        level,
    })
}

/// `⌈(n+1)·p⌉`, if it is at most `n`.
fn rank(count: usize, share: f64) -> Option<usize> {
    // A decimal fraction such as 0.95 may be a little larger as a double.
    let rank = ((count + 1) as f64 * share - 1e-9).ceil() as usize;
    (rank <= count).then_some(rank)
}

/// Interval of a share, at `level`, if `inside` of `all` were observed (Clopper and Pearson).
///
/// # Errors
/// No observation, more inside than in all, or a level outside (0, 1).
pub fn share_interval(inside: usize, all: usize, level: f64) -> Result<(f64, f64), StatsError> {
    check_level(level)?;
    if all == 0 || inside > all {
        let expected = "at least 1, and not less than inside";
        return out_of_range("all", all as f64, expected);
    }
    let tail = (1.0 - level) / 2.0;
    let low = if inside == 0 {
        0.0
    } else {
        beta(inside, all - inside + 1, tail)
    };
    let high = if inside == all {
        1.0
    } else {
        beta(inside + 1, all - inside, 1.0 - tail)
    };
    Ok((low, high))
}

fn beta(a: usize, b: usize, share: f64) -> f64 {
    Beta::new(a as f64, b as f64)
        .expect("both are above 0")
        .inverse_cdf(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resampling::{Resampler, normal_score};

    #[test]
    fn both_ends_are_the_extremes_of_nineteen_residuals() {
        let residuals: Vec<f64> = (0..19).map(|at| f64::from(at) - 3.0).collect();
        assert_eq!(
            margin(&residuals, &[], 0.9),
            Ok(Margin {
                low: -3.0,
                high: 15.0,
                level: 0.9
            })
        );
        assert_eq!(
            margin(&residuals, &[-0.5, 0.5], 0.9),
            Ok(Margin {
                low: -3.5,
                high: 15.5,
                level: 0.9
            })
        );
        let more: Vec<f64> = (0..39).map(f64::from).collect();
        assert_eq!(
            margin(&more, &[], 0.9),
            Ok(Margin {
                low: 1.0,
                high: 37.0,
                level: 0.9
            })
        );
    }

    #[test]
    fn few_residuals_give_a_margin_on_both_sides_and_very_few_a_lower_level() {
        let residuals: Vec<f64> = (1..=9).map(|at| -f64::from(at)).collect();
        assert_eq!(
            margin(&residuals, &[], 0.9),
            Ok(Margin {
                low: -9.0,
                high: 9.0,
                level: 0.9
            })
        );
        assert_eq!(
            margin(&residuals[..4], &[], 0.9),
            Ok(Margin {
                low: -4.0,
                high: 4.0,
                level: 0.8
            })
        );
        assert_eq!(
            margin(&[], &[1.0, 3.0], 0.5),
            Ok(Margin {
                low: 1.5,
                high: 2.5,
                level: 0.5
            })
        );
        assert!(margin(&[], &[], 0.9).is_err() && margin(&[f64::NAN], &[], 0.9).is_err());
    }

    #[test]
    fn the_next_value_lies_inside_as_often_as_the_level_states() {
        let mut resampler = Resampler::from_seed(5);
        let mut inside = 0;
        for _ in 0..400 {
            let mut drawn: Vec<f64> = (0..400)
                .map(|at| normal_score((f64::from(at) + 0.5) / 400.0).exp())
                .collect();
            resampler.shuffle(&mut drawn);
            let found = margin(&drawn[1..=30], &[], 0.9).unwrap();
            inside += usize::from(found.low <= drawn[0] && drawn[0] <= found.high);
        }
        let (low, high) = share_interval(inside, 400, 0.99).unwrap();
        assert!(low < 0.94 && high > 0.9, "{inside}");
    }

    #[test]
    fn shares_have_the_intervals_of_the_tables() {
        let (low, high) = share_interval(8, 10, 0.95).unwrap();
        assert!(
            (low - 0.443_904_5).abs() < 1e-6 && (high - 0.974_789_3).abs() < 1e-6,
            "{low} {high}"
        );
        let (low, high) = share_interval(10, 10, 0.95).unwrap();
        assert!((low - 0.691_502_9).abs() < 1e-6 && high == 1.0, "{low}");
        assert!(share_interval(0, 0, 0.95).is_err());
    }
}
