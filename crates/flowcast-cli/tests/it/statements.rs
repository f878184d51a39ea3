//! What the command says of a result, its JSON and its page say as well; what was disturbed stays marked.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

use crate::outcome::{json, said};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

fn flowcast(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    command.current_dir(folder).args(arguments);
    command.output().unwrap()
}

fn example(name: &str) -> String {
    format!("{EXAMPLES}/{name}")
}

/// The texts of all lists called `notes`.
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

/// The intervals that a text shows as `(LO to HI, 90 %)`, without their probability.
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

/// Runs a command for its text, its JSON and its page, and gives all three.
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

#[test]
fn command_json_and_page_of_each_kind_of_prediction_say_the_same() {
    let (lu, pattern) = (example("lu.S.4.dim.gz"), example("two-in-one-out.pattern"));
    let scenarios = example("scenarios.toml");
    let (rdma, tcp) = ("infiniband-hdr", "ethernet-25g-tcp");
    let recording = example("heat.rec");
    for arguments in [
        vec!["predict", &lu, "-n", rdma],
        vec!["predict", &lu, "-n", rdma, "-n", tcp],
        vec![
            "predict",
            &lu,
            "-n",
            tcp,
            "--mapping",
            "fill",
            "--mapping",
            "2-per-node",
        ],
        vec!["predict", &lu, &lu, "-n", tcp],
        vec!["predict", &recording, "-n", tcp],
        vec!["predict", &pattern, "-n", tcp],
        vec!["predict", &lu, "-n", tcp, "--scenarios", &scenarios],
    ] {
        let (text, json, page) = three_ways(&arguments);
        let mut sentences = BTreeSet::new();
        notes(&json, &mut sentences);
        assert!(!sentences.is_empty(), "{arguments:?}");
        for sentence in sentences {
            assert!(
                text.contains(&sentence),
                "{arguments:?}: {sentence} in {text}"
            );
            assert!(
                page.contains(&sentence),
                "{arguments:?}: {sentence} on the page"
            );
        }
        let known = intervals(&text);
        assert!(!known.is_empty(), "{arguments:?}: {text}");
        for interval in known {
            assert!(
                page.contains(interval),
                "{arguments:?}: {interval} on the page"
            );
        }
        assert!(
            page.contains(&format!("{}*", arguments[3]))
                || arguments.len() > 4
                || arguments[3] == rdma
        );
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
fn an_interval_is_left_out_where_that_is_asked_for() {
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
        text.contains("margin: left out, as asked for") && page.contains("left out, as asked for")
    );
}

/// A copy of the example's recording that says what disturbed it.
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
fn a_recording_of_a_busy_machine_says_so_wherever_it_is_read() {
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
fn the_clock_of_computations_can_be_chosen_for_recordings_alone() {
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
            "computation takes wall time as asked for",
            "--compute cpu",
        ),
        (
            "cpu",
            "computation takes thread CPU time as asked for",
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
fn runs_of_a_busy_machine_enter_no_accuracy_record_whichever_command_reads_them() {
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
        "-o",
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
fn advice_on_rails_marks_stand_ins_and_names_no_interface_that_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let networks = ["-n", "infiniband-hdr", "-n", "infiniband-hdr"];
    let advice = flowcast(
        folder.path(),
        &[&["rails", "advise"][..], &networks].concat(),
    );
    let text = String::from_utf8(advice.stdout).unwrap();
    for part in [
        "IFACE_1,IFACE_2",
        "--interface: IFACE_1 for",
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
