//! `flowcast validate pattern`: from a journal of measured patterns, and in a lab. Where namespaces are forbidden, the
//! latter prints its name and checks nothing.

use std::{
    path::Path,
    process::{Command, Output},
};

use flowcast::model::{accuracy::CaseKind, network::Network};
use flowcast_measure::lab::check_machine;
use serde_json::Value;

use crate::{in_parts, outcome::said};

/// Measured patterns of a chain of three flows.
pub(crate) const JOURNAL: &str =
    include_str!("../../../../tests/data/validation/chain-of-three.journal");
const LAB: [&str; 6] = [
    "--lab",
    "asymmetric",
    "--lab-set",
    "cluster.nodes=4",
    "--lab-set",
    "tcp.window=32KiB",
];

fn validate(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    command
        .args(["validate", "pattern", "--report", "report.html"])
        .args(arguments);
    command
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .unwrap()
}

fn mean_error(document: &Value, model: &str) -> f64 {
    let models = document["models"].as_array().unwrap();
    let found = models.iter().find(|entry| entry["model"] == model).unwrap();
    found["mean_absolute_error"].as_f64().unwrap()
}

#[test]
fn a_journal_is_predicted_again_without_a_lab_and_tolerances_decide_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("report.html.journal"), JOURNAL).unwrap();
    let output = validate(
        folder.path(),
        &["--no-run", "--json", "--threshold", "closed-loop=2%,5%"],
    );
    assert!(output.status.success(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The measured medians are 0.2530, 0.7559 and 1.0064 s. Flow 2 shares with the other two in turn.
    assert!(mean_error(&document, "closed-loop") < 0.02);
    assert!(mean_error(&document, "independent") > 0.3);
    assert_eq!(
        document["patterns"][0]["flows"][1]["measured_s"],
        0.755_898_12
    );
    let file: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(file, document);
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(
        page.contains("drawPoints, data.patterns")
            && page.contains("<td class=\"words\">closed-loop</td>")
    );

    let refused = validate(
        folder.path(),
        &["--no-run", "--threshold", "independent=1%"],
    );
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("independent: mean absolute error"),
        "{}",
        said(&refused)
    );
    let unknown = validate(
        folder.path(),
        &["--no-run", "--model", "fair", "--threshold", "packet=1%"],
    );
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn seeds_give_medians_and_the_share_of_repetitions_inside_their_intervals() {
    let folder = tempfile::tempdir().unwrap();
    // Copy of the chain in a lab with automatic windows and short queues, with repetitions that vary a lot.
    let lab = JOURNAL.replacen("\"window\":\"32KiB\"", "\"window\":\"automatic\"", 1);
    let lab = lab.replacen(
        "\"congestion_control\":\"reno\"",
        "\"congestion_control\":\"cubic\"",
        1,
    );
    let lab = lab.replacen("\"port\":\"3MB\"", "\"port\":\"100kB\"", 1);
    assert_ne!(lab, JOURNAL);
    std::fs::write(folder.path().join("report.html.journal"), lab).unwrap();
    let output = validate(
        folder.path(),
        &[
            "--no-run",
            "--json",
            "--model",
            "fair,packet",
            "--replicates",
            "9",
        ],
    );
    assert!(output.status.success(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["models"][0]["coverage"], Value::Null);
    assert_eq!(document["models"][1]["interval_level"], 0.9);
    let (mut inside, mut repetitions) = (0, 0);
    for flow in document["patterns"][0]["flows"].as_array().unwrap() {
        let interval = &flow["predicted_interval_s"]["packet"];
        let (low, high) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
        let median = flow["predicted_s"]["packet"].as_f64().unwrap();
        assert!(low < median && median < high, "{flow}");
        let times: Vec<f64> = flow["repetitions_s"]
            .as_array()
            .unwrap()
            .iter()
            .map(|time| time.as_f64().unwrap())
            .collect();
        repetitions += times.len();
        inside += times
            .iter()
            .filter(|time| (low..=high).contains(*time))
            .count();
    }
    let coverage = &document["models"][1]["coverage"];
    assert_eq!(
        (
            coverage["inside"].as_u64(),
            coverage["repetitions"].as_u64()
        ),
        (Some(inside as u64), Some(repetitions as u64))
    );
    let table = validate(
        folder.path(),
        &["--no-run", "--model", "packet", "--replicates", "9"],
    );
    assert!(String::from_utf8_lossy(&table.stdout).contains("runs inside 90 %"));
    let refused = validate(
        folder.path(),
        &["--no-run", "--model", "fair", "--replicates", "9"],
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said(&refused).contains("--replicates: found the models fair, expected packet"),
        "{}",
        said(&refused)
    );
}

#[test]
fn an_accuracy_record_is_stored_on_request_and_only_for_its_network() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("report.html.journal"), JOURNAL).unwrap();
    let keep = |more: &[&str]| {
        validate(
            folder.path(),
            &[&["--no-run", "--model", "fair,closed-loop"], more].concat(),
        )
    };
    let first = keep(&["--accuracy", "lab.toml"]);
    assert!(first.status.success(), "{}", said(&first));
    let read = |name: &str| {
        Network::from_toml(&std::fs::read_to_string(path(name)).unwrap(), &[]).unwrap()
    };
    let network = read("lab.toml");
    let entries: Vec<(&str, Option<CaseKind>, u64)> = network
        .accuracy
        .iter()
        .map(|entry| (&*entry.model, entry.judged, entry.cases))
        .collect();
    let of = |model| {
        [
            (model, Some(CaseKind::Flows), 3),
            (model, Some(CaseKind::Patterns), 1),
        ]
    };
    assert_eq!(entries, [of("fair"), of("closed-loop/transient")].concat());
    assert_eq!(
        network
            .accuracy_record()
            .best(CaseKind::Flows, None)
            .unwrap()
            .model,
        "closed-loop/transient"
    );
    assert_eq!(network.accuracy[0].errors["chain 1"].len(), 3);

    // A repeated pattern is not a new case, and comments are kept.
    let text = std::fs::read_to_string(path("lab.toml")).unwrap();
    std::fs::write(path("mine.toml"), format!("# of my lab\n{text}")).unwrap();
    let again = keep(&["--network", "mine.toml", "--accuracy", "mine.toml"]);
    assert!(again.status.success(), "{}", said(&again));
    assert_eq!(read("mine.toml").accuracy.len(), 4);
    assert!(
        std::fs::read_to_string(path("mine.toml"))
            .unwrap()
            .starts_with("# of my lab\n")
    );

    // Without the option, no file is written.
    let before = std::fs::read(path("lab.toml")).unwrap();
    assert!(keep(&["--network", "lab.toml"]).status.success());
    assert_eq!(std::fs::read(path("lab.toml")).unwrap(), before);
    let other = keep(&["--network", "gige-tcp", "--accuracy", "lab.toml"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(
        said(&other).contains("--accuracy: found another network in lab.toml"),
        "{}",
        said(&other)
    );
}

#[test]
fn margins_of_the_nas_kernels_contain_nine_of_ten_held_out_runs() {
    let ledger = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/validation/nas.toml"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    let output = command
        .args(["validate", "margins", ledger, "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let margins = document["margins"].as_array().unwrap();
    let number = |entry: &Value, key: &str| entry[key].as_u64().unwrap();
    assert_eq!(
        margins
            .iter()
            .map(|entry| number(entry, "cases"))
            .sum::<u64>(),
        168
    );
    assert_eq!(
        margins
            .iter()
            .map(|entry| number(entry, "inside"))
            .sum::<u64>(),
        153
    );
    let table = Command::new(env!("CARGO_BIN_EXE_flowcast"))
        .args(["validate", "margins", ledger])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&table.stdout).contains("packet/openmpi"));
    let none = Command::new(env!("CARGO_BIN_EXE_flowcast"))
        .args(["validate", "margins", "gige-tcp"])
        .output()
        .unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(
        said(&none).contains("found no accuracy record with errors of cases"),
        "{}",
        said(&none)
    );
}

#[test]
fn finished_patterns_are_not_run_again_and_an_existing_journal_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("report.html.journal"),
        in_parts(JOURNAL.split_inclusive('\n')),
    )
    .unwrap();
    let same = [&["--count", "1", "--flows", "3"][..], &LAB].concat();
    let blocked = validate(folder.path(), &same);
    assert_eq!(blocked.status.code(), Some(2));
    assert!(
        said(&blocked).contains("continue with --resume"),
        "{}",
        said(&blocked)
    );
    let resumed = validate(folder.path(), &[&same[..], &["--resume"]].concat());
    assert!(resumed.status.success(), "{}", said(&resumed));
    // No lab was built, because its self-test would have printed something.
    assert_eq!(said(&resumed), "");
    let other = validate(folder.path(), &["--resume"]);
    assert!(said(&other).contains("another lab"), "{}", said(&other));
}

