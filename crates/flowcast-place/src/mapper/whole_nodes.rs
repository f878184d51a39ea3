//! Placements that exchange all ranks of two nodes at the same time. Ranks that belong together stay on one node, while
//! misplaced nodes move. Moving single ranks would make the placement worse for many steps before it improves.

use std::collections::BTreeMap;

use super::{
    super::{links::Metric, lists::Lists, target::Target},
    chain::SearchChain,
    growth, halving,
    placement::{Instance, RankPartner, SlotPlacement},
};

/// Number of tries for each node. `MOST_TRIES` limits the total.
const TRIES: u64 = 5_000;
const MOST_TRIES: u64 = 4_000_000;

/// A metric in which all pairs of different nodes have the same distance.
struct UniformDistance;

impl Metric for UniformDistance {
    fn between(&self, one: u32, other: u32) -> i64 {
        i64::from(one != other)
    }
}

/// Groups ranks with the ranks that they send most to, independent of the places of nodes, and then exchanges the nodes.
/// `None` if there are no more slots than nodes, or if [`exchanged`] returns it.
pub(super) fn grouped<M: Metric>(
    instance: &Instance<'_, M>,
    target: &Target,
    seed: u64,
) -> Option<SlotPlacement> {
    if instance.node_of_slot.len() < instance.first_slot.len() {
        return None;
    }
    let alike = Instance::new(instance.traffic.clone(), target.slots(), &UniformDistance);
    let groups = halving::halved(&alike, target.order(), seed);
    exchanged(
        instance,
        &SlotPlacement::new(instance, groups.slot_of_rank),
        seed,
    )
}

/// Returns the best placement found by exchanging nodes. `None` if nodes have different numbers of slots or single slots,
/// or if no nodes communicate.
pub(super) fn exchanged<M: Metric>(
    instance: &Instance<'_, M>,
    placement: &SlotPlacement,
    seed: u64,
) -> Option<SlotPlacement> {
    let nodes = instance.first_slot.len() - 1;
    let slots = instance.slots_of(0).len();
    let is_equal = (0..nodes as u32).all(|node| instance.slots_of(node).len() == slots);
    if slots < 2 || !is_equal {
        return None;
    }
    let whole = Instance::new(
        traffic_of_nodes(instance, placement, nodes),
        &vec![1; nodes],
        instance.metric,
    );
    if whole.movable.is_empty() {
        return None;
    }
    let standing = SlotPlacement::new(&whole, (0..nodes as u32).collect());
    let grown = growth::grown(&whole, seed).filter(|grown| grown.hops < standing.hops);
    let mut chain = SearchChain::new(&whole, grown.unwrap_or(standing), seed);
    chain.advance(MOST_TRIES.min(TRIES * nodes as u64));
    let node_of_node = &chain.best().node_of_rank;
    let slots = placement
        .slot_of_rank
        .iter()
        .map(|slot| {
            let node = instance.node_of_slot[*slot as usize];
            let within = slot - instance.first_slot[node as usize];
            instance.first_slot[node_of_node[node as usize] as usize] + within
        })
        .collect();
    Some(SlotPlacement::new(instance, slots))
}

/// Returns the traffic between nodes: the sum over all of their ranks.
fn traffic_of_nodes<M: Metric>(
    instance: &Instance<'_, M>,
    placement: &SlotPlacement,
    nodes: usize,
) -> Lists<RankPartner> {
    let mut weights: Vec<BTreeMap<u32, i64>> = vec![BTreeMap::new(); nodes];
    for rank in 0..instance.ranks() as u32 {
        let node = placement.node_of_rank[rank as usize];
        for partner in instance.partners(rank) {
            let other = placement.node_of_rank[partner.rank as usize];
            if other != node {
                *weights[node as usize].entry(other).or_default() += partner.weight;
            }
        }
    }
    let mut traffic = Lists::new();
    for partners in weights {
        let partners = partners.into_iter();
        traffic.push(partners.map(|(rank, weight)| RankPartner { rank, weight }));
    }
    traffic
}
