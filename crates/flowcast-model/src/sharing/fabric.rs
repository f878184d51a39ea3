//! The links that flows cross: out of each node and into it, and the cables between switches, up and down.
//!
//! A flow's data cross the out link of its source and the in link of its destination, and in between the up link of
//! the one's rack and the down link of the other's, or the cables of a tree (`cluster::tree`). Its acknowledgements
//! take the links of the reversed flow. Capacities and shares are in units of a node's interface: a flow alone gets
//! the share 1.
//!
//! Where both directions share something there is one link for both: with half duplex a node's port is its out link and
//! its in link, and the bus of a group of nodes carries what these send and what they receive. Such a link is its own
//! opposite. Acknowledgements cross the same shared links as their data, so that they take the same part of each flow
//! there, and the goodput of a flow alone accounts for it: fluid models charge shared links with data only.

mod capacities;
mod paths;

use std::{collections::BTreeMap, fmt};

use super::error::SharingError;
use crate::{
    cluster::{
        flow::Flow,
        racks::{Rack, Racks},
        tree::{Cable, MOST_LEVELS, Tree},
    },
    network::{Duplex, Network},
};
pub use capacities::backbone_share;
use capacities::bus_share;
use flowcast_units::Node;
use paths::{Buses, Climbing, NodePorts, Numbering, nodes_of, numbered};

/// The fraction of a node's interface that is allocated to a flow: 1 without others, never negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct AllocatedFraction(pub f64);

impl AllocatedFraction {
    /// 1: the whole interface of a node.
    pub const WHOLE: AllocatedFraction = AllocatedFraction(1.0);
}

/// A link, by its index in the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// As an index into per-link tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A link, as people call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// What a node sends.
    Out(Node),
    /// What a node receives.
    In(Node),
    /// What a node with a half-duplex port sends and receives.
    Port(Node),
    /// What nodes with consecutive numbers, from the one to the other, send and receive.
    Bus(Node, Node),
    /// What a rack sends to the others.
    Up(String),
    /// What a rack receives from the others.
    Down(String),
    /// What a switch sends up a cable.
    Ascending(Cable),
    /// What a switch receives from above over a cable.
    Descending(Cable),
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Link::Out(node) => write!(f, "out of node {node}"),
            Link::In(node) => write!(f, "into node {node}"),
            Link::Port(node) => write!(f, "at the port of node {node}"),
            Link::Bus(first, last) if first == last => write!(f, "over the bus of node {first}"),
            Link::Bus(first, last) => write!(f, "over the bus of nodes {first} to {last}"),
            Link::Up(rack) => write!(f, "out of rack {rack}"),
            Link::Down(rack) => write!(f, "into rack {rack}"),
            Link::Ascending(Cable {
                level,
                switch,
                port,
            }) => {
                write!(f, "up from switch {switch} of level {level}, cable {port}")
            }
            Link::Descending(Cable {
                level,
                switch,
                port,
            }) => {
                write!(f, "down to switch {switch} of level {level}, cable {port}")
            }
        }
    }
}

/// What keeps a flow from its uncontended rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Nothing but its own interface.
    Alone,
    /// A link that its data cross.
    Link(LinkId),
    /// A link on which its acknowledgements wait.
    Acknowledgements(LinkId),
    /// An outgo or income conflict: a zig-zag of so many flows.
    ZigZag {
        /// Its length.
        flows: u32,
    },
    /// A zig-zag with more than two flows in one direction of a node, which flow cuts do not know.
    CrowdedZigZag {
        /// Its size.
        flows: u32,
    },
    /// Income/outgo conflict, the flow into the middle node.
    IncomingOfPair {
        /// Path index of the flow that goes on from there.
        partner: u32,
    },
    /// Income/outgo conflict, the flow out of the middle node.
    OutgoingOfPair {
        /// Path index of the flow that comes in there.
        partner: u32,
    },
    /// The queues of its path, packet by packet.
    Queues,
    /// A flow left over between two active neighbours.
    Between,
    /// A flow left over at the start or end of its path, or alone.
    StartOrEnd,
}