/// Journal of a shard of three patterns; `lab` is the first line of a journal.
fn shard_journal(lab: &str, shard: &str, patterns: &[&str]) -> String {
    let mut head: Value = serde_json::from_str(lab).unwrap();
    head["shard"] = shard.into();
    let head = format!("{head}\n");
    in_parts([head.as_str()].into_iter().chain(patterns.iter().copied()))
}

#[test]
fn journals_of_shards_are_merged_into_the_journal_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let (lab, pattern) = JOURNAL.split_once('\n').unwrap();
    let patterns = [1, 2, 3].map(|number| pattern.replace("chain 1", &format!("chain {number}")));
    let [one, two, three] = patterns.each_ref().map(String::as_str);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let merge = |parts: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
        command.arg("merge").args(parts);
        command.args(["-o", "report.html.journal"]);
        command.current_dir(folder.path()).output().unwrap()
    };
    write("1.journal", &shard_journal(lab, "1/2 of 3", &[one]));
    write("2.journal", &shard_journal(lab, "2/2 of 3", &[two, three]));
    write("cut.journal", &shard_journal(lab, "2/2 of 3", &[two]));
    let other = lab.replacen("asymmetric", "other", 1);
    write(
        "other.journal",
        &shard_journal(&other, "2/2 of 3", &[two, three]),
    );
    write("whole.journal", JOURNAL);
    let faults: [(&[&str], &str); 5] = [
        (&["1.journal"], "found 1 of 3 results"),
        (
            &["1.journal", "cut.journal"],
            "the first missing one has the number 2",
        ),
        (
            &["1.journal", "1.journal"],
            "1.journal: found result 0 twice",
        ),
        (
            &["1.journal", "other.journal"],
            "found a shard of another run than 1.journal",
        ),
        (&["whole.journal"], "whole.journal:1: found no shard"),
    ];
    for (parts, expected) in faults {
        let refused = merge(parts);
        assert_eq!(refused.status.code(), Some(2), "{parts:?}");
        assert!(said(&refused).contains(expected), "{}", said(&refused));
    }

    let merged = merge(&["2.journal", "1.journal"]);
    assert!(merged.status.success(), "{}", said(&merged));
    let head: Value = serde_json::from_str(lab).unwrap();
    let head = format!("{head}\n");
    let whole = std::fs::read_to_string(folder.path().join("report.html.journal")).unwrap();
    assert_eq!(whole, in_parts([head.as_str(), one, two, three]));
    let output = validate(folder.path(), &["--no-run", "--json", "--model", "fair"]);
    assert!(output.status.success(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["patterns"].as_array().unwrap().len(), 3);
}

