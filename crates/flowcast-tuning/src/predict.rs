//! Predicted times of operations on a machine whose operations were measured.

use flowcast_network::measured_collectives::MeasuredCollectives;
use flowcast_statistics::resampling::normal_score;
use flowcast_units::Time;

use super::{
    residuals::{ResidualPlace, Residuals},
    step_times::{PlacedCase, seconds_once},
};

/// Predicted time of an operation, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectivePrediction {
    /// Median over iterations and runs.
    pub predicted: Time,
    /// Lower end of the interval.
    pub low: Time,
    /// Upper end of the interval.
    pub high: Time,
}

impl CollectivePrediction {
    /// Prediction with the median `seconds` whose logarithm has the standard deviation `deviation`.
    pub(super) fn new(seconds: f64, deviation: f64, level: f64) -> CollectivePrediction {
        let predicted = Time::from_seconds(seconds);
        let factor = (normal_score(0.5 + level / 2.0) * deviation).exp();
        CollectivePrediction {
            predicted,
            low: predicted * (1.0 / factor),
            high: predicted * factor,
        }
    }
}

/// Predicts the times of operations. A fraction `level` of the runs is expected within their intervals.
pub fn predict_collectives(
    measured: &MeasuredCollectives,
    cases: &[PlacedCase],
    level: f64,
    threads: usize,
) -> Vec<CollectivePrediction> {
    let seconds = seconds_once(cases, &measured.costs.costs, threads);
    let residuals = Residuals::from_measured(measured);
    let places: Vec<ResidualPlace> = cases
        .iter()
        .map(|placed| ResidualPlace::new(&placed.case))
        .collect();
    let expected = residuals.expected(&places);
    (0..)
        .zip(seconds)
        .map(|(at, seconds): (usize, f64)| {
            let deviation = residuals.deviation(&places, &expected, at);
            CollectivePrediction::new(seconds * expected.means[at].exp(), deviation, level)
        })
        .collect()
}
