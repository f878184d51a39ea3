//! Machines, nodes and mappings.

use std::collections::BTreeMap;

use super::{
    error::{DimemasConfigError, Place},
    fields::Fields,
    records::ConfigRecord,
    wide_area::{Accelerators, WideAreaRecord, repeats},
};
use crate::{
    collective::Repeats,
    machine::{Mapping, NodeGroup},
};
use flowcast_units::{Rate, Time};

/// `"environment information"`: one machine and its network.
pub(super) struct Environment {
    pub name: String,
    pub machine: u32,
    pub bandwidth: Rate,
    pub buses: u32,
    pub model: Repeats,
    nodes: u32,
    nodes_place: Place,
    machine_place: Place,
}

const ENVIRONMENT: [&str; 7] = [
    "machine name",
    "machine",
    "instrumented architecture",
    "nodes",
    "bandwidth in MB/s",
    "buses",
    "collective model, 1 CT 2 LIN 3 LOG",
];

impl Environment {
    pub(super) fn read(record: &ConfigRecord) -> Result<Environment, DimemasConfigError> {
        let mut fields = record.fields(&ENVIRONMENT)?;
        let name = fields.name()?;
        let machine = fields.count()?;
        let machine_place = fields.place();
        fields.text();
        let nodes = fields.whole(1, u32::MAX)?;
        let nodes_place = fields.place();
        let bandwidth = fields.rate()?;
        let buses = fields.count()?;
        let model = repeats(&mut fields)?;
        Ok(Environment {
            name,
            machine,
            bandwidth,
            buses,
            model,
            nodes,
            nodes_place,
            machine_place,
        })
    }
}

/// `"node information"` and `"multi node information"`: equal nodes of a machine.
pub(super) struct NodeRecord {
    machine: u32,
    machine_place: Place,
    latency: Time,
    group: NodeGroup,
}

macro_rules! with_node_fields {
    ($($first:literal),*) => {
        [$($first,)* "architecture", "processors", "relative speed", "intra-node latency in seconds",
         "intra-node bandwidth in MB/s", "intra-node buses", "intra-node input links", "intra-node output links",
         "latency in seconds", "input links", "output links", "wide area latency in seconds"]
    };
}
const NODE: [&str; 13] = with_node_fields!("machine");
const NODE_WITH_NUMBER: [&str; 14] = with_node_fields!("machine", "node");
const NODES: [&str; 14] = with_node_fields!("machine", "number of nodes");
const OLDEST_NODE: [&str; 11] = [
    "machine",
    "node",
    "architecture",
    "processors",
    "input links",
    "output links",
    "intra-node latency in seconds",
    "latency in seconds",
    "relative speed",
    "intra-node bandwidth in MB/s",
    "wide area latency in seconds",
];

impl NodeRecord {
    /// Removes the latency between machines, because there is only one machine.
    pub(super) fn forget_wide_area(&mut self) {
        self.group.wide_area_latency = Time::ZERO;
    }

    /// Reads one node, in any of the three forms. Nodes are numbered in file order; their own numbers are ignored.
    pub(super) fn read(record: &ConfigRecord) -> Result<NodeRecord, DimemasConfigError> {
        let names: &[&str] = match record.fields.len() {
            len if len == OLDEST_NODE.len() => &OLDEST_NODE,
            len if len == NODE_WITH_NUMBER.len() => &NODE_WITH_NUMBER,
            _ => &NODE,
        };
        NodeRecord::read_as(record, names)
    }

    /// Reads several equal nodes.
    pub(super) fn read_multiple(record: &ConfigRecord) -> Result<NodeRecord, DimemasConfigError> {
        NodeRecord::read_as(record, &NODES)
    }

    fn read_as(
        record: &ConfigRecord,
        names: &'static [&'static str],
    ) -> Result<NodeRecord, DimemasConfigError> {
        let mut fields = record.fields(names)?;
        let machine = fields.count()?;
        let machine_place = fields.place();
        let count = match names[1] {
            "number of nodes" => fields.whole(1, u32::MAX)?,
            "node" => {
                fields.count()?;
                1
            }
            _ => 1,
        };
        let (latency, group) = if names.len() == OLDEST_NODE.len() {
            oldest_node(&mut fields)?
        } else {
            described_node(&mut fields)?
        };
        Ok(NodeRecord {
            machine,
            machine_place,
            latency,
            group: NodeGroup {
                count,
                site: machine,
                ..group
            },
        })
    }
}

