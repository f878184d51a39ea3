//! The links that flows cross: out of each node and into it, and the up and down cables between switches.
//!
//! A flow's data cross the out link of its source and the in link of its destination. In between, they cross the up link of
//! the source's rack and the down link of the destination's rack, or the cables of a tree (`cluster::tree`). Its
//! acknowledgements use the links of the reversed flow. Capacities and shares are in units of a node's interface: a single
//! flow gets the share 1.
//!
//! If both directions share a resource, one link represents both. With half duplex, the port of a node is both its out link
//! and its in link. The bus of a group of nodes carries the data that these send and receive. Such a link is its own
//! opposite. Acknowledgements cross the same shared links as their data, so they take the same share of each flow there, and
//! the goodput of a single flow accounts for it: fluid models charge shared links only for data.

mod capacities;
mod links;
mod path;
mod router;

use std::sync::Arc;

use super::error::SharingError;
use crate::{
    cluster::{flow::Flow, racks::Racks},
    network::{Duplex, Network},
    topology::Routing,
};
pub use capacities::backbone_share;
pub(crate) use capacities::check_planes;
use flowcast_units::{Node, Time};
pub use links::Link;
use links::{Inner, InnerName, Switches};
pub use path::FlowPath;
use router::{Router, Trips};

/// Fraction of a node's interface that is allocated to a flow: 1 without contention, never negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct AllocatedFraction(pub f64);

impl AllocatedFraction {
    /// The whole interface of a node, 1.
    pub const WHOLE: AllocatedFraction = AllocatedFraction(1.0);
}

/// Index of a link in the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The id as an index into tables by link.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Cause that keeps a flow below its rate without contention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// None except its own interface.
    Alone,
    /// A link that its data cross.
    Link(LinkId),
    /// A link on which its acknowledgements wait.
    Acknowledgements(LinkId),
    /// An outgo or income conflict: a zig-zag of this number of flows.
    ZigZag {
        /// Number of flows in the zig-zag.
        flows: u32,
    },
    /// A zig-zag with more than two flows in one direction of a node, which flow cuts do not define.
    CrowdedZigZag {
        /// Number of flows in the zig-zag.
        flows: u32,
    },
    /// Income/outgo conflict; the flow is the one into the middle node.
    IncomingOfPair {
        /// Path index of the flow that continues from there.
        partner: u32,
    },
    /// Income/outgo conflict; the flow is the one out of the middle node.
    OutgoingOfPair {
        /// Path index of the flow into that node.
        partner: u32,
    },
    /// The queues on its path, packet by packet.
    Queues,
    /// A remaining flow between two active neighbours.
    Between,
    /// A remaining flow at the start or end of its path, or alone.
    StartOrEnd,
}

/// Share of a flow according to a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allocation {
    /// Fraction of a node's interface that is allocated to the flow.
    pub share: AllocatedFraction,
    /// Cause that limits the share.
    pub limit: Limit,
}

/// All links and the paths of all flows.
///
/// If flows choose between two routes when they start (UGAL), the shortest paths come first, one for each flow. The longer
/// paths follow, again one for each flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    /// Path of each flow, indexed by flow.
    pub paths: Vec<FlowPath>,
    /// The interfaces, indexed by their dense number.
    ports: Vec<Port>,
    /// Interfaces of each node.
    nics: u32,
    inner: Vec<Inner>,
    /// Names of the link classes, indexed by class.
    classes: Vec<String>,
    /// Maximum number of links between switches on a path.
    longest: u32,
    duplex: Duplex,
    /// Number of flows, if the longer paths follow the shortest ones in `paths`.
    flows: Option<usize>,
    switches: Option<Switches>,
    /// Present if each message of a replay has its own route.
    router: Option<Arc<Router>>,
}

/// An interface of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Port {
    node: Node,
    /// Index among the node's interfaces, from 0.
    nic: u32,
}

/// Connections between the nodes without a topology.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cabling {
    /// Capacity of the link of each rack in each direction. `None`: the switch between the racks is not a limit.
    pub backbone: Option<AllocatedFraction>,
    /// Capacity shared by the two directions of a node's port.
    pub duplex: Duplex,
    /// Media shared by groups of nodes.
    pub bus: Option<BusShare>,
}

/// A medium for each group of nodes with consecutive numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusShare {
    /// Number of nodes per group. `None`: all nodes.
    pub nodes: Option<u32>,
    /// Capacity of each medium, for both directions together.
    pub capacity: AllocatedFraction,
}

