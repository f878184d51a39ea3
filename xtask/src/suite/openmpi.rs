//! The component inside a real Open MPI: the tests of `flowcast-openmpi` that other machines have to ignore.

use std::process::{Command, Stdio};

use super::programs::{find, output};
use super::{Outcome, cargo};

/// Programs of others that tests run, and those tests.
const FOREIGN: [(&str, &str); 2] =
    [("hpcc", "hpcc_verifies"), ("NPopenmpi", "netpipe_finds_its_messages_as_they_were_sent")];

/// Runs them where Open MPI 4.1 with its headers is, and namespaces can be made.
pub(super) fn check() -> Outcome {
    match missing() {
        Some(why) => Outcome::Skipped(why),
        None => {
            let tests = ["test", "--workspace", "--test", "inside_openmpi", "--test", "layout"];
            let all = [&tests[..], &["--", "--ignored", "--test-threads=1"]].concat();
            cargo::run(&[&all[..], &left_out()].concat())
        }
    }
}

/// Options that leave out what is not installed, which is said.
fn left_out() -> Vec<&'static str> {
    let missing = FOREIGN.into_iter().filter(|(program, _)| find(program).is_none());
    let option = |(program, test)| {
        println!("skipped: {test}: {program} is not installed");
        ["--skip", test]
    };
    missing.flat_map(option).collect()
}

fn missing() -> Option<String> {
    let programs = ["mpicc.openmpi", "mpirun.openmpi", "ip", "unshare", "timeout"];
    if let Some(program) = programs.into_iter().find(|program| find(program).is_none()) {
        return Some(format!("{program} is not installed"));
    }
    // `mpirun (Open MPI) 4.1.4`, or `(OpenRTE)` by its longer name.
    let version = output("mpirun.openmpi", &["--version"]).unwrap_or_default();
    if !version.contains(") 4.1.") {
        let line = version.lines().next().unwrap_or_default();
        return Some(format!("found {line}, the component is for Open MPI 4.1"));
    }
    let folders = output("mpicc.openmpi", &["--showme:incdirs"]).unwrap_or_default();
    let has_headers = |folder: &str| std::path::Path::new(folder).join("ompi/mca/bml/bml.h").is_file();
    if !folders.split_whitespace().any(|folder| has_headers(folder) || has_headers(&format!("{folder}/openmpi"))) {
        return Some("Open MPI's component headers are not installed".into());
    }
    (!may_make_namespaces()).then(|| "this machine lets nobody make network namespaces with interfaces".into())
}

fn may_make_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(["-Urn", "ip", "link", "add", "rail1", "type", "veth", "peer", "name", "peer1"]);
    command.stdin(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
