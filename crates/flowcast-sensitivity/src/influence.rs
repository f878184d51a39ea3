//! Parameters of a network without influence on a replay, and the reason: nothing in the program used them.
//!
//! A parameter is reported if the network sets it to something other than its default, or if the caller set it by name.
//! Without this report, a what-if on a parameter without influence would look like a result.

use flowcast_network::{
    collective::Repeats,
    file_system::FileSystem,
    machine::{
        Mapping, NodeGroup,
        random::Randomness,
        scheduler::Policy,
        wide_area::{Traffic, WideArea},
    },
    network::{Duplex, MessageRule, Network, Overheads, SingleFlowRate},
    network_file::upgrade::current_name,
    sharing::{Sharing, model::Model},
};
use flowcast_program::{
    access::{Access, size_of},
    opcodes::Op,
    program::Program,
};
use flowcast_replay::{
    costs::Rendezvous,
    outcome::Outcome,
    placement::Placement,
    routes::{Route, route},
};
use flowcast_units::{Bytes, Rank, Time};

/// Parameters that only some models read, with these models.
const PARAMETERS_OF: [(&str, &[Model]); 9] = [
    ("nic.wire_rate", &[Model::Packet]),
    ("backbone.wire_rate", &[Model::Packet]),
    ("bus.wire_rate", &[Model::Packet]),
    ("sharing.flow_cuts", &[Model::FlowCuts]),
    (
        "sharing.closed_loop",
        &[Model::ClosedLoop, Model::AlphaFair],
    ),
    ("sharing.alpha_fair", &[Model::AlphaFair]),
    (
        "sharing.asymmetric",
        &[Model::Asymmetric, Model::DegreeFair],
    ),
    ("sharing.ib_penalty", &[Model::IbPenalty]),
    ("sharing.packet", &[Model::Packet]),
];

/// A parameter without influence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// Dotted name, as in `--set`; for parameters of nodes, without the group.
    pub parameter: String,
    /// Reason: the event that did not happen.
    pub reason: &'static str,
}

/// A finished replay with its inputs, which determine the parameters that had no influence.
#[derive(Debug, Clone, Copy)]
pub struct FinishedReplay<'a> {
    /// The program that was replayed.
    pub program: &'a Program,
    /// The network that it was replayed on.
    pub network: &'a Network,
    /// Nodes on which the ranks ran.
    pub placement: &'a Placement,
    /// Rule by which sends waited for their receivers.
    pub rendezvous: Rendezvous,
    /// Model by which messages shared the network, if they did.
    pub model: Option<Model>,
    /// Outcome of the replay, with the times at which the ranks ended.
    pub outcome: &'a Outcome,
}

/// Presence of messages on one kind of route, and of bytes in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Traffics {
    messages: bool,
    bytes: bool,
}

/// Features of the network that a program used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Uses {
    between: Traffics,
    inside: Traffics,
    to_sites: Traffics,
    /// Indexed by connection: `true` if a message took it.
    connected: Vec<bool>,
    reached_rendezvous: bool,
    files: bool,
    collectives: bool,
    collectives_between_nodes: bool,
    collectives_between_sites: bool,
    computed: bool,
    /// `true` if the program computed on an accelerator. Stays `false` unless the network has an accelerator speed other
    /// than 1 or the caller sets one.
    accelerated: bool,
}

/// Parameters without influence, in the order of the network file. `asked` contains the dotted names that the caller set.
pub fn without_influence(done: &FinishedReplay, asked: &[String]) -> Vec<Unused> {
    let mut list = FieldList {
        asked: asked.iter().map(|name| bare(current_name(name))).collect(),
        unused: Vec::new(),
    };
    let uses = Uses::new(done, list.needs_accelerators(done));
    list.messages(done, &uses);
    done.model
        .into_iter()
        .for_each(|model| list.other_models(model));
    list.machine(done, &uses);
    list.scheduler(done, &uses);
    list.wide_area(done, &uses);
    list.random(done, &uses);
    list.check(
        "collectives",
        done.network.collectives.has_own_formula(),
        uses.collectives,
        "no collective operation",
    );
    list.check(
        "collectives.reduction",
        done.network.collectives.reduction.is_some(),
        !uses.collectives,
        "collectives by formula have no reduction cost",
    );
    list.check(
        "file_system",
        done.network.file_system != FileSystem::default(),
        uses.files,
        "no request to a file",
    );
    list.unused
}

