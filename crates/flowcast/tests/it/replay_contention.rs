//! Replay with limited links, buses and processors: compared with Dimemas' own times and, without limits, with the walk
//! without events; and limits that must never be exceeded.

use std::fs;

use crate::{
    random_programs::{Numbers, any_numbers, any_records, check_path, recorded},
    testing::{file, network_at, program_at, program_of},
};
use flowcast::{
    graph::EventGraph,
    model::{
        machine::Mapping,
        network::{MessageRule, Network},
    },
    observers::{flights::Flight, journal::ReplayJournal},
    replay::{
        ReplayEngine, SimulateError, contention, costs::Rendezvous, outcome::Outcome,
        placement::Placement, timeline::Activity, walk::Replay,
    },
    trace::{Program, slot::Slot},
    units::{Bytes, Node, Rank},
};
use proptest::prelude::*;

const DATA: &str = "tests/data";

/// Predicted time as Dimemas prints it: seconds with nine decimals, half nanoseconds rounded up.
fn printed(program: &Program, network: &Network, rendezvous: Rendezvous) -> String {
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let outcome = ReplayEngine::new(program, network, placement, rendezvous)
        .unwrap()
        .run()
        .unwrap();
    format!("{:.9}", (outcome.makespan().as_nanos() + 0.5).floor() / 1e9)
}

#[test]
fn hand_made_traces_take_as_long_as_in_dimemas() {
    let table = fs::read_to_string(file(DATA).join("dimemas/micro/REFERENCE_TIMES.txt")).unwrap();
    for line in table.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let program = program_at(format!("{DATA}/dimemas/micro/{}.dim", fields[0]));
        let network = network_at(DATA, &format!("dimemas-cfg/{}.cfg", fields[1]));
        assert_eq!(
            printed(&program, &network, Rendezvous::AsRecorded),
            fields[2],
            "{line}"
        );
    }
    assert_eq!(table.lines().count(), 22);
}

#[test]
fn each_rule_and_random_programs_take_as_long_as_in_dimemas() {
    let table = fs::read_to_string(file(DATA).join("dimemas/cases/cases.tsv")).unwrap();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let program = program_at(format!("{DATA}/dimemas/cases/{}", fields[0]));
        let network = network_at(DATA, &format!("dimemas/cases/{}", fields[1]));
        let rendezvous = fields[2]
            .parse::<u64>()
            .map_or(Rendezvous::AsRecorded, |from| Rendezvous::From(Bytes(from)));
        assert_eq!(printed(&program, &network, rendezvous), fields[3], "{line}");
    }
    assert_eq!(table.lines().count(), 99);
}

/// Limits of every kind; 0 is no limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    links: (u32, u32),
    buses: u32,
    links_inside: (u32, u32),
    buses_inside: u32,
    cpus: Option<u32>,
}

const UNLIMITED: Limits = Limits {
    links: (0, 0),
    buses: 0,
    links_inside: (0, 0),
    buses_inside: 0,
    cpus: None,
};

pub(crate) fn any_limits() -> impl Strategy<Value = Limits> {
    let links = || (0u32..4, 0u32..4);
    (
        links(),
        0u32..4,
        links(),
        0u32..3,
        proptest::option::of(1u32..4),
    )
        .prop_map(|(links, buses, links_inside, buses_inside, cpus)| Limits {
            links,
            buses,
            links_inside,
            buses_inside,
            cpus,
        })
}

impl Limits {
    pub(crate) fn on(self, numbers: &Numbers, ranks: usize) -> Network {
        let mut network = numbers.network(ranks);
        network.machine.buses = self.buses;
        let group = &mut network.machine.nodes[0];
        (group.in_links, group.out_links) = self.links;
        (group.intra_in_links, group.intra_out_links) = self.links_inside;
        group.intra_buses = self.buses_inside;
        group.cpus = self.cpus.unwrap_or(group.cpus);
        network
    }
}

