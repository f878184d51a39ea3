//! Long steps that look for what tests do not: fuzzing, address sanitizer, Miri.

use std::time::Duration;

use super::{
    Outcome, cargo,
    programs::{self, host},
};
use crate::fuzz;

/// For how long all fuzz targets run together.
const FUZZING: Duration = Duration::from_secs(600);

/// Each fuzz target for its part of ten minutes.
pub(super) fn fuzz() -> Outcome {
    let all = || {
        let targets = fuzz::build()?;
        let each = FUZZING / targets.len().max(1) as u32;
        for target in &targets {
            if fuzz::run_target(target, each, 10)?.faults > 0 {
                anyhow::bail!("{target} found a fault");
            }
        }
        anyhow::Ok(())
    };
    all().into()
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

/// Tests of the crates with unsafe code beside C, and of the rails, under the address sanitizer.
pub(super) fn address_sanitizer() -> Outcome {
    let Some(target) = host() else {
        return Outcome::Failed("found no host in the output of rustc".into());
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
    // Memory that a test has not freed at its end is no fault. An allocation that is too large fails without ending the test.
    cargo::run_with(
        &arguments,
        &[
            ("RUSTC_BOOTSTRAP", "1"),
            ("RUSTFLAGS", "-Zsanitizer=address --cfg sanitized"),
            ("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1"),
        ],
    )
}

/// Tests of what fetches memory ahead, the only unsafe block of the pure crates, in Miri, which most toolchains lack.
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
    let tests = ["--lib", "--", "slab", "ring", "messages"];
    let arguments = [&["miri", "test", "-p", "flowcast-replay"][..], &tests].concat();
    // Properties look beside their source for inputs that failed before, and each case takes Miri long.
    let variables = [
        ("MIRIFLAGS", "-Zmiri-disable-isolation"),
        ("PROPTEST_CASES", "4"),
    ];
    cargo::run_with(&arguments, &variables)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

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
