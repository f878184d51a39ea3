//! Finished patterns on their way to a report: a line of JSON for each, in the system's hands before the next begins.
//!
//! The first line says in which lab and how. A run that was killed leaves at most half a line, which is dropped.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use flowcast::cluster::flow::Flow;
use flowcast::units::{Bytes, Node, Time};
use flowcast_lab::{LabSpec, PatternRun};
use serde::{Deserialize, Serialize};

use super::patterns::Named;
use crate::files::read_text;
use crate::repeating::Over;

const SCHEMA: &str = "flowcast/validation-journal/1";

/// In which lab, and from what program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    schema: String,
    /// The lab.
    pub lab: LabSpec,
    /// What carried the messages, if not TCP.
    #[serde(default, skip_serializing_if = "is_tcp")]
    over: String,
}

fn is_tcp(over: &str) -> bool {
    over.is_empty()
}

impl Header {
    /// Of a lab.
    pub fn of(lab: &LabSpec, over: Over) -> Header {
        let over = if over == Over::Mpi { "mpi" } else { "" };
        Header { schema: SCHEMA.to_owned(), lab: lab.clone(), over: over.to_owned() }
    }

    /// What carried the messages.
    pub fn over(&self) -> &str {
        if self.over.is_empty() { "tcp" } else { &self.over }
    }
}

/// A pattern that was carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// Its name.
    pub name: String,
    /// The configuration it belongs to.
    pub configuration: String,
    /// Whether all durations are known as well as was asked.
    pub is_precise: bool,
    /// The flows and how long they took.
    pub flows: Vec<FinishedFlow>,
}

/// A flow that was carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinishedFlow {
    id: u32,
    src: u32,
    dst: u32,
    bytes: u64,
    start_s: f64,
    durations_s: Vec<f64>,
    /// Its step, counted from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    step: u32,
}

fn is_first(step: &u32) -> bool {
    *step == 0
}

impl Finished {
    /// From a pattern and its run.
    pub fn new(named: &Named, run: &PatternRun) -> Finished {
        let flow = |(index, flow): (usize, &Flow)| FinishedFlow {
            id: flow.id,
            src: flow.src.0,
            dst: flow.dst.0,
            bytes: flow.size.0,
            start_s: flow.start.as_seconds(),
            durations_s: run.durations_of(index).iter().map(|time| time.as_seconds()).collect(),
            step: named.step_of[index],
        };
        Finished {
            name: named.name.clone(),
            configuration: named.configuration.clone(),
            is_precise: run.is_precise,
            flows: named.pattern.flows.iter().enumerate().map(flow).collect(),
        }
    }

    /// The flows.
    pub fn pattern_flows(&self) -> Vec<Flow> {
        let flow = |flow: &FinishedFlow| Flow {
            id: flow.id,
            src: Node(flow.src),
            dst: Node(flow.dst),
            size: Bytes(flow.bytes),
            start: Time::from_seconds(flow.start_s),
        };
        self.flows.iter().map(flow).collect()
    }

    /// The step of each flow.
    pub fn steps(&self) -> Vec<u32> {
        self.flows.iter().map(|flow| flow.step).collect()
    }

    /// Durations by flow, then by repetition.
    pub fn durations(&self) -> Vec<Vec<Time>> {
        let times = |flow: &FinishedFlow| flow.durations_s.iter().map(|seconds| Time::from_seconds(*seconds)).collect();
        self.flows.iter().map(times).collect()
    }

    /// Whether it is this pattern.
    pub fn is(&self, named: &Named) -> bool {
        let same = |(own, flow): (&FinishedFlow, &Flow)| {
            let start = (own.start_s - flow.start.as_seconds()).abs() < 1e-9;
            (own.src, own.dst, own.bytes) == (flow.src.0, flow.dst.0, flow.size.0) && start
        };
        self.name == named.name
            && self.steps() == named.step_of
            && self.flows.iter().zip(&named.pattern.flows).all(same)
    }
}