/// Reads the last nine fields of a node in the form without fields for messages inside the node. Such a node has as many
/// buses as processors and one half-duplex link. Also returns the node's latency.
fn oldest_node(fields: &mut Fields) -> Result<(Time, NodeGroup), DimemasConfigError> {
    fields.text();
    let cpus = fields.whole(1, u32::MAX)?;
    let mut group = NodeGroup {
        cpus,
        in_links: fields.count()?,
        out_links: fields.count()?,
        intra_latency: Some(fields.seconds()?),
        intra_buses: cpus,
        intra_in_links: 1,
        ..NodeGroup::default()
    };
    let latency = fields.seconds()?;
    group.speed = fields.amount()?;
    group.intra_bandwidth = Some(fields.rate()?);
    group.wide_area_latency = fields.seconds()?;
    Ok((latency, group))
}

/// Reads the last twelve fields of a node, in their order. Also returns the node's latency.
fn described_node(fields: &mut Fields) -> Result<(Time, NodeGroup), DimemasConfigError> {
    fields.text();
    let mut group = NodeGroup {
        cpus: fields.whole(1, u32::MAX)?,
        speed: fields.amount()?,
        intra_latency: Some(fields.seconds()?),
        intra_bandwidth: Some(fields.rate()?),
        intra_buses: fields.count()?,
        intra_in_links: fields.count()?,
        intra_out_links: fields.count()?,
        ..NodeGroup::default()
    };
    let latency = fields.seconds()?;
    group.in_links = fields.count()?;
    group.out_links = fields.count()?;
    group.wide_area_latency = fields.seconds()?;
    Ok((latency, group))
}

/// Checks that each machine occurs once and has the stated number of nodes.
pub(super) fn check_machines(
    wide_area: Option<&WideAreaRecord>,
    environments: &[Environment],
    nodes: &[NodeRecord],
) -> Result<(), DimemasConfigError> {
    let machines = wide_area.map_or(1, |wide_area| wide_area.machines);
    let mut found = machines_found(machines, environments)?;
    for node in nodes {
        *found.get_mut(&node.machine).ok_or_else(|| {
            wrong(
                &node.machine_place,
                node.machine,
                "a machine with its own environment record".into(),
            )
        })? += u64::from(node.group.count);
    }
    if nodes.is_empty() {
        return Err(DimemasConfigError::Missing("node information"));
    }
    if let Some(wide_area) = wide_area.filter(|_| (found.len() as u64) < u64::from(machines)) {
        let expected = format!("{}, the number of environment records", found.len());
        return Err(wrong(&wide_area.machines_place, machines, expected));
    }
    for environment in environments {
        let nodes = found[&environment.machine];
        if nodes != u64::from(environment.nodes) {
            let expected =
                format!("{nodes}, the number of nodes in the node records of this machine");
            return Err(wrong(&environment.nodes_place, environment.nodes, expected));
        }
    }
    Ok(())
}

/// Machines that have an environment record, each with 0 nodes so far.
fn machines_found(
    machines: u32,
    environments: &[Environment],
) -> Result<BTreeMap<u32, u64>, DimemasConfigError> {
    let mut found = BTreeMap::new();
    for environment in environments {
        let place = &environment.machine_place;
        if environment.machine >= machines {
            return Err(wrong(place, environment.machine, below(machines)));
        }
        if found.insert(environment.machine, 0).is_some() {
            return Err(wrong(
                place,
                environment.machine,
                "each machine once".into(),
            ));
        }
    }
    if found.is_empty() {
        Err(DimemasConfigError::Missing("environment information"))
    } else {
        Ok(found)
    }
}

fn wrong(place: &Place, found: u32, expected: String) -> DimemasConfigError {
    DimemasConfigError::Field {
        place: place.clone(),
        found: found.to_string(),
        expected,
    }
}

fn below(limit: u32) -> String {
    match limit {
        1 => "0, the only machine".to_owned(),
        _ => format!("a machine from 0 to {}", limit - 1),
    }
}

/// Latency of the first node, and the nodes as groups of equal neighbours. Nodes are numbered machine by machine.
pub(super) fn node_groups(
    records: &[NodeRecord],
    accelerators: &[Accelerators],
) -> (Time, Vec<NodeGroup>) {
    let mut records: Vec<&NodeRecord> = records.iter().collect();
    records.sort_by_key(|record| record.machine);
    let latency = records.first().map_or(Time::ZERO, |record| record.latency);
    let mut groups: Vec<NodeGroup> = Vec::new();
    let mut first_node = 0;
    for record in records {
        let own_latency = (record.latency != latency).then_some(record.latency);
        let group = NodeGroup {
            latency: own_latency,
            ..record.group
        };
        for part in with_accelerators(group, first_node, accelerators) {
            put_together(&mut groups, part);
        }
        first_node += u64::from(group.count);
    }
    (latency, groups)
}

