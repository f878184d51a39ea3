//! Files of scenarios: named what-ifs of one program.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use flowcast::{
    Contention, Options,
    graph::{To, selector::Selector},
    model::{network::Network, quantity::Quantity},
    units::{Bytes, Node},
    why::{Cost, NoiseOptions, Scenario, parse_noise},
};
use serde::Deserialize;

use crate::{Reader, load_network, read_collectives, read_mapping};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenariosFile {
    #[serde(default)]
    scenario: Vec<ScenarioEntry>,
}

/// Fields of a scenario. A missing field, except the name, has the value of the command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioEntry {
    name: String,
    network: Option<String>,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    model: Option<String>,
    mapping: Option<String>,
    collectives: Option<String>,
    rendezvous_from: Option<String>,
    aggregate: Option<String>,
    #[serde(default)]
    slow_nodes: BTreeMap<String, f64>,
    #[serde(default)]
    slow_links: BTreeMap<String, f64>,
    #[serde(default)]
    costs: BTreeMap<String, toml::Value>,
    #[serde(default)]
    perfect_overlap: bool,
    noise: Option<String>,
}

/// Values for the fields that a scenario does not set.
pub struct ScenarioDefaults<'a> {
    /// Network after the overrides of the command.
    pub network: Option<&'a Network>,
    /// Overrides for networks that scenarios name.
    pub overrides: &'a [(String, String)],
    /// Model, mapping, collectives and rendezvous threshold.
    pub options: &'a Options,
    /// Options of noise. The scenario determines the distribution.
    pub noise: &'a NoiseOptions,
}

/// Parses the scenarios of a TOML text, in its order. `name` is the name of the text in messages.
///
/// # Errors
/// A text with another structure; an invalid network, mapping or selector. The message names the text and the scenario.
pub fn parse_scenarios(
    name: &str,
    text: &str,
    defaults: &ScenarioDefaults<'_>,
    reader: &mut dyn Reader,
) -> Result<Vec<Scenario>> {
    let file: ScenariosFile = toml::from_str(text).with_context(|| name.to_owned())?;
    if file.scenario.is_empty() {
        bail!("{name}: found no [[scenario]], expected at least one");
    }
    file.scenario
        .iter()
        .map(|entry| {
            scenario(entry, defaults, reader)
                .with_context(|| format!("{name}: scenario `{}`", entry.name))
        })
        .collect()
}

fn scenario(
    entry: &ScenarioEntry,
    defaults: &ScenarioDefaults<'_>,
    reader: &mut dyn Reader,
) -> Result<Scenario> {
    let own: Vec<(String, String)> = entry
        .set
        .iter()
        .map(|(key, value)| (key.clone(), text_of(value)))
        .collect();
    let network = match (&entry.network, defaults.network) {
        (Some(name), _) => {
            load_network(name, &[defaults.overrides, &own].concat(), reader)?.network
        }
        (None, Some(network)) => network.with_overrides(&own)?,
        (None, None) => return Err(flowcast::Error::NoNetwork.into()),
    };
    let mut options = defaults.options.clone();
    if let Some(model) = &entry.model {
        options.contention = Contention::named(model)?;
    }
    if let Some(mapping) = &entry.mapping {
        options.mapping = Some(read_mapping(mapping, reader)?);
    }
    if let Some(how) = &entry.collectives {
        options.collectives = read_collectives(how, reader)?;
    }
    if let Some(size) = &entry.rendezvous_from {
        options.rendezvous_from = Some(Bytes::parse(size)?);
    }
    let mut costs: Vec<Cost> = entry
        .costs
        .iter()
        .map(|(key, value)| cost(key, value))
        .collect::<Result<_>>()?;
    for (node, rate) in &entry.slow_links {
        costs.push(Cost::slow_link(node_of(node)?, *rate)?);
    }
    if entry.perfect_overlap {
        costs.extend(Cost::perfect_overlap());
    }
    let noise = entry.noise.as_deref().map(|text| {
        let noise = parse_noise(text, None)?;
        Ok::<_, flowcast::Error>(NoiseOptions {
            noise,
            ..defaults.noise.clone()
        })
    });
    Ok(Scenario {
        name: entry.name.clone(),
        network,
        options,
        slow_nodes: entry
            .slow_nodes
            .iter()
            .map(|(node, by)| Ok((node_of(node)?, *by)))
            .collect::<Result<_>>()?,
        aggregate: entry.aggregate.as_deref().map(Bytes::parse).transpose()?,
        costs,
        noise: noise.transpose()?,
    })
}

fn node_of(text: &str) -> Result<Node> {
    text.parse()
        .map(Node)
        .with_context(|| format!("found the node `{text}`, expected its number"))
}

/// Parses a cost: a value with its unit, a factor for computation and collectives, or `x2` for twice the present value.
fn cost(key: &str, value: &toml::Value) -> Result<Cost> {
    let selector = Selector::parse(key)?;
    let text = text_of(value);
    let expected = "expected a value with its unit, such as 5us, or a factor, such as x2";
    let to = match text.strip_prefix('x').map(str::parse::<f64>) {
        Some(Ok(factor)) if factor >= 0.0 && factor.is_finite() => To::Factor(factor),
        Some(_) => bail!("{key}: found `{text}`, {expected}"),
        None => {
            let value = Quantity::parse(&text).and_then(|value| selector.number(value));
            To::Value(value.with_context(|| format!("{key}: found `{text}`, {expected}"))?)
        }
    };
    Ok(Cost { selector, to })
}

fn text_of(value: &toml::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
