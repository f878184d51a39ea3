//! A job: ranks on nodes that stand at positions of a topology.

use flowcast_units::{Node, Rank};

/// The nodes that a job has and the node of each of its ranks. A list whose content is unknown is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// Name of each node.
    pub hosts: Vec<String>,
    /// Ranks that fit on each node, at least 1.
    pub slots: Vec<u32>,
    /// Position of each node in the topology; if unknown, node n stands at position n.
    pub positions: Vec<Node>,
    /// Number of sockets, or other domains, of each node, which share its slots equally. At 0 and 1 nodes are not divided.
    pub domains: u32,
    /// Node of each rank.
    pub node_of_rank: Vec<Node>,
    /// Domain of each rank on its node, counted from 0; if unknown, the launcher chooses.
    pub domain_of_rank: Vec<u32>,
}

/// The ranks of each of `nodes` nodes, ascending.
pub(super) fn ranks_of_nodes(node_of_rank: &[Node], nodes: usize) -> Vec<Vec<Rank>> {
    let mut ranks_of_nodes = vec![Vec::new(); nodes];
    for (node, rank) in node_of_rank.iter().zip(0..) {
        ranks_of_nodes[*node].push(Rank(rank));
    }
    ranks_of_nodes
}