/// Adds a group. It is merged with the group before it if their nodes are equal.
fn put_together(groups: &mut Vec<NodeGroup>, group: NodeGroup) {
    let merged = groups.last().filter(|last| {
        NodeGroup {
            count: group.count,
            ..**last
        } == group
    });
    match merged.and_then(|last| last.count.checked_add(group.count)) {
        Some(count) => groups.last_mut().expect("one was just compared").count = count,
        None => groups.push(group),
    }
}

/// Splits a group of nodes that starts at `first_node` at the nodes that have accelerators.
fn with_accelerators(
    group: NodeGroup,
    first_node: u64,
    accelerators: &[Accelerators],
) -> Vec<NodeGroup> {
    let mut marked: Vec<(u64, f64)> = accelerators
        .iter()
        .filter_map(|found: &Accelerators| {
            u64::from(found.node.0)
                .checked_sub(first_node)
                .map(|at| (at, found.speed))
        })
        .filter(|(at, _): &(u64, f64)| *at < u64::from(group.count))
        .collect();
    marked.sort_by_key(|(at, _)| *at);
    let mut parts = Vec::new();
    let mut next = 0;
    for (at, speed) in marked {
        // If a node has several records, the first one applies.
        if at < next {
            continue;
        }
        parts.push(NodeGroup {
            count: (at - next) as u32,
            ..group
        });
        parts.push(NodeGroup {
            count: 1,
            accelerator_speed: speed,
            ..group
        });
        next = at + 1;
    }
    parts.push(NodeGroup {
        count: (u64::from(group.count) - next) as u32,
        ..group
    });
    parts.retain(|part| part.count > 0);
    parts
}

/// `"mapping information"` and `"predefined mapping information"`.
pub(super) struct PlacedMapping {
    mapping: Mapping,
    place: Place,
}

const MAPPING: [&str; 3] = ["trace", "tasks", "nodes"];
const PREDEFINED: [&str; 1] = ["mapping"];
const PREDEFINED_WITH_TRACE: [&str; 2] = ["trace", "mapping"];

impl PlacedMapping {
    /// Reads the node of each task. The record states the number of tasks twice; the length of the list counts, as in the
    /// tool.
    pub(super) fn read(record: &ConfigRecord) -> Result<PlacedMapping, DimemasConfigError> {
        let mut fields = record.fields(&MAPPING)?;
        fields.text();
        fields.count()?;
        let nodes: Result<Vec<u32>, _> = fields.list()?.into_iter().map(u32::try_from).collect();
        match nodes {
            Ok(nodes) if !nodes.is_empty() => Ok(PlacedMapping {
                mapping: Mapping::List(nodes),
                place: fields.place(),
            }),
            _ => Err(fields.wrong("the node of each task, numbered from 0")),
        }
    }

    /// Reads a mapping rule.
    pub(super) fn read_predefined(
        record: &ConfigRecord,
    ) -> Result<PlacedMapping, DimemasConfigError> {
        let with_trace = record.fields.len() > 1;
        let mut fields = record.fields(if with_trace {
            &PREDEFINED_WITH_TRACE
        } else {
            &PREDEFINED
        })?;
        if with_trace {
            fields.text();
        }
        let words: Vec<&str> = fields.text().split_whitespace().collect();
        let mapping = match words[..] {
            ["FILL_NODES"] => Some(Mapping::Fill),
            ["INTERLEAVED"] => Some(Mapping::RoundRobin),
            [number, "TASKS_PER_NODE"] => {
                number.parse().ok().filter(|n| *n > 0).map(Mapping::PerNode)
            }
            _ => None,
        };
        let mapping = mapping.ok_or_else(|| {
            fields.wrong("FILL_NODES, INTERLEAVED or a number and TASKS_PER_NODE")
        })?;
        Ok(PlacedMapping {
            mapping,
            place: fields.place(),
        })
    }
}

/// The mappings, one for each application in file order: the first one, and the others.
pub(super) fn mappings(
    mappings: Vec<PlacedMapping>,
    records: &[NodeRecord],
) -> Result<(Option<Mapping>, Vec<Mapping>), DimemasConfigError> {
    let nodes: u64 = records
        .iter()
        .map(|record| u64::from(record.group.count))
        .sum();
    for placed in &mappings {
        if let Mapping::List(list) = &placed.mapping
            && let Some(outside) = list.iter().find(|node| u64::from(**node) >= nodes)
        {
            return Err(wrong(
                &placed.place,
                *outside,
                format!("nodes below {nodes}, the number of nodes"),
            ));
        }
    }
    let mut mappings = mappings.into_iter().map(|placed| placed.mapping);
    Ok((mappings.next(), mappings.collect()))
}
