//! The reference pages of the network file: their tables are generated from the fields, and the values in them are tested.

use super::*;
use crate::{
    builtin,
    section::{FieldType, SectionField},
};

macro_rules! page {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../../../docs/reference/", $name, ".md")),
        )
    };
}

/// Name and text of each page with tables of fields.
const PAGES: [(&str, &str); 5] = [
    page!("network-file"),
    page!("network-topology"),
    page!("network-sharing"),
    page!("network-machine"),
    page!("network-provenance"),
];

/// A field with a row in the table of its section, and the parts of its doc comment.
struct Row {
    field: SectionField,
    what: String,
    default: String,
    example: String,
}

impl Row {
    /// `None` for a field whose comment has neither a default nor an example: it has its own section, or only prose.
    fn new(field: &SectionField) -> Option<Row> {
        let text = field.docs.join("").trim().to_owned();
        let (rest, example) = text.split_once(" Example: ").unwrap_or((&text, ""));
        let (what, default) = rest.split_once(" Default: ").unwrap_or((rest, ""));
        let row = Row {
            field: *field,
            what: what.to_owned(),
            default: default.trim_end_matches('.').to_owned(),
            example: example.trim_end_matches('.').to_owned(),
        };
        (!row.default.is_empty() || !row.example.is_empty()).then_some(row)
    }

    fn unit(&self) -> &'static str {
        let units = [
            ("TimePerByte", "time per byte"),
            ("Time", "time"),
            ("Rate", "rate"),
            ("Bytes", "size"),
        ];
        let known = units
            .into_iter()
            .find(|(name, _)| self.field.kind.contains(name));
        known.map_or("", |(_, unit)| unit)
    }

    fn print(&self) -> String {
        let cells = [&self.what, &self.default, &self.example].map(|cell| cell.replace('|', "\\|"));
        let (name, unit) = (self.field.name, self.unit());
        format!("| `{name}` | {unit} | {} |\n", cells.join(" | "))
    }
}

/// Fields of a section by its name, in which `N` is an index of a list and `NAME` any name; `document` is the whole file.
fn fields(section: &str) -> &'static [SectionField] {
    let mut fields = NetworkFile::BELOW;
    for part in section.split('.').filter(|part| *part != "document") {
        let found = fields.iter().find(|field| field.name == part);
        fields = found
            .unwrap_or_else(|| panic!("{section} is no section"))
            .below;
    }
    fields
}

fn rows(section: &str) -> Vec<Row> {
    fields(section).iter().filter_map(Row::new).collect()
}

/// Section whose table of fields follows this line.
fn marked(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- fields of ")?.strip_suffix(" -->")
}

#[test]
fn the_tables_of_the_pages_are_printed_from_the_fields() {
    for (name, page) in PAGES {
        check_tables(name, page);
    }
}

/// Compares the tables of a page with the fields, or prints the page anew where `TRYCMD` is `overwrite`.
fn check_tables(name: &str, page: &str) {
    let (mut printed, mut lines) = (String::new(), page.lines().peekable());
    while let Some(line) = lines.next() {
        printed += line;
        printed.push('\n');
        let Some(section) = marked(line) else {
            continue;
        };
        while lines
            .next_if(|line| line.is_empty() || line.starts_with('|'))
            .is_some()
        {}
        printed += "\n| field | unit | what | default | example |\n|---|---|---|---|---|\n";
        rows(section).iter().for_each(|row| printed += &row.print());
        printed.push('\n');
    }
    if std::env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
        std::fs::write(format!("{folder}/{name}.md"), &printed).unwrap();
        return;
    }
    assert_eq!(
        printed, page,
        "{name}: TRYCMD=overwrite prints the tables anew"
    );
}

/// Sections with a table on one of the pages.
fn sections() -> Vec<&'static str> {
    let lines = PAGES.into_iter().flat_map(|(_, page)| page.lines());
    lines.filter_map(marked).collect()
}

#[test]
fn each_field_with_a_row_stands_on_a_page() {
    fn check(below: &[SectionField], section: &str) {
        let has_rows = below.iter().any(|field| Row::new(field).is_some());
        // Entries of several lists have the same fields.
        let has_table = sections()
            .iter()
            .any(|known| format!("{:?}", fields(known)) == format!("{below:?}"));
        assert!(has_table || !has_rows, "{section} has no table");
        for field in below {
            let is_value = field.below.is_empty() && !field.kind.is_empty();
            let name = field.name;
            assert!(
                !is_value || !field.docs.is_empty(),
                "{section}.{name} has no comment"
            );
            check(field.below, &format!("{section}.{}", field.name));
        }
    }
    check(NetworkFile::BELOW, "document");
}

/// A network with a value in a field and other fields that this field requires.
fn with_value(field: &str, value: &str) -> Result<Network, NetworkError> {
    let mut base = builtin::network("gige-tcp").expect("it is built in");
    base.machine.nodes = vec![Default::default()];
    base.machine.further_sites = vec![Default::default()];
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
fn each_field_takes_the_values_that_its_page_gives() {
    let (mut problems, mut tried) = (Vec::new(), 0);
    for section in sections() {
        // Pieces and records have fields that must be given together.
        if ["overheads", "intervals", "origins", "accuracy"]
            .iter()
            .any(|one| section.starts_with(one))
        {
            continue;
        }
        for row in rows(section) {
            let name = format!("{section}.{}", row.field.name).replace(".N.", ".0.");
            problems.extend(row_problems(name.trim_start_matches("document."), &row));
            tried += 1;
        }
    }
    assert!(tried > 80, "found {tried} fields");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Differences between the row of a field and the behaviour of the parser.
fn row_problems(name: &str, row: &Row) -> Vec<String> {
    let is_infinite = row.what.contains("0 is infinite");
    let has_zero = is_infinite || row.what.contains("0 is no limit") || row.default == "0";
    let example = row.example.trim_matches('`').trim_matches('"');
    let zero = has_zero.then_some("0").into_iter();
    // A list cannot be set as a whole.
    let values =
        zero.chain((!example.is_empty() && !example.starts_with(['[', '{'])).then_some(example));
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
