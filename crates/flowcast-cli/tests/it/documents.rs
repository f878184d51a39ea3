//! Documents for programs: the fields of each document that `--json` prints, and their types.
//!
//! `tests/documents.txt` lists them for each command. Programs rely on the fields of a document. Fields may be added, and
//! are then added to the file by `TRYCMD=overwrite cargo test -p flowcast-cli --test it documents`; none may disappear or
//! change.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Commands that read files of `examples`, each with one JSON document on its standard output.
pub(crate) const COMMANDS: &[&str] = &[
    "bench flows figure5.pattern -n gige-lam --repetitions 1",
    "bench packet figure5.pattern -n gige-tcp --set sharing.window=64KiB --repetitions 1",
    "bench replay ring.dim -n gige-tcp --repetitions 1",
    "bench sweep ring.dim -n gige-tcp --repetitions 1 --count 2",
    "compile ring.dim -o {out}/ring.fct",
    "convert ring.dim --format goal -o {out}/ring.goal",
    "explain collectives lu.S.4.dim.gz",
    "explain gradient ring.dim -n gige-tcp --model independent",
    "explain path ring.dim -n gige-tcp --model independent",
    "explain slack ring.dim -n gige-tcp --model independent",
    "fit taurus-calls.csv --only taurus",
    "fit taurus-calls.csv -o {out}/taurus.toml",
    "fit osu-latency.txt",
    "fit --model all pair-round-trips.csv",
    "fit gige-samples.csv",
    "hpl choose --n 1500 --ranks 8 --ranks-per-node 4 -n infiniband-edr --compute dgemm.csv --block 64 --replicates 1",
    "hpl fit linpack-runs.csv -n infiniband-edr --compute dgemm.csv --ranks-per-node 4",
    "lab list",
    "lab profiles",
    "networks",
    "networks show gige-tcp",
    "place broadcast.steps -n gige-lam --nodes 4 --ranks-per-node 2",
    "predict figure5.pattern -n gige-lam",
    "predict heat.rec -n gige-tcp",
    "predict heat.rec -n gige-tcp -n infiniband-edr",
    "predict is.S.4.dim.gz -n gige-tcp",
    "predict lu.S.4.dim.gz ring.dim -n gige-tcp",
    "predict is.S.4.dim.gz --rail gige-tcp --rail myrinet-gm",
    "predict ring.dim -n gige-tcp --explain",
    "predict ring.dim -n gige-tcp --noise exponential:5us --replicates 5",
    "predict ring.dim -n gige-tcp --scenarios scenarios.toml",
    "predict ring.goal -n gige-tcp --goal-params 1000,10,10,1,0",
    "rails advise -n gige-tcp -n infiniband-2006",
    "rails advise is.S.4.dim.gz -n gige-tcp -n myrinet-gm",
    "rails compare --count 1 --burst 2 --scheduler vft",
    "rails optimum --messages burst.csv --rail a=1,0.001,1,1us --rail b=2,0.002,1,1us",
    "rails simulate --messages burst.csv --rail a=1,0.001,1,1us --rail b=2,0.002,1,1us --scheduler vft",
    "sensitivity ring.dim -n gige-tcp --model independent --parameter nic.latency --range 0us..1ms",
];

#[test]
fn documents_keep_their_fields() {
    let out = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut shapes = String::new();
    for command in COMMANDS {
        let words = command.replace("{out}", out.path().to_str().unwrap());
        let mut run = Command::new(env!("CARGO_BIN_EXE_flowcast"));
        run.args(words.split(' '))
            .arg("--json")
            .current_dir(&examples)
            .env("XDG_DATA_HOME", "/nonexistent")
            // Hides the labs of other users.
            .env("XDG_RUNTIME_DIR", out.path());
        let printed = run.output().unwrap();
        let document: Value = serde_json::from_slice(&printed.stdout).unwrap_or_else(|error| {
            panic!(
                "{command}: {error}: {}",
                String::from_utf8_lossy(&printed.stderr)
            )
        });
        let mut fields = BTreeSet::new();
        collect_fields(&document, "", &mut fields);
        shapes += &format!("{command}\n");
        fields
            .iter()
            .for_each(|field| shapes += &format!("    {field}\n"));
    }
    let kept: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents.txt");
    if std::env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        fs::write(&kept, &shapes).unwrap();
    }
    let expected = fs::read_to_string(&kept).unwrap();
    let changed: Vec<&str> = expected
        .lines()
        .filter(|line| !shapes.lines().any(|own| own == *line))
        .collect();
    assert!(
        shapes == expected,
        "fields that went or changed: {changed:#?}\nall fields:\n{shapes}"
    );
}

