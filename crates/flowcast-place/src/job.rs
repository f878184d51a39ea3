//! Jobs: ranks on nodes at positions of a topology.

use flowcast_units::{Node, Rank};

/// Nodes of a job and the node of each rank. Lists with unknown content are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// Name of each node.
    pub hosts: Vec<String>,
    /// Ranks that fit on each node, at least 1.
    pub slots: Vec<u32>,
    /// Position of each node in the topology. If unknown, node n is at position n.
    pub positions: Vec<Node>,
    /// Number of sockets or other domains of each node, which share its slots equally. With 0 or 1, nodes are not divided.
    pub domains: u32,
    /// Node of each rank.
    pub node_of_rank: Vec<Node>,
    /// Domain of each rank on its node, starting with 0. If unknown, the launcher chooses.
    pub domain_of_rank: Vec<u32>,
}

/// Returns the ranks of each of `nodes` nodes, in ascending order.
pub(super) fn ranks_of_nodes(node_of_rank: &[Node], nodes: usize) -> Vec<Vec<Rank>> {
    let mut ranks_of_nodes = vec![Vec::new(); nodes];
    for (node, rank) in node_of_rank.iter().zip(0..) {
        ranks_of_nodes[*node].push(Rank(rank));
    }
    ranks_of_nodes
}
