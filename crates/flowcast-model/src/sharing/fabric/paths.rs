//! The paths of flows: which links they cross, in the order in which these are numbered.

use std::collections::BTreeMap;

use super::{AllocatedFraction, BusShare, Inner, InnerName, LinkId, MOST_HOPS, Path};
use crate::{
    cluster::{
        flow::Flow,
        racks::{Rack, Racks},
        tree::{Cable, Tree},
    },
    network::Duplex,
};
use flowcast_units::Node;

/// The nodes of these flows, ascending.
pub(super) fn nodes_of(flows: &[Flow]) -> Vec<Node> {
    let mut nodes: Vec<Node> = flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Nodes by their places.
pub(super) fn numbered(nodes: &[Node]) -> BTreeMap<Node, u32> {
    nodes.iter().copied().zip(0..).collect()
}

/// The links of the nodes' own ports.
pub(super) struct NodePorts {
    pub numbers: BTreeMap<Node, u32>,
    pub duplex: Duplex,
}

impl NodePorts {
    /// The path over these links between the two ports, each list from the one end to the other.
    fn path(&self, flow: &Flow, data: &[u32], acknowledgements: &[u32]) -> Path {
        let (src, dst) = (self.numbers[&flow.src], self.numbers[&flow.dst]);
        let inward = u32::from(self.duplex == Duplex::Full);
        let links = |from: u32, to: u32, inner: &[u32]| {
            let mut links = [LinkId(0); MOST_HOPS];
            let all = [2 * from, 2 * to + inward]
                .into_iter()
                .chain(inner.iter().copied());
            links
                .iter_mut()
                .zip(all)
                .for_each(|(link, number)| *link = LinkId(number));
            links
        };
        Path {
            src,
            dst,
            data: links(src, dst, data),
            acknowledgements: links(dst, src, acknowledgements),
            hops: 2 + data.len() as u8,
        }
    }
}

/// The media that groups of nodes share: even links behind those of the racks.
pub(super) struct Buses {
    bus: Option<BusShare>,
    /// The groups that have nodes, ascending, with the first and the last node of each.
    groups: Vec<(u32, Node, Node)>,
    first_link: u32,
}

impl Buses {
    /// On these nodes, in ascending order.
    pub(super) fn new(bus: Option<BusShare>, nodes: &[Node], racks: usize) -> Buses {
        let mut buses = Buses {
            bus,
            groups: Vec::new(),
            first_link: 2 * (nodes.len() + racks) as u32,
        };
        for node in nodes {
            let Some(group) = buses.group(*node) else {
                break;
            };
            match buses.groups.last_mut().filter(|(last, ..)| *last == group) {
                Some((_, _, last)) => *last = *node,
                None => buses.groups.push((group, *node, *node)),
            }
        }
        buses
    }

    fn group(&self, node: Node) -> Option<u32> {
        self.bus
            .map(|bus| bus.nodes.map_or(0, |size| node.0 / size))
    }

    /// One for each group.
    pub(super) fn links(&self) -> impl Iterator<Item = Inner> {
        let capacity = self
            .bus
            .map_or(AllocatedFraction(f64::INFINITY), |bus| bus.capacity);
        self.groups
            .iter()
            .map(move |(_, first, last): &(u32, Node, Node)| Inner {
                name: InnerName::Bus(*first, *last),
                capacity,
                level: 1,
            })
    }

    /// The link of a node's group.
    fn link(&self, node: Node) -> Option<u32> {
        let group = self.group(node)?;
        let place = self
            .groups
            .binary_search_by_key(&group, |(group, ..)| *group)
            .ok()?;
        Some(self.first_link + 2 * place as u32)
    }
}

/// The paths over racks and buses.
pub(super) struct Numbering<'a> {
    pub ports: NodePorts,
    pub racks: &'a Racks,
    pub has_backbone: bool,
    pub buses: Buses,
}

impl Numbering<'_> {
    /// The path of a flow.
    pub(super) fn path(&self, flow: &Flow) -> Path {
        self.ports.path(
            flow,
            &self.between(flow.src, flow.dst),
            &self.between(flow.dst, flow.src),
        )
    }

    /// The links between the ports of two nodes; what is inside one group crosses its bus once.
    fn between(&self, from: Node, to: Node) -> Vec<u32> {
        let mut links: Vec<u32> = self.buses.link(from).into_iter().collect();
        if let (Some(source), Some(destination)) =
            (self.racks.rack_of(from), self.racks.rack_of(to))
            && source != destination
            && self.has_backbone
        {
            links.extend([self.rack(source), self.rack(destination) + 1]);
        }
        let last = self
            .buses
            .link(to)
            .filter(|link| links.first() != Some(link));
        links.extend(last);
        links
    }

    fn rack(&self, rack: Rack) -> u32 {
        2 * (self.ports.numbers.len() as u32 + rack.0)
    }
}

/// Numbers the cables of a tree in the order in which flows use them.
pub(super) struct Climbing<'a> {
    pub tree: &'a Tree,
    /// Capacity of a cable of each level, the lowest level first.
    pub capacities: Vec<AllocatedFraction>,
    pub ports: NodePorts,
    pub cables: BTreeMap<Cable, u32>,
    pub inner: Vec<Inner>,
}

impl Climbing<'_> {
    /// The path of a flow.
    pub(super) fn path(&mut self, flow: &Flow) -> Path {
        let (data, answers) = (
            self.inner_links(flow.src, flow.dst),
            self.inner_links(flow.dst, flow.src),
        );
        self.ports.path(flow, &data, &answers)
    }

    fn inner_links(&mut self, src: Node, dst: Node) -> Vec<u32> {
        let (up, down) = self.tree.way(src, dst);
        let mut links: Vec<u32> = up.into_iter().map(|cable| self.number(cable)).collect();
        links.extend(down.into_iter().map(|cable| self.number(cable) + 1));
        links
    }

    fn number(&mut self, cable: Cable) -> u32 {
        let next = 2 * (self.ports.numbers.len() + self.inner.len()) as u32;
        *self.cables.entry(cable).or_insert_with(|| {
            let capacity = self.capacities[usize::from(cable.level) - 1];
            self.inner.push(Inner {
                name: InnerName::Cable(cable),
                capacity,
                level: cable.level,
            });
            next
        })
    }
}
