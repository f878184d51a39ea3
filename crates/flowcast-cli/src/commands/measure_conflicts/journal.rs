//! The conflicts measured so far, in a file beside the result: each is written before the next one is measured.

use std::{collections::BTreeMap, io::Write, path::Path};

use anyhow::{Context, Result, bail};
use flowcast::{
    calibrate::conflict_samples::{ConflictSamples, Measured, csv_header, push_rows},
    model::cluster::racks::Racks,
};

use crate::terminal::growing::{GrowingFile, partial};

/// What a resumed measurement must have in common with the one before.
const SAME: [&str; 3] = ["path", "lab", "racks"];

/// A measurement that is being written.
#[derive(Debug)]
pub(super) struct Journal(GrowingFile);

const CONTENT: &str = "the conflicts of an interrupted run";

impl Journal {
    /// Starts afresh.
    pub(super) fn start(target: &Path, provenance: &BTreeMap<String, String>) -> Result<Journal> {
        Ok(Journal(GrowingFile::start(
            &partial(target),
            CONTENT,
            &csv_header(provenance),
        )?))
    }

    /// Goes on with an interrupted run, if there is one, and gives its conflicts.
    pub(super) fn resume(
        target: &Path,
        provenance: &BTreeMap<String, String>,
    ) -> Result<(Journal, Vec<Measured>)> {
        let path = partial(target);
        let (file, measured) =
            GrowingFile::resume(&path, CONTENT, &csv_header(provenance), |text| {
                let samples =
                    ConflictSamples::from_csv(text).with_context(|| path.display().to_string())?;
                if let Some(key) = SAME
                    .into_iter()
                    .find(|key| samples.provenance.get(*key) != provenance.get(*key))
                {
                    let known = |all: &BTreeMap<String, String>| {
                        all.get(key).cloned().unwrap_or_else(|| "none".into())
                    };
                    bail!(
                        "--resume: {}: found {key} {}, expected that of this run, {}",
                        path.display(),
                        known(&samples.provenance),
                        known(provenance)
                    );
                }
                Ok(samples.measured)
            })?;
        Ok((Journal(file), measured))
    }

    /// Adds a conflict.
    pub(super) fn append(&mut self, measured: &Measured, racks: &Racks) -> Result<()> {
        let mut text = String::new();
        push_rows(&mut text, measured, racks);
        self.0.append(&text)
    }

    /// Writes the whole file and removes the partial one.
    pub(super) fn finish(self, samples: &ConflictSamples) -> Result<()> {
        self.0
            .finish(|out| Ok(out.write_all(samples.to_csv().as_bytes())?))
    }

    /// Where the conflicts are meanwhile.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use flowcast::{
        model::cluster::conflicts::ConflictPlan,
        units::{Bytes, Node, Time},
    };

    fn measured() -> Vec<Measured> {
        let nodes = (0..3).map(Node).collect();
        let plan = ConflictPlan {
            nodes,
            racks: Racks::default(),
            size: Bytes(1000),
            short: Bytes(0),
            most: 2,
        };
        let time = Time::from_micros(200.0);
        let all = plan.conflicts().into_iter();
        all.map(|conflict| Measured {
            durations: vec![vec![time; 2]; conflict.flows.len()],
            conflict,
        })
        .collect()
    }

    fn path(name: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("path".to_owned(), name.to_owned())])
    }

    #[test]
    fn a_killed_run_goes_on_with_whole_conflicts_and_becomes_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("conflicts.csv");
        let (all, racks) = (measured(), Racks::default());
        let mut first = Journal::start(&target, &path("tcp")).unwrap();
        all[..3]
            .iter()
            .for_each(|one| first.append(one, &racks).unwrap());
        drop(first);
        assert!(
            Journal::start(&target, &path("tcp"))
                .unwrap_err()
                .to_string()
                .contains("--resume")
        );
        let other = Journal::resume(&target, &path("mpi"))
            .unwrap_err()
            .to_string();
        assert!(
            other.contains("found path tcp, expected that of this run, mpi"),
            "{other}"
        );

        let (mut second, known) = Journal::resume(&target, &path("tcp")).unwrap();
        assert_eq!(known, all[..3]);
        second.append(&all[3], &racks).unwrap();
        drop(second);
        let (third, known) = Journal::resume(&target, &path("tcp")).unwrap();
        assert_eq!(known, all[..4]);
        let samples = ConflictSamples {
            provenance: path("tcp"),
            racks,
            measured: all,
        };
        third.finish(&samples).unwrap();
        assert_eq!(
            ConflictSamples::from_csv(&fs::read_to_string(&target).unwrap()).unwrap(),
            samples
        );
        assert!(!partial(&target).exists());
    }
}
