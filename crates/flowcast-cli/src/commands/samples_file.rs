//! File beside the result with the samples taken so far, until the measurement is complete.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, ensure};
use flowcast::{fit::sample_table::provenance, model::csv::CsvError};

use flowcast_terminal::growing::{GrowingFile, partial};

/// File of samples, with the values that an interrupted run must share with this one.
pub(super) struct SamplesFile<'a> {
    /// Path of the complete samples.
    pub target: &'a Path,
    /// `true` if an interrupted run is to be resumed, if there is one.
    pub resume: bool,
    /// Header lines and column names.
    pub head: String,
    /// Keys of header lines that must have the same values.
    pub same: &'a [&'a str],
}

const CONTENT: &str = "the samples of an interrupted run";

impl SamplesFile<'_> {
    /// Opens the file, and returns the samples of an interrupted run.
    pub(super) fn open<S: Default>(
        &self,
        read: impl FnOnce(&str) -> Result<S, CsvError>,
    ) -> Result<(GrowingFile, S)> {
        let path = partial(self.target);
        if !self.resume {
            let file = GrowingFile::start(&path, CONTENT, &self.head)?;
            return Ok((file, S::default()));
        }
        GrowingFile::resume(&path, CONTENT, &self.head, |text| {
            let read = read(text).map_err(anyhow::Error::from);
            read.and_then(|samples| self.refuse_others(text).map(|()| samples))
                .with_context(|| format!("--resume: {}", path.display()))
        })
    }

    /// Refuses samples of another network or another kind of run, which would distort the result.
    fn refuse_others(&self, text: &str) -> Result<()> {
        let (found, own) = (provenance(text)?, provenance(&self.head)?);
        for key in self.same {
            let (found, own) = (value(&found, key), value(&own, key));
            ensure!(
                found == own,
                "found {key} {found}, expected {own} as in this run"
            );
        }
        let (found, own) = (columns(text), columns(&self.head));
        ensure!(
            found == own,
            "found the columns {found}, expected {own}: another kind of run or another version wrote them"
        );
        Ok(())
    }
}

/// Value of a header line, without a port: another port may lead to the same host.
fn value<'a>(all: &'a BTreeMap<String, String>, key: &str) -> &'a str {
    let value = all.get(key).map_or("none", String::as_str);
    match value.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => value,
    }
}

fn columns(text: &str) -> &str {
    let mut lines = text.lines();
    lines.find(|line| !line.starts_with('#')).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use flowcast::{
        fit::{
            prtt::PrttPoint,
            samples::{PrttSamples, csv_header, csv_rows},
        },
        units::{Bytes, Time},
    };
    use flowcast_terminal::growing;

    fn rows(sizes: std::ops::RangeInclusive<u64>) -> String {
        let point = |size| PrttPoint::round_trip(Bytes(size));
        csv_rows(sizes.map(|size| (point(size), Time::from_micros(9.0), None)))
    }

    fn open(
        target: &Path,
        resume: bool,
        path: &str,
        timed: bool,
    ) -> Result<(GrowingFile, PrttSamples)> {
        let provenance = BTreeMap::from([("path".to_owned(), path.to_owned())]);
        let file = SamplesFile {
            target,
            resume,
            head: csv_header(&provenance, timed),
            same: &["path"],
        };
        file.open(PrttSamples::from_csv)
    }

    #[test]
    fn a_killed_run_resumes_and_completes() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        let (mut first, _) = open(&target, false, "tcp to a:1", false).unwrap();
        first.append(&rows(1..=3)).unwrap();
        drop(first);
        assert!(!target.exists());
        let refused = open(&target, false, "tcp to a:1", false).unwrap_err();
        assert!(refused.to_string().contains("--resume"));
        for (path, timed, told) in [
            (
                "tcp to b:1",
                false,
                "found path tcp to a, expected tcp to b as in this run",
            ),
            ("tcp to a:1", true, "time_us,busy_us: another kind of run"),
        ] {
            let refused = open(&target, true, path, timed);
            let message = format!("{:#}", refused.unwrap_err());
            assert!(message.contains(told), "{message}");
        }

        let (mut second, samples) = open(&target, true, "tcp to a:2", false).unwrap();
        assert_eq!(samples.len(), 3);
        second.append(&rows(4..=5)).unwrap();
        let all = PrttSamples::from_csv(&growing::read(second.path()).unwrap()).unwrap();
        assert_eq!(all.len(), 5);
        second.finish_text(&all.to_csv()).unwrap();
        let whole = fs::read_to_string(&target).unwrap();
        assert_eq!(PrttSamples::from_csv(&whole).unwrap(), all);
        assert!(!partial(&target).exists());
    }

    #[test]
    fn a_run_with_nothing_to_resume_starts_fresh() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("samples.csv");
        let (_, samples) = open(&target, true, "tcp to a:1", true).unwrap();
        assert!(samples.is_empty());
        assert!(!partial(&target).exists());
    }
}
