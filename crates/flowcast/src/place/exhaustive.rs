//! Tries every mapping of a few ranks to equal nodes.
//!
//! Nodes are interchangeable, so mappings that differ only in the nodes' names count once: 8 ranks on 4 dual nodes
//! have 8!/(2!^4 4!) = 105.

use std::convert::Infallible;

use flowcast_trace::parallel;
use flowcast_units::{Node, Rank, Time};

use super::{PlaceError, target::TargetError};
use crate::Case;

/// More mappings than anybody waits for.
pub const MOST_MAPPINGS: u64 = 1_000_000;

/// Times closer than this part of themselves are one entry of the histogram.
const SAME: f64 = 1e-9;

/// Equal nodes, each with as many slots for ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Number of nodes, some of which may stay empty.
    pub nodes: u32,
    /// Ranks that fit on each.
    pub per_node: u32,
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranking {
    /// How many mappings there are.
    pub mappings: u64,
    /// Time and number of mappings that take it, ascending.
    pub histogram: Vec<(Time, u64)>,
    /// All mappings that take the least time, each the node of each rank.
    pub best: Vec<Vec<Node>>,
}

/// The ranks of each node that has any, in node order.
pub fn ranks_of_nodes(mapping: &[Node]) -> Vec<Vec<Rank>> {
    let nodes = mapping.iter().map(|node| node.index() + 1).max();
    let mut groups = vec![Vec::new(); nodes.unwrap_or(0)];
    for (node, rank) in mapping.iter().zip(0..) {
        groups[node.index()].push(Rank(rank));
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// Predicts the case under every mapping, on so many threads.
///
/// # Errors
/// Ranks that do not fit, more than [`MOST_MAPPINGS`], or a mapping without prediction.
pub fn search(case: &Case<'_>, slots: Slots, threads: usize) -> Result<Ranking, PlaceError> {
    count(case.ranks(), slots, MOST_MAPPINGS)?;
    let times = parallel::map(&all_mappings(case.ranks(), slots), threads, |mapping| {
        case.with_mapping(mapping).makespan()
    });
    let times: Vec<Time> = times.into_iter().collect::<Result<_, _>>()?;
    Ok(rank(case.ranks(), slots, &times))
}

/// How many mappings there are.
///
/// # Errors
/// Ranks that do not fit, or more mappings than `most`.
pub fn count(ranks: usize, slots: Slots, most: u64) -> Result<u64, PlaceError> {
    let room = u64::from(slots.nodes) * u64::from(slots.per_node);
    if ranks as u64 > room {
        return Err(TargetError::TooFewSlots { ranks, slots: room }.into());
    }
    let mut count = 0;
    each_mapping(ranks, slots, &mut |_| {
        count += 1;
        if count > most {
            Err(PlaceError::TooManyMappings { ranks, most })
        } else {
            Ok(())
        }
    })?;
    Ok(count)
}

/// All of them, from that of all ranks on the first nodes on.
pub(super) fn all_mappings(ranks: usize, slots: Slots) -> Vec<Vec<Node>> {
    let mut mappings = Vec::new();
    let Ok(()) = each_mapping::<Infallible>(ranks, slots, &mut |mapping| {
        mappings.push(mapping.to_vec());
        Ok(())
    });
    mappings
}

/// What the times of all mappings, in their order, say.
pub fn rank(ranks: usize, slots: Slots, times: &[Time]) -> Ranking {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|number| times[*number]);
    let mut ranking = Ranking {
        mappings: times.len() as u64,
        ..Ranking::default()
    };
    let mut place_among_best = vec![None; times.len()];
    for number in order {
        let time = times[number];
        match ranking.histogram.last_mut() {
            Some((last, count)) if time.as_nanos() <= last.as_nanos() * (1.0 + SAME) => *count += 1,
            _ => ranking.histogram.push((time, 1)),
        }
        if ranking.histogram.len() == 1 {
            place_among_best[number] = Some(ranking.best.len());
            ranking.best.push(Vec::new());
        }
    }
    let mut places = place_among_best.into_iter();
    let Ok(()) = each_mapping::<Infallible>(ranks, slots, &mut |mapping| {
        if let Some(place) = places.next().flatten() {
            ranking.best[place] = mapping.to_vec();
        }
        Ok(())
    });
    ranking
}

/// Calls `visit` with every mapping in which a new node is always the lowest unused one.
fn each_mapping<E>(
    ranks: usize,
    slots: Slots,
    visit: &mut dyn FnMut(&[Node]) -> Result<(), E>,
) -> Result<(), E> {
    let mut mapping: Vec<Node> = Vec::with_capacity(ranks);
    // By node that has any: its ranks.
    let mut used: Vec<u32> = Vec::new();
    let mut first = 0;
    loop {
        if mapping.len() == ranks {
            visit(&mapping)?;
        } else {
            let is_free = |node: &usize| match used.get(*node) {
                Some(ranks) => *ranks < slots.per_node,
                None => (*node as u64) < u64::from(slots.nodes) && slots.per_node > 0,
            };
            if let Some(node) = (first..=used.len()).find(is_free) {
                used.resize(used.len().max(node + 1), 0);
                used[node] += 1;
                mapping.push(Node(node as u32));
                first = 0;
                continue;
            }
        }
        let Some(last) = mapping.pop() else {
            return Ok(());
        };
        used[last.index()] -= 1;
        if used[last.index()] == 0 {
            used.pop();
        }
        first = last.index() + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(ranks: usize, nodes: u32, per_node: u32) -> u64 {
        let mut count = 0;
        let visited: Result<(), ()> = each_mapping(ranks, Slots { nodes, per_node }, &mut |_| {
            count += 1;
            Ok(())
        });
        visited.unwrap();
        count
    }

    #[test]
    fn mappings_that_differ_in_the_names_of_nodes_count_once() {
        assert_eq!(count(8, 4, 2), 105);
        assert_eq!(count(4, 2, 2), 3);
        assert_eq!(count(3, 3, 1), 1);
        assert_eq!(count(3, 3, 3), 5);
        assert_eq!(count(2, 1, 1), 0);
        assert_eq!(count(100_000, 1, 100_000), 1);
    }
}
