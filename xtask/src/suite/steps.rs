//! The steps of the suite, in the order in which they run: what is quick and often wrong comes first.
//!
//! A step is long if it takes more than about a minute on a machine of two processors. `lint` and `tests` are not counted
//! among these: what takes them long is that they compile the workspace, which every change needs. Steps that test take
//! the whole workspace: for a package alone cargo would compile what it needs once more, with fewer features.

use std::{path::Path, process::Command};

use anyhow::Result;

use super::{
    Outcome, browser, cargo, dist, doubling, formats, fuzz, layers, licences, limits, links,
    openmpi, pages, parquet, programs, python, record, sensitivity, words,
};
use crate::{bench, golden};

/// One step.
#[derive(Debug)]
pub(super) struct Step {
    /// Its name on the command line and in the summary.
    pub name: &'static str,
    /// What it checks, for people.
    pub what: &'static str,
    /// Whether it needs a release build of the command.
    pub needs_release: bool,
    /// Whether it installs, fetches or computes for long: it runs with `--long` only, or when it is named.
    pub is_long: bool,
    /// Runs it.
    pub run: fn() -> Outcome,
}

/// All steps.
pub(super) const STEPS: &[Step] = &[
    step("format", "the source is formatted", || cargo::run(&["fmt", "--all", "--check"])),
    step("layers", "the pure crates use no file, socket, clock or environment; loaded libraries are small", || {
        layers::check(Path::new(".")).into()
    }),
    step("sizes", "size and style of the code are within their limits", || {
        crate::lines::check(Path::new(".")).into()
    }),
    step("links", "relative links in *.md resolve", || links::check(Path::new(".")).into()),
    step("words", "comments, texts and pages use the words of STYLE.md", || words::check(Path::new(".")).into()),
    step("lint", "clippy reports nothing", || {
        cargo::run(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    }),
    step("fuzz-targets", "the fuzz targets, which are outside the workspace, compile", fuzz::check_targets),
    step("tests", "unit, integration, property and command line tests, and the examples in the documentation", || {
        // The same random cases each time: a suite that is green stays green. `cargo test` alone draws new ones.
        let arguments = ["test", "--workspace", "--no-fail-fast"];
        cargo::run_with(&arguments, &[("PROPTEST_RNG_SEED", "1")])
    }),
    step("examples", "the example programs of the library run", || examples().into()),
    step("documentation", "the documentation of the code builds without a warning", || {
        cargo::run_with(&["doc", "--workspace", "--no-deps", "--lib"], &[("RUSTDOCFLAGS", "-D warnings")])
    }),
    step("record", "real MPI programs, recorded and replayed", record::check),
    step("pages", "each command of the tutorials and how-tos runs, in labs and under Open MPI", pages::check),
    step("formats", "traces of other tools are read by these tools", formats::check),
    step("margins", "90 % intervals contain nine of ten measured flows, with every model", || {
        cargo::run(&[
            "test",
            "--release",
            "--package",
            "flowcast",
            "--test",
            "it",
            "--",
            "--ignored",
            "--nocapture",
            "margins::",
        ])
    })
    .long(),
    step("golden", "values known from the papers and from other simulators", || golden_cases().into()),
    step("licences", "deny.toml allows the licence of each dependency", || licences::check().into()),
    step("deny", "cargo-deny: licences, bans, sources", cargo::deny).long(),
    step("advisories", "cargo-deny: no dependency with a known vulnerability", cargo::advisories).long(),
    step("fuzz", "fuzzing of every reader and every wire format, ten minutes in total", fuzz::fuzz).long(),
    step("address", "recorder, Open MPI component and rails under the address sanitizer", fuzz::address_sanitizer)
        .long(),
    step("kills", "a thousand cuts of two rails lose, repeat and reorder no message", || {
        cargo::run(&["test", "--package", "flowcast-rails", "--test", "it", "--", "--ignored", "--nocapture"])
    })
    .long(),
    step("miri", "the unsafe block of the pure crates in Miri", fuzz::miri).long(),
    step("openmpi", "the component inside Open MPI 4.1 and 5.0: layout, payloads, threads, lost rails, hpcc", openmpi::check),
    step("counts", "no message costs more instructions or memory accesses than the stored counts", bench::check).on_release(),
    step("few-limits", "commands with counts at their limits, the fast ones", || {
        limits::check(limits::Extent::Selection).into()
    })
    .on_release(),
    step("limits", "every command with every count at its limit, within 2 GB and 60 s of processor time", || {
        limits::check(limits::Extent::All).into()
    })
    .on_release()
    .long(),
    step("doubling", "twice the input costs at most 2.3 times the instructions, for each kind of input", || {
        doubling::check(1)
    })
    .on_release(),
    step("doubling-long", "the same as doubling, at eight times the size", || doubling::check(8)).on_release().long(),
    step("parquet", "another program reads the same table of messages from Parquet as from CSV", parquet::check).on_release(),
    step("python", "the Python package in a fresh environment: its tests, types, engines and notebooks", python::check)
        .on_release(),
    step(
        "sensitivity",
        "curves over a network field equal the linear programs that HiGHS solves",
        sensitivity::check,
    )
    .on_release(),
    step(
        "report-page",
        "report pages in a browser: content, pointer, keys, search, contrast, names, no external request",
        browser::check,
    )
    .on_release(),
    step("dist", "the packages, installed and tested with only the libraries that they need", dist::check)
        .on_release()
        .long(),
];

const fn step(name: &'static str, what: &'static str, run: fn() -> Outcome) -> Step {
    Step {
        name,
        what,
        needs_release: false,
        is_long: false,
        run,
    }
}

impl Step {
    const fn on_release(self) -> Step {
        Step {
            needs_release: true,
            ..self
        }
    }

    const fn long(self) -> Step {
        Step {
            is_long: true,
            ..self
        }
    }
}

fn golden_cases() -> Result<()> {
    let report = golden::run(Path::new("tests/golden"))?;
    print!("{report}");
    anyhow::ensure!(report.failed() == 0, "{}", report.closing_line());
    Ok(())
}

/// Runs each, built as `tests` builds them: with the programs, or cargo takes other settings for what both need.
fn examples() -> Result<()> {
    programs::run(programs::cargo().args([
        "build",
        "--quiet",
        "--workspace",
        "--bins",
        "--examples",
    ]))?;
    let mut names: Vec<String> = Vec::new();
    for file in std::fs::read_dir("crates/flowcast/examples")? {
        names.extend(
            file?
                .file_name()
                .to_str()
                .and_then(|name| name.strip_suffix(".rs"))
                .map(str::to_owned),
        );
    }
    names.sort();
    anyhow::ensure!(
        !names.is_empty(),
        "crates/flowcast/examples: found no program"
    );
    let built = crate::target().join("debug/examples");
    names
        .iter()
        .try_for_each(|name| programs::run(&mut Command::new(built.join(name))))
}
