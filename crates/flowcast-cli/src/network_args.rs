//! `--network` and `--set`, the same for every command that needs a network.

use anyhow::Result;
use clap::Args;
use flowcast::model::network::Network;
use flowcast::model::sharing::model::Model;
pub(crate) use flowcast_io::parse_overrides;
use flowcast_io::{load_network, load_networks};

use crate::terminal::output::say;
use crate::trace_args::Maps;

/// Which network.
#[derive(Debug, Clone, Args)]
pub(crate) struct NetworkArgs {
    /// Built-in network (see `flowcast networks`), network file (TOML) or Dimemas configuration (.cfg)
    #[arg(short, long, value_name = "NET", help_heading = "Network")]
    pub network: String,
    /// Replace a field of the network, such as latency=5us or sharing.model=fair (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Network")]
    pub overrides: Vec<String>,
}

impl NetworkArgs {
    /// Reads the network; what of it is not modelled goes to standard error.
    pub(crate) fn load(&self) -> Result<Network> {
        Ok(load(&self.network, &parse_overrides(&self.overrides)?)?.announced())
    }
}

/// The fields of the network whose rate each model takes in its own kind.
const RATES: [&str; 4] = [
    "nic.bandwidth",
    "backbone.bandwidth",
    "bus.bandwidth",
    "topology.",
];

/// Says on standard error which kind of rate was set, as `model` takes it, if one was among `asked`.
pub(crate) fn tell_rate_kind(asked: &[String], model: &str) {
    let is_rate = |name: &&String| {
        name.ends_with(".bandwidth") && RATES.iter().any(|rate| name.starts_with(rate))
    };
    let set: Vec<&str> = asked.iter().filter(is_rate).map(String::as_str).collect();
    if !set.is_empty() {
        let kind = if model == Model::Packet.name() {
            "wire rate"
        } else {
            "goodput"
        };
        say!(
            "flowcast: note: {} is taken as {kind}, as {model} counts",
            set.join(", ")
        );
    }
}

/// A network and what its file says beyond it.
#[derive(Debug)]
pub(crate) struct LoadedNetwork(flowcast_io::LoadedNetwork);

impl LoadedNetwork {
    /// Prints the warnings and gives the network.
    pub(crate) fn announced(self) -> Network {
        for warning in &self.0.warnings {
            say!("flowcast: note: {warning}");
        }
        self.0.network
    }
}

/// A file if there is one of that name, else a built-in network.
pub(crate) fn load(name: &str, overrides: &[(String, String)]) -> Result<LoadedNetwork> {
    load_network(name, overrides, &mut Maps::default()).map(LoadedNetwork)
}

/// All networks that names and patterns of names mean, in their order.
pub(crate) fn load_all(
    names: &[String],
    overrides: &[(String, String)],
) -> Result<Vec<LoadedNetwork>> {
    let loaded = load_networks(names, overrides, &mut Maps::default())?;
    Ok(loaded.into_iter().map(LoadedNetwork).collect())
}
