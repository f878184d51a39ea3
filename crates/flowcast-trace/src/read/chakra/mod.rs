//! Chakra execution traces (`.et`): a file for each accelerator with a graph of nodes, in Protocol Buffers.
//!
//! A file is a sequence of messages with their lengths before them: the global metadata, then nodes
//! (`schema/protobuf/et_def.proto` of mlcommons/chakra). A node computes for a time, sends, receives or takes part in a
//! collective when the nodes whose data it needs are done. Control dependencies are not kept to: in traces of PyTorch they
//! tell callers, and go round in circles. Here a rank does one thing after the other, so the graphs of all
//! ranks are walked through together (`walk`): what is ready begins, communication in the background, and a rank waits for
//! it before what depends on it.

mod node;
mod walk;
mod wire;

use super::{fault::Fault, parts::Part, recorded, scan::bytes_of};
use crate::{
    ReadOptions, TraceError,
    program::{IgnoredRecords, Program},
};
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
    for (name, bytes) in parts {
        ranks.push(read_part(name, bytes_of(bytes), &mut counts)?);
    }
    let walked = walk::walk(ranks);
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
            "control dependencies, which tell who called a node,",
            counts.with_caller,
        ),
    ];
    let told = left_out.into_iter().filter(|(_, count)| *count > 0);
    program
        .ignored
        .extend(told.map(|(kind, count)| IgnoredRecords {
            kind: kind.to_owned(),
            count,
        }));
    Ok(program)
}

fn read_part(
    name: &str,
    bytes: &[u8],
    counts: &mut node::NodeCounts,
) -> Result<Vec<Node>, TraceError> {
    let refuse = |at: usize, fault: Fault| fault.at(format!("{name}: byte {at}"), String::new);
    let mut at = 0;
    let first = wire::message(bytes, &mut at).filter(|message| node::is_metadata(message));
    if first.is_none() {
        return Err(refuse(
            0,
            Fault::value(
                "no metadata",
                "the length and the metadata of a Chakra trace",
            ),
        ));
    }
    let mut nodes = Vec::new();
    while at < bytes.len() {
        let start = at;
        let message = wire::message(bytes, &mut at).ok_or_else(|| {
            Fault::value(
                "a length beyond the end of the file",
                "the length of a node and the node",
            )
        });
        let node = message.and_then(|message| node::read(message, counts));
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
