//! Reproducible randomness: drawing with replacement, shuffling, and the percentile interval of the bootstrap.
//!
//! A bootstrap computes the estimate repeatedly from samples that are drawn with replacement from the sample. The middle 95
//! % of these estimates are the interval (Efron's percentile method).

use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;
use statrs::distribution::{ContinuousCDF, Normal};

use super::{StatsError, check, check_level, sample::quantile_of_sorted};

/// Source of random choices. Equal seeds give equal choices on every machine.
#[derive(Debug, Clone)]
pub struct Resampler(Pcg64);

impl Resampler {
    /// Creates a generator. Equal seeds draw equal samples on every machine.
    pub fn from_seed(seed: u64) -> Resampler {
        Resampler(Pcg64::seed_from_u64(seed))
    }

    /// Fills `drawn` with as many values as `values` has, drawn with replacement. `values` must not be empty.
    pub fn draw_into(&mut self, values: &[f64], drawn: &mut Vec<f64>) {
        drawn.clear();
        // A range of u32 instead of usize, so that 32-bit machines draw the same.
        let count = u32::try_from(values.len()).expect("samples fit in memory many times over");
        drawn.extend((0..count).map(|_| values[self.0.random_range(0..count) as usize]));
    }

    /// Draws `count` indices below `count`, with replacement. `count` must not be 0.
    pub fn draw_places(&mut self, count: usize) -> Vec<usize> {
        // A range of u32 instead of usize, so that 32-bit machines draw the same.
        let most = u32::try_from(count).expect("samples fit in memory many times over");
        (0..most)
            .map(|_| self.0.random_range(0..most) as usize)
            .collect()
    }

    /// Uniformly distributed number from 0 to below 1.
    pub fn share(&mut self) -> f64 {
        self.0.random()
    }

    /// Shuffles `items` in place; all orders are equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        items.shuffle(&mut self.0);
    }
}

/// Quantile of the standard normal distribution: the share `share` of the distribution lies below it. `share` lies in (0,
/// 1).
pub fn normal_score(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

/// Share of a normal distribution that lies below the mean plus `score` standard deviations.
pub fn normal_share(score: f64) -> f64 {
    Normal::standard().cdf(score)
}

/// Independent normal scores, indexed by draw, then by variable. Those of a variable are a Latin hypercube (McKay, Beckman and
/// Conover): each draw is in another of `draws` equally probable intervals.
pub fn stratified_scores(variables: usize, draws: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut resampler = Resampler::from_seed(seed);
    let strata = (0..draws).map(|at| normal_score((at as f64 + 0.5) / draws as f64));
    let of_strata: Vec<f64> = strata.collect();
    let mut all = vec![Vec::with_capacity(variables); draws];
    for _ in 0..variables {
        let mut scores = of_strata.clone();
        resampler.shuffle(&mut scores);
        all.iter_mut()
            .zip(scores)
            .for_each(|(draw, score)| draw.push(score));
    }
    all
}

/// Interval that contains the share `level` of the estimates, with equal shares below and above it.
///
/// # Errors
/// No estimate, one that is not finite, or a level outside (0, 1).
pub fn percentile_interval(estimates: &[f64], level: f64) -> Result<(f64, f64), StatsError> {
    check("percentile interval", estimates, 1)?;
    check_level(level)?;
    let mut sorted = estimates.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    Ok((
        quantile_of_sorted(&sorted, tail),
        quantile_of_sorted(&sorted, 1.0 - tail),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::mean_interval;

    /// Percentile interval of `estimate` over `replicates` resamplings of `values`.
    fn bootstrap_interval(
        values: &[f64],
        estimate: impl Fn(&[f64]) -> f64,
        replicates: usize,
        level: f64,
        seed: u64,
    ) -> Result<(f64, f64), StatsError> {
        check("bootstrap", values, 1)?;
        let mut resampler = Resampler::from_seed(seed);
        let mut drawn = Vec::with_capacity(values.len());
        let mut one = || {
            resampler.draw_into(values, &mut drawn);
            estimate(&drawn)
        };
        let estimates: Vec<f64> = (0..replicates).map(|_| one()).collect();
        percentile_interval(&estimates, level)
    }

    fn mean_of(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn equal_seeds_give_equal_intervals() {
        let values: Vec<f64> = (0..30).map(f64::from).collect();
        let interval = |seed| bootstrap_interval(&values, mean_of, 200, 0.95, seed).unwrap();
        assert_eq!(interval(7), interval(7));
        assert_ne!(interval(7), interval(8));
    }

    #[test]
    fn the_bootstrap_of_a_mean_is_near_students_interval() {
        let values: Vec<f64> = (0..200).map(|index| f64::from(index * 37 % 100)).collect();
        let (low, high) = bootstrap_interval(&values, mean_of, 4000, 0.95, 1).unwrap();
        let student = mean_interval(&values, 0.95).unwrap();
        assert!(
            (low - (student.mean - student.half_width)).abs() < 0.5,
            "{low} {student:?}"
        );
        assert!(
            (high - (student.mean + student.half_width)).abs() < 0.5,
            "{high} {student:?}"
        );
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Resampler::from_seed(3).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn the_percentile_interval_leaves_out_both_tails() {
        let estimates: Vec<f64> = (0..=1000).map(f64::from).collect();
        assert_eq!(percentile_interval(&estimates, 0.5), Ok((250.0, 750.0)));
        assert!(percentile_interval(&estimates, 1.0).is_err());
    }
}
