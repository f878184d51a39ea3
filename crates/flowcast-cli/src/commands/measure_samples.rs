//! The samples taken so far, in a file beside the result, until the measurement is complete.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flowcast::fit::prtt::PrttPoint;
use flowcast::fit::samples::{PrttSamples, SamplesError, csv_header, push_row};
use flowcast::units::Time;

use crate::growing::{GrowingFile, left, partial};

/// A measurement that is being written.
#[derive(Debug)]
pub struct PartialSamples {
    target: PathBuf,
    file: GrowingFile,
}

impl PartialSamples {
    /// Starts afresh.
    pub fn start(target: &Path, provenance: &BTreeMap<String, String>) -> Result<PartialSamples> {
        let file = GrowingFile::start(&partial(target), "the samples of an interrupted run", &csv_header(provenance))?;
        Ok(PartialSamples { target: target.to_owned(), file })
    }

    /// Goes on with an interrupted run, if there is one, and gives its samples.
    pub fn resume(target: &Path, provenance: &BTreeMap<String, String>) -> Result<(PartialSamples, PrttSamples)> {
        let path = partial(target);
        let Some(text) = left(&path)? else {
            return Ok((PartialSamples::start(target, provenance)?, PrttSamples::default()));
        };
        // A run that was killed while writing leaves half a row.
        let mut whole = text.rfind('\n').map_or(0, |end| end + 1);
        let samples = match PrttSamples::from_csv(&text[..whole]) {
            Err(SamplesError::Missing { .. }) => {
                whole = 0;
                PrttSamples::default()
            }
            read => read.with_context(|| path.display().to_string())?,
        };
        let file = GrowingFile::go_on(&path, whole, &csv_header(provenance))?;
        Ok((PartialSamples { target: target.to_owned(), file }, samples))
    }

    /// Appends samples.
    pub fn append(&mut self, samples: &[(PrttPoint, Time)]) -> Result<()> {
        let mut text = String::new();
        samples.iter().for_each(|(point, time)| push_row(&mut text, *point, *time));
        self.file.append(&text)
    }

    /// Writes the whole file and removes the partial one.
    pub fn finish(self, samples: &PrttSamples) -> Result<()> {
        self.file.finish(&self.target, |out| Ok(out.write_all(samples.to_csv().as_bytes())?))
    }

    /// Removes the partial file if it holds no sample: a run that failed at once leaves nothing behind.
    pub fn abandon_if_empty(self, taken: usize) {
        if taken == 0 {
            self.file.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use flowcast::units::Bytes;

    fn rows(count: u64) -> Vec<(PrttPoint, Time)> {
        (1..=count).map(|size| (PrttPoint::round_trip(Bytes(size)), Time::from_micros(9.0))).collect()
    }

    #[test]
    fn a_killed_run_goes_on_and_becomes_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        let mut first = PartialSamples::start(&target, &BTreeMap::new()).unwrap();
        first.append(&rows(3)).unwrap();
        // Killed in the middle of a row.
        first.file.append("1,0,4,").unwrap();
        drop(first);
        assert!(!target.exists());
        assert!(PartialSamples::start(&target, &BTreeMap::new()).unwrap_err().to_string().contains("--resume"));

        let (mut second, samples) = PartialSamples::resume(&target, &BTreeMap::new()).unwrap();
        assert_eq!(samples.len(), 3);
        second.append(&rows(5)[3..]).unwrap();
        let all = PrttSamples::from_csv(&fs::read_to_string(second.file.path()).unwrap()).unwrap();
        assert_eq!(all.len(), 5);
        second.finish(&all).unwrap();
        assert_eq!(PrttSamples::from_csv(&fs::read_to_string(&target).unwrap()).unwrap(), all);
        assert!(!partial(&target).exists());
    }

    #[test]
    fn nothing_to_resume_is_a_fresh_start() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        let (samples_file, samples) = PartialSamples::resume(&target, &BTreeMap::new()).unwrap();
        assert!(samples.is_empty());
        samples_file.abandon_if_empty(0);
        assert!(!partial(&target).exists());
    }
}
