//! The request for the fastest mapping.

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::{
    Contention, Options,
    model::{machine::inside::InsideNode, network::Network},
    units::{Rate, Time},
};
use flowcast_place::{input::PlaceInput, options::PlaceOptions};
use serde::Deserialize;

/// Options of the search for the fastest mapping.
#[derive(Debug, Clone, Args, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementRequest {
    /// Model of concurrent messages; a trace has the models of `flowcast predict` [default: the network's own]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// With steps or a matrix: time of a message inside a node, such as 18.7ms [default: from the network's machine]
    #[arg(long, value_name = "TIME")]
    pub inside: Option<Time>,
    /// With the model flow-cuts, refuse more than two flows in one direction of a node
    #[arg(long)]
    #[serde(default)]
    pub strict: bool,
    /// Number of mappings to try (of changes to a mapping with --objective hops); all mappings if there are fewer [default:
    /// depends on the size of the input]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub moves: Option<u64>,
    /// Seed of the search
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Probability of the interval of the gain
    #[arg(long, value_name = "LEVEL", default_value = "0.90", value_parser = probability)]
    pub level: f64,
}

/// Parses a probability for `--level`.
///
/// # Errors
/// The expected form: a number above 0 and below 1.
pub fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(level) if level > 0.0 && level < 1.0 => Ok(level),
        Ok(percent) if (1.0..100.0).contains(&percent) => Err(format!(
            "expected a probability: {} for {percent} %",
            percent / 100.0
        )),
        _ => Err("expected a probability above 0 and below 1, such as 0.90".to_owned()),
    }
}

impl PlacementRequest {
    /// Options of a replay with each mapping. Sets the time inside nodes in the network.
    ///
    /// # Errors
    /// A model that does not exist; options of steps although the input is a trace.
    pub fn options(&self, input: &PlaceInput, network: &mut Network) -> Result<Options> {
        ensure!(
            !matches!(input, PlaceInput::Trace(_)) || self.inside.is_none() && !self.strict,
            "--inside, --strict: found a trace, expected steps between ranks (machine.nodes sets the costs inside nodes of a trace)"
        );
        if let Some(latency) = self.inside {
            let rate = Rate::default();
            network.machine.set_inside(InsideNode { latency, rate });
        }
        let contention = self.model.as_deref().map(Contention::named).transpose()?;
        Ok(Options {
            contention: contention.unwrap_or_default(),
            is_strict: self.strict,
            ..Options::default()
        })
    }

    /// Options of the search.
    pub fn search(&self, threads: usize, has_time_limit: bool) -> PlaceOptions {
        PlaceOptions {
            seed: self.seed,
            moves: self.moves,
            has_time_limit,
            level: self.level,
            threads,
        }
    }
}
