//! Several runs that differ in their random disturbances: medians, and ranges that contain nine runs of ten.

use super::{PacketMessage, SharingError, Wire, jitter::Jitter, simulate_repetitions};
use flowcast_network::sharing::{completion::FlowCompletion, fabric::Fabric};
use flowcast_statistics::sample::{median, quantile};
use flowcast_units::Time;

/// Fraction of the runs between the low and the high ends.
pub const LEVEL: f64 = 0.9;
const NOISE: u64 = 0x6e6f_6973_6500_0000;

/// Distribution of one flow's end and duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Medians of end and of duration over the runs.
    pub median: FlowCompletion,
    /// Value with 5 % of the runs below it.
    pub low: FlowCompletion,
    /// Value with 5 % of the runs above it.
    pub high: FlowCompletion,
}

/// Number of runs of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// Number of independent runs, with the seeds 1, 2, .. of the disturbances; at least one.
    pub seeds: u32,
    /// Number of counted repetitions in each run, over the same connections; at least one.
    pub repetitions: u32,
}

impl Runs {
    /// Returns this number of runs, each with one repetition.
    pub const fn once(seeds: u32) -> Runs {
        Runs {
            seeds,
            repetitions: 1,
        }
    }
}

/// Returns the spread of each message.
///
/// # Errors
/// Errors of `simulate_repetitions`.
pub fn spreads(
    messages: &[PacketMessage],
    fabric: &Fabric,
    wire: &Wire,
    runs: Runs,
) -> Result<Vec<Spread>, SharingError> {
    let mut all: Vec<Vec<FlowCompletion>> = Vec::new();
    for seed in (1..=runs.seeds.max(1)).map(u64::from) {
        let carried = simulate_repetitions(
            messages,
            fabric,
            &Wire {
                seed: Some(seed),
                ..*wire
            },
            runs.repetitions,
        )?;
        // A separate generator, because the draws of the run are unrelated to these.
        let mut noise = Jitter::from_seed(seed ^ NOISE);
        let completions: Vec<FlowCompletion> = carried
            .iter()
            .flat_map(|one| &one.completions)
            .map(|completion: &FlowCompletion| {
                longer(*completion, noise.of_duration(wire.protocol.noise))
            })
            .collect();
        all.extend(
            completions
                .chunks(messages.len().max(1))
                .map(<[FlowCompletion]>::to_vec),
        );
    }
    Ok((0..messages.len())
        .map(|message: usize| {
            let ends: Vec<f64> = all.iter().map(|run| run[message].end.as_nanos()).collect();
            let durations: Vec<f64> = all
                .iter()
                .map(|run| run[message].duration.as_nanos())
                .collect();
            let shares = [0.5, (1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0];
            let [median, low, high] = shares.map(|share| FlowCompletion {
                end: below(&ends, share),
                duration: below(&durations, share),
            });
            Spread { median, low, high }
        })
        .collect())
}

/// Returns a completion with the same start and a duration multiplied by `times`.
fn longer(completion: FlowCompletion, times: f64) -> FlowCompletion {
    let duration = completion.duration * times;
    FlowCompletion {
        end: completion.end - completion.duration + duration,
        duration,
    }
}

fn below(values: &[f64], share: f64) -> Time {
    let value = if share == 0.5 {
        median(values)
    } else {
        quantile(values, share)
    };
    Time::from_nanos(value.expect("there is a run, and its times are finite"))
}