#[test]
fn a_finished_shard_of_patterns_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (lab, pattern) = JOURNAL.split_once('\n').unwrap();
    let journal = shard_journal(lab, "1/1 of 1", &[pattern]);
    std::fs::write(folder.path().join("report.html.journal"), journal).unwrap();
    let same = [&["--count", "1", "--flows", "3", "--resume"][..], &LAB].concat();
    let resumed = validate(folder.path(), &[&same[..], &["--shard", "1/1"]].concat());
    assert!(resumed.status.success(), "{}", said(&resumed));
    let whole = validate(folder.path(), &same);
    assert!(
        said(&whole).contains("another lab, transport or shard"),
        "{}",
        said(&whole)
    );
    let more = validate(folder.path(), &[&same[..], &["--shard", "1/2"]].concat());
    assert!(
        said(&more).contains("--shard: found 2 shards, expected at most 1"),
        "{}",
        said(&more)
    );
}

#[test]
fn a_pattern_file_is_carried_in_a_lab_and_predicted() {
    if let Err(reason) = check_machine() {
        eprintln!("skipped: a_pattern_file_is_carried_in_a_lab_and_predicted: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("fan.pattern"),
        "0 -> 1 1MB\n0 -> 2 1MB @ 20ms\n",
    )
    .unwrap();
    let lab = [
        "--lab-set",
        "cluster.nodes=3",
        "--lab-set",
        "nic.bandwidth=20Mbit/s",
        "--no-self-test",
    ];
    let how = [
        "fan.pattern",
        "--warm-ups",
        "1",
        "--repetitions",
        "2",
        "2",
        "--json",
    ];
    let output = validate(folder.path(), &[&how[..], &lab].concat());
    assert!(output.status.success(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(mean_error(&document, "closed-loop") < 0.2, "{document}");
    assert!(mean_error(&document, "independent") > 0.3, "{document}");
}
