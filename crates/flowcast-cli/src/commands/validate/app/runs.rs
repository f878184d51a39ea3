//! Runs a program several times, some of them recorded and the others only timed, and keeps each finished run in the journal.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use flowcast::{
    recording::{decode::RankFile, format},
    table::command_line,
    trace::{recorded_times::measured, run_times::RunTimes},
    units::{Bytes, Node, Rounded, Time},
};
use flowcast_io::folder_of;
use flowcast_measure::lab::{Lab, LabSpec};
use indicatif::HumanDuration;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::super::{
    accuracy::MARKED,
    journal::{self, Journal, path_beside},
};
use super::ValidateApp;
use crate::{
    commands::{
        doctor,
        lab::{explained, self_tested},
        record::prepare,
    },
    recording::{Loading, open_recording, recorder},
};
use flowcast_terminal::{
    exit::{EnvironmentLacks, Finding},
    say,
};

/// Command and place of the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// Lab of the runs, if they are in one.
    pub lab: Option<LabSpec>,
    command: Vec<String>,
}

impl Header {
    /// Header for a command.
    pub(super) fn new(lab: Option<LabSpec>, command: &[OsString]) -> Header {
        let command = command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        Header { lab, command }
    }

    /// Command as it can be typed.
    pub(super) fn title(&self) -> String {
        command_line(&self.command)
    }
}

impl journal::Header for Header {
    const KIND: &'static str = "app-validation";
    const LINES: &'static str = "runs";
    const SAME: &'static str = "command or lab";
}

/// A finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RunLine {
    /// Folder of a recording that is kept beside the journal.
    Recorded(String),
    /// Times of a run.
    Timed(RunTimes<f64>),
    /// Disturbance of the machine at the start of the runs in the following lines.
    DisturbedBy(String),
}

/// All finished runs.
#[derive(Debug)]
pub(super) struct MeasuredRuns {
    pub header: Header,
    pub recordings: Vec<PathBuf>,
    pub runs: Vec<RunTimes>,
    /// Disturbance of some of the runs, if any.
    pub disturbed_by: Option<String>,
}

impl MeasuredRuns {
    /// Runs of a journal.
    pub(super) fn read(path: &Path) -> Result<MeasuredRuns> {
        let content = journal::read::<Header, RunLine>(path)?;
        Ok(MeasuredRuns::new(content.header, path, content.lines))
    }

    fn new(header: Header, journal: &Path, lines: Vec<RunLine>) -> MeasuredRuns {
        let mut measured = MeasuredRuns {
            header,
            recordings: Vec::new(),
            runs: Vec::new(),
            disturbed_by: None,
        };
        for line in lines {
            measured.add(journal, line);
        }
        measured
    }

    fn add(&mut self, journal: &Path, line: RunLine) {
        match line {
            RunLine::Recorded(name) => self.recordings.push(journal.with_file_name(name)),
            RunLine::Timed(times) => self.runs.push(times.map(Time::from_seconds)),
            RunLine::DisturbedBy(found) => self.disturbed_by = Some(found),
        }
    }
}

impl ValidateApp {
    /// Executes the missing runs and returns all.
    pub(super) fn measured(&self, spec: &Option<LabSpec>) -> Result<MeasuredRuns> {
        let header = Header::new(spec.clone(), &self.command);
        let path = path_beside(&self.report);
        let recorder = recorder(self.recorder.as_deref())?;
        if !self.resume {
            Journal::start(&path, &header)?;
        }
        let (mut journal, known) = Journal::resume(&path, &header)?;
        let mut measured = MeasuredRuns::new(header, &path, known);
        if self.left(&measured) == 0 {
            return Ok(measured);
        }
        // A program that does not start leaves no journal. The mark is therefore written with the first run.
        let mut mark = doctor::warn_of_other_programs(MARKED).map(RunLine::DisturbedBy);
        mark.iter()
            .for_each(|mark| measured.add(&path, mark.clone()));
        let self_test = !self.going.no_self_test;
        let place = RunPlace::new(self.lab.as_deref(), measured.header.lab.as_ref(), self_test)?;
        let (began, mut done) = (Instant::now(), 0u32);
        while self.left(&measured) > 0 {
            if self
                .going
                .time_limit
                .is_some_and(|most| began.elapsed().as_secs_f64() > most.as_seconds())
            {
                say!("flowcast: the time limit is reached; --resume executes the remaining runs");
                break;
            }
            let recorded = measured.recordings.len();
            let line = if recorded < self.count {
                self.record(&place, &recorder.path, &measured)?
            } else {
                self.time(&place, &recorder.path, measured.runs.len() + 1)?
            };
            if let Some(mark) = mark.take() {
                journal.append(&mark)?;
            }
            journal.append(&line)?;
            measured.add(&path, line);
            done += 1;
            let left = self.left(&measured);
            let seconds = began.elapsed().as_secs_f64() / f64::from(done) * left as f64;
            if left > 0 {
                say!(
                    "flowcast: {left} runs left, about {}",
                    HumanDuration(Duration::from_secs_f64(seconds))
                );
            }
        }
        Ok(measured)
    }

    /// Number of missing runs.
    fn left(&self, measured: &MeasuredRuns) -> usize {
        let recordings = self.count.saturating_sub(measured.recordings.len());
        recordings + self.repetitions.saturating_sub(measured.runs.len())
    }

