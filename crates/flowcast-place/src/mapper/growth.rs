//! A placement that grows from one rank. The rank with the most placed partners comes next and goes to the node where its
//! messages cross the fewest links.
//!
//! If the nodes are connected in the same way as the ranks, such as a grid of ranks on a torus, the first few places
//! determine all others. These are drawn at random, so that one of several growths fits.

use std::{cmp::Reverse, collections::BinaryHeap};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{
    super::links::Metric,
    placement::{EMPTY, Instance, SlotPlacement},
};

/// Maximum number of growths.
const GROWTHS: u64 = 64;

/// Approximate number of distances computed in all growths.
const MOST_WORK: u64 = 200_000_000;

/// Number of placed partners around which a rank looks for a slot.
const ANCHORS: usize = 3;

/// Marks a rank without a place.
const NONE: u32 = u32::MAX;

struct Growth<'a, M> {
    instance: &'a Instance<'a, M>,
    node_of_rank: Vec<u32>,
    /// Number of free slots of each node.
    free: Vec<u32>,
    /// For each rank, the number of partners with a place, and the time at which the first one got it.
    placed_partners: Vec<[u32; 2]>,
    next: BinaryHeap<(u32, Reverse<u32>, u32)>,
    random: Pcg64Mcg,
}

/// Returns the best of several growths. `None` if a single growth would take too long, because ranks have too many partners.
pub(super) fn grown<M: Metric>(instance: &Instance<'_, M>, seed: u64) -> Option<SlotPlacement> {
    let growths = MOST_WORK / (50 * instance.partnerships() as u64 + 1);
    let all = (0..growths.min(GROWTHS)).map(|growth| {
        let seed = seed.wrapping_add(growth << 32);
        Growth::new(instance, seed).placement(growth % 2 == 0)
    });
    all.min_by_key(|placement| placement.hops)
}

/// Returns all entries with the smallest measure.
fn least_of(all: &[u32], measure: impl Fn(u32) -> i64) -> Vec<u32> {
    let least = all.iter().map(|one| measure(*one)).min();
    all.iter()
        .copied()
        .filter(|one| Some(measure(*one)) == least)
        .collect()
}

impl<'a, M: Metric> Growth<'a, M> {
    fn new(instance: &'a Instance<'a, M>, seed: u64) -> Growth<'a, M> {
        let nodes = 0..instance.first_slot.len() as u32 - 1;
        Growth {
            instance,
            node_of_rank: vec![NONE; instance.ranks()],
            free: nodes
                .map(|node| instance.slots_of(node).len() as u32)
                .collect(),
            placed_partners: vec![[0, 0]; instance.ranks()],
            next: BinaryHeap::new(),
            random: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    /// Grows the placement from a corner of the ranks at a corner of the nodes, or from the centre of both.
    fn placement(mut self, begins_at_corner: bool) -> SlotPlacement {
        let sign = if begins_at_corner { 1 } else { -1 };
        let ranks = least_of(&self.instance.movable, |rank| {
            sign * self.instance.partners(rank).len() as i64
        });
        let nodes: Vec<u32> = (0..self.free.len() as u32)
            .filter(|node| self.free[*node as usize] > 0)
            .collect();
        let nodes = least_of(&nodes, |node| -> i64 {
            let near = self.instance.near(node).iter();
            let links = near.map(|other| self.instance.metric.between(node, *other));
            -sign * links.sum::<i64>()
        });
        if !ranks.is_empty() {
            let first = ranks[self.random.random_range(0..ranks.len())];
            let node = nodes[self.random.random_range(0..nodes.len())];
            self.put(first, node, 0);
            self.grow();
        }
        for rank in &self.instance.movable {
            if self.node_of_rank[*rank as usize] == NONE {
                let node = self.cheapest(*rank);
                self.put(*rank, node, 0);
                self.grow();
            }
        }
        self.finished()
    }

    fn grow(&mut self) {
        let mut time = 1;
        while let Some((placed, _, rank)) = self.next.pop() {
            let is_known = self.node_of_rank[rank as usize] != NONE;
            if is_known || placed != self.placed_partners[rank as usize][0] {
                continue;
            }
            let node = self
                .cheapest_near(rank)
                .unwrap_or_else(|| self.cheapest(rank));
            self.put(rank, node, time);
            time += 1;
        }
    }

    fn put(&mut self, rank: u32, node: u32, time: u32) {
        self.node_of_rank[rank as usize] = node;
        self.free[node as usize] -= 1;
        for partner in self.instance.partners(rank) {
            if self.node_of_rank[partner.rank as usize] == NONE {
                let [placed, first] = &mut self.placed_partners[partner.rank as usize];
                *first = if *placed == 0 { time } else { *first };
                *placed += 1;
                self.next.push((*placed, Reverse(*first), partner.rank));
            }
        }
    }

    /// Cost of the messages between a rank on a node and those of its partners that have a place.
    fn cost(&self, rank: u32, node: u32) -> i64 {
        let partners = self.instance.partners(rank).iter();
        let placed = partners.filter(|partner| self.node_of_rank[partner.rank as usize] != NONE);
        placed
            .map(|partner| {
                let other = self.node_of_rank[partner.rank as usize];
                partner.weight * self.instance.metric.between(node, other)
            })
            .sum()
    }

    /// Returns the best node with a free slot near some of the rank's partners.
    fn cheapest_near(&mut self, rank: u32) -> Option<u32> {
        let partners = self.instance.partners(rank).iter();
        let anchors = partners
            .map(|partner| self.node_of_rank[partner.rank as usize])
            .filter(|node| *node != NONE);
        let mut best = None;
        for anchor in anchors.take(ANCHORS) {
            for node in self.instance.near(anchor) {
                if self.free[*node as usize] > 0 {
                    let rated = (self.cost(rank, *node), self.random.random::<u32>(), *node);
                    best = Some(best.map_or(rated, |best: (i64, u32, u32)| best.min(rated)));
                }
            }
        }
        best.map(|(.., node)| node)
    }

    fn cheapest(&self, rank: u32) -> u32 {
        let nodes = (0..self.free.len() as u32).filter(|node| self.free[*node as usize] > 0);
        nodes
            .min_by_key(|node| self.cost(rank, *node))
            .expect("there is a slot for each rank")
    }

    fn finished(self) -> SlotPlacement {
        let mut first = self.instance.first_slot.clone();
        let slots = self.node_of_rank.iter().map(|node| {
            if *node == NONE {
                return EMPTY;
            }
            let slot = &mut first[*node as usize];
            *slot += 1;
            *slot - 1
        });
        SlotPlacement::new(self.instance, slots.collect())
    }
}
