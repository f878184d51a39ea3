//! Routes of the messages between nodes, as links in the order in which links are numbered.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry};

use super::{
    AllocatedFraction, BusShare, Cabling, Fabric, FlowPath, Inner, InnerName, LinkId, Port,
    Switches,
    capacities::{self, NodeInterfaces},
};
use crate::{
    cluster::{
        flow::Flow,
        racks::{Rack, Racks},
    },
    network::{Duplex, Network},
    sharing::error::SharingError,
    topology::{
        self, LinkClass,
        wiring::{Cable, Hop, Trip},
    },
};
use flowcast_units::{Node, Time};

/// A message to be routed, with the interface that it uses at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RoutedMessage {
    src: Node,
    dst: Node,
    nic: u32,
    message: u32,
}

impl RoutedMessage {
    fn back(self) -> RoutedMessage {
        RoutedMessage {
            src: self.dst,
            dst: self.src,
            ..self
        }
    }

    fn ports(self) -> [Port; 2] {
        [self.src, self.dst].map(|node| Port {
            node,
            nic: self.nic,
        })
    }
}

/// All messages that need paths in a fabric, and the interfaces at their ends.
#[derive(Debug)]
pub(super) struct Trips {
    messages: Vec<RoutedMessage>,
    /// Interfaces at the ends of the messages, in ascending order and without duplicates.
    ports: Vec<Port>,
    interfaces: NodeInterfaces,
}

impl Trips {
    /// The flows of a pattern, and the interfaces that they use.
    pub(super) fn of_pattern(flows: &[Flow], interfaces: NodeInterfaces) -> Trips {
        let mut turns: BTreeMap<(Node, Node), u32> = BTreeMap::new();
        let mut messages = Vec::with_capacity(flows.len());
        for (flow, message) in flows.iter().zip(0..) {
            let mut turn = 0;
            if !interfaces.is_by_pair() {
                let next = turns.entry((flow.src, flow.dst)).or_default();
                (turn, *next) = (*next, *next + 1);
            }
            messages.push(RoutedMessage {
                src: flow.src,
                dst: flow.dst,
                nic: interfaces.chosen([flow.src, flow.dst], turn),
                message,
            });
        }
        let ports = match interfaces.count {
            1 => {
                let ends = messages
                    .iter()
                    .flat_map(|message| [message.src, message.dst]);
                let nodes = ascending(ends.collect());
                nodes
                    .into_iter()
                    .map(|node| Port { node, nic: 0 })
                    .collect()
            }
            _ => ascending(
                messages
                    .iter()
                    .flat_map(|message| message.ports())
                    .collect(),
            ),
        };
        Trips {
            messages,
            ports,
            interfaces,
        }
    }

    /// Any messages between the ends of the flows, over any interface.
    pub(super) fn of_any_message(flows: &[Flow], interfaces: NodeInterfaces) -> Trips {
        let mut trips = Trips::of_pattern(flows, interfaces);
        let mut nodes: Vec<Node> = trips.ports.iter().map(|port| port.node).collect();
        nodes.dedup();
        trips.ports = nodes
            .into_iter()
            .flat_map(|node| (0..interfaces.count).map(move |nic| Port { node, nic }))
            .collect();
        trips
    }
}

/// Sorts the values and removes duplicates.
fn ascending<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all.dedup();
    all
}

/// Routes messages over the links between their interfaces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Router {
    ports: Vec<Port>,
    interfaces: NodeInterfaces,
    duplex: Duplex,
    between: Between,
    /// Links between the ports.
    inner: Vec<Inner>,
    classes: Vec<LinkClass>,
}

/// Connections between the ports.
#[derive(Debug, Clone, PartialEq)]
enum Between {
    /// Racks and buses.
    Racks(RackLinks),
    /// The cables of a topology, with the link number of each cable's forward direction.
    Switches(Switches, HashMap<Cable, u32>),
}

