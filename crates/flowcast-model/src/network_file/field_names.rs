//! The names of all fields of a network file, and suggestions for a misspelt one.
//!
//! The names are taken from the types that a file is read into, so that the list cannot fall behind.

use std::{iter, sync::LazyLock};

use serde::{
    Deserialize, Deserializer,
    de::{
        Error as _, IntoDeserializer, Visitor,
        value::{Error, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};

use super::NetworkFile;
use crate::near;
use flowcast_units::CollectiveOp;

/// Refuses a dotted name that no network file has; the error suggests the names that are near.
pub(crate) fn check(key: &str) -> Result<(), String> {
    if ALL.iter().any(|name| is_same(name, key)) {
        return Ok(());
    }
    let (section, name) = key.split_once('.').unwrap_or(("", key));
    Err(match near::not_modelled(section, name) {
        Some(absent) => format!("found no such field; {absent}"),
        None => format!(
            "found no such field{}",
            near::question(key, ALL.iter().map(String::as_str))
        ),
    })
}

/// Whether a name from the list, in which `N` is any place of a list, is this one.
fn is_same(name: &str, key: &str) -> bool {
    let (mut known, mut given) = (name.split('.'), key.split('.'));
    loop {
        match (known.next(), given.next()) {
            (None, None) => return true,
            (Some("N"), Some(part)) if place(part) => {}
            // Anything may be noted under these.
            (Some("NAME"), Some(part)) if !part.is_empty() => {}
            (Some(a), Some(b)) if a == b => {}
            _ => return false,
        }
    }
}

fn place(part: &str) -> bool {
    part == "*" || part.parse::<usize>().is_ok()
}

/// All dotted names, sections and lists as a whole among them; `N` stands for any place of a list, `NAME` for any name.
pub fn all() -> &'static [String] {
    &ALL
}

/// Collected once, since a file may have many origins.
static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut names = MAPPINGS.map(str::to_owned).to_vec();
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let parts = match path.last() {
            Some(&"rows") => CollectiveOp::ALL.map(CollectiveOp::name).to_vec(),
            _ => parts_at(&path),
        };
        for part in parts {
            let below: Vec<&'static str> = path.iter().copied().chain([part]).collect();
            names.push(below.join("."));
            open.push(below);
        }
    }
    names.sort();
    names.dedup();
    names
});

/// What stands below a variant of an enum.
const MAPPINGS: [&str; 3] = [
    "machine.mapping.list",
    "machine.mapping.list.N",
    "machine.mapping.per-node",
];

/// The names below a section or a list of the file; none below a value.
fn parts_at(path: &[&'static str]) -> Vec<&'static str> {
    let mut parts = Vec::new();
    let reader = PathReader {
        path,
        parts: &mut parts,
    };
    // It ends with an error wherever it ends: there is no file behind it.
    let _ = NetworkFile::deserialize(reader);
    parts
}

/// Reads a file in which nothing but one path is there, and takes the names at its end from the type that is read.
struct PathReader<'a> {
    path: &'a [&'static str],
    parts: &'a mut Vec<&'static str>,
}

impl<'a> PathReader<'a> {
    /// The next name of the path and the reader of what stands there; at the end of the path the names are `parts`.
    fn step(self, parts: &[&'static str]) -> Result<(&'static str, PathReader<'a>), Error> {
        match self.path.split_first() {
            Some((name, path)) => Ok((name, PathReader { path, ..self })),
            None => {
                self.parts.extend_from_slice(parts);
                Err(Error::custom("the path ends"))
            }
        }
    }
}

impl<'de> Deserializer<'de> for PathReader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a value"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let step = self.step(fields)?;
        visitor.visit_map(MapDeserializer::new(iter::once(step)))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let step = self.step(&["NAME"])?;
        visitor.visit_map(MapDeserializer::new(iter::once(step)))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let (_, item) = self.step(&["N"])?;
        visitor.visit_seq(SeqDeserializer::new(iter::once(item)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct
        tuple_struct enum identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de> for PathReader<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_kind_are_known() {
        for name in [
            "nic.latency",
            "machine.nodes.0.cpus",
            "machine.nodes.*.intra_latency",
            "machine.wide_area.flight_times.1.0",
            "machine.wide_area.connections.2.first.size",
            "machine.scheduler.quantum",
            "machine.random.latency",
            "collectives.rows.Bcast",
            "collectives.default",
            "collectives.algorithms.base",
            "collectives.reduction",
            "file_system.requests",
            "provenance.host",
            "machine.mapping.per-node",
            "sharing.flow_cuts.io_out",
            "topology.levels.0.wire_rate",
            "nic.duplex",
            "bus.nodes",
            "accuracy.0.quantiles.1",
        ] {
            assert!(check(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_misspelt_name_is_refused_with_those_that_are_near() {
        let error = check("machine.scheduler.qantum").unwrap_err();
        assert!(error.contains("machine.scheduler.quantum"), "{error}");
        let error = check("nic.latncy").unwrap_err();
        assert!(error.contains("did you mean nic.latency"), "{error}");
        assert!(check("machine.nodes.first.cpus").is_err());
    }
}
