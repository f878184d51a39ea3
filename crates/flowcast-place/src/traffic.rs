//! Traffic under a mapping: the share of bytes inside nodes, and the load of the links of each level.

use std::collections::BTreeMap;

use flowcast_network::{sharing::SharingError, topology::Topology};
use flowcast_units::{Bytes, Node};

use super::matrix::{CommunicationMatrix, RankMessage};

/// Bytes under a mapping.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MappingTraffic {
    /// Bytes between ranks of the same node.
    pub inside: Bytes,
    /// Bytes between ranks of different nodes.
    pub between: Bytes,
    /// Bytes times links crossed, for each class of links. [`Topology::classes`] defines the names.
    pub levels: Vec<(String, u64)>,
}

/// Returns the traffic of a matrix under a mapping to nodes at these positions of the topology.
///
/// # Errors
/// A topology that cannot be built or has no place for a node.
pub fn traffic(
    matrix: &CommunicationMatrix,
    node_of_rank: &[Node],
    topology: Option<&Topology>,
    positions: &[Node],
) -> Result<MappingTraffic, SharingError> {
    let mut traffic = MappingTraffic::default();
    let mut between: BTreeMap<[Node; 2], u64> = BTreeMap::new();
    for pair in matrix.pairs() {
        let nodes = [pair.from, pair.to].map(|rank| node_of_rank[rank]);
        if nodes[0] == nodes[1] {
            traffic.inside.0 += pair.bytes.0;
        } else {
            *between
                .entry(nodes.map(|node| positions.get(node.index()).copied().unwrap_or(node)))
                .or_default() += pair.bytes.0;
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

/// Returns the pairs of ranks that are on different nodes under one mapping and on one node under the other, those with the
/// most bytes first.
pub fn moved_inside(
    matrix: &CommunicationMatrix,
    before: &[Node],
    after: &[Node],
) -> Vec<RankMessage> {
    let mut moved: Vec<RankMessage> = matrix
        .pairs()
        .filter(|pair| before[pair.from] != before[pair.to] && after[pair.from] == after[pair.to])
        .collect();
    moved.sort_by_key(|pair| (std::cmp::Reverse(pair.bytes), pair.from, pair.to));
    moved
}
