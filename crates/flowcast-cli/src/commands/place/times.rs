//! Times of the mappings that a search has tried. They are stored beside its output until the search ends.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use flowcast::units::Time;

use flowcast_terminal::growing::{GrowingFile, partial};

const CONTENT: &str = "the mappings of an interrupted search";

/// Times in the order of the mappings, starting with those of an interrupted search. By default, nothing is stored.
#[derive(Default)]
pub(super) struct TriedTimes {
    /// Times of an earlier run that have not been used yet.
    earlier: std::vec::IntoIter<Time>,
    kept: Option<GrowingFile>,
}

impl TriedTimes {
    /// Opens the times of a search that writes to `target`. The fingerprint identifies its inputs.
    pub(super) fn open(target: &Path, resume: bool, fingerprint: &str) -> Result<TriedTimes> {
        let path = partial(target);
        let head = format!(
            "flowcast/tried-mappings/1 {} {fingerprint}\n",
            env!("CARGO_PKG_VERSION")
        );
        if !resume {
            return Ok(TriedTimes {
                kept: Some(GrowingFile::start(&path, CONTENT, &head)?),
                ..TriedTimes::default()
            });
        }
        let (file, earlier) = GrowingFile::resume(&path, CONTENT, &head, |text| {
            let name = path.display();
            let mut lines = text.lines();
            ensure!(
                lines.next() == Some(head.trim_end()),
                "{name}: found the mappings of another search, expected the same input, network, nodes and seed"
            );
            let mut times = Vec::new();
            for line in lines {
                match line.parse() {
                    Ok(nanos) => times.push(Time::from_nanos(nanos)),
                    Err(_) => bail!("{name}: found `{line}`, expected a time in nanoseconds"),
                }
            }
            Ok(times)
        })?;
        Ok(TriedTimes {
            earlier: earlier.into_iter(),
            kept: Some(file),
        })
    }

    /// Times of the next `mappings` mappings; `None` if the earlier run does not have all of them.
    pub(super) fn known(&mut self, mappings: usize) -> Option<Vec<Time>> {
        let whole = self.earlier.len() >= mappings;
        whole.then(|| self.earlier.by_ref().take(mappings).collect())
    }

    /// Number of remaining times of the earlier run.
    pub(super) fn left(&self) -> usize {
        self.earlier.len()
    }

    /// Stores the times of a batch.
    pub(super) fn append(&mut self, times: &[Time]) -> Result<()> {
        let Some(file) = &mut self.kept else {
            return Ok(());
        };
        let lines = times.iter().map(|time| format!("{}\n", time.as_nanos()));
        file.append(&lines.collect::<String>())
    }

    /// Replaces the times by the result.
    pub(super) fn finish(&self, text: &str) -> Result<()> {
        match &self.kept {
            Some(file) => file.finish_text(text),
            None => Ok(()),
        }
    }
}
