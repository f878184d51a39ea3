//! Schedules in the compiled form: 36 bytes for each operation, 9 for each dependency.

use std::io::Read;

use serde::{Deserialize, Serialize};

use super::{Damage, encode_tables, u32_at, u64_at};
use crate::{
    opcodes,
    schedule::{After, Dependency, Graph, Operation, OperationNode, Schedule, graph, node},
};
use flowcast_units::{Bytes, Rank, Time};

/// Tables as stored in the file.
#[derive(Serialize, Deserialize)]
pub(super) struct ScheduleTables {
    schema: String,
    name: String,
    /// Number of operations and dependencies of each rank.
    ranks: Vec<(u64, u64)>,
}

const SCHEMA: &str = "flowcast/compiled-schedule/1";
const NODE_BYTES: usize = 36;
const DEPENDENCY_BYTES: usize = 9;
const ANY: u64 = u64::MAX;

/// Encodes the tables as JSON, padded with blanks to a multiple of 8 bytes.
pub(super) fn tables(schedule: &Schedule) -> Vec<u8> {
    encode_tables(&ScheduleTables {
        schema: SCHEMA.to_owned(),
        name: schedule.name.clone(),
        ranks: schedule
            .graphs
            .iter()
            .map(|graph| (graph.nodes.len() as u64, graph.count_dependencies() as u64))
            .collect(),
    })
}

/// Encodes a rank, for the part of the file after the tables.
pub(super) fn part(graph: &Graph) -> Vec<u8> {
    let dependencies = graph.dependencies();
    let mut part =
        Vec::with_capacity(graph.nodes.len() * NODE_BYTES + dependencies.len() * DEPENDENCY_BYTES);
    graph
        .nodes
        .iter()
        .for_each(|node| encode_node(node, &mut part));
    dependencies
        .iter()
        .for_each(|dependency| encode_dependency(*dependency, &mut part));
    part
}

fn encode_node(node: &OperationNode, out: &mut Vec<u8>) {
    let any = |value: Option<u32>| value.map_or(ANY, u64::from);
    let (kind, peer, amount, tag) = match node.operation {
        Operation::Send { to, size, tag } => (0, u64::from(to.0), size.0, any(tag)),
        Operation::Recv { from, size, tag } => (1, any(from.map(|rank| rank.0)), size.0, any(tag)),
        Operation::Calc(time) => (2, 0, time.as_nanos().to_bits(), 0),
    };
    out.extend_from_slice(&[kind, node.cpu, node.nic, 0]);
    out.extend_from_slice(&node.line.to_le_bytes());
    [peer, amount, tag]
        .iter()
        .for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
    out.extend_from_slice(&[0; 4]);
}

fn encode_dependency(dependency: Dependency, out: &mut Vec<u8>) {
    out.extend_from_slice(&dependency.later.to_le_bytes());
    out.extend_from_slice(&dependency.earlier.to_le_bytes());
    out.push(u8::from(dependency.after == After::End));
}

/// Reads a schedule, rank by rank.
pub(super) fn read(input: &mut dyn Read, tables: ScheduleTables) -> Result<Schedule, Damage> {
    let ranks = tables.ranks.len();
    let mut part = Vec::new();
    let mut graphs = Vec::with_capacity(ranks);
    for (nodes, dependencies) in tables.ranks {
        take(input, nodes, NODE_BYTES, &mut part)?;
        let decoded = part
            .chunks_exact(NODE_BYTES)
            .map(|bytes| decode_node(bytes, ranks));
        let nodes =
            all(decoded).ok_or("found an operation with a reference outside the schedule")?;
        take(input, dependencies, DEPENDENCY_BYTES, &mut part)?;
        let decoded = part
            .chunks_exact(DEPENDENCY_BYTES)
            .map(|bytes| decode_dependency(bytes, nodes.len()));
        let dependencies = all(decoded).ok_or("found a dependency on a missing operation")?;
        graphs.push(graph(nodes, &dependencies));
    }
    match input.read(&mut [0]) {
        Ok(0) => Ok(Schedule {
            name: tables.name,
            graphs,
        }),
        Ok(_) => Err("found bytes after the last rank".into()),
        Err(error) => Err(Damage(error.to_string())),
    }
}

/// Reads `count` records of `each` bytes into `part`.
fn take(input: &mut dyn Read, count: u64, each: usize, part: &mut Vec<u8>) -> Result<(), Damage> {
    let length = count
        .checked_mul(each as u64)
        .ok_or("found ranks longer than the file")?;
    part.clear();
    let read = input
        .take(length)
        .read_to_end(part)
        .map_err(|error| Damage(error.to_string()))?;
    if read as u64 == length {
        Ok(())
    } else {
        Err("found ranks longer than the file".into())
    }
}

/// Collects all items without spare memory; `None` if one is invalid.
fn all<T>(decoded: impl ExactSizeIterator<Item = Option<T>>) -> Option<Vec<T>> {
    let mut all = Vec::with_capacity(decoded.len());
    for one in decoded {
        all.push(one?);
    }
    Some(all)
}

fn decode_node(bytes: &[u8], ranks: usize) -> Option<OperationNode> {
    let rank = |value: u64| {
        u32::try_from(value)
            .ok()
            .filter(|rank| (*rank as usize) < ranks)
            .map(Rank)
    };
    let (peer, amount, tag) = (u64_at(bytes, 8), u64_at(bytes, 16), any(u64_at(bytes, 24))?);
    let operation = match bytes[0] {
        0 => Operation::Send {
            to: rank(peer)?,
            size: Bytes(amount),
            tag,
        },
        1 => {
            let from = if peer == ANY { None } else { Some(rank(peer)?) };
            Operation::Recv {
                from,
                size: Bytes(amount),
                tag,
            }
        }
        2 => {
            let nanos = f64::from_bits(amount);
            Operation::Calc(Time::from_nanos(
                Some(nanos).filter(|nanos| opcodes::is_duration(*nanos))?,
            ))
        }
        _ => return None,
    };
    let line = u32_at(bytes, 4);
    Some(OperationNode {
        cpu: bytes[1],
        nic: bytes[2],
        ..node(operation, line)
    })
}

fn any(value: u64) -> Option<Option<u32>> {
    if value == ANY {
        Some(None)
    } else {
        u32::try_from(value).ok().map(Some)
    }
}

fn decode_dependency(bytes: &[u8], nodes: usize) -> Option<Dependency> {
    let [later, earlier] = [0, 4].map(|at| {
        let index = u32_at(bytes, at);
        ((index as usize) < nodes).then_some(index)
    });
    let after = match bytes[8] {
        0 => After::Start,
        1 => After::End,
        _ => return None,
    };
    Some(Dependency {
        later: later?,
        earlier: earlier?,
        after,
    })
}
