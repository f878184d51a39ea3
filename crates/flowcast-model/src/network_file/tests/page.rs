//! The reference page of the network file says what the parser does: its tables of fields are read and tried.

use std::collections::BTreeMap;

use super::*;
use crate::builtin;

const PAGE: &str = include_str!("../../../../docs/reference/network-file.md");

/// One row of a table of fields.
struct PageField {
    /// Dotted name, as `--set` takes it.
    name: String,
    /// The other cells by their heading.
    cells: BTreeMap<String, String>,
}

impl PageField {
    fn cell(&self, heading: &str) -> &str {
        self.cells.get(heading).map_or("", String::as_str)
    }
}

/// The fields of all tables whose first column is `field`, below the headings of sections.
fn fields() -> Vec<PageField> {
    let (mut section, mut tables, mut headings) = ("", 0, Vec::new());
    let mut fields = Vec::new();
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ").or(line.strip_prefix("### ")) {
            (section, tables) = (heading, 0);
        }
        let Some(row) = line.strip_prefix('|') else {
            headings.clear();
            continue;
        };
        if row.starts_with("---") {
            continue;
        }
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if headings.is_empty() {
            tables += usize::from(cells[0] == "field");
            headings = cells;
            continue;
        }
        let Some(prefix) = prefix(section, tables).filter(|_| headings[0] == "field") else {
            continue;
        };
        for name in cells[0].split(", ").filter(|name| name.starts_with('`')) {
            let cells = headings.iter().zip(&cells);
            let cells = cells.map(|(heading, cell)| ((*heading).to_owned(), (*cell).to_owned()));
            let name = format!("{prefix}{}", name.trim_matches('`'));
            let cells = cells.collect();
            fields.push(PageField { name, cells });
        }
    }
    fields
}

/// The section of a table's fields; none of fields that stand in lists without a fixed place.
fn prefix(section: &str, table: usize) -> Option<String> {
    Some(match (section, table) {
        ("The document", _) => String::new(),
        ("machine", 2) => "machine.nodes.0.".to_owned(),
        ("overheads" | "linpack" | "intervals, origins, accuracy, fit, provenance", _) => {
            return None;
        }
        (section, _) if section.starts_with("sharing") || field_names::check(section).is_ok() => {
            format!("{section}.")
        }
        _ => return None,
    })
}

/// A network with a value in a field, and with what the field needs beside it.
fn with_value(field: &str, value: &str) -> Result<Network, NetworkError> {
    let mut base = builtin::network("gige-tcp").expect("it is built in");
    base.machine.nodes = vec![Default::default()];
    let section = match field {
        "topology.nodes_per_switch" => "[topology]\ntorus = [4, 4]\n",
        _ if field.starts_with("topology.") => "[topology]\nfat_tree = 4\n",
        "bus.nodes" => "[bus]\nbandwidth = \"1GB/s\"\n",
        _ => "",
    };
    let beside = match field {
        "topology.planes" => Some(("nic.count", "4")),
        "sharing.closed_loop.transient" => Some(("sharing.packet.window", "64KiB")),
        _ => None,
    };
    let values = beside.into_iter().chain([(field, value)]);
    let values: Vec<_> = values
        .map(|(field, value)| (field.to_owned(), value.to_owned()))
        .collect();
    Network::from_toml(&format!("{}\n{section}", base.to_toml()), &values)
}

#[test]
fn each_field_of_the_page_is_one_and_takes_the_values_that_the_page_gives() {
    let fields = fields();
    assert!(fields.len() > 80, "found {} fields", fields.len());
    let problems: Vec<String> = fields.iter().flat_map(problems).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Where the parser does not do what the row of a field says.
fn problems(field: &PageField) -> Vec<String> {
    let name = &field.name;
    if field_names::check(name).is_err() {
        return vec![format!("{name} is no field")];
    }
    let what = field.cell("what");
    let is_infinite = what.contains("0 is infinite");
    let has_zero = is_infinite || what.contains("0 is no limit") || field.cell("default") == "0";
    let example = field.cell("example").trim_matches('`').trim_matches('"');
    let zero = has_zero.then_some("0").into_iter();
    let values = zero.chain((!example.is_empty()).then_some(example));
    let refused = values.filter_map(|value| {
        let error = with_value(name, value).err()?;
        Some(format!("{name} = {value}: {error}"))
    });
    let mut problems: Vec<String> = refused.collect();
    let infinite = || ["0", "0B/s"].map(|value| with_value(name, value).ok());
    if is_infinite && !matches!(infinite(), [Some(bare), Some(with_unit)] if bare == with_unit) {
        problems.push(format!("{name} = 0 is not infinite"));
    }
    problems
}

#[test]
fn a_bare_number_is_refused_with_the_way_to_write_it() {
    for (field, expected) in [
        ("machine.nodes.0.intra_bandwidth", "1Gbit/s"),
        ("nic.latency", "4.7us"),
        ("point_to_point.rendezvous_from", "64KiB"),
    ] {
        let message = with_value(field, "5").unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert!(with_value(field, "0.5").is_err());
    }
}
