//! What a mapping makes of the messages: how much of them stays inside nodes, and what the links of each level carry.

use std::collections::BTreeMap;

use flowcast_model::{sharing::SharingError, topology::Topology};
use flowcast_units::{Bytes, Node, Rank};

use super::matrix::CommunicationMatrix;

/// Bytes under a mapping.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MappingTraffic {
    /// Between ranks of one node.
    pub inside: Bytes,
    /// Between ranks of different nodes.
    pub between: Bytes,
    /// By class of links, as [`Topology::classes`] names them: bytes times the links of this class that they cross.
    pub levels: Vec<(String, u64)>,
}

/// Two ranks with the bytes between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPair {
    /// The rank with the lower number.
    pub one: Rank,
    /// The rank with the higher number.
    pub other: Rank,
    /// What they send each other, both ways together.
    pub bytes: Bytes,
}

/// Each pair of ranks once, in their order.
fn pairs(matrix: &CommunicationMatrix) -> impl Iterator<Item = RankPair> + '_ {
    Rank::all(matrix.ranks()).flat_map(move |one| {
        let partners = matrix.partners(one);
        let above = partners.filter(move |(other, _)| *other > one);
        above.map(move |(other, bytes)| RankPair {
            one,
            other,
            bytes: Bytes(bytes),
        })
    })
}

/// The bytes of a matrix under a mapping to nodes that stand at these positions of the topology.
///
/// # Errors
/// A topology that cannot be built, or has no place for a node.
pub fn traffic(
    matrix: &CommunicationMatrix,
    node_of_rank: &[Node],
    topology: Option<&Topology>,
    positions: &[Node],
) -> Result<MappingTraffic, SharingError> {
    let mut traffic = MappingTraffic::default();
    let mut between: BTreeMap<[Node; 2], u64> = BTreeMap::new();
    for pair in pairs(matrix) {
        let nodes = [pair.one, pair.other].map(|rank| node_of_rank[rank.index()]);
        if nodes[0] == nodes[1] {
            traffic.inside.0 += pair.bytes.0;
        } else {
            let position = |node: Node| positions.get(node.index()).copied().unwrap_or(node);
            *between.entry(nodes.map(position)).or_default() += pair.bytes.0;
        }
    }
    traffic.between = Bytes(between.values().sum());
    let Some(topology) = topology else {
        traffic.levels = vec![("node".to_owned(), 2 * traffic.between.0)];
        return Ok(traffic);
    };
    let names = topology.classes().into_iter().map(|class| (class.name, 0));
    traffic.levels = names.collect();
    let nodes: Vec<[Node; 2]> = between.keys().copied().collect();
    for (counts, bytes) in topology.crossed(&nodes)?.iter().zip(between.values()) {
        for ((_, level), count) in traffic.levels.iter_mut().zip(counts) {
            *level += bytes * u64::from(*count);
        }
    }
    Ok(traffic)
}

/// The pairs of ranks on different nodes under one mapping and on one node under the other, those with most bytes first.
pub fn moved_inside(
    matrix: &CommunicationMatrix,
    before: &[Node],
    after: &[Node],
) -> Vec<RankPair> {
    let is_inside =
        |nodes: &[Node], pair: &RankPair| nodes[pair.one.index()] == nodes[pair.other.index()];
    let mut moved: Vec<RankPair> = pairs(matrix)
        .filter(|pair| !is_inside(before, pair) && is_inside(after, pair))
        .collect();
    moved.sort_by_key(|pair| (std::cmp::Reverse(pair.bytes), pair.one, pair.other));
    moved
}
