//! `flowcast networks`: the built-in networks and their files.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use flowcast::{
    model::{builtin, network::Network, network_file::upgrade::upgraded, origin::Origin},
    report::topology_plot,
    table::{Document, figure, rows},
    units::Rounded,
};
use flowcast_io::{KeptNetwork, Store};
use serde_json::Value as Json;

use flowcast_terminal::{
    files::{Output, declare, read_own_text, write_text},
    network_args::{load, parse_overrides},
    output::Format,
    print_out, println_out, say,
};

/// List, print, draw, save and upgrade network files
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast networks\n  flowcast networks show gige-tcp > mine.toml\n  \
                        flowcast networks save mine.toml --name cluster\n  flowcast predict cg.rec --network cluster\n  \
                        flowcast networks draw mine.toml -o mine.svg\n  \
                        flowcast networks upgrade mine.toml"
)]
pub(crate) struct Networks {
    /// Machine-readable output
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<NetworkAction>,
}

#[derive(Debug, Subcommand)]
enum NetworkAction {
    /// Print the network file (TOML) of a network
    Show {
        /// Built-in or saved network, or file to check and print in full
        name: String,
        /// Replace a field, such as nic.latency=5us (repeatable)
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
    },
    /// Draw the switches and cables of a network with a topology
    Draw {
        /// Built-in or saved network, or file
        name: String,
        /// Replace a field, such as topology.torus=[4,4] (repeatable)
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
        /// Output file of the drawing
        #[arg(short, long, value_name = "FILE.svg")]
        output: PathBuf,
    },
    /// Save a network file in the user's data folder, for use by its name
    Save {
        /// Network file to save
        file: PathBuf,
        /// Name to use instead of the name in the file
        #[arg(long)]
        name: Option<String>,
    },
    /// Remove a saved network
    Remove {
        /// Name of the network
        name: String,
    },
    /// Rewrite a network file in the present schema; comments stay
    Upgrade {
        /// Network file of any schema
        file: PathBuf,
        /// Output file; without it, the input file is replaced
        #[arg(short, long, value_name = "FILE.toml")]
        output: Option<PathBuf>,
    },
}

impl Networks {
    /// Prints the list or the file.
    pub(crate) fn run(self) -> Result<()> {
        match self.action {
            Some(NetworkAction::Show { name, overrides }) => {
                let network = load(&name, &parse_overrides(&overrides)?)?;
                if self.json {
                    println_out!("{}", serde_json::to_string(&network.to_table())?)
                } else {
                    print_out!("{}", with_sources(&network))
                }
            }
            Some(NetworkAction::Draw {
                name,
                overrides,
                output,
            }) => draw(&load(&name, &parse_overrides(&overrides)?)?, &output)?,
            Some(NetworkAction::Save { file, name }) => save(&file, name)?,
            Some(NetworkAction::Remove { name }) => store()?.remove(&name)?,
            Some(NetworkAction::Upgrade { file, output }) => {
                upgrade(&file, output.as_deref().unwrap_or(&file))?
            }
            None => {
                let networks: Vec<Network> = builtin::NETWORKS
                    .iter()
                    .map(|(name, _)| builtin::network(name))
                    .collect::<Result<_, _>>()?;
                let kept = Store::usual().map_or(Ok(Vec::new()), |store| store.list())?;
                let json = self.json;
                Format { json }.print(&listed(&networks, &kept)?)?
            }
        }
        Ok(())
    }
}

fn store() -> Result<Store> {
    Store::usual().context("found no home folder, expected $XDG_DATA_HOME or $HOME")
}

fn save(file: &Path, name: Option<String>) -> Result<()> {
    let text = read_own_text(file)?;
    let network = Network::from_toml(&text, &[]).with_context(|| file.display().to_string())?;
    let name = name.unwrap_or(network.name);
    ensure!(
        builtin::NETWORKS.iter().all(|(known, _)| *known != name),
        "--name: found `{name}`, which is a built-in network, expected another name"
    );
    let (place, replaces) = store()?.save(&name, &text)?;
    say!(
        "flowcast: note: {} {}",
        if replaces { "replaced" } else { "wrote" },
        place.display()
    );
    Ok(())
}

