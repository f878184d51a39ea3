//! Non-blocking collectives that have been expanded to messages: they progress beside their rank, and the rank waits for
//! them where the program does.

use crate::{
    random_programs::{any_records, explained, recorded},
    testing::{all, dim, program_of},
};
use flowcast::{
    graph::EventGraph,
    model::{
        algorithm::{Algorithm, AlgorithmTable, Base},
        machine::NodeGroup,
        network::{LinkRate, MessageRule, Network},
        sharing::model::Model,
    },
    observers::journal::{JournalContents, ReplayJournal},
    replay::{
        ReplayEngine, SimulateError,
        costs::Rendezvous,
        placement::Placement,
        sweep::{self, WhatIf},
        walk::Replay,
    },
    trace::{
        Program, ReadOptions, compiled,
        expand::{NonBlocking, expand},
    },
    units::{CollectiveOp, Rank, Rate, Time},
};
use proptest::prelude::*;

/// Records of one rank.
fn compute(micros: u32) -> String {
    format!("1:0.{micros:06}000\n")
}

fn call(op: CollectiveOp, communicator: u32, bytes: u64, (is_root, mode): (bool, u8)) -> String {
    format!(
        "10:{}:{communicator}:{}:0:{bytes}:{bytes}:{mode}\n",
        op as u8,
        u8::from(is_root)
    )
}

const BLOCKING: u8 = 1;
const IMMEDIATE: u8 = 0;

fn wait(op: CollectiveOp, communicator: u32) -> String {
    format!("10:{}:{communicator}:0:0:0:0:2\n", op as u8)
}

fn messages_of(program: &Program, table: &AlgorithmTable) -> Program {
    expand(
        program,
        table,
        NonBlocking::Expanded,
        ReadOptions::default(),
    )
    .unwrap()
    .program
}

fn by(op: CollectiveOp, algorithm: &str) -> AlgorithmTable {
    AlgorithmTable::from_toml(&format!("[rows]\n{} = ['{algorithm}']", op.name()))
        .unwrap()
        .with_base()
}

/// 10 us, and 1 byte per nanosecond.
fn network(rule: MessageRule) -> Network {
    let mut network = flowcast::model::builtin::network("gige-lam").unwrap();
    network.point_to_point.rule = rule;
    network.nic.latency = Time::from_micros(10.0);
    network.nic.overhead = Time::from_micros(2.0);
    network.nic.rate = LinkRate::Goodput(Rate::from_bytes_per_second(1e9).into());
    network
}

/// One link each way and one processor.
fn limited(rule: MessageRule) -> Network {
    let mut network = network(rule);
    network.machine.nodes = vec![NodeGroup {
        count: 0,
        in_links: 1,
        out_links: 1,
        ..NodeGroup::default()
    }];
    network
}

fn engine<'a>(program: &'a Program, network: &Network) -> ReplayEngine<'a> {
    let placement = Placement::of_program(&network.machine, None, program).unwrap();
    ReplayEngine::new(
        program,
        network,
        placement,
        Rendezvous::from_network(network, None),
    )
    .unwrap()
}

fn sharing<'a>(program: &'a Program, network: &Network) -> ReplayEngine<'a> {
    let placement = Placement::of_program(&network.machine, None, program).unwrap();
    let model = Model::named("fair").unwrap();
    ReplayEngine::sharing(
        program,
        network,
        placement,
        Rendezvous::from_network(network, None),
        model,
    )
    .unwrap()
}

fn micros(engine: &ReplayEngine<'_>) -> f64 {
    engine.run().unwrap().makespan().as_nanos() / 1e3
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * a.abs().max(b.abs()).max(1.0)
}

/// Ranks that arrive one after the other, call, compute in some cases, and wait.
fn staggered(op: CollectiveOp, ranks: u32, mode: u8, between: u32) -> Program {
    let members: Vec<u32> = (0..ranks).rev().collect();
    let one = |rank: u32| {
        let waits = if mode == IMMEDIATE {
            wait(op, 1)
        } else {
            String::new()
        };
        // Odd times, so that no two messages request a link at the same time. The order of events would decide such a tie.
        let late = format!("1:0.{:09}\n", 1000 + rank * 3137 + rank * rank * 61);
        late + &call(op, 1, 6000, (rank == 1, mode)) + &compute(between) + &waits + &compute(5)
    };
    program_of(dim(&[members], &(0..ranks).map(one).collect::<Vec<_>>()))
}

