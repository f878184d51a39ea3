//! Ranks in slots, and what it costs to exchange them.

use flowcast_units::Rank;

use super::super::{matrix::CommunicationMatrix, target::Target};

/// An entry of the table of links.
pub(super) trait Link: Copy + Send + Sync + Into<i64> {}
impl Link for u8 {}
impl Link for u16 {}

/// Nodes that count as near each other.
const NEAR: usize = 24;

/// No rank runs in such a slot.
pub(super) const EMPTY: u32 = u32::MAX;

/// What is to be placed, where.
pub(super) struct Instance<'a, L> {
    nodes: usize,
    links: &'a [L],
    /// By rank: where its partners begin; one more entry at the end.
    begins: Vec<u32>,
    partners: Vec<Partner>,
    /// What divides all bytes.
    unit: u64,
    /// By slot: its node.
    pub node_of_slot: Vec<u32>,
    /// By node: its first slot; one more entry at the end.
    pub first_slot: Vec<u32>,
    /// By node: the nearest nodes with slots, itself first.
    near: Vec<u32>,
    near_begins: Vec<u32>,
    /// Ranks that communicate.
    pub movable: Vec<u32>,
}

#[derive(Clone, Copy)]
pub(super) struct Partner {
    pub rank: u32,
    pub weight: i64,
}

impl<'a, L: Link> Instance<'a, L> {
    pub(super) fn new(
        matrix: &CommunicationMatrix,
        target: &Target,
        links: &'a [L],
    ) -> Instance<'a, L> {
        let (mut begins, mut partners, mut unit) = (vec![0], Vec::new(), 0);
        for rank in Rank::all(matrix.ranks()) {
            partners.extend(matrix.partners(rank).map(|(partner, bytes)| Partner {
                rank: partner.0,
                weight: bytes as i64,
            }));
            begins.push(partners.len() as u32);
        }
        for partner in &partners {
            unit = greatest_divisor(unit, partner.weight as u64);
        }
        for partner in &mut partners {
            partner.weight /= unit.max(1) as i64;
        }
        let (mut node_of_slot, mut first_slot) = (Vec::new(), vec![0]);
        for (node, slots) in (0..).zip(target.slots()) {
            node_of_slot.extend(std::iter::repeat_n(node, *slots as usize));
            first_slot.push(node_of_slot.len() as u32);
        }
        let movable = (0..matrix.ranks() as u32)
            .filter(|rank| begins[*rank as usize] < begins[*rank as usize + 1])
            .collect();
        let (near, near_begins) = near_nodes(links, target.slots());
        Instance {
            nodes: target.nodes(),
            links,
            begins,
            partners,
            unit: unit.max(1),
            node_of_slot,
            first_slot,
            near,
            near_begins,
            movable,
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.begins.len() - 1
    }

    pub(super) fn movable_ranks(&self) -> usize {
        self.movable.len()
    }

    pub(super) fn bytes_of(&self, hops: i64) -> u64 {
        hops as u64 * self.unit
    }

    /// Some milliseconds of work.
    pub(super) fn tries_of_round(&self) -> u64 {
        let partners = self.partners.len() / self.movable.len().max(1);
        2_000_000 / (partners as u64 + 8)
    }

    #[inline]
    pub(super) fn partners(&self, rank: u32) -> &[Partner] {
        let rank = rank as usize;
        &self.partners[self.begins[rank] as usize..self.begins[rank + 1] as usize]
    }

    #[inline]
    fn links_from(&self, node: u32) -> &[L] {
        &self.links[node as usize * self.nodes..][..self.nodes]
    }

    #[inline]
    pub(super) fn near(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.near[self.near_begins[node] as usize..self.near_begins[node + 1] as usize]
    }
}

fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

fn near_nodes<L: Link>(links: &[L], slots: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let nodes = slots.len();
    let (mut near, mut begins) = (Vec::new(), vec![0]);
    let mut order: Vec<(i64, u32)> = Vec::new();
    for node in 0..nodes {
        let row = &links[node * nodes..][..nodes];
        order.clear();
        // Of nodes as far off those with the next numbers, so that not all know the same ones.
        order.extend(
            (0..nodes)
                .filter(|other| slots[*other] > 0)
                .map(|other| (row[other].into(), ((other + nodes - node) % nodes) as u32)),
        );
        if order.len() > NEAR {
            order.select_nth_unstable(NEAR);
            order.truncate(NEAR);
        }
        order.sort_unstable();
        near.extend(
            order
                .iter()
                .map(|(_, next)| ((*next as usize + node) % nodes) as u32),
        );
        begins.push(near.len() as u32);
    }
    (near, begins)
}

/// Which rank is in which slot.
#[derive(Clone)]
pub(super) struct Placement {
    pub node_of_rank: Vec<u32>,
    pub slot_of_rank: Vec<u32>,
    pub rank_of_slot: Vec<u32>,
    pub hops: i64,
}

impl Placement {
    /// The ranks in the slots in this order.
    pub(super) fn new<L: Link>(instance: &Instance<'_, L>, slot_of_rank: Vec<u32>) -> Placement {
        let mut rank_of_slot = vec![EMPTY; instance.node_of_slot.len()];
        for (rank, slot) in (0..).zip(&slot_of_rank) {
            rank_of_slot[*slot as usize] = rank;
        }
        let node_of_rank = slot_of_rank
            .iter()
            .map(|slot| instance.node_of_slot[*slot as usize])
            .collect();
        let mut placement = Placement {
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

    /// Of all messages of a rank.
    fn cost<L: Link>(&self, instance: &Instance<'_, L>, rank: u32) -> i64 {
        let links = instance.links_from(self.node_of_rank[rank as usize]);
        let of = |partner: &Partner| {
            let link: i64 = links[self.node_of_rank[partner.rank as usize] as usize].into();
            partner.weight * link
        };
        instance.partners(rank).iter().map(of).sum()
    }

    /// How many hops more there are if the rank goes to the slot, and what is there to where the rank was.
    #[inline]
    pub(super) fn change<L: Link>(&self, instance: &Instance<'_, L>, rank: u32, slot: u32) -> i64 {
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
    fn part<L: Link>(
        &self,
        instance: &Instance<'_, L>,
        rank: u32,
        exchanged: u32,
        [from, to]: [u32; 2],
    ) -> i64 {
        let (before, after) = (instance.links_from(from), instance.links_from(to));
        let mut change = 0;
        for partner in instance.partners(rank) {
            let node = self.node_of_rank[partner.rank as usize] as usize;
            let more: i64 = after[node].into() - before[node].into();
            // Both ends of what these two exchange move, so that their distance stays.
            let more = if partner.rank == exchanged { 0 } else { more };
            change += partner.weight * more;
        }
        change
    }

    #[inline]
    pub(super) fn exchange<L: Link>(
        &mut self,
        instance: &Instance<'_, L>,
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
    fn put<L: Link>(&mut self, instance: &Instance<'_, L>, rank: u32, slot: u32) {
        self.slot_of_rank[rank as usize] = slot;
        self.rank_of_slot[slot as usize] = rank;
        self.node_of_rank[rank as usize] = instance.node_of_slot[slot as usize];
    }
}
