//! What a mapping gains over another, and how sure that is.

use flowcast_model::stats::resampling::percentile_interval;
use flowcast_trace::parallel;
use flowcast_units::{Node, Time};

use super::predictor::MappingPredictor;
use crate::{
    Error,
    interval::{DRAWS_ONE_BY_ONE, matters, may_vary},
};

/// Gains below this are none, however sure.
pub const SMALLEST_GAIN: f64 = 0.01;

/// What one mapping saves of the time of another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MappingGain {
    /// As a share: 0.24 for 76 s in place of 100 s.
    pub share: f64,
    /// Where it lies on networks drawn from the intervals of the network's parameters, both mappings on each; none where the
    /// file has no intervals.
    pub interval: Option<(f64, f64)>,
}

impl MappingGain {
    /// Without an interval.
    pub fn new(time: f64, other: f64) -> MappingGain {
        let share = if other > 0.0 { 1.0 - time / other } else { 0.0 };
        MappingGain {
            share,
            interval: None,
        }
    }

    /// Whether it is worth anything: at least [`SMALLEST_GAIN`], and more than nothing on nearly all networks that are as likely.
    pub fn is_any(&self) -> bool {
        self.share >= SMALLEST_GAIN && self.interval.is_none_or(|(low, _)| low > 0.0)
    }
}

/// What `mapping` saves of the time of `other`, with the interval of this level.
///
/// # Errors
/// A level outside (0, 1), parameters that cannot be drawn, and those of the replay.
pub fn gain(
    predictor: &MappingPredictor<'_>,
    mapping: &[Node],
    other: &[Node],
    level: f64,
    seed: u64,
    threads: usize,
) -> Result<MappingGain, Error> {
    let network = predictor.network();
    let model = predictor.sharing_model()?;
    let times = [mapping, other].map(|mapping| predictor.makespan(mapping));
    let [time, other_time] = times;
    let [time, other_time] = [time?, other_time?].map(Time::as_nanos);
    let plain = MappingGain::new(time, other_time);
    if !may_vary(network, model) {
        return Ok(plain);
    }
    let (draws, _) = DRAWS_ONE_BY_ONE;
    let networks = network.drawn(&|field: &str| matters(field, model), draws, seed)?;
    let shares = parallel::map(&networks, threads, |network| -> Result<f64, Error> {
        let time = predictor.makespan_on(network, mapping)?;
        let other = predictor.makespan_on(network, other)?;
        Ok(MappingGain::new(time.as_nanos(), other.as_nanos()).share)
    });
    // A network that the model refuses says nothing of the gain.
    let shares: Vec<f64> = shares.into_iter().flatten().collect();
    let interval = match shares[..] {
        [] => None,
        _ => {
            let (low, high) = percentile_interval(&shares, level)?;
            Some((low.min(plain.share), high.max(plain.share)))
        }
    };
    Ok(MappingGain { interval, ..plain })
}
