//! Nodes on which ranks may run, and the number of links between them.

use std::{cmp::Reverse, ops::Range};

use flowcast_network::{
    sharing::error::SharingError,
    topology::{Topology, TopologyShape},
};
use flowcast_units::{MOST_RANKS, Node};
use thiserror::Error;

use super::{
    links::{GridLinks, Metric, OWN_LINKS, Table},
    matrix::CommunicationMatrix,
};

/// Maximum number of links between two nodes, which keeps sums of bytes times links exact.
pub const MOST_LINKS: u16 = 1 << 12;

/// Maximum number of nodes of a target. The number of links takes one or two bytes for each pair of nodes.
pub const MOST_NODES: usize = 1 << 15;

/// Error for nodes that cannot be a target, or ranks that do not fit on them.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The number of places differs from the number of nodes.
    #[error(
        "found {positions} positions in the topology for {nodes} nodes, expected one for each node"
    )]
    Positions {
        /// Number of places that were given.
        positions: usize,
        /// Number of nodes that were given.
        nodes: usize,
    },
    /// Two nodes at the same place.
    #[error("found two nodes at position {0} of the topology, expected one")]
    Twice(Node),
    /// The ranks do not fit.
    #[error("found {ranks} ranks, expected at most {slots}, the number of slots")]
    TooFewSlots {
        /// Number of ranks, which exceeds `slots`.
        ranks: usize,
        /// Total number of slots.
        slots: u64,
    },
    /// More slots than the largest job has ranks.
    #[error("found {0} slots, expected at most {MOST_RANKS}")]
    TooManySlots(u64),
    /// A table of all pairs would not fit into memory.
    #[error("found {0} nodes, expected at most {MOST_NODES}")]
    TooManyNodes(usize),
    /// Too many links for exact sums.
    #[error("found two nodes with {0} links between them, expected at most {MOST_LINKS}")]
    TooFar(u16),
    /// The topology is invalid or lacks a place.
    #[error(transparent)]
    Topology(#[from] SharingError),
}

/// Nodes with slots and the number of links between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    slots: Vec<u32>,
    links: LinkDistances,
    order: NodeOrder,
}

/// Nodes in an order that puts near nodes next to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeOrder {
    pub nodes: Vec<u32>,
    /// Border between each node of the order and the previous one: the topology level at which they meet, or in a grid the
    /// halving that separates them (larger is earlier).
    borders: Vec<u32>,
}

impl NodeOrder {
    /// Returns the place at which a part of the order is cut in two: the highest border near the middle.
    pub(super) fn cut(&self, places: Range<usize>) -> usize {
        let (start, count) = (places.start, places.len());
        let margin = count.div_ceil(4).max(1);
        let middle = start + count / 2;
        let near_middle = start + margin..places.end - margin + 1;
        near_middle
            .max_by_key(|place| (self.borders[*place], Reverse(place.abs_diff(middle))))
            .unwrap_or(middle)
    }
}

/// Numbers of links between nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinkDistances {
    /// No number is above 255.
    Near(Table<u8>),
    /// Some numbers are above 255.
    Far(Table<u16>),
    /// Distances in a torus or a mesh.
    Grid(GridLinks),
}

use LinkDistances::*;

impl Target {
    /// Creates a target from the slots of each node and its place in the topology. Without a topology, all nodes are
    /// connected to one switch, and the places are ignored.
    ///
    /// # Errors
    /// A number of places that differs from the number of nodes, two nodes at one place, a place that does not exist, nodes
    /// too far from each other, too many nodes, and too many slots.
    pub fn new(
        slots: Vec<u32>,
        topology: Option<&Topology>,
        positions: &[Node],
    ) -> Result<Target, TargetError> {
        let nodes = slots.len();
        let all_slots = slots.iter().map(|slots| u64::from(*slots)).sum();
        if all_slots > u64::from(MOST_RANKS) {
            return Err(TargetError::TooManySlots(all_slots));
        }
        if nodes > MOST_NODES {
            return Err(TargetError::TooManyNodes(nodes));
        }
        let links = match topology {
            None => {
                let links = vec![OWN_LINKS as u8; nodes * nodes];
                Near(Table::new(nodes, links).off_diagonal())
            }
            Some(topology) => {
                check_positions(nodes, positions)?;
                links_by_topology(topology, positions)?
            }
        };
        Ok(Target {
            slots,
            links,
            order: near_together(topology, positions, nodes)?,
        })
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.slots.len()
    }

    /// Number of slots of each node.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Number of links that a message crosses between two nodes: the links of both nodes and the cables in between. It is 0
    /// inside a node.
    pub fn distance(&self, one: Node, other: Node) -> u32 {
        let links = match &self.links {
            Near(links) => links.between(one.0, other.0),
            Far(links) => links.between(one.0, other.0),
            Grid(links) => links.between(one.0, other.0),
        };
        links as u32
    }

