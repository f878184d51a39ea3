//! Steps that are a call of cargo.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::Outcome;
use super::programs::find;

const NO_CARGO_DENY: &str = "cargo-deny is not installed (`cargo install cargo-deny --locked`)";

/// Runs cargo with its output shown.
pub(super) fn run(arguments: &[&str]) -> Outcome {
    run_with(arguments, &[])
}

/// The same with environment variables set.
pub(super) fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(arguments).envs(variables.iter().copied()).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("cargo {}: {status}", arguments.join(" "))),
        Err(error) => Outcome::Failed(format!("cannot run cargo: {error}")),
    }
}

/// Runs the tests of those modules whose tools are here; the step is skipped by name of what is missing.
pub(super) fn test_modules(arguments: &[&str], modules: &[&str], missing: &[String]) -> Outcome {
    let missing = missing.join(", ");
    if modules.is_empty() {
        return Outcome::Skipped(format!("not here: {missing}"));
    }
    match run(&[&["test"], arguments, modules].concat()) {
        Outcome::Passed if !missing.is_empty() => {
            Outcome::Skipped(format!("{} passed; not here: {missing}", modules.join(", ")))
        }
        outcome => outcome,
    }
}

/// `deny.toml` by cargo-deny, for those who have it; the step `licences` does without.
pub(super) fn deny() -> Outcome {
    match find("cargo-deny") {
        Some(_) => run(&["deny", "--offline", "check", "licenses", "bans", "sources"]),
        None => Outcome::Skipped(NO_CARGO_DENY.into()),
    }
}

/// Known vulnerabilities, from a database fetched before.
pub(super) fn advisories() -> Outcome {
    if find("cargo-deny").is_none() {
        return Outcome::Skipped(NO_CARGO_DENY.into());
    }
    if !advisory_database().is_some_and(|folder| folder.is_dir()) {
        return Outcome::Skipped("no advisory database here (`cargo deny fetch` gets it)".into());
    }
    run(&["deny", "--offline", "check", "advisories"])
}

/// Where cargo-deny keeps it.
fn advisory_database() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    Some(home.or_else(usual)?.join("advisory-dbs"))
}