impl Fabric {
    /// Creates the fabric for these flows. Racks are connected by links with the capacity `backbone`. Without a backbone or
    /// without racks, all nodes share a switch that is not a limit.
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

    /// Creates the fabric for these flows over this cabling.
    pub fn cabled(flows: &[Flow], racks: &Racks, cabling: Cabling) -> Fabric {
        let trips = Trips::of_pattern(flows, capacities::ONE_INTERFACE);
        let mut router = Router::cabled(&trips, racks, cabling, capacities::ONE_INTERFACE);
        let paths = router.paths(&trips);
        router.into_fabric(paths)
    }

    /// Creates the fabric of a network for the flows of a pattern: from its topology, or else from racks, backbone and
    /// buses.
    ///
    /// # Errors
    /// The topology cannot be built or lacks a node, or there are racks or buses in addition to a topology.
    pub fn from_network(
        flows: &[Flow],
        racks: &Racks,
        network: &Network,
    ) -> Result<Fabric, SharingError> {
        let trips = Trips::of_pattern(flows, capacities::interfaces(network)?);
        let mut router = Router::of_network(&trips, racks, network)?;
        let mut paths = router.paths(&trips);
        let chooses =
            matches!(&network.topology, Some(topology) if topology.routing == Routing::Ugal);
        if chooses {
            let detours = router.detours(&trips, &paths);
            paths.extend(detours);
        }
        let mut fabric = router.into_fabric(paths);
        fabric.flows = chooses.then_some(flows.len());
        Ok(fabric)
    }

    /// Creates the fabric for the messages of a program, which travel between the ends of these flows. If messages between
    /// the same nodes take different routes, [`Fabric::way`] returns the route of each message, and the paths are those of
    /// the first messages.
    ///
    /// # Errors
    /// The same errors as [`Fabric::from_network`].
    pub fn of_program(
        flows: &[Flow],
        racks: &Racks,
        network: &Network,
    ) -> Result<Fabric, SharingError> {
        let interfaces = capacities::interfaces(network)?;
        let has_own_ways = !interfaces.is_by_pair()
            || matches!(&network.topology, Some(topology) if !topology.routing.is_by_pair());
        let trips = if has_own_ways {
            Trips::of_any_message(flows, interfaces)
        } else {
            Trips::of_pattern(flows, interfaces)
        };
        let mut router = Router::of_network(&trips, racks, network)?;
        if has_own_ways {
            router.number_all(&trips);
        }
        let paths = router.paths(&trips);
        let kept = has_own_ways.then(|| Arc::new(router.clone()));
        Ok(Fabric {
            router: kept,
            ..router.into_fabric(paths)
        })
    }

    /// `true` if each message of a program has its own route.
    pub fn has_own_ways(&self) -> bool {
        self.router.is_some()
    }

    /// Returns the route of a program's message. The message is the `turn`-th between its nodes and has the number `message`
    /// among all messages; `load` returns the current load of a link. `None` if all messages between two nodes take the same
    /// route.
    pub fn way(
        &self,
        ends: [Node; 2],
        turn: u32,
        message: u32,
        load: impl Fn(LinkId) -> u64,
    ) -> Option<FlowPath> {
        let router = self.router.as_ref()?;
        let trip = router.trip(ends, turn, message);
        let path = router.path(&trip);
        match router.detour(&trip) {
            Some(detour) if self.is_less_loaded(&detour, &path, load) => Some(detour),
            _ => Some(path),
        }
    }

    /// Index of the longer path that a flow may take instead of its own.
    pub fn detour(&self, flow: usize) -> Option<usize> {
        self.flows.map(|flows| flow + flows)
    }

    /// The flow that takes the path with this index, which may be a longer one.
    pub fn flow_on(&self, path: usize) -> usize {
        self.flows.map_or(path, |flows| path % flows)
    }

    /// `true` if a flow that starts prefers the longer route. The highest load on a route, up to the link on which it leaves
    /// its group, is multiplied by the number of links between switches on the route; the smaller product wins (UGAL, Singh
    /// 2005).
    pub fn is_less_loaded(
        &self,
        detour: &FlowPath,
        shortest: &FlowPath,
        load: impl Fn(LinkId) -> u64,
    ) -> bool {
        let product = |path: &FlowPath| {
            let inner = &path.data()[2..];
            let first = inner
                .iter()
                .position(|link| self.class(*link) == links::GLOBAL_CLASS)
                .map_or(inner.len(), |at| at + 1);
            let highest = inner[..first].iter().map(|link| load(*link)).max();
            highest.unwrap_or(0) * inner.len() as u64
        };
        product(detour) < product(shortest)
    }

