//! Long steps that look for what tests do not: fuzzing, address sanitizer, Miri.

use std::fs;

use super::{
    Outcome, cargo,
    programs::{self, find, output},
};

/// For how long all fuzz targets run together.
const FUZZING_SECONDS: usize = 600;
/// Where the fuzzer keeps what it has found out; the seeds in `fuzz/corpus` stay as they are.
const GROWN: &str = "target/fuzz-corpus";

/// Each fuzz target for its part of ten minutes.
pub(super) fn fuzz() -> Outcome {
    if find("cargo-fuzz").is_none() {
        return Outcome::Skipped("cargo-fuzz is not installed (`cargo install cargo-fuzz`)".into());
    }
    let targets = match targets() {
        Ok(targets) => targets,
        Err(error) => return Outcome::Failed(format!("fuzz/Cargo.toml: {error:#}")),
    };
    let seconds = format!("-max_total_time={}", FUZZING_SECONDS / targets.len().max(1));
    let each = |target: &String| {
        let (grown, seeds) = (format!("{GROWN}/{target}"), format!("fuzz/corpus/{target}"));
        if let Err(error) = fs::create_dir_all(&grown).and_then(|()| fs::create_dir_all(&seeds)) {
            return Outcome::Failed(error.to_string());
        }
        let fuzz = [
            "fuzz",
            "run",
            target,
            &grown,
            &seeds,
            "--",
            &seconds,
            "-timeout=10",
            "-rss_limit_mb=1024",
        ];
        // What the sanitizer needs is not stable yet.
        cargo::run_with(&fuzz, &[("RUSTC_BOOTSTRAP", "1")])
    };
    targets
        .iter()
        .map(each)
        .find(|outcome| !matches!(outcome, Outcome::Passed))
        .unwrap_or(Outcome::Passed)
}

/// Whether the targets compile: they include files of other crates by path.
pub(super) fn check_targets() -> Outcome {
    // Nothing is linked, so the fuzzer need not be compiled.
    let fuzzer = [("CUSTOM_LIBFUZZER_PATH", "/libfuzzer.a")];
    cargo::run_with(
        &[
            "check",
            "--quiet",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--target-dir",
            "target",
        ],
        &fuzzer,
    )
}

/// The names of `fuzz/Cargo.toml`.
fn targets() -> anyhow::Result<Vec<String>> {
    let manifest: toml::Table = toml::from_str(&fs::read_to_string("fuzz/Cargo.toml")?)?;
    let targets = manifest
        .get("bin")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten();
    Ok(targets
        .filter_map(|target| Some(target.get("name")?.as_str()?.to_owned()))
        .collect())
}

/// Tests of the crates with unsafe code beside C, and of the rails, under the address sanitizer.
pub(super) fn address_sanitizer() -> Outcome {
    let Some(target) = host() else {
        return Outcome::Failed("rustc does not tell its host".into());
    };
    let folder = ["--target", &target, "--target-dir", "target/sanitized"];
    let crates = [
        "-p",
        "flowcast-record",
        "-p",
        "flowcast-recording",
        "-p",
        "flowcast-openmpi",
        "-p",
        "flowcast-rails",
    ];
    let arguments = [&["test", "--lib", "--tests"][..], &folder, &crates].concat();
    // What a test leaves behind when it ends is no fault.
    cargo::run_with(
        &arguments,
        &[
            ("RUSTC_BOOTSTRAP", "1"),
            ("RUSTFLAGS", "-Zsanitizer=address"),
            ("ASAN_OPTIONS", "detect_leaks=0"),
        ],
    )
}

/// Tests of the pure crates with unsafe blocks in Miri, which most toolchains lack.
pub(super) fn miri() -> Outcome {
    let is_here = programs::cargo()
        .args(["miri", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_here {
        return Outcome::Skipped(
            "Miri is not part of this toolchain (`rustup +nightly component add miri`)".into(),
        );
    }
    cargo::run(&[
        "miri",
        "test",
        "-p",
        "flowcast-replay",
        "-p",
        "flowcast-trace",
        "--lib",
    ])
}

fn host() -> Option<String> {
    let version = output("rustc", &["-vV"]).ok()?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_a_target_is_run_and_has_seeds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let manifest: toml::Table =
            toml::from_str(&fs::read_to_string(folder.join("Cargo.toml")).unwrap()).unwrap();
        let paths = manifest["bin"]
            .as_array()
            .unwrap()
            .iter()
            .map(|target| target["path"].as_str().unwrap());
        let listed: Vec<&str> = paths.collect();
        for file in fs::read_dir(folder.join("fuzz_targets")).unwrap() {
            let file = file.unwrap();
            let path = format!("fuzz_targets/{}", file.file_name().to_str().unwrap());
            let is_target = fs::read_to_string(file.path())
                .unwrap()
                .contains("fuzz_target!");
            assert_eq!(is_target, listed.contains(&path.as_str()), "{path}");
            let seeds = folder.join("corpus").join(file.path().file_stem().unwrap());
            let has_seeds = fs::read_dir(seeds).is_ok_and(|mut seeds| seeds.next().is_some());
            assert_eq!(is_target, has_seeds, "{path}");
        }
    }
}