impl Router {
    /// Creates a router over racks and buses.
    pub(super) fn cabled(
        trips: &Trips,
        racks: &Racks,
        cabling: Cabling,
        interfaces: NodeInterfaces,
    ) -> Router {
        let capacity = cabling.backbone.unwrap_or(AllocatedFraction(f64::INFINITY));
        let first_level: u16 = if cabling.bus.is_some() { 2 } else { 1 };
        let names = ["node", "rack", "bus"].map(|name| LinkClass {
            name: name.to_owned(),
            cables: topology::CableKind::default(),
        });
        let mut inner: Vec<Inner> = (0..racks.count() as u32)
            .map(|rack| Inner {
                name: InnerName::Rack(racks.name(Rack(rack)).to_owned()),
                capacity,
                latency: Time::ZERO,
                class: 1,
                place: [first_level, first_level + 1],
            })
            .collect();
        let nodes: Vec<Node> = trips.ports.iter().map(|port| port.node).collect();
        let first_bus = 2 * (trips.ports.len() + inner.len()) as u32;
        let buses = Buses::new(cabling.bus, &nodes, first_bus);
        inner.extend(buses.links(2 * first_level));
        let links = RackLinks {
            racks: racks.clone(),
            first: 2 * trips.ports.len() as u32,
            has_backbone: cabling.backbone.is_some(),
            buses,
        };
        Router {
            inner,
            ..Router::new(
                trips,
                Between::Racks(links),
                cabling.duplex,
                names.into(),
                interfaces,
            )
        }
    }

    /// Creates a router over the topology of a network, or over its racks and buses.
    ///
    /// # Errors
    /// The topology cannot be built or lacks a node, or there are racks or buses in addition to a topology.
    pub(super) fn of_network(
        trips: &Trips,
        racks: &Racks,
        network: &Network,
    ) -> Result<Router, SharingError> {
        let duplex = network.nic.duplex;
        let Some(topology) = &network.topology else {
            let cabling = Cabling {
                backbone: capacities::backbone_share(network)?,
                duplex,
                bus: capacities::bus_share(network)?,
            };
            return Ok(Router::cabled(trips, racks, cabling, trips.interfaces));
        };
        if !racks.is_empty() {
            return Err(SharingError::RacksInTopology);
        }
        if network.bus.is_some() {
            return Err(SharingError::BusInTopology);
        }
        let wiring = topology.wiring()?;
        if let Some(last) = trips.ports.last() {
            topology::check_node(&*wiring, last.node)?;
        }
        let switches = Switches {
            topology: topology.clone().into(),
            wiring,
        };
        let between = Between::Switches(switches, HashMap::new());
        let router = Router::new(trips, between, duplex, topology.classes(), trips.interfaces);
        router.capacities_in(network)?;
        Ok(router)
    }

    fn new(
        trips: &Trips,
        between: Between,
        duplex: Duplex,
        classes: Vec<LinkClass>,
        interfaces: NodeInterfaces,
    ) -> Router {
        Router {
            ports: trips.ports.clone(),
            interfaces,
            duplex,
            between,
            inner: Vec::new(),
            classes,
        }
    }

    /// Numbers all cables that messages between the ends of these trips may cross.
    pub(super) fn number_all(&mut self, trips: &Trips) {
        let Between::Switches(switches, _) = &self.between else {
            return;
        };
        let planes = switches.topology.planes;
        let mut cables: BTreeSet<(u8, u32, u32)> = BTreeSet::new();
        let mut note = |cable: Cable| {
            cables.insert((cable.class, cable.switch, cable.port));
        };
        if switches.topology.routing.is_by_pair() {
            let both = trips.messages.iter().flat_map(|trip| [*trip, trip.back()]);
            let each =
                both.flat_map(|trip| (0..planes).map(move |nic| RoutedMessage { nic, ..trip }));
            each.flat_map(|trip| self.hops(&trip, Way::Routed))
                .for_each(|hop| note(hop.cable));
        } else {
            let mut nodes: Vec<Node> = self.ports.iter().map(|port| port.node).collect();
            nodes.dedup();
            switches.wiring.cables(&nodes).into_iter().for_each(note);
        }
        for (class, switch, port) in cables {
            for plane in 0..planes {
                self.number(Cable {
                    class,
                    plane,
                    switch,
                    port,
                });
            }
        }
    }

    /// Paths of these messages. Links are numbered in the order in which they are used.
    pub(super) fn paths(&mut self, trips: &Trips) -> Vec<FlowPath> {
        let is_by_pair = match &self.between {
            Between::Switches(switches, _) => switches.topology.routing.is_by_pair(),
            // With few links, searching is as fast as a lookup.
            Between::Racks(_) => {
                return trips.messages.iter().map(|trip| self.path(trip)).collect();
            }
        };
        let mut known: HashMap<RoutedMessage, FlowPath> = HashMap::new();
        let mut paths = Vec::with_capacity(trips.messages.len());
        for trip in &trips.messages {
            if !is_by_pair {
                paths.push(self.numbered_path(trip));
                continue;
            }
            let pair = RoutedMessage {
                message: 0,
                ..*trip
            };
            let path = known
                .entry(pair)
                .or_insert_with(|| self.numbered_path(&pair));
            paths.push(path.clone());
        }
        paths
    }

