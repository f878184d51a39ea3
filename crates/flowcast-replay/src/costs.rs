//! Costs of a program's messages on a network, computed once before a replay.
//!
//! | rule | sender's processor | message arrives after it | receiver's processor |
//! |---|---|---|---|
//! | Hockney | 0 | `L + S/BW` | 0 |
//! | Dimemas | `L` | `S/BW` | `L`, spent before looking for the message |
//! | LogGOPS | `o` | `L + (S-1)G` | `o`, spent on the message after its arrival |
//!
//! If the network has overheads by size, they replace the processor times under every rule, between nodes: the sender's
//! before the message leaves, the receiver's after the message has arrived. Latency by size is added to the time until the
//! message arrives.
//!
//! Under LogGOPS, a message of `S` bytes also occupies the sending interface for `g + (S-1)G`. A blocking send waits until
//! the interface is free. A non-blocking send leaves its message to the interface. A wait for it ends when the message has
//! left, `(S-1)G` after its start.

use super::{
    placement::Placement,
    routes::{Route, route},
};
use flowcast_network::{
    collective::{PhaseMessage, Row},
    file_system::FileSystem,
    machine::{NodeGroup, inside::InsideNode, wide_area::Site},
    network::{MessageRule, Network, Overheads, Progress},
};
use flowcast_program::{
    access::Access,
    opcodes::Op,
    program::{CollectiveCall, Communicator, MessageClass, Program, SendMode},
};
use flowcast_units::{Bytes, CollectiveOp, Node, Rank, Rate, Time, TimePerByte};

/// Times of one message class.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClassCost {
    /// Processor time of the sender.
    pub send: Time,
    /// Processor time of the receiver after the message has arrived.
    pub receive: Time,
    /// Time from the end of the sender's overhead to the arrival of the last byte.
    pub delay: Time,
    /// Part of `delay` that the message's size adds to [`PathCosts::latency`].
    pub added_latency: Time,
    /// Time from one start at the sending interface to the next.
    pub busy: Time,
    /// Time for which the transfer blocks a sender that waited for its receiver.
    pub held: Time,
    /// Time that the message occupies its links.
    pub bytes: Time,
    /// `true` if the sender waits for the receiver.
    pub rendezvous: bool,
    /// `true` if the sender continues while its interface is busy; the interface then sends the message when it is free.
    pub queues: bool,
}

impl ClassCost {
    /// Time from the start of the message at the interface until it has left, which ends a wait for a non-blocking send; 0
    /// if interfaces are never busy.
    pub fn leaves(&self) -> Time {
        self.held.min(self.busy)
    }
}

/// Costs of the messages on one kind of route: from a node of a group to itself, to another node, or to another site.
#[derive(Debug, Clone)]
pub struct PathCosts {
    /// Processor time of the sender, if it does not depend on the size.
    pub send_overhead: Time,
    /// Processor time of the receiver before it takes the message.
    pub recv_before: Time,
    /// Processor time of the receiver after the message has arrived, if it does not depend on the size.
    pub recv_after: Time,
    /// Part of the delay that does not depend on the bandwidth.
    pub latency: Time,
    /// Part of the time between two starts at the interface that does not depend on the bandwidth.
    pub gap: Time,
    /// Times of each message class, indexed by class.
    pub classes: Vec<ClassCost>,
    /// Costs of the data of each access of the program, indexed by access, without the target's processor time.
    pub accesses: Vec<ClassCost>,
}

impl PathCosts {
    /// Smallest processor time of a sender for one of the messages.
    pub(crate) fn least_sending(&self) -> Time {
        let by_class = self.classes.iter().map(|cost| cost.send);
        by_class.min().unwrap_or(self.send_overhead)
    }
}

/// All time costs of the replay of a program on a network.
#[derive(Debug, Clone)]
pub struct Costs {
    /// Costs of each route, indexed by route number, as in [`RouteNumbers`](super::routes::RouteNumbers).
    pub paths: Vec<PathCosts>,
    /// Divisor of a rank's computations, indexed by rank.
    pub speeds: Vec<f64>,
    /// `true` if all `speeds` are 1.
    pub is_as_traced: bool,
    /// Divisor of a rank's computations on accelerators, indexed by rank.
    pub accelerator_speeds: Vec<f64>,
    /// Class of each message, indexed by slot, if overheads depend on the size; otherwise empty.
    pub class_of_slot: Vec<u32>,
    /// `true` if ranks wait for non-blocking sends.
    pub(crate) awaits_sends: bool,
    communicators: Vec<CostsShape>,
    network: Network,
    groups: Vec<NodeGroup>,
    group_of_rank: Vec<usize>,
    /// Number of nodes, indexed by site.
    site_nodes: Vec<u32>,
}

