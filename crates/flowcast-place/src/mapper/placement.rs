//! Placements of ranks in slots, and the cost of exchanging ranks.

use std::ops::Range;

use flowcast_units::Rank;

use super::super::{links::Metric, lists::Lists, matrix::CommunicationMatrix};

/// Number of nodes that count as near a node.
const NEAR: usize = 24;

/// Marks a slot without a rank.
pub(super) const EMPTY: u32 = u32::MAX;

/// The problem: ranks on slots of nodes, or groups of ranks on blocks of slots.
pub(super) struct Instance<'a, M> {
    pub metric: &'a M,
    /// Partners of each rank.
    pub traffic: Lists<RankPartner>,
    /// Node of each slot.
    pub node_of_slot: Vec<u32>,
    /// First slot of each node, with one more entry at the end.
    pub first_slot: Vec<u32>,
    /// For each node, the nearest nodes with slots, itself first.
    near: Lists<u32>,
    /// Ranks that communicate.
    pub movable: Vec<u32>,
}

#[derive(Clone, Copy)]
pub(super) struct RankPartner {
    pub rank: u32,
    pub weight: i64,
}

/// Returns the partners of each rank, and the unit of the weights in bytes: the greatest common divisor of all sums.
pub(super) fn traffic(matrix: &CommunicationMatrix) -> (Lists<RankPartner>, u64) {
    let bytes = matrix.pairs().map(|pair| pair.bytes.0);
    let unit = bytes.fold(0, greatest_divisor).max(1);
    let mut traffic = Lists::new();
    for rank in Rank::all(matrix.ranks()) {
        traffic.push(matrix.partners(rank).map(|(partner, bytes)| RankPartner {
            rank: partner.0,
            weight: (bytes / unit) as i64,
        }));
    }
    (traffic, unit)
}

impl<'a, M: Metric> Instance<'a, M> {
    pub(super) fn new(
        traffic: Lists<RankPartner>,
        slots: &[u32],
        metric: &'a M,
    ) -> Instance<'a, M> {
        let (mut node_of_slot, mut first_slot) = (Vec::new(), vec![0]);
        for (node, slots) in (0..).zip(slots) {
            node_of_slot.extend(std::iter::repeat_n(node, *slots as usize));
            first_slot.push(node_of_slot.len() as u32);
        }
        let movable = (0..traffic.len() as u32)
            .filter(|rank| !traffic.list(*rank).is_empty())
            .collect();
        Instance {
            metric,
            traffic,
            node_of_slot,
            first_slot,
            near: near_nodes(metric, slots),
            movable,
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.traffic.len()
    }

    pub(super) fn slots_of(&self, node: u32) -> Range<u32> {
        self.first_slot[node as usize]..self.first_slot[node as usize + 1]
    }

    /// Total number of partners of all ranks.
    pub(super) fn partnerships(&self) -> usize {
        self.traffic.entries().len()
    }

    /// Number of tries in a round, which takes some milliseconds.
    pub(super) fn tries_of_round(&self) -> u64 {
        let ranks = self.movable.len().max(1);
        let partners = self.partnerships() / ranks;
        (2_000_000 / (partners as u64 + 8)).min(1000 * ranks as u64)
    }

    #[inline]
    pub(super) fn partners(&self, rank: u32) -> &[RankPartner] {
        self.traffic.list(rank)
    }

    #[inline]
    pub(super) fn near(&self, node: u32) -> &[u32] {
        self.near.list(node)
    }
}

fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

fn near_nodes<M: Metric>(metric: &M, slots: &[u32]) -> Lists<u32> {
    let nodes = slots.len();
    let mut near = Lists::new();
    let mut order: Vec<(i64, u32)> = Vec::new();
    for node in 0..nodes {
        order.clear();
        // Among equally distant nodes, those with the next numbers come first, so that nodes do not all have the same
        // neighbours.
        order.extend((0..nodes).filter(|other| slots[*other] > 0).map(|other| {
            (
                metric.between(node as u32, other as u32),
                ((other + nodes - node) % nodes) as u32,
            )
        }));
        if order.len() > NEAR {
            order.select_nth_unstable(NEAR);
            order.truncate(NEAR);
        }
        order.sort_unstable();
        near.push(
            order
                .iter()
                .map(|(_, next)| ((*next as usize + node) % nodes) as u32),
        );
    }
    near
}

