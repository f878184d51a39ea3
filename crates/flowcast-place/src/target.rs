//! The nodes on which ranks may run, and how many links are between them.

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

/// Nodes farther apart are refused, so that sums of bytes times links stay exact.
pub const MOST_LINKS: u16 = 1 << 12;

/// No target has more nodes: the links between all pairs of them take a byte or two each.
pub const MOST_NODES: usize = 1 << 15;

/// Why there is no target, or no mapping to it.
#[derive(Debug, Error)]
pub enum TargetError {
    /// Not one place for each node.
    #[error("found {positions} places in the topology for {nodes} nodes, expected as many")]
    Positions {
        /// How many places were given.
        positions: usize,
        /// How many nodes were given.
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
    /// More slots than the largest job has ranks.
    #[error("found {0} slots, expected at most {MOST_RANKS}")]
    TooManySlots(u64),
    /// A table of all pairs would not fit into memory.
    #[error("found {0} nodes, expected at most {MOST_NODES}")]
    TooManyNodes(usize),
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
    links: LinkDistances,
    order: NodeOrder,
}

/// Nodes in an order in which near ones stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeOrder {
    pub nodes: Vec<u32>,
    /// By place: how far the node there is from the one before, as levels of the topology.
    borders: Vec<u32>,
}

impl NodeOrder {
    /// Where to cut some of the order in two: at the highest border near the middle.
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

/// How many there are between nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinkDistances {
    /// None is above 255.
    Near(Table<u8>),
    /// Some are above 255.
    Far(Table<u16>),
    /// Of a torus or a mesh.
    Grid(GridLinks),
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
        if all_slots > u64::from(MOST_RANKS) {
            return Err(TargetError::TooManySlots(all_slots));
        }
        if nodes > MOST_NODES {
            return Err(TargetError::TooManyNodes(nodes));
        }
        let links = match topology {
            None => {
                let links = vec![OWN_LINKS as u8; nodes * nodes];
                LinkDistances::Near(Table::new(nodes, links).off_diagonal())
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
        let links = match &self.links {
            LinkDistances::Near(links) => links.between(one.0, other.0),
            LinkDistances::Far(links) => links.between(one.0, other.0),
            LinkDistances::Grid(links) => links.between(one.0, other.0),
        };
        links as u32
    }

    /// The sum of bytes times links over all messages, if ranks run on these nodes.
    ///
    /// # Panics
    /// If there is no node for a rank that communicates.
    pub fn hops(&self, matrix: &CommunicationMatrix, node_of_rank: &[Node]) -> u64 {
        let hops = matrix.pairs().map(|pair| {
            let [one, other] = [pair.from, pair.to].map(|rank| node_of_rank[rank]);
            pair.bytes.0 * u64::from(self.distance(one, other))
        });
        hops.sum()
    }

    /// Whether so many ranks fit.
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

/// Whether so many ranks fit into slots of nodes.
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

/// Nodes by their places, in which trees and Dragonflies number their groups; those of a grid halved along the longest side.
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
        return Ok(LinkDistances::Grid(links));
    }
    match table(topology, positions)? {
        Ok(near) => Ok(LinkDistances::Near(near)),
        Err(_) => table(topology, positions)?
            .map(LinkDistances::Far)
            .map_err(TargetError::TooFar),
    }
}

/// The links between all pairs of nodes; the number of links that is too large for the table if one is.
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