/// Distribution of a communicator's ranks over the nodes.
#[derive(Debug, Clone)]
struct CostsShape {
    ranks: u32,
    nodes: u32,
    sites: Vec<SiteShape>,
}

/// Distribution of the ranks of a communicator at one site.
#[derive(Debug, Clone)]
struct SiteShape {
    site: u32,
    nodes: u32,
    /// Group of the first of these nodes.
    first_group: usize,
    /// Distinct pairs of a node's group and its number of tasks.
    on_nodes: Vec<(usize, u32)>,
}

impl Costs {
    /// Computes all costs before the replay of a program.
    pub fn new(
        program: &Program,
        network: &Network,
        placement: &Placement,
        rendezvous: Rendezvous,
    ) -> Costs {
        let groups = placement.groups().to_vec();
        let ranks = Rank::all(program.streams());
        let group_of_rank: Vec<usize> = ranks
            .map(|rank| placement.group_index(placement.node(rank)))
            .collect();
        let speeds: Vec<f64> = group_of_rank
            .iter()
            .zip(0..)
            .map(|(group, rank)| speed(groups[*group].speed * placement.pace(Rank(rank))))
            .collect();
        Costs {
            is_as_traced: speeds.iter().all(|speed| *speed == 1.0),
            paths: routes(network, placement)
                .map(|route| route.costs(program, rendezvous))
                .collect(),
            speeds,
            accelerator_speeds: group_of_rank
                .iter()
                .map(|group| speed(groups[*group].accelerator_speed))
                .collect(),
            class_of_slot: if network.overheads.have_no_processor_time() {
                Vec::new()
            } else {
                classes_of_slots(program)
            },
            awaits_sends: program.awaits_sends()
                && program
                    .classes()
                    .iter()
                    .any(|class| class.mode.non_blocking),
            communicators: shapes(program, placement),
            network: network.clone(),
            groups,
            group_of_rank,
            site_nodes: placement.nodes_of_sites(),
        }
    }

    /// `true` if there are rendezvous messages and ranks answer each other in MPI calls only.
    pub fn needs_polling(&self) -> bool {
        self.network.point_to_point.progress == Progress::InCalls && self.has_rendezvous()
    }

    /// `true` if any sender waits for its receiver.
    pub fn has_rendezvous(&self) -> bool {
        self.paths
            .iter()
            .any(|path| path.classes.iter().any(|class| class.rendezvous))
    }

    /// `true` if messages occupy their sending interface. Otherwise the time at which an interface is free never matters.
    pub fn has_busy_interfaces(&self) -> bool {
        let costs = self
            .paths
            .iter()
            .flat_map(|path| path.classes.iter().chain(&path.accesses));
        costs.into_iter().any(|cost| cost.busy > Time::ZERO)
    }

    /// Sets the times for which messages occupy their sending interface to 0, because the transport of the messages
    /// determines their departures.
    pub(crate) fn free_interfaces(&mut self) {
        for path in &mut self.paths {
            for cost in path.classes.iter_mut().chain(&mut path.accesses) {
                cost.busy = Time::ZERO;
            }
        }
    }

    /// `true` if ranks wait for messages to leave interfaces that may be busy.
    pub(crate) fn has_send_queues(&self) -> bool {
        self.awaits_sends && self.has_busy_interfaces()
    }

    /// `true` if the same sends wait for their receiver in both costs, which must belong to one program and one mapping.
    pub(crate) fn waits_like(&self, other: &Costs) -> bool {
        self.paths
            .iter()
            .map(waits)
            .eq(other.paths.iter().map(waits))
    }

    /// Index of the group of a rank's node. The costs of collectives depend on no other property of a rank.
    pub fn group_index(&self, rank: Rank) -> usize {
        self.group_of_rank[rank]
    }

