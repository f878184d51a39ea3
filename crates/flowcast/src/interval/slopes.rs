//! Effect of uncertain parameters on a predicted time, at the cost of at most two replays.
//!
//! The logarithm of the time is piecewise linear in the normal scores of the uncertain fields: one slope below the file's
//! values, one above. Without contention, one walk over the program has a lane for each end of each field. With contention,
//! this walk gives the direction in which the time varies most and the proportion of its two sides, and the model replays
//! one end of this direction. Fields that the walk does not read, such as those of the sharing model, are a second
//! direction.

use flowcast_network::{network::Network, network_file::intervals::Variation};
use flowcast_program::parallel;
use flowcast_replay::{
    SimulateError,
    outcome::Outcome,
    sweep::{self, WhatIf},
};
use flowcast_statistics::{linear_fit::product, resampling::stratified_scores};
use flowcast_units::Time;

use super::IntervalOptions;
use crate::{Error, PreparedProgram};

/// Normal score of the replayed ends: 80 % of a distribution lies between them.
const REACH: f64 = 1.281_551_565_544_6;
/// Number of scores that represent the distribution of a time.
const DRAWS: usize = 64;

/// Dependence of a predicted time on the uncertain fields of a network.
#[derive(Debug, Default)]
pub(super) struct Slopes {
    /// Slopes along independent directions.
    each: Vec<ScoreSlope>,
    /// Number of networks that the model rejected.
    pub(super) rejected: usize,
    /// Origin of the slopes, such as `2 replays`.
    pub(super) source: String,
}

/// Slopes of the logarithm of a time along a normal score, below and above 0.
#[derive(Debug, Clone, Copy, Default)]
struct ScoreSlope {
    below: f64,
    above: f64,
}

