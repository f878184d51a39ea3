//! Networks by name: built-in, a network file, a Dimemas configuration, or a pattern of names.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use flowcast::{
    model::{
        builtin,
        dimemas_cfg::{DimemasConfig, is_dimemas_cfg},
        network::Network,
    },
    study::grid::full_name,
};
use glob::Pattern;

use crate::{Reader, Store, file_text};

/// Splits `KEY=VALUE` texts and completes the names of the fields.
///
/// ```
/// let given = flowcast_io::parse_overrides(&["latency = 5us".to_owned()])?;
/// assert_eq!(given, [("nic.latency".to_owned(), "5us".to_owned())]);
/// # Ok::<(), anyhow::Error>(())
/// ```
///
/// # Errors
/// A text without `=`.
pub fn parse_overrides(texts: &[String]) -> Result<Vec<(String, String)>> {
    texts
        .iter()
        .map(|text| {
            let (key, value) = text.split_once('=').ok_or_else(|| {
                anyhow!("--set: found `{text}`, expected KEY=VALUE such as nic.latency=5us")
            })?;
            Ok((full_name(key.trim()), value.trim().to_owned()))
        })
        .collect()
}

/// A network, with warnings about its file.
#[derive(Debug)]
pub struct LoadedNetwork {
    /// Network after the overrides.
    pub network: Network,
    /// Settings of the file that are not modelled.
    pub warnings: Vec<String>,
}

impl From<Network> for LoadedNetwork {
    fn from(network: Network) -> LoadedNetwork {
        LoadedNetwork {
            network,
            warnings: Vec::new(),
        }
    }
}

/// Loads a file of this name if there is one, otherwise a built-in network, otherwise one that the user has stored
/// ([`Store`]). The overrides are dotted field names with their values.
///
/// # Errors
/// An unknown network, or a fault in its file or in an override.
pub fn load_network(
    name: &str,
    overrides: &[(String, String)],
    reader: &mut dyn Reader,
) -> Result<LoadedNetwork> {
    let path = Path::new(name);
    let file = if path.is_file() {
        Some(path.to_owned())
    } else {
        kept(name)
    };
    if let Some(file) = file {
        load_file(&file, overrides, reader).with_context(|| file.display().to_string())
    } else if name.contains(['/', '.']) {
        let missing = io::Error::new(io::ErrorKind::NotFound, "no such file");
        Err(missing).with_context(|| format!("cannot read the network file {name}"))
    } else {
        Ok(builtin::network(name)?.with_overrides(overrides)?.into())
    }
}

/// File that the user has stored under a name. `None` if the name belongs to a built-in network.
fn kept(name: &str) -> Option<PathBuf> {
    let is_built_in = builtin::NETWORKS.iter().any(|(known, _)| *known == name);
    let file = Store::usual().filter(|_| !is_built_in)?.file(name).ok()?;
    file.is_file().then_some(file)
}

/// Loads all networks that match names and patterns of names (`gige-*`, `mine/*.toml`), in the order given.
///
/// # Errors
/// The errors of [`load_network`], and a pattern without a match.
pub fn load_networks(
    names: &[String],
    overrides: &[(String, String)],
    reader: &mut dyn Reader,
) -> Result<Vec<LoadedNetwork>> {
    let mut all = Vec::new();
    for name in names {
        if !name.contains(['*', '?', '[']) || Path::new(name).is_file() {
            all.push(load_network(name, overrides, reader)?);
            continue;
        }
        let expected = "a pattern such as 'gige-*' or 'mine/*.toml'";
        let pattern = Pattern::new(name).map_err(|error| {
            anyhow!(
                "--network: found `{name}` ({}), expected {expected}",
                error.msg
            )
        })?;
        let built_in = builtin::NETWORKS
            .map(|(name, _)| name)
            .into_iter()
            .filter(|name| pattern.matches(name))
            .map(str::to_owned);
        let files = glob::glob(name)?.collect::<Result<Vec<PathBuf>, _>>()?;
        let files = files
            .into_iter()
            .filter(|path| path.is_file())
            .map(|path| path.display().to_string());
        let found: Vec<String> = built_in.chain(files).collect();
        if found.is_empty() {
            return Err(anyhow!(
                "--network: found no match for `{name}`, expected a pattern of built-in networks or files"
            ));
        }
        for name in found {
            all.push(load_network(&name, overrides, reader)?);
        }
    }
    Ok(all)
}