fn contention<'a>(program: &'a Program, network: &Network, numbers: &Numbers) -> ReplayEngine<'a> {
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    ReplayEngine::limited(
        Replay::new(program, network, placement, numbers.rendezvous()).unwrap(),
        network,
    )
}

/// Largest number of concurrent intervals. An interval that ends at a time makes room for one that starts then.
fn overlap(intervals: &[(f64, f64)]) -> u32 {
    let mut edges: Vec<(f64, i32)> = intervals
        .iter()
        .flat_map(|(start, end)| [(*start, 1), (*end, -1)])
        .collect();
    edges.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let counts = edges.iter().scan(0, |running, (_, edge)| {
        *running += edge;
        Some(*running)
    });
    counts.max().unwrap_or(0) as u32
}

/// Intervals in which messages of a kind are on links or buses.
fn moving(
    program: &Program,
    journal: &ReplayJournal<'_>,
    bytes: impl Fn(&Flight) -> f64,
    chosen: impl Fn(Rank, Rank) -> bool,
) -> Vec<(f64, f64)> {
    let chosen = |slot: Slot| {
        let flight = journal.flight(slot);
        let moves = bytes(&flight) > 0.0 && chosen(flight.from, program.receiver(slot));
        moves
            .then(|| flight.start.map_or(f64::NAN, |start| start.as_nanos()))
            .map(|start| (start, start + bytes(&flight)))
    };
    (0..program.messages())
        .map(Slot)
        .filter_map(chosen)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn events_and_the_walk_give_exactly_the_same_without_limits(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let network = UNLIMITED.on(&numbers, program.ranks());
        let (walked, expected) = recorded(&program, |journal| numbers.replay(&program).observed(journal));
        let (outcome, journal) = recorded(&program, |journal| contention(&program, &network, &numbers).observed(journal));
        prop_assert_eq!(&outcome, &walked);
        prop_assert_eq!(journal.timeline(), expected.timeline());
    }

    #[test]
    fn no_more_messages_move_at_once_than_links_and_buses_allow(
        records in any_records(), numbers in any_numbers(), limits in any_limits(),
    ) {
        let program = records.program();
        let network = limits.on(&numbers, program.ranks());
        let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
        let (outcome, journal) = recorded(&program, |journal| contention(&program, &network, &numbers).observed(journal));
        let node = |rank: Rank| placement.node(rank);
        let size = |flight: &Flight| program.classes()[flight.class as usize].size.0;
        // LogGOPS counts one byte less.
        let counted = |flight: &Flight| match numbers.rule {
            MessageRule::Loggops => size(flight).saturating_sub(1) as f64,
            _ => size(flight) as f64,
        };
        let bytes = |flight: &Flight| counted(flight) * numbers.per_byte * (1.0 - 1e-9);
        let all = moving(&program, &journal, bytes, |from, to| node(from) != node(to));
        if limits.buses > 0 {
            prop_assert!(overlap(&all) <= limits.buses);
        }
        for number in (0..placement.nodes() as u32).map(Node) {
            let out = moving(&program, &journal, bytes, |from, to| node(from) == number && node(to) != number);
            let into = moving(&program, &journal, bytes, |from, to| node(to) == number && node(from) != number);
            match limits.links {
                (0, 0) => {}
                (0, links) | (links, 0) => prop_assert!(overlap(&[out, into].concat()) <= links),
                (in_links, out_links) => {
                    prop_assert!(overlap(&into) <= in_links && overlap(&out) <= out_links);
                    let received = |flight: &Flight| if flight.received.is_none() { 0.0 } else { bytes(flight) };
                    let into = moving(&program, &journal, received, |from, to| node(to) == number && node(from) != number);
                    let busy: f64 = into.iter().map(|(start, end)| end - start).sum();
                    prop_assert!(outcome.makespan().as_nanos() >= busy / f64::from(in_links) * (1.0 - 1e-9));
                }
            }
        }
    }

    #[test]
    fn processors_run_no_more_ranks_at_once_than_there_are(
        records in any_records(), numbers in any_numbers(), limits in any_limits(),
    ) {
        let program = records.program();
        let network = limits.on(&numbers, program.ranks());
        let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
        let (_, journal) = recorded(&program, |journal| contention(&program, &network, &numbers).observed(journal));
        for number in (0..placement.nodes() as u32).map(Node) {
            let busy: Vec<(f64, f64)> = (0..program.ranks() as u32)
                .map(Rank)
                .filter(|rank| placement.node(*rank) == number)
                .flat_map(|rank| journal.segments(rank))
                .filter(|segment| segment.activity == Activity::Compute)
                .map(|segment| (segment.start.as_nanos(), segment.end.as_nanos()))
                .collect();
            prop_assert!(overlap(&busy) <= network.machine.nodes[0].cpus);
        }
    }

    #[test]
    fn the_same_input_gives_the_same_times_and_their_causes_add_up(
        records in any_records(), numbers in any_numbers(), limits in any_limits(),
    ) {
        let program = records.program();
        let network = limits.on(&numbers, program.ranks());
        let engine = contention(&program, &network, &numbers);
        let (first, graph) = EventGraph::record(&engine).unwrap();
        prop_assert_eq!(&engine.run().unwrap(), &first);
        check_path(&graph.critical_path(), &first)?;
    }

    #[test]
    fn nodes_may_be_renumbered_where_no_two_events_coincide(
        records in any_records(), numbers in any_numbers(), limits in any_limits(), turn in 1usize..8, seed in any::<u64>(),
    ) {
        let numbers = Numbers { ranks_per_node: 1, ..numbers };
        let text = with_odd_computations(&records.to_dim(crate::random_programs::Offsets::Absent), seed);
        let program = program_of(text);
        let ranks = program.ranks();
        let network = Limits { cpus: None, ..limits }.on(&numbers, ranks);
        let turned = (0..ranks).map(|rank| ((rank + turn) % ranks) as u32).collect();
        let mut renumbered = network.clone();
        renumbered.machine.mapping = Some(Mapping::List(turned));
        let run = |network: &Network| -> Result<Outcome, SimulateError> { contention(&program, network, &numbers).run() };
        prop_assert_eq!(run(&renumbered), run(&network));
    }
}

