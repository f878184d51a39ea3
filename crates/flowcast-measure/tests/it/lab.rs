//! Labs of this user on this machine. If namespaces are forbidden or a program is missing, each test prints its name and the
//! reason, and checks nothing.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use flowcast_measure::lab::{
    ByteFlow, FlowWatch, Lab, LabSpec, check_machine, nominal, profile, steady_goodput,
};
use flowcast_units::{Bytes, Node, Rate};

/// Returns `true` if labs can be built; otherwise prints the test's name and the reason.
fn labs_can_be_had(test: &str) -> bool {
    match check_machine() {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("skipped: {test}: {reason}");
            false
        }
    }
}

/// Returns a profile with rates that even a busy machine can provide.
fn slow(name: &str, overrides: &[(&str, &str)]) -> LabSpec {
    let slow = [("nic.bandwidth", "20Mbit/s"), ("cluster.nodes", "3")];
    let all = slow
        .iter()
        .chain(overrides)
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    profile(name, &all.collect::<Vec<_>>()).unwrap()
}

fn flow(from: u32, to: u32, rail: usize) -> ByteFlow {
    ByteFlow {
        from: Node(from),
        to: Node(to),
        rail,
    }
}

fn goodput(lab: &Lab, flows: &[ByteFlow]) -> Vec<Rate> {
    let watch = FlowWatch {
        settle: Duration::from_millis(300),
        count: Duration::from_millis(700),
        buffer: Some(Bytes(128 << 10)),
    };
    steady_goodput(lab, flows, &watch).unwrap()
}

/// Checks that the total rate of flows is within a tenth of the expected rate, in the best of three runs. Other work on the
/// machine slows flows down; nothing lets them exceed the lab's rate.
fn assert_rate_together(lab: &Lab, flows: &[ByteFlow], expected: Rate) {
    let spell = |_| {
        let rates = goodput(lab, flows);
        rates
            .iter()
            .map(|rate| rate.as_bytes_per_second())
            .sum::<f64>()
    };
    let best = (0..3).map(spell).fold(0.0, f64::max);
    let share = best / expected.as_bytes_per_second();
    let name = &lab.spec().name;
    assert!(
        (0.9..1.1).contains(&share),
        "{name}: {flows:?}: {share} of the expected rate"
    );
}

