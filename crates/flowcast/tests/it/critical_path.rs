//! The critical path adds up to the makespan, and it limits the program: costs on it cannot grow without the makespan.

use std::collections::BTreeSet;

use crate::replay_contention::any_limits;
use crate::{
    random_programs::{Numbers, any_numbers, any_records, check_path},
    testing::{all, dim_head, program_of},
};
use flowcast::{
    graph::{EventGraph, critical_path::CriticalPath},
    model::{
        network::{MessageRule, Progress},
        sharing::model::Model,
    },
    replay::{ReplayEngine, outcome::Outcome, placement::Placement, time_part::TimePart},
    trace::Program,
    units::{Rank, Time},
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

/// Latency 20 ns, 0.1 ns for each byte, overhead 5 ns, gap 7 ns, one rank on each node.
const NUMBERS: Numbers = Numbers {
    rule: MessageRule::Hockney,
    latency: 20.0,
    per_byte: 0.1,
    overhead: 5.0,
    gap: 7.0,
    inside_latency: 0.0,
    inside_rate: 0.0,
    speed: 1.0,
    ranks_per_node: 1,
    rendezvous_from: None,
};

fn path_of(ranks: &[&str], numbers: Numbers) -> CriticalPath {
    let program = program_of(dim_head(ranks.len(), &[all(2)]) + &ranks.concat());
    recorded(&numbers.replay(&program).into()).1
}

fn recorded(engine: &ReplayEngine<'_>) -> (Outcome, CriticalPath) {
    let (outcome, graph) = EventGraph::record(engine).unwrap();
    (outcome, graph.critical_path())
}

fn shares(path: &CriticalPath) -> Vec<(&'static str, f64)> {
    path.shares()
        .iter()
        .map(|share| (share.limit.name(), share.time.as_nanos()))
        .collect()
}

const SEND_1000: &str = "1:0:0:0.000000100\n2:0:0:1:-1:1000:0:1:0\n";
const RECV: &str = "1:1:0:0.000000010\n3:1:0:0:-1:1000:0:1:0\n1:1:0:0.000000050\n";

#[test]
fn a_late_message_leads_to_its_sender() {
    let path = path_of(&[SEND_1000, RECV], NUMBERS);
    assert_eq!(
        shares(&path),
        [("compute", 150.0), ("bandwidth", 100.0), ("latency", 20.0)]
    );
    assert_eq!(
        path.ranks(),
        [
            (Rank(1), Time::from_nanos(170.0)),
            (Rank(0), Time::from_nanos(100.0))
        ]
    );
    assert_eq!(path.sentence(), "compute 56 %, bandwidth 37 %, latency 7 %");
    assert_eq!(
        path.reason(),
        "compute-bound: 150.0 ns of computation on the critical path, spread over 2 ranks, most on rank 0 (100.0 ns)"
    );
}

#[test]
fn an_early_message_leaves_the_receiver_alone() {
    let late = "1:1:0:0.000001000\n3:1:0:0:-1:1000:0:1:0\n";
    let path = path_of(&[SEND_1000, late], NUMBERS);
    assert_eq!(shares(&path), [("compute", 1000.0)]);
    assert_eq!(
        path.reason(),
        "compute-bound: 1.000 us of computation on the critical path, all of it on rank 1"
    );
}

#[test]
fn start_ups_of_dimemas_are_overhead_at_sender_and_receiver() {
    let path = path_of(
        &[SEND_1000, RECV],
        Numbers {
            rule: MessageRule::Dimemas,
            ..NUMBERS
        },
    );
    assert_eq!(
        shares(&path),
        [("compute", 150.0), ("bandwidth", 100.0), ("overhead", 20.0)]
    );
}

#[test]
fn a_rendezvous_that_waited_leads_to_its_receiver_from_both_sides() {
    let send = "1:0:0:0.000000100\n2:0:0:1:-1:1000:0:1:1\n1:0:0:0.000000900\n";
    let late = "1:1:0:0.000000500\n3:1:0:0:-1:1000:0:1:0\n";
    let path = path_of(&[send, late], NUMBERS);
    // Rank 0 continues when its 1000 bytes have left: 500 + 100.
    assert_eq!(shares(&path), [("compute", 1400.0), ("bandwidth", 100.0)]);
    let path = path_of(
        &[send.trim_end_matches("1:0:0:0.000000900\n"), late],
        NUMBERS,
    );
    assert_eq!(
        shares(&path),
        [("compute", 500.0), ("bandwidth", 100.0), ("latency", 20.0)]
    );
}

#[test]
fn an_interface_in_its_gap_leads_to_the_previous_message() {
    let sends = "2:0:0:1:-1:1001:0:1:0\n".repeat(3);
    let recvs = "3:1:0:0:-1:1001:0:1:0\n".repeat(3);
    let path = path_of(
        &[&sends, &recvs],
        Numbers {
            rule: MessageRule::Loggops,
            ..NUMBERS
        },
    );
    // Starts are 107 ns apart; the last message then takes o + L + 1000 G + o.
    assert_eq!(
        shares(&path),
        [
            ("bandwidth", 300.0),
            ("latency", 20.0),
            ("gap", 14.0),
            ("overhead", 10.0)
        ]
    );
    assert_eq!(
        path.reason(),
        "bandwidth-bound: 3.003 kB on the critical path take 300.0 ns"
    );
}

#[test]
fn a_collective_leads_to_the_last_rank_to_arrive() {
    let early = "1:0:0:0.000000010\n10:0:0:0:1:1:0:0:0:1\n1:0:0:0.000000005\n";
    let late = "1:1:0:0.000000090\n10:1:0:0:1:0:0:0:0:1\n";
    // A barrier of two ranks: fan-in and fan-out take one start-up each, L + 2o.
    let path = path_of(&[early, late], NUMBERS);
    assert_eq!(shares(&path), [("compute", 95.0), ("collective", 60.0)]);
    assert_eq!(path.ranks()[0], (Rank(1), Time::from_nanos(90.0)));
}

#[test]
fn many_small_messages_are_latency() {
    let (mut left, mut right) = (String::new(), String::new());
    for _ in 0..1000 {
        left += "2:0:0:1:-1:0:0:1:0\n3:0:0:1:-1:0:0:1:0\n";
        right += "3:1:0:0:-1:0:0:1:0\n2:1:0:0:-1:0:0:1:0\n";
    }
    let path = path_of(&[&left, &right], NUMBERS);
    assert_eq!(path.sentence(), "latency 100 %");
    assert_eq!(
        path.reason(),
        "latency-bound: 2,000 messages on the critical path, 20.00 ns of latency each"
    );
}

#[test]
fn a_program_without_time_has_no_path() {
    let path = path_of(&["0:0:0\n", "0:1:0\n"], NUMBERS);
    assert_eq!((path.shares().len(), path.steps.len()), (0, 0));
    assert_eq!(
        (path.sentence(), path.reason()),
        (
            "nothing takes time".to_owned(),
            "nothing takes time".to_owned()
        )
    );
}

#[test]
fn the_random_programs_reach_every_limit() {
    let mut runner = TestRunner::deterministic();
    let seen: BTreeSet<TimePart> = (0..300)
        .flat_map(|_| {
            let records = any_records().new_tree(&mut runner).unwrap().current();
            let numbers = any_numbers().new_tree(&mut runner).unwrap().current();
            let program = records.program();
            recorded(&numbers.replay(&program).into())
                .1
                .shares()
                .into_iter()
                .map(|share| share.limit)
                .collect::<Vec<_>>()
        })
        .collect();
    // Without limited links and processors there are no queues.
    let unreached = [TimePart::Contention, TimePart::Processor, TimePart::Other];
    let expected: BTreeSet<TimePart> = TimePart::LIMITS
        .into_iter()
        .filter(|limit| !unreached.contains(limit))
        .collect();
    assert_eq!(seen, expected);
}

fn makespan(numbers: &Numbers, program: &Program) -> f64 {
    numbers.replay(program).run().unwrap().makespan().as_nanos()
}

fn share(path: &CriticalPath, limit: TimePart) -> f64 {
    path.shares()
        .iter()
        .filter(|share| share.limit == limit)
        .map(|share| share.time.as_nanos())
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_steps_fill_the_makespan_and_none_is_without_cause(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let (outcome, path) = recorded(&numbers.replay(&program).into());
        check_path(&path, &outcome)?;
    }

    #[test]
    fn the_steps_fill_the_makespan_where_messages_share_or_wait_for_calls(
        records in any_records(), numbers in any_numbers(), limits in any_limits(),
        model in prop_oneof![Just(Model::Independent), Just(Model::Fair), Just(Model::ClosedLoop)],
        is_limited: bool, in_calls: bool,
    ) {
        let program = records.program();
        let ranks = program.ranks();
        let mut network = if is_limited { limits.on(&numbers, ranks) } else { numbers.network(ranks) };
        if in_calls {
            network.point_to_point.progress = Progress::InCalls;
        }
        let placement = Placement::new(&network.machine, None, ranks).unwrap();
        let engine = ReplayEngine::sharing(&program, &network, placement, numbers.rendezvous(), model).unwrap();
        let (outcome, path) = recorded(&engine);
        check_path(&path, &outcome)?;
    }

    #[test]
    fn no_cost_on_the_path_can_grow_without_delay(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let (outcome, path) = recorded(&numbers.replay(&program).into());
        let before = outcome.makespan().as_nanos();
        let part = |limit| share(&path, limit);
        let slower = 1.25;
        let grown = [
            (Numbers { speed: numbers.speed / slower, ..numbers }, part(TimePart::Compute)),
            (
                Numbers { per_byte: numbers.per_byte * slower, inside_rate: numbers.inside_rate / slower, ..numbers },
                part(TimePart::Bandwidth),
            ),
            (
                Numbers {
                    latency: numbers.latency * slower,
                    inside_latency: numbers.inside_latency * slower,
                    overhead: numbers.overhead * slower,
                    ..numbers
                },
                part(TimePart::Latency) + part(TimePart::Overhead),
            ),
            (Numbers { gap: numbers.gap * slower, ..numbers }, part(TimePart::Gap)),
        ];
        for (numbers, share) in grown {
            let bound = before + share * (slower - 1.0);
            let after = makespan(&numbers, &program);
            // Start-ups of collectives are counted in whole nanoseconds.
            prop_assert!(after >= bound * (1.0 - 1e-9) - 60.0, "{after} < {bound}: {path:?}");
        }
    }
}
