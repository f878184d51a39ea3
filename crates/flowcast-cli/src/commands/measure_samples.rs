//! The samples taken so far, in a file beside the result, until the measurement is complete.

use std::{collections::BTreeMap, io::Write, path::Path};

use anyhow::{Context, Result, bail, ensure};
use flowcast::{
    fit::{
        prtt::PrttPoint,
        samples::{PrttSamples, csv_header, push_row},
    },
    units::Time,
};

use crate::terminal::growing::{GrowingFile, partial};

/// A measurement that is being written.
#[derive(Debug)]
pub(super) struct PartialSamples(GrowingFile);

const CONTENT: &str = "the samples of an interrupted run";

impl PartialSamples {
    /// The file of a measurement, if it has one, whose rows may be `timed`, and what an interrupted run has left in it.
    pub(super) fn open(
        target: Option<&Path>,
        resume: bool,
        provenance: &BTreeMap<String, String>,
        timed: bool,
    ) -> Result<(Option<PartialSamples>, PrttSamples)> {
        let header = csv_header(provenance, timed);
        let Some(path) = target.map(partial) else {
            return Ok((None, PrttSamples::default()));
        };
        if !resume {
            let file = GrowingFile::start(&path, CONTENT, &header)?;
            return Ok((Some(PartialSamples(file)), PrttSamples::default()));
        }
        let (file, samples) = GrowingFile::resume(&path, CONTENT, &header, |text| {
            let samples =
                PrttSamples::from_csv(text).with_context(|| path.display().to_string())?;
            refuse_others(&samples, provenance, timed)?;
            Ok(samples)
        })?;
        Ok((Some(PartialSamples(file)), samples))
    }

    /// Appends samples, with how long the sender was busy where the rows are timed.
    pub(super) fn append(
        &mut self,
        samples: impl IntoIterator<Item = (PrttPoint, Time, Option<Time>)>,
    ) -> Result<()> {
        let mut text = String::new();
        samples
            .into_iter()
            .for_each(|(point, time, busy)| push_row(&mut text, point, time, busy));
        self.0.append(&text)
    }

    /// Writes the whole file and removes the partial one.
    pub(super) fn finish(self, samples: &PrttSamples) -> Result<()> {
        self.0
            .finish(|out| Ok(out.write_all(samples.to_csv().as_bytes())?))
    }
}

/// Samples of another network, or of another kind of run, would spoil the result.
fn refuse_others(
    samples: &PrttSamples,
    provenance: &BTreeMap<String, String>,
    timed: bool,
) -> Result<()> {
    if samples.are_timed() != timed {
        let (found, expected) = if timed {
            ("without", "with")
        } else {
            ("with", "without")
        };
        bail!(
            "--resume: found samples of a run {found} --budget, expected those of one {expected} it"
        );
    }
    // Another port may lead to the same host.
    let path = |all: &BTreeMap<String, String>| {
        all.get("path").map(|path| {
            path.rsplit_once(':')
                .map_or(path.as_str(), |(host, _)| host)
                .to_owned()
        })
    };
    if let (Some(found), Some(expected)) = (path(&samples.provenance), path(provenance)) {
        ensure!(
            found == expected,
            "--resume: found samples of {found}, expected those of {expected}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::terminal::growing;
    use flowcast::units::Bytes;

    fn rows(count: u64) -> Vec<(PrttPoint, Time, Option<Time>)> {
        (1..=count)
            .map(|size| {
                (
                    PrttPoint::round_trip(Bytes(size)),
                    Time::from_micros(9.0),
                    None,
                )
            })
            .collect()
    }

    fn open(
        target: &Path,
        resume: bool,
        path: &str,
        timed: bool,
    ) -> Result<(PartialSamples, PrttSamples)> {
        let provenance = BTreeMap::from([("path".to_owned(), path.to_owned())]);
        let (partial, samples) = PartialSamples::open(Some(target), resume, &provenance, timed)?;
        Ok((partial.unwrap(), samples))
    }

    #[test]
    fn a_killed_run_goes_on_and_becomes_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        let (mut first, _) = open(&target, false, "tcp to a:1", false).unwrap();
        first.append(rows(3)).unwrap();
        drop(first);
        assert!(!target.exists());
        let refused =
            |resume, path, timed| open(&target, resume, path, timed).unwrap_err().to_string();
        assert!(refused(false, "tcp to a:1", false).contains("--resume"));
        assert!(
            refused(true, "tcp to b:1", false)
                .contains("found samples of tcp to a, expected those of tcp to b")
        );
        assert!(refused(true, "tcp to a:1", true).contains("a run without --budget"));

        let (mut second, samples) = open(&target, true, "tcp to a:2", false).unwrap();
        assert_eq!(samples.len(), 3);
        second.append(rows(5).split_off(3)).unwrap();
        let all = PrttSamples::from_csv(&growing::read(second.0.path()).unwrap()).unwrap();
        assert_eq!(all.len(), 5);
        second.finish(&all).unwrap();
        assert_eq!(
            PrttSamples::from_csv(&fs::read_to_string(&target).unwrap()).unwrap(),
            all
        );
        assert!(!partial(&target).exists());
    }

    #[test]
    fn nothing_to_resume_is_a_fresh_start() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        assert!(
            open(&target, true, "tcp to a:1", true)
                .unwrap()
                .1
                .is_empty()
        );
        assert!(!partial(&target).exists());
    }
}
