//! The links of a fabric and what people call them.

use std::{fmt, sync::Arc};

use super::AllocatedFraction;
use crate::topology::{
    Topology,
    dragonfly::GLOBAL,
    wiring::{Cable, Hop, Wiring},
};
use flowcast_units::{Node, Time};

/// The class of the cables between groups, where there are groups.
pub(super) const GLOBAL_CLASS: usize = GLOBAL as usize;

/// A link, as people call it. Interfaces are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// What an interface of a node sends.
    Out {
        /// The node.
        node: Node,
        /// The interface, where there are several.
        nic: Option<u32>,
    },
    /// What an interface of a node receives.
    In {
        /// The node.
        node: Node,
        /// The interface, where there are several.
        nic: Option<u32>,
    },
    /// What a half-duplex interface of a node sends and receives.
    Port {
        /// The node.
        node: Node,
        /// The interface, where there are several.
        nic: Option<u32>,
    },
    /// What nodes with consecutive numbers, from the one to the other, send and receive.
    Bus(Node, Node),
    /// What a rack sends to the others.
    Up(String),
    /// What a rack receives from the others.
    Down(String),
    /// One direction of a cable between switches, in the words of its topology.
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

/// Behind the name of a node that has several.
struct Interface(Option<u32>);

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |nic| write!(f, ", interface {nic}"))
    }
}

impl Link {
    /// With the word for what it is: `link out of node 3`, `global cable from group 3 to group 5`.
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
    /// Index of its class in the fabric.
    pub class: u8,
    /// How far along paths both directions are.
    pub place: [u16; 2],
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum InnerName {
    Rack(String),
    Cable(Cable),
    /// In both directions by one link.
    Bus(Node, Node),
}

/// The switches that a topology makes.
#[derive(Debug, Clone)]
pub(super) struct Switches {
    pub topology: Arc<Topology>,
    pub wiring: Arc<dyn Wiring>,
}

/// The wiring follows from the topology.
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
