//! Detection of files of other kinds that are given as a network, by their first lines.

use toml::Table;

use super::SCHEMA;
use crate::{
    error::{NetworkError, field_error},
    former_schemas,
};

/// Fields that every network file has.
const REQUIRED: [&str; 6] = [
    "schema",
    "name",
    "point_to_point",
    "point_to_point.rule",
    "nic",
    "nic.latency",
];

/// Requirements for a network file, for messages.
const NETWORK_FILE: &str = "a network file: TOML with schema = \"flowcast/network/2\", name, [point_to_point] with rule, and [nic] \
                            with latency and bandwidth, as `flowcast networks show gige-tcp` prints it";

/// Rejects a file of another tool.
///
/// # Errors
/// Names the kind of file, the line that shows it, and the expected format.
pub(super) fn refuse(text: &str) -> Result<(), NetworkError> {
    let lines = (1..).zip(text.lines().map(str::trim));
    // No network file starts with this; XML comments span several lines.
    let is_xml = text.trim_start().starts_with('<');
    let mut contents = lines.clone().filter(|(_, line)| match is_xml {
        true => line.starts_with('<') && !is_preamble(line),
        false => !line.is_empty() && !line.starts_with('#'),
    });
    let first = contents.next().or_else(|| {
        lines
            .clone()
            .find(|(_, line)| is_xml && line.starts_with('<'))
    });
    // Some tools start their files with a characteristic comment.
    let comment = lines
        .clone()
        .find(|(_, line)| !line.is_empty())
        .and_then(|(number, line)| Some((number, line, of_comment(line)?)));
    let content = first.and_then(|(number, line)| Some((number, line, of_content(line)?)));
    match comment.or(content) {
        None => Ok(()),
        Some((number, line, kind)) => {
            let line: String = line.chars().take(60).collect();
            let problem = format!("found {kind} (`{line}`), expected {NETWORK_FILE}");
            Err(field_error(&format!("line {number}"), problem))
        }
    }
}

/// `true` for lines of XML before the first element of a document.
fn is_preamble(line: &str) -> bool {
    ["<?xml", "<!DOCTYPE", "<!--"]
        .iter()
        .any(|start| line.starts_with(start))
}

fn of_comment(line: &str) -> Option<&'static str> {
    let known = [
        ("#DIMEMAS", "a Dimemas trace"),
        ("#Paraver", "a Paraver trace"),
        ("# schema: flowcast/samples", "samples, for `flowcast fit`"),
        ("# OSU", "benchmark output, for `flowcast fit`"),
    ];
    start_of(line, &known)
}

