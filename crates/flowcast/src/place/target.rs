//! The nodes on which ranks may run, and how many links are between them.

use flowcast_model::{sharing::SharingError, topology::Topology};
use flowcast_units::{Node, Rank};
use thiserror::Error;

use super::matrix::CommunicationMatrix;

/// Nodes farther apart are refused, so that sums of bytes times links stay exact.
pub const MOST_LINKS: u16 = 1 << 12;

/// Links of two nodes on the same switch.
const OWN_LINKS: u16 = 2;

/// Why there is no target, or no mapping to it.
#[derive(Debug, Error)]
pub enum TargetError {
    /// Not one place for each node.
    #[error("found {positions} places in the topology for {nodes} nodes, expected as many")]
    Positions {
        /// Places given.
        positions: usize,
        /// Nodes given.
        nodes: usize,
    },
    /// Two nodes at one place.
    #[error("found two nodes at place {0} of the topology, expected one")]
    Twice(Node),
    /// The ranks do not fit.
    #[error("found {ranks} ranks, expected at most {slots}, as there are slots")]
    TooFewSlots {
        /// How many ranks there are.
        ranks: usize,
        /// How many would fit.
        slots: u64,
    },
    /// More slots than ranks have numbers.
    #[error("found {0} slots, expected at most {most}", most = u32::MAX)]
    TooManySlots(u64),
    /// Sums would not be exact.
    #[error("found nodes with {0} links between them, expected at most {MOST_LINKS}")]
    TooFar(u16),
    /// The topology is none, or has no such place.
    #[error(transparent)]
    Topology(#[from] SharingError),
}

/// Nodes with slots and the number of links between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    slots: Vec<u32>,
    links: Links,
}

/// By pair of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Links {
    /// None is above 255.
    Near(Vec<u8>),
    /// Farther ones.
    Far(Vec<u16>),
}

impl Target {
    /// From the slots of each node and its place in the topology; without a topology all nodes hang on one switch, and the
    /// places say nothing.
    ///
    /// # Errors
    /// Not one place for each node, two nodes at one place, a place that there is not, nodes too far from each other.
    pub fn new(
        slots: Vec<u32>,
        topology: Option<&Topology>,
        positions: &[Node],
    ) -> Result<Target, TargetError> {
        let nodes = slots.len();
        let all_slots = slots.iter().map(|slots| u64::from(*slots)).sum();
        if all_slots > u64::from(u32::MAX) {
            return Err(TargetError::TooManySlots(all_slots));
        }
        let links = match topology {
            None => Links::Near(off_diagonal(vec![OWN_LINKS as u8; nodes * nodes], nodes)),
            Some(topology) => {
                check_positions(nodes, positions)?;
                links_by_topology(topology, positions)?
            }
        };
        Ok(Target { slots, links })
    }

    /// The same nodes with other slots.
    pub(super) fn with_slots(&self, slots: Vec<u32>) -> Target {
        Target {
            slots,
            links: self.links.clone(),
        }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.slots.len()
    }

    /// By node: how many ranks fit on it.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// How many links a message crosses between two nodes: those of both and the cables between; 0 inside a node.
    pub fn distance(&self, one: Node, other: Node) -> u32 {
        let place = one.index() * self.nodes() + other.index();
        match &self.links {
            Links::Near(links) => links[place].into(),
            Links::Far(links) => links[place].into(),
        }
    }

    /// The sum of bytes times links over all messages, if ranks run on these nodes.
    ///
    /// # Panics
    /// If there is no node for a rank that communicates.
    pub fn hops(&self, matrix: &CommunicationMatrix, node_of_rank: &[Node]) -> u64 {
        let mut hops = 0;
        for rank in Rank::all(matrix.ranks()) {
            for (partner, bytes) in matrix.partners(rank).filter(|(partner, _)| *partner < rank) {
                let ends = [rank, partner].map(|rank| node_of_rank[rank.index()]);
                hops += bytes * u64::from(self.distance(ends[0], ends[1]));
            }
        }
        hops
    }

    /// Whether so many ranks fit.
    ///
    /// # Errors
    /// [`TargetError::TooFewSlots`].
    pub fn check_ranks(&self, ranks: usize) -> Result<(), TargetError> {
        let slots = self.slots.iter().map(|slots| u64::from(*slots)).sum();
        if ranks as u64 > slots {
            return Err(TargetError::TooFewSlots { ranks, slots });
        }
        Ok(())
    }

    pub(super) fn links(&self) -> &Links {
        &self.links
    }
}

fn check_positions(nodes: usize, positions: &[Node]) -> Result<(), TargetError> {
    if positions.len() != nodes {
        return Err(TargetError::Positions {
            positions: positions.len(),
            nodes,
        });
    }
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(TargetError::Twice(pair[0])),
        None => Ok(()),
    }
}

fn off_diagonal<T: Copy + Default>(mut links: Vec<T>, nodes: usize) -> Vec<T> {
    for node in 0..nodes {
        links[node * nodes + node] = T::default();
    }
    links
}

fn links_by_topology(topology: &Topology, positions: &[Node]) -> Result<Links, TargetError> {
    let nodes = positions.len();
    let mut distances = topology.distances(positions)?;
    let mut near: Vec<u8> = Vec::with_capacity(nodes * nodes);
    for place in 0..nodes {
        // The first node that is far off from this one ends the table of bytes.
        near.extend(
            distances
                .from_node(place)
                .map_while(|cables| u8::try_from(cables + OWN_LINKS).ok()),
        );
        if near.len() < (place + 1) * nodes {
            return far_links(topology, positions);
        }
    }
    Ok(Links::Near(off_diagonal(near, nodes)))
}

fn far_links(topology: &Topology, positions: &[Node]) -> Result<Links, TargetError> {
    let nodes = positions.len();
    let mut distances = topology.distances(positions)?;
    let mut far: Vec<u16> = Vec::with_capacity(nodes * nodes);
    for place in 0..nodes {
        far.extend(distances.from_node(place).map(|cables| cables + OWN_LINKS));
    }
    match far.iter().copied().max() {
        Some(most) if most > MOST_LINKS => Err(TargetError::TooFar(most)),
        _ => Ok(Links::Far(off_diagonal(far, nodes))),
    }
}
