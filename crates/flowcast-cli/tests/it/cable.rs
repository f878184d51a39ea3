//! The link emulator in user space behaves as its file states. Where namespaces are forbidden, each test prints its name and
//! checks nothing. Tolerances are wide because other programs may use the machine.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::outcome::{labs_can_be_had, said};

fn flowcast(runtime: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    command
        .args(words.split(' '))
        .env("XDG_RUNTIME_DIR", runtime);
    command
}

fn checked(output: Output) -> String {
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn frames_have_the_specified_rate_delay_and_loss() {
    if !labs_can_be_had("frames_have_the_specified_rate_delay_and_loss") {
        return;
    }
    let runtime = tempfile::tempdir().unwrap();
    let words = "lab cable-check --set cable.rate=20Mbit/s,5Mbit/s --set cable.delay=2ms,5ms --set cable.loss=0.1 \
                 --set cable.jitter=1ms --count 300 --json";
    // A busy machine is a finding with exit code 1. The result is checked here with a longer timeout.
    let output = flowcast(runtime.path(), words).output().unwrap();
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        said(&output)
    );
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (direction, rate) in said["directions"]
        .as_array()
        .unwrap()
        .iter()
        .zip([20.0, 5.0])
    {
        let number = |name: &str| direction[name].as_f64().unwrap();
        assert!(
            (0.5..2.0).contains(&(number("rate_Bps") * 8e-6 / rate)),
            "{direction}"
        );
        assert!(number("astray") <= 0.05 * number("frames"), "{direction}");
        assert!(number("lost_by_seed") > 10.0, "{direction}");
        // Uses the least late frames: where builds occupy the processors, the median says nothing about the emulator.
        let late = direction["lateness_us"]["p5"].as_f64().unwrap();
        assert!((0.0..10_000.0).contains(&late), "{direction}");
    }
}

#[test]
fn a_round_trip_takes_both_delays_and_the_cable_ends_with_the_lab() {
    if !labs_can_be_had("a_round_trip_takes_both_delays_and_the_cable_ends_with_the_lab") {
        return;
    }
    check_round_trip("cable", "cable.delay=20ms,30ms", 50_000.0);
}

#[test]
fn a_round_trip_through_the_switch_takes_four_delays_in_slow_motion() {
    if !labs_can_be_had("a_round_trip_through_the_switch_takes_four_delays_in_slow_motion") {
        return;
    }
    let delay = "cluster.nodes=2 --set nic.delay=5ms --set slow_motion=2";
    check_round_trip("fair", delay, 40_000.0);
}

/// Checks that a message of one byte takes at most 10 ms more than `least` microseconds there and back, and that the process
/// which carries the frames ends with the lab.
fn check_round_trip(profile: &str, delay: &str, least: f64) {
    let runtime = tempfile::tempdir().unwrap();
    let lab = |words: &str| flowcast(runtime.path(), words);
    let up = format!(
        "lab up {profile} --name wire --no-self-test --set {delay} --set tcp.window=64KiB --json"
    );
    checked(lab(&up).output().unwrap());
    let processes = || {
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let line = |entry: std::fs::DirEntry| {
            std::fs::read(entry.path().join("cmdline")).unwrap_or_default()
        };
        let wanted = runtime
            .path()
            .join("flowcast-lab/wire/plan/cable.toml")
            .display()
            .to_string();
        entries
            .map(line)
            .filter(|line| String::from_utf8_lossy(line).contains(&wanted))
            .count()
    };
    assert_eq!(processes(), 1);
    let inside = |node: u32, words: &str| {
        let mut command = lab(&format!("lab exec wire --node {node} --"));
        command
            .arg(env!("CARGO_BIN_EXE_flowcast"))
            .args(words.split(' '));
        command
    };
    let mut answering = inside(1, "measure p2p --listen 10.77.0.2:7070")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(answering.stderr.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    assert!(said.starts_with("listening"), "{said}");
    let measure = "measure p2p --connect 10.77.0.2:7070 --sizes 1B,2000B --burst 2 --time-limit 1s --delay 1ms";
    let samples = checked(inside(0, measure).output().unwrap());
    let times = samples
        .lines()
        .filter_map(|line| line.strip_prefix("round-trip,1,0,1,"))
        .map(|time| time.parse::<f64>().unwrap());
    let fastest = times.fold(f64::INFINITY, f64::min);
    assert!((least..least + 10_000.0).contains(&fastest), "{fastest}");
    assert!(answering.wait().unwrap().success());

    checked(lab("lab down wire").output().unwrap());
    let start = Instant::now();
    while processes() > 0 {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "the process outlives the lab"
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_cable_check_needs_a_cable() {
    let runtime = tempfile::tempdir().unwrap();
    let output = flowcast(runtime.path(), "lab cable-check fair")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("fair: found no section [cable]"));
}

#[test]
fn texts_of_a_lab_file_are_never_executed() {
    if !labs_can_be_had("texts_of_a_lab_file_are_never_executed") {
        return;
    }
    let runtime = tempfile::tempdir().unwrap();
    let (owned, file) = (
        runtime.path().join("owned"),
        runtime.path().join("lab.toml"),
    );
    let titled = |title: &str| {
        let plain = include_str!("../../../flowcast-measure/profiles/cable.toml");
        let title =
            serde_json::to_string(&title.replace("OWNED", &owned.display().to_string())).unwrap();
        let line = plain
            .lines()
            .find(|line| line.starts_with("title"))
            .unwrap();
        std::fs::write(&file, plain.replace(line, &format!("title = {title}"))).unwrap();
        flowcast(runtime.path(), "lab run --no-self-test")
            .arg(&file)
            .args(["--", "true"])
            .output()
            .unwrap()
    };
    let ended = titled("x\nEND\ntouch OWNED\ncat > /dev/null <<'END'\n");
    assert_eq!(ended.status.code(), Some(2), "{}", said(&ended));
    assert!(
        said(&ended).contains("title: found `x\\nEND"),
        "{}",
        said(&ended)
    );
    checked(titled(
        "'; touch OWNED; $(touch OWNED) `touch OWNED` \" | touch OWNED",
    ));
    assert!(!owned.exists());
}
