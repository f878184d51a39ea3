//! `flowcast networks`: the built-in networks and their files.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use flowcast::model::builtin;
use flowcast::model::network::Network;
use flowcast::model::network_file::upgrade::upgraded;
use flowcast::units::Rounded;

use crate::files::{read_text, write_whole};
use crate::network_args::{load, parse_overrides};
use crate::output::print_out;
use crate::output::println_out;
use crate::tables::table;

/// List the built-in networks, print one as a file, or rewrite a file in the present schema
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast networks\n  flowcast networks show gige-tcp > mine.toml\n  \
                        flowcast networks upgrade mine.toml")]
pub(crate) struct Networks {
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
    /// Rewrite a network file of an earlier schema in the present one; comments stay
    Upgrade {
        /// The file
        file: PathBuf,
        /// Write there instead
        #[arg(short, long, value_name = "NET.toml")]
        output: Option<PathBuf>,
    },
}

impl Networks {
    /// Prints the list or the file.
    pub(crate) fn run(self) -> Result<()> {
        match self.action {
            Some(Action::Show { name, overrides }) => {
                let network = load(&name, &parse_overrides(&overrides)?)?.announced();
                if self.json {
                    println_out!("{}", serde_json::to_string(&network.to_table())?)
                } else {
                    print_out!("{}", network.to_toml())
                }
            }
            Some(Action::Upgrade { file, output }) => upgrade(&file, output.as_deref().unwrap_or(&file))?,
            None => {
                let networks: Vec<Network> =
                    builtin::NETWORKS.iter().map(|(name, _)| builtin::network(name)).collect::<Result<_, _>>()?;
                if self.json { print_json(&networks)? } else { print_table(&networks) }
            }
        }
        Ok(())
    }
}

fn upgrade(file: &Path, output: &Path) -> Result<()> {
    let (text, place) = (read_text(file)?, || file.display().to_string());
    let upgraded = upgraded(&text).with_context(place)?;
    let current = upgraded.as_deref().unwrap_or(&text);
    Network::from_toml(current, &[]).with_context(place)?;
    if upgraded.is_none() && output == file {
        eprintln!("flowcast: note: {} has the present schema", file.display());
        return Ok(());
    }
    write_whole(output, |out| Ok(out.write_all(current.as_bytes())?))
}

fn print_json(networks: &[Network]) -> Result<()> {
    let networks: Vec<_> = networks.iter().map(Network::to_table).collect();
    let list = serde_json::json!({ "schema": "flowcast/networks/2", "networks": networks });
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