fn draw(network: &Network, output: &Path) -> Result<()> {
    declare([], [Output::new("-o", output)])?;
    ensure!(
        output.extension().and_then(|ending| ending.to_str()) == Some("svg"),
        "-o: found {}, expected a file that ends in .svg",
        output.display()
    );
    let Some(topology) = &network.topology else {
        bail!(
            "{}: found no [topology], expected one (--set topology.fat_tree=8, for example)",
            network.name
        );
    };
    let drawing = topology_plot::svg(topology, network.nic.rate(), &network.name)?;
    write_text(output, &drawing)
}

fn upgrade(file: &Path, output: &Path) -> Result<()> {
    declare([], [Output::new("-o", output)])?;
    let (text, place) = (read_own_text(file)?, || file.display().to_string());
    let upgraded = upgraded(&text).with_context(place)?;
    let current = upgraded.as_deref().unwrap_or(&text);
    Network::from_toml(current, &[]).with_context(place)?;
    if upgraded.is_none() && output == file {
        say!(
            "flowcast: note: {} already has the current schema",
            file.display()
        );
        return Ok(());
    }
    write_text(output, current)
}

/// List of networks with a short description of each. Networks of the user have the day and the hosts of their measurement.
fn listed(networks: &[Network], kept: &[KeptNetwork]) -> Result<Document> {
    let built_in = rows(networks)
        .cell("name", |network| &network.name)
        .cell("year", |network| {
            network.evidence().and_then(|evidence| evidence.year)
        })
        .cell("origin", |network| {
            network.evidence().map(|evidence| evidence.kind.name())
        })
        .cell("latency", |network| network.nic.latency)
        .cell("bandwidth", |network| figure(Rounded(network.nic.rate())))
        .cell("source", |network| {
            network.evidence().map(|evidence| evidence.source)
        });
    let own = rows(kept)
        .column("name", "saved", |kept| &kept.name)
        .column("date", "date", |kept| of_network(kept, "date"))
        .column("hosts", "hosts", |kept| {
            let keys = ["hosts", "path", "host"];
            keys.into_iter().find_map(|key| of_network(kept, key))
        })
        .field("source", |kept| {
            kept.network.as_ref().ok().map(|network| &network.source)
        })
        .field("error", |kept| kept.network.as_ref().err())
        .cell("source", |kept| match &kept.network {
            Ok(network) => &network.source,
            Err(error) => error,
        });
    let files = networks
        .iter()
        .map(in_list)
        .collect::<Result<Vec<Json>>>()?;
    Ok(Document::new("networks")
        .field("networks", files)
        .shown(built_in)
        .table("kept", own))
}

fn of_network(kept: &KeptNetwork, key: &str) -> Option<String> {
    let network = kept.network.as_ref().ok()?;
    network.provenance.get(key).cloned()
}

/// JSON form of a network's file, with the reliability of its values, and its sources.
fn in_list(network: &Network) -> Result<Json> {
    let mut file = serde_json::to_value(network.to_table())?;
    let evidence = network.evidence();
    let sources = network.origins.values().map(|origin| origin.text.as_str());
    file["year"] = evidence.and_then(|evidence| evidence.year).into();
    file["sureness"] = evidence.map(|evidence| evidence.kind.name()).into();
    file["sources"] = sources.collect::<BTreeSet<_>>().into_iter().collect();
    Ok(file)
}

/// Network file with a comment after each value that has an origin: its reliability, year and short source.
fn with_sources(network: &Network) -> String {
    let text = network.to_toml();
    let (values, evidence) = text.split_at(text.find("\n[origins").unwrap_or(text.len()));
    let (mut section, mut lists, mut out) = (String::new(), BTreeMap::new(), String::new());
    for line in values.lines() {
        if let Some(list) = line.strip_prefix("[[") {
            let list = list.trim_end_matches(']');
            let place: &mut usize = lists.entry(list).or_default();
            section = format!("{list}.{place}");
            *place += 1;
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

/// Column at which comments start.
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
    fn a_network_file_with_sources_contains_the_same_network() {
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
    fn the_json_list_has_the_reliability_of_each_network() {
        for network in built_in() {
            let listed = in_list(&network).unwrap();
            assert_eq!(listed["name"], network.name.as_str());
            assert!(
                listed["sureness"].is_string() && !listed["sources"].as_array().unwrap().is_empty(),
                "{listed}"
            );
        }
        let listed = in_list(&builtin::network("infiniband-edr").unwrap()).unwrap();
        assert_eq!(
            (&listed["year"], &listed["sureness"]),
            (&2020.into(), &"measured".into())
        );
    }
}
