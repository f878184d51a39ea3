//! The network file: one TOML document that says what a message costs on a network.
//!
//! Each section belongs to one part of the model and every field carries its unit. A file that has a field nobody
//! reads is an error, so that a misspelt parameter cannot go unnoticed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::collective::Collectives;
use super::field_names;
use super::file_system::FileSystem;
use super::machine::Machine;
use super::sharing::Sharing;
use super::topology::Topology;
use flowcast_units::{Bytes, Rate, Time, TimePerByte};

/// The schema that this version reads and writes.
pub const SCHEMA: &str = "flowcast/network/1";

/// Why a network file or an override was refused.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The text is not a network file; the message names line, column and field.
    #[error("{0}")]
    Malformed(#[from] Box<toml::de::Error>),
    /// Another schema.
    #[error("schema: found `{0}`, expected `{SCHEMA}`")]
    Schema(String),
    /// Two fields that exclude each other, or neither of two of which one is needed.
    #[error("{field}: {problem}")]
    Field {
        /// Dotted name, as in `--set`.
        field: String,
        /// What was found and what was expected.
        problem: String,
    },
    /// The section `topology` makes no network; the message names the field.
    #[error("{0}")]
    Topology(String),
    /// A table of algorithms that cannot be followed.
    #[error(transparent)]
    Algorithms(#[from] super::algorithm::TableError),
    /// No built-in network of that name.
    #[error("no network is named `{0}`; built in are: {1}")]
    Unknown(String, String),
}

/// A network as the models see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Short name, as given to `--network`.
    pub name: String,
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// Where the numbers come from.
    #[serde(default)]
    pub source: String,
    /// What a single message costs.
    pub point_to_point: PointToPoint,
    /// The network interface of a node.
    pub nic: Nic,
    /// The links between racks, if they are slower than the sum of what they join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backbone: Option<Backbone>,
    /// The switches between the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// What messages do to each other while they are under way together.
    #[serde(default, skip_serializing_if = "Sharing::is_default")]
    pub sharing: Sharing,
    /// Nodes, links and buses, in Dimemas' terms.
    #[serde(default, skip_serializing_if = "Machine::is_default")]
    pub machine: Machine,
    /// What a collective operation costs.
    #[serde(default, skip_serializing_if = "Collectives::is_default")]
    pub collectives: Collectives,
    /// What reading and writing files costs.
    #[serde(default, skip_serializing_if = "FileSystem::is_default")]
    pub file_system: FileSystem,
    /// Confidence intervals of fitted fields, by dotted field name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, Interval>,
    /// How the numbers were obtained: host, kernel, versions, command, date, seed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provenance: BTreeMap<String, String>,
}

/// Which rule a message follows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointToPoint {
    /// The rule.
    pub rule: Rule,
    /// From this size on a sender waits for its receiver, whatever the trace says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendezvous_from: Option<Bytes>,
}

/// The rules for a single message (`docs/models.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// `T = L + size/bandwidth`, no processor time (seed of every other rule; RR-5910 section 3).
    Hockney,
    /// Hockney with the latency spent on the processors of both sides (Dimemas).
    Dimemas,
    /// Overhead on both processors, gap and gap per byte at the sending interface (LogGOPS).
    Loggops,
}

/// A node's network interface. Exactly one of `bandwidth` and `gap_per_byte` is given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    /// `L`: from the sender's last instruction to the receiver's first.
    pub latency: Time,
    /// Bytes per second of one flow alone; 0 is infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Rate>,
    /// `G` of LogGP, the inverse of the bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_per_byte: Option<TimePerByte>,
    /// `o`: processor time for each message on each side.
    #[serde(default)]
    pub overhead: Time,
    /// `g`: shortest time between two messages at an interface.
    #[serde(default)]
    pub gap: Time,
}

impl Nic {
    /// Time per byte, whichever way it was given.
    pub fn per_byte(&self) -> TimePerByte {
        match (self.gap_per_byte, self.bandwidth) {
            (Some(gap), _) => gap,
            (None, Some(rate)) => TimePerByte::from_rate(rate),
            (None, None) => TimePerByte::from_nanos(0.0),
        }
    }

