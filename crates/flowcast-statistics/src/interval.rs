//! Confidence intervals, and rules for stopping a measurement.
//!
//! For a mean: Student's t, `mean ± t · sd / sqrt(n)`, with the rule "repeat until the half-width is at most 2.5 % of the
//! mean". For a median: the order statistics between which the true median lies with the required probability. They assume
//! nothing about the distribution, because each value falls below the median with probability 1/2.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::{
    StatsError, check, check_level,
    sample::{mean, standard_deviation},
};

/// A mean and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// Arithmetic mean of the sample, the centre of the interval.
    pub mean: f64,
    /// Standard deviation, with n - 1 in the denominator.
    pub standard_deviation: f64,
    /// Half the width of the interval.
    pub half_width: f64,
}

impl MeanInterval {
    /// Half-width as a share of the mean. Infinite for a mean of 0 with any spread.
    pub fn relative_half_width(&self) -> f64 {
        relative(self.half_width, self.mean)
    }
}

/// Interval of the mean at `level` (such as 0.95), by Student's t with n - 1 degrees of freedom.
///
/// # Errors
/// Fewer than two values, a value that is not finite, or a level outside (0, 1).
pub fn mean_interval(values: &[f64], level: f64) -> Result<MeanInterval, StatsError> {
    check("interval of the mean", values, 2)?;
    check_level(level)?;
    let count = values.len() as f64;
    let standard_deviation = standard_deviation(values)?;
    let half_width = student_score(level, count - 1.0) * standard_deviation / count.sqrt();
    Ok(MeanInterval {
        mean: mean(values)?,
        standard_deviation,
        half_width,
    })
}

/// Number of standard errors on each side that contain the share `level` of Student's t. The number of degrees of freedom
/// must be above 0.
pub fn student_score(level: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are above 0");
    student.inverse_cdf(f64::midpoint(1.0, level))
}

/// Probability that Student's t exceeds `score`. The number of degrees of freedom must be above 0.
pub fn student_tail(score: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom)
        .expect("degrees of freedom are above 0")
        .sf(score)
}

/// Rule to repeat a measurement until its mean is precise enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppingRule {
    /// Confidence level of the interval.
    pub level: f64,
    /// Stop if the half-width is at most this share of the mean.
    pub relative_half_width: f64,
    /// Minimum number of repetitions.
    pub min_repetitions: usize,
    /// Maximum number of repetitions.
    pub max_repetitions: usize,
}

impl Default for StoppingRule {
    fn default() -> StoppingRule {
        StoppingRule {
            level: 0.95,
            relative_half_width: 0.025,
            min_repetitions: 5,
            max_repetitions: 1000,
        }
    }
}

/// Decision of a stopping rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Measure again: there are too few samples, or the interval is too wide.
    Continue,
    /// The interval is narrow enough.
    Precise(MeanInterval),
    /// The maximum number of repetitions is reached, and the interval is still too wide.
    GaveUp(MeanInterval),
}

impl StoppingRule {
    /// Decides from all samples so far.
    ///
    /// # Errors
    /// A value that is not finite, or a level outside (0, 1).
    pub fn decide(&self, samples: &[f64]) -> Result<Decision, StatsError> {
        if samples.len() < self.min_repetitions.max(2) {
            return Ok(Decision::Continue);
        }
        let interval = mean_interval(samples, self.level)?;
        Ok(
            if interval.relative_half_width() <= self.relative_half_width {
                Decision::Precise(interval)
            } else if samples.len() >= self.max_repetitions {
                Decision::GaveUp(interval)
            } else {
                Decision::Continue
            },
        )
    }
}

/// A median, with the order statistics around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// Median of the sample; the interval need not be symmetric about it.
    pub median: f64,
    /// Lower end of the interval, a value of the sample.
    pub low: f64,
    /// Upper end of the interval, a value of the sample.
    pub high: f64,
}

impl MedianInterval {
    /// Half the width as a share of the median.
    pub fn relative_half_width(&self) -> f64 {
        relative((self.high - self.low) / 2.0, self.median)
    }
}