    /// Records a run. The folder gets its name at the end, so a killed run leaves none of that name.
    fn record(&self, place: &RunPlace, recorder: &Path, before: &MeasuredRuns) -> Result<RunLine> {
        let number = before.recordings.len() + 1;
        let ending = if number == 1 {
            "rec".to_owned()
        } else {
            format!("rec.{number}")
        };
        let kept = self.report.with_extension(ending);
        ensure!(
            !kept.exists(),
            "found {}, expected no such folder yet (remove it, or choose another --report)",
            kept.display()
        );
        let name = kept
            .file_name()
            .context("found no file name, expected --report FILE.html")?;
        let folder = self.folder_beside()?;
        let to = prepare(folder.path(), before.disturbed_by.clone())?;
        let times = measured(&self.run_once(place, recorder, &to, false)?);
        fs::rename(folder.path(), &kept)
            .with_context(|| format!("cannot write {}", kept.display()))?;
        // The temporary folder has its final name now.
        let _ = folder.keep();
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o755))?;
        say!(
            "flowcast: recorded run {number} of {}: {}",
            self.count,
            Rounded(times.total)
        );
        Ok(RunLine::Recorded(name.to_string_lossy().into_owned()))
    }

    /// Times a run in which no call is recorded.
    fn time(&self, place: &RunPlace, recorder: &Path, number: usize) -> Result<RunLine> {
        let folder = self.folder_beside()?;
        let files = self.run_once(place, recorder, &fs::canonicalize(folder.path())?, true)?;
        let RunTimes { total, regions, .. } = measured(&files);
        let times = RunTimes {
            total,
            regions,
            ..RunTimes::default()
        };
        say!(
            "flowcast: timed run {number} of {}: {}",
            self.repetitions,
            Rounded(times.total)
        );
        Ok(RunLine::Timed(times.map(Time::as_seconds)))
    }

    /// Temporary folder at a place that ranks of a lab can reach too.
    fn folder_beside(&self) -> Result<TempDir> {
        let beside = folder_of(&self.report);
        tempfile::tempdir_in(beside).with_context(|| format!("cannot write {}", beside.display()))
    }

    /// Executes one run and returns its recording, which remains in the folder.
    fn run_once(
        &self,
        place: &RunPlace,
        recorder: &Path,
        folder: &Path,
        only_times: bool,
    ) -> Result<Vec<RankFile>> {
        let loading = Loading {
            recorder,
            folder,
            buffer: Bytes(1 << 20),
            budget: None,
            only_times,
            clocks: false,
        };
        let ended = loading.run(
            &self.command,
            |program| {
                let mut command = place.command(program)?;
                // The standard output is reserved for the report.
                command
                    .stdin(Stdio::null())
                    .stdout(Stdio::from(io::stderr()));
                Ok(command)
            },
            Command::status,
        )?;
        ensure!(
            folder.join(format::RECORDING).exists(),
            EnvironmentLacks(ended.nothing_recorded(&self.command))
        );
        ensure!(
            ended.status.success(),
            Finding(format!("the program ended with {}", ended.status_text()))
        );
        let files = open_recording(folder)?;
        ensure!(
            measured(&files).total != Time::ZERO,
            Finding("found no time between MPI_Init and MPI_Finalize, expected some".to_owned())
        );
        Ok(files)
    }
}

/// Place where programs run.
enum RunPlace {
    Here,
    Lab(Box<Lab>),
}

impl RunPlace {
    fn new(name: Option<&str>, spec: Option<&LabSpec>, self_test: bool) -> Result<RunPlace> {
        let (Some(name), Some(spec)) = (name, spec) else {
            return Ok(RunPlace::Here);
        };
        let lab = match Lab::open(name) {
            Ok(lab) => lab,
            Err(_) => Lab::up(spec).map_err(explained)?,
        };
        if self_test {
            self_tested(&lab)?;
        }
        Ok(RunPlace::Lab(Box::new(lab)))
    }

    fn command(&self, program: &OsStr) -> Result<Command> {
        match self {
            RunPlace::Here => Ok(Command::new(program)),
            RunPlace::Lab(lab) => {
                let program = program
                    .to_str()
                    .context("found a program name that is not UTF-8, expected text")?;
                let mut command = lab.command_in(Node(0), program).map_err(explained)?;
                command.envs(lab.launcher_environment());
                Ok(command)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_stores_recordings_and_times() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cg.html.journal");
        let header = Header::new(None, &["mpirun".into(), "./cg".into()]);
        let mut journal = Journal::start(&path, &header).unwrap();
        let mut times = RunTimes::of_ranks(2);
        times.total = Time::from_micros(1500.0);
        times.add_region("solve", Time::from_micros(3.0));
        journal.append(&RunLine::Recorded("cg.rec".into())).unwrap();
        let timed = RunLine::Timed(times.clone().map(Time::as_seconds));
        journal.append(&timed).unwrap();
        let disturbed = RunLine::DisturbedBy("other programs".into());
        journal.append(&disturbed).unwrap();
        drop(journal);
        let measured = MeasuredRuns::read(&path).unwrap();
        assert_eq!(measured.recordings, [folder.path().join("cg.rec")]);
        assert_eq!(measured.runs, [times]);
        assert_eq!(measured.header.title(), "mpirun ./cg");
        assert_eq!(measured.disturbed_by.as_deref(), Some("other programs"));
        let other = Header::new(None, &["mpirun".into(), "./lu".into()]);
        let error = Journal::resume::<Header, RunLine>(&path, &other)
            .unwrap_err()
            .to_string();
        assert!(error.contains("runs of another command or lab"), "{error}");
    }
}
