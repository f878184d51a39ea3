//! Random patterns over two racks, as in the validation by Zhu, Lastovetsky, Katrinis et al.: `|N|` nodes, half of them in
//! each rack, and `d` flows out of each node to different other nodes. All flows start at the same time.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::flow::Flow;
use flowcast_units::{Bytes, Node, Time};

/// Number of nodes, and number of flows out of each node, in the nine configurations.
pub const CONFIGURATIONS: [(u32, u32); 9] = [
    (6, 1),
    (6, 2),
    (6, 3),
    (8, 1),
    (8, 2),
    (8, 3),
    (10, 1),
    (10, 2),
    (10, 3),
];

/// Parameters of a random pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TwoRackPlan {
    /// Nodes of the pattern.
    pub nodes: Vec<Node>,
    /// `d`: number of flows out of each node.
    pub flows_out: u32,
    /// Smallest message size, inclusive.
    pub smallest: Bytes,
    /// Largest message size, inclusive; `smallest` applies if this is less.
    pub largest: Bytes,
}

impl TwoRackPlan {
    /// Draws the pattern of a seed. Receivers are drawn without repetition, sizes evenly from the smallest to the largest.
    pub fn draw(&self, seed: u64) -> Vec<Flow> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut flows = Vec::new();
        for src in &self.nodes {
            let mut others: Vec<Node> = self
                .nodes
                .iter()
                .copied()
                .filter(|node| node != src)
                .collect();
            for _ in 0..self.flows_out.min(others.len() as u32) {
                let dst = others.swap_remove(random.random_range(0..others.len()));
                let size = Bytes(
                    random.random_range(self.smallest.0..=self.largest.0.max(self.smallest.0)),
                );
                flows.push(Flow {
                    id: flows.len() as u32 + 1,
                    src: *src,
                    dst,
                    size,
                    start: Time::ZERO,
                });
            }
        }
        flows
    }

    /// Draws the pattern of a seed and lists its flows twice. All sizes are drawn anew, evenly on a logarithmic scale.
    pub(crate) fn draw_twice_by_size_class(&self, seed: u64) -> Vec<Flow> {
        let mut flows = self.draw(seed);
        flows.extend_from_within(..);
        let mut random = Pcg64Mcg::seed_from_u64(!seed);
        let [smallest, largest] =
            [self.smallest, self.largest].map(|size| (size.0.max(1) as f64).ln());
        for (flow, id) in flows.iter_mut().zip(1..) {
            let size = random
                .random_range(smallest..=largest.max(smallest))
                .exp()
                .round() as u64;
            (flow.id, flow.size) = (id, Bytes(size.clamp(self.smallest.0, self.largest.0)));
        }
        flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_node_sends_to_the_requested_number_of_other_nodes() {
        let nodes: Vec<Node> = [0, 1, 2, 5, 6, 7].map(Node).to_vec();
        let plan = TwoRackPlan {
            nodes: nodes.clone(),
            flows_out: 3,
            smallest: Bytes(500_000),
            largest: Bytes(2_000_000),
        };
        for seed in 0..50 {
            let flows = plan.draw(seed);
            assert_eq!(flows, plan.draw(seed));
            let pairs: BTreeSet<_> = flows.iter().map(|flow| (flow.src, flow.dst)).collect();
            assert_eq!((flows.len(), pairs.len()), (18, 18));
            assert!(
                flows
                    .iter()
                    .all(|flow| flow.src != flow.dst && nodes.contains(&flow.dst))
            );
            assert!(
                flows
                    .iter()
                    .all(|flow| (500_000..=2_000_000).contains(&flow.size.0))
            );
        }
    }

    #[test]
    fn flows_are_limited_to_the_number_of_other_nodes() {
        let plan = TwoRackPlan {
            nodes: vec![Node(0), Node(1)],
            flows_out: 5,
            smallest: Bytes(1),
            largest: Bytes(1),
        };
        assert_eq!(plan.draw(1).len(), 2);
    }
}
