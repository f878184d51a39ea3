//! `--set KEY=VALUE`: replacement of fields of a network file by dotted name.

use super::{NetworkFile, field_names, foreign, line_at, upgrade};
use crate::{
    error::{NetworkError, field_error},
    network::Network,
};
use flowcast_units::TimePerByte;
use toml::{Table, Value};

/// Pairs of fields that set the same quantity, in another form or for one model. Each `bandwidth` is also paired with its
/// `wire_rate`.
const TWINS: [(&str, &str); 5] = [
    ("nic.bandwidth", "nic.gap_per_byte"),
    ("nic.gap_per_byte", "nic.bandwidth"),
    ("nic.gap_per_byte", "nic.wire_rate"),
    ("nic.latency", "sharing.packet.latency"),
    ("sharing.alpha", "sharing.alpha_fair.alpha"),
];

/// Fields that are removed when `field` is set. When `field` is drawn, they change with it instead.
pub(crate) fn twins(field: &str) -> impl Iterator<Item = String> {
    let named = TWINS.iter().filter(move |(name, _)| *name == field);
    let section = field.strip_suffix(".bandwidth").into_iter();
    named
        .map(|(_, twin)| (*twin).to_owned())
        .chain(section.map(|section| format!("{section}.wire_rate")))
}

/// Replaces fields in a file's content and converts it into a network.
///
/// # Errors
/// A name is unknown, or a field rejects its value; the message names the override.
pub(crate) fn apply(
    mut table: Table,
    overrides: &[(String, String)],
) -> Result<Network, NetworkError> {
    for (key, _) in overrides {
        for twin in twins(key) {
            remove(&mut table, &twin);
            forget(&mut table, &twin);
        }
        forget(&mut table, upgrade::current_name(key));
    }
    for (key, value) in overrides {
        let current = upgrade::current_name(key);
        field_names::check(current)
            .map_err(|problem| field_error(&format!("--set {key}"), problem))?;
        let parts: Vec<&str> = current.split('.').collect();
        insert(&mut table, current, &parts, literal(current, value))?;
    }
    // The table is converted to text first, because only the text form reports the name of a rejected field.
    let merged = table.to_string();
    let file: NetworkFile = toml::from_str(&merged).map_err(|error| {
        foreign::missing(&error, &merged)
            .unwrap_or_else(|| override_error(error, &merged, overrides))
    })?;
    Network::try_from(file).map_err(|error| {
        let is_at_fault =
            |key: &str, field: &str| key != field && upgrade::current_name(key) == field;
        match &error {
            NetworkError::Field { field, problem } => match overrides
                .iter()
                .find(|(key, _)| is_at_fault(key, field))
            {
                Some((key, value)) => field_error(&format!("--set {key}={value}"), problem.clone()),
                None => error,
            },
            _ => error,
        }
    })
}

/// Removes a field at every place that a path matches; `*` matches every index of a list.
fn remove(table: &mut Table, field: &str) {
    fn below(value: &mut Value, parts: &[&str]) {
        match (value, parts) {
            (Value::Table(table), [name]) => drop(table.remove(*name)),
            (Value::Table(table), [name, rest @ ..]) => {
                table
                    .get_mut(*name)
                    .into_iter()
                    .for_each(|value| below(value, rest));
            }
            (Value::Array(items), [place, rest @ ..]) => {
                let chosen = items
                    .iter_mut()
                    .enumerate()
                    .filter(|(at, _)| *place == "*" || at.to_string() == *place);
                chosen.for_each(|(_, value)| below(value, rest));
            }
            _ => {}
        }
    }
    let parts: Vec<&str> = field.split('.').collect();
    let (first, rest) = parts.split_first().expect("a path has a name");
    table
        .get_mut(*first)
        .into_iter()
        .for_each(|value| below(value, rest));
}

/// Removes the evidence for a replaced value: its origin, its interval and the correlations with it.
fn forget(table: &mut Table, field: &str) {
    for section in ["origins", "intervals"] {
        if let Some(Value::Table(evidence)) = table.get_mut(section) {
            evidence.retain(|name, _| !matches(name, field));
            let correlations = evidence
                .iter_mut()
                .filter_map(|(_, value)| value.get_mut("correlations")?.as_table_mut());
            correlations
                .for_each(|correlations| correlations.retain(|name, _| !matches(name, field)));
        }
    }
}