    /// Keeps only the path that each flow has chosen from its two paths.
    pub fn settle_ways(&mut self, chosen: &[usize]) {
        if self.flows.take().is_some() {
            self.paths = chosen
                .iter()
                .map(|path| self.paths[*path].clone())
                .collect();
        }
    }

    /// A fabric with only the links of one flow.
    pub fn only(&self, path: &FlowPath) -> Fabric {
        let ends = [path.src, path.dst];
        let mut inner: Vec<usize> = path
            .data()
            .iter()
            .chain(path.acknowledgements())
            .filter_map(|link| self.inner_place(*link))
            .collect();
        inner.sort_unstable();
        inner.dedup();
        Fabric {
            paths: vec![path.renumbered(|link| {
                let both = match self.inner_place(link) {
                    Some(place) => ends.len() + inner.partition_point(|other| *other < place),
                    None => usize::from(link.index() / 2 != path.src as usize),
                };
                LinkId(2 * both as u32 + link.0 % 2)
            })],
            ports: ends.map(|end| self.ports[end as usize]).to_vec(),
            inner: inner
                .iter()
                .map(|place| self.inner[*place].clone())
                .collect(),
            ..self.emptied()
        }
    }

    /// A fabric with the same links and without flows.
    pub fn without_paths(&self) -> Fabric {
        Fabric {
            ports: self.ports.clone(),
            inner: self.inner.clone(),
            ..self.emptied()
        }
    }

    /// A fabric with only those parts that do not depend on flows.
    fn emptied(&self) -> Fabric {
        Fabric {
            paths: Vec::new(),
            ports: Vec::new(),
            nics: self.nics,
            inner: Vec::new(),
            classes: self.classes.clone(),
            longest: self.longest,
            duplex: self.duplex,
            flows: None,
            switches: self.switches.clone(),
            router: None,
        }
    }

    /// Number of links, used or not.
    pub fn link_count(&self) -> usize {
        2 * (self.ports.len() + self.inner.len())
    }

    /// Maximum number of links that the data of a flow cross.
    pub fn most_hops(&self) -> u32 {
        self.longest + 2
    }

    /// Index of a link that is not a node's own into the list of these links.
    #[inline]
    fn inner_place(&self, link: LinkId) -> Option<usize> {
        (link.index() / 2).checked_sub(self.ports.len())
    }

    /// Class of a link, an index into [`Fabric::classes`]; 0 for the nodes' own links.
    pub fn class(&self, link: LinkId) -> usize {
        match self.inner_place(link) {
            None => 0,
            Some(place) => usize::from(self.inner[place].class),
        }
    }

    /// Classes of the links that data and acknowledgements cross. Without contention, flows of the same size over the same
    /// classes take the same time.
    pub fn classes_on(&self, path: &FlowPath) -> Vec<u8> {
        let class = |link: &LinkId| self.class(*link) as u8;
        let mut classes: Vec<u8> = path.data().iter().map(class).collect();
        classes.extend(path.acknowledgements().iter().map(class));
        classes
    }

    /// Names of the link classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Additional latency of each message that crosses the link.
    pub fn link_latency(&self, link: LinkId) -> Time {
        match self.inner_place(link) {
            None => Time::ZERO,
            Some(place) => self.inner[place].latency,
        }
    }

    /// Additional latency of a message due to the links between switches.
    pub fn latency(&self, path: &FlowPath) -> Time {
        let inner = path.data()[2..].iter();
        inner.map(|link| self.link_latency(*link)).sum()
    }

    /// Capacity of a link.
    pub fn capacity(&self, link: LinkId) -> AllocatedFraction {
        match self.inner_place(link) {
            None => AllocatedFraction::WHOLE,
            Some(place) => self.inner[place].capacity,
        }
    }

    /// Rate of a flow without contention: the capacity of the narrowest link on its path.
    pub fn uncontended_share(&self, path: &FlowPath) -> AllocatedFraction {
        path.data()[2..]
            .iter()
            .map(|link| self.capacity(*link))
            .fold(AllocatedFraction::WHOLE, |least, share| {
                if share < least { share } else { least }
            })
    }

