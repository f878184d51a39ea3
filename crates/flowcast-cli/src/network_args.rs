//! `--network` and `--set`, the same for every command that needs a network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use flowcast::model::dimemas_cfg::{DimemasConfig, is_dimemas_cfg};
use flowcast::model::sharing::model::Model;
use flowcast::model::{builtin, network::Network};
use glob::Pattern;

use crate::files::note_read;

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

/// The fields of the interface, which are set most, have short names.
pub(crate) const SHORT_NAMES: [&str; 5] = ["latency", "bandwidth", "overhead", "gap", "gap_per_byte"];

/// The field's name in network files.
pub(crate) fn full_name(key: &str) -> String {
    if SHORT_NAMES.contains(&key) { format!("nic.{key}") } else { key.to_owned() }
}

/// Splits `KEY=VALUE` texts.
pub(crate) fn parse_overrides(texts: &[String]) -> Result<Vec<(String, String)>> {
    let split = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| anyhow!("--set: found `{text}`, expected KEY=VALUE such as nic.latency=5us"))?;
        Ok((full_name(key.trim()), value.trim().to_owned()))
    };
    texts.iter().map(split).collect()
}

/// The fields of the network whose rate each model takes in its own kind.
const RATES: [&str; 4] = ["nic.bandwidth", "backbone.bandwidth", "bus.bandwidth", "topology."];

/// Says on standard error which kind of rate was set, as `model` takes it, if one was among `asked`.
pub(crate) fn tell_rate_kind(asked: &[String], model: &str) {
    let is_rate = |name: &&String| name.ends_with(".bandwidth") && RATES.iter().any(|rate| name.starts_with(rate));
    let set: Vec<&str> = asked.iter().filter(is_rate).map(String::as_str).collect();
    if !set.is_empty() {
        let kind = if model == Model::Packet.name() { "wire rate" } else { "goodput" };
        eprintln!("flowcast: note: {} is taken as {kind}, as {model} counts", set.join(", "));
    }
}

/// A network and what its file says beyond it.
#[derive(Debug)]
pub(crate) struct LoadedNetwork {
    /// The network, overrides applied.
    pub network: Network,
    /// What is set in the file and not modelled.
    pub warnings: Vec<String>,
}

impl LoadedNetwork {
    /// Prints the warnings and gives the network.
    pub(crate) fn announced(self) -> Network {
        for warning in &self.warnings {
            eprintln!("flowcast: note: {warning}");
        }
        self.network
    }
}

impl From<Network> for LoadedNetwork {
    fn from(network: Network) -> LoadedNetwork {
        LoadedNetwork { network, warnings: Vec::new() }
    }
}

/// A file if there is one of that name, else a built-in network.
pub(crate) fn load(name: &str, overrides: &[(String, String)]) -> Result<LoadedNetwork> {
    let path = Path::new(name);
    if path.is_file() {
        load_file(path, overrides).with_context(|| path.display().to_string())
    } else if name.contains(['/', '.']) {
        Err(anyhow!("cannot read the network file {name}: no such file"))
    } else {
        Ok(builtin::network(name)?.with_overrides(overrides)?.into())
    }
}

/// All networks that names and patterns of names mean, in their order.
pub(crate) fn load_all(names: &[String], overrides: &[(String, String)]) -> Result<Vec<LoadedNetwork>> {
    let mut all = Vec::new();
    for name in names {
        if !name.contains(['*', '?', '[']) || Path::new(name).is_file() {
            all.push(load(name, overrides)?);
            continue;
        }
        let expected = "a pattern such as 'gige-*' or 'mine/*.toml'";
        let pattern = Pattern::new(name)
            .map_err(|error| anyhow!("--network: found `{name}` ({}), expected {expected}", error.msg))?;
        let built_in =
            builtin::NETWORKS.map(|(name, _)| name).into_iter().filter(|name| pattern.matches(name)).map(str::to_owned);
        let files = glob::glob(name)?.collect::<Result<Vec<PathBuf>, _>>()?;
        let files = files.into_iter().filter(|path| path.is_file()).map(|path| path.display().to_string());
        let found: Vec<String> = built_in.chain(files).collect();
        if found.is_empty() {
            return Err(anyhow!(
                "--network: found no network for `{name}`, expected built-in networks or files that it matches"
            ));
        }
        for name in found {
            all.push(load(&name, overrides)?);
        }
    }
    Ok(all)
}

fn load_file(path: &Path, overrides: &[(String, String)]) -> Result<LoadedNetwork> {
    note_read(path);
    let bytes = fs::read(path).context("cannot be read")?;
    if is_dimemas_cfg(&bytes) {
        return load_dimemas_cfg(path, &bytes, overrides);
    }
    let text = String::from_utf8(bytes).ok().context("found bytes that are not UTF-8, expected text")?;
    Ok(Network::from_toml(&text, overrides)?.into())
}

/// Files that the configuration names are looked for beside it.
fn load_dimemas_cfg(path: &Path, bytes: &[u8], overrides: &[(String, String)]) -> Result<LoadedNetwork> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let DimemasConfig { mut network, not_modelled } = DimemasConfig::read(bytes, &mut |name| {
        note_read(&folder.join(name));
        fs::read(folder.join(name))
    })?;
    if network.name.is_empty() {
        network.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    let warnings = not_modelled.into_iter().map(|note| format!("{}: {note}", path.display())).collect();
    Ok(LoadedNetwork { network: network.with_overrides(overrides)?, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cfg(name: &str) -> String {
        format!("{}/../../tests/data/dimemas-cfg/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    fn set(key: &str, value: &str) -> Vec<(String, String)> {
        vec![(key.to_owned(), value.to_owned())]
    }

    #[test]
    fn a_dimemas_configuration_is_a_network_named_after_its_file_with_fields_that_can_be_set() {
        let loaded = load(&cfg("m_n4.cfg"), &set("machine.buses", "3")).unwrap();
        assert_eq!(loaded.network.name, "m_n4");
        assert_eq!(loaded.network.machine.buses, 3);
        assert_eq!(loaded.network.machine.nodes[0].count, 4);
        assert_eq!(loaded.warnings, [""; 0]);
    }

    #[test]
    fn files_that_a_configuration_names_are_found_beside_it_and_notes_bear_its_name() {
        let loaded = load(&cfg("every-record.cfg"), &[]).unwrap();
        assert!(loaded.warnings.iter().all(|warning| warning.contains("every-record.cfg: ")));
        assert!(loaded.warnings.iter().any(|warning| warning.contains("every-record.comms: line 2")));
    }

    #[test]
    fn the_fields_of_the_interface_have_short_names() {
        let given = parse_overrides(&["latency = 5us".to_owned(), "sharing.alpha=1".to_owned()]).unwrap();
        assert_eq!(given, [set("nic.latency", "5us"), set("sharing.alpha", "1")].concat());
    }

    #[test]
    fn a_wrong_override_of_a_configuration_is_named_with_its_file() {
        let error = format!("{:#}", load(&cfg("m_n4.cfg"), &set("nic.latency", "5")).unwrap_err());
        assert!(error.contains("m_n4.cfg: --set nic.latency=5"), "{error}");
    }
}
