//! `cargo xtask test`: the whole test suite, step by step.
//!
//! A step that cannot run here is skipped by name with its reason; it is never counted as passed.

mod browser;
mod cargo;
mod circles;
mod debian_root;
mod dist;
mod doubling;
mod formats;
mod fuzz;
pub(crate) mod layers;
pub(crate) mod licences;
mod limits;
mod links;
mod openmpi;
mod packages;
mod pages;
mod parquet;
pub(crate) mod programs;
mod python;
pub(crate) mod python_modules;
mod record;
mod sensitivity;
mod steps;
mod words;

use std::{
    cmp::Reverse,
    fmt,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Args;

use steps::{STEPS, Step};

/// What to run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo xtask test
  cargo xtask test --quick
  cargo xtask test --long
  cargo xtask test lint links")]
pub(crate) struct Options {
    /// Leave out the steps that need a release build of the command
    #[arg(long)]
    quick: bool,
    /// Run the steps that install, fetch or compute for long as well
    #[arg(long, conflicts_with = "quick")]
    long: bool,
    /// List the steps, say which are long, and stop
    #[arg(long)]
    list: bool,
    /// Run only these steps
    #[arg(value_name = "STEP")]
    only: Vec<String>,
}

/// How a step ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All that it checks holds.
    Passed,
    /// Something does not hold.
    Failed(String),
    /// It could not run here.
    Skipped(String),
}

impl From<Result<()>> for Outcome {
    fn from(result: Result<()>) -> Outcome {
        match result {
            Ok(()) => Outcome::Passed,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Passed => f.write_str("passed"),
            Outcome::Failed(why) => write!(f, "FAILED: {why}"),
            Outcome::Skipped(why) => write!(f, "skipped: {why}"),
        }
    }
}

struct Finished {
    name: &'static str,
    took: Duration,
    outcome: Outcome,
}

/// Runs the chosen steps; false if one failed.
///
/// # Errors
/// An unknown step, or no workspace to test.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let chosen = chosen(&options.only)?;
    if options.list {
        for Step {
            name,
            what,
            is_long,
            ..
        } in chosen
        {
            println!(
                "{name:<14} {:<5} {what}",
                if *is_long { "long" } else { "" }
            );
        }
        return Ok(true);
    }
    std::env::set_current_dir(workspace_root()?)?;
    let running = chosen
        .iter()
        .filter(|step| left_out(step, options).is_none());
    packages::provide(&running.map(|step| step.name).collect::<Vec<_>>());
    let mut finished: Vec<Finished> = chosen
        .into_iter()
        .map(|step| run_step(step, options))
        .collect();
    finished.sort_by_key(|step| Reverse(step.took));
    Ok(summarise(&finished))
}

fn chosen(names: &[String]) -> Result<Vec<&'static Step>> {
    for name in names {
        let known = || {
            STEPS
                .iter()
                .map(|step| step.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        ensure!(
            STEPS.iter().any(|step| step.name == name),
            "found no step `{name}`, expected one of {}",
            known()
        );
    }
    Ok(STEPS
        .iter()
        .filter(|step| names.is_empty() || names.iter().any(|name| name == step.name))
        .collect())
}

/// Cargo tells where this package is; the workspace is the folder above.
fn workspace_root() -> Result<PathBuf> {
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").context("expected to be run as `cargo xtask`")?;
    Ok(PathBuf::from(package).join(".."))
}

/// Why a step is not run, if it is not.
fn left_out(step: &Step, options: &Options) -> Option<&'static str> {
    match options {
        Options { quick: true, .. } if step.needs_release => Some("skipped by --quick"),
        Options {
            long: false, only, ..
        } if step.is_long && only.is_empty() => Some("only with --long"),
        _ => None,
    }
}

fn run_step(step: &'static Step, options: &Options) -> Finished {
    println!("\n== {}: {}", step.name, step.what);
    let start = Instant::now();
    let outcome = left_out(step, options).map_or_else(step.run, |why| Outcome::Skipped(why.into()));
    let took = start.elapsed();
    println!("== {}: {outcome} ({:.1} s)", step.name, took.as_secs_f64());
    Finished {
        name: step.name,
        took,
        outcome,
    }
}

/// Prints the table, slowest first, and the closing line; whether nothing failed.
fn summarise(finished: &[Finished]) -> bool {
    println!("\nSummary");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for step in finished {
        println!(
            "  {:<14} {:>7.1} s  {}",
            step.name,
            step.took.as_secs_f64(),
            step.outcome
        );
        match step.outcome {
            Outcome::Passed => passed += 1,
            Outcome::Failed(_) => failed += 1,
            Outcome::Skipped(_) => skipped += 1,
        }
    }
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    failed == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_step_is_refused_and_known_ones_keep_their_order() {
        assert!(chosen(&["astrology".into()]).is_err());
        let names = |names: &[&str]| -> Vec<&str> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&names)
                .unwrap()
                .iter()
                .map(|step| step.name)
                .collect()
        };
        assert_eq!(names(&["links", "format"]), ["format", "links"]);
        assert_eq!(names(&[]).len(), STEPS.len());
    }

    #[test]
    fn long_steps_run_on_request() {
        let is_run = |long, only: &[&str]| {
            let only = only.iter().map(|name| (*name).to_owned()).collect();
            let step = STEPS.iter().find(|step| step.name == "dist").unwrap();
            left_out(
                step,
                &Options {
                    quick: false,
                    long,
                    list: false,
                    only,
                },
            )
            .is_none()
        };
        assert!(!is_run(false, &[]) && is_run(true, &[]) && is_run(false, &["dist"]));
    }

    #[test]
    fn only_a_failed_step_fails_the_suite() {
        let step = |outcome| Finished {
            name: "x",
            took: Duration::ZERO,
            outcome,
        };
        assert!(summarise(&[
            step(Outcome::Passed),
            step(Outcome::Skipped("no network".into()))
        ]));
        assert!(!summarise(&[
            step(Outcome::Passed),
            step(Outcome::Failed("1 case".into()))
        ]));
    }
}
