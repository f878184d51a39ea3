//! `flowcast networks`: the built-in networks and their files.

use anyhow::Result;
use clap::{Args, Subcommand};
use flowcast::model::builtin;
use flowcast::model::network::Network;
use flowcast::units::Rounded;

use crate::network_args::{load, parse_overrides};
use crate::output::print_out;
use crate::output::println_out;
use crate::tables::table;

/// List the built-in networks, or print one as a file
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast networks\n  flowcast networks show gige-tcp > mine.toml")]
pub struct Networks {
    /// Machine-readable output
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the network file (TOML) of a built-in network
    Show {
        /// Its name, or a file to check and print in full
        name: String,
        /// Replace a field, such as nic.latency=5us (repeatable)
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
    },
}

impl Networks {
    /// Prints the list or the file.
    pub fn run(self) -> Result<()> {
        match self.action {
            Some(Action::Show { name, overrides }) => {
                let network = load(&name, &parse_overrides(&overrides)?)?.announced();
                if self.json {
                    println_out!("{}", serde_json::to_string(&network)?)
                } else {
                    print_out!("{}", network.to_toml())
                }
            }
            None => {
                let networks: Vec<Network> =
                    builtin::NETWORKS.iter().map(|(name, _)| builtin::network(name)).collect::<Result<_, _>>()?;
                if self.json { print_json(&networks)? } else { print_table(&networks) }
            }
        }
        Ok(())
    }
}

fn print_json(networks: &[Network]) -> Result<()> {
    let list = serde_json::json!({ "schema": "flowcast/networks/1", "networks": networks });
    println_out!("{list}");
    Ok(())
}

fn print_table(networks: &[Network]) {
    let mut table = table(&["name", ">latency", ">bandwidth", "what", "source"]);
    for network in networks {
        let megabytes = network.nic.rate().as_bytes_per_second() / 1e6;
        let latency = Rounded(network.nic.latency).to_string();
        table.add_row([&network.name, &latency, &format!("{megabytes:.1} MB/s"), &network.title, &network.source]);
    }
    println_out!("{table}");
}