    /// How long the bytes of one flow alone take, without latency; exact in whichever way the rate was given.
    pub fn time_for(&self, bytes: Bytes) -> Time {
        match (self.gap_per_byte, self.bandwidth) {
            (None, Some(rate)) => rate.time_for(bytes),
            _ => self.per_byte().time_for(bytes),
        }
    }

    /// Bytes per second, whichever way it was given; 0 is infinite.
    pub fn rate(&self) -> Rate {
        self.bandwidth.unwrap_or_else(|| self.per_byte().rate())
    }

    /// How long a message takes that meets no other: `T = L + size/bandwidth` (Hockney).
    pub fn lone_message(&self, size: Bytes) -> Time {
        self.latency + self.rate().time_for(size)
    }
}

/// The links between racks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backbone {
    /// Bytes per second in each direction.
    pub bandwidth: Rate,
}

/// A confidence interval, in the unit of its field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Lower end, with unit.
    pub low: String,
    /// Upper end, with unit.
    pub high: String,
    /// Confidence level, such as 0.95.
    pub level: f64,
}

impl Network {
    /// Reads a network file and applies `overrides`, pairs of dotted field name and value (`--set KEY=VALUE`).
    ///
    /// # Errors
    /// Malformed TOML, an unknown field, a value without its unit, or fields that exclude each other.
    pub fn from_toml(text: &str, overrides: &[(String, String)]) -> Result<Network, NetworkError> {
        let network: Network = if overrides.is_empty() {
            toml::from_str(text).map_err(Box::new)?
        } else {
            let mut table: toml::Table = toml::from_str(text).map_err(Box::new)?;
            for (key, value) in overrides {
                set_field(&mut table, key, value)?;
            }
            // Through text again, because only the text form reports the name of a refused field.
            let merged = table.to_string();
            toml::from_str(&merged).map_err(|error| override_error(error, &merged, overrides))?
        };
        network.validate()?;
        Ok(network)
    }

    /// The same network with fields replaced.
    ///
    /// # Errors
    /// As [`Network::from_toml`].
    pub fn with_overrides(&self, overrides: &[(String, String)]) -> Result<Network, NetworkError> {
        if overrides.is_empty() { Ok(self.clone()) } else { Network::from_toml(&self.to_toml(), overrides) }
    }

    /// The file's text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a network has only tables, texts and numbers")
    }

    fn validate(&self) -> Result<(), NetworkError> {
        if self.schema != SCHEMA {
            return Err(NetworkError::Schema(self.schema.clone()));
        }
        if self.nic.bandwidth.is_some() == self.nic.gap_per_byte.is_some() {
            return Err(NetworkError::Field {
                field: "nic.bandwidth".into(),
                problem: "expected exactly one of nic.bandwidth and nic.gap_per_byte".into(),
            });
        }
        if let Some(topology) = &self.topology {
            topology.tree().map_err(|error| NetworkError::Topology(error.to_string()))?;
        }
        if let Some(problem) = self.collectives.algorithms.as_ref().and_then(|table| table.check().err()) {
            return Err(NetworkError::Algorithms(problem));
        }
        let table = toml::Table::try_from(self).expect("a network has only tables, texts and numbers");
        refuse_impossible_numbers("", &toml::Value::Table(table))
    }
}

/// No field of any section may be negative, infinite or NaN.
fn refuse_impossible_numbers(name: &str, value: &toml::Value) -> Result<(), NetworkError> {
    let below = |part: &dyn fmt::Display| if name.is_empty() { part.to_string() } else { format!("{name}.{part}") };
    match value {
        toml::Value::Table(table) => table.iter().try_for_each(|(key, v)| refuse_impossible_numbers(&below(key), v)),
        toml::Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(at, v)| refuse_impossible_numbers(&below(&at), v))
        }
        toml::Value::Float(number) if !number.is_finite() || *number < 0.0 => {
            Err(field_error(name, format!("found `{number}`, expected a number that is finite and not negative")))
        }
        _ => Ok(()),
    }
}

fn set_field(table: &mut toml::Table, key: &str, value: &str) -> Result<(), NetworkError> {
    field_names::check(key)?;
    match key {
        "nic.bandwidth" => remove_field(table, "nic", "gap_per_byte"),
        "nic.gap_per_byte" => remove_field(table, "nic", "bandwidth"),
        _ => {}
    }
    let parts: Vec<&str> = key.split('.').collect();
    insert(table, key, &parts, literal(value))
}