fn of_content(line: &str) -> Option<&'static str> {
    let known = [
        ("<platform", "a SimGrid platform"),
        ("<topology", "an hwloc topology"),
        ("<object", "an hwloc topology"),
        ("<", "XML"),
        ("{", "JSON"),
        ("SwitchName=", "Slurm's topology.conf"),
        ("BlockName=", "Slurm's topology.conf"),
        ("BlockSizes=", "Slurm's topology.conf"),
        ("rank ", "a rankfile"),
        ("num_ranks ", "a GOAL schedule"),
        ("rule-file-version-", "an Open MPI rules file"),
    ];
    let known = start_of(line, &known);
    // A rules file starts with its number of collectives.
    let mut words = line
        .split('#')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    known.or_else(|| {
        let is_rules = words.next().is_some_and(is_number) && words.all(is_number);
        is_rules.then_some("numbers, such as an Open MPI rules file")
    })
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn start_of(line: &str, known: &[(&str, &'static str)]) -> Option<&'static str> {
    let found = known.iter().find(|(start, _)| {
        line.get(..start.len())
            .is_some_and(|own| own.eq_ignore_ascii_case(start))
    });
    found.map(|(_, kind)| *kind)
}

/// Returns a better error than the parser's for a text that is not a network file or lacks required fields; `None` for other
/// errors.
pub(super) fn missing(error: &toml::de::Error, text: &str) -> Option<NetworkError> {
    let Ok(table) = text.parse::<Table>() else {
        return not_toml(text);
    };
    if !error.message().starts_with("missing field") {
        return None;
    }
    let schema = table.get("schema").and_then(toml::Value::as_str);
    if let Some(schema) = schema.filter(|name| ![SCHEMA, former_schemas::NETWORK].contains(name)) {
        return Some(NetworkError::Schema {
            found: schema.to_owned(),
            newest: SCHEMA,
        });
    }
    let missing: Vec<&str> = REQUIRED
        .into_iter()
        .filter(|field| super::value_at(&table, field).is_none())
        .collect();
    let named: Vec<&str> = missing
        .iter()
        .filter(|field| match field.split_once('.') {
            Some((section, _)) => !missing.contains(&section),
            None => true,
        })
        .copied()
        .collect();
    let first = *named.first()?;
    let found = format!("found no {}", named.join(", no "));
    Some(field_error(
        first,
        format!("{found}, expected {NETWORK_FILE}"),
    ))
}

/// The error for a text that is neither TOML nor intended as a network file.
fn not_toml(text: &str) -> Option<NetworkError> {
    let mut lines = (1..).zip(text.lines().map(str::trim));
    let (number, line) = lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#'))?;
    let line: String = line.chars().take(60).collect();
    let problem = format!("found `{line}`, expected {NETWORK_FILE}");
    let is_foreign = !text.contains("flowcast/network");
    is_foreign.then(|| field_error(&format!("line {number}"), problem))
}

#[cfg(test)]
mod tests {
    use crate::network::Network;

    fn refused(text: &str) -> String {
        Network::from_toml(text, &[]).unwrap_err().to_string()
    }

    #[test]
    fn files_of_other_tools_are_named_with_their_line() {
        for (text, expected) in [
            (
                "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"simgrid.dtd\">\n<platform version=\"4.1\">\n",
                "line 3: found a SimGrid platform (`<platform version=\"4.1\">`), expected a network file: TOML",
            ),
            (
                "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n",
                "line 2: found an hwloc topology",
            ),
            (
                "<?xml version='1.0'?>\n<!-- A platform\n  schema = \"flowcast/network/2\" -->\n<platform version=\"4.1\">\n",
                "line 4: found a SimGrid platform",
            ),
            ("<?xml version=\"1.0\nname = 1\n", "line 1: found XML"),
            (
                "# Slurm\nSwitchName=s0 Nodes=n[0-15]\n",
                "line 2: found Slurm's topology.conf",
            ),
            (
                "1 # number of collectives\n3 # collective\n",
                "line 1: found numbers, such as an Open MPI rules file",
            ),
            (
                "rule-file-version-2\n1\n",
                "line 1: found an Open MPI rules file",
            ),
            ("{\"schema\": 1}", "line 1: found JSON"),
            ("#DIMEMAS:\"a\"\n", "line 1: found a Dimemas trace"),
            (
                "# OSU MPI Latency Test v7\n8 1.0\n",
                "line 1: found benchmark output",
            ),
        ] {
            let message = refused(text);
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn one_error_names_all_missing_fields() {
        let message = refused("schema = \"flowcast/network/2\"\nname = \"a\"\n");
        assert!(
            message.starts_with(
                "point_to_point: found no point_to_point, no nic, expected a network file: TOML"
            ),
            "{message}"
        );
        let message = refused(
            "schema = \"flowcast/network/2\"\nname = \"a\"\n[point_to_point]\nrule = \"hockney\"\n[nic]\nbandwidth = \"1GB/s\"\n",
        );
        assert!(
            message.starts_with("nic.latency: found no nic.latency"),
            "{message}"
        );
        assert!(
            refused("# a\n0 -> 1 64KiB\n")
                .starts_with("line 2: found `0 -> 1 64KiB`, expected a network file")
        );
        assert!(refused("").starts_with("schema: found no schema"));
    }
}
