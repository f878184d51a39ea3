//! The commands of tutorials and how-to pages, with the labs and the MPI library that they need.

use super::{Outcome, cargo, programs::find};

/// A program and the package that has it.
const NEEDED: [(&str, &str); 4] = [
    ("mpicc.openmpi", "libopenmpi-dev"),
    ("mpirun.openmpi", "openmpi-bin"),
    ("ip", "iproute2"),
    ("ethtool", "ethtool"),
];

/// Runs the blocks; those whose programs are missing are skipped by name.
pub(super) fn check() -> Outcome {
    let missing: Vec<String> = NEEDED
        .iter()
        .filter(|(program, _)| find(program).is_none())
        .map(|(program, package)| format!("{program} (package {package})"))
        .collect();
    let tests = [
        "--workspace",
        "--test",
        "cli",
        "--",
        "--ignored",
        "--nocapture",
    ];
    cargo::test_modules(
        &tests,
        &["each_command_of_a_tutorial_or_a_how_to_runs"],
        &missing,
        &[],
    )
}