    /// Longer paths of these messages; the given path for a message without a longer one.
    pub(super) fn detours(&mut self, trips: &Trips, paths: &[FlowPath]) -> Vec<FlowPath> {
        let mut detours = Vec::with_capacity(paths.len());
        for (trip, path) in trips.messages.iter().zip(paths) {
            self.number_detour(trip);
            detours.push(self.detour(trip).unwrap_or_else(|| path.clone()));
        }
        detours
    }

    /// A message that is the `turn`-th between its nodes and has the number `message` among all messages.
    pub(super) fn trip(&self, [src, dst]: [Node; 2], turn: u32, message: u32) -> RoutedMessage {
        RoutedMessage {
            src,
            dst,
            nic: self.interfaces.chosen([src, dst], turn),
            message,
        }
    }

    /// Path of a message over links that already have numbers.
    pub(super) fn path(&self, trip: &RoutedMessage) -> FlowPath {
        let links = |trip: &RoutedMessage| match &self.between {
            Between::Racks(links) => links.between(trip.src, trip.dst),
            Between::Switches(..) => self.numbers_on(&self.hops(trip, Way::Routed)),
        };
        self.with_ends(trip, [&links(trip), &links(&trip.back())])
    }

    /// The longer path, if there is one; acknowledgements return on the same route as the data.
    pub(super) fn detour(&self, trip: &RoutedMessage) -> Option<FlowPath> {
        let is_choice = matches!(&self.between, Between::Switches(switches, _)
            if switches.topology.routing == topology::Routing::Ugal);
        if !is_choice {
            return None;
        }
        let both = [*trip, trip.back()].map(|trip| self.hops(&trip, Way::Detour));
        let is_way = both.iter().all(|hops| !hops.is_empty());
        let [there, back] = both.map(|hops| self.numbers_on(&hops));
        is_way.then(|| self.with_ends(trip, [&there, &back]))
    }

    /// Path of a message. Cables without a number get one.
    fn numbered_path(&mut self, trip: &RoutedMessage) -> FlowPath {
        let [there, back] = [*trip, trip.back()].map(|trip| {
            let hops = self.hops(&trip, Way::Routed).into_iter();
            hops.map(|hop| LinkId(self.number(hop.cable) + u32::from(hop.is_backward)))
                .collect::<Vec<_>>()
        });
        self.with_ends(trip, [&there, &back])
    }

    fn number_of(&self, port: Port) -> u32 {
        let place = self.ports.binary_search(&port);
        place.expect("the interfaces of all messages have numbers") as u32
    }

    fn with_ends(&self, trip: &RoutedMessage, between: [&[LinkId]; 2]) -> FlowPath {
        let [src, dst] = trip.ports().map(|port| self.number_of(port));
        let inward = u32::from(self.duplex == Duplex::Full);
        let ends = [[src, dst], [dst, src]]
            .map(|[from, to]: [u32; 2]| [LinkId(2 * from), LinkId(2 * to + inward)]);
        FlowPath::new([src, dst], ends, between)
    }

    /// Cables of a route; empty if there are no switches.
    fn hops(&self, trip: &RoutedMessage, way: Way) -> Vec<Hop> {
        let Between::Switches(switches, _) = &self.between else {
            return Vec::new();
        };
        let trip = Trip {
            src: trip.src,
            dst: trip.dst,
            plane: trip.nic % switches.topology.planes,
            message: u64::from(trip.message),
        };
        let mut hops = Vec::new();
        match way {
            Way::Routed => switches.wiring.way(&trip, &mut hops),
            Way::Detour => drop(switches.wiring.detour(&trip, &mut hops)),
        }
        hops
    }

    fn numbers_on(&self, hops: &[Hop]) -> Vec<LinkId> {
        let Between::Switches(_, numbers) = &self.between else {
            return Vec::new();
        };
        hops.iter()
            .map(|hop| LinkId(numbers[&hop.cable] + u32::from(hop.is_backward)))
            .collect()
    }

    /// Numbers the cables of the longer route in both directions.
    fn number_detour(&mut self, trip: &RoutedMessage) {
        for trip in [*trip, trip.back()] {
            for hop in self.hops(&trip, Way::Detour) {
                self.number(hop.cable);
            }
        }
    }

