//! The files that a `.cfg` names, and the records on computation and input/output.

use std::collections::BTreeMap;

use super::Open;
use super::collectives;
use super::error::{DimemasConfigError, Place, shortened};
use super::fields::Fields;
use super::records::Record;
use crate::model::collective::{CollectiveOp, Row};

/// What the named files say.
#[derive(Debug, Default)]
pub(super) struct Tuned {
    pub rows: BTreeMap<CollectiveOp, Row>,
    pub not_modelled: Vec<String>,
}

/// `"configuration files"`.
pub(super) struct NamedFiles {
    scheduler: (Place, String),
    file_system: (Place, String),
    communications: (Place, String),
    random: (Place, String),
}

const FILES: [&str; 4] = ["scheduler", "file system", "communications", "random"];

impl NamedFiles {
    pub fn read(record: &Record) -> Result<NamedFiles, DimemasConfigError> {
        let mut fields = record.fields(&FILES)?;
        let mut next = || {
            let name = fields.text().to_owned();
            (fields.place(), name)
        };
        Ok(NamedFiles { scheduler: next(), file_system: next(), communications: next(), random: next() })
    }

    /// Reads those that are named.
    pub fn load(&self, open: Open, machines: u32) -> Result<Tuned, DimemasConfigError> {
        let mut tuned = Tuned::default();
        if let Some(notes) = read_named(&self.scheduler, open, scheduler)? {
            tuned.not_modelled.extend(named(&self.scheduler.1, notes));
        }
        if !self.file_system.1.is_empty() {
            let (place, name) = &self.file_system;
            tuned.not_modelled.push(format!("{place}: {name}; file systems are not modelled, the file is not read"));
        }
        if let Some(communications) = read_named(&self.communications, open, |text| collectives::read(text, machines))?
        {
            tuned.rows = communications.rows;
            tuned.not_modelled.extend(named(&self.communications.1, communications.not_modelled));
        }
        if let Some(notes) = read_named(&self.random, open, random)? {
            tuned.not_modelled.extend(named(&self.random.1, notes));
        }
        Ok(tuned)
    }
}

fn read_named<T>(
    (place, name): &(Place, String),
    open: Open,
    read: impl FnOnce(&str) -> Result<T, DimemasConfigError>,
) -> Result<Option<T>, DimemasConfigError> {
    if name.is_empty() {
        return Ok(None);
    }
    let bytes =
        open(name).map_err(|source| DimemasConfigError::Open { place: place.clone(), name: name.clone(), source })?;
    let read = read(&String::from_utf8_lossy(&bytes));
    read.map(Some).map_err(|error| DimemasConfigError::InFile { name: name.clone(), error: Box::new(error) })
}

fn named(name: &str, notes: Vec<String>) -> impl Iterator<Item = String> {
    notes.into_iter().map(move |note| format!("{name}: {note}"))
}

/// Numbered lines without white space at their ends, blank lines and comments.
pub(super) fn content_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#') && !line.starts_with("//"))
}

/// A note on the field read last.
pub(super) fn note(fields: &Fields, found: &str, reason: &str) -> String {
    format!("{}: {found}; {reason}", fields.place())
}

const POLICIES: [&str; 8] = ["FIFO", "RR", "PRIO", "FIXED_PRIORITY_FIFO", "SVR4", "UNIX_SVR4", "BOOST", "SS_MPI_CP"];
const POLICY: [&str; 1] = ["policy"];
const SECONDS: [&str; 1] = ["seconds"];