const PAGE: &str = include_str!("../../../../docs/reference/schemas.md");

#[test]
fn the_page_of_schemas_has_each_schema() {
    for field in include_str!("../documents.txt").lines() {
        if let Some((".schema", name)) = field.trim().split_once(" = ") {
            assert!(PAGE.contains(&format!("`{name}`")), "{name}");
        }
    }
}

/// Kinds that no command of the list above prints and that no source of a command names in `Document::new`.
const ELSEWHERE: [(&str, &str); 3] = [
    ("app-validation", "validate"),
    ("run-comparison", "compare"),
    ("validation", "validate"),
];

/// Kinds of documents by command, from the documents of this test and from the sources.
fn kinds() -> BTreeMap<String, BTreeSet<String>> {
    let mut kinds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (kind, command) in ELSEWHERE {
        kinds.entry(command.into()).or_default().insert(kind.into());
    }
    let mut command = "";
    for line in include_str!("../documents.txt").lines() {
        match line.trim().split_once(".kind = ") {
            Some(("", kind)) => {
                kinds.entry(command.into()).or_default().insert(kind.into());
            }
            _ if !line.starts_with(' ') => command = line.split(' ').next().unwrap_or_default(),
            _ => {}
        }
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for file in sources(&crates) {
        let text = fs::read_to_string(&file).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let created = product.split("Document::new(\"").skip(1);
        for kind in created.filter_map(|rest| rest.split('"').next()) {
            let name = file.to_string_lossy();
            let own = name.split_once("/commands/").map(|(_, path)| {
                let end = path.find(['_', '/', '.']).unwrap_or(path.len());
                path[..end].to_owned()
            });
            match own {
                Some(command) => drop(kinds.entry(command).or_default().insert(kind.into())),
                None => assert!(
                    kinds.values().any(|known| known.contains(kind)),
                    "{kind}: found no command for it"
                ),
            }
        }
    }
    kinds
}

/// Sources of the crates that create documents.
fn sources(crates: &Path) -> Vec<PathBuf> {
    let names = [
        "flowcast",
        "flowcast-cli",
        "flowcast-place",
        "flowcast-report",
    ];
    let mut folders: Vec<PathBuf> = names.map(|name| crates.join(name).join("src")).into();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files
}

#[test]
fn the_page_of_schemas_lists_the_kinds_that_the_sources_create() {
    let mark = "| command | kinds |\n|---|---|\n";
    let (before, rest) = PAGE.split_once(mark).unwrap();
    let after = rest.split_once("\n\n").unwrap().1;
    let rows: Vec<String> = kinds()
        .iter()
        .map(|(command, kinds)| {
            let kinds: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
            format!("| `{command}` | {} |", kinds.join(", "))
        })
        .collect();
    let printed = format!("{before}{mark}{}\n\n{after}", rows.join("\n"));
    if std::env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/schemas.md"
        );
        fs::write(path, &printed).unwrap();
    }
    assert_eq!(printed, PAGE, "TRYCMD=overwrite prints the table anew");
}

/// Collects the path of each value with its type. Elements of arrays are listed under `[]`, and the values of `schema` and
/// `kind` are listed too.
fn collect_fields(value: &Value, path: &str, fields: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                collect_fields(member, &format!("{path}.{name}"), fields);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            for element in elements {
                collect_fields(element, &format!("{path}[]"), fields);
            }
        }
        Value::Array(_) => drop(fields.insert(format!("{path} array"))),
        Value::String(text) if path.ends_with(".schema") || path == ".kind" => {
            fields.insert(format!("{path} = {text}"));
        }
        Value::String(_) => drop(fields.insert(format!("{path} string"))),
        Value::Number(_) => drop(fields.insert(format!("{path} number"))),
        Value::Bool(_) => drop(fields.insert(format!("{path} boolean"))),
        Value::Null => drop(fields.insert(format!("{path} null"))),
    }
}
