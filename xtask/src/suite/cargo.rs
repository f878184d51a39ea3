//! Steps that are a call of cargo.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Outcome,
    programs::{self, find},
};

/// Where programs are that the suite installs for itself.
const TOOLS: &str = "target/tools";
/// How long that may take: they are compiled.
const INSTALL: Duration = Duration::from_secs(1200);

/// Runs cargo with its output shown.
pub(super) fn run(arguments: &[&str]) -> Outcome {
    run_with(arguments, &[("", ""); 0])
}

/// The same with environment variables set.
pub(super) fn run_with(arguments: &[&str], variables: &[(&str, impl AsRef<OsStr>)]) -> Outcome {
    programs::run(
        programs::cargo()
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value))),
    )
    .into()
}

/// Runs the tests of those modules whose tools are here; the step is skipped by name of what is missing.
pub(super) fn test_modules(
    arguments: &[&str],
    modules: &[&str],
    missing: &[String],
    variables: &[(&str, &OsStr)],
) -> Outcome {
    let missing = missing.join(", ");
    if modules.is_empty() {
        return Outcome::Skipped(format!("missing: {missing}"));
    }
    // Programs of the tests load libraries from the target folder itself, where `cargo test` leaves those of an earlier build.
    let built = run(&["build", "--quiet", "--workspace", "--lib"]);
    if !matches!(built, Outcome::Passed) {
        return built;
    }
    match run_with(&[&["test"], arguments, modules].concat(), variables) {
        Outcome::Passed if !missing.is_empty() => {
            Outcome::Skipped(format!("{} passed; missing: {missing}", modules.join(", ")))
        }
        outcome => outcome,
    }
}

/// `deny.toml` by cargo-deny; the step `licences` does without.
pub(super) fn deny() -> Outcome {
    run_deny(&["check", "licenses", "bans", "sources"])
}

/// Known vulnerabilities, from a database fetched before.
pub(super) fn advisories() -> Outcome {
    if !advisory_database().is_some_and(|folder| folder.is_dir()) {
        return Outcome::Skipped(
            "found no advisory database (`cargo deny fetch` downloads it)".into(),
        );
    }
    run_deny(&["check", "advisories"])
}

/// Runs cargo-deny, which is installed for the suite if it is missing and a registry can be reached.
fn run_deny(arguments: &[&str]) -> Outcome {
    if find("cargo-deny").is_none() && !Path::new(TOOLS).join("bin/cargo-deny").is_file() {
        println!("missing: cargo-deny; installing it into {TOOLS}");
        let mut install = programs::cargo();
        install.args([
            "install",
            "cargo-deny",
            "--locked",
            "--quiet",
            "--root",
            TOOLS,
        ]);
        if !programs::run_within(INSTALL, &mut install).is_ok_and(|status| status.success()) {
            return Outcome::Skipped(
                "cargo-deny is not installed, and cargo cannot install it".into(),
            );
        }
    }
    // cargo-deny looks at the dependencies of all systems; a build has fetched those of this one.
    let fetched = programs::run_within(
        INSTALL,
        programs::cargo().args(["fetch", "--locked", "--quiet"]),
    );
    if !fetched.is_ok_and(|status| status.success()) {
        return Outcome::Skipped(
            "dependencies of other systems are missing, and cargo cannot fetch them".into(),
        );
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let with_tools = std::env::split_paths(&folders).chain([Path::new(TOOLS).join("bin")]);
    match std::env::join_paths(with_tools) {
        Ok(path) => programs::run(
            programs::cargo()
                .args(["deny", "--offline"])
                .args(arguments)
                .env("PATH", path),
        )
        .into(),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Where cargo-deny keeps it.
fn advisory_database() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    Some(home.or_else(usual)?.join("advisory-dbs"))
}