/// Removes the indices of lists from a dotted name.
fn bare(name: &str) -> String {
    let parts = name
        .split('.')
        .filter(|part| *part != "*" && part.parse::<u64>().is_err());
    parts.collect::<Vec<_>>().join(".")
}

/// Number of instructions that are examined between two tests if the search can end.
const INSTRUCTIONS: usize = 64;

impl Uses {
    /// Examines the instructions until each feature has been found that the tables of the program allow, usually after a few
    /// instructions.
    fn new(done: &FinishedReplay, needs_accelerators: bool) -> Uses {
        let most = Uses::at_most(done, needs_accelerators);
        let mut uses = Uses {
            connected: vec![false; most.connected.len()],
            ..Uses::default()
        };
        for rank in Rank::all(done.program.streams()) {
            let mut ops = done.program.ops(rank).map(|(_, op)| op).peekable();
            while ops.peek().is_some() {
                if uses == most {
                    return uses;
                }
                ops.by_ref()
                    .take(INSTRUCTIONS)
                    .for_each(|op| uses.instruction(done, rank, op, &most));
            }
        }
        uses
    }

    /// Features that the program can use at most, from the tables of the program and the machine.
    fn at_most(done: &FinishedReplay, needs_accelerators: bool) -> Uses {
        let FinishedReplay {
            program,
            network,
            placement,
            rendezvous,
            outcome,
            ..
        } = *done;
        let accesses = program.accesses().iter();
        let sizes = program
            .classes()
            .iter()
            .map(|class| class.size)
            .chain(accesses.clone().filter_map(size_of));
        let on = |is_possible: bool| Traffics {
            messages: is_possible && sizes.clone().next().is_some(),
            bytes: is_possible && sizes.clone().any(|size| size > Bytes(0)),
        };
        let shares_nodes = placement.is_shared()
            || program.has_self_messages()
            || program.streams() > program.ranks()
            || accesses.clone().next().is_some();
        let computed = outcome.ranks.iter().any(|rank| rank.compute > Time::ZERO);
        let mut most = Uses {
            between: on(placement.nodes() > 1),
            inside: on(shares_nodes),
            to_sites: on(placement.sites() > 1),
            connected: vec![placement.sites() > 1; network.machine.wide_area.connections.len()],
            files: accesses
                .clone()
                .any(|access| matches!(access, Access::File { .. })),
            computed,
            accelerated: computed && needs_accelerators,
            ..Uses::default()
        };
        program
            .classes()
            .iter()
            .for_each(|class| most.rendezvous(rendezvous, class.size));
        program
            .calls()
            .iter()
            .for_each(|call| most.collective(done, call.communicator));
        most
    }

    fn instruction(&mut self, done: &FinishedReplay, rank: Rank, op: Op, most: &Uses) {
        let FinishedReplay {
            program,
            network,
            placement,
            ..
        } = *done;
        match op {
            Op::Send { class, slot } => {
                let class = program.class(class);
                let is_plain =
                    !most.inside.messages && !most.to_sites.messages && most.connected.is_empty();
                let route = if is_plain {
                    Route::Between
                } else {
                    let nodes = (placement.node(rank), placement.node(program.receiver(slot)));
                    route(network, placement, nodes, (class.tag, class.size))
                };
                self.message(route, class.size);
                self.rendezvous(done.rendezvous, class.size);
            }
            Op::Collective { call, .. } => self.collective(done, program.call(call).communicator),
            Op::Compute(time) => self.computed |= time > Time::ZERO,
            Op::Accelerator(time) => self.accelerated |= most.accelerated && time > Time::ZERO,
            Op::Access(access) => self.access(done, rank, program.access(access)),
            _ => {}
        }
    }

    fn rendezvous(&mut self, rendezvous: Rendezvous, size: Bytes) {
        if let Rendezvous::From(from) = rendezvous {
            self.reached_rendezvous |= size >= from;
        }
    }

