//! Files that a `.cfg` names, and the records for computation and input/output.

pub(super) mod collectives;
mod named_files;

use std::collections::BTreeMap;

use super::{
    Open,
    error::{DimemasConfigError, Place},
    fields::Fields,
    records::ConfigRecord,
    text_of,
};
use crate::{
    collective::Row,
    file_system::FileSystem,
    machine::{random::Randomness, scheduler::Scheduler},
};
use flowcast_units::{CollectiveOp, Time};

/// Content of the named files.
#[derive(Debug, Default)]
pub(super) struct NamedFileContents {
    pub rows: BTreeMap<CollectiveOp, Row>,
    /// Rows of the machines after the first.
    pub further_rows: Vec<(u32, CollectiveOp, Row)>,
    /// Rows of the network between machines.
    pub external_rows: BTreeMap<CollectiveOp, Row>,
    pub flight_times: Vec<Vec<Time>>,
    pub scheduler: Scheduler,
    pub random: Randomness,
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
    pub(super) fn read(record: &ConfigRecord) -> Result<NamedFiles, DimemasConfigError> {
        let mut fields = record.fields(&FILES)?;
        let [scheduler, file_system, communications, random] = std::array::from_fn(|_| {
            let name = fields.text().to_owned();
            (fields.place(), name)
        });
        Ok(NamedFiles {
            scheduler,
            file_system,
            communications,
            random,
        })
    }

    /// Reads the files that have a name.
    pub(super) fn load(
        &self,
        open: Open,
        machines: u32,
    ) -> Result<NamedFileContents, DimemasConfigError> {
        let mut tuned = NamedFileContents::default();
        if let Some((scheduler, notes)) = read_named(&self.scheduler, open, named_files::scheduler)?
        {
            tuned.scheduler = scheduler;
            tuned.not_modelled.extend(named(&self.scheduler.1, notes));
        }
        if !self.file_system.1.is_empty() {
            let (place, name) = &self.file_system;
            tuned.not_modelled.push(format!(
                "{place}: {name}; ignored, because Dimemas does not read this file"
            ));
        }
        if let Some(found) = read_named(&self.communications, open, |text| {
            collectives::read(text, machines)
        })? {
            tuned
                .not_modelled
                .extend(named(&self.communications.1, found.further_notes()));
            tuned
                .not_modelled
                .extend(named(&self.communications.1, found.not_modelled));
            (tuned.rows, tuned.external_rows) = (found.rows, found.external_rows);
            tuned.flight_times = found.flight_times;
        }
        if let Some(random) = read_named(&self.random, open, named_files::random)? {
            tuned.random = random;
        }
        Ok(tuned)
    }
}

impl NamedFileContents {
    /// Notes on rows of further machines that differ from those of the first machine, whose rows apply to all.
    fn further_notes(&self) -> Vec<String> {
        self.further_rows
            .iter()
            .filter(|(_, op, row): &&(u32, CollectiveOp, Row)| self.rows.get(op) != Some(row))
            .map(|(machine, op, _): &(u32, CollectiveOp, Row)| {
                format!(
                    "{} of machine {machine}: the rows of machine 0 apply to all machines",
                    op.name()
                )
            })
            .collect()
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
    let bytes = open(name).map_err(|source| DimemasConfigError::Open {
        place: place.clone(),
        name: name.clone(),
        source,
    })?;
    let read = read(&text_of(&bytes));
    read.map(Some).map_err(|error| DimemasConfigError::InFile {
        name: name.clone(),
        error: Box::new(error),
    })
}

fn named(name: &str, notes: Vec<String>) -> impl Iterator<Item = String> {
    notes.into_iter().map(move |note| format!("{name}: {note}"))
}

/// Lines with their numbers, trimmed, without blank lines and comments.
pub(super) fn content_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()));
    numbered
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#') && !line.starts_with("//"))
}

/// A note on the last field read.
pub(super) fn note(fields: &Fields, found: &str, reason: &str) -> String {
    format!("{}: {found}; {reason}", fields.place())
}

const MODULE: [&str; 3] = ["type", "value", "ratio"];

/// `"modules information"`: a factor for the computation inside one block of the program.
pub(super) fn module(record: &ConfigRecord) -> Result<Option<String>, DimemasConfigError> {
    let mut fields = record.fields(&MODULE)?;
    fields.count()?;
    fields.count()?;
    let ratio = fields.number()?;
    let reason = "computation keeps its traced duration in every module";
    Ok((ratio != 1.0).then(|| note(&fields, &ratio.to_string(), reason)))
}

const FILE_SYSTEM: [&str; 5] = [
    "disk latency",
    "disk bandwidth",
    "block size",
    "concurrent requests",
    "hit ratio from 0 to 1",
];

/// `"file system parameters"`, and notes on its parts that are not modelled if file accesses take time: blocks, and a cache
/// in front of the disks.
pub(super) fn file_system(
    record: &ConfigRecord,
) -> Result<(FileSystem, Vec<String>), DimemasConfigError> {
    let mut fields = record.fields(&FILE_SYSTEM)?;
    let (latency, bandwidth) = (fields.seconds()?, fields.rate()?);
    let mut notes = Vec::new();
    let block = fields.amount()?;
    if block > 0.0 {
        notes.push(note(
            &fields,
            &block.to_string(),
            "requests are not split into blocks",
        ));
    }
    let requests = fields.count()?;
    let hits = fields.amount()?;
    if hits > 1.0 {
        return Err(fields.wrong("a number from 0 to 1"));
    }
    if hits > 0.0 {
        notes.push(note(
            &fields,
            &hits.to_string(),
            "no cache is modelled: every request takes its full time",
        ));
    }
    let found = FileSystem {
        latency,
        bandwidth,
        requests,
    };
    let uncounted = FileSystem {
        requests: 0,
        ..found
    };
    if uncounted == FileSystem::default() {
        notes.clear();
    }
    Ok((found, notes))
}