    /// Duration of a collective after all ranks have reached it: the phases inside the nodes and between them, at the
    /// slowest site, and the phase between the sites.
    pub fn collective(
        &self,
        op: CollectiveOp,
        communicator: u32,
        root: Rank,
        send: Bytes,
        recv: Bytes,
    ) -> Time {
        let shape = &self.communicators[communicator as usize];
        let row = self.network.collectives.row(op);
        let group = self.group_of_rank[root];
        let mut takes = shape
            .sites
            .iter()
            .map(|site: &SiteShape| {
                let first = if self.groups[group].site == site.site {
                    group
                } else {
                    site.first_group
                };
                self.inside_site(row, site, &self.groups[first], send, recv)
            })
            .max()
            .unwrap_or_default();
        if shape.sites.len() > 1 {
            takes += self.between_sites(op, shape, &self.groups[group], send, recv);
        }
        takes
    }

    fn inside_site(
        &self,
        row: Row,
        site: &SiteShape,
        group: &NodeGroup,
        send: Bytes,
        recv: Bytes,
    ) -> Time {
        let between = if self.site_nodes[site.site as usize] > 1 {
            let buses = site_buses(&self.network, site.site);
            row.time(self.between_message(group, send, recv), site.nodes, buses)
        } else {
            Time::ZERO
        };
        let inside = site
            .on_nodes
            .iter()
            .map(|(group, tasks)| self.inside_time(row, *group, *tasks, send, recv));
        inside.max().unwrap_or_default() + between
    }

    /// Duration of the phase between sites, computed for the number of all ranks. It includes the longest flight time to the
    /// root's site and the longest one from it.
    fn between_sites(
        &self,
        op: CollectiveOp,
        shape: &CostsShape,
        group: &NodeGroup,
        send: Bytes,
        recv: Bytes,
    ) -> Time {
        let wide_area = &self.network.machine.wide_area;
        let message = PhaseMessage {
            latency: group.wide_area_latency,
            bandwidth: wide_area.bandwidth,
            send,
            recv,
        };
        let sites = || shape.sites.iter().map(|site| site.site);
        let into = sites()
            .map(|site| wide_area.flight_time(site, group.site))
            .max()
            .unwrap_or_default();
        let out = sites()
            .map(|site| wide_area.flight_time(group.site, site))
            .max()
            .unwrap_or_default();
        wide_area.collectives.row(op).time(message, shape.ranks, 0) + into + out
    }

    /// Sites whose networks a collective on this communicator uses; empty if all its ranks belong to one task.
    pub fn sites(&self, communicator: u32) -> impl Iterator<Item = u32> + '_ {
        self.communicators[communicator as usize]
            .sites
            .iter()
            .map(|site| site.site)
    }

    fn between_message(&self, group: &NodeGroup, send: Bytes, recv: Bytes) -> PhaseMessage {
        let nic = &self.network.nic;
        let latency = group.latency.unwrap_or(nic.latency) + nic.overhead * 2.0;
        PhaseMessage {
            latency,
            bandwidth: site_rate(&self.network, group.site),
            send,
            recv,
        }
    }

    fn inside_time(&self, row: Row, group: usize, tasks: u32, send: Bytes, recv: Bytes) -> Time {
        let group = &self.groups[group];
        let InsideNode { latency, rate } = match tasks {
            // Dimemas also counts a constant phase of a single task. No message is sent then, so the default for inside a
            // node is not needed.
            0 | 1 => InsideNode {
                latency: group.intra_latency.unwrap_or_default(),
                rate: group.intra_bandwidth.unwrap_or_default(),
            },
            _ => group.inside(),
        };
        let message = PhaseMessage {
            latency,
            bandwidth: rate,
            send,
            recv,
        };
        row.time(message, tasks, 0)
    }

    /// Start-up of a non-blocking or root-synchronous collective, and of the wait for one; 0 if it is less than a
    /// nanosecond.
    ///
    /// Dimemas truncates it to whole nanoseconds at the start of a collective, but not at the wait for one.
    pub fn collective_startup(&self, communicator: u32, rank: Rank) -> Time {
        let shape = &self.communicators[communicator as usize];
        let group = &self.groups[self.group_of_rank[rank]];
        let between = if shape.nodes > 1 {
            group.latency.unwrap_or(self.network.nic.latency)
        } else {
            Time::ZERO
        };
        let shares = shape
            .sites
            .iter()
            .flat_map(|site| &site.on_nodes)
            .any(|(_, tasks)| *tasks > 1);
        let inside = if shares {
            group.inside().latency
        } else {
            Time::ZERO
        };
        let far = if shape.sites.len() > 1 {
            group.wide_area_latency
        } else {
            Time::ZERO
        };
        at_least_a_nanosecond(between.max(inside).max(far))
    }

    /// File system of the network to which the costs apply.
    pub fn file_system(&self) -> &FileSystem {
        &self.network.file_system
    }

    /// Route of a rank's data to the root of a root-synchronous collective, with its time on the links and its time in
    /// flight.
    pub fn to_root(
        &self,
        placement: &Placement,
        rank: Rank,
        call: &CollectiveCall,
    ) -> (Route, (Time, Time)) {
        let root = call.root.unwrap_or(rank);
        let nodes = (placement.node(rank), placement.node(root));
        let route = route(&self.network, placement, nodes, (0, call.send));
        let group = self.group_of_rank[rank];
        let rate = self.rate(2 * group, route);
        let wide_area = &self.network.machine.wide_area;
        let flight = match route {
            Route::Inside | Route::Between => Time::ZERO,
            Route::ToSite(to) => wide_area.flight_time(self.groups[group].site, to as u32),
            Route::By(connection) => wide_area.connections[connection].flight_time,
        };
        let on_links = TimePerByte::from_rate(rate).time_for(call.send);
        (route, (on_links, in_flight(rate, flight)))
    }

    /// Rate of a route, in bytes per second; 0 is infinite.
    pub fn rate(&self, number: usize, route: Route) -> Rate {
        let wide_area = &self.network.machine.wide_area;
        match route {
            Route::Between => site_rate(&self.network, self.groups[number / 2].site),
            Route::Inside => self.groups[number / 2].inside().rate,
            Route::ToSite(_) => wide_area.bandwidth,
            Route::By(connection) => wide_area.connections[connection].bandwidth,
        }
    }

    /// Network to which the costs apply.
    pub fn network(&self) -> &Network {
        &self.network
    }
}

