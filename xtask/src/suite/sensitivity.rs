//! Curves over a field of the network, against linear programs that HiGHS solves.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Result, ensure};

use super::{Outcome, cargo, programs::run_within, python_modules};

const FOLDER: &str = "target/sensitivity";
const OWN_PYTHON: &str = "target/sensitivity/python";
const COMPARE: &str = "xtask/src/suite/sensitivity.py";
/// Traces of messages and computation alone.
const TRACES: [&str; 5] = [
    "examples/ring.dim",
    "tests/golden/replay/halo_4_2_8192.dim",
    "tests/golden/replay/binbcast_16_3_16.dim",
    "tests/golden/replay/chain_4_3_8192.dim",
    "tests/golden/replay/shift_8_4_8192.dim",
];

/// Compares every piece of the curves of bundled traces and of random programs.
pub(super) fn check() -> Outcome {
    let Some(python) = python_modules::that_imports(&["highspy"], OWN_PYTHON) else {
        return Outcome::Skipped("Python has no highspy, and pip cannot install it".into());
    };
    match cargo::run(&["build", "--release", "--package", "flowcast-cli"]) {
        Outcome::Passed => compare(&python).into(),
        other => other,
    }
}

fn compare(python: &Path) -> Result<()> {
    fs::create_dir_all(FOLDER)?;
    let mut command = Command::new(python);
    command
        .arg(COMPARE)
        .arg(crate::built("flowcast"))
        .arg(FOLDER)
        .args(TRACES);
    let status = run_within(Duration::from_secs(300), &mut command)?;
    ensure!(status.success(), "a curve differs from the linear program");
    Ok(())
}
