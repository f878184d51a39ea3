//! What the messages of a program cost on a network, computed once before a replay.
//!
//! | rule | sender's processor | message arrives after it | receiver's processor |
//! |---|---|---|---|
//! | Hockney | 0 | `L + S/BW` | 0 |
//! | Dimemas | `L` | `S/BW` | `L`, spent before looking for the message |
//! | LogGOPS | `o` | `L + (S-1)G` | `o`, spent on the message that has come |
//!
//! Under LogGOPS a sending interface also rests `g + (S-1)G` from one start to the next.

use super::placement::Placement;
use crate::model::collective::{CollectiveOp, PhaseMessage, Row};
use crate::model::machine::NodeGroup;
use crate::model::network::{Network, Rule};
use crate::trace::program::{MessageClass, Program};
use crate::units::{Bytes, Node, Rank, Time, TimePerByte};

/// Times of one message class, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClassCost {
    /// From the end of the sender's overhead to the last byte at the receiver.
    pub delay: f64,
    /// From one start at the sending interface to the next.
    pub busy: f64,
    /// How long a sender that waited for its receiver is held by the transfer.
    pub held: f64,
    /// How long the message keeps its links.
    pub bytes: f64,
    /// Whether the sender waits for the receiver.
    pub rendezvous: bool,
}

/// What a message costs on one kind of way: from a node of some group to itself or to another node.
#[derive(Debug, Clone)]
pub struct PathCosts {
    /// Sender's processor time.
    pub send_overhead: f64,
    /// Receiver's processor time before it takes the message.
    pub recv_before: f64,
    /// Receiver's processor time on the message that has come.
    pub recv_after: f64,
    /// The part of the delay that no bandwidth would shorten.
    pub latency: f64,
    /// The part of the rest between two starts that no bandwidth would shorten.
    pub gap: f64,
    /// By message class.
    pub classes: Vec<ClassCost>,
}

/// Everything that the replay of a program on a network needs to know about time.
#[derive(Debug, Clone)]
pub struct Costs {
    /// By kind of way: two for each group of nodes (between nodes, inside a node).
    pub paths: Vec<PathCosts>,
    /// Divides a rank's computations.
    pub speeds: Vec<f64>,
    communicators: Vec<Shape>,
    network: Network,
    groups: Vec<NodeGroup>,
    group_of_rank: Vec<usize>,
    machine_nodes: usize,
}

/// How the ranks of a communicator lie on the nodes.
#[derive(Debug, Clone)]
struct Shape {
    nodes: u32,
    /// Distinct pairs of group and number of tasks on a node.
    on_nodes: Vec<(usize, u32)>,
}

impl Costs {
    /// Computes all costs.
    pub fn new(program: &Program, network: &Network, placement: &Placement, rendezvous: Rendezvous) -> Costs {
        let groups = placement.groups().to_vec();
        let ways = groups.iter().flat_map(|group| [Way::between(network, group), Way::inside(network, group)]);
        let paths = ways.map(|way| way.costs(program.classes(), rendezvous)).collect();
        let ranks = (0..program.ranks() as u32).map(Rank);
        let group_of_rank: Vec<usize> = ranks.map(|rank| placement.group_index(placement.node(rank))).collect();
        Costs {
            paths,
            speeds: group_of_rank.iter().map(|group| speed(&groups[*group])).collect(),
            communicators: program.communicators().iter().map(|known| Shape::new(&known.members, placement)).collect(),
            network: network.clone(),
            groups,
            group_of_rank,
            machine_nodes: placement.nodes(),
        }
    }

    /// Whether any sender waits for its receiver.
    pub fn has_rendezvous(&self) -> bool {
        self.paths.iter().any(|path| path.classes.iter().any(|class| class.rendezvous))
    }

    /// Whether the same sends wait for their receiver, for programs and machines that are otherwise alike.
    pub fn waits_like(&self, other: &Costs) -> bool {
        let waits = |path: &PathCosts| path.classes.iter().map(|class| class.rendezvous).collect::<Vec<_>>();
        self.paths.iter().map(waits).eq(other.paths.iter().map(waits))
    }

    /// Index of the group of the node of a rank. Of a rank, the costs of collectives depend on nothing else.
    pub fn group_index(&self, rank: Rank) -> usize {
        self.group_of_rank[rank.index()]
    }

    /// What a collective takes after all have come: the phases inside the nodes and between them.
    pub fn collective(&self, op: CollectiveOp, communicator: u32, root: Rank, sizes: (Bytes, Bytes)) -> f64 {
        let shape = &self.communicators[communicator as usize];
        let row = self.network.collectives.row(op);
        let group = &self.groups[self.group_of_rank[root.index()]];
        let between = if self.machine_nodes > 1 {
            let message = self.between_message(group, sizes);
            row.time(message, shape.nodes, self.network.machine.buses)
        } else {
            Time::ZERO
        };
        let inside = shape.on_nodes.iter().map(|(group, tasks)| self.inside_time(row, *group, *tasks, sizes));
        (inside.fold(Time::ZERO, Time::max) + between).as_nanos()
    }

    fn between_message(&self, group: &NodeGroup, (send, recv): (Bytes, Bytes)) -> PhaseMessage {
        let nic = &self.network.nic;
        let latency = group.latency.unwrap_or(nic.latency) + nic.overhead * 2.0;
        PhaseMessage { latency, bandwidth: nic.rate(), send, recv }
    }