    /// `true` if the link belongs to a node's interface and not to a cable between switches or a bus.
    pub fn is_of_node(&self, link: LinkId) -> bool {
        link.index() < 2 * self.ports.len()
    }

    /// `true` if the link carries both directions: a half-duplex port or a bus.
    pub fn is_shared(&self, link: LinkId) -> bool {
        if self.is_of_node(link) {
            self.duplex == Duplex::Half
        } else {
            self.is_bus(link)
        }
    }

    /// `true` if the link is a medium shared by a group of nodes.
    pub fn is_bus(&self, link: LinkId) -> bool {
        self.inner_place(link)
            .is_some_and(|place| matches!(self.inner[place].name, InnerName::Bus(..)))
    }

    /// `true` if the ACKs of all data on a link return over another link, its opposite. In a tree they may take another
    /// cable, and on a shared link they return over the link itself.
    pub(crate) fn acks_return_over_opposite(&self, link: LinkId) -> bool {
        match self.inner_place(link) {
            None => self.duplex == Duplex::Full,
            Some(place) => matches!(self.inner[place].name, InnerName::Rack(_)),
        }
    }

    /// Position of the link along a path: 0 out of a node, then upward, downward, and into a node. A shared link, which
    /// appears at both ends of paths, has its first position.
    pub fn place(&self, link: LinkId) -> u32 {
        let top = self.longest + 1;
        match (self.inner_place(link), link.0.is_multiple_of(2)) {
            (None, true) => 0,
            (None, false) => top,
            (Some(place), true) => u32::from(self.inner[place].place[0]),
            (Some(place), false) => u32::from(self.inner[place].place[1]),
        }
    }

    /// Link of the opposite direction; for a shared link, the link itself.
    pub fn opposite(&self, link: LinkId) -> LinkId {
        if self.is_shared(link) {
            link
        } else {
            LinkId(link.0 ^ 1)
        }
    }

    /// Description of the link: of a node, a bus, a rack or a cable between switches, for one direction or both.
    pub fn link(&self, link: LinkId) -> Link {
        let (place, is_outward) = (link.index() / 2, link.0.is_multiple_of(2));
        if let Some(Port { node, nic }) = self.ports.get(place).copied() {
            let nic = (self.nics > 1).then_some(nic);
            return match (self.duplex, is_outward) {
                (Duplex::Half, _) => Link::Port { node, nic },
                (Duplex::Full, true) => Link::Out { node, nic },
                (Duplex::Full, false) => Link::In { node, nic },
            };
        }
        match (&self.inner[place - self.ports.len()].name, is_outward) {
            (InnerName::Rack(rack), true) => Link::Up(rack.clone()),
            (InnerName::Rack(rack), false) => Link::Down(rack.clone()),
            (InnerName::Cable(cable), _) => {
                let switches = self.switches.as_ref().expect("a cable joins switches");
                Link::Cable(switches.name(*cable, is_outward))
            }
            (InnerName::Bus(first, last), _) => Link::Bus(*first, *last),
        }
    }

    /// Number of these flows on each link.
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
    use crate::{
        network::{LinkRate, MessageRule, Nic},
        topology::{CableKind, Topology, TopologyShape},
    };
    use flowcast_units::{Bytes, Rate};

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
        let rate = Rate::from_bytes_per_second;
        let mut network = Network::new(
            "test",
            MessageRule::Hockney,
            Nic::new(Time::ZERO, rate(1e9)),
        );
        network.topology = Some(Topology::new(TopologyShape::FatTree {
            ports: 4,
            oversubscription: 1,
            cables: CableKind {
                rate: Some(LinkRate::Goodput(rate(5e8))),
                latency: Time::from_micros(1.0),
            },
        }));
        let fabric =
            Fabric::from_network(&[flow(0, 13), flow(0, 1)], &Racks::default(), &network).unwrap();
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
        let shares = [AllocatedFraction(0.5), AllocatedFraction::WHOLE];
        let latencies = [4.0, 0.0].map(Time::from_micros);
        for (path, (share, latency)) in fabric.paths.iter().zip(shares.into_iter().zip(latencies)) {
            assert_eq!(fabric.uncontended_share(path), share);
            assert_eq!(fabric.latency(path), latency);
        }
        let outside =
            Fabric::from_network(&[flow(0, 16)], &Racks::default(), &network).unwrap_err();
        assert_eq!(
            outside,
            SharingError::NoSuchNode {
                node: Node(16),
                nodes: 16
            }
        );
    }
}
