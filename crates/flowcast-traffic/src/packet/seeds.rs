//! Several runs that differ in their random disturbances: medians, and where nine runs of ten lie.

use super::{PacketMessage, SharingError, Wire, jitter::Jitter, simulate_repetitions};
use flowcast_network::sharing::{completion::FlowCompletion, fabric::Fabric};
use flowcast_statistics::sample::{median, quantile};
use flowcast_units::Time;

/// What lies between the low and the high ends.
pub const LEVEL: f64 = 0.9;
const NOISE: u64 = 0x6e6f_6973_6500_0000;

/// Where one flow's end and duration lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Medians of end and of duration over the runs.
    pub median: FlowCompletion,
    /// 5 % of the runs are below.
    pub low: FlowCompletion,
    /// 5 % of the runs are above.
    pub high: FlowCompletion,
}

/// How often a pattern is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// Times afresh, with the seeds 1, 2, .. of the disturbances; at least one.
    pub seeds: u32,
    /// Repetitions of each that count, over the same connections; at least one.
    pub repetitions: u32,
}

impl Runs {
    /// One repetition of each.
    pub const fn once(seeds: u32) -> Runs {
        Runs {
            seeds,
            repetitions: 1,
        }
    }
}

/// Spreads by message.
///
/// # Errors
/// As `simulate_repetitions`.
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
        // Apart from that of the run, whose draws say nothing about these.
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

/// So many times as long, from the same start.
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