fn waits(path: &PathCosts) -> Vec<bool> {
    path.classes
        .iter()
        .map(|class| class.rendezvous)
        .collect::<Vec<_>>()
}

/// Shapes of all communicators, in the order of their indices. A communicator of the threads of one rank, or of a rank and
/// its progress stream, has an empty shape: its collectives cost nothing.
fn shapes(program: &Program, placement: &Placement) -> Vec<CostsShape> {
    program
        .communicators()
        .iter()
        .map(
            |known: &Communicator| match program.is_inside_a_task(known) {
                true => CostsShape {
                    ranks: 0,
                    nodes: 0,
                    sites: Vec::new(),
                },
                false => CostsShape::new(&known.members, placement),
            },
        )
        .collect()
}

/// Class of each message, indexed by slot.
fn classes_of_slots(program: &Program) -> Vec<u32> {
    let mut classes = vec![0; program.messages() as usize];
    let streams = Rank::all(program.streams());
    for (_, op) in streams.flat_map(|stream| program.ops(stream)) {
        if let Op::Send { class, slot } = op {
            classes[slot] = class;
        }
    }
    classes
}

/// All routes, in the order of their numbers.
fn routes(network: &Network, placement: &Placement) -> impl Iterator<Item = RouteTimes> {
    let sites = placement.sites();
    let far = if sites > 1 {
        placement.groups().len() * sites
    } else {
        0
    };
    let connections = if sites > 1 {
        network.machine.wide_area.connections.len()
    } else {
        0
    };
    let near = placement.groups().iter().flat_map(|group| {
        [
            RouteTimes::between(network, group),
            RouteTimes::inside(network, group),
        ]
    });
    let to_site = (0..far).flat_map(move |number| {
        let group = &placement.groups()[number / sites];
        std::iter::repeat_with(move || RouteTimes::to_site(network, group, (number % sites) as u32))
            .take(2)
    });
    let by = (0..connections).flat_map(move |number| {
        std::iter::repeat_with(move || RouteTimes::by(network, number)).take(2)
    });
    near.chain(to_site).chain(by)
}

/// Bandwidth between the nodes of a site.
fn site_rate(network: &Network, site: u32) -> Rate {
    further_site(network, site)
        .and_then(|site| site.bandwidth)
        .unwrap_or_else(|| network.nic.rate())
}

/// Number of buses of a site; 0 is no limit.
pub(crate) fn site_buses(network: &Network, site: u32) -> u32 {
    further_site(network, site).map_or(network.machine.buses, |site| site.buses)
}

fn further_site(network: &Network, site: u32) -> Option<Site> {
    (site as usize)
        .checked_sub(1)
        .map(|index| network.machine.further_sites[index])
}