/// Assignment of ranks to slots.
#[derive(Clone)]
pub(super) struct SlotPlacement {
    pub node_of_rank: Vec<u32>,
    pub slot_of_rank: Vec<u32>,
    pub rank_of_slot: Vec<u32>,
    pub hops: i64,
}

impl SlotPlacement {
    /// Puts the ranks into these slots. Ranks with [`EMPTY`] take the remaining slots.
    pub(super) fn new<M: Metric>(
        instance: &Instance<'_, M>,
        mut slot_of_rank: Vec<u32>,
    ) -> SlotPlacement {
        let mut rank_of_slot = vec![EMPTY; instance.node_of_slot.len()];
        let ranks_with_slots = (0..).zip(&slot_of_rank);
        for (rank, slot) in ranks_with_slots.filter(|(_, slot)| **slot != EMPTY) {
            rank_of_slot[*slot as usize] = rank;
        }
        let mut free = 0;
        for (rank, slot) in (0..).zip(&mut slot_of_rank) {
            if *slot == EMPTY {
                while rank_of_slot[free] != EMPTY {
                    free += 1;
                }
                (*slot, rank_of_slot[free]) = (free as u32, rank);
            }
        }
        let node_of_rank = slot_of_rank
            .iter()
            .map(|slot| instance.node_of_slot[*slot as usize])
            .collect();
        let mut placement = SlotPlacement {
            node_of_rank,
            slot_of_rank,
            rank_of_slot,
            hops: 0,
        };
        let twice: i64 = (0..instance.ranks() as u32)
            .map(|rank| placement.cost(instance, rank))
            .sum();
        placement.hops = twice / 2;
        placement
    }

    /// Hops of all messages of a rank.
    fn cost<M: Metric>(&self, instance: &Instance<'_, M>, rank: u32) -> i64 {
        let node = self.node_of_rank[rank as usize];
        instance
            .partners(rank)
            .iter()
            .map(|partner| {
                let other = self.node_of_rank[partner.rank as usize];
                partner.weight * instance.metric.between(node, other)
            })
            .sum()
    }

    /// Change in hops if the rank moves to the slot and the content of that slot moves to the rank's present slot.
    #[inline]
    pub(super) fn change<M: Metric>(
        &self,
        instance: &Instance<'_, M>,
        rank: u32,
        slot: u32,
    ) -> i64 {
        let from = self.node_of_rank[rank as usize];
        let to = instance.node_of_slot[slot as usize];
        let other = self.rank_of_slot[slot as usize];
        let mut change = self.part(instance, rank, other, [from, to]);
        if other != EMPTY {
            change += self.part(instance, other, rank, [to, from]);
        }
        change
    }

    #[inline]
    fn part<M: Metric>(
        &self,
        instance: &Instance<'_, M>,
        rank: u32,
        exchanged: u32,
        [from, to]: [u32; 2],
    ) -> i64 {
        let mut change = 0;
        for partner in instance.partners(rank) {
            let node = self.node_of_rank[partner.rank as usize];
            let more = instance.metric.between(to, node) - instance.metric.between(from, node);
            // Both ends of the messages between these two ranks move, so their distance stays the same.
            let more = if partner.rank == exchanged { 0 } else { more };
            change += partner.weight * more;
        }
        change
    }

    #[inline]
    pub(super) fn exchange<M: Metric>(
        &mut self,
        instance: &Instance<'_, M>,
        rank: u32,
        slot: u32,
        change: i64,
    ) {
        let from = self.slot_of_rank[rank as usize];
        let other = self.rank_of_slot[slot as usize];
        self.put(instance, rank, slot);
        self.rank_of_slot[from as usize] = other;
        if other != EMPTY {
            self.put(instance, other, from);
        }
        self.hops += change;
    }

    #[inline]
    fn put<M: Metric>(&mut self, instance: &Instance<'_, M>, rank: u32, slot: u32) {
        self.slot_of_rank[rank as usize] = slot;
        self.rank_of_slot[slot as usize] = rank;
        self.node_of_rank[rank as usize] = instance.node_of_slot[slot as usize];
    }
}
