//! The data-flow replay compared with an event-driven simulation of the same random programs, and changes that must not
//! affect a result: the form of the trace, the names of the ranks, the unit of time.

use std::io::Write as _;

use crate::{
    random_programs::{Numbers, Offsets, Record, Records, any_numbers, any_records, recorded},
    testing::{as_program, program_of, read_text},
};
use flowcast::{
    convert::{
        generate::{ProgramShape, Workload},
        write::dim,
    },
    model::{builtin, machine::Mapping, network::MessageRule},
    replay::{costs::Rendezvous, outcome::Outcome, placement::Placement, walk::Replay},
    trace::{Program, ReadOptions, Trace, compiled},
    units::{Bytes, Rank, Time},
};
use proptest::prelude::*;

fn outcome(numbers: &Numbers, program: &Program) -> Outcome {
    numbers.replay(program).run().unwrap()
}

fn ends(outcome: &Outcome) -> Vec<f64> {
    outcome
        .ranks
        .iter()
        .map(|rank| rank.end.as_nanos())
        .collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

fn compiled_form(program: Program) -> Vec<u8> {
    compiled::parts(&Trace::Program(program)).concat()
}

/// Only the messages, none of which makes its sender wait.
fn eager_messages(mut records: Records) -> Records {
    for rank in &mut records.ranks {
        rank.retain(|record| !matches!(record, Record::Collective { .. } | Record::WaitCollective));
        for record in rank {
            if let Record::Send { sync, .. } = record {
                *sync = false;
            }
        }
    }
    records
}

/// A random order of the ranks.
fn any_renaming(records: Records) -> impl Strategy<Value = (Records, Vec<usize>)> {
    let names: Vec<usize> = (0..records.ranks.len()).collect();
    Just(names)
        .prop_shuffle()
        .prop_map(move |names| (records.clone(), names))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_replay_ends_when_the_event_driven_simulation_does(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let outcome = outcome(&numbers, &program);
        let expected = crate::event_driven::end_times(&records, &numbers);
        for (rank, (own, twin)) in ends(&outcome).into_iter().zip(expected).enumerate() {
            prop_assert!((own - twin).abs() <= 1e-9 * twin, "rank {rank}: {own}, expected {twin}\n{}", records.to_dim(Offsets::Absent));
        }
        for times in &outcome.ranks {
            let sum = times.compute + times.blocked + times.overhead;
            prop_assert!((sum - times.end).as_nanos().abs() <= 1e-9 * times.end.as_nanos() + 1e-6, "{times:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_form_of_a_trace_gives_the_same_outcome(records in any_records(), numbers in any_numbers()) {
        let plain = records.to_dim(Offsets::Absent);
        let expected = outcome(&numbers, &records.program());
        let with_offsets = records.to_dim(Offsets::Present);
        let compiled = compiled_form(records.program());
        let forms = [
            plain.replace('\n', "\r\n").into_bytes(),
            with_offsets.clone().into_bytes(),
            gzip(&plain),
            zstd::encode_all(with_offsets.as_bytes(), 1).unwrap(),
            compiled,
        ];
        for bytes in forms {
            let program = program_of(bytes);
            prop_assert_eq!(&outcome(&numbers, &program), &expected);
        }
    }

    #[test]
    fn threads_that_replay_change_nothing(records in any_records(), numbers in any_numbers(), threads in 1usize..6) {
        let (program, numbers) = (eager_messages(records).program(), Numbers { rendezvous_from: None, ..numbers });
        let replay = numbers.replay(&program);
        prop_assert!(replay.is_divisible());
        prop_assert_eq!(replay.divided(threads).unwrap(), replay.run().unwrap());
    }

    #[test]
    fn threads_that_read_change_nothing(records in any_records(), numbers in any_numbers()) {
        let text = std::sync::Arc::new(records.to_dim(Offsets::Absent).into_bytes());
        let mut none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
        let program = flowcast::formats::read("trace", text, &mut none, ReadOptions { threads: 4 }).unwrap();
        let program = as_program(program);
        prop_assert_eq!(compiled_form(program.clone()), compiled_form(records.program()));
        prop_assert_eq!(outcome(&numbers, &program), outcome(&numbers, &records.program()));
    }

    #[test]
    fn watching_a_replay_changes_nothing(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let replay = numbers.replay(&program);
        let (watched, journal) = recorded(&program, |journal| replay.observed(journal));
        prop_assert_eq!(&watched, &replay.run().unwrap());
        for rank in (0..program.ranks() as u32).map(Rank) {
            let intervals = journal.segments(rank);
            let pairs = intervals.iter().zip(intervals.iter().skip(1));
            prop_assert!(pairs.into_iter().all(|(a, b)| a.end == b.start), "rank {rank}: {intervals:?}");
            let end = intervals.last().map_or(Default::default(), |last| last.end);
            prop_assert_eq!(end, watched.ranks[rank.index()].end);
        }
    }

    #[test]
    fn other_names_of_the_ranks_name_the_same_times(
        (records, names) in any_records().prop_flat_map(any_renaming),
        numbers in any_numbers(),
    ) {
        let program = records.renamed(&names).program();
        let network = numbers.network(names.len());
        let mut nodes = vec![0; names.len()];
        names.iter().enumerate().for_each(|(rank, name)| nodes[*name] = numbers.node(rank) as u32);
        let placement = Placement::new(&network.machine, Some(&Mapping::List(nodes)), names.len()).unwrap();
        let renamed = Replay::new(&program, &network, placement, numbers.rendezvous()).unwrap().run().unwrap();
        let expected = outcome(&numbers, &records.program());
        for (rank, name) in names.iter().enumerate() {
            prop_assert_eq!(renamed.ranks[*name], expected.ranks[rank]);
        }
    }

    #[test]
    fn without_latency_times_grow_as_sizes_do(records in any_records(), numbers in any_numbers(), by in 0u32..6) {
        let rule = if numbers.rule == MessageRule::Loggops { MessageRule::Hockney } else { numbers.rule };
        let free = Numbers { rule, latency: 0.0, inside_latency: 0.0, overhead: 0.0, gap: 0.0, ..numbers };
        let free = Numbers { rendezvous_from: free.rendezvous_from.map(|_| 0), ..free };
        // Even sizes, because collectives halve some of them to whole bytes.
        let once = outcome(&free, &records.scaled(2).program()).makespan().as_nanos();
        let more = outcome(&free, &records.scaled(2 << by).program()).makespan().as_nanos();
        prop_assert!((more - once * f64::from(1 << by)).abs() <= 1e-9 * more, "{more} {once}");
    }
}

#[test]
fn text_and_packed_text_of_nothing_are_refused_alike() {
    for bytes in [Vec::new(), gzip(""), zstd::encode_all(&b""[..], 1).unwrap()] {
        let message = flowcast::read_text("trace", bytes).unwrap_err().to_string();
        assert!(
            message.starts_with("trace: found an empty file"),
            "{message}"
        );
    }
    assert!(read_text("\n\n").is_err());
}

/// A generated program.
fn generated(workload: Workload, ranks: u32, iterations: u32) -> Program {
    let (size, compute) = (Bytes(8192), Time::from_micros(10.0));
    let mut text = Vec::new();
    dim(
        ProgramShape {
            workload,
            ranks,
            iterations,
            size,
            compute,
            jitter: 0.5,
            seed: 3,
            period: 0,
        },
        &mut text,
    )
    .unwrap();
    program_of(text)
}

#[test]
fn threads_that_replay_many_messages_change_nothing() {
    let network = builtin::network("gige-tcp").unwrap();
    for (workload, ranks, iterations) in [
        (Workload::Halo, 64, 300),
        (Workload::Alltoall, 24, 100),
        (Workload::Chain, 7, 500),
        (Workload::Shift, 2, 9000),
    ] {
        let program = generated(workload, ranks, iterations);
        let placement = Placement::of_program(&network.machine, None, &program).unwrap();
        let replay = Replay::new(&program, &network, placement, Rendezvous::AsRecorded).unwrap();
        let alone = replay.run().unwrap();
        for threads in 1..5 {
            assert_eq!(
                replay.divided(threads).unwrap(),
                alone,
                "{workload:?} on {threads} threads"
            );
        }
    }
}

#[test]
fn threads_that_replay_ranks_that_wait_for_ever_say_why() {
    let program = program_of(include_str!("../../../../examples/deadlock.dim"));
    let network = builtin::network("gige-tcp").unwrap();
    let placement = Placement::of_program(&network.machine, None, &program).unwrap();
    let replay = Replay::new(&program, &network, placement, Rendezvous::AsRecorded).unwrap();
    let alone = replay.run().unwrap_err().to_string();
    assert!(replay.is_divisible());
    assert_eq!(replay.divided(2).unwrap_err().to_string(), alone);
}