/// What a model allocates to a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allocation {
    /// Fraction of a node's interface that the flow gets.
    pub share: AllocatedFraction,
    /// What keeps it from more.
    pub limit: Limit,
}

/// Most links that a flow crosses.
pub const MOST_HOPS: usize = 2 * MOST_LEVELS;

/// The path of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Dense number of the source.
    pub src: u32,
    /// Dense number of the destination.
    pub dst: u32,
    data: [LinkId; MOST_HOPS],
    acknowledgements: [LinkId; MOST_HOPS],
    hops: u8,
}

impl Path {
    /// The links that the data cross: out, in, and those in between from the source to the destination.
    pub fn data(&self) -> &[LinkId] {
        &self.data[..self.hops as usize]
    }

    /// The links that the acknowledgements cross, in the same order.
    pub fn acknowledgements(&self) -> &[LinkId] {
        &self.acknowledgements[..self.hops as usize]
    }

    /// The links that the data cross, from the source to the destination.
    pub fn data_in_order(&self) -> impl Iterator<Item = LinkId> {
        in_order(self.data())
    }

    /// The links that the acknowledgements cross, from the destination to the source.
    pub fn acknowledgements_in_order(&self) -> impl Iterator<Item = LinkId> {
        in_order(self.acknowledgements())
    }

    /// Out link of the source.
    pub fn out(&self) -> LinkId {
        self.data[0]
    }

    /// In link of the destination.
    pub fn into(&self) -> LinkId {
        self.data[1]
    }

    /// Whether it crosses more than the two nodes' links.
    pub(crate) fn is_between_racks(&self) -> bool {
        self.hops > 2
    }
}

fn in_order(links: &[LinkId]) -> impl Iterator<Item = LinkId> {
    links[..1]
        .iter()
        .chain(&links[2..])
        .chain(&links[1..2])
        .copied()
}

/// A cable between switches, in both directions.
#[derive(Debug, Clone, PartialEq)]
struct Inner {
    name: InnerName,
    capacity: AllocatedFraction,
    level: u8,
}

#[derive(Debug, Clone, PartialEq)]
enum InnerName {
    Rack(String),
    Cable(Cable),
    /// In both directions by one link.
    Bus(Node, Node),
}

/// All links and the paths of all flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    /// Path of each flow, by the flow's index.
    pub paths: Vec<Path>,
    nodes: Vec<Node>,
    inner: Vec<Inner>,
    depth: u8,
    duplex: Duplex,
}

/// What joins the nodes where it is no tree of switches.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cabling {
    /// Capacity of the link of each rack in each direction; none: the switch between the racks is no limit.
    pub backbone: Option<AllocatedFraction>,
    /// What the two directions of a node's port share.
    pub duplex: Duplex,
    /// The media that groups of nodes share.
    pub bus: Option<BusShare>,
}

/// A medium for each group of nodes with consecutive numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusShare {
    /// Nodes of a group; none: all.
    pub nodes: Option<u32>,
    /// Of each medium, for both directions together.
    pub capacity: AllocatedFraction,
}

impl Fabric {
    /// The fabric that these flows cross. Racks are joined by links of the capacity `backbone`; without one, or
    /// without racks, all nodes share a switch that is no limit.
    pub fn new(flows: &[Flow], racks: &Racks, backbone: Option<AllocatedFraction>) -> Fabric {
        Fabric::cabled(
            flows,
            racks,
            Cabling {
                backbone,
                ..Cabling::default()
            },
        )
    }

