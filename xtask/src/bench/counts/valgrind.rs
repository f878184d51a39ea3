//! What a command executes, counted by valgrind.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::Counts;
use crate::bench::stalled;

/// A command that is being counted.
pub(in crate::bench) struct Counting {
    child: Child,
    words: String,
    counts: PathBuf,
}

/// What was counted, and the JSON that the command printed.
pub(in crate::bench) struct Counted {
    pub counts: Counts,
    pub printed: Value,
}

impl Counting {
    /// Starts the command in a folder. The file of counts is written into the folder as well.
    ///
    /// # Errors
    /// Valgrind cannot be run.
    pub(in crate::bench) fn start(
        command: &Path,
        folder: &Path,
        arguments: &[String],
        counts: &str,
    ) -> Result<Counting> {
        let file = format!("--cachegrind-out-file={counts}");
        let mut counting = valgrind(
            &["--tool=cachegrind", "--cache-sim=yes", &file],
            command,
            arguments,
        )?;
        let child = counting
            .current_dir(folder)
            .spawn()
            .context("cannot run valgrind")?;
        Ok(Counting {
            child,
            words: arguments.join(" "),
            counts: folder.join(counts),
        })
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The command fails, or prints no JSON.
    pub(in crate::bench) fn finish(self) -> Result<Counted> {
        let output = self.child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "flowcast {}: {}: {}",
            self.words,
            output.status,
            said.trim()
        );
        let counts = read_counts(&fs::read_to_string(&self.counts)?).context(self.words)?;
        Ok(Counted {
            counts,
            printed: serde_json::from_slice(&output.stdout)?,
        })
    }
}

/// Runs the command in a folder and counts the loads that wait for a store.
///
/// # Errors
/// The command fails.
pub(in crate::bench) fn count_stalled(
    command: &Path,
    folder: &Path,
    arguments: &[String],
) -> Result<f64> {
    let mut tracing = valgrind(&["--tool=lackey", "--trace-mem=yes"], command, arguments)?;
    let mut child = tracing
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run valgrind")?;
    let count = stalled::count(child.stderr.take().context("valgrind prints its trace")?)?;
    let status = child.wait()?;
    ensure!(
        status.success(),
        "flowcast {}: {status}",
        arguments.join(" ")
    );
    Ok(count)
}

/// Valgrind on one processor: on several processors, readers would have threads that wait for each other. Large blocks are
/// always new pages, which `calloc` need not clear. Otherwise glibc would move its threshold, and earlier allocations would
/// decide whether `calloc` clears recycled memory.
fn valgrind(options: &[&str], command: &Path, arguments: &[String]) -> Result<Command> {
    let mut valgrind = Command::new("taskset");
    valgrind
        .args(["-c", &one_processor()?, "valgrind", "--quiet"])
        .args(options)
        .arg(command)
        .args(arguments);
    valgrind
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(valgrind)
}

/// The first processor that this process may use, as taskset names it.
///
/// # Errors
/// The system does not say.
pub(in crate::bench) fn one_processor() -> Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap_or("0")
        .trim();
    Ok(list.split([',', '-']).next().unwrap_or("0").to_owned())
}

/// The sums at the end of cachegrind's file.
fn read_counts(text: &str) -> Result<Counts> {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let (Some(events), Some(sums)) = (line("events:"), line("summary:")) else {
        bail!("found no events and summary in cachegrind's file");
    };
    let sum = |event: &str| -> Result<f64> {
        let mut both = events.split_whitespace().zip(sums.split_whitespace());
        let (_, sum) = both
            .find(|(name, _)| *name == event)
            .with_context(|| format!("found no {event}"))?;
        Ok(sum.parse()?)
    };
    Ok(Counts {
        instructions: sum("Ir")?,
        reads: sum("Dr")?,
        writes: sum("Dw")?,
        stalled: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read_by_the_names_of_events() {
        let text = "cmd: x\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw \nfn=a\n1 2\nsummary: 100 1 1 40 2 2 20 3 3\n";
        let expected = Counts {
            instructions: 100.0,
            reads: 40.0,
            writes: 20.0,
            stalled: None,
        };
        assert_eq!(read_counts(text).unwrap(), expected);
        assert!(read_counts("events: Ir\nsummary: 100\n").is_err() && read_counts("").is_err());
    }
}
