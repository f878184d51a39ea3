//! The samples taken so far, in a file beside the result, until the measurement is complete.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use flowcast::fit::prtt::PrttPoint;
use flowcast::fit::samples::{PrttSamples, csv_header, push_row};
use flowcast::units::Time;

use flowcast_terminal::growing::{GrowingFile, partial};

/// A measurement that is being written.
#[derive(Debug)]
pub(super) struct PartialSamples(GrowingFile);

const CONTENT: &str = "the samples of an interrupted run";

impl PartialSamples {
    /// Starts afresh.
    pub(super) fn start(target: &Path, provenance: &BTreeMap<String, String>) -> Result<PartialSamples> {
        Ok(PartialSamples(GrowingFile::start(&partial(target), CONTENT, &csv_header(provenance))?))
    }

    /// Goes on with an interrupted run, if there is one, and gives its samples.
    pub(super) fn resume(
        target: &Path,
        provenance: &BTreeMap<String, String>,
    ) -> Result<(PartialSamples, PrttSamples)> {
        let path = partial(target);
        let (file, samples) = GrowingFile::resume(&path, CONTENT, &csv_header(provenance), |text| {
            PrttSamples::from_csv(text).with_context(|| path.display().to_string())
        })?;
        Ok((PartialSamples(file), samples))
    }

    /// Appends samples.
    pub(super) fn append(&mut self, samples: &[(PrttPoint, Time)]) -> Result<()> {
        let mut text = String::new();
        samples.iter().for_each(|(point, time)| push_row(&mut text, *point, *time));
        self.0.append(&text)
    }

    /// Writes the whole file and removes the partial one.
    pub(super) fn finish(self, samples: &PrttSamples) -> Result<()> {
        self.0.finish(|out| Ok(out.write_all(samples.to_csv().as_bytes())?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use flowcast::units::Bytes;
    use flowcast_terminal::growing;

    fn rows(count: u64) -> Vec<(PrttPoint, Time)> {
        (1..=count).map(|size| (PrttPoint::round_trip(Bytes(size)), Time::from_micros(9.0))).collect()
    }

    #[test]
    fn a_killed_run_goes_on_and_becomes_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        let mut first = PartialSamples::start(&target, &BTreeMap::new()).unwrap();
        first.append(&rows(3)).unwrap();
        drop(first);
        assert!(!target.exists());
        assert!(PartialSamples::start(&target, &BTreeMap::new()).unwrap_err().to_string().contains("--resume"));

        let (mut second, samples) = PartialSamples::resume(&target, &BTreeMap::new()).unwrap();
        assert_eq!(samples.len(), 3);
        second.append(&rows(5)[3..]).unwrap();
        let all = PrttSamples::from_csv(&growing::read(second.0.path()).unwrap()).unwrap();
        assert_eq!(all.len(), 5);
        second.finish(&all).unwrap();
        assert_eq!(PrttSamples::from_csv(&fs::read_to_string(&target).unwrap()).unwrap(), all);
        assert!(!partial(&target).exists());
    }

    #[test]
    fn nothing_to_resume_is_a_fresh_start() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        assert!(PartialSamples::resume(&target, &BTreeMap::new()).unwrap().1.is_empty());
        assert!(!partial(&target).exists());
    }
}
