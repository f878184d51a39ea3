//! All mappings of a few ranks to equal nodes.
//!
//! Nodes are interchangeable, so mappings that differ only in the names of nodes count once: 8 ranks on 4 dual nodes have
//! 8!/(2!^4 4!) = 105.

use flowcast_units::{Node, Time};

/// Times that differ by less than this fraction share one entry of the histogram.
const SAME: f64 = 1e-9;

/// Iterator over all mappings of ranks to equal nodes, each as the node of every rank. A new node is always the lowest
/// unused one, so mappings that differ only in the names of nodes occur once. The first mapping fills node after node.
#[derive(Debug, Clone)]
pub struct AllMappings {
    ranks: usize,
    slots: Vec<u32>,
    /// Nodes of the ranks that already have one.
    mapping: Vec<Node>,
    /// Number of ranks on each node in use.
    used: Vec<u32>,
    /// Lowest node to try for the next rank.
    first: usize,
}

impl AllMappings {
    /// Creates the iterator for `ranks` ranks and nodes with `slots[n]` slots each. All nodes must have the same number of
    /// slots.
    pub fn new(ranks: usize, slots: Vec<u32>) -> AllMappings {
        AllMappings {
            ranks,
            slots,
            mapping: Vec::with_capacity(ranks),
            used: Vec::new(),
            first: 0,
        }
    }

    /// Returns `true` if there are more than `most` mappings.
    pub fn are_more_than(mut self, most: u64) -> bool {
        (0..=most).all(|_| self.advance())
    }

    /// Advances to the next mapping. Returns `false` if there is none.
    fn advance(&mut self) -> bool {
        loop {
            if let Some(node) = self.free() {
                self.used.resize(self.used.len().max(node + 1), 0);
                self.used[node] += 1;
                self.mapping.push(Node(node as u32));
                self.first = 0;
                if self.mapping.len() == self.ranks {
                    return true;
                }
            } else {
                let Some(last) = self.mapping.pop() else {
                    return false;
                };
                let last = last.index();
                self.used[last] -= 1;
                self.used
                    .truncate(self.used.len() - usize::from(self.used[last] == 0));
                self.first = last + 1;
            }
        }
    }

    /// Returns the lowest node with a slot for the next rank. `None` if all ranks have a node or all slots are taken.
    fn free(&self) -> Option<usize> {
        if self.mapping.len() == self.ranks {
            return None;
        }
        (self.first..=self.used.len()).find(|node| {
            let used = self.used.get(*node).unwrap_or(&0);
            self.slots.get(*node).is_some_and(|slots| used < slots)
        })
    }
}

impl Iterator for AllMappings {
    type Item = Vec<Node>;

    fn next(&mut self) -> Option<Vec<Node>> {
        self.advance().then(|| self.mapping.clone())
    }
}

/// Statistics of the times of all mappings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranking {
    /// Number of mappings, the sum of the counts in `histogram`.
    pub mappings: u64,
    /// Times in ascending order, each with the number of mappings that take it.
    pub histogram: Vec<(Time, u64)>,
    /// All mappings with the shortest time, each as the node of every rank.
    pub best: Vec<Vec<Node>>,
}

impl Ranking {
    /// Ranks all mappings. `times[n]` is the predicted time of the n-th of `mappings`.
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
        let of_eight = || AllMappings::new(8, vec![2; 4]);
        assert!(of_eight().are_more_than(104) && !of_eight().are_more_than(105));
    }

    #[test]
    fn the_best_mappings_are_the_fastest_in_order_of_enumeration() {
        let times = [2.0, 1.0, 1.0 + 1e-12].map(Time::from_nanos);
        let ranking = Ranking::new(AllMappings::new(4, vec![2; 2]), &times);
        assert_eq!(ranking.histogram, [(times[1], 2), (times[0], 1)]);
        let best = [[0, 1, 0, 1], [0, 1, 1, 0]].map(|nodes| nodes.map(Node).to_vec());
        assert_eq!((ranking.mappings, ranking.best), (3, best.to_vec()));
    }
}
