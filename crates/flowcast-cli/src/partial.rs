//! Samples on their way to a file: kept beside it as `NAME.partial` until the measurement is whole.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flowcast::fit::prtt::PrttPoint;
use flowcast::fit::samples::{PrttSamples, SamplesError, csv_header, push_row};
use flowcast::units::Time;

use crate::files::{read_text, write_whole};

/// A measurement that is being written.
#[derive(Debug)]
pub struct Partial {
    target: PathBuf,
    path: PathBuf,
    file: File,
}

impl Partial {
    /// Starts afresh. Samples of an interrupted run are in the way.
    pub fn start(target: &Path, provenance: &BTreeMap<String, String>) -> Result<Partial> {
        let path = path_beside(target);
        if path.exists() {
            bail!(
                "{} holds the samples of an interrupted run: --resume goes on with them, or remove it",
                path.display()
            );
        }
        let cannot = || format!("cannot write {}", path.display());
        let mut file = File::create_new(&path).with_context(cannot)?;
        file.write_all(csv_header(provenance).as_bytes()).with_context(cannot)?;
        Ok(Partial { target: target.to_owned(), path, file })
    }

    /// Goes on with an interrupted run, if there is one, and gives its samples.
    pub fn resume(target: &Path, provenance: &BTreeMap<String, String>) -> Result<(Partial, PrttSamples)> {
        let path = path_beside(target);
        if !path.exists() {
            return Ok((Partial::start(target, provenance)?, PrttSamples::default()));
        }
        let text = read_text(&path)?;
        // A run that was killed while writing leaves half a row.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let samples = match PrttSamples::from_csv(whole) {
            Err(SamplesError::Missing { .. }) => PrttSamples::default(),
            read => read.with_context(|| path.display().to_string())?,
        };
        let cannot = || format!("cannot write {}", path.display());
        let file = OpenOptions::new().append(true).open(&path).with_context(cannot)?;
        file.set_len(whole.len() as u64).with_context(cannot)?;
        Ok((Partial { target: target.to_owned(), path, file }, samples))
    }

    /// Appends samples; they are in the system's hands when this returns.
    pub fn append(&mut self, samples: &[(PrttPoint, Time)]) -> Result<()> {
        let mut text = String::new();
        samples.iter().for_each(|(point, time)| push_row(&mut text, *point, *time));
        self.file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Writes the whole file and removes the partial one.
    pub fn finish(self, samples: &PrttSamples) -> Result<()> {
        write_whole(&self.target, |out| Ok(out.write_all(samples.to_csv().as_bytes())?))?;
        fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// Removes the partial file if it holds no sample: a run that failed at once leaves nothing behind.
    pub fn abandon_if_empty(self, taken: usize) {
        if taken == 0 {
            // The error that ends the run is the one to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn path_beside(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast::units::Bytes;

    fn rows(count: u64) -> Vec<(PrttPoint, Time)> {
        (1..=count).map(|size| (PrttPoint::round_trip(Bytes(size)), Time::from_micros(9.0))).collect()
    }

    #[test]
    fn a_killed_run_goes_on_and_becomes_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        let mut first = Partial::start(&target, &BTreeMap::new()).unwrap();
        first.append(&rows(3)).unwrap();
        // Killed in the middle of a row.
        first.file.write_all(b"1,0,4,").unwrap();
        drop(first);
        assert!(!target.exists());
        assert!(Partial::start(&target, &BTreeMap::new()).unwrap_err().to_string().contains("--resume"));

        let (mut second, samples) = Partial::resume(&target, &BTreeMap::new()).unwrap();
        assert_eq!(samples.len(), 3);
        second.append(&rows(5)[3..]).unwrap();
        let all = PrttSamples::from_csv(&fs::read_to_string(&second.path).unwrap()).unwrap();
        assert_eq!(all.len(), 5);
        second.finish(&all).unwrap();
        assert_eq!(PrttSamples::from_csv(&fs::read_to_string(&target).unwrap()).unwrap(), all);
        assert!(!path_beside(&target).exists());
    }

    #[test]
    fn nothing_to_resume_is_a_fresh_start() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        let (partial, samples) = Partial::resume(&target, &BTreeMap::new()).unwrap();
        assert!(samples.is_empty());
        partial.abandon_if_empty(0);
        assert!(!path_beside(&target).exists());
    }
}
