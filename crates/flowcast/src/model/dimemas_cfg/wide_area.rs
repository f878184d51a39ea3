//! Records about more than one machine and about accelerators: checked, and not modelled.

use super::error::{DimemasConfigError, Place};
use super::records::Record;

/// `"wide area network information"`.
pub(super) struct WideArea {
    pub name: String,
    pub machines: u32,
    pub machines_place: Place,
    /// What is lost when there are several machines.
    pub note: String,
}

const WIDE_AREA: [&str; 7] = [
    "name",
    "machines",
    "dedicated connections",
    "traffic function, 1 EXP 2 LOG 3 LIN 4 CT",
    "maximal traffic",
    "bandwidth in MB/s",
    "collective model, 1 CT 2 LIN 3 LOG",
];

impl WideArea {
    pub fn read(record: &Record) -> Result<WideArea, DimemasConfigError> {
        let mut fields = record.fields(&WIDE_AREA)?;
        let name = fields.text().to_owned();
        let machines = fields.whole(1, u32::MAX)?;
        let machines_place = fields.place();
        let lost = "the network between machines is not modelled, all nodes share machine 0's network";
        let note = format!("{machines_place}: {machines}; {lost}");
        fields.count()?;
        fields.whole(1, 4)?;
        fields.number()?;
        fields.rate()?;
        fields.whole(1, 3)?;
        Ok(WideArea { name, machines, machines_place, note })
    }
}

const DEDICATED: [&str; 13] = [
    "connection",
    "source machine",
    "destination machine",
    "bandwidth in MB/s",
    "tags",
    "first message size in bytes",
    "condition on the first size, < = >",
    "operation, & |",
    "second message size in bytes",
    "condition on the second size, < = >",
    "communicators",
    "latency in seconds",
    "flight time in seconds",
];

/// `"dedicated connection information"`: checks it and gives the note that it is not modelled.
pub(super) fn dedicated_connection(record: &Record) -> Result<String, DimemasConfigError> {
    const CONDITIONS: [&str; 3] = ["<", "=", ">"];
    let mut fields = record.fields(&DEDICATED)?;
    let connection = fields.count()?;
    let note = format!("{}: {connection}; dedicated connections are not modelled", fields.place());
    fields.count()?;
    fields.count()?;
    fields.rate()?;
    fields.list()?;
    fields.count()?;
    fields.choice(&CONDITIONS)?;
    fields.choice(&["&", "|"])?;
    fields.count()?;
    fields.choice(&CONDITIONS)?;
    fields.list()?;
    fields.seconds()?;
    fields.seconds()?;
    Ok(note)
}

const ACCELERATOR: [&str; 7] = [
    "node",
    "accelerators",
    "latency in seconds",
    "memory latency in seconds",
    "bandwidth in MB/s",
    "buses",
    "relative speed",
];
const ACCELERATOR_WITHOUT_NUMBER: [&str; 6] =
    ["node", "latency in seconds", "memory latency in seconds", "bandwidth in MB/s", "buses", "relative speed"];

/// `"accelerator node information"`, as the tool reads it (7 fields) or as its manual has it (6, one accelerator).
pub(super) fn accelerator(record: &Record) -> Result<Option<String>, DimemasConfigError> {
    let with_number = record.fields.len() != ACCELERATOR_WITHOUT_NUMBER.len();
    let mut fields = record.fields(if with_number { &ACCELERATOR } else { &ACCELERATOR_WITHOUT_NUMBER })?;
    let node = fields.count()?;
    let place = fields.place();
    let accelerators = if with_number { fields.count()? } else { 1 };
    fields.seconds()?;
    fields.seconds()?;
    fields.rate()?;
    fields.count()?;
    fields.number()?;
    let note = || format!("{place}: {accelerators} accelerators at node {node}; accelerators are not modelled");
    Ok((accelerators > 0).then(note))
}
