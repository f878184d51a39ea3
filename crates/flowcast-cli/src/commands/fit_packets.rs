//! `flowcast fit` of recordings with `--network`: the latency of packets from recorded micro-benchmarks.
//!
//! The time on a wire with known rate, frames, windows and simulated collectives is known. The time that a host needs to
//! detect a message is unknown, and the same for all messages.

use std::{collections::BTreeMap, fmt};

use anyhow::Result;
use flowcast::{
    Collectives, Contention, Options, Recorded,
    calibrate::narrowing::least_cost,
    formats::read::Clock,
    model::{network::Network, sharing::model::Model},
    recording::decode::RankFile,
    table::Record,
    trace::recorded_times::measured,
    units::{Rounded, Time},
};

use flowcast_terminal::{output::print_notes, trace_args::threads};

/// Upper bound of the search for the latency.
const MOST: Time = Time::from_nanos(2e6);

/// Latency of the packet model, fitted to the measured times of regions.
pub(super) struct PacketFit {
    pub latency: Time,
    /// Relative error of the prediction, `predicted / measured - 1`, by region.
    errors: BTreeMap<String, f64>,
}

/// Finds the latency that minimizes the mean of `|ln(predicted / measured)|` over all regions.
pub(super) fn fit(recordings: &[Vec<RankFile>], network: &Network) -> Result<PacketFit> {
    let all = recordings
        .iter()
        .map(|files| {
            let recorded = Recorded::new(files, Clock::ThreadCpu, None, threads())?;
            print_notes(recorded.program().ignored());
            let (expanded, _) = recorded.expanded(&Collectives::OpenMpi, network, threads())?;
            anyhow::Ok((expanded.into_owned(), measured(files).regions))
        })
        .collect::<Result<Vec<_>>>()?;
    let (latency, _) = least_cost(0.0, MOST.as_nanos(), |nanos| {
        let errors = errors(&all, &with_latency(network, Time::from_nanos(nanos)))?;
        anyhow::Ok(
            errors
                .values()
                .map(|error| error.ln_1p().abs())
                .sum::<f64>()
                / errors.len().max(1) as f64,
        )
    })?;
    let latency = Time::from_nanos(latency);
    Ok(PacketFit {
        latency,
        errors: errors(&all, &with_latency(network, latency))?,
    })
}

fn with_latency(network: &Network, latency: Time) -> Network {
    let mut network = network.clone();
    network.sharing.packet.latency = Some(latency);
    network
}

/// Mean error over the recordings, by region.
fn errors(
    all: &[(Recorded, BTreeMap<String, Time>)],
    network: &Network,
) -> Result<BTreeMap<String, f64>> {
    let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (recorded, measured) in all {
        let options = Options {
            contention: Contention::Shared(Model::Packet),
            ..Options::default()
        };
        let run_times = recorded.run_times(network, &options, 0)?;
        for (name, predicted) in run_times.into_iter().flat_map(|run| run.regions) {
            if let Some(measured) = measured
                .get(&name)
                .filter(|measured| **measured > Time::ZERO)
            {
                errors
                    .entry(name)
                    .or_default()
                    .push(predicted.as_nanos() / measured.as_nanos() - 1.0);
            }
        }
    }
    Ok(errors
        .into_iter()
        .map(|(name, errors)| (name, mean(errors)))
        .collect())
}

fn mean(errors: Vec<f64>) -> f64 {
    errors.iter().sum::<f64>() / errors.len() as f64
}

impl PacketFit {
    fn mean_error(&self) -> f64 {
        self.errors.values().map(|error| error.abs()).sum::<f64>() / self.errors.len().max(1) as f64
    }

    /// Relative error of the prediction, `predicted / measured - 1`, by region.
    pub(super) fn errors(&self) -> BTreeMap<String, Vec<f64>> {
        self.errors
            .iter()
            .map(|(region, error)| (region.clone(), vec![*error]))
            .collect()
    }

    fn within(&self, tolerance: f64) -> usize {
        self.errors
            .values()
            .filter(|error| error.abs() <= tolerance)
            .count()
    }

    /// Record for the fit's document.
    pub(super) fn record(&self) -> Record {
        let within = self.within(0.1) as f64 / self.errors.len().max(1) as f64;
        Record::new()
            .field("latency_s", self.latency)
            .field("mean_absolute_error", self.mean_error())
            .field("within_10_percent", within)
            .field("errors", &self.errors)
    }
}

impl fmt::Display for PacketFit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "packets: latency {}, {} of {} regions are predicted within 10 %; mean error {:.1} %",
            Rounded(self.latency),
            self.within(0.1),
            self.errors.len(),
            self.mean_error() * 100.0
        )
    }
}