fn matches(name: &str, field: &str) -> bool {
    name.split('.').count() == field.split('.').count()
        && name
            .split('.')
            .zip(field.split('.'))
            .all(|(a, b): (&str, &str)| a == b || a == "*" || b == "*")
}

/// Sets a value at a path of sections and list indices; `*` matches every index.
fn insert(
    section: &mut Table,
    key: &str,
    parts: &[&str],
    value: Value,
) -> Result<(), NetworkError> {
    let (name, rest) = parts.split_first().expect("a path has a name");
    if rest.is_empty() {
        section.insert((*name).to_owned(), value);
        return Ok(());
    }
    let is_list = rest[0] == "*" || rest[0].parse::<usize>().is_ok();
    match section.entry(*name).or_insert_with(|| {
        if is_list {
            Value::Array(Vec::new())
        } else {
            Value::Table(Table::new())
        }
    }) {
        Value::Table(table) => insert(table, key, rest, value),
        Value::Array(items) => insert_in_list(items, key, parts, value),
        _ => Err(field_error(key, format!("`{name}` is not a section"))),
    }
}

fn insert_in_list(
    items: &mut Vec<Value>,
    key: &str,
    parts: &[&str],
    value: Value,
) -> Result<(), NetworkError> {
    let (name, place, rest) = (parts[0], parts[1], &parts[2..]);
    // A machine without groups has one group with as many nodes as ranks. The first index refers to it.
    if items.is_empty() && name == "nodes" {
        items.push(Value::Table(Table::from_iter([(
            "count".to_owned(),
            Value::Integer(0),
        )])));
    }
    let last = items.len().saturating_sub(1);
    let chosen = match place.parse::<usize>() {
        Ok(index) if index <= last && !items.is_empty() => index..index + 1,
        _ if place == "*" && !items.is_empty() => 0..items.len(),
        _ => {
            let places = if items.is_empty() {
                "a list with entries".to_owned()
            } else {
                format!("an entry of the list, {name}.0 to {name}.{last}, or {name}.*")
            };
            let problem = format!("found `{place}`, expected {places}");
            return Err(field_error(key, problem));
        }
    };
    for item in &mut items[chosen] {
        match item {
            item if rest.is_empty() => *item = value.clone(),
            Value::Table(table) => insert(table, key, rest, value.clone())?,
            Value::Array(items) => {
                let inner: Vec<&str> = std::iter::once(name).chain(rest.iter().copied()).collect();
                insert_in_list(items, key, &inner, value.clone())?;
            }
            _ => {
                return Err(field_error(
                    key,
                    format!("`{name}.{place}` is not a section"),
                ));
            }
        }
    }
    Ok(())
}

/// Parses numbers and booleans as such and everything else as text: `3`, `0.5`, `true`, `44KB`, `flow-cuts`, with or without
/// quotes. A rate may be given by its inverse: `8ns/B`.
fn literal(field: &str, value: &str) -> Value {
    let is_rate = field.ends_with("bandwidth") || field.ends_with("wire_rate");
    if let (true, Ok(per_byte)) = (is_rate, TimePerByte::parse(value)) {
        return Value::String(per_byte.rate().to_string());
    }
    if let Ok(integer) = value.parse::<i64>() {
        Value::Integer(integer)
    } else if let Ok(number) = value.parse::<f64>() {
        Value::Float(number)
    } else if let Ok(truth) = value.parse::<bool>() {
        Value::Boolean(truth)
    } else {
        let quoted = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'));
        Value::String(quoted.unwrap_or(value).to_owned())
    }
}

/// Names the override at fault instead of a line of a text that the user did not write.
fn override_error(
    error: toml::de::Error,
    merged: &str,
    overrides: &[(String, String)],
) -> NetworkError {
    let name = line_at(&error, merged)
        .split('=')
        .next()
        .unwrap_or("")
        .trim();
    let culprit = overrides.iter().find(|(key, _)| {
        !name.is_empty() && upgrade::current_name(key).rsplit('.').next() == Some(name)
    });
    match culprit.or(if overrides.len() == 1 {
        overrides.first()
    } else {
        None
    }) {
        Some((key, value)) => {
            field_error(&format!("--set {key}={value}"), error.message().to_owned())
        }
        None => NetworkError::Malformed(Box::new(error)),
    }
}
