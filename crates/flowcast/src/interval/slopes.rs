//! Effect of uncertain parameters on a predicted time, at the cost of at most two replays.
//!
//! The logarithm of the time is piecewise linear in the normal scores of the uncertain fields: one slope below the file's
//! values, one above. Without contention, one walk over the program has a lane for each end of each field. With contention,
//! this walk gives the direction in which the time varies most and the proportion of its two sides, and the model replays
//! one end of this direction. Fields that the walk does not read, such as those of the sharing model, are a second
//! direction.

use flowcast_network::{network::Network, network_file::intervals::Variation};
use flowcast_replay::{
    SimulateError,
    sweep::{self, WhatIf},
};
use flowcast_statistics::resampling::stratified_scores;
use flowcast_units::Time;

use crate::{Error, PreparedProgram};

/// Normal score of the replayed ends: 80 % of a distribution lies between them.
pub(super) const REACH: f64 = 1.281_551_565_544_6;
/// Number of scores that represent the distribution of a time.
const DRAWS: usize = 64;

/// Slopes of the logarithm of a time along a normal score, below and above 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoreSlope {
    below: f64,
    above: f64,
}

impl ScoreSlope {
    /// Slope with equal sides, from the relative time at the upper end.
    pub(super) fn from_end(ratio: f64) -> ScoreSlope {
        let slope = logarithm(ratio) / REACH;
        ScoreSlope {
            below: slope,
            above: slope,
        }
    }

    /// Slope from the relative times at both ends.
    fn from_ends([below, above]: [f64; 2]) -> ScoreSlope {
        ScoreSlope {
            below: -logarithm(below) / REACH,
            above: logarithm(above) / REACH,
        }
    }
}

/// Logarithm of a relative time; 0 if the times are 0.
fn logarithm(ratio: f64) -> f64 {
    let is_number = ratio > 0.0 && ratio.is_finite();
    if is_number { ratio.ln() } else { 0.0 }
}

/// Logarithms of times, relative to the predicted one, if the scores along these slopes are independent.
pub(super) fn spread(slopes: &[ScoreSlope], seed: u64) -> Vec<f64> {
    let draws = stratified_scores(slopes.len(), DRAWS, seed).into_iter();
    let sums = draws.map(|scores| {
        let along = scores.iter().zip(slopes);
        along
            .map(|(score, of)| score * if *score < 0.0 { of.below } else { of.above })
            .sum()
    });
    sums.collect()
}

/// Slopes of the time without contention along each field. The pieces of a program follow each other, each as often as its
/// number says. `predicted` is the time without contention on the network itself; if it is unknown, the walk has one more
/// lane.
pub(super) fn of_walk(
    pieces: &[(&PreparedProgram<'_>, u64)],
    variation: &Variation<'_>,
    predicted: Option<Time>,
) -> Result<Vec<ScoreSlope>, Error> {
    let fields = variation.fields().count();
    let mut networks = Vec::new();
    for field in 0..fields {
        for end in [-REACH, REACH] {
            let mut scores = vec![0.0; fields];
            scores[field] = end;
            networks.push(variation.at(&scores)?);
        }
    }
    if predicted.is_none() {
        networks.push(variation.at(&vec![0.0; fields])?);
    }
    let mut times = vec![0.0; networks.len()];
    for (piece, count) in pieces {
        let makespans = makespans_alone(piece, &networks)?;
        let whole = makespans
            .iter()
            .map(|time| time.as_seconds() * *count as f64);
        times
            .iter_mut()
            .zip(whole)
            .for_each(|(sum, time)| *sum += time);
    }
    let own = predicted.map_or(times[times.len() - 1], Time::as_seconds);
    let ends = times.chunks_exact(2).take(fields);
    Ok(ends
        .map(|ends| ScoreSlope::from_ends([ends[0] / own, ends[1] / own]))
        .collect())
}

/// Times of a program on many networks without contention, from one walk.
fn makespans_alone(
    program: &PreparedProgram<'_>,
    networks: &[Network],
) -> Result<Vec<Time>, SimulateError> {
    let what_ifs: Vec<WhatIf> = networks
        .iter()
        .map(|network: &Network| {
            let placement = program.placement.on(&network.machine);
            WhatIf::placed(network.clone(), placement, program.rendezvous)
        })
        .collect();
    let outcomes = sweep::run(program.program(), &what_ifs)?;
    Ok(outcomes.iter().map(|outcome| outcome.makespan()).collect())
}

/// Slopes with contention along at most two directions, from the slopes without. `replay` returns the relative times on the
/// networks, and `None` for a network that the model rejects, for which the walk stands in.
pub(super) fn of_replays(
    alone: &[ScoreSlope],
    variation: &Variation<'_>,
    replay: impl FnOnce(&[Network]) -> Result<Vec<Option<f64>>, Error>,
) -> Result<(Vec<ScoreSlope>, Vec<Option<f64>>), Error> {
    let mut directions = vec![
        alone
            .iter()
            .map(|of| f64::midpoint(of.below, of.above))
            .collect::<Vec<f64>>(),
        alone
            .iter()
            .map(|of| f64::from(u8::from(of.below == 0.0 && of.above == 0.0)))
            .collect(),
    ];
    directions.retain(|direction| direction.iter().any(|part| *part != 0.0));
    if directions.is_empty() {
        // Nothing depends on the fields.
        return Ok((vec![ScoreSlope::from_end(1.0)], Vec::new()));
    }
    let mut networks = Vec::new();
    for direction in &mut directions {
        let length = direction.iter().map(|part| part * part).sum::<f64>().sqrt();
        direction
            .iter_mut()
            .for_each(|part| *part *= REACH / length);
        networks.push(variation.at(direction)?);
    }
    let times = replay(&networks)?;
    let slopes = directions.iter().zip(&times).map(|(direction, time)| {
        let [mut below, mut above] = [0.0; 2];
        for (part, of) in direction.iter().zip(alone) {
            below += part * if *part < 0.0 { of.above } else { of.below };
            above += part * if *part < 0.0 { of.below } else { of.above };
        }
        let share = if above == 0.0 { 1.0 } else { below / above };
        let above = time.map_or(above, logarithm) / REACH;
        ScoreSlope {
            below: above * share,
            above,
        }
    });
    Ok((slopes.collect(), times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_statistics::sample::quantile;

    #[test]
    fn the_spread_has_the_slopes_of_both_sides_and_adds_independent_directions() {
        let one = ScoreSlope::from_ends([0.9, 1.3]);
        let spread_of_one = spread(&[one], 1);
        assert_eq!(spread_of_one.len(), DRAWS);
        let at = |share: f64, of: &[f64]| quantile(of, share).unwrap().exp();
        assert!((at(0.1, &spread_of_one) - 0.9).abs() < 0.005);
        assert!((at(0.9, &spread_of_one) - 1.3).abs() < 0.02);
        let two = ScoreSlope::from_end(1.1);
        let both = spread(&[two, two], 1);
        let variance = both.iter().map(|of| of * of).sum::<f64>() / DRAWS as f64;
        let expected = 2.0 * (1.1f64.ln() / REACH).powi(2);
        assert!(
            (variance / expected - 1.0).abs() < 0.25,
            "{variance} {expected}"
        );
        assert_eq!(spread(&[], 1), [0.0; DRAWS]);
    }
}