/// The scheduler file: how ranks share processors. FIFO without costs is what the models do.
fn scheduler(text: &str) -> Result<Vec<String>, DimemasConfigError> {
    let mut notes = Vec::new();
    let mut fifo = true;
    for (line, content) in content_lines(text) {
        let wrong = || DimemasConfigError::Line {
            line,
            found: shortened(content),
            expected: "Policy: NAME, Context switch cost (seconds): N, Busy wait (seconds): N or Quantum (seconds): N"
                .into(),
        };
        let (name, value) = content.split_once(':').ok_or_else(wrong)?;
        let record = Record { line, name: name.trim(), fields: vec![value.trim()] };
        match record.name {
            "Policy" => {
                let mut fields = record.fields(&POLICY)?;
                let policy = fields.choice(&POLICIES)?;
                fifo = policy == "FIFO";
                if !fifo {
                    notes.push(note(&fields, policy, "ranks that share a processor run first in, first out"));
                }
            }
            "Context switch cost (seconds)" | "Busy wait (seconds)" => {
                let mut fields = record.fields(&SECONDS)?;
                if fields.amount()? > 0.0 {
                    notes.push(note(&fields, value.trim(), "switching and waiting ranks cost no processor time"));
                }
            }
            "Quantum (seconds)" => drop(record.fields(&SECONDS)?.amount()?),
            _ if fifo => return Err(wrong()),
            // The other policies have lines of their own; the note on the policy covers them.
            _ => {}
        }
    }
    Ok(notes)
}

/// What may vary at random: the names of the file that comes with Dimemas, and those that its source reads.
const VARIED: [&str; 14] = [
    "processor_ratio_dist",
    "Network_bandwidth_ratio_dist",
    "Network_latency_ratio_dist",
    "Memory_bandwidth_ratio_dist",
    "Memory_latency_ratio_dist",
    "External_network_ratio_dist",
    "External_network_latency_ratio_dist",
    "Processor",
    "Network bandwidth",
    "Network latency",
    "Memory bandwidth",
    "Memory latency",
    "External Network bandwidth",
    "External Network latency",
];
const DISTRIBUTION: [&str; 3] = ["distribution", "first parameter", "second parameter"];

/// The random file: `"processor_ratio_dist" NORMAL 0.0 0.0` or `Processor: NORMAL 0.0 0.0`.
fn random(text: &str) -> Result<Vec<String>, DimemasConfigError> {
    let mut notes = Vec::new();
    for (line, content) in content_lines(text) {
        let split = match content.strip_prefix('"') {
            Some(rest) => rest.split_once('"'),
            None => content.split_once(':'),
        };
        let (name, rest) = split.filter(|(name, _)| VARIED.contains(&name.trim())).ok_or_else(|| {
            let expected = format!("one of {}, then a distribution and its parameters", VARIED.join(", "));
            DimemasConfigError::Line { line, found: shortened(content), expected }
        })?;
        let record = Record { line, name: name.trim(), fields: rest.split_whitespace().collect() };
        let mut fields = record.fields(&DISTRIBUTION)?;
        let distribution = fields.choice(&["NONE", "NORMAL", "UNIFORM"])?;
        let place = fields.place();
        let parameters = [fields.number()?, fields.number()?];
        if distribution != "NONE" && parameters != [0.0, 0.0] {
            notes.push(format!("{place}: {}; random variation is not modelled", rest.trim()));
        }
    }
    Ok(notes)
}

const MODULE: [&str; 3] = ["type", "value", "ratio"];

/// `"modules information"`: a factor for the computation inside one block of the program.
pub(super) fn module(record: &Record) -> Result<Option<String>, DimemasConfigError> {
    let mut fields = record.fields(&MODULE)?;
    fields.count()?;
    fields.count()?;
    let ratio = fields.number()?;
    let reason = "computation keeps its traced duration in every module";
    Ok((ratio != 1.0).then(|| note(&fields, &ratio.to_string(), reason)))
}

const FILE_SYSTEM: [&str; 5] =
    ["disk latency", "disk bandwidth", "block size", "concurrent requests", "hit ratio from 0 to 1"];

/// `"file system parameters"`: without effect as long as disks are instantaneous.
pub(super) fn file_system(record: &Record) -> Result<Option<String>, DimemasConfigError> {
    let mut fields = record.fields(&FILE_SYSTEM)?;
    let latency = fields.amount()?;
    let mut place = fields.place();
    let bandwidth = fields.amount()?;
    if latency == 0.0 {
        place = fields.place();
    }
    fields.amount()?;
    fields.count()?;
    if fields.amount()? > 1.0 {
        return Err(fields.wrong("a number from 0 to 1"));
    }
    let set = if latency > 0.0 { latency } else { bandwidth };
    Ok((set > 0.0).then(|| format!("{place}: {set}; file systems are not modelled")))
}
