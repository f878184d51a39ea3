//! Placement by recursive halving: nodes are cut in two where they are farthest apart, and ranks where few bytes cross.
//! Each half is cut again, and ranks are attracted to the half near their partners (dual recursive bipartitioning:
//! Pellegrini and Roman, 1996).

use std::{collections::VecDeque, ops::Range};

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::{
    super::{links::Metric, target::NodeOrder},
    bisection::{BisectionGraph, SideRoom, bisected},
    placement::{EMPTY, Instance, SlotPlacement},
};

/// Number of sampled nodes of a part that represent its distances.
const SAMPLES: usize = 8;

/// Number of fractions into which distances divide a link.
const PARTS: i64 = 16;

const NONE: u32 = u32::MAX;

/// Ranks for a number of nodes, which are consecutive in the order.
struct RankPart {
    nodes: Range<usize>,
    ranks: Vec<u32>,
}

struct Halving<'a, M> {
    instance: &'a Instance<'a, M>,
    order: &'a NodeOrder,
    /// Number of slots before each place in the order.
    slots_before: Vec<usize>,
    /// Nodes of the part of each rank.
    nodes_of_rank: Vec<Range<usize>>,
    /// Number of each rank in the part that is being cut.
    number: Vec<u32>,
    /// Cache of `pull`, indexed by the first place of the other part. An entry has the first place of the second half for
    /// which the pull was computed, and the pull.
    pulls: Vec<(usize, i64)>,
    random: Pcg64Mcg,
}

/// Maximum number of halvings. `MOST_PARTNERS` limits the number of partners of all ranks over all halvings.
const MOST_HALVINGS: usize = 8;
const MOST_PARTNERS: usize = 400_000;

/// Returns the best of several placements by halving.
pub(super) fn halved<M: Metric>(
    instance: &Instance<'_, M>,
    order: &NodeOrder,
    seed: u64,
) -> SlotPlacement {
    let count = (MOST_PARTNERS / instance.partnerships().max(1)).clamp(1, MOST_HALVINGS) as u64;
    let all = (0..count).map(|halving| placed(instance, order, seed.wrapping_add(halving << 40)));
    all.min_by_key(|placement| placement.hops)
        .expect("there is at least one")
}

fn placed<M: Metric>(instance: &Instance<'_, M>, order: &NodeOrder, seed: u64) -> SlotPlacement {
    let mut slots_before = vec![0];
    for node in &order.nodes {
        slots_before.push(slots_before[slots_before.len() - 1] + instance.slots_of(*node).len());
    }
    let nodes = 0..order.nodes.len();
    let halving = Halving {
        instance,
        order,
        slots_before,
        nodes_of_rank: vec![nodes; instance.ranks()],
        number: vec![NONE; instance.ranks()],
        pulls: vec![(usize::MAX, 0); order.nodes.len()],
        random: Pcg64Mcg::seed_from_u64(seed),
    };
    halving.placement()
}

impl<M: Metric> Halving<'_, M> {
    fn placement(mut self) -> SlotPlacement {
        let all = RankPart {
            nodes: 0..self.order.nodes.len(),
            ranks: self.instance.movable.clone(),
        };
        let mut parts = VecDeque::from([all]);
        let mut slots = vec![EMPTY; self.instance.ranks()];
        while let Some(part) = parts.pop_front() {
            if part.nodes.len() == 1 {
                let node = self.order.nodes[part.nodes.start];
                for (rank, slot) in part.ranks.iter().zip(self.instance.slots_of(node)) {
                    slots[*rank as usize] = slot;
                }
            } else if !part.ranks.is_empty() {
                parts.extend(self.halves(part));
            }
        }
        SlotPlacement::new(self.instance, slots)
    }

    fn halves(&mut self, part: RankPart) -> [RankPart; 2] {
        let middle = self.order.cut(part.nodes.clone());
        let nodes = [part.nodes.start..middle, middle..part.nodes.end];
        let [first, second] = nodes
            .clone()
            .map(|nodes| (self.slots_before[nodes.end] - self.slots_before[nodes.start]) as i64);
        let ranks = part.ranks.len() as i64;
        let room = SideRoom {
            least: (ranks - first).max(0),
            most: second.min(ranks),
        };
        let graph = self.graph(&part, &nodes);
        let is_second = bisected(&graph, room, &mut self.random);
        let [mut low, mut high] = nodes.map(|nodes| RankPart {
            nodes,
            ranks: Vec::new(),
        });
        for (rank, is_second) in part.ranks.into_iter().zip(is_second) {
            let half = if is_second { &mut high } else { &mut low };
            half.ranks.push(rank);
        }
        // A vertex that cannot be cut any further may be too large for its half.
        while high.ranks.len() as i64 > second {
            low.ranks.extend(high.ranks.pop());
        }
        while low.ranks.len() as i64 > first {
            high.ranks.extend(low.ranks.pop());
        }
        for half in [&low, &high] {
            for rank in &half.ranks {
                self.nodes_of_rank[*rank as usize] = half.nodes.clone();
            }
        }
        [low, high]
    }

    /// Returns the graph of the ranks of a part, with the attraction of each to the two halves.
    fn graph(&mut self, part: &RankPart, halves: &[Range<usize>; 2]) -> BisectionGraph {
        for (number, rank) in (0..).zip(&part.ranks) {
            self.number[*rank as usize] = number;
        }
        let [low, high] = halves;
        let across =
            2 * self.distance(low, high) - self.distance(low, low) - self.distance(high, high);
        let mut graph = BisectionGraph::new();
        let mut edges = Vec::new();
        for rank in &part.ranks {
            let mut pull = 0;
            for partner in self.instance.partners(*rank) {
                match self.number[partner.rank as usize] {
                    NONE => {
                        let other = self.nodes_of_rank[partner.rank as usize].clone();
                        pull += self.pull(halves, other) * partner.weight;
                    }
                    number => edges.push((number, across.max(1) * partner.weight)),
                }
            }
            graph.edges.push(edges.drain(..));
            graph.pulls.push(pull);
            graph.sizes.push(1);
        }
        for rank in &part.ranks {
            self.number[*rank as usize] = NONE;
        }
        graph
    }

    /// Distance of the second half from other nodes minus the distance of the first half, times two.
    fn pull(&mut self, [low, high]: &[Range<usize>; 2], other: Range<usize>) -> i64 {
        let (cut, known) = self.pulls[other.start];
        if cut == high.start {
            return known;
        }
        let pull = 2 * (self.distance(high, &other) - self.distance(low, &other));
        self.pulls[other.start] = (high.start, pull);
        pull
    }

    /// Mean distance between sampled nodes of two parts, in fractions of a link.
    fn distance(&self, one: &Range<usize>, other: &Range<usize>) -> i64 {
        let mut sum = 0;
        for one in samples(one) {
            for other in samples(other) {
                let nodes = [one, other].map(|place| self.order.nodes[place]);
                sum += self.instance.metric.between(nodes[0], nodes[1]);
            }
        }
        let pairs = one.len().min(SAMPLES) * other.len().min(SAMPLES);
        PARTS * sum / pairs as i64
    }
}

/// Returns evenly spread places of a range.
fn samples(nodes: &Range<usize>) -> impl Iterator<Item = usize> + use<> {
    let (start, count) = (nodes.start, nodes.len());
    let taken = count.min(SAMPLES);
    (0..taken).map(move |at| start + (2 * at + 1) * count / (2 * taken))
}