/// Interval of the median with a probability of at least `level`. `None` if the sample is too small for one (below 6 values
/// for 0.95).
///
/// # Errors
/// No value, one that is not finite, or a level outside (0, 1).
pub fn median_interval(values: &[f64], level: f64) -> Result<Option<MedianInterval>, StatsError> {
    check("interval of the median", values, 1)?;
    check_level(level)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    Ok(rank_from_the_ends(count, level).map(|rank| MedianInterval {
        median: super::sample::quantile_of_sorted(&sorted, 0.5),
        low: sorted[rank - 1],
        high: sorted[count - rank],
    }))
}

/// Largest k with 2 · P(Binomial(n, 1/2) < k) <= 1 - level. Uses the normal approximation if the exact sum would underflow.
fn rank_from_the_ends(count: usize, level: f64) -> Option<usize> {
    let tail = (1.0 - level) / 2.0;
    let rank = if count > 500 {
        let z = -Normal::standard().inverse_cdf(tail);
        (count as f64 / 2.0 - z * (count as f64).sqrt() / 2.0).floor() as usize
    } else {
        let mut probability = 0.5f64.powi(count as i32);
        let mut below = probability;
        let mut rank = 0;
        while below <= tail && rank < count {
            rank += 1;
            probability *= (count - rank + 1) as f64 / rank as f64;
            below += probability;
        }
        rank
    };
    (rank >= 1).then_some(rank)
}

fn relative(half_width: f64, centre: f64) -> f64 {
    if half_width == 0.0 {
        0.0
    } else {
        half_width / centre.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIVE: [f64; 5] = [10.0, 10.2, 9.9, 10.1, 10.0];

    #[test]
    fn the_interval_of_five_values_uses_the_t_of_four_degrees_of_freedom() {
        let interval = mean_interval(&FIVE, 0.95).unwrap();
        assert!(
            (interval.half_width / 0.141_571_477_698_227 - 1.0).abs() < 1e-9,
            "{interval:?}"
        );
        assert!((interval.standard_deviation / 0.114_017_542_509_913 - 1.0).abs() < 1e-9);
        assert!((interval.relative_half_width() / 0.014_100_744_790_66 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn measuring_stops_when_the_interval_is_narrow() {
        let rule = StoppingRule::default();
        assert!(matches!(rule.decide(&FIVE), Ok(Decision::Precise(_))));
        assert_eq!(rule.decide(&FIVE[..4]), Ok(Decision::Continue));
        let strict = StoppingRule {
            relative_half_width: 0.01,
            ..rule
        };
        assert_eq!(strict.decide(&FIVE), Ok(Decision::Continue));
        let short = StoppingRule {
            max_repetitions: 5,
            ..strict
        };
        assert!(matches!(short.decide(&FIVE), Ok(Decision::GaveUp(_))));
    }

    #[test]
    fn the_medians_interval_has_the_ranks_of_the_binomial_table() {
        // Ranks for 95 % from the tables of the sign test.
        for (count, rank) in [
            (5, None),
            (6, Some(1)),
            (10, Some(2)),
            (20, Some(6)),
            (50, Some(18)),
            (100, Some(40)),
        ] {
            assert_eq!(rank_from_the_ends(count, 0.95), rank, "{count}");
        }
    }

    #[test]
    fn exact_ranks_and_the_normal_limit_meet() {
        let exact = rank_from_the_ends(500, 0.95).unwrap();
        let limit = rank_from_the_ends(501, 0.95).unwrap();
        assert!(exact.abs_diff(limit) <= 1, "{exact} {limit}");
    }

    proptest! {
        #[test]
        fn the_interval_of_the_median_holds_the_median(values in prop::collection::vec(0.0..1e6f64, 6..700)) {
            let interval = median_interval(&values, 0.95).unwrap().unwrap();
            prop_assert!(interval.low <= interval.median && interval.median <= interval.high);
        }

        #[test]
        fn more_confidence_needs_a_wider_interval(values in prop::collection::vec(0.0..1e6f64, 3..50)) {
            let narrow = mean_interval(&values, 0.9).unwrap();
            let wide = mean_interval(&values, 0.99).unwrap();
            prop_assert!(narrow.half_width <= wide.half_width);
        }
    }
}