    /// Number of a cable's forward direction.
    fn number(&mut self, cable: Cable) -> u32 {
        let Between::Switches(switches, numbers) = &mut self.between else {
            unreachable!("there are no cables between racks");
        };
        let next = 2 * (self.ports.len() + self.inner.len()) as u32;
        let entry = match numbers.entry(cable) {
            Entry::Occupied(entry) => return *entry.get(),
            Entry::Vacant(entry) => entry,
        };
        entry.insert(next);
        let kind = self.classes[usize::from(cable.class)].cables;
        let rate = kind.rate.map_or(1.0, |rate| {
            rate.goodput().as_bytes_per_second() / self.interfaces.rate
        });
        let level = u16::from(cable.class);
        let top = switches.wiring.longest() as u16 + 1;
        let back = if switches.topology.is_tree() {
            top - level
        } else {
            level
        };
        self.inner.push(Inner {
            name: InnerName::Cable(cable),
            capacity: AllocatedFraction(rate),
            latency: kind.latency,
            class: cable.class,
            place: [level, back],
        });
        next
    }

    /// Checks the rates of cables, which need an interface rate to compare with.
    fn capacities_in(&self, network: &Network) -> Result<(), SharingError> {
        let nic = network.nic.rate().as_bytes_per_second();
        let mut rates = self.classes.iter().filter_map(|class| class.cables.rate);
        rates.try_for_each(|rate| {
            if nic <= 0.0 {
                return Err(capacities::infinite_interface());
            }
            let rate = rate.goodput().as_bytes_per_second();
            capacities::share("topology.bandwidth", rate, nic).map(drop)
        })
    }

    pub(super) fn into_fabric(self, paths: Vec<FlowPath>) -> Fabric {
        let (longest, switches) = match self.between {
            Between::Racks(links) => (if links.buses.bus.is_some() { 4 } else { 2 }, None),
            Between::Switches(switches, _) => (switches.wiring.longest(), Some(switches)),
        };
        Fabric {
            paths,
            ports: self.ports,
            nics: self.interfaces.count,
            inner: self.inner,
            classes: self.classes.into_iter().map(|class| class.name).collect(),
            longest,
            duplex: self.duplex,
            flows: None,
            switches,
            router: None,
        }
    }
}

/// Choice between two routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Route according to the routing.
    Routed,
    /// Longer alternative that UGAL may choose; it has no hops if there is none.
    Detour,
}

/// The links of racks and buses.
#[derive(Debug, Clone, PartialEq)]
struct RackLinks {
    racks: Racks,
    /// Number of the first rack's link.
    first: u32,
    has_backbone: bool,
    buses: Buses,
}

impl RackLinks {
    /// Links between the ports of two nodes. A message within one group crosses its bus once.
    fn between(&self, from: Node, to: Node) -> Vec<LinkId> {
        let mut links: Vec<LinkId> = self.buses.link(from).into_iter().collect();
        if let (Some(source), Some(destination)) =
            (self.racks.rack_of(from), self.racks.rack_of(to))
            && source != destination
            && self.has_backbone
        {
            links.extend([
                LinkId(self.rack(source)),
                LinkId(self.rack(destination) + 1),
            ]);
        }
        let last = self
            .buses
            .link(to)
            .filter(|link| links.first() != Some(link));
        links.extend(last);
        links
    }

    fn rack(&self, rack: Rack) -> u32 {
        self.first + 2 * rack.0
    }
}

/// Media shared by groups of nodes. They have even link numbers after those of the racks.
#[derive(Debug, Clone, PartialEq)]
struct Buses {
    bus: Option<BusShare>,
    /// Groups that contain nodes, ascending, with the first and the last node of each.
    groups: Vec<(u32, Node, Node)>,
    first_link: u32,
}

impl Buses {
    /// Creates the buses of these nodes, which are in ascending order.
    fn new(bus: Option<BusShare>, nodes: &[Node], first_link: u32) -> Buses {
        let mut buses = Buses {
            bus,
            groups: Vec::new(),
            first_link,
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

    /// A link for each group. Paths have at most `longest` links between the ports.
    fn links(&self, longest: u16) -> impl Iterator<Item = Inner> {
        let capacity = self
            .bus
            .map_or(AllocatedFraction(f64::INFINITY), |bus| bus.capacity);
        self.groups
            .iter()
            .map(move |(_, first, last): &(u32, Node, Node)| Inner {
                name: InnerName::Bus(*first, *last),
                capacity,
                latency: Time::ZERO,
                class: 2,
                place: [1, longest],
            })
    }

    /// Link of a node's group.
    fn link(&self, node: Node) -> Option<LinkId> {
        let group = self.group(node)?;
        let place = self
            .groups
            .binary_search_by_key(&group, |(group, ..)| *group)
            .ok()?;
        Some(LinkId(self.first_link + 2 * place as u32))
    }
}
