//! `flowcast networks`: the built-in networks and their files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use flowcast::model::builtin;
use flowcast::model::network::Network;
use flowcast::model::network_file::upgrade::upgraded;
use flowcast::model::origin::Origin;
use flowcast::units::{Rate, Rounded};
use serde::Serialize;

use crate::files::{Output, declare, read_own_text, write_text};
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
                    print_out!("{}", with_sources(&network))
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
    declare([], [Output::new("-o", output)])?;
    let (text, place) = (read_own_text(file)?, || file.display().to_string());
    let upgraded = upgraded(&text).with_context(place)?;
    let current = upgraded.as_deref().unwrap_or(&text);
    Network::from_toml(current, &[]).with_context(place)?;
    if upgraded.is_none() && output == file {
        eprintln!("flowcast: note: {} has the present schema", file.display());
        return Ok(());
    }
    write_text(output, current)
}

fn print_json(networks: &[Network]) -> Result<()> {
    let networks = networks.iter().map(Listed::new).collect::<Result<_>>()?;
    println_out!("{}", serde_json::to_string(&List { schema: "flowcast/networks/2", networks })?);
    Ok(())
}

#[derive(Serialize)]
struct List<'a> {
    schema: &'static str,
    networks: Vec<Listed<'a>>,
}

/// A network's file, and in short what stands behind it.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    file: serde_json::Value,
    year: Option<u16>,
    sureness: Option<&'static str>,
    sources: BTreeSet<&'a str>,
}

impl Listed<'_> {
    fn new(network: &Network) -> Result<Listed<'_>> {
        let evidence = network.evidence();
        Ok(Listed {
            file: serde_json::to_value(network.to_table())?,
            year: evidence.and_then(|evidence| evidence.year),
            sureness: evidence.map(|evidence| evidence.kind.name()),
            sources: network.origins.values().map(|origin| origin.text.as_str()).collect(),
        })
    }
}

fn print_table(networks: &[Network]) {
    let mut table = table(&["name", "year", "figures", ">latency", ">bandwidth", "source"]);
    for network in networks {
        let evidence = network.evidence();
        table.add_row([
            network.name.clone(),
            evidence.and_then(|evidence| evidence.year).map_or(String::new(), |year| year.to_string()),
            evidence.map_or("", |evidence| evidence.kind.name()).to_owned(),
            Rounded(network.nic.latency).to_string(),
            bandwidth(network.nic.rate()),
            evidence.map_or("", |evidence| evidence.source).to_owned(),
        ]);
    }
    println_out!("{table}");
}

fn bandwidth(rate: Rate) -> String {
    match rate.as_bytes_per_second() / 1e6 {
        megabytes if megabytes < 1e3 => format!("{megabytes:.1} MB/s"),
        megabytes => format!("{:.2} GB/s", megabytes / 1e3),
    }
}

/// The network's file with a comment behind each value that has an origin: how sure it is, its year, its short source.
fn with_sources(network: &Network) -> String {
    let text = network.to_toml();
    let (values, evidence) = text.split_at(text.find("\n[origins").unwrap_or(text.len()));
    let (mut section, mut groups, mut out) = (String::new(), 0, String::new());
    for line in values.lines() {
        if line == "[[machine.nodes]]" {
            section = format!("machine.nodes.{groups}");
            groups += 1;
        } else if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
        }
        let origin = line.split_once(" = ").and_then(|(field, _)| network.origins.get(&format!("{section}.{field}")));
        out += &origin.map_or(line.to_owned(), |origin| format!("{line:<WIDTH$} # {}", remark(origin)));
        out.push('\n');
    }
    out + evidence
}

/// Where the comments begin.
const WIDTH: usize = 32;

fn remark(origin: &Origin) -> String {
    let year = origin.year.map_or(String::new(), |year| format!(" {year}"));
    format!("{}{year}, {}", origin.kind.name(), origin.short())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built_in() -> impl Iterator<Item = Network> {
        builtin::NETWORKS.iter().map(|(name, _)| builtin::network(name).unwrap())
    }

    #[test]
    fn the_file_that_is_shown_with_its_sources_is_the_network() {
        for network in built_in() {
            let shown = with_sources(&network);
            assert_eq!(Network::from_toml(&shown, &[]).unwrap(), network, "{shown}");
            assert_eq!(shown.lines().filter(|line| line.contains(" # ")).count(), network.origins.len(), "{shown}");
        }
    }

    #[test]
    fn the_list_for_programs_says_how_sure_each_network_is() {
        for network in built_in() {
            let listed = serde_json::to_value(Listed::new(&network).unwrap()).unwrap();
            assert_eq!(listed["name"], network.name.as_str());
            assert!(listed["sureness"].is_string() && !listed["sources"].as_array().unwrap().is_empty(), "{listed}");
        }
        let listed = serde_json::to_value(Listed::new(&builtin::network("infiniband-edr").unwrap()).unwrap()).unwrap();
        assert_eq!((&listed["year"], &listed["sureness"]), (&2020.into(), &"measured".into()));
    }
}
