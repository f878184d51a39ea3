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

/// All links and the paths of all flows.
///
/// Where a flow chooses between two ways as it starts (UGAL), the paths of the shortest ways stand first, one for each flow,
/// and behind them those of the longer ways, again one for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    /// Path of each flow, by the flow's index.
    pub paths: Vec<FlowPath>,
    /// The interfaces, by number.
    ports: Vec<Port>,
    /// Interfaces of each node.
    nics: u32,
    inner: Vec<Inner>,
    /// Names of the classes of links, by class.
    classes: Vec<String>,
    /// No way crosses more links between switches.
    longest: u32,
    duplex: Duplex,
    /// Behind so many paths stand those of the longer ways.
    flows: Option<usize>,
    switches: Option<Switches>,
    /// Where each message of a replay has a way of its own.
    router: Option<Arc<Router>>,
}

/// An interface of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Port {
    node: Node,
    /// Which of the node's, from 0.
    nic: u32,
}

/// What joins the nodes where no topology does.
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
        let trips = Trips::of_pattern(flows, capacities::ONE_INTERFACE);
        let mut router = Router::cabled(&trips, racks, cabling, capacities::ONE_INTERFACE);
        let paths = router.paths(&trips);
        router.into_fabric(paths)
    }

    /// The fabric of a network that the flows of a pattern cross: that of its topology, else racks, backbone and buses.
    ///
    /// # Errors
    /// A topology that cannot be built or has no place for a node; racks or buses beside a topology.
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

    /// The fabric for the messages of a program, which go between the ends of these flows. Where messages between the same
    /// nodes take different ways, [`Fabric::way`] says which, and the paths are those of the first messages.
    ///
    /// # Errors
    /// As [`Fabric::from_network`].
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

    /// Whether each message of a program has a way of its own.
    pub fn has_own_ways(&self) -> bool {
        self.router.is_some()
    }

    /// The way of a message of a program that is the `turn`-th between its nodes and has this number among all, while links
    /// have such loads, by link; none where all messages between two nodes take the same way.
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

    /// The number of the path of a longer way that a flow may take instead of its own.
    pub fn detour(&self, flow: usize) -> Option<usize> {
        self.flows.map(|flows| flow + flows)
    }

    /// The flow that takes the path with this number, which may be that of a longer way.
    pub fn flow_on(&self, path: usize) -> usize {
        self.flows.map_or(path, |flows| path % flows)
    }

    /// Whether a flow that starts prefers a longer way: if the highest load on it, up to where it leaves its group, times the
    /// links between switches on it, is less than that of the other way (UGAL, Singh 2005).
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

    /// Each flow has chosen this path of its two; only that stays.
    pub fn settle_ways(&mut self, chosen: &[usize]) {
        if self.flows.take().is_some() {
            self.paths = chosen
                .iter()
                .map(|path| self.paths[*path].clone())
                .collect();
        }
    }

    /// The links of one flow and nothing else.
    pub fn only(&self, path: &FlowPath) -> Fabric {
        let ends = [path.src, path.dst];
        let mut inner: Vec<usize> = path
            .data()
            .iter()
            .chain(path.acknowledgements())
            .filter_map(|link| (link.index() / 2).checked_sub(self.ports.len()))
            .collect();
        inner.sort_unstable();
        inner.dedup();
        Fabric {
            paths: vec![path.renumbered(|link| {
                let both = match (link.index() / 2).checked_sub(self.ports.len()) {
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

    /// The same links without flows.
    pub fn without_paths(&self) -> Fabric {
        Fabric {
            ports: self.ports.clone(),
            inner: self.inner.clone(),
            ..self.emptied()
        }
    }

    /// What does not depend on flows.
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

    /// How many links there are, used or not.
    pub fn link_count(&self) -> usize {
        2 * (self.ports.len() + self.inner.len())
    }

    /// No flow's data cross more links than this.
    pub fn most_hops(&self) -> u32 {
        self.longest + 2
    }

    /// The class of a link, an index into [`Fabric::classes`]; 0 for the nodes' own.
    pub fn class(&self, link: LinkId) -> usize {
        match (link.index() / 2).checked_sub(self.ports.len()) {
            None => 0,
            Some(place) => usize::from(self.inner[place].class),
        }
    }

    /// The classes of the links that data and acknowledgements cross: flows of one size over the same classes take the same
    /// time alone.
    pub fn classes_on(&self, path: &FlowPath) -> Vec<u8> {
        let class = |link: &LinkId| self.class(*link) as u8;
        let mut classes: Vec<u8> = path.data().iter().map(class).collect();
        classes.extend(path.acknowledgements().iter().map(class));
        classes
    }

    /// What the classes of links are called.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// What a link adds to the latency of each message that crosses it.
    pub fn link_latency(&self, link: LinkId) -> Time {
        match (link.index() / 2).checked_sub(self.ports.len()) {
            None => Time::ZERO,
            Some(place) => self.inner[place].latency,
        }
    }

    /// What the links between switches add to the latency of a message.
    pub fn latency(&self, path: &FlowPath) -> Time {
        let inner = path.data()[2..].iter();
        inner.map(|link| self.link_latency(*link)).sum()
    }

    /// What a link carries.
    pub fn capacity(&self, link: LinkId) -> AllocatedFraction {
        match (link.index() / 2).checked_sub(self.ports.len()) {
            None => AllocatedFraction::WHOLE,
            Some(place) => self.inner[place].capacity,
        }
    }

    /// The uncontended rate of a flow: the capacity of the narrowest link on its path.
    pub fn uncontended_share(&self, path: &FlowPath) -> AllocatedFraction {
        path.data()[2..]
            .iter()
            .map(|link| self.capacity(*link))
            .fold(AllocatedFraction::WHOLE, |least, share| {
                if share < least { share } else { least }
            })
    }

    /// Whether the link belongs to a node's interface, and not to a cable between switches or to a bus.
    pub fn is_of_node(&self, link: LinkId) -> bool {
        link.index() < 2 * self.ports.len()
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
        let place = (link.index() / 2).checked_sub(self.ports.len());
        place.is_some_and(|place| matches!(self.inner[place].name, InnerName::Bus(..)))
    }

    /// Whether the ACKs of all data on a link return over another link, its opposite; in a tree they may take another
    /// cable, and over what both directions share they return over the link itself.
    pub(crate) fn acks_return_over_opposite(&self, link: LinkId) -> bool {
        match (link.index() / 2).checked_sub(self.ports.len()) {
            None => self.duplex == Duplex::Full,
            Some(place) => matches!(self.inner[place].name, InnerName::Rack(_)),
        }
    }

    /// How far along a path the link is: 0 out of a node, then upward, downward, and into a node. A shared link, which
    /// stands at both ends of paths, is where it stands first.
    pub fn place(&self, link: LinkId) -> u32 {
        let top = self.longest + 1;
        match (
            (link.index() / 2).checked_sub(self.ports.len()),
            link.0.is_multiple_of(2),
        ) {
            (None, true) => 0,
            (None, false) => top,
            (Some(place), true) => u32::from(self.inner[place].place[0]),
            (Some(place), false) => u32::from(self.inner[place].place[1]),
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