impl Slopes {
    /// Slopes along each field of the time without contention. The pieces of a program follow each other, each as often as
    /// its number says. `predicted` is their time on the network itself; if it is unknown, the walk has one more lane.
    pub(super) fn of_walk(
        pieces: &[(&PreparedProgram<'_>, u64)],
        variation: &Variation<'_>,
        predicted: Option<Time>,
    ) -> Result<Slopes, Error> {
        let mut networks = Vec::new();
        for field in 0..variation.fields() {
            networks.push(variation.along(field, -REACH)?);
            networks.push(variation.along(field, REACH)?);
        }
        if predicted.is_none() {
            networks.push(variation.at(&[])?);
        }
        let mut times = vec![0.0; networks.len()];
        for (piece, count) in pieces {
            let makespans = makespans_alone(piece, &networks)?;
            for (time, makespan) in times.iter_mut().zip(makespans) {
                *time += makespan.as_seconds() * *count as f64;
            }
        }
        let own = predicted.map_or_else(|| times[times.len() - 1], Time::as_seconds);
        let ends = times.chunks_exact(2).take(variation.fields());
        Ok(Slopes {
            each: ends
                .map(|ends| ScoreSlope {
                    below: -logarithm(ends[0] / own) / REACH,
                    above: logarithm(ends[1] / own) / REACH,
                })
                .collect(),
            rejected: 0,
            source: "a walk".to_owned(),
        })
    }

    /// Slopes along each field with equal sides, from the relative times on the networks of [`upper_ends`]; `None` for a
    /// network that the model rejects. `what` is a prediction on one of them.
    pub(super) fn of_fields(times: &[Option<f64>], what: &str) -> Slopes {
        let slopes = times.iter().map(|time| {
            let slope = logarithm(time.unwrap_or(1.0)) / REACH;
            ScoreSlope {
                below: slope,
                above: slope,
            }
        });
        Slopes::new(slopes.collect(), times, what)
    }

    /// Slopes with contention along at most two directions. `replay` returns relative times as for [`Slopes::of_fields`].
    /// The walk stands in for a replay that the model rejects.
    pub(super) fn with_contention(
        self,
        variation: &Variation<'_>,
        replay: impl FnOnce(&[Network]) -> Result<Vec<Option<f64>>, Error>,
    ) -> Result<Slopes, Error> {
        let alone = &self.each;
        let mut directions: [Vec<f64>; 2] = [
            alone
                .iter()
                .map(|of| f64::midpoint(of.below, of.above))
                .collect(),
            alone
                .iter()
                .map(|of| f64::from(of.below == 0.0 && of.above == 0.0))
                .collect(),
        ];
        let mut networks = Vec::new();
        for direction in &mut directions {
            let length = product(direction, direction).sqrt();
            if length > 0.0 {
                direction
                    .iter_mut()
                    .for_each(|part| *part *= REACH / length);
                networks.push(variation.at(direction)?);
            } else {
                direction.clear();
            }
        }
        let times = replay(&networks)?;
        let read = directions.iter().filter(|direction| !direction.is_empty());
        let slopes = read.zip(&times).map(|(direction, time)| {
            let mut walked = ScoreSlope::default();
            for (part, of) in direction.iter().zip(alone) {
                let [below, above] = match *part < 0.0 {
                    true => [of.above, of.below],
                    false => [of.below, of.above],
                };
                walked.below += part / REACH * below;
                walked.above += part / REACH * above;
            }
            let share = match walked.above {
                0.0 => 1.0,
                above => walked.below / above,
            };
            let above = time.map_or(walked.above, |time| logarithm(time) / REACH);
            ScoreSlope {
                below: above * share,
                above,
            }
        });
        Ok(Slopes::new(slopes.collect(), &times, "replay"))
    }

    fn new(each: Vec<ScoreSlope>, times: &[Option<f64>], what: &str) -> Slopes {
        Slopes {
            each,
            rejected: times.iter().filter(|time| time.is_none()).count(),
            source: match times.len() {
                1 => format!("a {what}"),
                count => format!("{count} {what}s"),
            },
        }
    }

    /// Logarithms of times, relative to the predicted one, if the scores along the slopes are independent. Empty without
    /// slopes.
    pub(super) fn spread(&self, seed: u64) -> Vec<f64> {
        if self.source.is_empty() {
            return Vec::new();
        }
        let draws = stratified_scores(self.each.len(), DRAWS, seed).into_iter();
        let sums = draws.map(|scores| {
            let along = scores.iter().zip(&self.each);
            along
                .map(|(score, of)| score * if *score < 0.0 { of.below } else { of.above })
                .sum()
        });
        sums.collect()
    }
}

/// Logarithm of a relative time; 0 if the times are 0.
fn logarithm(ratio: f64) -> f64 {
    let is_number = ratio > 0.0 && ratio.is_finite();
    if is_number { ratio.ln() } else { 0.0 }
}

/// Networks with one uncertain field each at its upper end.
pub(super) fn upper_ends(variation: &Variation<'_>) -> Result<Vec<Network>, Error> {
    let ends = (0..variation.fields()).map(|field| variation.along(field, REACH));
    Ok(ends.collect::<Result<_, _>>()?)
}

/// Replays on each of the networks and returns the times relative to `predicted`; `None` for a network that the model
/// rejects. `replay` gets the number of a network, and the network.
pub(super) fn relative_times(
    networks: &[Network],
    predicted: Time,
    options: &IntervalOptions<'_>,
    replay: impl Fn(usize, &Network) -> Result<Outcome, Error> + Sync,
) -> Result<Vec<Option<f64>>, Error> {
    let numbers: Vec<usize> = (0..networks.len()).collect();
    let outcomes = parallel::map(&numbers, options.threads, |number| {
        replay(*number, &networks[*number])
    });
    let times = outcomes.into_iter().map(|outcome| match outcome {
        Ok(outcome) => Ok(Some(outcome.makespan().as_nanos() / predicted.as_nanos())),
        Err(Error::Sharing(_) | Error::Replay(SimulateError::Sharing(_))) => Ok(None),
        Err(error) => Err(error),
    });
    times.collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_statistics::sample::quantile;

    #[test]
    fn the_spread_has_the_slopes_of_both_sides_and_adds_independent_directions() {
        let slope = |below: f64, above: f64| ScoreSlope {
            below: -below.ln() / REACH,
            above: above.ln() / REACH,
        };
        let spread_of = |each: Vec<ScoreSlope>| Slopes::new(each, &[], "replay").spread(1);
        let one = spread_of(vec![slope(0.9, 1.3)]);
        let at = |share: f64| quantile(&one, share).unwrap().exp();
        assert!((at(0.1) - 0.9).abs() < 0.005 && (at(0.9) - 1.3).abs() < 0.02);
        let both = spread_of(vec![slope(1.0 / 1.1, 1.1); 2]);
        let variance = both.iter().map(|of| of * of).sum::<f64>() / DRAWS as f64;
        let expected = 2.0 * (1.1f64.ln() / REACH).powi(2);
        assert!(
            (variance / expected - 1.0).abs() < 0.25,
            "{variance} {expected}"
        );
        assert_eq!(spread_of(Vec::new()), [0.0; DRAWS]);
        assert_eq!(Slopes::default().spread(1), [0.0; 0]);
    }
}
