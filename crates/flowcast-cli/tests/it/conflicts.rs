//! `flowcast measure conflicts` and `flowcast fit` on its file, in a lab over TCP and by MPI. Where namespaces are forbidden
//! or `mpirun` is missing, a test prints its name and checks nothing.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::outcome::{json, labs_can_be_had, said, there_is_mpi};

const LAB: &str =
    "--lab asymmetric --lab-set nic.bandwidth=20Mbit/s --lab-set tcp.window=32KiB --no-self-test";
const SHORT: &str = "--size 400kB --warm-ups 1 --repetitions 2 2";

fn flowcast(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    command
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .unwrap()
}

fn times(fit: &Value, conflict: &str) -> Vec<f64> {
    let all = fit["slowdowns"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["conflict"] == conflict);
    all.map(|one| one["times_longer_than_alone"].as_f64().unwrap())
        .collect()
}

#[test]
fn conflicts_of_a_lab_are_measured_and_fitted_and_a_resumed_run_carries_nothing_twice() {
    if !labs_can_be_had(
        "conflicts_of_a_lab_are_measured_and_fitted_and_a_resumed_run_carries_nothing_twice",
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let what = format!(
        "measure conflicts {LAB} --lab-set cluster.nodes=4 {SHORT} --flows 2 --only in-out,zig-zag,short"
    );
    let halted = flowcast(
        folder.path(),
        &format!("{what} --holdout 1 -o conflicts.csv --time-limit 100ms"),
    );
    assert_eq!(halted.status.code(), Some(1), "{}", said(&halted));
    assert!(
        said(&halted).contains("conflicts remain; --resume continues"),
        "{}",
        said(&halted)
    );
    let blocked = flowcast(
        folder.path(),
        &format!("{what} --holdout 1 -o conflicts.csv"),
    );
    assert_eq!(blocked.status.code(), Some(2));
    assert!(
        said(&blocked).contains("contains the samples of an interrupted run"),
        "{}",
        said(&blocked)
    );

    let document = json(&flowcast(
        folder.path(),
        &format!("{what} --holdout 1 -o conflicts.csv --resume --json"),
    ));
    let names: Vec<&str> = document["conflicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["conflict"].as_str().unwrap())
        .collect();
    let expected = "alone alone-half alone-1kB alone-32KiB alone-128KiB in-out-1 in-out-2 zig-zag-3 random-1 short-out-2 \
                    short-in-2 short-in-out-2 short-path-3 random-short-1";
    assert_eq!(names.join(" "), expected);
    assert!(!folder.path().join("conflicts.csv.partial").exists());
    assert!(
        document["provenance"]["lab"]
            .as_str()
            .unwrap()
            .contains("20")
    );

    let fit = json(&flowcast(
        folder.path(),
        "fit conflicts.csv -o mine.toml --replicates 5 --json",
    ));
    // Fixed windows: the flow out of a node with two incoming flows gets half too.
    let [out, ..] = times(&fit, "in-out-2")[..] else {
        panic!("{fit}")
    };
    assert!((1.5..2.5).contains(&out), "{out}");
    let shown = flowcast(folder.path(), "networks show ./mine.toml");
    let text = String::from_utf8(shown.stdout).unwrap();
    for expected in [
        "sharing.closed_loop.kappa\"",
        "\"samples.kernel\"",
        "model = \"closed-loop\"",
        "model = \"closed-loop/transient\"",
        "model = \"packet\"",
        "[intervals.\"nic.bandwidth\"]",
        "wire_rate = ",
        "[sharing.packet]",
        "window = \"40KiB\"",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn ranks_of_a_launcher_carry_conflicts_over_tcp() {
    if !there_is_mpi("ranks_of_a_launcher_carry_conflicts_over_tcp") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let what = "measure conflicts --size 400kB --warm-ups 1 --repetitions 2 2 --flows 2 --only out --window 0B --holdout 1 --over tcp";
    let measure = |launcher: &str, more: &str| {
        // The launcher gives up before the test would hang.
        let mut command = Command::new("timeout");
        command
            .args(["60", env!("CARGO_BIN_EXE_flowcast")])
            .args(what.split_whitespace())
            .args(more.split_whitespace());
        command
            .args(["--launcher", launcher, "-o", "conflicts.csv", "--json"])
            .current_dir(folder.path());
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .output()
            .unwrap()
    };
    let document = json(&measure(
        "mpirun -np 4 --oversubscribe",
        "--node-per-rank --listen 127.0.0.1",
    ));
    let names: Vec<&str> = document["conflicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["conflict"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["alone", "alone-half", "out-2", "random-1"]);
    for flow in document["conflicts"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["flows"].as_array().unwrap())
    {
        assert!(flow["median_s"].as_f64().unwrap() > 0.0, "{flow}");
        assert_eq!(flow["repetitions_s"].as_array().unwrap().len(), 2);
    }
    assert_eq!(
        document["provenance"]["path"],
        "tcp, mpirun -np 4 --oversubscribe"
    );
    assert!(!folder.path().join("conflicts.csv.partial").exists());

    let alone = measure("mpirun -np 2 --oversubscribe", "");
    assert_eq!(alone.status.code(), Some(2), "{}", said(&alone));
    assert!(
        said(&alone).contains("found 1 node, expected at least two hosts, or --node-per-rank"),
        "{}",
        said(&alone)
    );
    let ended = measure("false", "");
    assert_eq!(ended.status.code(), Some(3), "{}", said(&ended));
    assert!(
        said(&ended).contains("the launcher has ended"),
        "{}",
        said(&ended)
    );
}

#[test]
fn messages_of_mpi_ranks_share_an_interface_and_steps_follow_one_another() {
    let test = "messages_of_mpi_ranks_share_an_interface_and_steps_follow_one_another";
    if !labs_can_be_had(test) || !there_is_mpi(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let what = format!(
        "measure conflicts {LAB} --lab-set cluster.nodes=3 {SHORT} --over mpi --flows 2 --only out"
    );
    let document = json(&flowcast(
        folder.path(),
        &format!("{what} --holdout 0 -o conflicts.csv --json"),
    ));
    assert!(
        document["provenance"]["mpi"]
            .as_str()
            .unwrap()
            .starts_with("Open MPI"),
        "{document}"
    );
    let fit = json(&flowcast(
        folder.path(),
        "fit conflicts.csv --replicates 5 --json",
    ));
    for time in times(&fit, "out-2") {
        assert!((1.6..2.4).contains(&time), "{time}");
    }

    std::fs::write(
        folder.path().join("relay.steps"),
        "0 -> 1 400kB\nstep\n1 -> 2 400kB\n",
    )
    .unwrap();
    let how = "validate pattern relay.steps --over mpi --model closed-loop --warm-ups 1 --repetitions 2 2 --json";
    let lab = "--lab-set cluster.nodes=3 --lab-set nic.bandwidth=20Mbit/s --lab-set tcp.window=32KiB --no-self-test";
    let document = json(&flowcast(
        folder.path(),
        &format!("{how} {lab} --report relay.html"),
    ));
    let steps = &document["patterns"][0]["steps"];
    let (measured, predicted) = (
        steps["measured_s"].as_f64().unwrap(),
        steps["predicted_s"]["closed-loop"].as_f64().unwrap(),
    );
    assert!((measured / predicted - 1.0).abs() < 0.2, "{steps}");
    assert_eq!(document["provenance"]["over"], "mpi");
}

#[test]
fn wrong_options_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &str, expected: &str| {
        let output = flowcast(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(
            said(&output).contains(expected),
            "{arguments}: {}",
            said(&output)
        );
    };
    refused(
        "measure conflicts --only zigzag -o x.csv",
        "expected one of alone, out, in, in-out",
    );
    refused(
        "measure conflicts --repetitions 3 2 -o x.csv",
        "--repetitions: found 3 2",
    );
    refused(
        "measure conflicts --level 1.5 -o x.csv",
        "expected a probability: 0.015 for 1.5 %",
    );
    refused(
        "measure conflicts --size 0B -o x.csv",
        "--size, --flows: found 0",
    );
    refused(
        "measure conflicts --lab fare -o x.csv",
        "no lab profile is named `fare`",
    );
    refused(
        "measure conflicts --launcher mpirun --lab fair -o x.csv",
        "--launcher and --lab exclude each other",
    );
    let none = flowcast(
        folder.path(),
        "measure conflicts --launcher ./no-launcher -o x.csv",
    );
    assert_eq!(none.status.code(), Some(3), "{}", said(&none));
    assert_eq!(
        std::fs::read_dir(folder.path())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().is_file())
            .count(),
        0
    );
}
