//! `flowcast lab` keeps, uses and ends a lab. Where namespaces are forbidden, each test prints its name and checks nothing.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::outcome::labs_can_be_had;

fn flowcast(runtime: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    command
        .arg("lab")
        .args(arguments)
        .env("XDG_RUNTIME_DIR", runtime)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_lab_stays_up_between_commands_until_lab_down() {
    if !labs_can_be_had("a_lab_stays_up_between_commands_until_lab_down") {
        return;
    }
    let runtime = tempfile::tempdir().unwrap();
    let lab = |arguments: &[&str]| flowcast(runtime.path(), arguments);
    let set = ["--set", "cluster.nodes=2", "--no-self-test"];
    let up = lab(&[&["up", "fair", "--name", "small", "--json"][..], &set].concat());
    assert!(up.status.success(), "{}", text(&up.stderr));
    let up: serde_json::Value = serde_json::from_slice(&up.stdout).unwrap();
    assert_eq!(up["nodes"][1]["addresses"][0], "10.77.0.2");

    let again = lab(&[&["up", "fair", "--name", "small"][..], &set].concat());
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("a lab named `small` is already up"));
    assert_eq!(
        text(&lab(&["exec", "small", "--node", "1", "--", "hostname"]).stdout),
        "node1\n"
    );
    assert_eq!(
        lab(&["run", "small", "--", "sh", "-c", "exit 7"])
            .status
            .code(),
        Some(7)
    );
    assert!(text(&lab(&["list"]).stdout).contains(" small "));

    assert!(lab(&["down", "small"]).status.success());
    let gone = lab(&["exec", "small", "--", "true"]);
    assert_eq!(gone.status.code(), Some(2));
    assert!(text(&gone.stderr).contains("no lab named `small` is up"));
    assert!(!runtime.path().join("flowcast-lab/small").exists());
}

#[test]
fn lab_run_returns_the_exit_code_of_the_command_and_leaves_no_lab() {
    if !labs_can_be_had("lab_run_returns_the_exit_code_of_the_command_and_leaves_no_lab") {
        return;
    }
    let runtime = tempfile::tempdir().unwrap();
    let script = "test $OMPI_MCA_btl_tcp_if_include = eth0,eth1 && grep -c slots=1 $OMPI_MCA_orte_default_hostfile; exit 9";
    let run = flowcast(
        runtime.path(),
        &["run", "rails", "--no-self-test", "--", "sh", "-c", script],
    );
    assert_eq!(
        (run.status.code(), text(&run.stdout)),
        (Some(9), "2\n".into()),
        "{}",
        text(&run.stderr)
    );
    assert_eq!(
        std::fs::read_dir(runtime.path().join("flowcast-lab"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn a_name_of_no_profile_and_no_file_is_reported() {
    let runtime = tempfile::tempdir().unwrap();
    let unknown = flowcast(runtime.path(), &["run", "fare", "--", "true"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        text(&unknown.stderr).contains("no lab profile is named `fare`; built-in profiles: fair")
    );
    let missing = flowcast(runtime.path(), &["up", "./mine.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("cannot read the lab file ./mine.toml"));
}

#[test]
fn the_network_of_a_changed_profile_has_the_name_of_its_file() {
    let runtime = tempfile::tempdir().unwrap();
    let file = runtime.path().join("mine.toml");
    let changed = flowcast(
        runtime.path(),
        &["profiles", "fair", "--set", "nic.bandwidth=60Mbit/s"],
    );
    std::fs::write(&file, &changed.stdout).unwrap();
    let network = flowcast(runtime.path(), &["network", file.to_str().unwrap()]);
    let network = text(&network.stdout);
    assert!(
        network.contains("name = \"mine\"\ntitle = \"The lab mine\""),
        "{network}"
    );
}
