//! The communications file: the model of each collective operation, and other settings.

use std::collections::BTreeMap;

use super::{NamedFileContents, content_lines, note};
use crate::{
    collective::{Collectives, Phase, PhaseSize, Repeats, Row},
    dimemas_cfg::{
        error::{DimemasConfigError, shortened},
        fields::Fields,
        records::ConfigRecord,
    },
};
use flowcast_units::{CollectiveOp, Time};

/// Table of the models of all operations. The `rows` of a communications file override the defaults.
///
/// Fan-in moves the data that the deciding process sends, fan-out the data that it receives. Only `Reduce` has its own
/// model, which is constant regardless of the environment record.
pub(in crate::dimemas_cfg) fn table(
    model: Repeats,
    rows: BTreeMap<CollectiveOp, Row>,
) -> Collectives {
    let mut all = BTreeMap::from([(CollectiveOp::Reduce, sent_and_received(Repeats::Constant))]);
    all.extend(rows);
    Collectives {
        default: sent_and_received(model),
        rows: all,
        algorithms: None,
        reduction: None,
        measured: None,
    }
}

fn sent_and_received(repeats: Repeats) -> Row {
    Row {
        fan_in: Phase {
            repeats,
            size: PhaseSize::Send,
        },
        fan_out: Phase {
            repeats,
            size: PhaseSize::Recv,
        },
    }
}

const MACHINE_OPERATION: [&str; 6] = [
    "machine",
    "operation",
    "fan-in model",
    "fan-in size",
    "fan-out model",
    "fan-out size",
];
const EXTERNAL_OPERATION: [&str; 5] = [
    "operation",
    "fan-in model",
    "fan-in size",
    "fan-out model",
    "fan-out size",
];
const OLD_OPERATION: [&str; 6] = [
    "operation",
    "fan-in model",
    "fan-in size",
    "fan-out model",
    "fan-out size",
    "contention",
];
const MACHINE_POLICY: [&str; 2] = ["machine", "policy"];
const POLICY: [&str; 1] = ["policy"];
const FLIGHT_TIME: [&str; 2] = ["machine", "seconds"];
const QUANTUM: [&str; 1] = ["bytes"];

const EXPECTED_LINE: &str = "a line that begins with Machine globalop:, External globalop:, Machine policy:, Policy:, \
                             Quantum size (bytes): or Flight time:, or an operation id and its models";

/// Reads a communications file of a configuration with `machines` machines.
pub(in crate::dimemas_cfg) fn read(
    text: &str,
    machines: u32,
) -> Result<NamedFileContents, DimemasConfigError> {
    let mut tuned = NamedFileContents::default();
    for (line, content) in content_lines(text) {
        let (name, rest) = match content.split_once(':') {
            Some((name, rest)) => (name.trim(), rest),
            None => ("globalop", content),
        };
        let record = ConfigRecord {
            line,
            name,
            fields: rest.split_whitespace().collect(),
        };
        match name {
            "Machine globalop" => {
                let mut fields = record.fields(&MACHINE_OPERATION)?;
                let machine = fields.whole(0, machines - 1)?;
                let (op, row) = operation(&mut fields)?;
                match machine {
                    0 => drop(tuned.rows.insert(op, row)),
                    _ => tuned.further_rows.push((machine, op, row)),
                }
            }
            "External globalop" => {
                let (op, row) = operation(&mut record.fields(&EXTERNAL_OPERATION)?)?;
                tuned.external_rows.insert(op, row);
            }
            "globalop" => {
                let mut fields = record.fields(&OLD_OPERATION)?;
                let (op, row) = operation(&mut fields)?;
                fields.number()?;
                tuned.rows.insert(op, row);
            }
            "Machine policy" => {
                let mut fields = record.fields(&MACHINE_POLICY)?;
                fields.whole(0, machines - 1)?;
                tuned.not_modelled.extend(policy(&mut fields)?);
            }
            "Policy" => tuned
                .not_modelled
                .extend(policy(&mut record.fields(&POLICY)?)?),
            "Quantum size (bytes)" => drop(record.fields(&QUANTUM)?.number()?),
            "Flight time" => read_flight_times(&record, machines, &mut tuned.flight_times)?,
            _ => {
                let (found, expected) = (shortened(content), EXPECTED_LINE.to_owned());
                return Err(DimemasConfigError::Line {
                    line,
                    found,
                    expected,
                });
            }
        }
    }
    Ok(tuned)
}

/// Maximum number of machines for which missing flight times are filled with zeros.
const MOST_FILLED: u32 = 256;

/// Reads the flight times from one machine to each machine, in seconds.
fn read_flight_times(
    record: &ConfigRecord,
    machines: u32,
    all: &mut Vec<Vec<Time>>,
) -> Result<(), DimemasConfigError> {
    let Some((machine, times)) = record
        .fields
        .split_first()
        .filter(|(_, times)| times.len() == machines as usize)
    else {
        return Err(DimemasConfigError::Line {
            line: record.line,
            found: format!("Flight time with {} fields", record.fields.len()),
            expected: format!("a machine and its flight times to {machines} machines"),
        });
    };
    // With very many machines, missing rows stay empty, so that no file can request memory for the square of a number in it.
    let width = if machines <= MOST_FILLED {
        machines as usize
    } else {
        0
    };
    all.resize(machines as usize, vec![Time::ZERO; width]);
    for (to, time) in times.iter().enumerate() {
        let one = ConfigRecord {
            fields: vec![machine, time],
            ..*record
        };
        let mut fields = one.fields(&FLIGHT_TIME)?;
        let from = fields.whole(0, machines - 1)?;
        let row = &mut all[from as usize];
        row.resize(machines as usize, Time::ZERO);
        row[to] = fields.seconds()?;
    }
    Ok(())
}

fn policy(fields: &mut Fields) -> Result<Option<String>, DimemasConfigError> {
    let policy = fields.choice(&["FIFO", "RR", "BOOST"])?;
    let reason = "messages are served first in, first out";
    Ok((policy != "FIFO").then(|| note(fields, policy, reason)))
}

fn operation(fields: &mut Fields) -> Result<(CollectiveOp, Row), DimemasConfigError> {
    let id = fields.whole(0, CollectiveOp::ALL.len() as u32 - 1)?;
    let row = Row {
        fan_in: phase(fields)?,
        fan_out: phase(fields)?,
    };
    Ok((CollectiveOp::ALL[id as usize], row))
}

fn phase(fields: &mut Fields) -> Result<Phase, DimemasConfigError> {
    let repeats = fields.choice(&["0", "CTE", "LIN", "LOG"])?;
    let size = fields.choice(&["MIN", "MAX", "MEAN", "2MAX", "S+R"])?;
    let repeats = Repeats::parse(repeats).expect("these names are among the model's own");
    let size = match repeats {
        // A phase that does not happen has no size, and its text has no field for one.
        Repeats::Null => PhaseSize::Max,
        _ => PhaseSize::from_name(size).expect("these names are among the model's own"),
    };
    Ok(Phase { repeats, size })
}
