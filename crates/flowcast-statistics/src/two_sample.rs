//! Test for differences between runs before and after a change, by many quantities at the same time.
//!
//! Each quantity is tested by Welch's t (B. L. Welch, "The Generalization of 'Student's' Problem when Several Different
//! Population Variances are Involved", 1947). Some of many tests succeed by chance, so they are corrected as a family (S.
//! Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979): the probability of any false alarm, a difference
//! that is reported as certain and does not exist, is at most one minus the level. This holds however the quantities depend
//! on one another.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{
    StatsError, check, check_level,
    interval::student_tail,
    sample::{mean, sorted_places, standard_deviation},
};

/// Random differences between runs of one version.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunNoise {
    /// Estimated from repetitions. Unknown if a version has only one run.
    Repetitions,
    /// Given standard deviation of a run, as a fraction of its time, above 0.
    Stated(f64),
    /// No differences: equal runs repeat exactly, and every difference is certain.
    Repeatable,
    /// No differences, because the runs are predictions.
    Predictions,
}

use RunNoise::*;

/// Test for differences between runs before and after a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DifferenceTest {
    /// Probability that there is no false alarm: no difference is reported as certain that does not exist. Above 0 and below
    /// 1.
    pub level: f64,
    /// Random differences between equal runs.
    pub noise: RunNoise,
}

impl Default for DifferenceTest {
    fn default() -> DifferenceTest {
        DifferenceTest {
            level: 0.95,
            noise: Repetitions,
        }
    }
}

/// Values of a quantity in the runs before and after the change.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoSamples {
    /// One value for each run before the change.
    pub before: Vec<f64>,
    /// One value for each run after the change.
    pub after: Vec<f64>,
}

impl DifferenceTest {
    /// `true` for each quantity that certainly differs.
    ///
    /// # Errors
    /// A quantity without runs, a value that is not finite, or a level outside (0, 1).
    pub fn certain_differences(&self, quantities: &[TwoSamples]) -> Result<Vec<bool>, StatsError> {
        check_level(self.level)?;
        let mut p_values = Vec::with_capacity(quantities.len());
        for quantity in quantities {
            p_values.push(self.p_value(quantity)?);
        }
        Ok(holm(&p_values, 1.0 - self.level))
    }

    /// Text that explains the certainty for this number of runs.
    pub fn describe(&self, before: usize, after: usize) -> String {
        let level = format!(
            "certain at {} % for all rows together",
            (self.level * 1000.0).round() / 10.0
        );
        match self.noise {
            Repeatable => {
                "runs are assumed to repeat exactly: every difference is certain".to_owned()
            }
            Predictions => "predictions repeat exactly: every difference is certain".to_owned(),
            Stated(noise) => format!(
                "equal runs are assumed to differ by {} %: {level}",
                noise * 100.0
            ),
            Repetitions if before < 2 || after < 2 => {
                format!(
                    "runs: {before} before, {after} after; nothing is certain without repetitions or --spread"
                )
            }
            Repetitions => {
                format!(
                    "{before} runs before and {after} after: medians; {level} (Welch's t, Holm's correction)"
                )
            }
        }
    }

    /// Probability of a difference of at least this size if there is none.
    fn p_value(&self, TwoSamples { before, after }: &TwoSamples) -> Result<f64, StatsError> {
        check("difference of runs", before, 1)?;
        check("difference of runs", after, 1)?;
        let difference = (mean(after)? - mean(before)?).abs();
        if difference == 0.0 {
            return Ok(1.0);
        }
        Ok(match self.noise {
            Repeatable | Predictions => 0.0,
            Repetitions if before.len() < 2 || after.len() < 2 => 1.0,
            Repetitions => {
                let variances = [squared_error(before)?, squared_error(after)?];
                let freedom =
                    |variance: f64, runs: usize| variance * variance / (runs as f64 - 1.0);
                let sum = variances[0] + variances[1];
                if sum == 0.0 {
                    return Ok(0.0);
                }
                let degrees = sum * sum
                    / (freedom(variances[0], before.len()) + freedom(variances[1], after.len()));
                2.0 * student_tail(difference / sum.sqrt(), degrees)
            }
            Stated(noise) => {
                let error = |mean: f64, runs: usize| (noise * mean).powi(2) / runs as f64;
                let sum = error(mean(before)?, before.len()) + error(mean(after)?, after.len());
                2.0 * Normal::standard().sf(difference / sum.sqrt())
            }
        })
    }
}

