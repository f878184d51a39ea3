//! What a run of the command came to, and whether this machine can carry a test out.

use std::process::Output;

use flowcast_measure::lab::check_machine;
use serde_json::Value;

/// What the command wrote to its standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The JSON that a command has printed, which ended well.
pub(crate) fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether namespaces are allowed here; if not, says so with the name of the test that asks.
pub(crate) fn labs_can_be_had(test: &str) -> bool {
    check_machine()
        .map_err(|reason| eprintln!("skipped: {test}: {reason}"))
        .is_ok()
}