#[test]
fn an_operation_with_an_immediate_wait_takes_as_long_as_the_blocking_call() {
    for op in CollectiveOp::ALL {
        for (ranks, algorithm) in [2, 5, 8]
            .into_iter()
            .flat_map(|ranks| Algorithm::all_for(op).iter().map(move |a| (ranks, a)))
        {
            let table = by(op, algorithm.name());
            let [blocking, non_blocking] = [BLOCKING, IMMEDIATE]
                .map(|mode| messages_of(&staggered(op, ranks, mode, 0), &table));
            for network in [
                MessageRule::Hockney,
                MessageRule::Dimemas,
                MessageRule::Loggops,
            ]
            .into_iter()
            .flat_map(|rule| [network(rule), limited(rule)])
            {
                let found =
                    [&blocking, &non_blocking].map(|program| micros(&engine(program, &network)));
                assert!(
                    close(found[0], found[1]),
                    "{op:?} {algorithm:?} {ranks}: {found:?}"
                );
                let found =
                    [&blocking, &non_blocking].map(|program| micros(&sharing(program, &network)));
                assert!(
                    close(found[0], found[1]),
                    "{op:?} {algorithm:?} {ranks}, shared: {found:?}"
                );
            }
        }
    }
}

#[test]
fn computation_hides_concurrent_messages() {
    let op = CollectiveOp::Alltoall;
    let table = by(op, "pairwise");
    for network in [network(MessageRule::Hockney), limited(MessageRule::Hockney)] {
        let time = |mode, between| {
            micros(&engine(
                &messages_of(&staggered(op, 4, mode, between), &table),
                &network,
            ))
        };
        let (alone, meanwhile) = (time(BLOCKING, 0), 400);
        assert!(
            close(time(BLOCKING, meanwhile), alone + f64::from(meanwhile)),
            "{} {alone}",
            time(BLOCKING, meanwhile)
        );
        // The last rank to arrive is rank 3, after 10.96 us. It computes for 400 us more, and all data have arrived by then.
        assert!(close(time(IMMEDIATE, meanwhile), 10.96 + 400.0 + 5.0));
        // A short computation saves only its own duration.
        assert!(
            close(time(IMMEDIATE, 7), alone),
            "{} {alone}",
            time(IMMEDIATE, 7)
        );
    }
}

#[test]
fn messages_of_concurrent_operations_compete_for_links() {
    let op = CollectiveOp::Bcast;
    let rank = |rank: u32, times: usize| {
        let calls = call(op, 1, 100_000, (rank == 0, IMMEDIATE)).repeat(times);
        calls + &wait(op, 1).repeat(times)
    };
    let ranks = |times| [rank(0, times), rank(1, times)];
    let table = by(op, "binomial");
    let [one, three] =
        [1, 3].map(|times| messages_of(&program_of(dim(&[all(2)], &ranks(times))), &table));
    assert_eq!((one.streams(), three.streams()), (4, 8));
    // 100 us of bytes each, after 10 us of latency for all.
    let free = network(MessageRule::Hockney);
    assert!(
        close(micros(&engine(&one, &free)), 110.0) && close(micros(&engine(&three, &free)), 110.0)
    );
    let narrow = limited(MessageRule::Hockney);
    assert!(
        close(micros(&engine(&one, &narrow)), 110.0),
        "{}",
        micros(&engine(&one, &narrow))
    );
    assert!(
        close(micros(&engine(&three, &narrow)), 310.0),
        "{}",
        micros(&engine(&three, &narrow))
    );
    assert!(
        close(micros(&sharing(&three, &free)), 310.0),
        "{}",
        micros(&sharing(&three, &free))
    );
}

