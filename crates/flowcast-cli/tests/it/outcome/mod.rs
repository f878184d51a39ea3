//! Outcome of a run of the command, and checks that this machine can execute a test.

use std::process::{Command, Output};

use flowcast_measure::lab::check_machine;
use serde_json::Value;

/// Standard error of the command.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// JSON output of a command, which must have succeeded.
pub(crate) fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `true` if namespaces are allowed here. Otherwise prints the name of the skipped test and the reason.
pub(crate) fn labs_can_be_had(test: &str) -> bool {
    check_machine()
        .map_err(|reason| eprintln!("skipped: {test}: {reason}"))
        .is_ok()
}

/// `true` if `mpirun` belongs to Open MPI. Otherwise prints the name of the skipped test and the reason.
pub(crate) fn there_is_mpi(test: &str) -> bool {
    let found = Command::new("mpirun").arg("--version").output();
    let is_open_mpi =
        found.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Open MPI"));
    if !is_open_mpi {
        eprintln!("skipped: {test}: found no mpirun of Open MPI (Debian package openmpi-bin)");
    }
    is_open_mpi
}
