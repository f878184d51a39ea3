//! Chakra execution traces (`.et`): for each accelerator, a file with a graph of nodes, in Protocol Buffers.
//!
//! A file is a sequence of length-prefixed messages: the global metadata, then nodes (`schema/protobuf/et_def.proto` of
//! mlcommons/chakra). Once its predecessors are done, a node computes for a time, sends, receives, or takes part in a
//! collective. Control dependencies count, except in traces of PyTorch, where they name callers and can form cycles. In a
//! program, a rank executes one operation after the other, so the graphs of all ranks are traversed together (`walk`): ready
//! nodes begin, communication runs in the background, and a rank waits for it before the nodes that depend on it. Each
//! rank's graph determines the order of its communications (`turns`).

mod node;
mod turns;
mod walk;
mod wire;

use super::{fault::Fault, ignored, parts::TracePart, recorded, scan::bytes_of};
use flowcast_program::{ReadOptions, TraceError, program::Program};
use flowcast_units::Rank;
use node::ChakraNode;
use std::{borrow::Cow, collections::BTreeMap};

/// Returns `true` if the bytes begin with the metadata of such a trace.
pub(super) fn recognises(bytes: &[u8]) -> bool {
    let mut at = 0;
    wire::message(bytes, &mut at).is_some_and(node::is_metadata)
}

/// Reads the trace.
pub(super) fn read(
    name: &str,
    parts: &[TracePart],
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let mut notes = ChakraNotes::default();
    let mut ranks = Vec::with_capacity(parts.len());
    for ((name, bytes), rank) in parts.iter().zip(0..) {
        ranks.push(read_part(name, Rank(rank), bytes_of(bytes), &mut notes)?);
    }
    keep_control(&mut ranks, &mut notes);
    let names: Vec<String> = parts.iter().map(|(name, _)| name.clone()).collect();
    let (ranks, communicators) = walk::walk(&names, ranks, &mut notes)?;
    let title = name.rsplit('/').next().unwrap_or(name).to_owned();
    let mut program = recorded::assemble(title, ranks, communicators, options)?;
    program.ignored.extend(ignored(notes.left_out));
    let assumed = notes.assumed.into_iter();
    program.assumed.extend(assumed.map(str::to_owned));
    Ok(program)
}

/// Parts of a trace that the program lacks or simplifies, and signs of the tool that wrote the trace.
#[derive(Default)]
struct ChakraNotes {
    /// Numbers of omitted or simplified parts, by kind.
    left_out: BTreeMap<Cow<'static, str>, u64>,
    /// Assumptions where the trace is ambiguous.
    assumed: Vec<&'static str>,
    /// `true` if PyTorch's converter wrote the nodes.
    is_pytorch: bool,
}

impl ChakraNotes {
    fn leave_out(&mut self, kind: impl Into<Cow<'static, str>>, count: u64) {
        if count > 0 {
            *self.left_out.entry(kind.into()).or_default() += count;
        }
    }

    fn assume(&mut self, is_so: bool, text: &'static str) {
        self.assumed.extend(is_so.then_some(text));
    }
}

/// Turns control dependencies into an order of nodes, except in traces of PyTorch.
fn keep_control(ranks: &mut [Vec<ChakraNode>], notes: &mut ChakraNotes) {
    let mut count = 0;
    for node in ranks.iter_mut().flatten() {
        count += u64::from(!node.control.is_empty());
        if !notes.is_pytorch {
            node.after.append(&mut node.control);
        }
        node.after.sort_unstable();
        node.after.dedup();
    }
    if notes.is_pytorch {
        let callers = "control dependencies of nodes, which name callers in PyTorch's traces,";
        notes.leave_out(callers, count);
    } else {
        notes.assume(
            count > 0,
            "control dependencies determine the order of nodes: PyTorch's converter did not write the trace",
        );
    }
}

fn read_part(
    name: &str,
    rank: Rank,
    bytes: &[u8],
    notes: &mut ChakraNotes,
) -> Result<Vec<ChakraNode>, TraceError> {
    let mut at = 0;
    let metadata = wire::message(bytes, &mut at)
        .filter(|message| node::is_metadata(message))
        .ok_or_else(|| {
            let expected = "the length and the metadata of a Chakra trace";
            refused(name, 0, Fault::value("no metadata", expected))
        })?;
    notes.is_pytorch |= node::is_pytorch(metadata);
    let mut nodes = Vec::new();
    while at < bytes.len() {
        let start = at;
        let message = wire::message(bytes, &mut at).ok_or_else(|| {
            Fault::value(
                "a length beyond the end of the file",
                "a node after its length",
            )
        });
        let node = message.and_then(|message| node::read(message, rank, notes));
        nodes.push(node.map_err(|fault| refused(name, start, fault))?);
    }
    nodes.sort_by_key(|node| node.id);
    match nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
        Some(pair) => Err(refused(
            name,
            bytes.len(),
            Fault::value(format!("node {} twice", pair[0].id), "each node once"),
        )),
        None => Ok(nodes),
    }
}

fn refused(name: &str, at: usize, fault: Fault) -> TraceError {
    fault.at(format!("{name}: byte {at}"), String::new)
}

#[cfg(test)]
mod tests;
