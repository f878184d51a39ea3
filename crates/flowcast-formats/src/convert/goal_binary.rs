//! Writer of LogGOPSim's binary GOAL; the reader documents the layout.

use std::io::{self, Write};

use super::Losses;
use crate::read::goal_binary::{
    ANY, CALCULATION, HEADER_BYTES, MAGIC, OPERATION_BYTES, RANGE_BYTES, RECEIVE, SEND,
};
use flowcast_program::schedule::{Graph, Operation, OperationNode, Schedule};

const FRACTIONS: &str = "computations with fractions of a nanosecond; they are rounded";

/// Writes a schedule.
///
/// # Errors
/// The errors of `out`. [`io::ErrorKind::InvalidInput`] if a rank has more operations or dependencies than 32 bits can
/// count, or if a computation has more nanoseconds than 64 bits can count.
pub fn goal_binary(schedule: &Schedule, out: &mut dyn Write) -> io::Result<Losses> {
    check(schedule)?;
    out.write_all(&MAGIC)?;
    out.write_all(&number(schedule.ranks())?)?;
    out.write_all(&[schedule.cpus() - 1, schedule.nics() - 1].map(|highest| highest as u8))?;
    let mut begin = HEADER_BYTES + schedule.ranks() as u64 * RANGE_BYTES;
    for graph in &schedule.graphs {
        let end = begin + part_bytes(graph);
        out.write_all(&begin.to_le_bytes())?;
        out.write_all(&end.to_le_bytes())?;
        begin = end;
    }
    let mut losses = Losses::default();
    schedule
        .graphs
        .iter()
        .try_for_each(|graph| write_rank(graph, out, &mut losses))?;
    Ok(losses)
}

fn roots(graph: &Graph) -> impl Iterator<Item = u32> + '_ {
    (0..)
        .zip(&graph.nodes)
        .filter(|(_, node)| node.dependencies == 0)
        .map(|(index, _)| index)
}

fn part_bytes(graph: &Graph) -> u64 {
    let numbers = 2 + roots(graph).count() + graph.count_dependencies();
    (numbers * 4 + graph.nodes.len() * OPERATION_BYTES) as u64
}

fn write_rank(graph: &Graph, out: &mut dyn Write, losses: &mut Losses) -> io::Result<()> {
    out.write_all(&number(graph.nodes.len())?)?;
    out.write_all(&number(roots(graph).count())?)?;
    number(graph.count_dependencies())?;
    roots(graph).try_for_each(|root| out.write_all(&root.to_le_bytes()))?;
    let mut next = 0u32;
    for (index, node) in (0..).zip(&graph.nodes) {
        write_operation(node, out, losses)?;
        for dependents in [graph.released_by_end(index), graph.released_by_start(index)] {
            let count = dependents.len() as u32;
            out.write_all(&count.to_le_bytes())?;
            out.write_all(&next.to_le_bytes())?;
            next += count;
        }
    }
    (0..graph.nodes.len() as u32)
        .flat_map(|index| {
            graph
                .released_by_end(index)
                .iter()
                .chain(graph.released_by_start(index))
        })
        .try_for_each(|dependent| out.write_all(&dependent.to_le_bytes()))
}

fn write_operation(
    node: &OperationNode,
    out: &mut dyn Write,
    losses: &mut Losses,
) -> io::Result<()> {
    let (kind, peer, amount, tag) = match node.operation {
        Operation::Send { to, size, tag } => (SEND, to.0, size.0, any(tag)),
        Operation::Recv { from, size, tag } => {
            (RECEIVE, any(from.map(|rank| rank.0)), size.0, any(tag))
        }
        Operation::Calc(time) => {
            let nanos = time.as_nanos();
            if nanos.fract() != 0.0 {
                losses.count(FRACTIONS);
            }
            (CALCULATION, 0, nanos.round() as u64, 0)
        }
    };
    out.write_all(&node.dependencies.to_le_bytes())?;
    out.write_all(&[kind])?;
    out.write_all(&peer.to_le_bytes())?;
    out.write_all(&amount.to_le_bytes())?;
    out.write_all(&tag.to_le_bytes())?;
    out.write_all(&[node.cpu, node.nic])
}

/// Checks that 64 bits can hold the nanoseconds of every computation.
fn check(schedule: &Schedule) -> io::Result<()> {
    for node in schedule.graphs.iter().flat_map(|graph| &graph.nodes) {
        if let Operation::Calc(time) = node.operation
            && time.as_nanos() >= u64::MAX as f64
        {
            let text = format!(
                "found a computation of {time}, expected less than 584 years: the format counts nanoseconds in 64 bits"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    }
    Ok(())
}

fn any(value: Option<u32>) -> u32 {
    value.unwrap_or(ANY)
}

fn number(count: usize) -> io::Result<[u8; 4]> {
    let count = u32::try_from(count).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "found more than 4,294,967,295 operations or dependencies in a rank, expected fewer",
        )
    })?;
    Ok(count.to_le_bytes())
}