    /// The fabric that these flows cross over such cables.
    pub fn cabled(flows: &[Flow], racks: &Racks, cabling: Cabling) -> Fabric {
        let nodes = nodes_of(flows);
        let first_level = if cabling.bus.is_some() { 2 } else { 1 };
        let capacity = cabling.backbone.unwrap_or(AllocatedFraction(f64::INFINITY));
        let mut inner: Vec<Inner> = (0..racks.count() as u32)
            .map(|rack| Inner {
                name: InnerName::Rack(racks.name(Rack(rack)).to_owned()),
                capacity,
                level: first_level,
            })
            .collect();
        let buses = Buses::new(cabling.bus, &nodes, inner.len());
        inner.extend(buses.links());
        let ports = NodePorts {
            numbers: numbered(&nodes),
            duplex: cabling.duplex,
        };
        let numbering = Numbering {
            ports,
            racks,
            has_backbone: cabling.backbone.is_some(),
            buses,
        };
        let paths = flows.iter().map(|flow| numbering.path(flow)).collect();
        Fabric {
            paths,
            nodes,
            inner,
            depth: first_level,
            duplex: cabling.duplex,
        }
    }

    /// The fabric of a network: that of its topology, else racks, backbone and buses.
    ///
    /// # Errors
    /// A topology that makes no tree or has no place for a node; racks or buses beside a topology.
    pub fn of(flows: &[Flow], racks: &Racks, network: &Network) -> Result<Fabric, SharingError> {
        let duplex = network.nic.duplex;
        let Some(topology) = &network.topology else {
            let cabling = Cabling {
                backbone: backbone_share(network)?,
                duplex,
                bus: bus_share(network)?,
            };
            return Ok(Fabric::cabled(flows, racks, cabling));
        };
        if !racks.is_empty() {
            return Err(SharingError::RacksInTopology);
        }
        if network.bus.is_some() {
            return Err(SharingError::BusInTopology);
        }
        let (tree, rates) = topology.tree()?;
        let nic = network.nic.rate().as_bytes_per_second();
        let capacities = rates
            .into_iter()
            .map(|rate: Option<flowcast_units::Rate>| match rate {
                None => Ok(AllocatedFraction::WHOLE),
                Some(rate) if nic > 0.0 => Ok(AllocatedFraction(rate.as_bytes_per_second() / nic)),
                Some(_) => Err(capacities::infinite_interface()),
            })
            .collect::<Result<_, _>>()?;
        Fabric::in_tree(flows, &tree, capacities, duplex)
    }

    fn in_tree(
        flows: &[Flow],
        tree: &Tree,
        capacities: Vec<AllocatedFraction>,
        duplex: Duplex,
    ) -> Result<Fabric, SharingError> {
        let nodes = nodes_of(flows);
        let (last, places) = (nodes.last().copied(), tree.nodes().unwrap_or(u64::MAX));
        if let Some(node) = last.filter(|node| u64::from(node.0) >= places) {
            return Err(SharingError::NoSuchNode {
                node,
                nodes: places,
            });
        }
        let mut climbing = Climbing {
            tree,
            capacities,
            ports: NodePorts {
                numbers: numbered(&nodes),
                duplex,
            },
            cables: BTreeMap::new(),
            inner: Vec::new(),
        };
        let mut known = BTreeMap::new();
        let paths = flows
            .iter()
            .map(&mut |flow: &Flow| {
                *known
                    .entry((flow.src, flow.dst))
                    .or_insert_with(|| climbing.path(flow))
            })
            .collect();
        Ok(Fabric {
            paths,
            nodes,
            inner: climbing.inner,
            depth: tree.depth() as u8,
            duplex,
        })
    }

    /// The links of one flow and nothing else.
    pub fn only(&self, path: &Path) -> Fabric {
        let ends = [path.src, path.dst];
        let crossed = path.data().iter().chain(path.acknowledgements());
        let mut inner: Vec<usize> = crossed
            .filter_map(|link| (link.index() / 2).checked_sub(self.nodes.len()))
            .collect();
        inner.sort_unstable();
        inner.dedup();
        let number = |link: &LinkId| {
            let both = match (link.index() / 2).checked_sub(self.nodes.len()) {
                Some(place) => ends.len() + inner.partition_point(|other| *other < place),
                None => usize::from(link.index() / 2 != path.src as usize),
            };
            LinkId(2 * both as u32 + link.0 % 2)
        };
        let mut own = Path {
            src: 0,
            dst: 1,
            ..*path
        };
        let hops = usize::from(path.hops);
        for links in [&mut own.data[..hops], &mut own.acknowledgements[..hops]] {
            links.iter_mut().for_each(|link| *link = number(link));
        }
        Fabric {
            paths: vec![own],
            nodes: ends.map(|end| self.nodes[end as usize]).to_vec(),
            inner: inner
                .iter()
                .map(|place| self.inner[*place].clone())
                .collect(),
            depth: self.depth,
            duplex: self.duplex,
        }
    }