fn load_file(
    path: &Path,
    overrides: &[(String, String)],
    reader: &mut dyn Reader,
) -> Result<LoadedNetwork> {
    let bytes = reader.bytes(path).context("cannot be read")?;
    let bytes = (*bytes).as_ref();
    if is_dimemas_cfg(bytes) {
        return load_dimemas_cfg(path, bytes, overrides, reader);
    }
    let text = file_text(path, bytes.to_vec())?;
    Ok(Network::from_toml(&text, overrides)?.into())
}

/// Reads a Dimemas configuration. Files that it names are searched in its folder.
fn load_dimemas_cfg(
    path: &Path,
    bytes: &[u8],
    overrides: &[(String, String)],
    reader: &mut dyn Reader,
) -> Result<LoadedNetwork> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let DimemasConfig {
        mut network,
        not_modelled,
    } = DimemasConfig::read(bytes, &mut |name| {
        Ok((*reader.bytes(&folder.join(name))?).as_ref().to_vec())
    })?;
    if network.name.is_empty() {
        network.name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
    }
    let warnings = not_modelled
        .into_iter()
        .map(|note| format!("{}: {note}", path.display()))
        .collect();
    Ok(LoadedNetwork {
        network: network.with_overrides(overrides)?,
        warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WholeFileReader;

    fn cfg(name: &str) -> String {
        format!(
            "{}/../../tests/data/dimemas-cfg/{name}",
            env!("CARGO_MANIFEST_DIR")
        )
    }

    fn set(key: &str, value: &str) -> Vec<(String, String)> {
        vec![(key.to_owned(), value.to_owned())]
    }

    #[test]
    fn a_dimemas_configuration_is_a_network_named_after_its_file_with_fields_that_can_be_set() {
        let loaded = load_network(
            &cfg("m_n4.cfg"),
            &set("machine.buses", "3"),
            &mut WholeFileReader,
        )
        .unwrap();
        assert_eq!(loaded.network.name, "m_n4");
        assert_eq!(loaded.network.machine.buses, 3);
        assert_eq!(loaded.network.machine.nodes[0].count, 4);
        assert_eq!(loaded.warnings, [""; 0]);
    }

    #[test]
    fn files_named_by_a_configuration_are_found_beside_it_and_its_notes_have_its_name() {
        let loaded = load_network(&cfg("every-record.cfg"), &[], &mut WholeFileReader).unwrap();
        assert!(
            loaded
                .warnings
                .iter()
                .all(|warning| warning.contains("every-record.cfg: "))
        );
        assert!(
            loaded
                .warnings
                .iter()
                .any(|warning| warning.contains("every-record.comms: line 2"))
        );
    }

    #[test]
    fn the_fields_of_the_interface_have_short_names() {
        let given =
            parse_overrides(&["latency = 5us".to_owned(), "sharing.alpha=1".to_owned()]).unwrap();
        assert_eq!(
            given,
            [set("nic.latency", "5us"), set("sharing.alpha", "1")].concat()
        );
    }

    #[test]
    fn a_wrong_override_of_a_configuration_is_named_with_its_file() {
        let error = format!(
            "{:#}",
            load_network(
                &cfg("m_n4.cfg"),
                &set("nic.latency", "5"),
                &mut WholeFileReader
            )
            .unwrap_err()
        );
        assert!(error.contains("m_n4.cfg: --set nic.latency=5"), "{error}");
    }
}
