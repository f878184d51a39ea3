//! Chakra execution traces (`.et`): a file for each accelerator with a graph of nodes, in Protocol Buffers.
//!
//! A file is a sequence of messages with their lengths before them: the global metadata, then nodes
//! (`schema/protobuf/et_def.proto` of mlcommons/chakra). A node computes for a time, sends, receives or takes part in a
//! collective when the nodes that it depends on are done. Control dependencies count but in traces of PyTorch, where they
//! tell callers, and go round in circles. Here a rank does one thing after the other, so the graphs of all
//! ranks are walked through together (`walk`): what is ready begins, communication in the background, and a rank waits for
//! it before what depends on it. Each rank's graph gives the order of its communications (`turns`).

mod node;
mod turns;
mod walk;
mod wire;

use super::{fault::Fault, parts::Part, recorded, scan::bytes_of};
use crate::{
    ReadOptions, TraceError,
    program::{IgnoredRecords, Program},
};
use flowcast_units::Rank;
use node::Node;

/// Whether the bytes begin with the metadata of such a trace.
pub(super) fn recognises(bytes: &[u8]) -> bool {
    let mut at = 0;
    wire::message(bytes, &mut at).is_some_and(node::is_metadata)
}

/// Reads the trace.
pub(super) fn read(
    name: &str,
    parts: &[Part],
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let mut counts = node::NodeCounts::default();
    let mut ranks = Vec::with_capacity(parts.len());
    for ((name, bytes), rank) in parts.iter().zip(0..) {
        ranks.push(read_part(name, Rank(rank), bytes_of(bytes), &mut counts)?);
    }
    let control = keep_control(&mut ranks, counts.is_pytorch);
    let names: Vec<String> = parts.iter().map(|(name, _)| name.clone()).collect();
    let walked = walk::walk(&names, ranks)?;
    let title = name.rsplit('/').next().unwrap_or(name).to_owned();
    let mut program = recorded::assemble(title, walked.ranks, walked.communicators, options)?;
    let left_out = [
        (
            "nodes that cannot begin; they depend on each other or on messages that never come",
            walked.stuck,
        ),
        ("dependencies on nodes that are not there", walked.unknown),
        (
            "computations without a duration; they take no time",
            counts.without_duration,
        ),
        (
            "computations of accelerators; they come one after the other with those of the processor",
            counts.accelerator,
        ),
        (
            "memory operations; they take their durations, one after the other",
            counts.memory,
        ),
        (
            "communications without a kind; they take their durations",
            counts.unmodelled,
        ),
        (
            "nodes' control dependencies, which in PyTorch's traces tell who called a node,",
            if counts.is_pytorch { control } else { 0 },
        ),
        (
            "communications without a size; they carry no bytes",
            counts.without_size,
        ),
        (
            "all-to-alls whose members put in different sizes; each sends what it puts in",
            walked.uneven,
        ),
    ];
    let told = left_out.into_iter().filter(|(_, count)| *count > 0);
    program
        .ignored
        .extend(told.map(|(kind, count)| IgnoredRecords {
            kind: kind.to_owned(),
            count,
        }));
    let unread = counts.unread.into_iter();
    program
        .ignored
        .extend(unread.map(|(name, count)| IgnoredRecords {
            kind: format!("attributes `{name}` of communications, which may say who takes part,"),
            count,
        }));
    let assumed = [
        (
            control > 0 && !counts.is_pytorch,
            "control dependencies order nodes: the trace is not of PyTorch's converter",
        ),
        (
            walked.some_lack_a_name,
            "collectives without a group's name are of the ranks that have such",
        ),
    ];
    let assumed = assumed.into_iter().filter(|(is_so, _)| *is_so);
    program
        .assumed
        .extend(assumed.map(|(_, text)| text.to_owned()));
    Ok(program)
}

/// Makes control dependencies orders of nodes, but those of PyTorch; gives how many nodes have any.
fn keep_control(ranks: &mut [Vec<Node>], is_pytorch: bool) -> u64 {
    let mut count = 0;
    for node in ranks.iter_mut().flatten() {
        count += u64::from(!node.control.is_empty());
        if !is_pytorch {
            node.after.append(&mut node.control);
        }
        node.after.sort_unstable();
        node.after.dedup();
    }
    count
}

fn read_part(
    name: &str,
    rank: Rank,
    bytes: &[u8],
    counts: &mut node::NodeCounts,
) -> Result<Vec<Node>, TraceError> {
    let refuse = |at: usize, fault: Fault| fault.at(format!("{name}: byte {at}"), String::new);
    let mut at = 0;
    let first = wire::message(bytes, &mut at).filter(|message| node::is_metadata(message));
    let metadata = first.ok_or_else(|| {
        let expected = "the length and the metadata of a Chakra trace";
        refuse(0, Fault::value("no metadata", expected))
    })?;
    counts.is_pytorch |= node::is_pytorch(metadata);
    let mut nodes = Vec::new();
    while at < bytes.len() {
        let start = at;
        let message = wire::message(bytes, &mut at).ok_or_else(|| {
            Fault::value(
                "a length beyond the end of the file",
                "the length of a node and the node",
            )
        });
        let node = message.and_then(|message| node::read(message, rank, counts));
        nodes.push(node.map_err(|fault| refuse(start, fault))?);
    }
    nodes.sort_by_key(|node| node.id);
    match nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
        Some(pair) => Err(refuse(
            bytes.len(),
            Fault::value(format!("node {} twice", pair[0].id), "each node once"),
        )),
        None => Ok(nodes),
    }
}

#[cfg(test)]
mod tests;
