//! `cargo xtask bench`: cost of a message in the engines and the readers.
//!
//! Times are imprecise on a machine that also runs other programs. The instructions and memory accesses of the command for a
//! message are the same in each run, so a rise of a twentieth is noticed. The step `counts` of the suite compares them with
//! the file [`KEPT`]. The only times that are compared do not depend on the machine: the speed of the walk relative to a bare
//! loop over the same messages, both in turn on the same core.

mod bare;
mod counts;
mod kept;
mod stalled;
mod workloads;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::suite::{
    Outcome,
    programs::{cargo, find, run as run_command},
};
use kept::{Kept, Setting};

/// Where the counts are kept that the suite compares with.
const KEPT: &str = "benches/counts.toml";
/// Where workloads and what is compiled for the comparison lie.
const FOLDER: &str = "target/bench";

/// What to run, and what to do with the counts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo xtask bench
  cargo xtask bench --update
  cargo xtask bench --command ../before/target/release/flowcast walk")]
pub(crate) struct Options {
    /// Keep the counts instead of comparing with those kept
    #[arg(long, conflicts_with = "only")]
    update: bool,
    /// Count this flowcast instead of building one
    #[arg(long, value_name = "FILE")]
    command: Option<PathBuf>,
    /// Only workloads whose name begins so, and no comparison with the bare walk
    #[arg(value_name = "NAME")]
    only: Vec<String>,
}

/// Counts, compares, and compares speeds; false if a count has risen or the walk is too slow.
///
/// # Errors
/// Something cannot be built or run.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let setting = Setting::here()?;
    ensure!(
        find("valgrind").is_some(),
        "valgrind is not installed (Debian: valgrind)"
    );
    let command = options.command.clone().map_or_else(build, Ok)?;
    let command = command
        .canonicalize()
        .with_context(|| format!("cannot find {}", command.display()))?;
    let found = counts::of_all(&command, &options.only)?;
    let mut good = true;
    if options.update {
        Kept::write(Path::new(KEPT), &setting, &found)?;
    } else {
        match Kept::read(Path::new(KEPT))?.compare(&setting, &found, options.only.is_empty()) {
            Outcome::Passed => {}
            outcome => {
                println!("counts: {outcome}");
                good = !matches!(outcome, Outcome::Failed(_));
            }
        }
    }
    let walk = if options.only.is_empty() {
        bare::compare(&command)?
    } else {
        Outcome::Passed
    };
    println!("bare walk: {walk}");
    Ok(good && !matches!(walk, Outcome::Failed(_)))
}

/// The step of the suite: the counts alone, because they do not depend on what else the machine does.
pub(crate) fn check() -> Outcome {
    if find("valgrind").is_none() {
        return Outcome::Skipped("valgrind is not installed".into());
    }
    count_and_compare().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
}

fn count_and_compare() -> Result<Outcome> {
    let (setting, kept) = (Setting::here()?, Kept::read(Path::new(KEPT))?);
    if let Some(why) = kept.differs(&setting) {
        return Ok(Outcome::Skipped(why));
    }
    let found = counts::of_all(&build()?.canonicalize()?, &[])?;
    Ok(kept.compare(&setting, &found, true))
}

/// The command as users have it.
fn build() -> Result<PathBuf> {
    run_command(cargo().args(["build", "--release", "--package", "flowcast-cli"]))?;
    Ok(crate::built("flowcast"))
}
