//! `--network` and `--set`, the same for every command that needs a network.

use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use flowcast::{
    model::{
        loggp::LogGp,
        network::{MessageRule, Network, Nic, SingleFlowRate},
        sharing::model::Model,
    },
    scheduler::Rail,
    units::TimePerByte,
};
pub use flowcast_io::parse_overrides;
use flowcast_io::{LoadedNetwork, load_network, load_networks};

use crate::{say, trace_args::Maps};

/// Network and changes of its fields.
#[derive(Debug, Clone, Args)]
pub struct NetworkArgs {
    /// Built-in network (see `flowcast networks`), network file (TOML) or Dimemas configuration (.cfg)
    #[arg(short, long, value_name = "NET")]
    pub network: String,
    /// Replace a field of the network, such as latency=5us or sharing.model=fair (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

impl NetworkArgs {
    /// Reads the network. Prints a note for each part that is not modelled.
    pub fn load(&self) -> Result<Network> {
        load(&self.network, &parse_overrides(&self.overrides)?)
    }
}

/// Fields whose rate has a kind that depends on the model.
const RATES: [&str; 4] = [
    "nic.bandwidth",
    "backbone.bandwidth",
    "bus.bandwidth",
    "topology.",
];

/// Prints a note on the kind of rate that `model` expects, if a rate is among the fields `asked`.
pub fn print_rate_kind(asked: &[String], model: &str) {
    let set: Vec<&str> = asked
        .iter()
        .filter(|name| {
            name.ends_with(".bandwidth") && RATES.iter().any(|rate| name.starts_with(rate))
        })
        .map(String::as_str)
        .collect();
    if !set.is_empty() {
        let kind = if model == Model::Packet.name() {
            "wire rate"
        } else {
            "goodput"
        };
        say!(
            "flowcast: note: the model {model} interprets {} as {kind}",
            set.join(", ")
        );
    }
}

fn announced(loaded: LoadedNetwork) -> Network {
    for warning in &loaded.warnings {
        say!("flowcast: note: {warning}");
    }
    loaded.network
}

/// Loads a built-in network by name, or a network from a file. Prints a note for each part that is not modelled.
pub fn load(name: &str, overrides: &[(String, String)]) -> Result<Network> {
    load_network(name, overrides, &mut Maps::default()).map(announced)
}

/// Loads several networks like [`load`]. Each name may be a pattern.
pub fn load_all(names: &[String], overrides: &[(String, String)]) -> Result<Vec<Network>> {
    let loaded = load_networks(names, overrides, &mut Maps::default())?;
    Ok(loaded.into_iter().map(announced).collect())
}

/// `true` if a rail is given by its numbers, `NAME=g,G,o,Lus`, and not as a network.
fn is_by_numbers(text: &str) -> bool {
    text.contains('=') && !Path::new(text).exists()
}

/// Parses a rail: `NAME=g,G,o,Lus`, or the name or file of a network.
pub fn rail(text: &str) -> Result<Rail> {
    if is_by_numbers(text) {
        return Ok(Rail::parse(text)?);
    }
    let network = load(text, &[])?;
    Ok(Rail {
        cost: LogGp::from(&network.nic),
        name: network.name,
        overhead_per_byte: TimePerByte::default(),
    })
}

/// Networks of rails in the form that [`rail`] parses, with fields replaced.
pub fn load_rails(texts: &[String], overrides: &[(String, String)]) -> Result<Vec<Network>> {
    let mut networks = Vec::new();
    for text in texts {
        if !is_by_numbers(text) {
            networks.extend(load_all(std::slice::from_ref(text), overrides)?);
            continue;
        }
        if let Some((field, _)) = overrides.first() {
            bail!(
                "--rail {text}: found an override of {field}, expected the name or file of a network"
            );
        }
        let Rail { name, cost, .. } = Rail::parse(text)?;
        let nic = Nic {
            overhead: cost.overhead,
            gap: cost.gap,
            ..Nic::new(cost.latency, SingleFlowRate::GapPerByte(cost.gap_per_byte))
        };
        networks.push(Network::new(name, MessageRule::Loggops, nic));
    }
    Ok(networks)
}
