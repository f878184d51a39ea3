//! `flowcast predict`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::predict_trace::{self, TraceArgs};
use crate::network_args::{LoadedNetwork, load, parse_overrides};
use crate::trace_args::open_trace;

/// Predict how long a program's communication takes
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast predict cg.S.4.dim --network gige-tcp\n  flowcast predict halo.goal --goal-params 2000,500,700,1,65536 --json"
)]
pub struct Predict {
    /// Trace: Dimemas .dim, GOAL, SimGrid time-independent list, or compiled .fct; plain, gzip or zstd
    input: PathBuf,
    /// Built-in network (see `flowcast networks`), network file (TOML) or Dimemas .cfg
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Replace a field of the network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trace: TraceArgs,
}

impl Predict {
    /// Predicts and prints.
    pub fn run(self) -> Result<()> {
        let overrides = parse_overrides(&self.overrides)?;
        let network =
            self.network.as_deref().map(|name| load(name, &overrides)).transpose()?.map(LoadedNetwork::announced);
        let trace = open_trace(&self.input)?;
        predict_trace::run(&trace, network.as_ref(), &self.trace, self.json)
    }
}