    fn access(&mut self, done: &FinishedReplay, rank: Rank, access: &Access) {
        self.files |= matches!(access, Access::File { .. });
        let (Some(size), Some(target)) = (size_of(access), access.target()) else {
            return;
        };
        let nodes = (done.placement.node(rank), done.placement.node(target));
        self.message(route(done.network, done.placement, nodes, (0, size)), size);
    }

    fn message(&mut self, route: Route, size: Bytes) {
        let traffic = match route {
            Route::Between => &mut self.between,
            Route::Inside => &mut self.inside,
            Route::ToSite(_) => &mut self.to_sites,
            Route::By(connection) => return self.connected[connection] = true,
        };
        traffic.messages = true;
        traffic.bytes |= size > Bytes(0);
    }

    fn collective(&mut self, done: &FinishedReplay, communicator: u32) {
        self.collectives = true;
        if self.collectives_between_sites {
            return;
        }
        let members = &done.program.communicator(communicator).members;
        let nodes = || members.iter().map(|rank| done.placement.node(*rank));
        let site = |rank: &Rank| done.placement.group(*rank).site;
        self.collectives_between_nodes |= done.placement.nodes() > 1 && nodes().next().is_some();
        self.collectives_between_sites |=
            members.iter().any(|rank| site(rank) != site(&members[0]));
    }
}

/// The list under construction.
struct FieldList {
    asked: Vec<String>,
    unused: Vec<Unused>,
}

const ACCELERATOR_SPEED: &str = "machine.nodes.accelerator_speed";

fn has_accelerators(done: &FinishedReplay) -> bool {
    done.network
        .machine
        .nodes
        .iter()
        .any(|group| group.accelerator_speed != 1.0)
}

impl FieldList {
    /// `true` if the caller set the parameter, or one inside it.
    fn is_requested(&self, parameter: &str) -> bool {
        self.asked.iter().any(|name: &String| {
            name == parameter
                || name
                    .strip_prefix(parameter)
                    .is_some_and(|rest| rest.starts_with('.'))
        })
    }

    fn needs_accelerators(&self, done: &FinishedReplay) -> bool {
        has_accelerators(done) || self.is_requested(ACCELERATOR_SPEED)
    }

    /// Adds a parameter to the list if it is set, or the caller set it by name, and it was not used.
    fn check(&mut self, parameter: &str, set: bool, used: bool, reason: &'static str) {
        if !used && (set || self.is_requested(parameter)) {
            self.unused.push(Unused {
                parameter: parameter.to_owned(),
                reason,
            });
        }
    }

    fn messages(&mut self, done: &FinishedReplay, uses: &Uses) {
        const NONE: &str = "no message between nodes";
        let nic = &done.network.nic;
        let collective = uses.collectives_between_nodes;
        let messages = uses.between.messages;
        let bytes = uses.between.bytes || collective;
        let loggops = done.network.point_to_point.rule == MessageRule::Loggops;
        let threshold = done.network.point_to_point.rendezvous_from.is_some()
            || matches!(done.rendezvous, Rendezvous::From(_));
        self.check(
            "point_to_point.rendezvous_from",
            threshold,
            uses.reached_rendezvous,
            "no message is that long",
        );
        let is_recorded = done.rendezvous == Rendezvous::AsRecorded;
        let waits = is_recorded
            && done
                .program
                .classes()
                .iter()
                .any(|class| class.mode.synchronous);
        let waits = waits || uses.reached_rendezvous;
        self.check(
            "point_to_point.progress",
            false,
            waits,
            "no message waits for its receiver",
        );
        self.check(
            "nic.latency",
            nic.latency > Time::ZERO,
            messages || collective,
            NONE,
        );
        let name = match nic.rate.given_goodput() {
            Some(SingleFlowRate::Bandwidth(_)) => "nic.bandwidth",
            Some(SingleFlowRate::GapPerByte(_)) => "nic.gap_per_byte",
            None => "nic.wire_rate",
        };
        self.check(name, nic.rate().as_bytes_per_second() > 0.0, bytes, NONE);
        let reason = if loggops { NONE } else { "the rule ignores it" };
        self.check(
            "nic.overhead",
            nic.overhead > Time::ZERO,
            loggops && messages || collective,
            reason,
        );
        self.check("nic.gap", nic.gap > Time::ZERO, loggops && messages, reason);
        const NO_MODEL: &str = "messages do not share bandwidth under this model";
        let is_shared = done.model.is_some_and(|model| model != Model::Independent);
        self.check(
            "backbone",
            done.network.backbone.is_some(),
            is_shared,
            NO_MODEL,
        );
        self.check("bus", done.network.bus.is_some(), is_shared, NO_MODEL);
        let has_topology = done.network.topology.is_some();
        self.check("topology", has_topology, done.model.is_some(), NO_MODEL);
        self.check("nic.count", nic.count > 1, is_shared, NO_MODEL);
        self.check(
            "nic.duplex",
            nic.duplex != Duplex::Full,
            is_shared,
            NO_MODEL,
        );
        self.check(
            "sharing",
            done.network.sharing != Sharing::default(),
            is_shared,
            NO_MODEL,
        );
        self.check(
            "overheads",
            done.network.overheads != Overheads::default(),
            messages,
            NONE,
        );
    }