/// Squared standard error of a mean.
fn squared_error(values: &[f64]) -> Result<f64, StatsError> {
    Ok(standard_deviation(values)?.powi(2) / values.len() as f64)
}

/// `true` for each p-value that is significant by Holm's correction: the smallest is compared with `mistake / n`, the next
/// with `mistake / (n - 1)`, and so on to the first that fails.
fn holm(p_values: &[f64], mistake: f64) -> Vec<bool> {
    let mut certain = vec![false; p_values.len()];
    for (rank, index) in sorted_places(p_values).into_iter().enumerate() {
        if p_values[index] > mistake / (p_values.len() - rank) as f64 {
            break;
        }
        certain[index] = true;
    }
    certain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resampling::{Resampler, normal_score};

    fn certain(noise: RunNoise, before: &[f64], after: &[f64]) -> bool {
        let quantity = TwoSamples {
            before: before.to_vec(),
            after: after.to_vec(),
        };
        DifferenceTest { level: 0.95, noise }
            .certain_differences(&[quantity])
            .unwrap()[0]
    }

    #[test]
    fn single_runs_differ_certainly_only_by_more_than_the_stated_spread() {
        assert!(!certain(RunNoise::Repetitions, &[1.0], &[1.5]));
        assert!(!certain(RunNoise::Repetitions, &[1.0, 1.1, 1.2], &[1.5]));
        assert!(certain(RunNoise::Repeatable, &[1.0], &[1.001]));
        assert!(!certain(RunNoise::Repeatable, &[1.0], &[1.0]));
        // A difference of 8 % is 2.7 standard errors at 2 % for each run, and 1.8 at 3 %.
        assert!(certain(RunNoise::Stated(0.02), &[1.0], &[1.08]));
        assert!(!certain(RunNoise::Stated(0.03), &[1.0], &[1.08]));
    }

    /// t = 1.69064 with 4.08374 degrees of freedom. The density of Student's t beyond it on both sides sums to 0.16470.
    #[test]
    fn the_p_value_is_welchs() {
        let quantity = TwoSamples {
            before: vec![1.0, 2.0, 3.0, 4.0],
            after: vec![2.0, 4.0, 6.0, 9.0],
        };
        let p_value = DifferenceTest::default().p_value(&quantity).unwrap();
        assert!((p_value - 0.16470).abs() < 1e-5, "{p_value}");
    }

    #[test]
    fn holm_gives_each_further_test_a_larger_share() {
        assert_eq!(
            holm(&[0.02, 0.9, 0.01, 0.03], 0.05),
            [false, false, true, false]
        );
        assert_eq!(
            holm(&[0.012, 0.9, 0.01, 0.024], 0.05),
            [true, false, true, true]
        );
    }

    /// About 20 of 400 comparisons of equal runs by 20 quantities at 95 % show any certain difference.
    #[test]
    fn equal_runs_differ_certainly_no_more_often_than_the_level_allows() {
        let mut random = Resampler::from_seed(1);
        let mut draw = || {
            let mut scores: Vec<f64> = (0..100)
                .map(|at| normal_score((f64::from(at) + 0.5) / 100.0))
                .collect();
            random.shuffle(&mut scores);
            scores
                .into_iter()
                .take(5)
                .map(|score| 10.0 + score)
                .collect::<Vec<f64>>()
        };
        let test = DifferenceTest::default();
        let alarms = (0..400).filter(|_| {
            let quantities: Vec<TwoSamples> = (0..20)
                .map(|_| TwoSamples {
                    before: draw(),
                    after: draw(),
                })
                .collect();
            test.certain_differences(&quantities)
                .unwrap()
                .contains(&true)
        });
        assert!(alarms.count() <= 30);
    }
}