    /// How many links there are, used or not.
    pub fn link_count(&self) -> usize {
        2 * (self.nodes.len() + self.inner.len())
    }

    /// No flow's data cross more links than this.
    pub fn most_hops(&self) -> u32 {
        2 * (u32::from(self.depth) + 1)
    }

    /// What a link carries.
    pub fn capacity(&self, link: LinkId) -> AllocatedFraction {
        match (link.index() / 2).checked_sub(self.nodes.len()) {
            None => AllocatedFraction::WHOLE,
            Some(place) => self.inner[place].capacity,
        }
    }

    /// The uncontended rate of a flow: the capacity of the narrowest link on its path.
    pub fn uncontended_share(&self, path: &Path) -> AllocatedFraction {
        path.data()[2..]
            .iter()
            .map(|link| self.capacity(*link))
            .fold(AllocatedFraction::WHOLE, |least, share| {
                if share < least { share } else { least }
            })
    }

    /// Whether the link belongs to a node's interface, and not to a cable between switches or to a bus.
    pub fn is_of_node(&self, link: LinkId) -> bool {
        link.index() < 2 * self.nodes.len()
    }

    /// Whether the link carries both directions: a half-duplex port or a bus.
    pub fn is_shared(&self, link: LinkId) -> bool {
        if self.is_of_node(link) {
            self.duplex == Duplex::Half
        } else {
            self.is_bus(link)
        }
    }

    /// Whether the link is a medium that a group of nodes shares.
    pub fn is_bus(&self, link: LinkId) -> bool {
        let place = (link.index() / 2).checked_sub(self.nodes.len());
        place.is_some_and(|place| matches!(self.inner[place].name, InnerName::Bus(..)))
    }

    /// Whether the ACKs of all data on a link return over another link, its opposite; in a tree they may take another
    /// cable, and over what both directions share they return over the link itself.
    pub(crate) fn acks_return_over_opposite(&self, link: LinkId) -> bool {
        match (link.index() / 2).checked_sub(self.nodes.len()) {
            None => self.duplex == Duplex::Full,
            Some(place) => matches!(self.inner[place].name, InnerName::Rack(_)),
        }
    }

    /// How far along a path the link is: 0 out of a node, then upward, downward, and into a node. A shared link, which
    /// stands at both ends of paths, is where it stands first.
    pub fn place(&self, link: LinkId) -> u32 {
        let top = 2 * u32::from(self.depth) + 1;
        match (
            (link.index() / 2).checked_sub(self.nodes.len()),
            link.0.is_multiple_of(2),
        ) {
            (None, true) => 0,
            (None, false) => top,
            (Some(place), true) => u32::from(self.inner[place].level),
            (Some(place), false) => top - u32::from(self.inner[place].level),
        }
    }

    /// The link of the opposite direction; a shared link itself.
    pub fn opposite(&self, link: LinkId) -> LinkId {
        if self.is_shared(link) {
            link
        } else {
            LinkId(link.0 ^ 1)
        }
    }

