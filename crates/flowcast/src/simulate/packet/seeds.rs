//! Several runs that differ in their random disturbances: medians, and where nine runs of ten lie.

use super::{Message, SharingError, Wire, simulate};
use crate::model::sharing::fabric::Fabric;
use crate::simulate::fluid::Passage;
use crate::stats::sample::{median, quantile};
use crate::units::Time;

/// What lies between the low and the high ends.
pub const LEVEL: f64 = 0.9;

/// Where one flow's end and duration lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Medians.
    pub median: Passage,
    /// 5 % of the runs are below.
    pub low: Passage,
    /// 5 % of the runs are above.
    pub high: Passage,
}

/// Runs with the seeds 1, 2, .. `seeds`; at least one. Spreads by message.
///
/// # Errors
/// As [`simulate`].
pub fn spreads(messages: &[Message], fabric: &Fabric, wire: &Wire, seeds: u32) -> Result<Vec<Spread>, SharingError> {
    let mut runs = Vec::new();
    for seed in 1..=seeds.max(1) {
        runs.push(simulate(messages, fabric, &Wire { seed: Some(u64::from(seed)), ..*wire })?.passages);
    }
    let spread = |message: usize| {
        let ends: Vec<f64> = runs.iter().map(|run| run[message].end.as_nanos()).collect();
        let durations: Vec<f64> = runs.iter().map(|run| run[message].duration.as_nanos()).collect();
        let at = |share: f64| Passage { end: below(&ends, share), duration: below(&durations, share) };
        Spread { median: at(0.5), low: at((1.0 - LEVEL) / 2.0), high: at((1.0 + LEVEL) / 2.0) }
    };
    Ok((0..messages.len()).map(spread).collect())
}

fn below(values: &[f64], share: f64) -> Time {
    let value = if share == 0.5 { median(values) } else { quantile(values, share) };
    Time::from_nanos(value.expect("there is a run, and its times are finite"))
}
