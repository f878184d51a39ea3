//! The links that flows cross: each node's way out and way in, and each rack's way up and way down.
//!
//! A flow's data cross the out link of its source and the in link of its destination, and between racks the up link
//! of the one and the down link of the other. Its acknowledgements take the links of the reversed flow. Capacities
//! and shares are in units of a node's interface: a flow alone gets the share 1.

use std::collections::BTreeMap;
use std::fmt;

use crate::cluster::flow::Flow;
use crate::cluster::racks::{Rack, Racks};
use crate::units::Node;

/// What a flow gets of a node's interface: 1 when it is alone, never negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share(1.0);
}

/// A link, by its place in the fabric.
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
    /// What a rack sends to the others.
    Up(String),
    /// What a rack receives from the others.
    Down(String),
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Link::Out(node) => write!(f, "out of node {node}"),
            Link::In(node) => write!(f, "into node {node}"),
            Link::Up(rack) => write!(f, "out of rack {rack}"),
            Link::Down(rack) => write!(f, "into rack {rack}"),
        }
    }
}

/// What keeps a flow from its lone rate.
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
    /// The queues of its way, packet by packet.
    Queues,
    /// A flow left over between two active neighbours.
    Between,
    /// A flow left over at the start or end of its path, or alone.
    StartOrEnd,
}

/// One flow's answer from a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allocation {
    /// What it gets.
    pub share: Share,
    /// Why not more.
    pub limit: Limit,
}

/// The way of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Dense number of the source.
    pub src: u32,
    /// Dense number of the destination.
    pub dst: u32,
    data: [LinkId; 4],
    acknowledgements: [LinkId; 4],
    hops: u8,
}

impl Path {
    /// The links that the data cross: out, in, and between racks up and down.
    pub fn data(&self) -> &[LinkId] {
        &self.data[..self.hops as usize]
    }

    /// The links that the acknowledgements cross.
    pub fn acknowledgements(&self) -> &[LinkId] {
        &self.acknowledgements[..self.hops as usize]
    }

    /// Out link of the source.
    pub fn out(&self) -> LinkId {
        self.data[0]
    }

    /// In link of the destination.
    pub fn into(&self) -> LinkId {
        self.data[1]
    }

    /// Whether it crosses the backbone.
    pub fn is_between_racks(&self) -> bool {
        self.hops == 4
    }
}

/// All links and the ways of all flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    /// By flow.
    pub paths: Vec<Path>,
    nodes: Vec<Node>,
    rack_names: Vec<String>,
    backbone: Share,
}

impl Fabric {
    /// The fabric that these flows cross. Racks are joined by links of the capacity `backbone`; without one, or
    /// without racks, all nodes share a switch that is no limit.
    pub fn new(flows: &[Flow], racks: &Racks, backbone: Option<Share>) -> Fabric {
        let mut nodes: Vec<Node> = flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let numbers: BTreeMap<Node, u32> = nodes.iter().copied().zip(0..).collect();
        let numbering = Numbering { numbers: &numbers, racks, has_backbone: backbone.is_some() };
        Fabric {
            paths: flows.iter().map(|flow| numbering.path(flow)).collect(),
            nodes,
            rack_names: (0..racks.count()).map(|rack| racks.name(Rack(rack as u32)).to_owned()).collect(),
            backbone: backbone.unwrap_or(Share(f64::INFINITY)),
        }
    }

    /// The same links with one flow only.
    pub fn only(&self, path: &Path) -> Fabric {
        Fabric { paths: vec![*path], ..self.clone() }
    }

    /// How many links there are, used or not.
    pub fn link_count(&self) -> usize {
        2 * (self.nodes.len() + self.rack_names.len())
    }

    /// What a link carries.
    pub fn capacity(&self, link: LinkId) -> Share {
        if self.is_of_node(link) { Share::WHOLE } else { self.backbone }
    }

    /// What a flow gets when no other is under way.
    pub fn lone_share(&self, path: &Path) -> Share {
        if path.is_between_racks() { Share(self.backbone.0.min(1.0)) } else { Share::WHOLE }
    }

    /// Whether the link belongs to a node's interface, and not to the backbone.
    pub fn is_of_node(&self, link: LinkId) -> bool {
        link.index() < 2 * self.nodes.len()
    }

    /// The link of the opposite direction.
    pub fn opposite(&self, link: LinkId) -> LinkId {
        LinkId(link.0 ^ 1)
    }

    /// The link's name.
    pub fn link(&self, link: LinkId) -> Link {
        let place = link.index() / 2;
        match (self.nodes.get(place), link.0.is_multiple_of(2)) {
            (Some(node), true) => Link::Out(*node),
            (Some(node), false) => Link::In(*node),
            (None, true) => Link::Up(self.rack_names[place - self.nodes.len()].clone()),
            (None, false) => Link::Down(self.rack_names[place - self.nodes.len()].clone()),
        }
    }

    /// How many of these flows cross each link.
    pub fn flows_per_link(&self, active: &[usize]) -> Vec<u32> {
        let mut counts = vec![0; self.link_count()];
        for link in active.iter().flat_map(|flow| self.paths[*flow].data()) {
            counts[link.index()] += 1;
        }
        counts
    }
}

struct Numbering<'a> {
    numbers: &'a BTreeMap<Node, u32>,
    racks: &'a Racks,
    has_backbone: bool,
}

impl Numbering<'_> {
    fn path(&self, flow: &Flow) -> Path {
        let (src, dst) = (self.numbers[&flow.src], self.numbers[&flow.dst]);
        let racks = (self.racks.rack_of(flow.src), self.racks.rack_of(flow.dst));
        let (up, down, hops) = match racks {
            (Some(from), Some(to)) if from != to && self.has_backbone => (self.rack(from), self.rack(to), 4),
            _ => (0, 0, 2),
        };
        Path {
            src,
            dst,
            data: [2 * src, 2 * dst + 1, up, down + 1].map(LinkId),
            acknowledgements: [2 * dst, 2 * src + 1, down, up + 1].map(LinkId),
            hops,
        }
    }

    fn rack(&self, rack: Rack) -> u32 {
        2 * (self.numbers.len() as u32 + rack.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Time};

    #[test]
    fn acknowledgements_cross_the_links_of_the_reversed_flow() {
        let flow = |src, dst| Flow { id: 1, src: Node(src), dst: Node(dst), size: Bytes(1), start: Time::ZERO };
        let mut racks = Racks::default();
        racks.place(Node(0), Node(9), "A").unwrap();
        racks.place(Node(10), Node(19), "B").unwrap();
        let fabric = Fabric::new(&[flow(3, 12), flow(12, 3), flow(3, 4)], &racks, Some(Share(10.0)));
        assert_eq!(fabric.paths[0].acknowledgements(), fabric.paths[1].data());
        let names: Vec<String> = fabric.paths[0].data().iter().map(|link| fabric.link(*link).to_string()).collect();
        assert_eq!(names, ["out of node 3", "into node 12", "out of rack A", "into rack B"]);
        assert_eq!(fabric.paths[2].data().len(), 2);
        assert_eq!(fabric.capacity(fabric.paths[0].data()[2]), Share(10.0));
        let plain = Fabric::new(&[flow(3, 12)], &racks, None);
        assert!(!plain.paths[0].is_between_racks());
    }
}
