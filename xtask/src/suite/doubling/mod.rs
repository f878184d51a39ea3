//! What the command executes for inputs of one, two and four times a size: the second doubling costs at most 2.3 times what
//! the first did. Sorting and trees are within that, twice as dear for each part is not.

mod inputs;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result, bail, ensure};

use super::{Outcome, programs::find};
use inputs::{CASES, Case};

const FOLDER: &str = "target/doubling";
/// Largest cost of the second doubling, relative to the cost of the first.
const MOST: f64 = 2.3;
/// Differences below this many instructions are those of start and memory.
const LEAST: f64 = 1e6;

/// The step with each case's size times a factor.
pub(super) fn check(factor: usize) -> Outcome {
    if find("valgrind").is_none() {
        return Outcome::Skipped("valgrind is not installed".into());
    }
    all(factor).into()
}

fn all(factor: usize) -> Result<()> {
    let command = crate::built("flowcast")
        .canonicalize()
        .context("found no release build of the command")?;
    let (next, worker) = (&AtomicUsize::new(0), &command);
    let faults: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let mut faults = Vec::new();
                    while let Some(case) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
                        faults.extend(doubled(worker, case, factor).err());
                    }
                    faults
                })
            })
            .collect();
        let found = workers.into_iter().flat_map(|worker| {
            let faults = worker.join().expect("counting does not panic");
            faults.into_iter().map(|fault| format!("{fault:#}"))
        });
        found.collect()
    });
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}

fn doubled(command: &Path, case: &Case, factor: usize) -> Result<()> {
    let size = case.size * factor;
    let count = |size| count(command, case, size).with_context(|| format!("{} {size}", case.name));
    let [one, two, four] = [count(size)?, count(2 * size)?, count(4 * size)?];
    let (first, second) = (two - one, four - two);
    let ratio = second / first.max(LEAST);
    println!(
        "{:<24} {size:>8} {:>12.1} million instructions, ratio {ratio:.2}",
        case.name,
        first / 1e6
    );
    ensure!(
        ratio <= MOST,
        "{}: {first:.0} more instructions from {size} to {}, {second:.0} to {}, expected at most {MOST} times as many",
        case.name,
        2 * size,
        4 * size
    );
    Ok(())
}

/// Instructions of the command on an input of a size.
fn count(command: &Path, case: &Case, size: usize) -> Result<f64> {
    let folder = PathBuf::from(FOLDER).join(case.name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for (name, bytes) in (case.input)(size) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().context("a file in a folder")?)?;
        fs::write(path, bytes)?;
    }
    if !case.before.is_empty() {
        succeeded(Command::new(command).args(case.before).current_dir(&folder))?;
    }
    succeeded(
        Command::new("valgrind")
            .args([
                "--quiet",
                "--tool=cachegrind",
                "--cache-sim=no",
                "--cachegrind-out-file=counts",
            ])
            .arg(command)
            .args(case.words)
            .args(case.more)
            .current_dir(&folder),
    )?;
    let counts = fs::read_to_string(folder.join("counts"))?;
    let sum = counts
        .lines()
        .find_map(|line| line.strip_prefix("summary: "));
    Ok(sum
        .context("found no summary in cachegrind's file")?
        .trim()
        .parse()?)
}

fn succeeded(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))?;
    if !output.status.success() {
        bail!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
