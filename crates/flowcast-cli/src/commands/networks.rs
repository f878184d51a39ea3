//! `flowcast networks`: the built-in networks and their files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use flowcast::model::builtin;
use flowcast::model::network::Network;
use flowcast::model::network_file::upgrade::upgraded;
use flowcast::model::origin::Origin;
use flowcast::units::{Rate, Rounded};
use flowcast_io::{Kept, Store};
use serde::Serialize;

use crate::network_args::{load, parse_overrides};
use crate::terminal::files::{Output, declare, read_own_text, write_text};
use crate::terminal::output::println_out;
use crate::terminal::output::{print_out, say};
use crate::terminal::tables::table;

/// List networks, print one as a file, keep measured ones by name, or rewrite a file in the present schema
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast networks\n  flowcast networks show gige-tcp > mine.toml\n  \
                        flowcast networks save mine.toml --name cluster\n  flowcast predict cg.rec --network cluster\n  \
                        flowcast networks upgrade mine.toml"
)]
pub(crate) struct Networks {
    /// Machine-readable output
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the network file (TOML) of a network
    Show {
        /// A built-in network, one that is kept, or a file to check and print in full
        name: String,
        /// Replace a field, such as nic.latency=5us (repeatable)
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
    },
    /// Keep a network file in the user's data folder: its name then stands for it everywhere
    Save {
        /// The file
        file: PathBuf,
        /// Under this name instead of that in the file
        #[arg(long)]
        name: Option<String>,
    },
    /// Remove a network that is kept
    Remove {
        /// Its name
        name: String,
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
                let network = load(&name, &parse_overrides(&overrides)?)?;
                if self.json {
                    println_out!("{}", serde_json::to_string(&network.to_table())?)
                } else {
                    print_out!("{}", with_sources(&network))
                }
            }
            Some(Action::Save { file, name }) => save(&file, name)?,
            Some(Action::Remove { name }) => store()?.remove(&name)?,
            Some(Action::Upgrade { file, output }) => {
                upgrade(&file, output.as_deref().unwrap_or(&file))?
            }
            None => {
                let networks: Vec<Network> = builtin::NETWORKS
                    .iter()
                    .map(|(name, _)| builtin::network(name))
                    .collect::<Result<_, _>>()?;
                let kept = Store::usual().map_or(Ok(Vec::new()), |store| store.list())?;
                if self.json {
                    print_json(&networks, &kept)?
                } else {
                    print_tables(&networks, &kept)
                }
            }
        }
        Ok(())
    }
}

fn store() -> Result<Store> {
    Store::usual().context("found no home, expected $XDG_DATA_HOME or $HOME")
}

fn save(file: &Path, name: Option<String>) -> Result<()> {
    let text = read_own_text(file)?;
    let network = Network::from_toml(&text, &[]).with_context(|| file.display().to_string())?;
    let name = name.unwrap_or(network.name);
    if builtin::NETWORKS.iter().any(|(known, _)| *known == name) {
        bail!("--name: found `{name}`, which is a built-in network, expected another name");
    }
    let (place, replaces) = store()?.save(&name, &text)?;
    say!(
        "flowcast: note: {} {}",
        if replaces { "replaced" } else { "wrote" },
        place.display()
    );
    Ok(())
}

fn upgrade(file: &Path, output: &Path) -> Result<()> {
    declare([], [Output::new("-o", output)])?;
    let (text, place) = (read_own_text(file)?, || file.display().to_string());
    let upgraded = upgraded(&text).with_context(place)?;
    let current = upgraded.as_deref().unwrap_or(&text);
    Network::from_toml(current, &[]).with_context(place)?;
    if upgraded.is_none() && output == file {
        say!("flowcast: note: {} has the present schema", file.display());
        return Ok(());
    }
    write_text(output, current)
}

fn print_json(networks: &[Network], kept: &[Kept]) -> Result<()> {
    let networks = networks.iter().map(Listed::new).collect::<Result<_>>()?;
    let kept = kept.iter().map(KeptNetwork::from).collect();
    println_out!(
        "{}",
        serde_json::to_string(&List {
            schema: "flowcast/networks/2",
            networks,
            kept
        })?
    );
    Ok(())
}

#[derive(Serialize)]
struct List<'a> {
    schema: &'static str,
    networks: Vec<Listed<'a>>,
    kept: Vec<KeptNetwork<'a>>,
}

/// A network of the user's, with the day and the hosts of its measurement.
#[derive(Serialize)]
struct KeptNetwork<'a> {
    name: &'a str,
    date: Option<&'a str>,
    hosts: Option<&'a str>,
    source: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> From<&'a Kept> for KeptNetwork<'a> {
    fn from(kept: &'a Kept) -> KeptNetwork<'a> {
        let network = kept.network.as_ref();
        let said = |key: &str| network.ok()?.provenance.get(key).map(String::as_str);
        KeptNetwork {
            name: &kept.name,
            date: said("date"),
            hosts: said("hosts")
                .or_else(|| said("path"))
                .or_else(|| said("host")),
            source: network.ok().map(|network| network.source.as_str()),
            error: network.err().map(String::as_str),
        }
    }
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
            sources: network
                .origins
                .values()
                .map(|origin| origin.text.as_str())
                .collect(),
        })
    }
}

fn print_tables(networks: &[Network], kept: &[Kept]) {
    print_built_in(networks);
    if kept.is_empty() {
        return;
    }
    let mut table = table(&["kept", "date", "hosts", "source"]);
    for kept in kept.iter().map(KeptNetwork::from) {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        table.add_row([
            kept.name.to_owned(),
            text(kept.date),
            text(kept.hosts),
            text(kept.error.or(kept.source)),
        ]);
    }
    println_out!("{table}");
}

fn print_built_in(networks: &[Network]) {
    let mut table = table(&[
        "name",
        "year",
        "figures",
        ">latency",
        ">bandwidth",
        "source",
    ]);
    for network in networks {
        let evidence = network.evidence();
        table.add_row([
            network.name.clone(),
            evidence
                .and_then(|evidence| evidence.year)
                .map_or(String::new(), |year| year.to_string()),
            evidence
                .map_or("", |evidence| evidence.kind.name())
                .to_owned(),
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
        let origin = line
            .split_once(" = ")
            .and_then(|(field, _)| network.origins.get(&format!("{section}.{field}")));
        out += &origin.map_or(line.to_owned(), |origin| {
            format!("{line:<WIDTH$} # {}", remark(origin))
        });
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
        builtin::NETWORKS
            .iter()
            .map(|(name, _)| builtin::network(name).unwrap())
    }

    #[test]
    fn the_file_that_is_shown_with_its_sources_is_the_network() {
        for network in built_in() {
            let shown = with_sources(&network);
            assert_eq!(Network::from_toml(&shown, &[]).unwrap(), network, "{shown}");
            assert_eq!(
                shown.lines().filter(|line| line.contains(" # ")).count(),
                network.origins.len(),
                "{shown}"
            );
        }
    }

    #[test]
    fn the_list_for_programs_says_how_sure_each_network_is() {
        for network in built_in() {
            let listed = serde_json::to_value(Listed::new(&network).unwrap()).unwrap();
            assert_eq!(listed["name"], network.name.as_str());
            assert!(
                listed["sureness"].is_string() && !listed["sources"].as_array().unwrap().is_empty(),
                "{listed}"
            );
        }
        let listed = serde_json::to_value(
            Listed::new(&builtin::network("infiniband-edr").unwrap()).unwrap(),
        )
        .unwrap();
        assert_eq!(
            (&listed["year"], &listed["sureness"]),
            (&2020.into(), &"measured".into())
        );
    }
}