    fn inside_time(&self, row: Row, group: usize, tasks: u32, (send, recv): (Bytes, Bytes)) -> Time {
        let group = &self.groups[group];
        let message = PhaseMessage { latency: group.intra_latency, bandwidth: group.intra_bandwidth, send, recv };
        row.time(message, tasks, 0)
    }

    /// Start-up of an immediate or root-synchronous collective and of the wait for one; none below a nanosecond.
    ///
    /// Dimemas cuts it to whole nanoseconds where it starts a collective, not where it waits for one.
    pub fn collective_startup(&self, communicator: u32, rank: Rank) -> f64 {
        let shape = &self.communicators[communicator as usize];
        let group = &self.groups[self.group_of_rank[rank.index()]];
        let between = if shape.nodes > 1 { group.latency.unwrap_or(self.network.nic.latency) } else { Time::ZERO };
        let shares = shape.on_nodes.iter().any(|(_, tasks)| *tasks > 1);
        let inside = if shares { group.intra_latency } else { Time::ZERO };
        at_least_a_nanosecond(between.max(inside).as_nanos())
    }

    /// How long a rank's data takes to the root of a root-synchronous collective.
    pub fn to_root(&self, same_node: bool, rank: Rank, size: Bytes) -> f64 {
        let group = &self.groups[self.group_of_rank[rank.index()]];
        let rate = if same_node { group.intra_bandwidth } else { self.network.nic.rate() };
        TimePerByte::from_rate(rate).time_for(size).as_nanos()
    }
}

/// A speed of 0 stands for computations that take no time.
fn speed(group: &NodeGroup) -> f64 {
    if group.speed > 0.0 { group.speed } else { f64::INFINITY }
}

/// The tool counts a start-up below a nanosecond as none.
fn at_least_a_nanosecond(nanos: f64) -> f64 {
    if nanos < 1.0 { 0.0 } else { nanos }
}

impl Shape {
    fn new(members: &[Rank], placement: &Placement) -> Shape {
        let mut nodes: Vec<Node> = members.iter().map(|rank| placement.node(*rank)).collect();
        nodes.sort_unstable();
        let mut on_nodes: Vec<(usize, u32)> =
            nodes.chunk_by(|a, b| a == b).map(|chunk| (placement.group_index(chunk[0]), chunk.len() as u32)).collect();
        let count = on_nodes.len() as u32;
        on_nodes.sort_unstable();
        on_nodes.dedup();
        Shape { nodes: count, on_nodes }
    }
}

/// Which sends wait for their receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rendezvous {
    /// Those that the trace marks.
    #[default]
    AsRecorded,
    /// Those of at least this size, whatever the trace says.
    From(Bytes),
}

impl Rendezvous {
    /// As a network wants it, unless the caller overrides it.
    pub fn of(network: &Network, forced: Option<Bytes>) -> Rendezvous {
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

/// One kind of way before it is multiplied out over the message classes.
struct Way {
    send_overhead: Time,
    recv_before: Time,
    recv_after: Time,
    latency: Time,
    gap: Time,
    per_byte: TimePerByte,
    rule: Rule,
}

impl Way {
    fn between(network: &Network, group: &NodeGroup) -> Way {
        let nic = &network.nic;
        Way::new(
            network.point_to_point.rule,
            group.latency.unwrap_or(nic.latency),
            nic.per_byte(),
            (nic.overhead, nic.gap),
        )
    }

    fn inside(network: &Network, group: &NodeGroup) -> Way {
        let per_byte = TimePerByte::from_rate(group.intra_bandwidth);
        Way::new(network.point_to_point.rule, group.intra_latency, per_byte, (Time::ZERO, Time::ZERO))
    }

    fn new(rule: Rule, latency: Time, per_byte: TimePerByte, (overhead, gap): (Time, Time)) -> Way {
        let none = Time::ZERO;
        let (send_overhead, recv_before, recv_after, latency, gap) = match rule {
            Rule::Hockney => (none, none, none, latency, none),
            Rule::Dimemas => {
                let latency = Time::from_nanos(at_least_a_nanosecond(latency.as_nanos()));
                (latency, latency, none, none, none)
            }
            Rule::Loggops => (overhead, none, overhead, latency, gap),
        };
        Way { send_overhead, recv_before, recv_after, latency, gap, per_byte, rule }
    }

    fn costs(&self, classes: &[MessageClass], rendezvous: Rendezvous) -> PathCosts {
        PathCosts {
            send_overhead: self.send_overhead.as_nanos(),
            recv_before: self.recv_before.as_nanos(),
            recv_after: self.recv_after.as_nanos(),
            latency: self.latency.as_nanos(),
            gap: self.gap.as_nanos(),
            classes: classes.iter().map(|class| self.class_cost(class, rendezvous)).collect(),
        }
    }

    fn class_cost(&self, class: &MessageClass, rendezvous: Rendezvous) -> ClassCost {
        let counted = match self.rule {
            Rule::Loggops => Bytes(class.size.0.saturating_sub(1)),
            Rule::Hockney | Rule::Dimemas => class.size,
        };
        let bytes = self.per_byte.time_for(counted).as_nanos();
        ClassCost {
            delay: self.latency.as_nanos() + bytes,
            busy: if self.rule == Rule::Loggops { self.gap.as_nanos() + bytes } else { 0.0 },
            bytes,
            held: if self.rule == Rule::Dimemas { 0.0 } else { bytes },
            rendezvous: rendezvous.holds_for(class),
        }
    }
}
