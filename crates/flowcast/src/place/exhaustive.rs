//! All mappings of a few ranks to equal nodes.
//!
//! Nodes are interchangeable, so mappings that differ only in the nodes' names count once: 8 ranks on 4 dual nodes
//! have 8!/(2!^4 4!) = 105.

use flowcast_units::{Node, Time};

/// Times closer than this part of themselves are one entry of the histogram.
const SAME: f64 = 1e-9;

/// All mappings in which a new node is always the lowest unused one, from that of all ranks on the first nodes on.
#[derive(Debug, Clone)]
pub struct AllMappings {
    ranks: usize,
    slots: Vec<u32>,
    /// Node of each rank that has one.
    mapping: Vec<Node>,
    /// Ranks of each node that has any.
    used: Vec<u32>,
    /// The lowest node for the next rank.
    first: usize,
}

impl AllMappings {
    /// Of some ranks to nodes that have the same number of slots.
    pub fn new(ranks: usize, slots: Vec<u32>) -> AllMappings {
        AllMappings {
            ranks,
            slots,
            mapping: Vec::with_capacity(ranks),
            used: Vec::new(),
            first: 0,
        }
    }

    /// The lowest node with a slot for the next rank, if a rank is left.
    fn free(&self) -> Option<usize> {
        let has_slot = |node: &usize| {
            let used = self.used.get(*node).unwrap_or(&0);
            self.slots.get(*node).is_some_and(|slots| used < slots)
        };
        let nodes = self.first..=self.used.len();
        nodes
            .filter(|_| self.mapping.len() < self.ranks)
            .find(has_slot)
    }
}

impl Iterator for AllMappings {
    type Item = Vec<Node>;

    fn next(&mut self) -> Option<Vec<Node>> {
        loop {
            if let Some(node) = self.free() {
                self.used.resize(self.used.len().max(node + 1), 0);
                self.used[node] += 1;
                self.mapping.push(Node(node as u32));
                self.first = 0;
                if self.mapping.len() == self.ranks {
                    return Some(self.mapping.clone());
                }
            } else {
                let last = self.mapping.pop()?.index();
                self.used[last] -= 1;
                self.used
                    .truncate(self.used.len() - usize::from(self.used[last] == 0));
                self.first = last + 1;
            }
        }
    }
}

/// The times of all mappings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranking {
    /// How many mappings there are.
    pub mappings: u64,
    /// Time and number of mappings that take it, ascending.
    pub histogram: Vec<(Time, u64)>,
    /// All mappings that take the least time, each the node of each rank.
    pub best: Vec<Vec<Node>>,
}

impl Ranking {
    /// Of mappings with their times, in their order.
    pub fn new(mappings: AllMappings, times: &[Time]) -> Ranking {
        let mut sorted = times.to_vec();
        sorted.sort();
        let mut histogram: Vec<(Time, u64)> = Vec::new();
        for time in sorted {
            match histogram.last_mut() {
                Some((last, count)) if is_same(time, *last) => *count += 1,
                _ => histogram.push((time, 1)),
            }
        }
        let least = histogram.first().map_or(Time::ZERO, |(time, _)| *time);
        let timed = mappings.zip(times);
        let mut best: Vec<_> = timed.filter(|(_, time)| is_same(**time, least)).collect();
        best.sort_by_key(|(_, time)| **time);
        Ranking {
            mappings: times.len() as u64,
            best: best.into_iter().map(|(mapping, _)| mapping).collect(),
            histogram,
        }
    }
}

fn is_same(time: Time, least: Time) -> bool {
    time.as_nanos() <= least.as_nanos() * (1.0 + SAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(ranks: usize, nodes: usize, per_node: u32) -> usize {
        AllMappings::new(ranks, vec![per_node; nodes]).count()
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

    #[test]
    fn the_best_are_those_of_least_time_in_their_order() {
        let times = [2.0, 1.0, 1.0 + 1e-12].map(Time::from_nanos);
        let ranking = Ranking::new(AllMappings::new(4, vec![2; 2]), &times);
        assert_eq!(ranking.histogram, [(times[1], 2), (times[0], 1)]);
        let best = [[0, 1, 0, 1], [0, 1, 1, 0]].map(|nodes| nodes.map(Node).to_vec());
        assert_eq!((ranking.mappings, ranking.best), (3, best.to_vec()));
    }
}