    /// Checks the parameters of other models. A network has parameters for all models, so they are reported only if the
    /// caller set one of them by name.
    fn other_models(&mut self, model: Model) {
        for (parameter, models) in PARAMETERS_OF {
            self.check(
                parameter,
                false,
                models.contains(&model),
                "a parameter of another model",
            );
        }
    }

    fn machine(&mut self, done: &FinishedReplay, uses: &Uses) {
        const INSIDE: &str = "no message inside a node";
        let independent = done.model == Some(Model::Independent);
        let never = if independent {
            "the model independent has no limits"
        } else {
            "never contended"
        };
        let waits = done.outcome.waits;
        let machine = &done.network.machine;
        let any = |set: fn(&NodeGroup) -> bool| machine.nodes.iter().any(set);
        let packets = done.model == Some(Model::Packet);
        let between = if packets {
            "packets wait at interfaces and switches instead"
        } else {
            never
        };
        let mut all_rows = std::iter::once(&done.network.collectives.default)
            .chain(done.network.collectives.rows.values());
        let in_collectives = uses.collectives_between_nodes
            && all_rows.any(|row: &flowcast_network::collective::Row| {
                [row.fan_in, row.fan_out]
                    .iter()
                    .any(|phase| phase.repeats == Repeats::Logarithmic)
            });
        let buses = machine.buses > 0 || machine.further_sites.iter().any(|site| site.buses > 0);
        self.check(
            "machine.buses",
            buses,
            waits.buses > 0 || in_collectives,
            between,
        );
        self.check(
            "machine.nodes.in_links",
            any(|group| group.in_links > 0),
            waits.links > 0,
            between,
        );
        self.check(
            "machine.nodes.out_links",
            any(|group| group.out_links > 0),
            waits.links > 0,
            between,
        );
        let fills = done.network.machine.mapping == Some(Mapping::Fill);
        let cpus = waits.processors > 0 || fills;
        let (set, reason) = match independent {
            true => (any(|group| group.cpus > 0), never),
            false => (
                any(|group| group.cpus > 1),
                "no rank waited for a processor",
            ),
        };
        self.check("machine.nodes.cpus", set, cpus, reason);
        self.check(
            "machine.processors",
            machine.processors > 0,
            waits.processors > 0,
            "no rank waited for a processor",
        );
        let inside = uses.inside.messages || uses.collectives;
        self.check(
            "machine.nodes.intra_latency",
            any(|group| {
                group
                    .intra_latency
                    .is_some_and(|latency| latency > Time::ZERO)
            }),
            inside,
            INSIDE,
        );
        let bandwidth = any(|group| {
            group
                .intra_bandwidth
                .is_some_and(|rate| rate.as_bytes_per_second() > 0.0)
        });
        self.check(
            "machine.nodes.intra_bandwidth",
            bandwidth,
            uses.inside.bytes || uses.collectives,
            INSIDE,
        );
        let contended = if uses.inside.messages { never } else { INSIDE };
        self.check(
            "machine.nodes.intra_in_links",
            any(links),
            waits.intra_links > 0,
            contended,
        );
        self.check(
            "machine.nodes.intra_out_links",
            any(links),
            waits.intra_links > 0,
            contended,
        );
        self.check(
            "machine.nodes.intra_buses",
            any(|group| group.intra_buses > 0),
            waits.intra_buses > 0,
            contended,
        );
        self.check(
            "machine.nodes.speed",
            any(|group| group.speed != 1.0),
            uses.computed,
            "no computation",
        );
        self.check(
            ACCELERATOR_SPEED,
            has_accelerators(done),
            uses.accelerated,
            "no computation on an accelerator",
        );
    }

