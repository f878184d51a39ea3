//! What a workload costs for each of what it does: the difference between the commands that do it once and twice more.

pub(super) mod valgrind;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::{
    FOLDER,
    workloads::{self, WORKLOADS, Workload},
};
use valgrind::{Counted, Counting, count_stalled};

/// Instructions, and data read and written, as valgrind counts them: for a message, or for a packet on one link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counts {
    pub instructions: f64,
    pub reads: f64,
    pub writes: f64,
    /// Loads that wait for a store before them, where they were counted.
    pub stalled: Option<f64>,
}

impl Counts {
    /// One count after the other; what is absent in one of them is absent.
    fn with(self, other: Counts, both: impl Fn(f64, f64) -> f64) -> Counts {
        Counts {
            instructions: both(self.instructions, other.instructions),
            reads: both(self.reads, other.reads),
            writes: both(self.writes, other.writes),
            stalled: self
                .stalled
                .zip(other.stalled)
                .map(|(one, other)| both(one, other)),
        }
    }

    /// By their names.
    pub(super) fn named(self) -> impl Iterator<Item = (&'static str, f64)> {
        let always = [
            ("instructions", self.instructions),
            ("reads", self.reads),
            ("writes", self.writes),
        ];
        always
            .into_iter()
            .chain(self.stalled.map(|count| ("stalled loads", count)))
    }
}

/// Counts the workloads whose names begin with one of `only`, all if that is empty, and prints them.
///
/// # Errors
/// The command fails.
pub(super) fn of_all(command: &Path, only: &[String]) -> Result<Vec<(&'static str, Counts)>> {
    let folder = Path::new(FOLDER).join("workloads");
    workloads::make(command, &folder)?;
    let is_asked = |workload: &&Workload| {
        only.is_empty() || only.iter().any(|name| workload.name.starts_with(name))
    };
    let asked: Vec<&Workload> = WORKLOADS.iter().filter(is_asked).collect();
    ensure!(!asked.is_empty(), "found no workload {}", only.join(", "));
    println!(
        "{:<18} {:>12} {:>9} {:>9} {:>9}  each",
        "workload", "instructions", "reads", "writes", "stalled"
    );
    let mut found: Vec<(&str, Counts)> = Vec::new();
    for workload in asked {
        let mut counts = of(command, &folder, workload).context(workload.name)?;
        if let Some(part) = workload.contains {
            let known = found
                .iter()
                .find(|(name, _)| *name == part)
                .map(|(_, counts)| *counts);
            let own = || {
                of(
                    command,
                    &folder,
                    WORKLOADS
                        .iter()
                        .find(|other| other.name == part)
                        .context(part)?,
                )
            };
            counts = counts.with(known.map_or_else(own, Ok)?, |whole, part| whole - part);
        }
        let counts = counts.with(counts, |count, _| (count * 100.0).round() / 100.0);
        print(workload, &counts);
        found.push((workload.name, counts));
    }
    Ok(found)
}

fn print(workload: &Workload, counts: &Counts) {
    let Counts {
        instructions,
        reads,
        writes,
        stalled,
    } = counts;
    let stalled = stalled.map_or(String::new(), |count| format!("{count:.2}"));
    println!(
        "{:<18} {instructions:>12.1} {reads:>9.1} {writes:>9.1} {stalled:>9}  {}",
        workload.name, workload.counted
    );
}

fn of(command: &Path, folder: &Path, workload: &Workload) -> Result<Counts> {
    let counting = |times| {
        Counting::start(
            command,
            folder,
            &workload.words(times),
            &format!("counts.{times}"),
        )
    };
    let (once, thrice) = (counting("1")?, counting("3")?);
    let (
        Counted {
            counts: mut once,
            printed,
        },
        Counted {
            counts: mut thrice, ..
        },
    ) = (once.finish()?, thrice.finish()?);
    if workload.is_traced {
        let tracing = |times| count_stalled(command, folder, &workload.words(times));
        let counts = std::thread::scope(|scope| {
            let both = ["1", "3"].map(|times| scope.spawn(move || tracing(times)));
            both.map(|thread| thread.join().expect("counting does not panic"))
        });
        let [of_once, of_thrice] = counts;
        (once.stalled, thrice.stalled) = (Some(of_once?), Some(of_thrice?));
    }
    let counted = &printed[workload.counted];
    let listed = || counted.as_array().map(|each| each.len() as f64);
    let each = counted
        .as_f64()
        .or_else(listed)
        .filter(|count| *count > 0.0);
    let each = 2.0 * each.with_context(|| format!("found no {} in {printed}", workload.counted))?;
    Ok(thrice.with(once, |thrice, once| (thrice - once) / each))
}
