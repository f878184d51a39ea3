//! Puts the commit into the version of an optimised build. Builds for tests leave it out, so that a commit does not rebuild
//! them.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_optimised = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    name_version(is_optimised.then(commit).flatten());
}

/// Sets the version that `--version` prints.
fn name_version(commit: Option<String>) {
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets CARGO_PKG_VERSION");
    let commit = commit.map_or(String::new(), |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=FLOWCAST_VERSION={version}{commit}");
}

/// First 12 digits of the commit, if this is a checkout of Flowcast and git is installed.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).ok())?
    };
    let said = git(&["rev-parse", "--show-prefix", "HEAD"])?;
    // Sources that were unpacked inside another repository do not belong to its commit.
    let commit = said
        .strip_prefix("crates/flowcast-terminal/\n")?
        .get(..12)?;
    // The second file changes with each commit.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(path.trim_end()).exists() {
            println!("cargo::rerun-if-changed={}", path.trim_end());
        }
    }
    Some(commit.to_owned())
}
