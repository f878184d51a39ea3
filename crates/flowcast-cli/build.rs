//! Builds the recorder that is embedded in an optimised build of the command.
//!
//! The recorder is a separate library, which a user who installs only the command does not get. A second cargo builds it in
//! its own target folder, so that the two never wait for each other's lock. Builds for tests do not embed it: they find the
//! recorder in their target folder.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const RECORDER: &str = "libflowcast_record.so";

/// Crates of the recorder.
const SOURCES: [&str; 3] = ["flowcast-record", "flowcast-recording", "flowcast-units"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_optimised = variable("PROFILE") == "release";
    let is_wanted = is_optimised && env::var_os("CARGO_FEATURE_EMBED_RECORDER").is_some();
    embed(is_wanted.then(|| recorder(Path::new(".."))).flatten());
}

/// Writes the recorder to the place from which `embedded.rs` includes it. An empty file stands for no recorder.
fn embed(recorder: Option<PathBuf>) {
    let library = recorder.map_or(Vec::new(), |built| {
        fs::read(built).expect("cargo has built it")
    });
    fs::write(PathBuf::from(variable("OUT_DIR")).join(RECORDER), library)
        .expect("the output folder can be written");
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("found no {name}, expected cargo to set it"))
}

/// Builds the recorder. `None` if its sources are not beside this crate.
fn recorder(crates: &Path) -> Option<PathBuf> {
    if !crates.join(SOURCES[0]).is_dir() {
        println!(
            "cargo::warning=found no sources of the recorder: `flowcast record` will need --recorder"
        );
        return None;
    }
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", crates.join(source).display());
    }
    let folder = PathBuf::from(variable("OUT_DIR")).join("recorder");
    // The recorder only needs crates that this command needs too, so they are available offline, unless the command is
    // installed without the lock file.
    let mut output = build(crates, &folder, true);
    if !output.status.success() && !is_offline() {
        output = build(crates, &folder, false);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the recorder cannot be built (--no-default-features builds the command without it):\n{said}"
    );
    Some(
        folder
            .join(variable("TARGET"))
            .join("release")
            .join(RECORDER),
    )
}

fn build(crates: &Path, folder: &Path, offline: bool) -> Output {
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--lib",
        "--config",
        "profile.release.strip=true",
    ]);
    cargo
        .arg("--manifest-path")
        .arg(crates.join(SOURCES[0]).join("Cargo.toml"));
    cargo
        .arg("--target")
        .arg(variable("TARGET"))
        .arg("--target-dir")
        .arg(folder);
    cargo.args(offline.then_some("--offline"));
    // If the user shares a build folder between projects, the outer cargo has locked it. Clippy must not run for the
    // recorder too.
    cargo
        .env("CARGO_BUILD_BUILD_DIR", folder)
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    cargo.output().expect("the cargo that runs this can be run")
}

/// `true` if the outer cargo is offline, by a variable or by its command line.
fn is_offline() -> bool {
    let parent = std::os::unix::process::parent_id();
    let command = fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    let mut words = command.split(|byte| *byte == 0);
    env::var("CARGO_NET_OFFLINE").is_ok_and(|value| value == "true")
        || words.any(|word| matches!(word, b"--offline" | b"--frozen"))
}
