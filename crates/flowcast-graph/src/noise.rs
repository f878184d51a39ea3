//! Effect of random delays of computations on the end, with many runs in each pass over the events.
//!
//! Every computation takes longer by a delay that is drawn for it. A delay that exceeds the slack of the events behind it
//! travels on as an idle wave (Hoefler, Schneider, Lumsdaine, SC10; Afzal, Hager, Wellein, 2019). Each draw depends only on
//! the seed, the run and the number of the event, so the result is the same for any number of threads.

use std::{array::from_fn, collections::BTreeMap, ops::Range};

use flowcast_program::{opcodes::Op, parallel, program::Program};
use flowcast_units::{Rank, Time};
use thiserror::Error;

use crate::graph::{EventGraph, EventKind, NONE};

/// Number of runs that share a pass.
const LANES: usize = 8;

/// Delays that are added to computations.
#[derive(Debug, Clone, PartialEq)]
pub enum ComputeNoise {
    /// Exponentially distributed delays with this mean.
    Exponential(Time),
    /// Pareto-distributed delays: the probability of a delay above `t` is `(least/t)^exponent`.
    Pareto {
        /// The shortest delay.
        least: Time,
        /// Exponent, above 0. The larger it is, the rarer are long delays.
        exponent: f64,
    },
    /// Relative delays, equally likely: with 0.1, a computation takes a tenth longer.
    Factors(Vec<f64>),
    /// One delay of the first computation of one rank, which sets off an idle wave.
    Once {
        /// The rank.
        rank: Rank,
        /// Delay of the computation.
        delay: Time,
    },
}

/// A text that names no noise.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "found `{found}`, expected exponential:MEAN, pareto:LEAST,EXPONENT, once:DELAY,RANK or empirical[:RECORDING], \
     such as exponential:5us, pareto:1us,1.5, once:2ms,3"
)]
pub struct NoiseError {
    found: String,
}

/// Results of the runs.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyRuns {
    /// The end of each run, shortest first.
    pub makespans: Vec<Time>,
    /// Mean delay of the end of each rank, indexed by rank.
    pub later: Vec<Time>,
}

impl ComputeNoise {
    /// Reads `exponential:MEAN`, `pareto:LEAST,EXPONENT` or `once:DELAY,RANK`.
    ///
    /// # Errors
    /// The text names none of them.
    pub fn parse(text: &str) -> Result<ComputeNoise, NoiseError> {
        ComputeNoise::parsed(text).ok_or_else(|| NoiseError {
            found: text.to_owned(),
        })
    }

    fn parsed(text: &str) -> Option<ComputeNoise> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "exponential" => Some(ComputeNoise::Exponential(time(rest)?)),
            "pareto" => {
                let (least, exponent) = rest.split_once(',')?;
                let exponent = exponent.trim().parse().ok();
                Some(ComputeNoise::Pareto {
                    least: time(least)?,
                    exponent: exponent
                        .filter(|number: &f64| *number > 0.0 && number.is_finite())?,
                })
            }
            "once" => {
                let (delay, rank) = rest.split_once(',')?;
                Some(ComputeNoise::Once {
                    delay: time(delay)?,
                    rank: Rank(rank.trim().parse().ok()?),
                })
            }
            _ => None,
        }
    }

    /// Returns the delay of a computation of `takes` nanoseconds, for a number drawn uniformly from 0 to 1.
    fn delay(&self, takes: f64, drawn: f64) -> f64 {
        match self {
            ComputeNoise::Exponential(mean) => -mean.as_nanos() * (1.0 - drawn).ln(),
            ComputeNoise::Pareto { least, exponent } => {
                least.as_nanos() * (1.0 - drawn).powf(-1.0 / exponent)
            }
            ComputeNoise::Factors(factors) if factors.is_empty() => 0.0,
            ComputeNoise::Factors(factors) => {
                takes * factors[((drawn * factors.len() as f64) as usize).min(factors.len() - 1)]
            }
            ComputeNoise::Once { .. } => 0.0,
        }
    }
}

fn time(text: &str) -> Option<Time> {
    let time = Time::parse(text.trim()).ok();
    time.filter(|time| *time >= Time::ZERO)
}

/// Returns the relative variation of the computations of a recorded program, in ascending order. Computations of a rank
/// whose durations lie within a factor of two of one another count as repetitions. Each gives the fraction by which it
/// exceeds the shortest of them.
pub fn factors_of(program: &Program) -> Vec<f64> {
    let mut shortest = BTreeMap::new();
    for (kind, nanos) in computed(program) {
        let known = shortest.entry(kind).or_insert(nanos);
        *known = nanos.min(*known);
    }
    let mut factors: Vec<f64> = computed(program)
        .map(|(kind, nanos)| nanos / shortest[&kind] - 1.0)
        .collect();
    factors.sort_by(f64::total_cmp);
    factors
}