/// Puts a value at the end of a path of sections and places in lists; `*` is every place.
fn insert(section: &mut toml::Table, key: &str, parts: &[&str], value: toml::Value) -> Result<(), NetworkError> {
    let (name, rest) = parts.split_first().expect("a path has a name");
    if rest.is_empty() {
        section.insert((*name).to_owned(), value);
        return Ok(());
    }
    let is_list = rest[0] == "*" || rest[0].parse::<usize>().is_ok();
    let empty = || if is_list { toml::Value::Array(Vec::new()) } else { toml::Value::Table(toml::Table::new()) };
    match section.entry(*name).or_insert_with(empty) {
        toml::Value::Table(table) => insert(table, key, rest, value),
        toml::Value::Array(items) => insert_in_list(items, key, parts, value),
        _ => Err(field_error(key, format!("`{name}` is not a section"))),
    }
}

fn insert_in_list(
    items: &mut Vec<toml::Value>,
    key: &str,
    parts: &[&str],
    value: toml::Value,
) -> Result<(), NetworkError> {
    let (name, place, rest) = (parts[0], parts[1], &parts[2..]);
    // Without groups there is one, of as many nodes as ranks: the first place stands for it.
    if items.is_empty() && name == "nodes" {
        items.push(toml::Value::Table(toml::Table::from_iter([("count".to_owned(), toml::Value::Integer(0))])));
    }
    let last = items.len().saturating_sub(1);
    let wrong = || {
        let places = if items.is_empty() {
            "a list that has places".to_owned()
        } else {
            format!("a place in the list, {name}.0 to {name}.{last}, or {name}.*")
        };
        field_error(key, format!("found `{place}`, expected {places}"))
    };
    let chosen = match place.parse::<usize>() {
        Ok(index) if index <= last && !items.is_empty() => index..index + 1,
        _ if place == "*" && !items.is_empty() => 0..items.len(),
        _ => return Err(wrong()),
    };
    for item in &mut items[chosen] {
        match item {
            item if rest.is_empty() => *item = value.clone(),
            toml::Value::Table(table) => insert(table, key, rest, value.clone())?,
            toml::Value::Array(items) => {
                let inner: Vec<&str> = std::iter::once(name).chain(rest.iter().copied()).collect();
                insert_in_list(items, key, &inner, value.clone())?;
            }
            _ => return Err(field_error(key, format!("`{name}.{place}` is not a section"))),
        }
    }
    Ok(())
}

fn remove_field(table: &mut toml::Table, section: &str, field: &str) {
    if let Some(section) = table.get_mut(section).and_then(toml::Value::as_table_mut) {
        section.remove(field);
    }
}

/// Numbers and truth values as such, everything else as text: `3`, `0.5`, `true`, `44KB`, `flow-cuts`.
fn literal(value: &str) -> toml::Value {
    if let Ok(integer) = value.parse::<i64>() {
        toml::Value::Integer(integer)
    } else if let Ok(number) = value.parse::<f64>() {
        toml::Value::Float(number)
    } else if let Ok(truth) = value.parse::<bool>() {
        toml::Value::Boolean(truth)
    } else {
        toml::Value::String(value.to_owned())
    }
}

pub(super) fn field_error(field: &str, problem: String) -> NetworkError {
    NetworkError::Field { field: field.to_owned(), problem }
}

/// Names the override at fault instead of a line of a text that the user never wrote.
fn override_error(error: toml::de::Error, merged: &str, overrides: &[(String, String)]) -> NetworkError {
    let line = error.span().and_then(|span| merged.get(..span.start)).map_or("", |before| {
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        merged[start..].lines().next().unwrap_or("")
    });
    let name = line.split('=').next().unwrap_or("").trim();
    let culprit = overrides.iter().find(|(key, _)| !name.is_empty() && key.rsplit('.').next() == Some(name));
    match culprit.or(if overrides.len() == 1 { overrides.first() } else { None }) {
        Some((key, value)) => field_error(&format!("--set {key}={value}"), error.message().to_owned()),
        None => NetworkError::Malformed(Box::new(error)),
    }
}