    /// What the link is: of a node, a bus, a rack or a cable between switches, one direction or both.
    pub fn link(&self, link: LinkId) -> Link {
        let (place, is_outward) = (link.index() / 2, link.0.is_multiple_of(2));
        if let Some(node) = self.nodes.get(place) {
            return match (self.duplex, is_outward) {
                (Duplex::Half, _) => Link::Port(*node),
                (Duplex::Full, true) => Link::Out(*node),
                (Duplex::Full, false) => Link::In(*node),
            };
        }
        match (&self.inner[place - self.nodes.len()].name, is_outward) {
            (InnerName::Rack(rack), true) => Link::Up(rack.clone()),
            (InnerName::Rack(rack), false) => Link::Down(rack.clone()),
            (InnerName::Cable(cable), true) => Link::Ascending(*cable),
            (InnerName::Cable(cable), false) => Link::Descending(*cable),
            (InnerName::Bus(first, last), _) => Link::Bus(*first, *last),
        }
    }

    /// How many of these flows cross each link.
    pub(crate) fn flows_per_link(&self, active: &[usize]) -> Vec<u32> {
        let mut counts = vec![0; self.link_count()];
        for link in active.iter().flat_map(|flow| self.paths[*flow].data()) {
            counts[link.index()] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::{Bytes, Time};

    #[test]
    fn acknowledgements_cross_the_links_of_the_reversed_flow() {
        let flow = |src, dst| Flow {
            id: 1,
            src: Node(src),
            dst: Node(dst),
            size: Bytes(1),
            start: Time::ZERO,
        };
        let mut racks = Racks::default();
        racks.place(Node(0), Node(9), "A").unwrap();
        racks.place(Node(10), Node(19), "B").unwrap();
        let fabric = Fabric::new(
            &[flow(3, 12), flow(12, 3), flow(3, 4)],
            &racks,
            Some(AllocatedFraction(10.0)),
        );
        assert_eq!(fabric.paths[0].acknowledgements(), fabric.paths[1].data());
        let names: Vec<String> = fabric.paths[0]
            .data()
            .iter()
            .map(|link| fabric.link(*link).to_string())
            .collect();
        assert_eq!(
            names,
            [
                "out of node 3",
                "into node 12",
                "out of rack A",
                "into rack B"
            ]
        );
        assert_eq!(fabric.paths[2].data().len(), 2);
        assert_eq!(
            fabric.capacity(fabric.paths[0].data()[2]),
            AllocatedFraction(10.0)
        );
        let plain = Fabric::new(&[flow(3, 12)], &racks, None);
        assert!(!plain.paths[0].is_between_racks());
    }
    #[test]
    fn a_message_through_a_tree_crosses_its_cables_from_the_source_to_the_destination() {
        let flow = |src, dst| Flow {
            id: 1,
            src: Node(src),
            dst: Node(dst),
            size: Bytes(1),
            start: Time::ZERO,
        };
        let tree = Tree::fat(4, 1).unwrap();
        let fabric = Fabric::in_tree(
            &[flow(0, 13), flow(0, 1)],
            &tree,
            vec![AllocatedFraction(0.5); 3],
            Duplex::Full,
        )
        .unwrap();
        let names: Vec<String> = fabric.paths[0]
            .data_in_order()
            .map(|link| fabric.link(link).to_string())
            .collect();
        let expected = [
            "out of node 0",
            "up from switch 0 of level 1, cable 1",
            "up from switch 1 of level 2, cable 0",
            "down to switch 7 of level 2, cable 0",
            "down to switch 6 of level 1, cable 1",
            "into node 13",
        ];
        assert_eq!(names, expected);
        let places: Vec<u32> = fabric.paths[0]
            .data_in_order()
            .map(|link| fabric.place(link))
            .collect();
        assert_eq!(places, [0, 1, 2, 3, 4, 5]);
        assert_eq!(
            fabric.uncontended_share(&fabric.paths[0]),
            AllocatedFraction(0.5)
        );
        assert_eq!(
            fabric.uncontended_share(&fabric.paths[1]),
            AllocatedFraction::WHOLE
        );
        let outside = Fabric::in_tree(
            &[flow(0, 16)],
            &tree,
            vec![AllocatedFraction::WHOLE; 3],
            Duplex::Full,
        )
        .unwrap_err();
        assert_eq!(
            outside,
            SharingError::NoSuchNode {
                node: Node(16),
                nodes: 16
            }
        );
    }
}