#[test]
fn operations_on_two_communicators_may_be_called_in_any_order() {
    let (a, b) = (CollectiveOp::Barrier, CollectiveOp::Allreduce);
    let first = call(a, 1, 0, (false, IMMEDIATE))
        + &call(b, 2, 800, (false, IMMEDIATE))
        + &wait(a, 1)
        + &wait(b, 2);
    let second = call(b, 2, 800, (false, IMMEDIATE))
        + &call(a, 1, 0, (false, IMMEDIATE))
        + &wait(b, 2)
        + &wait(a, 1);
    // Ranks 0 and 2 are in both communicators, rank 1 only in the first and rank 3 only in the second.
    let (only_a, only_b) = (
        call(a, 1, 0, (false, IMMEDIATE)) + &wait(a, 1),
        call(b, 2, 800, (false, IMMEDIATE)) + &wait(b, 2),
    );
    let program = program_of(dim(
        &[vec![2, 0, 1], vec![3, 2, 0]],
        &[first, only_a, second, only_b],
    ));
    for base in [Base::OpenMpi, Base::Mpich] {
        let messages = messages_of(&program, &AlgorithmTable::from_base(base));
        assert_eq!((messages.ranks(), messages.streams()), (4, 4 + 6));
        for network in [network(MessageRule::Dimemas), limited(MessageRule::Dimemas)] {
            let outcome = engine(&messages, &network).run().unwrap();
            assert!(
                outcome.ranks.len() == 4 && outcome.makespan() > Time::ZERO,
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn an_operation_without_a_wait_ends_by_itself() {
    let op = CollectiveOp::Bcast;
    let records = |is_root| call(op, 1, 1_000_000, (is_root, IMMEDIATE)) + &compute(3);
    let messages = messages_of(
        &program_of(dim(&[all(2)], &[records(true), records(false)])),
        &by(op, "binomial"),
    );
    assert!(close(
        micros(&engine(&messages, &network(MessageRule::Hockney))),
        3.0
    ));
    let found = micros(&engine(&messages, &limited(MessageRule::Hockney)));
    assert!(close(found, 3.0), "{found}");
}

#[test]
fn reports_of_deadlocks_do_not_show_strands() {
    let op = CollectiveOp::Barrier;
    let receive = |from: u32| format!("3:{from}:-1:8:7:0:0\n");
    let send = |to: u32| format!("2:{to}:-1:8:7:0:0\n");
    let calls = call(op, 1, 0, (false, IMMEDIATE)) + &wait(op, 1);
    let stuck = program_of(dim(
        &[all(2)],
        &[calls.clone() + &send(1), receive(0) + &calls],
    ));
    let messages = messages_of(&stuck, &AlgorithmTable::from_base(Base::OpenMpi));
    let SimulateError::Deadlock { waiting, story } =
        engine(&messages, &network(MessageRule::Hockney))
            .run()
            .unwrap_err()
    else {
        panic!("expected a deadlock")
    };
    assert_eq!(waiting, 2, "{story}");
    assert!(
        !story.contains("rank 2") && !story.contains("rank 3"),
        "{story}"
    );
}

#[test]
fn results_are_for_ranks() {
    let op = CollectiveOp::Allreduce;
    let messages = messages_of(&staggered(op, 4, IMMEDIATE, 20), &by(op, "ring"));
    for network in [network(MessageRule::Loggops), limited(MessageRule::Dimemas)] {
        let engine = engine(&messages, &network);
        let (outcome, journal) = recorded(&messages, |journal| engine.observed(journal));
        let timeline = journal.timeline();
        assert_eq!(
            (timeline.ranks.len(), timeline.messages.len()),
            (4, messages.messages() as usize)
        );
        assert!(
            timeline
                .messages
                .iter()
                .all(|message| message.src.0 < 4 && message.dst.0 < 4)
        );
        let path = EventGraph::record(&engine).unwrap().1.critical_path();
        assert_eq!(path.makespan, outcome.makespan());
        assert!(path.steps.iter().all(|step| step.rank.0 < 4));
        let sum: Time = path.steps.iter().map(|step| step.end - step.start).sum();
        assert!(close(sum.as_nanos(), path.makespan.as_nanos()));
        let is_known = |limit| limit != flowcast::replay::time_part::TimePart::Other;
        assert!(
            path.shares().iter().all(|share| is_known(share.limit)),
            "{:?}",
            path.shares()
        );
        let mut journal = ReplayJournal::new(&messages, JournalContents::FILES);
        engine.observed(&mut journal).unwrap();
        let ranks = (0..4).map(Rank);
        let sent: Vec<_> = ranks
            .clone()
            .flat_map(|rank| journal.sent(rank).map(|(slot, _)| slot))
            .collect();
        let received: Vec<_> = ranks
            .flat_map(|rank| journal.received(rank).map(|(slot, _)| slot))
            .collect();
        assert_eq!(
            (sent.len(), received.len()),
            (messages.messages() as usize, messages.messages() as usize)
        );
        let (explained, explanation) = explained(&engine);
        assert_eq!(explanation.ranks.len(), 4);
        for (rank, sums) in explained.ranks.iter().zip(&explanation.ranks) {
            assert!(close(
                sums.total().as_nanos(),
                (rank.blocked + rank.overhead).as_nanos()
            ));
        }
    }
}

#[test]
fn a_compiled_program_keeps_its_strands() {
    let op = CollectiveOp::Gather;
    let messages = messages_of(&staggered(op, 5, IMMEDIATE, 9), &by(op, "binomial"));
    let bytes: Vec<u8> =
        compiled::parts(&flowcast::trace::Trace::Program(messages.clone())).concat();
    let again = program_of(bytes);
    assert_eq!((again.ranks(), again.streams()), (5, 10));
    let network = network(MessageRule::Loggops);
    assert_eq!(
        engine(&again, &network).run().unwrap(),
        engine(&messages, &network).run().unwrap()
    );
}

proptest! {
    #[test]
    fn both_engines_and_sweeps_agree(records in any_records(), mpich: bool) {
        let table = AlgorithmTable::from_base(if mpich { Base::Mpich } else { Base::OpenMpi });
        let messages = messages_of(&records.program(), &table);
        let network = network(MessageRule::Hockney);
        let walked = engine(&messages, &network).run().unwrap();
        let placement = Placement::of_program(&network.machine, None, &messages).unwrap();
        let events = ReplayEngine::limited(Replay::new(&messages, &network, placement, Rendezvous::from_network(&network, None)).unwrap(), &network).run().unwrap();
        let what_if = || WhatIf::new(&messages, network.clone(), None, None).unwrap();
        let swept = sweep::run(&messages, &[what_if(), what_if()]).unwrap();
        for (rank, walked) in walked.ranks.iter().enumerate() {
            prop_assert!(close(walked.end.as_nanos(), events.ranks[rank].end.as_nanos()), "{walked:?} {:?}", events.ranks[rank]);
            prop_assert!(close(walked.end.as_nanos(), swept[1].ends[rank].as_nanos()));
        }
    }
}