/// Computations of odd lengths before each record, so that no two events happen at the same time.
fn with_odd_computations(text: &str, seed: u64) -> String {
    let mut state = seed;
    let mut odd = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut out = String::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        let (kind, rank) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        if ["2", "3", "10"].contains(&kind) {
            out.push_str(&format!("1:{rank}:0:{:.20}\n", odd() * 1e-4));
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[test]
fn possible_waits_of_ranks_or_messages_determine_the_engine() {
    let numbers = Numbers {
        rule: MessageRule::Dimemas,
        latency: 1000.0,
        per_byte: 1.0,
        overhead: 0.0,
        gap: 0.0,
        inside_latency: 0.0,
        inside_rate: 1e9,
        speed: 1.0,
        ranks_per_node: 1,
        rendezvous_from: None,
    };
    let needed = |limits: Limits, ranks_per_node| {
        let network = limits.on(
            &Numbers {
                ranks_per_node,
                ..numbers
            },
            4,
        );
        contention::is_needed(
            &network,
            &Placement::new(&network.machine, None, 4).unwrap(),
        )
    };
    assert!(!needed(UNLIMITED, 1) && !needed(UNLIMITED, 2));
    assert!(
        needed(
            Limits {
                links: (0, 1),
                ..UNLIMITED
            },
            1
        ) && needed(
            Limits {
                buses: 1,
                ..UNLIMITED
            },
            1
        )
    );
    let inside = Limits {
        buses_inside: 1,
        ..UNLIMITED
    };
    assert!(!needed(inside, 1) && needed(inside, 2));
    assert!(
        needed(
            Limits {
                cpus: Some(1),
                ..UNLIMITED
            },
            2
        ) && !needed(
            Limits {
                cpus: Some(2),
                ..UNLIMITED
            },
            2
        )
    );
}
