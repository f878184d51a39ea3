//! The component inside a real Open MPI, 4.1 of this machine and 5.0 of Debian 13: the tests of `flowcast-openmpi` that
//! other machines have to ignore.

use std::process::{Command, Stdio};

use super::{
    Outcome, cargo,
    debian_root::DebianRoot,
    programs::{self, find, output},
};

/// Programs of others that tests run, and those tests.
const FOREIGN: [(&str, &str); 2] = [
    ("hpcc", "hpcc_verifies"),
    ("NPopenmpi", "netpipe_receives_its_messages_as_sent"),
];

/// Tests that other programs on the machine can make fail, since they judge times.
const TIMED: [&str; 3] = [
    "a_network_that_becomes_slower_while_the_program_runs_gets_less",
    "a_stuck_network_gets_no_messages_until_it_moves",
    "results_of_start_up_are_stored_for_the_next_run",
];
const NO_NAMESPACES: &str = "this machine does not allow network namespaces with interfaces";
/// Other programs that take more than this share of the processors can make them fail.
const DISTURBED: f64 = 0.1;

const TESTS: [&str; 6] = ["test", "--workspace", "--test", "it", "--", "--ignored"];
/// Those of the component, among the integration tests of the workspace.
const MODULES: [&str; 2] = ["inside_openmpi::", "layout::"];

/// Runs them in both.
pub(super) fn check() -> Outcome {
    let places = [here as fn() -> Outcome, in_debian_13];
    all(places.into_iter().map(|place| place()))
}

/// Runs them where Open MPI 4.1 with its headers is, and namespaces can be made.
fn here() -> Outcome {
    match missing() {
        Some(why) => Outcome::Skipped(format!("Open MPI 4.1: {why}")),
        None => test(&[], |program| find(program).is_some()),
    }
}

/// Runs them in a root with Debian 13.
fn in_debian_13() -> Outcome {
    if !may_make_namespaces() {
        return Outcome::Skipped(NO_NAMESPACES.into());
    }
    let root = DebianRoot::provide().and_then(|root| Ok((root.runner()?, root)));
    match root {
        Ok((runner, root)) => test(&["--config", &runner], |program| root.has(program)),
        Err(error) => Outcome::Skipped(format!("Open MPI 5.0 of Debian 13: {error:#}")),
    }
}

/// Runs them with settings of cargo, where some of the foreign programs are.
fn test(settings: &[&str], has: impl Fn(&str) -> bool) -> Outcome {
    let mut others = [settings, &TESTS, &["--test-threads=1"], &MODULES].concat();
    for (program, test) in FOREIGN.into_iter().filter(|(program, _)| !has(program)) {
        println!("skipped: {test}: {program} is not installed");
        others.extend(["--skip", test]);
    }
    others.extend(TIMED.iter().flat_map(|test| ["--skip", test]));
    let outcome = cargo::run(&others);
    if !matches!(outcome, Outcome::Passed) {
        return outcome;
    }
    all(TIMED.into_iter().map(|test| timed(settings, test)))
}

/// The first failure, or the reasons of all that were skipped. What follows a failure does not run.
fn all(outcomes: impl IntoIterator<Item = Outcome>) -> Outcome {
    let mut skipped = Vec::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Passed => {}
            Outcome::Skipped(why) => skipped.push(why),
            failed => return failed,
        }
    }
    if skipped.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Skipped(skipped.join("; "))
    }
}

/// Runs a test that judges times, and skips it by name where it fails beside other programs.
fn timed(settings: &[&str], test: &str) -> Outcome {
    let others = programs::other_programs();
    let name = format!("inside_openmpi::{test}");
    let outcome = cargo::run(&[settings, &TESTS, &["--exact", &name]].concat());
    let others = programs::other_programs().max(others);
    if matches!(outcome, Outcome::Passed) || others <= DISTURBED {
        return outcome;
    }
    Outcome::Skipped(format!(
        "{test} failed while other programs took {:.0} % of the processors",
        others * 100.0
    ))
}

fn missing() -> Option<String> {
    let programs = [
        "mpicc.openmpi",
        "mpirun.openmpi",
        "ip",
        "unshare",
        "timeout",
    ];
    if let Some(program) = programs.into_iter().find(|program| find(program).is_none()) {
        return Some(format!("{program} is not installed"));
    }
    // `mpirun (Open MPI) 4.1.4`, or `(OpenRTE)` by its longer name.
    let version = output("mpirun.openmpi", &["--version"]).unwrap_or_default();
    if !version.contains(") 4.1.") {
        let line = version.lines().next().unwrap_or_default();
        return Some(format!("found {line}"));
    }
    let folders = output("mpicc.openmpi", &["--showme:incdirs"]).unwrap_or_default();
    let has_headers = |folder: &str| {
        std::path::Path::new(folder)
            .join("ompi/mca/bml/bml.h")
            .is_file()
    };
    if !folders
        .split_whitespace()
        .any(|folder| has_headers(folder) || has_headers(&format!("{folder}/openmpi")))
    {
        return Some("Open MPI's component headers are not installed".into());
    }
    (!may_make_namespaces()).then(|| NO_NAMESPACES.into())
}

fn may_make_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args([
        "-Urn", "ip", "link", "add", "rail1", "type", "veth", "peer", "name", "peer1",
    ]);
    command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