    fn scheduler(&mut self, done: &FinishedReplay, uses: &Uses) {
        const ALONE: &str = "no rank waited for a processor";
        let waits = done.outcome.waits;
        let scheduler = &done.network.machine.scheduler;
        let shares = waits.processors > 0;
        let policy = scheduler.policy;
        self.check(
            "machine.scheduler.policy",
            policy != Policy::Fifo,
            shares,
            ALONE,
        );
        let quanta = shares && policy == Policy::RoundRobin && waits.preemptions > 0;
        self.check(
            "machine.scheduler.quantum",
            policy == Policy::RoundRobin,
            quanta,
            "no computation was interrupted",
        );
        let switches = scheduler.context_switch > Time::ZERO;
        let switched = switches && (uses.computed || uses.between.messages || uses.inside.messages);
        self.check(
            "machine.scheduler.context_switch",
            switches,
            switched,
            "no rank got a processor",
        );
        let priorities = !scheduler.priorities.is_empty();
        let ordered = shares && policy == Policy::Priority;
        self.check("machine.scheduler.priorities", priorities, ordered, ALONE);
        self.check(
            "machine.scheduler.preemptive",
            scheduler.preemptive,
            waits.preemptions > 0,
            "no rank was preempted",
        );
    }

    fn wide_area(&mut self, done: &FinishedReplay, uses: &Uses) {
        const NONE: &str = "no message between sites";
        let wide_area = &done.network.machine.wide_area;
        let waits = done.outcome.waits;
        let collective = uses.collectives_between_sites;
        let messages = uses.to_sites.messages || collective;
        let default = WideArea::default();
        let latency = done
            .network
            .machine
            .nodes
            .iter()
            .any(|group| group.wide_area_latency > Time::ZERO);
        self.check("machine.nodes.wide_area_latency", latency, messages, NONE);
        self.check(
            "machine.wide_area.bandwidth",
            wide_area.bandwidth != default.bandwidth,
            messages,
            NONE,
        );
        let flights = wide_area
            .flight_times
            .iter()
            .flatten()
            .any(|time| *time > Time::ZERO);
        self.check("machine.wide_area.flight_times", flights, messages, NONE);
        let several = done.placement.sites() > 1;
        let contended = if uses.to_sites.messages {
            "never contended"
        } else {
            NONE
        };
        self.check(
            "machine.wide_area.in_links",
            several && wide_area.in_links > 0,
            waits.wide_area_links > 0,
            contended,
        );
        self.check(
            "machine.wide_area.out_links",
            several && wide_area.out_links > 0,
            waits.wide_area_links > 0,
            contended,
        );
        let counts = uses.to_sites.bytes && wide_area.traffic_weight > 0.0;
        let reason = if wide_area.traffic_weight > 0.0 {
            NONE
        } else {
            "the program's own traffic has no weight"
        };
        let maximum = wide_area.max_traffic.as_bytes_per_second() > 0.0;
        self.check(
            "machine.wide_area.traffic",
            wide_area.traffic != Traffic::Constant,
            counts && maximum,
            reason,
        );
        self.check(
            "machine.wide_area.max_traffic",
            maximum,
            counts && wide_area.traffic != Traffic::Constant,
            reason,
        );
        let rows = wide_area.collectives != default.collectives;
        self.check(
            "machine.wide_area.collectives",
            rows,
            collective,
            "no collective operation between sites",
        );
        for (number, messages) in uses.connected.iter().enumerate() {
            let name = format!("machine.wide_area.connections.{number}");
            self.check(&name, true, *messages, "no message used it");
        }
    }

