//! Names of all fields of a network file, and suggestions for misspelt ones.
//!
//! The names come from the declarations of the sections (`section!`). Types that serde reads in another way are listed in
//! `section.rs`.

use std::sync::LazyLock;

use super::NetworkFile;
use crate::{
    near,
    section::{FieldType, SectionField},
};
use flowcast_units::CollectiveOp;

/// Rejects a dotted name that no network file has; the error suggests similar names.
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

/// `true` if the key matches a name from the list, in which `N` stands for any index.
fn is_same(name: &str, key: &str) -> bool {
    let (mut known, mut given) = (name.split('.'), key.split('.'));
    loop {
        match (known.next(), given.next()) {
            (None, None) => return true,
            (Some("N"), Some(part)) if place(part) => {}
            // Any name is allowed here.
            (Some("NAME"), Some(part)) if !part.is_empty() => {}
            (Some(a), Some(b)) if a == b => {}
            _ => return false,
        }
    }
}

fn place(part: &str) -> bool {
    part == "*" || part.parse::<usize>().is_ok()
}

/// All dotted names, including sections and whole lists. `N` stands for any index in a list, `NAME` for any name.
pub fn all() -> &'static [String] {
    &ALL
}

/// Collected once, because a file may have many origins.
static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut names = MAPPINGS.map(str::to_owned).to_vec();
    collect(NetworkFile::BELOW, "", &mut names);
    names.sort();
    names
});

/// Fields below a variant of an enum.
const MAPPINGS: [&str; 3] = [
    "machine.mapping.list",
    "machine.mapping.list.N",
    "machine.mapping.per-node",
];

/// Collects the names of the fields of a section, whose name ends with a dot, and of all fields below.
fn collect(fields: &[SectionField], section: &str, names: &mut Vec<String>) {
    for field in fields {
        let parts = match section.ends_with("rows.") {
            true => CollectiveOp::ALL.map(CollectiveOp::name).to_vec(),
            false => vec![field.name],
        };
        for part in parts {
            let name = format!("{section}{part}");
            collect(field.below, &format!("{name}."), names);
            names.push(name);
        }
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
    fn a_misspelt_name_is_refused_with_similar_names() {
        let error = check("machine.scheduler.qantum").unwrap_err();
        assert!(error.contains("machine.scheduler.quantum"), "{error}");
        let error = check("nic.latncy").unwrap_err();
        assert!(error.contains("did you mean nic.latency"), "{error}");
        assert!(check("machine.nodes.first.cpus").is_err());
    }
}
