//! Records about more than one machine and about accelerators.

use super::{
    error::{DimemasConfigError, Place},
    fields::Fields,
    records::ConfigRecord,
    tuning::{NamedFileContents, collectives},
};
use crate::{
    collective::Repeats,
    machine::wide_area::{Comparison, Connection, Joined, SizeCondition, Traffic, WideArea},
};
use flowcast_units::{Bytes, Node, Rate};

/// `"wide area network information"`.
pub(super) struct WideAreaRecord {
    pub name: String,
    pub machines: u32,
    pub machines_place: Place,
    traffic: Traffic,
    max_traffic: Rate,
    bandwidth: Rate,
    pub model: Repeats,
}

const WIDE_AREA: [&str; 7] = [
    "name",
    "machines",
    "dedicated connections",
    "traffic function, 1 EXP 2 LOG 3 LIN 4 CT",
    "maximum traffic",
    "bandwidth in MB/s",
    "collective model, 1 CT 2 LIN 3 LOG",
];

impl WideAreaRecord {
    pub(super) fn read(record: &ConfigRecord) -> Result<WideAreaRecord, DimemasConfigError> {
        let mut fields = record.fields(&WIDE_AREA)?;
        let name = fields.name()?;
        let machines = fields.whole(1, u32::MAX)?;
        let machines_place = fields.place();
        fields.count()?;
        let traffic = match fields.whole(1, 4)? {
            1 => Traffic::Exponential,
            2 => Traffic::Logarithmic,
            3 => Traffic::Linear,
            _ => Traffic::Constant,
        };
        // The tool compares it with bytes per nanosecond. A negative value never applies there.
        let max_traffic = Rate::from_bytes_per_second(fields.number()?.max(0.0) * 1e9);
        let bandwidth = fields.rate()?;
        let model = repeats(&mut fields)?;
        Ok(WideAreaRecord {
            name,
            machines,
            machines_place,
            traffic,
            max_traffic,
            bandwidth,
            model,
        })
    }

    /// Network between the sites; empty if there is only one site.
    pub(super) fn network(
        &self,
        tuned: &NamedFileContents,
        connections: Vec<Connection>,
    ) -> WideArea {
        if self.machines < 2 {
            return WideArea::default();
        }
        WideArea {
            bandwidth: self.bandwidth,
            traffic: self.traffic,
            max_traffic: self.max_traffic,
            flight_times: tuned.flight_times.clone(),
            collectives: collectives::table(self.model, tuned.external_rows.clone()),
            connections,
            ..WideArea::default()
        }
    }
}

/// Reads the number of a model of collective operations.
pub(super) fn repeats(fields: &mut Fields) -> Result<Repeats, DimemasConfigError> {
    Ok(match fields.whole(1, 3)? {
        1 => Repeats::Constant,
        2 => Repeats::Linear,
        _ => Repeats::Logarithmic,
    })
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

/// `"dedicated connection information"`: the connection and its number. The search for the first connection that admits a
/// message follows these numbers.
///
/// The communicators are read but ignored, as in the tool.
pub(super) fn dedicated_connection(
    record: &ConfigRecord,
) -> Result<NumberedConnection, DimemasConfigError> {
    let mut fields = record.fields(&DEDICATED)?;
    let number = fields.count()?;
    let from = fields.count()?;
    let place = fields.place();
    let sites = [from, fields.count()?];
    let bandwidth = fields.rate()?;
    let tags = fields
        .list()?
        .into_iter()
        .filter_map(|tag| i32::try_from(tag).ok())
        .collect();
    let first = size_condition(&mut fields)?;
    let joined = if fields.choice(&["&", "|"])? == "&" {
        Joined::And
    } else {
        Joined::Or
    };
    let second = size_condition(&mut fields)?;
    fields.list()?;
    let latency = fields.seconds()?;
    let flight_time = fields.seconds()?;
    let connection = Connection {
        sites,
        bandwidth,
        latency,
        flight_time,
        tags,
        first,
        joined,
        second,
    };
    Ok(NumberedConnection {
        number,
        place,
        connection,
    })
}

/// A dedicated connection and its position in the file.
pub(super) struct NumberedConnection {
    number: u32,
    place: Place,
    connection: Connection,
}

/// The connections in order of their numbers, if all of them connect two of the `machines` machines.
pub(super) fn connections(
    mut records: Vec<NumberedConnection>,
    machines: u32,
) -> Result<Vec<Connection>, DimemasConfigError> {
    records.sort_by_key(|record| record.number);
    if let Some(record) = records
        .iter()
        .find(|record| record.connection.sites.iter().any(|site| *site >= machines))
        .filter(|_| machines > 1)
    {
        return Err(DimemasConfigError::Field {
            place: record.place.clone(),
            found: format!(
                "machines {} and {}",
                record.connection.sites[0], record.connection.sites[1]
            ),
            expected: format!("machines from 0 to {}", machines - 1),
        });
    }
    Ok(records
        .into_iter()
        .map(|record| record.connection)
        .collect())
}

fn size_condition(fields: &mut Fields) -> Result<SizeCondition, DimemasConfigError> {
    let size = Bytes(u64::from(fields.count()?));
    let is = match fields.choice(&["<", "=", ">"])? {
        "<" => Comparison::Below,
        "=" => Comparison::Equal,
        _ => Comparison::Above,
    };
    Ok(SizeCondition { is, size })
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
const ACCELERATOR_WITHOUT_NUMBER: [&str; 6] = [
    "node",
    "latency in seconds",
    "memory latency in seconds",
    "bandwidth in MB/s",
    "buses",
    "relative speed",
];

/// Accelerators of a node.
pub(super) struct Accelerators {
    /// Node number, counted over all machines.
    pub node: Node,
    pub place: Place,
    pub count: u32,
    pub speed: f64,
}

/// `"accelerator node information"`, in the tool's form (7 fields) or in the manual's form (6 fields, one accelerator).
pub(super) fn accelerator(record: &ConfigRecord) -> Result<Accelerators, DimemasConfigError> {
    let with_number = record.fields.len() != ACCELERATOR_WITHOUT_NUMBER.len();
    let mut fields = record.fields(if with_number {
        &ACCELERATOR
    } else {
        &ACCELERATOR_WITHOUT_NUMBER
    })?;
    let node = Node(fields.count()?);
    let place = fields.place();
    let count = if with_number { fields.count()? } else { 1 };
    fields.seconds()?;
    fields.seconds()?;
    fields.rate()?;
    fields.count()?;
    let speed = fields.number()?.max(0.0);
    Ok(Accelerators {
        node,
        place,
        count,
        speed,
    })
}

impl Accelerators {
    /// Note on the properties of the accelerators that are not modelled.
    pub(super) fn note(&self) -> Option<String> {
        let Accelerators {
            node, place, count, ..
        } = self;
        let lost = "only the relative speed of accelerators is modelled, not their number, latencies, bandwidth or buses";
        (*count > 0).then(|| format!("{place}: {count} accelerators at node {node}; {lost}"))
    }
}