    fn random(&mut self, done: &FinishedReplay, uses: &Uses) {
        let random: &Randomness = &done.network.machine.random;
        let Uses {
            between,
            inside,
            to_sites,
            ..
        } = *uses;
        let drawn = random.varies();
        self.check(
            "machine.random.seed",
            random.seed != 0,
            drawn,
            "nothing is random",
        );
        self.check(
            "machine.random.speed",
            random.speed.varies(),
            uses.computed,
            "no computation",
        );
        const BETWEEN: &str = "no message between nodes";
        const INSIDE: &str = "no message inside a node";
        const SITES: &str = "no message between sites";
        self.check(
            "machine.random.latency",
            random.latency.varies(),
            between.messages,
            BETWEEN,
        );
        let packets = done.model == Some(Model::Packet);
        let reason = if packets {
            "packets have the wire rate"
        } else {
            BETWEEN
        };
        self.check(
            "machine.random.bandwidth",
            random.bandwidth.varies(),
            between.bytes && !packets,
            reason,
        );
        self.check(
            "machine.random.intra_latency",
            random.intra_latency.varies(),
            inside.messages,
            INSIDE,
        );
        self.check(
            "machine.random.intra_bandwidth",
            random.intra_bandwidth.varies(),
            inside.bytes,
            INSIDE,
        );
        self.check(
            "machine.random.wide_area_latency",
            random.wide_area_latency.varies(),
            to_sites.messages,
            SITES,
        );
        self.check(
            "machine.random.wide_area_bandwidth",
            random.wide_area_bandwidth.varies(),
            to_sites.bytes,
            SITES,
        );
    }
}

fn links(group: &NodeGroup) -> bool {
    group.intra_in_links + group.intra_out_links > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_formats::{
        convert::{
            generate::{ProgramShape, Workload},
            write,
        },
        read_text,
    };
    use flowcast_network::machine::Machine;
    use flowcast_program::Trace;
    use flowcast_replay::walk::Replay;
    use proptest::prelude::*;

    fn program(shape: ProgramShape) -> Program {
        let mut text = Vec::new();
        write::dim(shape, &mut text).unwrap();
        match read_text("generated.dim", text).unwrap() {
            Trace::Program(program) => program,
            _ => unreachable!("a trace of Dimemas is a program"),
        }
    }

    proptest! {
        #[test]
        fn an_early_stop_finds_the_same_as_all_instructions(
            workload in 0..Workload::ALL.len(), ranks in 1u32..9, iterations in 0u32..20, size in 0u64..3,
            compute in 0u32..2, each in 1u32..4, from in 0u64..3, needs_accelerators: bool,
        ) {
            let workload = Workload::ALL[workload];
            let compute = Time::from_nanos(f64::from(compute));
            let shape = ProgramShape { workload, ranks, iterations, size: Bytes(size), compute, jitter: 0.0, seed: 1, period: 0 };
            let program = program(shape);
            let network = Network { machine: Machine::default(), ..flowcast_network::builtin::network("gige-tcp").unwrap() };
            let mapping = Mapping::PerNode(each);
            let placement = Placement::of_program(&network.machine, Some(&mapping), &program).unwrap();
            let rendezvous = Rendezvous::From(Bytes(from));
            let replay = Replay::new(&program, &network, placement.clone(), rendezvous).unwrap();
            let Ok(outcome) = replay.run() else { return Ok(()) };
            let (program, network, placement, outcome) = (&program, &network, &placement, &outcome);
            let done = FinishedReplay { program, network, placement, rendezvous, model: None, outcome };
            // With this upper bound, the search does not end before the last instruction.
            let everything = Traffics { messages: true, bytes: true };
            let most = Uses { inside: everything, accelerated: needs_accelerators, ..Uses::default() };
            let mut all = Uses::default();
            for rank in Rank::all(program.streams()) {
                program.ops(rank).for_each(|(_, op)| all.instruction(&done, rank, op, &most));
            }
            prop_assert_eq!(Uses::new(&done, needs_accelerators), all);
        }
    }
}