fn output(lab: &Lab, node: u32, program: &str, arguments: &[&str]) -> String {
    let output = lab
        .command_in(Node(node), program)
        .unwrap()
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_flow_gets_the_nominal_rate_on_each_kind_of_lab() {
    if !labs_can_be_had("a_flow_gets_the_nominal_rate_on_each_kind_of_lab") {
        return;
    }
    for (name, overrides) in [
        ("fair", &[][..]),
        ("asymmetric", &[("nic.duplex", "half")][..]),
        ("bus", &[][..]),
        ("two-racks", &[("backbone.bandwidth", "10Mbit/s")][..]),
        ("rails", &[("nic.bandwidth", "20Mbit/s,10Mbit/s")][..]),
    ] {
        let spec = slow(name, overrides);
        let lab = Lab::up(&spec).unwrap_or_else(|error| panic!("{name}: {error}"));
        for rail in 0..spec.nic.bandwidth.0.len() {
            assert_rate_together(&lab, &[flow(0, 1, rail)], nominal::one_flow(&spec, rail));
        }
    }
}

#[test]
fn connections_of_the_self_test_ignore_the_congestion_control_of_the_lab() {
    if !labs_can_be_had("connections_of_the_self_test_ignore_the_congestion_control_of_the_lab") {
        return;
    }
    let lab = Lab::up(&slow(
        "fair",
        &[("tcp.congestion_control", "cubic"), ("tcp.window", "64KiB")],
    ))
    .unwrap();
    let control = |buffer| {
        let (sender, _receiver) = lab.tcp_pair(Node(0), Node(1), 0, buffer).unwrap();
        rustix::net::sockopt::tcp_congestion(&sender).unwrap()
    };
    assert_eq!(
        [control(None), control(Some(Bytes(64 << 10)))],
        ["cubic", "reno"]
    );
}

#[test]
fn two_flows_into_one_node_and_two_over_the_backbone_share() {
    if !labs_can_be_had("two_flows_into_one_node_and_two_over_the_backbone_share") {
        return;
    }
    let spec = slow(
        "two-racks",
        &[("cluster.nodes", "4"), ("backbone.bandwidth", "10Mbit/s")],
    );
    let lab = Lab::up(&spec).unwrap();
    let whole = nominal::one_flow(&spec, 0).as_bytes_per_second();
    let of = |share| Rate::from_bytes_per_second(share * whole);
    assert_rate_together(&lab, &[flow(0, 2, 0), flow(1, 3, 0)], of(0.5));
    assert_rate_together(&lab, &[flow(0, 1, 0), flow(2, 3, 0)], of(2.0));
}

#[test]
fn two_labs_at_the_same_time_have_separate_hosts_and_processes() {
    if !labs_can_be_had("two_labs_at_the_same_time_have_separate_hosts_and_processes") {
        return;
    }
    let (one, other) = (
        Lab::up(&slow("fair", &[])).unwrap(),
        Lab::up(&slow("fair", &[])).unwrap(),
    );
    for lab in [&one, &other] {
        assert_eq!(output(lab, 2, "hostname", &[]), "node2");
        assert_eq!(
            output(
                lab,
                2,
                "sh",
                &["-c", "ip -o -4 addr show eth0 | grep -c 10.77.0.3/16"]
            ),
            "1"
        );
        assert_eq!(
            output(lab, 1, "pwd", &[]),
            std::env::current_dir().unwrap().display().to_string()
        );
    }
    let (mut sender, mut receiver) = one.tcp_pair(Node(0), Node(1), 0, None).unwrap();
    sender.write_all(b"to one").unwrap();
    drop(sender);
    let mut text = String::new();
    receiver.read_to_string(&mut text).unwrap();
    assert_eq!(text, "to one");
    for lab in [&one, &other] {
        assert_rate_together(lab, &[flow(0, 1, 0)], nominal::one_flow(lab.spec(), 0));
    }
}

/// The re-executed test binary builds a lab and holds it.
#[test]
fn hold_a_lab_if_requested() {
    let Ok(word) = std::env::var("FLOWCAST_TEST_HOLDS_A_LAB") else {
        return;
    };
    let lab = Lab::up(&slow("fair", &[])).unwrap();
    let mut sleeper = lab.command_in(Node(1), "sh").unwrap();
    sleeper
        .args(["-c", &format!("setsid sleep {word} & echo started; wait")])
        .stdout(Stdio::piped());
    let mut sleeper = sleeper.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(sleeper.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    println!("\nholding {}", lab.name());
    let _ = sleeper.wait();
}

#[test]
fn a_lab_and_its_processes_end_when_the_owner_is_killed() {
    if !labs_can_be_had("a_lab_and_its_processes_end_when_the_owner_is_killed") {
        return;
    }
    // This word is the sleep time of the lab's process, and no other command line contains it.
    let word = format!("4321.{}", std::process::id());
    let runtime = tempfile::tempdir().unwrap();
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner.args([
        "lab::hold_a_lab_if_requested",
        "--exact",
        "--nocapture",
        "--test-threads=1",
    ]);
    owner
        .env("FLOWCAST_TEST_HOLDS_A_LAB", &word)
        .env("XDG_RUNTIME_DIR", runtime.path());
    let mut owner = KillOnDrop(owner.stdout(Stdio::piped()).spawn().unwrap());
    let owner = &mut owner.0;
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let name = lines
        .find_map(|line| line.unwrap().strip_prefix("holding ").map(str::to_owned))
        .unwrap();
    let folder = runtime.path().join("flowcast-lab").join(name);
    assert!(folder.exists());
    assert!(in_time(|| runs(&word)), "the lab's process does not start");

    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(in_time(|| !runs(&word)), "a process of the lab outlives it");
    assert!(
        in_time(|| !folder.exists()),
        "{} outlives the lab",
        folder.display()
    );
}

/// Returns `true` if a condition becomes true within 20 s.
fn in_time(holds: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if holds() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Ends the owner even if an assertion fails.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns `true` if any process has this word in its command line.
fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let line =
        |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
    processes.map(line).any(|line| {
        line.split(|byte| *byte == 0)
            .any(|part| part == word.as_bytes())
    })
}

#[test]
fn a_node_and_a_rail_that_a_lab_lacks_are_named() {
    if !labs_can_be_had("a_node_and_a_rail_that_a_lab_lacks_are_named") {
        return;
    }
    let lab = Lab::up(&slow("fair", &[("cluster.nodes", "2")])).unwrap();
    let node = lab.command_in(Node(2), "true").unwrap_err().to_string();
    assert_eq!(
        node,
        "found node 2, expected one of the lab's 2 nodes, 0 to 1"
    );
    let rail = lab.address(Node(0), 1).unwrap_err().to_string();
    assert_eq!(
        rail,
        "found rail 1, expected one of the lab's 1 rails, counted from 0"
    );
}
