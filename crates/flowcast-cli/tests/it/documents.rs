//! Documents for programs: the fields of each document that `--json` prints, and their types.
//!
//! `tests/documents.txt` lists them for each command. Programs rely on the fields of a document. Fields may be added, and
//! are then added to the file by `TRYCMD=overwrite cargo test -p flowcast-cli --test it documents`; none may disappear or
//! change.

use std::{
    collections::BTreeSet,
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

#[test]
fn the_page_of_schemas_has_each_schema_and_kind() {
    let page = include_str!("../../../../docs/reference/schemas.md");
    for field in include_str!("../documents.txt").lines() {
        if let Some((".schema" | ".kind", name)) = field.trim().split_once(" = ") {
            let is_command = ["compile", "convert", "networks"].contains(&name);
            assert!(is_command || page.contains(&format!("`{name}`")), "{name}");
        }
    }
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