/// Time in flight. As in Dimemas, it is 0 if bytes take no time.
fn in_flight(rate: Rate, flight: Time) -> Time {
    if rate.as_bytes_per_second() > 0.0 {
        flight
    } else {
        Time::ZERO
    }
}

fn site_per_byte(network: &Network, site: u32) -> TimePerByte {
    let own = further_site(network, site).and_then(|site| site.bandwidth);
    own.map_or_else(|| network.nic.per_byte(), TimePerByte::from_rate)
}

/// Divisor for a relative speed. A speed of 0 stands for computations that take no time.
fn speed(relative: f64) -> f64 {
    if relative > 0.0 {
        relative
    } else {
        f64::INFINITY
    }
}

/// Start-up time; less than a nanosecond counts as 0, as in Dimemas.
fn at_least_a_nanosecond(time: Time) -> Time {
    if time < Time::from_nanos(1.0) {
        Time::ZERO
    } else {
        time
    }
}

impl CostsShape {
    fn new(members: &[Rank], placement: &Placement) -> CostsShape {
        let mut nodes: Vec<(u32, Node)> = members
            .iter()
            .map(|rank| (placement.group(*rank).site, placement.node(*rank)))
            .collect();
        nodes.sort_unstable();
        let sites: Vec<SiteShape> = nodes
            .chunk_by(|a, b| a.0 == b.0)
            .map(|at_site| SiteShape::new(at_site, placement))
            .collect();
        let count = sites.iter().map(|site| site.nodes).sum();
        CostsShape {
            ranks: members.len() as u32,
            nodes: count,
            sites,
        }
    }
}

impl SiteShape {
    fn new(ranks: &[(u32, Node)], placement: &Placement) -> SiteShape {
        let mut on_nodes: Vec<(usize, u32)> = ranks
            .chunk_by(|a, b| a == b)
            .map(|chunk| (placement.group_index(chunk[0].1), chunk.len() as u32))
            .collect();
        let nodes = on_nodes.len() as u32;
        on_nodes.sort_unstable();
        on_nodes.dedup();
        SiteShape {
            site: ranks[0].0,
            nodes,
            first_group: placement.group_index(ranks[0].1),
            on_nodes,
        }
    }
}

/// Rule that selects the sends that wait for their receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rendezvous {
    /// Sends that the trace marks.
    #[default]
    AsRecorded,
    /// Sends of at least this size, whatever the trace says.
    From(Bytes),
}

impl Rendezvous {
    /// The network's rule, unless the caller overrides it.
    pub fn from_network(network: &Network, forced: Option<Bytes>) -> Rendezvous {
        match forced.or(network.point_to_point.rendezvous_from) {
            Some(from) => Rendezvous::From(from),
            None => Rendezvous::AsRecorded,
        }
    }

    fn holds_for(self, class: &MessageClass) -> bool {
        match self {
            Rendezvous::AsRecorded => class.mode.synchronous,
            Rendezvous::From(size) => class.size >= size,
        }
    }
}

/// Times of one kind of route, before they are applied to each message class.
pub(crate) struct RouteTimes {
    send_overhead: Time,
    recv_before: Time,
    recv_after: Time,
    latency: Time,
    gap: Time,
    per_byte: TimePerByte,
    rule: MessageRule,
    overheads: Overheads,
}

impl RouteTimes {
    /// Times of messages from a node of a group to other nodes.
    pub(crate) fn between(network: &Network, group: &NodeGroup) -> RouteTimes {
        let nic = &network.nic;
        let times = RouteTimes::new(
            network.point_to_point.rule,
            group.latency.unwrap_or(nic.latency),
            site_per_byte(network, group.site),
            nic.overhead,
            nic.gap,
        );
        let recv_before = if network.overheads.receive.is_empty() {
            times.recv_before
        } else {
            Time::ZERO
        };
        RouteTimes {
            recv_before,
            overheads: network.overheads.clone(),
            ..times
        }
    }

    /// Times of messages from a node of a group to another site. Under every rule the latency is processor time, because
    /// `nic` does not describe the network between sites.
    fn to_site(network: &Network, group: &NodeGroup, site: u32) -> RouteTimes {
        let wide_area = &network.machine.wide_area;
        let flight = wide_area.flight_time(group.site, site);
        RouteTimes::far(group.wide_area_latency, wide_area.bandwidth, flight)
    }

    fn by(network: &Network, connection: usize) -> RouteTimes {
        let connection = &network.machine.wide_area.connections[connection];
        RouteTimes::far(
            connection.latency,
            connection.bandwidth,
            connection.flight_time,
        )
    }

