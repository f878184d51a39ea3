//! Links of a fabric and their names for users.

use std::{fmt, sync::Arc};

use super::AllocatedFraction;
use crate::topology::{
    Topology,
    dragonfly::GLOBAL,
    wiring::{Cable, Hop, Wiring},
};
use flowcast_units::{Node, Time};

/// Class of the cables between groups, if there are groups.
pub(super) const GLOBAL_CLASS: usize = GLOBAL as usize;

/// Description of a link for users. Interfaces are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// Outgoing direction of a node's interface.
    Out {
        /// The node.
        node: Node,
        /// The interface, if there are several.
        nic: Option<u32>,
    },
    /// Incoming direction of a node's interface.
    In {
        /// The node.
        node: Node,
        /// The interface, if there are several.
        nic: Option<u32>,
    },
    /// Half-duplex interface of a node, in both directions.
    Port {
        /// The node.
        node: Node,
        /// The interface, if there are several.
        nic: Option<u32>,
    },
    /// Bus of the nodes with consecutive numbers from the first to the second, in both directions.
    Bus(Node, Node),
    /// Link from a rack to the other racks.
    Up(String),
    /// Link from the other racks to a rack.
    Down(String),
    /// One direction of a cable between switches, as named by its topology.
    Cable(String),
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Link::Out { node, nic } => write!(f, "out of node {node}{}", Interface(*nic)),
            Link::In { node, nic } => write!(f, "into node {node}{}", Interface(*nic)),
            Link::Port { node, nic } => write!(f, "at the port of node {node}{}", Interface(*nic)),
            Link::Bus(first, last) if first == last => write!(f, "over the bus of node {first}"),
            Link::Bus(first, last) => write!(f, "over the bus of nodes {first} to {last}"),
            Link::Up(rack) => write!(f, "out of rack {rack}"),
            Link::Down(rack) => write!(f, "into rack {rack}"),
            Link::Cable(name) => f.write_str(name),
        }
    }
}

/// Suffix of a node's name if the node has several interfaces.
struct Interface(Option<u32>);

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |nic| write!(f, ", interface {nic}"))
    }
}

impl Link {
    /// Description with the kind of link: `link out of node 3`, `global cable from group 3 to group 5`.
    pub fn phrase(&self) -> String {
        let name = self.to_string();
        match self {
            Link::Cable(_) if name.contains(" cable from ") => name,
            _ => format!("link {name}"),
        }
    }
}

/// A cable between switches, in both directions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Inner {
    pub name: InnerName,
    pub capacity: AllocatedFraction,
    pub latency: Time,
    /// Index of the class in the fabric.
    pub class: u8,
    /// Position of both directions along paths.
    pub place: [u16; 2],
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum InnerName {
    Rack(String),
    Cable(Cable),
    /// One link represents both directions.
    Bus(Node, Node),
}

/// Switches of a topology.
#[derive(Debug, Clone)]
pub(super) struct Switches {
    pub topology: Arc<Topology>,
    pub wiring: Arc<dyn Wiring>,
}

/// The topology determines the wiring.
impl PartialEq for Switches {
    fn eq(&self, other: &Switches) -> bool {
        self.topology == other.topology
    }
}

impl Switches {
    pub(super) fn name(&self, cable: Cable, is_forward: bool) -> String {
        let name = self.wiring.name(Hop::along(cable, is_forward));
        match self.topology.planes {
            1 => name,
            _ => format!("{name}, plane {}", cable.plane),
        }
    }
}
