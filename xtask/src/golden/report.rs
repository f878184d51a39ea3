//! What a run of golden cases found.

use std::{collections::BTreeMap, fmt};

use super::case::Mismatch;

/// Passed and failed cases, by kind.
#[derive(Debug, Default)]
pub(crate) struct Report {
    kinds: BTreeMap<String, Tally>,
    failures: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    passed: usize,
    failed: usize,
}

impl Report {
    /// Books one case.
    pub(crate) fn add(&mut self, kind: &str, id: &str, outcome: Result<(), Mismatch>) {
        let tally = self.kinds.entry(kind.to_owned()).or_default();
        match outcome {
            Ok(()) => tally.passed += 1,
            Err(mismatch) => {
                tally.failed += 1;
                self.failures.push(format!("{id} ({kind}): {mismatch}"));
            }
        }
    }

    /// How many passed.
    pub(crate) fn passed(&self) -> usize {
        self.kinds.values().map(|tally| tally.passed).sum()
    }

    /// How many failed.
    pub(crate) fn failed(&self) -> usize {
        self.failures.len()
    }

    /// What `cargo xtask golden` ends with.
    pub(crate) fn closing_line(&self) -> String {
        format!("{} passed, {} failed", self.passed(), self.failed())
    }

    /// Whether there was no case at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

impl fmt::Display for Report {
    /// The failures, then one line for each kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "FAILED {failure}")?;
        }
        for (kind, tally) in &self.kinds {
            writeln!(
                f,
                "  {kind:<40} {:>4} passed {:>4} failed",
                tally.passed, tally.failed
            )?;
        }
        Ok(())
    }
}