    fn far(latency: Time, rate: Rate, flight: Time) -> RouteTimes {
        let per_byte = TimePerByte::from_rate(rate);
        let near = RouteTimes::new(
            MessageRule::Dimemas,
            latency,
            per_byte,
            Time::ZERO,
            Time::ZERO,
        );
        RouteTimes {
            latency: in_flight(rate, flight),
            ..near
        }
    }

    fn inside(network: &Network, group: &NodeGroup) -> RouteTimes {
        let InsideNode { latency, rate } = group.inside();
        let per_byte = TimePerByte::from_rate(rate);
        RouteTimes::new(
            network.point_to_point.rule,
            latency,
            per_byte,
            Time::ZERO,
            Time::ZERO,
        )
    }

    fn new(
        rule: MessageRule,
        latency: Time,
        per_byte: TimePerByte,
        overhead: Time,
        gap: Time,
    ) -> RouteTimes {
        let none = Time::ZERO;
        let (send_overhead, recv_before, recv_after, latency, gap) = match rule {
            MessageRule::Hockney => (none, none, none, latency, none),
            MessageRule::Dimemas => {
                let latency = at_least_a_nanosecond(latency);
                (latency, latency, none, none, none)
            }
            MessageRule::Loggops => (overhead, none, overhead, latency, gap),
        };
        let overheads = Overheads::default();
        RouteTimes {
            send_overhead,
            recv_before,
            recv_after,
            latency,
            gap,
            per_byte,
            rule,
            overheads,
        }
    }

    /// Cost of a piece of this size that waits for no receiver, and the part of its delay that does not depend on the
    /// bandwidth.
    pub(crate) fn piece(&self, size: Bytes) -> (ClassCost, Time) {
        let class = MessageClass {
            size,
            tag: 0,
            communicator: 0,
            mode: SendMode::default(),
        };
        let cost = self.message_cost(&class, Rendezvous::AsRecorded);
        (cost, self.latency + cost.added_latency)
    }

    fn costs(&self, program: &Program, rendezvous: Rendezvous) -> PathCosts {
        PathCosts {
            send_overhead: self.send_overhead,
            recv_before: self.recv_before,
            recv_after: self.recv_after,
            latency: self.latency,
            gap: self.gap,
            classes: program
                .classes()
                .iter()
                .map(|class| self.message_cost(class, rendezvous))
                .collect(),
            accesses: program
                .accesses()
                .iter()
                .map(|access| self.access_cost(access))
                .collect(),
        }
    }

    fn access_cost(&self, access: &Access) -> ClassCost {
        let size = match access {
            Access::Transfer { size, .. } => *size,
            _ => Bytes(0),
        };
        let class = MessageClass {
            size,
            tag: 0,
            communicator: 0,
            mode: SendMode::default(),
        };
        ClassCost {
            rendezvous: false,
            ..self.class_cost(&class, Rendezvous::AsRecorded)
        }
    }

    /// Cost with the processor times and the latency by size. One-sided transfers have neither.
    fn message_cost(&self, class: &MessageClass, rendezvous: Rendezvous) -> ClassCost {
        let Overheads {
            send,
            receive,
            latency,
        } = &self.overheads;
        let (size, cost) = (class.size, self.class_cost(class, rendezvous));
        let added_latency = Overheads::at(latency, size).unwrap_or_default();
        ClassCost {
            send: Overheads::at(send, size).unwrap_or(self.send_overhead),
            receive: Overheads::at(receive, size).unwrap_or(self.recv_after),
            delay: cost.delay + added_latency,
            added_latency,
            ..cost
        }
    }

    fn class_cost(&self, class: &MessageClass, rendezvous: Rendezvous) -> ClassCost {
        let counted = match self.rule {
            MessageRule::Loggops => Bytes(class.size.0.saturating_sub(1)),
            MessageRule::Hockney | MessageRule::Dimemas => class.size,
        };
        let bytes = self.per_byte.time_for(counted);
        ClassCost {
            delay: self.latency + bytes,
            busy: if self.rule == MessageRule::Loggops {
                self.gap + bytes
            } else {
                Time::ZERO
            },
            bytes,
            held: if self.rule == MessageRule::Dimemas {
                Time::ZERO
            } else {
                bytes
            },
            rendezvous: rendezvous.holds_for(class),
            queues: class.mode.non_blocking,
            ..ClassCost::default()
        }
    }
}