/// Returns the computations that take time, with the kind of each.
fn computed(program: &Program) -> impl Iterator<Item = ((Rank, i32), f64)> {
    let ranks = Rank::all(program.ranks());
    let all = ranks.flat_map(|rank| program.ops(rank).map(move |(_, op)| (rank, op)));
    all.filter_map(|(rank, op)| match op {
        Op::Compute(time) if time > Time::ZERO => {
            let nanos = time.as_nanos();
            Some(((rank, nanos.log2().floor() as i32), nanos))
        }
        _ => None,
    })
}

/// Returns a number from 0 to 1 for an event, a run and a seed (SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
fn drawn(seed: u64, run: u64, event: u64) -> f64 {
    let stream = mixed(mixed(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_add(run));
    let number = mixed(stream.wrapping_add(event.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    (number >> 11) as f64 / (1u64 << 53) as f64
}

fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

impl EventGraph<'_> {
    /// Returns the end of each rank with delays, for each run in `runs`, computed on `threads` threads.
    pub fn disturbed_ends(
        &self,
        noise: &ComputeNoise,
        seed: u64,
        runs: Range<usize>,
        threads: usize,
    ) -> Vec<Vec<Time>> {
        let count = runs.len();
        let starts: Vec<usize> = runs.step_by(LANES).collect();
        let passes = parallel::map(&starts, threads, |start| self.pass(noise, seed, *start));
        (0..count)
            .map(|run: usize| {
                passes[run / LANES]
                    .iter()
                    .map(|ends| Time::from_nanos(ends[run % LANES]))
                    .collect()
            })
            .collect()
    }

    /// Summarizes runs from the times at which their ranks end.
    pub fn disturbed(&self, runs: &[Vec<Time>]) -> NoisyRuns {
        let mut makespans: Vec<Time> = runs
            .iter()
            .map(|ends: &Vec<Time>| ends.iter().copied().max().unwrap_or_default())
            .collect();
        makespans.sort();
        NoisyRuns {
            makespans,
            later: (0..self.ends.len())
                .map(|rank| {
                    runs.iter()
                        .map(|ends| {
                            (ends[rank].as_nanos() - self.times[self.ends[rank] as usize])
                                / runs.len() as f64
                        })
                        .sum()
                })
                .map(Time::from_nanos)
                .collect(),
        }
    }

    /// Returns the ends of the ranks in the `LANES` runs from `start` on.
    fn pass(&self, noise: &ComputeNoise, seed: u64, start: usize) -> Vec<[f64; LANES]> {
        let mut times: Vec<[f64; LANES]> = Vec::with_capacity(self.nodes.len());
        let mut once = match noise {
            ComputeNoise::Once { rank, delay } => Some((*rank, delay.as_nanos())),
            _ => None,
        };
        for (index, node) in self.nodes.iter().enumerate() {
            let mut costs = [node.cost; LANES];
            if node.kind() == EventKind::Compute {
                let extra = once.take_if(|(rank, _)| self.owner(node.rank()) == *rank);
                for (lane, cost) in costs.iter_mut().enumerate() {
                    let number = drawn(seed, (start + lane) as u64, index as u64);
                    *cost += noise.delay(node.cost, number) + extra.map_or(0.0, |(_, delay)| delay);
                }
            }
            let first = if index == 0 {
                [0.0; LANES]
            } else {
                times[node.first as usize]
            };
            let mut end: [f64; LANES] = from_fn(|lane| first[lane] + costs[lane]);
            if node.second != NONE {
                let second = &times[node.second as usize];
                end = from_fn(|lane| end[lane].max(second[lane] + node.more));
            }
            times.push(end);
        }
        self.ends.iter().map(|end| times[*end as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_the_means_of_their_distributions() {
        let mean = |noise: ComputeNoise| {
            let draws = (0..200_000).map(|event| noise.delay(100.0, drawn(7, 0, event)));
            draws.sum::<f64>() / 200_000.0
        };
        assert!((mean(ComputeNoise::parse("exponential:5us").unwrap()) - 5000.0).abs() < 50.0);
        // The mean of a Pareto distribution is least * exponent / (exponent - 1).
        assert!((mean(ComputeNoise::parse("pareto:1us,3").unwrap()) - 1500.0).abs() < 20.0);
        assert!((mean(ComputeNoise::Factors(vec![0.0, 0.5])) - 25.0).abs() < 0.5);
    }

    #[test]
    fn an_invalid_noise_is_refused() {
        for text in [
            "exponential",
            "exponential:5",
            "pareto:1us",
            "pareto:1us,0",
            "once:1ms,x",
            "gamma:1us",
        ] {
            assert!(
                ComputeNoise::parse(text)
                    .unwrap_err()
                    .to_string()
                    .contains(text),
                "{text}"
            );
        }
    }
}
