//! Gain of one mapping over another, with its uncertainty.

use flowcast_program::parallel;
use flowcast_statistics::resampling::{normal_score, percentile_interval};

use super::{options::PlaceOptions, predictor::MappingPredictor, search::TimedMapping};
use flowcast::{Error, matters, may_vary};

/// Gains below this share count as none, however certain they are.
pub const SMALLEST_GAIN: f64 = 0.01;

/// Error of the predicted ratio of two mappings' times: root mean square of `ln(predicted / measured)` over 40 pairs of
/// mappings of ten programs in a lab (docs/evidence/placement.md).
const RATIO_ERROR: f64 = 0.09;

/// Share of the time that one mapping saves compared with another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MappingGain {
    /// Saved share: 0.24 for 76 s instead of 100 s.
    pub share: f64,
    /// Interval of the share. `None` if the values are counted and not predicted.
    pub interval: Option<(f64, f64)>,
}

impl MappingGain {
    /// Returns the gain of a value over another value in the same unit, without an interval. The gain is 0 if the other
    /// value is 0.
    pub fn new(value: f64, other: f64) -> MappingGain {
        MappingGain {
            share: 1.0 - ratio(value, other),
            interval: None,
        }
    }

    /// Returns `true` if the gain is at least [`SMALLEST_GAIN`].
    pub fn is_any(&self) -> bool {
        self.share >= SMALLEST_GAIN
    }

    /// Returns `true` if the interval includes no gain at all.
    pub fn is_unsure(&self) -> bool {
        self.interval.is_some_and(|(low, _)| low <= 0.0)
    }
}

/// Returns the share of the time of `other` that `best` saves. The interval combines two sources: `draws` networks, drawn
/// from the intervals of the network's parameters, with both mappings on each; and the error of predicted ratios that was
/// measured in a lab.
///
/// # Errors
/// A level outside (0, 1), parameters that cannot be drawn, and errors of the replay.
pub fn gain(
    predictor: &MappingPredictor<'_>,
    best: &TimedMapping,
    other: &TimedMapping,
    draws: usize,
    options: &PlaceOptions,
) -> Result<MappingGain, Error> {
    let PlaceOptions {
        seed,
        level,
        threads,
        ..
    } = *options;
    let network = predictor.network();
    let model = predictor.sharing_model()?;
    let predicted = ratio(best.time.as_nanos(), other.time.as_nanos());
    let mut logarithms = vec![0.0];
    if may_vary(network, model) {
        let networks = network.drawn(&|field: &str| matters(field, model), draws, seed)?;
        // A network that the model rejects contributes nothing to the interval.
        let drawn = parallel::map(&networks, threads, |network| -> Result<f64, Error> {
            let best = predictor.makespan_on(network, &best.node_of_rank)?;
            let other = predictor.makespan_on(network, &other.node_of_rank)?;
            Ok((ratio(best.as_nanos(), other.as_nanos()) / predicted).ln())
        });
        logarithms.extend(drawn.into_iter().flatten().filter(|one| one.is_finite()));
    }
    let (low, high) = percentile_interval(&logarithms, level)?;
    let of_model = RATIO_ERROR * normal_score(0.5 + level / 2.0);
    let [below, above] = [low.min(0.0), high.max(0.0)].map(|one: f64| of_model.hypot(one));
    Ok(MappingGain {
        share: 1.0 - predicted,
        interval: (predicted != 1.0).then_some((
            1.0 - predicted * above.exp(),
            1.0 - predicted * (-below).exp(),
        )),
    })
}

fn ratio(value: f64, other: f64) -> f64 {
    if other > 0.0 { value / other } else { 1.0 }
}
