//! Statements of the command on a result are also in its JSON and on its page, and disturbed measurements stay marked.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

use crate::{
    documents::COMMANDS,
    outcome::{json, said},
    validate::JOURNAL,
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
const SESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd");

fn flowcast(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    command.current_dir(folder).args(arguments);
    command.output().unwrap()
}

fn example(name: &str) -> String {
    format!("{EXAMPLES}/{name}")
}

/// Texts of all lists called `notes`.
fn notes(json: &Value, found: &mut BTreeSet<String>) {
    match json {
        Value::Object(fields) => {
            let own = fields.get("notes").and_then(Value::as_array);
            let texts = own.into_iter().flatten().filter_map(Value::as_str);
            found.extend(texts.map(str::to_owned));
            fields.values().for_each(|value| notes(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| notes(value, found)),
        _ => {}
    }
}

/// Intervals that a text shows as `(LO to HI, 90 %)`, without their probability.
fn intervals(text: &str) -> BTreeSet<&str> {
    let parts = text
        .split('(')
        .filter_map(|part| part.split_once(", 90 %)"));
    parts.map(|(interval, _)| interval).collect()
}

fn unescaped(page: &str) -> String {
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(page.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Runs a command three times, for its text, its JSON and its page.
fn three_ways(arguments: &[&str]) -> (String, Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let text = flowcast(folder.path(), arguments);
    assert!(text.status.success(), "{}", said(&text));
    let all = [arguments, &["--json", "--report", "page.html"]].concat();
    let json = json(&flowcast(folder.path(), &all));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    (
        String::from_utf8(text.stdout).unwrap(),
        json,
        unescaped(&page),
    )
}

/// Kinds of results on networks with stand-in values, and kinds without an example in [`COMMANDS`].
const MARKED: &[&str] = &[
    "collectives choose -n {sessions}/choose.in/machine.toml --ranks 8,16 --sizes 64KiB,1MiB",
    "compare lu.S.4.dim.gz lu.S.4.dim.gz -n ethernet-25g-tcp --model independent",
    "explain gradient lu.S.4.dim.gz -n ethernet-25g-tcp --model independent",
    "explain path lu.S.4.dim.gz -n ethernet-25g-tcp --model independent",
    "explain slack lu.S.4.dim.gz -n ethernet-25g-tcp --model independent",
    "fit taurus-calls.csv --pieces 3",
    "fit reprompi.txt",
    "mapping fill --ranks 8 --nodes 4",
    "measure pairs --show pairs.csv",
    "place is.S.4.dim.gz -n ethernet-25g-tcp --nodes 2 --ranks-per-node 2",
    "predict heat.rec -n ethernet-25g-tcp",
    "predict lu.S.4.dim.gz -n ethernet-25g-tcp --mapping fill --mapping 2-per-node",
    "predict lu.S.4.dim.gz -n ethernet-25g-tcp --scenarios scenarios.toml",
    "predict lu.S.4.dim.gz -n infiniband-hdr -n ethernet-25g-tcp",
    "predict lu.S.4.dim.gz lu.S.4.dim.gz -n ethernet-25g-tcp",
    "predict two-in-one-out.pattern -n ethernet-25g-tcp",
    "rails advise -n ethernet-25g-tcp -n infiniband-hdr",
    "rails advise is.S.4.dim.gz -n ethernet-25g-tcp -n infiniband-hdr",
    "sensitivity ring.dim -n ethernet-25g-tcp --model independent --parameter nic.latency --range 0us..1ms",
    "validate pattern --no-run --report {out}/page.html",
];

/// Runs a command with CSV tables, and returns its lines outside of tables and its page, if it writes one.
fn words_and_page(folder: &Path, command: &[&str]) -> (Vec<String>, Option<String>) {
    let page = folder.join("page.html");
    let asked = ["--report", page.to_str().unwrap()];
    let with_page = [command, &["--tables", "csv"], &asked].concat();
    let mut seen = flowcast(Path::new(EXAMPLES), &with_page);
    if seen.status.code() == Some(2) && said(&seen).contains("--report") {
        seen = flowcast(Path::new(EXAMPLES), &with_page[..with_page.len() - 2]);
    }
    assert!(
        matches!(seen.status.code(), Some(0 | 1)),
        "{command:?}: {}",
        said(&seen)
    );
    let text = String::from_utf8(seen.stdout).unwrap();
    let words = text.lines().filter_map(|line| line.strip_prefix("# "));
    let page = fs::read_to_string(&page).ok();
    (
        words.map(|line| line.trim().to_owned()).collect(),
        page.map(|page| unescaped(&page)),
    )
}

/// All texts in a document.
fn texts<'a>(json: &'a Value, found: &mut Vec<&'a str>) {
    match json {
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::String(text) => found.push(text),
        _ => {}
    }
}

/// Statements of the command that are missing in its document or on its page, and notes of the document that the command
/// does not print.
fn differences(command: &str, json: &Value, words: &[String], page: Option<&str>) -> Vec<String> {
    let mut fields = Vec::new();
    texts(json, &mut fields);
    let mut lacking = Vec::new();
    for line in words {
        let note = line
            .strip_prefix("note: ")
            .or(line.starts_with("* ").then_some(line));
        let is_margin = line.contains("margin: ") || line.contains("no margin known");
        let has_margin = || {
            fields
                .iter()
                .any(|field| field.contains("margin") && line.ends_with(field))
        };
        if note.is_some_and(|note| !fields.contains(&note)) || is_margin && !has_margin() {
            lacking.push(format!("{command}: JSON without `{line}`"));
        }
        let is_heading = line.ends_with(':') || line.starts_with("report: ");
        if page.is_some_and(|page| !is_heading && !page.contains(line.as_str())) {
            lacking.push(format!("{command}: page without `{line}`"));
        }
    }
    let mut sentences = BTreeSet::new();
    notes(json, &mut sentences);
    let is_said = |sentence: &String| words.iter().any(|line| line.contains(sentence.as_str()));
    let unsaid = sentences.iter().filter(|sentence| !is_said(sentence));
    lacking.extend(unsaid.map(|sentence| format!("{command}: command without `{sentence}`")));
    if command.contains("ethernet-25g-tcp") && !sentences.iter().any(|note| note.starts_with("* "))
    {
        lacking.push(format!("{command}: no word on values that stand in"));
    }
    lacking
}

#[test]
fn the_command_document_and_page_of_every_kind_of_result_agree() {
    let (mut lacking, mut pages) = (Vec::new(), 0);
    for command in COMMANDS.iter().chain(MARKED) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("page.html.journal"), JOURNAL).unwrap();
        let line = command.replace("{out}", folder.path().to_str().unwrap());
        let line = line.replace("{sessions}", SESSIONS);
        let parts: Vec<&str> = line.split(' ').collect();
        let (words, page) = words_and_page(folder.path(), &parts);
        let asked = [&parts[..], &["--json"]].concat();
        let printed = flowcast(Path::new(EXAMPLES), &asked).stdout;
        let document = serde_json::from_slice(&printed).unwrap();
        lacking.extend(differences(command, &document, &words, page.as_deref()));
        pages += usize::from(page.is_some());
    }
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
    assert!(pages > 20, "{pages} pages");
}

#[test]
fn a_sweep_includes_the_notes_on_its_networks() {
    let folder = tempfile::tempdir().unwrap();
    let lu = example("lu.S.4.dim.gz");
    let grid = [
        "sweep",
        &lu,
        "-n",
        "gige-tcp",
        "-n",
        "ethernet-25g-tcp",
        "--grid",
        "latency=1us..10us:2",
    ];
    let seen = flowcast(
        folder.path(),
        &[&grid[..], &["--report", "page.html"]].concat(),
    );
    let lines = flowcast(folder.path(), &[&grid[..], &["--json"]].concat());
    let head = String::from_utf8(lines.stdout).unwrap();
    let head: Value = serde_json::from_str(head.lines().next().unwrap()).unwrap();
    let page = unescaped(&fs::read_to_string(folder.path().join("page.html")).unwrap());
    let (mut own, errors) = (BTreeSet::new(), said(&seen));
    notes(&head, &mut own);
    assert!(
        own.iter()
            .any(|note| note.starts_with("* nic.latency of ethernet-25g-tcp")),
        "{own:?}"
    );
    for note in own {
        assert!(errors.contains(&note), "command without `{note}`");
        assert!(page.contains(&note), "page without `{note}`");
    }
}

#[test]
fn networks_whose_intervals_overlap_are_not_called_the_fastest() {
    let lu = example("lu.S.4.dim.gz");
    let close = "not distinguishable from the fastest at 90 %";
    let (text, json, page) = three_ways(&[
        "predict",
        &lu,
        "-n",
        "infiniband-hdr",
        "-n",
        "infiniband-edr",
    ]);
    let first = text.lines().next().unwrap();
    assert!(first.contains(close), "{first}");
    assert_eq!(json["predictions"][0]["standing"], close);
    assert!(page.contains(close) && !page.contains("ratio fastest\""));
    let (text, json, _) = three_ways(&["predict", &lu, "-n", "gige-tcp", "-n", "infiniband-hdr"]);
    assert!(
        text.starts_with("shortest prediction: infiniband-hdr"),
        "{text}"
    );
    assert_eq!(json["predictions"][0]["interval_s"], Value::Null);
}

#[test]
fn an_interval_is_omitted_on_request() {
    let lu = example("lu.S.4.dim.gz");
    let (text, json, page) = three_ways(&["predict", &lu, "-n", "infiniband-hdr", "--no-interval"]);
    for field in ["interval_s", "interval_level", "interval_covers"] {
        assert_eq!(json[field], Value::Null);
    }
    assert!(
        intervals(&text).is_empty() && !text.contains("no margin known"),
        "{text}"
    );
    assert!(
        text.contains("margin: left out, as requested") && page.contains("left out, as requested")
    );
}

/// Copy of the example's recording that is marked as disturbed.
fn disturbed_recording(folder: &Path) -> PathBuf {
    let copy = folder.join("heat.rec");
    fs::create_dir(&copy).unwrap();
    for file in fs::read_dir(example("heat.rec")).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let note = r#"{"schema":"flowcast/recording/1","kind":"recording","provenance":{"disturbed_by":"other programs take 42 % of the processors"}}"#;
    fs::write(copy.join("provenance.json"), note).unwrap();
    copy
}

#[test]
fn every_command_reports_that_a_recording_is_of_a_busy_machine() {
    let folder = tempfile::tempdir().unwrap();
    disturbed_recording(folder.path());
    let mark = "made on a busy machine (other programs take 42 % of the processors)";
    let compiled = flowcast(folder.path(), &["compile", "heat.rec", "-o", "heat.fct"]);
    assert!(compiled.status.success(), "{}", said(&compiled));
    for arguments in [
        &["record", "--show", "heat.rec"][..],
        &["predict", "heat.rec", "-n", "gige-tcp"],
        &["predict", "heat.fct", "-n", "gige-tcp"],
    ] {
        let text = flowcast(folder.path(), arguments);
        let text = String::from_utf8(text.stdout).unwrap();
        assert!(text.contains(mark), "{arguments:?}: {text}");
        let all = [arguments, &["--json"]].concat();
        let mut sentences = BTreeSet::new();
        notes(&json(&flowcast(folder.path(), &all)), &mut sentences);
        assert!(
            sentences.iter().any(|note| note.contains(mark)),
            "{sentences:?}"
        );
    }
}

#[test]
fn the_clock_of_computations_can_be_chosen_only_for_recordings() {
    let (folder, recording) = (tempfile::tempdir().unwrap(), example("heat.rec"));
    let predicted = |compute: &str| {
        let arguments = [
            "predict",
            &recording,
            "-n",
            "gige-tcp",
            "--json",
            "--compute",
            compute,
        ];
        json(&flowcast(folder.path(), &arguments))
    };
    for (compute, takes, other) in [
        (
            "wall",
            "computation is measured in wall time as requested",
            "--compute cpu",
        ),
        (
            "cpu",
            "computation is measured in thread CPU time as requested",
            "--compute wall",
        ),
    ] {
        let mut sentences = BTreeSet::new();
        notes(&predicted(compute), &mut sentences);
        let note = sentences.iter().find(|note| note.starts_with(takes));
        assert!(
            note.is_some_and(|note| note.contains(other)),
            "{sentences:?}"
        );
    }
    let lu = example("lu.S.4.dim.gz");
    let refused = flowcast(
        folder.path(),
        &["predict", &lu, "-n", "gige-tcp", "--compute", "cpu"],
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said(&refused).contains("expected a recording"),
        "{}",
        said(&refused)
    );
}

#[test]
fn no_command_stores_runs_of_a_busy_machine_in_an_accuracy_record() {
    let folder = tempfile::tempdir().unwrap();
    let recording = disturbed_recording(folder.path());
    fs::rename(recording, folder.path().join("heat.rec.kept")).unwrap();
    let ranks = 4;
    let times = format!(
        r#"{{"timed":{{"total_s":0.1,"communication_s":{zeros},"computation_s":{zeros},"calls_s":{{}},"regions_s":{{}}}}}}"#,
        zeros = serde_json::json!(vec![0.01; ranks])
    );
    let journal = [
        r#"{"lab":null,"command":["mpirun","./heat"],"schema":"flowcast/journal/1","kind":"app-validation"}"#,
        r#"{"disturbed-by":"other programs take 42 % of the processors"}"#,
        r#"{"recorded":"heat.rec.kept"}"#,
        &times,
    ];
    fs::write(
        folder.path().join("heat.html.journal"),
        journal.join("\n") + "\n",
    )
    .unwrap();
    let arguments = [
        "validate",
        "app",
        "--no-run",
        "-n",
        "gige-tcp",
        "--model",
        "fair",
        "--report",
        "heat.html",
    ];
    let seen = flowcast(folder.path(), &[&arguments[..], &["--json"]].concat());
    let mut sentences = BTreeSet::new();
    notes(&json(&seen), &mut sentences);
    assert!(
        sentences.iter().any(|note| note.contains("busy machine")),
        "{sentences:?}"
    );
    let page = fs::read_to_string(folder.path().join("heat.html")).unwrap();
    assert!(page.contains("the runs were made on a busy machine"));
    let refused = flowcast(
        folder.path(),
        &[&arguments[..], &["--accuracy", "net.toml"]].concat(),
    );
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(
        said(&refused).contains("--accuracy: found runs on a busy machine"),
        "{}",
        said(&refused)
    );
    assert!(!folder.path().join("net.toml").exists());
}

#[test]
fn samples_of_a_busy_machine_mark_the_fit_and_predictions_on_its_network() {
    let folder = tempfile::tempdir().unwrap();
    let samples = fs::read_to_string(example("gige-samples.csv")).unwrap();
    let mark = "other programs take 42 % of the processors";
    fs::write(
        folder.path().join("busy.csv"),
        samples.replacen(
            "# origin:",
            &format!("# disturbed_by: {mark}\n# origin:"),
            1,
        ),
    )
    .unwrap();
    let lu = example("lu.S.4.dim.gz");
    for arguments in [
        &["fit", "busy.csv", "-o", "busy.toml"][..],
        &["predict", &lu, "-n", "busy.toml"],
    ] {
        let text = flowcast(folder.path(), arguments).stdout;
        let text = String::from_utf8(text).unwrap();
        let mut sentences = BTreeSet::new();
        let all = [arguments, &["--json"]].concat();
        notes(&json(&flowcast(folder.path(), &all)), &mut sentences);
        let note = sentences.iter().find(|note| note.contains(mark));
        assert!(
            note.is_some_and(|note| text.contains(note)),
            "{arguments:?}: {text}"
        );
    }
}

#[test]
fn tables_of_a_replay_contain_the_notes_of_its_prediction() {
    let folder = tempfile::tempdir().unwrap();
    let lu = example("lu.S.4.dim.gz");
    let arguments = [
        "predict",
        &lu,
        "-n",
        "ethernet-25g-tcp",
        "--write",
        "ranks=ranks.csv",
        "--json",
    ];
    let printed = json(&flowcast(folder.path(), &arguments));
    let mut sentences = BTreeSet::new();
    notes(&printed, &mut sentences);
    let table = fs::read_to_string(folder.path().join("ranks.csv")).unwrap();
    let line = table
        .lines()
        .find(|line| line.starts_with("# notes: "))
        .unwrap();
    assert!(
        !sentences.is_empty() && sentences.iter().all(|note| line.contains(note)),
        "{line}"
    );
}

#[test]
fn advice_on_rails_marks_stand_ins_and_names_only_known_interfaces() {
    let folder = tempfile::tempdir().unwrap();
    let networks = ["-n", "infiniband-hdr", "-n", "infiniband-hdr"];
    let advice = flowcast(
        folder.path(),
        &[&["rails", "advise"][..], &networks].concat(),
    );
    let text = String::from_utf8(advice.stdout).unwrap();
    for part in [
        "IFACE_1,IFACE_2",
        "--name: IFACE_1 for",
        "TCP over Ethernet",
        "nic.count",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("btl_tcp_if_include infiniband"), "{text}");
    let lu = example("lu.S.4.dim.gz");
    let set = ["predict", &lu, "-n", "gige-tcp", "--set", "nic.count=2"];
    let text = String::from_utf8(flowcast(folder.path(), &set).stdout).unwrap();
    assert!(
        text.contains("rails advise") && text.contains("undivided"),
        "{text}"
    );
}
