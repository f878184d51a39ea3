//! A schedule in the compiled form: 36 bytes for each operation, 9 for each dependency.

use serde::{Deserialize, Serialize};

use super::{Damage, encode_tables};
use crate::trace::schedule::{After, Dependency, Graph, Node, Operation, Schedule, graph, node};
use crate::trace::words;
use crate::units::{Bytes, Rank, Time};

/// The tables as they stand in the file.
#[derive(Serialize, Deserialize)]
pub struct Tables {
    schema: String,
    name: String,
    /// Operations and dependencies of each rank.
    ranks: Vec<(u64, u64)>,
}

const SCHEMA: &str = "flowcast/compiled-schedule/1";
const NODE_BYTES: usize = 36;
const DEPENDENCY_BYTES: usize = 9;
const ANY: u64 = u64::MAX;

/// Tables, then the ranks.
pub fn parts(schedule: &Schedule) -> Vec<Vec<u8>> {
    let dependencies: Vec<Vec<Dependency>> = schedule.graphs.iter().map(Graph::dependencies).collect();
    let counts = schedule.graphs.iter().zip(&dependencies);
    let tables = Tables {
        schema: SCHEMA.to_owned(),
        name: schedule.name.clone(),
        ranks: counts.map(|(graph, dependencies)| (graph.nodes.len() as u64, dependencies.len() as u64)).collect(),
    };
    let mut parts = vec![encode_tables(&tables)];
    for (graph, dependencies) in schedule.graphs.iter().zip(&dependencies) {
        let mut part = Vec::with_capacity(graph.nodes.len() * NODE_BYTES + dependencies.len() * DEPENDENCY_BYTES);
        graph.nodes.iter().for_each(|node| encode_node(node, &mut part));
        dependencies.iter().for_each(|dependency| encode_dependency(*dependency, &mut part));
        parts.push(part);
    }
    parts
}

fn encode_node(node: &Node, out: &mut Vec<u8>) {
    let any = |value: Option<u32>| value.map_or(ANY, u64::from);
    let (kind, peer, amount, tag) = match node.operation {
        Operation::Send { to, size, tag } => (0, u64::from(to.0), size.0, any(tag)),
        Operation::Recv { from, size, tag } => (1, any(from.map(|rank| rank.0)), size.0, any(tag)),
        Operation::Calc(time) => (2, 0, time.as_nanos().to_bits(), 0),
    };
    out.extend_from_slice(&[kind, node.cpu, node.nic, 0]);
    out.extend_from_slice(&node.line.to_le_bytes());
    [peer, amount, tag].iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
    out.extend_from_slice(&[0; 4]);
}

fn encode_dependency(dependency: Dependency, out: &mut Vec<u8>) {
    out.extend_from_slice(&dependency.later.to_le_bytes());
    out.extend_from_slice(&dependency.earlier.to_le_bytes());
    out.push(u8::from(dependency.after == After::End));
}

/// Reads a schedule.
pub fn read(bytes: &[u8], tables: Tables) -> Result<Schedule, Damage> {
    let ranks = tables.ranks.len();
    let mut rest = bytes;
    let mut graphs = Vec::with_capacity(ranks);
    for (nodes, dependencies) in tables.ranks {
        let nodes: Vec<Node> = take(&mut rest, nodes, NODE_BYTES)?
            .chunks_exact(NODE_BYTES)
            .map(|bytes| decode_node(bytes, ranks))
            .collect::<Option<_>>()
            .ok_or("found an operation that names something outside the schedule")?;
        let dependencies: Vec<Dependency> = take(&mut rest, dependencies, DEPENDENCY_BYTES)?
            .chunks_exact(DEPENDENCY_BYTES)
            .map(|bytes| decode_dependency(bytes, nodes.len()))
            .collect::<Option<_>>()
            .ok_or("found a dependency on an operation that does not exist")?;
        graphs.push(graph(nodes, &dependencies));
    }
    if rest.is_empty() {
        Ok(Schedule { name: tables.name, graphs })
    } else {
        Err("found bytes behind the last rank".into())
    }
}

fn take<'a>(rest: &mut &'a [u8], count: u64, each: usize) -> Result<&'a [u8], Damage> {
    let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(each));
    let length = length.filter(|length| *length <= rest.len()).ok_or("found ranks longer than the file")?;
    let (taken, left) = rest.split_at(length);
    *rest = left;
    Ok(taken)
}

fn decode_node(bytes: &[u8], ranks: usize) -> Option<Node> {
    let value = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let any = |value: u64| if value == ANY { Some(None) } else { u32::try_from(value).ok().map(Some) };
    let rank = |value: u64| u32::try_from(value).ok().filter(|rank| (*rank as usize) < ranks).map(Rank);
    let (peer, amount, tag) = (value(8), value(16), any(value(24))?);
    let operation = match bytes[0] {
        0 => Operation::Send { to: rank(peer)?, size: Bytes(amount), tag },
        1 => {
            let from = if peer == ANY { None } else { Some(rank(peer)?) };
            Operation::Recv { from, size: Bytes(amount), tag }
        }
        2 => {
            let nanos = f64::from_bits(amount);
            Operation::Calc(Time::from_nanos(Some(nanos).filter(|nanos| words::is_duration(*nanos))?))
        }
        _ => return None,
    };
    let line = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
    Some(Node { cpu: bytes[1], nic: bytes[2], ..node(operation, line) })
}

fn decode_dependency(bytes: &[u8], nodes: usize) -> Option<Dependency> {
    let node = |at: usize| {
        let index = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        ((index as usize) < nodes).then_some(index)
    };
    let after = match bytes[8] {
        0 => After::Start,
        1 => After::End,
        _ => return None,
    };
    Some(Dependency { later: node(0)?, earlier: node(4)?, after })
}
