//! Fuzzing in parts: what each target has run is kept, and the next part goes on with those that have run least.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::suite::programs;

/// Folder for the inputs that the fuzzer adds, and for its results. The seeds in `fuzz/corpus` stay as they are.
const GROWN: &str = "target/fuzz-corpus";
/// One line for each time that a target ran: target, executions, seconds, 1 if it found a fault.
const RUNS: &str = "target/fuzz-corpus/runs.tsv";
/// Where the targets are built, apart from what is built without the sanitizer.
const BUILT: &str = "target/fuzz";
/// A target runs for so long before the next one does.
const SLICE: Duration = Duration::from_secs(180);
/// What cargo-fuzz passes to the compiler.
const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Cdebug-assertions -Ccodegen-units=4 \
                     -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// For how long targets run, those first that have run least; without it the sums so far are printed
    #[arg(long)]
    minutes: Option<u64>,
}

/// What a target has run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    executions: u64,
    seconds: u64,
    pub faults: u64,
}

/// Runs targets for the requested minutes and prints a table of all runs so far. Returns `false` if a target found a fault.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut faults = 0;
    if let Some(minutes) = options.minutes {
        let targets = build()?;
        let (start, limit) = (Instant::now(), Duration::from_secs(60 * minutes));
        while let Some(left) = limit
            .checked_sub(start.elapsed())
            .filter(|left| left.as_secs() > 0)
        {
            let sums = sums(&fs::read_to_string(RUNS).unwrap_or_default())?;
            let seconds = |target: &&String| sums.get(*target).map_or(0, |ran| ran.seconds);
            let next = targets
                .iter()
                .min_by_key(seconds)
                .context("fuzz/Cargo.toml: found no target")?;
            faults += run_target(next, left.min(SLICE), 60)?.faults;
        }
    }
    print!(
        "{}",
        table(&sums(&fs::read_to_string(RUNS).unwrap_or_default())?)
    );
    Ok(faults == 0)
}

/// Builds all targets with any compiler, and gives their names.
pub(crate) fn build() -> Result<Vec<String>> {
    let host = programs::host().context("found no host in the output of rustc")?;
    let arguments = [
        "build",
        "--release",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target-dir",
        BUILT,
    ];
    // What the sanitizer needs is not stable yet.
    let flags = [("RUSTC_BOOTSTRAP", "1"), ("RUSTFLAGS", FLAGS)];
    programs::run(
        programs::cargo()
            .args(arguments)
            .args(["--target", &host])
            .envs(flags),
    )?;
    targets()
}

/// The names of `fuzz/Cargo.toml`.
fn targets() -> Result<Vec<String>> {
    let manifest: toml::Table = toml::from_str(&fs::read_to_string("fuzz/Cargo.toml")?)?;
    let targets = manifest.get("bin").and_then(toml::Value::as_array);
    Ok(targets
        .into_iter()
        .flatten()
        .filter_map(|target| Some(target.get("name")?.as_str()?.to_owned()))
        .collect())
}

/// Runs one target on one processor at idle priority and records its executions. An input may take `most_seconds` and 1 GiB.
pub(crate) fn run_target(target: &str, limit: Duration, most_seconds: u64) -> Result<Ran> {
    let (grown, seeds) = (format!("{GROWN}/{target}"), format!("fuzz/corpus/{target}"));
    fs::create_dir_all(&grown)?;
    fs::create_dir_all(&seeds)?;
    let host = programs::host().context("found no host in the output of rustc")?;
    let start = Instant::now();
    let mut fuzzer = Command::new("nice");
    fuzzer.args([
        "-n",
        "19",
        &format!("{BUILT}/{host}/release/{target}"),
        &grown,
        &seeds,
    ]);
    fuzzer.args([
        format!("-max_total_time={}", limit.as_secs().max(1)),
        format!("-timeout={most_seconds}"),
        format!("-artifact_prefix={GROWN}/found-{target}-"),
        "-rss_limit_mb=1024".to_owned(),
        "-print_final_stats=1".to_owned(),
    ]);
    let ended = fuzzer
        .stdin(Stdio::null())
        .output()
        .context("cannot run nice")?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let executions = said
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let executions = executions
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0);
    let ran = Ran {
        executions,
        seconds: start.elapsed().as_secs(),
        faults: u64::from(!ended.status.success()),
    };
    if ran.faults > 0 {
        let last: Vec<&str> = said.lines().rev().take(40).collect();
        eprintln!(
            "{target}: {}",
            last.into_iter().rev().collect::<Vec<_>>().join("\n")
        );
    }
    ensure!(
        executions > 0 || ran.faults > 0,
        "{target}: found no count of executions, expected it after `stat::`"
    );
    let mut runs = OpenOptions::new().create(true).append(true).open(RUNS)?;
    writeln!(
        runs,
        "{target}\t{executions}\t{}\t{}",
        ran.seconds, ran.faults
    )?;
    Ok(ran)
}

/// What each target has run, by its name.
fn sums(runs: &str) -> Result<BTreeMap<String, Ran>> {
    let mut sums: BTreeMap<String, Ran> = BTreeMap::new();
    for (line, text) in (1..).zip(runs.lines()) {
        let words: Vec<&str> = text.split('\t').collect();
        let numbers: Vec<u64> = words
            .iter()
            .skip(1)
            .filter_map(|word| word.parse().ok())
            .collect();
        let [executions, seconds, faults] = numbers[..] else {
            bail!(
                "{}:{line}: found `{text}`, expected a target, executions, seconds and faults",
                Path::new(RUNS).display()
            )
        };
        let sum = sums.entry(words[0].to_owned()).or_default();
        sum.executions += executions;
        sum.seconds += seconds;
        sum.faults += faults;
    }
    Ok(sums)
}

/// The rows of a Markdown table, and their sum.
fn table(sums: &BTreeMap<String, Ran>) -> String {
    let mut text = "| target | executions | minutes | faults |\n|---|---|---|---|\n".to_owned();
    let mut all = Ran::default();
    let mut row = |name: &str, ran: &Ran| {
        let (executions, minutes) = (with_commas(ran.executions), ran.seconds as f64 / 60.0);
        writeln!(
            text,
            "| {name} | {executions} | {minutes:.1} | {} |",
            ran.faults
        )
        .expect("writing to a string succeeds");
    };
    for (target, ran) in sums {
        row(&format!("`{target}`"), ran);
        all.executions += ran.executions;
        all.seconds += ran.seconds;
        all.faults += ran.faults;
    }
    row("together", &all);
    text
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let grouped = digits
        .char_indices()
        .map(|(at, digit)| match (digits.len() - at) % 3 {
            0 if at > 0 => format!(",{digit}"),
            _ => digit.to_string(),
        });
    grouped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_summed_by_target_and_a_malformed_line_is_named() {
        let sums = sums("dim\t1200000\t90\t0\ngoal\t7\t30\t1\ndim\t34567\t30\t0\n").unwrap();
        assert_eq!(
            table(&sums),
            "| target | executions | minutes | faults |\n|---|---|---|---|\n| `dim` | 1,234,567 | 2.0 | 0 |\n\
             | `goal` | 7 | 0.5 | 1 |\n| together | 1,234,574 | 2.5 | 1 |\n"
        );
        let cut = super::sums("dim\t1\t2\t0\ndim\t1\n")
            .unwrap_err()
            .to_string();
        assert!(
            cut.starts_with("target/fuzz-corpus/runs.tsv:2: found `dim\t1`"),
            "{cut}"
        );
    }
}
