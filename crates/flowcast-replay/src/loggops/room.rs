//! Sizes of a schedule's receives compared with its messages. Messages that share the network may overtake each other here,
//! which MPI messages do not. A receive therefore counts as too small only if no order of matching has enough room.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    hash::Hash,
};

use super::prepared::{OperationKind, PreparedOperations};
use flowcast_program::schedule::{Operation, Schedule};
use flowcast_units::{Bytes, Rank};

/// `true` if some message of a schedule is larger than every receive that remains for it.
pub(super) fn is_lacking(schedule: &Schedule) -> bool {
    let has_wildcard = |operation: &Operation| {
        matches!(
            operation,
            Operation::Recv { from: None, .. }
                | Operation::Recv { tag: None, .. }
                | Operation::Send { tag: None, .. }
        )
    };
    let operations = || {
        let ranks = (0..).map(Rank).zip(&schedule.graphs);
        ranks.flat_map(|(rank, graph)| graph.nodes.iter().map(move |node| (rank, &node.operation)))
    };
    let with_wildcards: HashSet<Rank> = operations()
        .filter(|(_, operation)| has_wildcard(operation))
        .map(|(rank, operation)| match operation {
            Operation::Send { to, .. } => *to,
            _ => rank,
        })
        .collect();
    let channel =
        |to: Rank, from, tag| (to, (!with_wildcards.contains(&to)).then_some((from, tag)));
    lacks_room(
        operations().filter_map(|(rank, operation)| match *operation {
            Operation::Send { to, size, tag } => {
                Some((channel(to, Some(rank), tag), OperationKind::Send, size))
            }
            Operation::Recv { from, size, tag } => {
                Some((channel(rank, from, tag), OperationKind::Recv, size))
            }
            Operation::Calc(_) => None,
        }),
    )
}

/// Result of [`is_lacking`] for a prepared schedule, which has no wildcards.
pub(super) fn is_lacking_in(prepared: &PreparedOperations) -> bool {
    let operations = prepared
        .ops
        .iter()
        .filter(|op| op.kind != OperationKind::Calc);
    lacks_room(operations.map(|op| (op.channel(), op.kind, prepared.sizes[op.size() as usize])))
}

/// Compares sizes in each channel: the largest message needs the largest receive, the next one the next.
fn lacks_room<C: Eq + Hash>(operations: impl Iterator<Item = (C, OperationKind, Bytes)>) -> bool {
    let mut channels: HashMap<C, [Vec<Reverse<Bytes>>; 2]> = HashMap::new();
    for (channel, kind, size) in operations {
        let sides = channels.entry(channel).or_default();
        sides[usize::from(kind == OperationKind::Recv)].push(Reverse(size));
    }
    channels.into_values().any(|[mut sends, mut receives]| {
        sends.sort_unstable();
        receives.sort_unstable();
        sends
            .iter()
            .zip(&receives)
            .any(|(send, receive)| receive.0 < send.0)
    })
}