/// The file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Starts afresh. Patterns of an earlier run are in the way.
    pub fn start(path: &Path, header: &Header) -> Result<Journal> {
        if path.exists() {
            bail!("{} holds patterns of an earlier run: --resume goes on with them, or remove it", path.display());
        }
        let cannot = || format!("cannot write {}", path.display());
        let file = File::create_new(path).with_context(cannot)?;
        let mut journal = Journal { path: path.to_owned(), file };
        journal.write(header)?;
        Ok(journal)
    }

    /// Goes on with an earlier run, if there is one, and gives its patterns.
    pub fn resume(path: &Path, header: &Header) -> Result<(Journal, Vec<Finished>)> {
        let has_header = path.exists() && read_text(path)?.contains('\n');
        if !has_header {
            if path.exists() {
                std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
            return Ok((Journal::start(path, header)?, Vec::new()));
        }
        let (found, finished, whole) = read(path)?;
        if found != *header {
            bail!(
                "{}: found patterns of another lab or carrier, expected those of this run (remove it, or another -o)",
                path.display()
            );
        }
        let cannot = || format!("cannot write {}", path.display());
        let file = OpenOptions::new().append(true).open(path).with_context(cannot)?;
        file.set_len(whole).with_context(cannot)?;
        Ok((Journal { path: path.to_owned(), file }, finished))
    }

    /// Adds a pattern.
    pub fn append(&mut self, finished: &Finished) -> Result<()> {
        self.write(finished)
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(line)? + "\n";
        self.file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// What a journal holds: the header, the patterns, and how many bytes of whole lines.
pub fn read(path: &Path) -> Result<(Header, Vec<Finished>, u64)> {
    let text = read_text(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let place = |line: usize| format!("{}:{}", path.display(), line + 1);
    let mut lines = whole.lines().enumerate();
    let (at, first) = lines.next().ok_or_else(|| anyhow!("{}: found no line, expected a header", path.display()))?;
    let header: Header = serde_json::from_str(first).with_context(|| place(at))?;
    if header.schema != SCHEMA {
        bail!("{}: schema: found `{}`, expected `{SCHEMA}`", place(at), header.schema);
    }
    let finished = lines.map(|(at, line)| serde_json::from_str(line).with_context(|| place(at)));
    Ok((header, finished.collect::<Result<_>>()?, whole.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast::cluster::pattern::Pattern;
    use flowcast_lab::{Carried, profile};

    fn finished(name: &str) -> Finished {
        let pattern = Pattern::read("x", b"0 -> 1 4MB @ 50ms\n2 -> 1 1MB\n").unwrap();
        let named = Named { name: name.into(), configuration: "two".into(), pattern, step_of: vec![0, 1] };
        let carried = Carried { start: Time::ZERO, end: Time::from_seconds(0.1 + 0.2) };
        let run = PatternRun { repetitions: vec![vec![carried; 2]; 3], is_precise: true };
        let finished = Finished::new(&named, &run);
        assert!(finished.is(&named));
        finished
    }

    #[test]
    fn a_killed_run_goes_on_with_what_was_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html.journal");
        let header = Header::of(&profile("fair", &[]).unwrap(), Over::Tcp);
        let mut journal = Journal::start(&path, &header).unwrap();
        journal.append(&finished("a")).unwrap();
        journal.append(&finished("b")).unwrap();
        // Killed in the middle of a line.
        journal.file.write_all(b"{\"name\":\"c").unwrap();
        drop(journal);
        assert!(Journal::start(&path, &header).unwrap_err().to_string().contains("--resume"));

        let (mut journal, known) = Journal::resume(&path, &header).unwrap();
        assert_eq!(known, [finished("a"), finished("b")]);
        journal.append(&finished("c")).unwrap();
        drop(journal);
        let (_, all, _) = read(&path).unwrap();
        assert_eq!(all.iter().map(|finished| finished.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(all[2].durations()[1].len(), 3);
        assert_eq!(all[0].pattern_flows()[0].start, Time::parse("50ms").unwrap());
    }

    #[test]
    fn a_journal_of_another_lab_or_with_a_garbled_line_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let header = |name: &str| Header::of(&profile(name, &[]).unwrap(), Over::Tcp);
        drop(Journal::start(&path, &header("fair")).unwrap());
        assert!(Journal::resume(&path, &header("bus")).unwrap_err().to_string().contains("another lab"));
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"garbled\n").unwrap();
        assert!(format!("{:#}", read(&path).unwrap_err()).contains("x.journal:2: "));
        // Killed before the header was there.
        std::fs::write(&path, "{\"sche").unwrap();
        assert!(Journal::resume(&path, &header("bus")).unwrap().1.is_empty());
    }
}
