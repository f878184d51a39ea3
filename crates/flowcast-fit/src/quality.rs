//! Quality of measured round trips, point by point, as Hoefler and Belli require of every report ("Scientific Benchmarking
//! of Parallel Computing Systems", 2015): the number of samples, their distribution, interval and outliers, the warm-up at
//! the start, and the dependence of each sample on the previous one.

use flowcast_statistics::{
    StatsError,
    interval::median_interval,
    sample::{correlation, mean, quantile},
};
use flowcast_units::Time;

use crate::{
    prtt::PrttPoint,
    samples::{PrttSamples, nanos},
};

/// Tukey's fences: distance from the quartiles in multiples of the interquartile range.
const FENCE: f64 = 1.5;
/// Minimum number of samples that can show a warm-up or a dependence.
const FEW: usize = 10;

/// One point of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// Number, size and delay of the messages of its round trips.
    pub point: PrttPoint,
    /// Times in the order of measurement.
    pub times: Vec<Time>,
    /// Minimum, lower quartile, median, upper quartile, maximum.
    pub five: [Time; 5],
    /// Arithmetic mean, including outliers.
    pub mean: Time,
    /// Order statistics that contain the median at the level. `None` if there are too few samples.
    pub interval: Option<(Time, Time)>,
    /// Number of samples outside Tukey's fences.
    pub outliers: usize,
    /// Number of initial samples whose removal minimizes the standard error of the mean, at most half of the samples (MSER;
    /// White, "An effective truncation heuristic for bias reduction in simulation output", 1997).
    pub warm_up: usize,
    /// Correlation of each sample with the previous one, if it differs from 0 at a confidence level of about 95 %.
    pub dependence: Option<f64>,
}

/// Determines the quality of every point.
///
/// # Errors
/// A level outside (0, 1).
pub fn qualities(samples: &PrttSamples, level: f64) -> Result<Vec<Quality>, StatsError> {
    samples
        .points()
        .map(|(point, times)| quality(point, times, level))
        .collect()
}

fn quality(point: PrttPoint, times: &[Time], level: f64) -> Result<Quality, StatsError> {
    let nanos = nanos(times);
    let mut five = [Time::ZERO; 5];
    for (own, share) in five.iter_mut().zip([0.0, 0.25, 0.5, 0.75, 1.0]) {
        *own = Time::from_nanos(quantile(&nanos, share)?);
    }
    let reach = (five[3] - five[1]) * FENCE;
    let interval = median_interval(&nanos, level)?;
    Ok(Quality {
        point,
        times: times.to_vec(),
        five,
        mean: Time::from_nanos(mean(&nanos)?),
        interval: interval.map(|found| (Time::from_nanos(found.low), Time::from_nanos(found.high))),
        outliers: times
            .iter()
            .filter(|time: &&Time| **time < five[1] - reach || **time > five[3] + reach)
            .count(),
        warm_up: warm_up(&nanos),
        dependence: dependence(&nanos),
    })
}

/// Returns the number of initial samples whose removal minimizes the squared standard error of the mean of the remaining
/// samples.
fn warm_up(values: &[f64]) -> usize {
    if values.len() < FEW {
        return 0;
    }
    // Sums of all remaining samples, built up from the end.
    let (mut sum, mut squares) = (0.0, 0.0);
    let (mut best, mut least) = (0, f64::INFINITY);
    let about = values[values.len() - 1];
    for (at, value) in values.iter().enumerate().rev() {
        sum += value - about;
        squares += (value - about).powi(2);
        let left = (values.len() - at) as f64;
        let error = (squares - sum * sum / left).max(0.0) / (left * left);
        if at <= values.len() / 2 && error <= least {
            (best, least) = (at, error);
        }
    }
    best
}

fn dependence(values: &[f64]) -> Option<f64> {
    let found = correlation(values.get(1..)?, &values[..values.len() - 1])
        .filter(|_| values.len() >= FEW)?;
    (found.abs() > 2.0 / (values.len() as f64).sqrt()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_statistics::resampling::Resampler;
    use flowcast_units::Bytes;

    fn of(micros: &[f64]) -> Quality {
        let mut samples = PrttSamples::default();
        micros.iter().for_each(|time| {
            samples.push(PrttPoint::round_trip(Bytes(1)), Time::from_micros(*time))
        });
        qualities(&samples, 0.95).unwrap().remove(0)
    }

    #[test]
    fn quartiles_outliers_and_interval_match_the_samples() {
        let quality = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 100.0]);
        assert_eq!(
            quality.five.map(|time| time.as_micros()),
            [1.0, 3.0, 5.0, 7.0, 100.0]
        );
        assert_eq!((quality.outliers, quality.warm_up), (1, 0));
        // The second and the eighth sample contain the median with 96 %.
        assert_eq!(
            quality.interval,
            Some((Time::from_micros(2.0), Time::from_micros(8.0)))
        );
        assert_eq!(of(&[3.0]).interval, None);
    }

    #[test]
    fn slow_first_samples_are_a_warm_up_and_a_drift_is_a_dependence() {
        let mut random = Resampler::from_seed(1);
        let mut even: Vec<f64> = (0..100).map(|_| 50.0 + random.share()).collect();
        let quality = of(&even);
        assert!(
            quality.warm_up < 50 && quality.dependence.is_none(),
            "{quality:?}"
        );
        even[..7].iter_mut().for_each(|time| *time += 40.0);
        assert!((7..50).contains(&of(&even).warm_up));
        let drift: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(of(&drift).dependence.is_some_and(|found| found > 0.99));
    }
}
