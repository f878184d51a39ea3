//! Traces of other tools, through the tools that are here.

use super::{Outcome, cargo, programs::find};

/// A tool, the program that has to be there, and the module of its tests.
const TOOLS: [(&str, &str, &str); 2] = [
    ("OTF2", "otf2-print", "formats::otf2"),
    ("SimGrid", "smpirun", "formats::simgrid"),
];

/// Runs the tests of each tool; skipped by name if one is missing.
pub(super) fn check() -> Outcome {
    let (here, missing): (Vec<_>, Vec<_>) = TOOLS
        .into_iter()
        .partition(|(_, program, _)| find(program).is_some());
    let missing: Vec<String> = missing
        .iter()
        .map(|(name, program, _)| format!("{name} (no {program})"))
        .collect();
    let modules: Vec<&str> = here.iter().map(|(_, _, module)| *module).collect();
    cargo::test_modules(
        &["--workspace", "--test", "it", "--", "--ignored"],
        &modules,
        &missing,
        &[],
    )
}