    /// Returns the sum of bytes times links over all messages, if ranks run on these nodes.
    ///
    /// # Panics
    /// If a rank that communicates has no node.
    pub fn hops(&self, matrix: &CommunicationMatrix, node_of_rank: &[Node]) -> u64 {
        let hops = matrix.pairs().map(|pair| {
            let [one, other] = [pair.from, pair.to].map(|rank| node_of_rank[rank]);
            pair.bytes.0 * u64::from(self.distance(one, other))
        });
        hops.sum()
    }

    /// Checks that this number of ranks fits.
    ///
    /// # Errors
    /// [`TargetError::TooFewSlots`].
    pub fn check_ranks(&self, ranks: usize) -> Result<(), TargetError> {
        check_slots(&self.slots, ranks)
    }

    pub(super) fn order(&self) -> &NodeOrder {
        &self.order
    }

    pub(super) fn links(&self) -> &LinkDistances {
        &self.links
    }
}

/// Checks that this number of ranks fits into the slots of the nodes.
pub(super) fn check_slots(slots: &[u32], ranks: usize) -> Result<(), TargetError> {
    let slots = slots.iter().map(|slots| u64::from(*slots)).sum();
    match ranks as u64 > slots {
        true => Err(TargetError::TooFewSlots { ranks, slots }),
        false => Ok(()),
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

/// Orders nodes by their places, since trees and Dragonflies number them group by group. The nodes of a grid are halved
/// along the longest side.
fn near_together(
    topology: Option<&Topology>,
    positions: &[Node],
    nodes: usize,
) -> Result<NodeOrder, SharingError> {
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    let mut borders = vec![0; nodes];
    let Some(topology) = topology else {
        return Ok(NodeOrder {
            nodes: order,
            borders,
        });
    };
    if let TopologyShape::Grid(grid, _) = &topology.shape {
        let coordinates: Vec<Vec<u32>> = positions
            .iter()
            .map(|node| grid.coordinates(*node))
            .collect();
        halve(&mut order, &coordinates, &mut borders, u32::MAX);
    } else {
        order.sort_by_key(|node| positions[*node as usize]);
        let neighbours: Vec<[Node; 2]> = order
            .windows(2)
            .map(|pair| [pair[0], pair[1]].map(|node| positions[node as usize]))
            .collect();
        for (border, meeting) in borders
            .iter_mut()
            .skip(1)
            .zip(topology.meetings_of(&neighbours)?)
        {
            *border = meeting as u32;
        }
    }
    Ok(NodeOrder {
        nodes: order,
        borders,
    })
}

fn halve(nodes: &mut [u32], coordinates: &[Vec<u32>], borders: &mut [u32], border: u32) {
    let length = |dimension: &usize| {
        let nodes = nodes.iter();
        let along = nodes.map(|node| coordinates[*node as usize][*dimension]);
        let (least, most) = (along.clone().min(), along.max());
        most.zip(least).map(|(most, least)| most - least)
    };
    let dimensions = coordinates.first().map_or(0, Vec::len);
    let Some(longest) = (0..dimensions).rev().max_by_key(length) else {
        return;
    };
    if length(&longest).unwrap_or(0) > 0 {
        nodes.sort_by_key(|node| coordinates[*node as usize][longest]);
        let middle = nodes.len() / 2;
        borders[middle] = border;
        let (low, high) = nodes.split_at_mut(middle);
        let (low_borders, high_borders) = borders.split_at_mut(middle);
        halve(low, coordinates, low_borders, border - 1);
        halve(high, coordinates, high_borders, border - 1);
    }
}

fn links_by_topology(
    topology: &Topology,
    positions: &[Node],
) -> Result<LinkDistances, TargetError> {
    if let TopologyShape::Grid(grid, _) = &topology.shape
        && let Some(links) = GridLinks::new(grid, positions)
    {
        topology.distances(positions)?;
        return Ok(Grid(links));
    }
    match table(topology, positions)? {
        Ok(near) => Ok(Near(near)),
        Err(_) => table(topology, positions)?
            .map(Far)
            .map_err(TargetError::TooFar),
    }
}

/// Returns the numbers of links between all pairs of nodes. The inner error is a number of links that is too large for the
/// table.
fn table<T>(topology: &Topology, positions: &[Node]) -> Result<Result<Table<T>, u16>, SharingError>
where
    T: TryFrom<u16> + Copy + Default,
{
    let nodes = positions.len();
    let mut distances = topology.distances(positions)?;
    let mut links: Vec<T> = Vec::with_capacity(nodes * nodes);
    for place in 0..nodes {
        for cables in distances.from_node(place) {
            let between = cables + OWN_LINKS;
            match T::try_from(between) {
                Ok(between_nodes) if between <= MOST_LINKS => links.push(between_nodes),
                _ => return Ok(Err(between)),
            }
        }
    }
    Ok(Ok(Table::new(nodes, links).off_diagonal()))
}
