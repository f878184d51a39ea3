//! Programs that are written in the forms of other tools and read again.

use crate::{
    random_programs::{any_numbers, any_records},
    testing::{program_of, read_text},
};
use flowcast::{
    convert::{self, Dialect, WriterTables},
    model::algorithm::{AlgorithmTable, Base},
    replay::{
        loggops::{self, Loggops},
        observer::Unobserved,
    },
    trace::{
        Program, ReadOptions, Trace,
        expand::{NonBlocking, expand},
        opcodes::Op,
    },
    units::Rank,
};
use proptest::prelude::*;

fn as_dim(program: &Program, dialect: Dialect) -> Program {
    let mut text = Vec::new();
    convert::dim(program, dialect, &mut text).unwrap();
    program_of(text)
}

fn as_ti(program: &Program) -> Program {
    let tables = WriterTables::new(program);
    let mut text = Vec::new();
    for rank in (0..program.ranks() as u32).map(Rank) {
        convert::ti_rank(&tables, rank, &mut convert::Losses::default(), &mut text).unwrap();
    }
    program_of(text)
}

fn as_messages(program: &Program) -> Program {
    let table = AlgorithmTable::from_base(Base::OpenMpi);
    expand(
        program,
        &table,
        NonBlocking::Expanded,
        ReadOptions::default(),
    )
    .unwrap()
    .program
}

fn sends_to_itself(program: &Program) -> bool {
    let is_own =
        |rank: Rank, op: Op| matches!(op, Op::Send { slot, .. } if program.receiver(slot) == rank);
    (0..program.ranks() as u32)
        .map(Rank)
        .any(|rank| program.ops(rank).any(|(_, op)| is_own(rank, op)))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// One of each record of Flowcast.
const OWN: &str = "#DIMEMAS:\"t\":0:2(1,1),1\nd:1:1:2:0:1\n1:0:0:0.000001000\n31:0:0:0:5:1:0\n30:0:0:0:1:1:800\n30:0:0:3:1:0:0\n\
    30:0:0:5:1:1:0\n30:0:0:6:1:1:0\n31:0:0:3:5:0:4096\n2:0:0:1:-1:80:7:1:3\n1:0:0:0.000005000\n32:0:0:0\n\
    1:1:0:0.000002000\n31:1:0:0:5:1:0\n30:1:0:3:1:0:0\n30:1:0:7:1:-1:0\n1:1:0:0.000100000\n3:1:0:0:-1:80:7:1:0\n";

#[test]
fn our_own_records_read_back() {
    let program = program_of(OWN);
    let mut text = Vec::new();
    let losses = convert::dim(&program, Dialect::Own, &mut text).unwrap();
    assert_eq!(
        losses.kinds().map(|(_, count)| count).collect::<Vec<_>>(),
        [10],
        "{losses:?}"
    );
    let text = String::from_utf8(text).unwrap();
    for record in [
        "31:0:0:0:5:1:0",
        "30:0:0:3:1:0:0",
        "30:0:0:5:1:1:0",
        "31:0:0:3:5:0:4096",
        "32:0:0:0",
        "30:1:0:7:1:-1:0",
    ] {
        assert!(
            text.contains(&format!("\n{record}\n")),
            "{record} in\n{text}"
        );
    }
    let again = program_of(text);
    assert_eq!(again.accesses(), program.accesses());
    assert!((0..2).all(|rank| again.ops(Rank(rank)).eq(program.ops(Rank(rank)))));
    let mut strict = Vec::new();
    let losses: Vec<_> = convert::dim(&program, Dialect::Dimemas, &mut strict)
        .unwrap()
        .kinds()
        .collect();
    assert_eq!(
        losses,
        [
            ("one-sided operations and requests to files", 9),
            ("waits for sends", 1)
        ]
    );
    let strict = String::from_utf8(strict).unwrap();
    assert!(
        ["\n30:", "\n31:", "\n32:"]
            .iter()
            .all(|ours| !strict.contains(ours)),
        "{strict}"
    );
}

#[test]
fn records_that_the_reader_reported_are_not_losses() {
    let program = program_of(OWN.replace("31:0:0:3:5:0:4096", "77:0:0:5"));
    assert_eq!(
        program
            .ignored()
            .iter()
            .map(|record| record.count)
            .sum::<u64>(),
        1
    );
    let losses = convert::dim(&program, Dialect::Dimemas, &mut Vec::new()).unwrap();
    assert_eq!(
        losses.kinds().map(|(_, count)| count).collect::<Vec<_>>(),
        [8, 1],
        "{losses:?}"
    );
    let losses = convert::goal(&as_messages(&program), &mut Vec::new()).unwrap();
    assert!(
        losses.kinds().all(|(kind, _)| !kind.contains("understood")),
        "{losses:?}"
    );
}

#[test]
fn goal_schedules_read_back() {
    let text = "num_ranks 2\nrank 0 {\na: calc 5\nb: send 8b to 1 tag 3 cpu 1\nc: recv 9b from -1 tag -1\nb requires a\nc irequires b\n}\n\
                rank 1 {\na: recv 8b from 0 tag 3\nb: send 9b to 0 nic 1\nb requires a\n}\n";
    let read = |text: &str| match read_text(text.to_owned()).unwrap() {
        Trace::Schedule(schedule) => schedule,
        _ => panic!("expected a schedule"),
    };
    let schedule = read(text);
    let mut written = Vec::new();
    convert::schedule(&schedule, &mut written).unwrap();
    let again = read(std::str::from_utf8(&written).unwrap());
    let run = |schedule| {
        let network = flowcast::model::builtin::network("gige-tcp").unwrap();
        let parameters = Loggops::from_network(&network);
        loggops::placed(schedule, parameters.into(), &mut Unobserved).unwrap()
    };
    assert_eq!(run(&schedule), run(&again));
}

const BINARY: &[u8] = include_bytes!("../../../../tests/data/tracers/goal/every-word.bin");

#[test]
fn barriers_that_carry_bytes_are_counted_where_they_are_written_without() {
    let barriers = |bytes: u64| {
        let records =
            format!("10:0:0:0:1:1:0:{bytes}:{bytes}:1\n10:1:0:0:1:0:0:{bytes}:{bytes}:1\n");
        let text = format!("#DIMEMAS:\"t\":0:2(1,1),1\nd:1:1:2:0:1\n{records}");
        let program = program_of(text);
        let (tables, mut losses) = (WriterTables::new(&program), convert::Losses::default());
        for rank in [Rank(0), Rank(1)] {
            convert::ti_rank(&tables, rank, &mut losses, &mut Vec::new()).unwrap();
        }
        losses
            .kinds()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(barriers(0), [""; 0]);
    assert_eq!(
        barriers(1000),
        ["2 barriers that carry bytes; they are written without bytes"]
    );
}

/// The schedule with the lines of its text removed.
fn without_lines(trace: Trace) -> flowcast::trace::schedule::Schedule {
    let Trace::Schedule(mut schedule) = trace else {
        panic!("expected a schedule")
    };
    schedule
        .graphs
        .iter_mut()
        .flat_map(|graph| &mut graph.nodes)
        .for_each(|node| node.line = 0);
    schedule
}

#[test]
fn the_binary_goal_of_txt2bin_is_its_text_in_both_directions() {
    let text = include_str!("../../../../tests/data/tracers/goal/every-word.goal");
    let (text, binary) = (
        read_text(text).unwrap(),
        flowcast::read_text("trace", BINARY.to_vec()).unwrap(),
    );
    let text = without_lines(text);
    assert_eq!(text, without_lines(binary));
    let mut written = Vec::new();
    let losses = convert::goal_binary(&text, &mut written).unwrap();
    assert_eq!(
        (losses, written.as_slice()),
        (convert::Losses::default(), BINARY)
    );
}

/// Two ranks that exchange 100,000 bytes by a non-blocking alltoall, and compute for 2 ms at the same time.
const BESIDE: &str = "#DIMEMAS:\"t\":0:2(1,1),1\nd:1:1:2:0:1\n\
    1:0:0:0.000010000\n10:0:0:8:1:0:0:100000:100000:0\n1:0:0:0.002000000\n10:0:0:8:1:0:0:0:0:2\n1:0:0:0.000005000\n\
    1:1:0:0.000010000\n10:1:0:8:1:0:0:100000:100000:0\n1:1:0:0.002000000\n10:1:0:8:1:0:0:0:0:2\n1:1:0:0.000005000\n";

#[test]
fn immediate_collectives_are_chains_beside_the_rank_in_goal_and_counted_where_there_are_none() {
    let program = program_of(BESIDE.to_owned());
    assert_eq!(
        (program.collectives(), as_messages(&program).collectives()),
        (1, 0)
    );
    let (blocking, losses) = convert::with_blocking_collectives(&program).unwrap();
    assert_eq!(
        losses.kinds().map(|(_, count)| count).collect::<Vec<_>>(),
        [2]
    );
    let end = |program: &Program| {
        let mut text = Vec::new();
        convert::goal(&as_messages(program), &mut text).unwrap();
        let Trace::Schedule(schedule) = flowcast::read_text("t", text).unwrap() else {
            panic!("expected a schedule")
        };
        let micros = flowcast::units::Time::from_micros;
        let parameters = Loggops {
            latency: micros(30.0),
            overhead: micros(2.0),
            gap: micros(0.0),
            gap_per_byte: flowcast::units::TimePerByte::from_nanos(0.0),
            eager_up_to: None,
        };
        loggops::placed(&schedule, parameters.into(), &mut Unobserved)
            .unwrap()
            .makespan()
            .as_nanos()
            / 1e3
    };
    // Both take o for the send and o for the message. The computation hides the latency in one case only.
    assert_eq!(
        (end(&program), end(&blocking)),
        (
            10.0 + 2.0 + 2000.0 + 2.0 + 5.0,
            10.0 + 2.0 + 30.0 + 2.0 + 2000.0 + 5.0
        )
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_program_written_for_dimemas_is_predicted_the_same(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let again = as_dim(&program, Dialect::Own);
        let (a, b) = (numbers.replay(&program).run().unwrap(), numbers.replay(&again).run().unwrap());
        prop_assert_eq!((a.messages, a.bytes), (b.messages, b.bytes));
        for (a, b) in a.ranks.iter().zip(&b.ranks) {
            prop_assert!(close(a.end.as_nanos(), b.end.as_nanos()), "{:?} {:?}", a, b);
        }
    }

    #[test]
    fn a_program_of_messages_written_for_simgrid_is_predicted_the_same(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let blocking = convert::with_blocking_collectives(&program);
        let program = as_dim(&as_messages(&blocking.map_or(program, |(program, _)| program)), Dialect::Own);
        let eager = crate::random_programs::Numbers { rendezvous_from: None, ..numbers };
        let asynchronous = program.classes().iter().all(|class| !class.mode.synchronous);
        let again = as_ti(&program);
        prop_assert_eq!((program.messages(), program.bytes()), (again.messages(), again.bytes()));
        // A wait for a message to the rank itself may belong to either side.
        if asynchronous && !sends_to_itself(&program) {
            let (a, b) = (eager.replay(&program).run().unwrap(), eager.replay(&again).run().unwrap());
            prop_assert!(close(a.makespan().as_nanos(), b.makespan().as_nanos()), "{} {}", a.makespan(), b.makespan());
        }
    }

    #[test]
    fn a_program_written_as_goal_has_the_same_messages_and_ends(records in any_records()) {
        let program = as_messages(&records.program());
        let mut text = Vec::new();
        let losses = convert::goal(&program, &mut text).unwrap();
        let (in_memory, same_losses) = convert::as_schedule(&program);
        prop_assert_eq!(same_losses, losses);
        let mut binary = Vec::new();
        prop_assert_eq!(convert::goal_binary(&in_memory, &mut binary).unwrap(), convert::Losses::default());
        let from_text = without_lines(flowcast::read_text("t", text.clone()).unwrap());
        prop_assert_eq!(from_text, without_lines(flowcast::read_text("t", binary).unwrap()));
        let Trace::Schedule(schedule) = flowcast::read_text("t", text).unwrap() else { panic!("expected a schedule") };
        prop_assert_eq!(schedule.messages(), u64::from(program.messages()));
        let network = flowcast::model::builtin::network("gige-tcp").unwrap();
        let mut parameters = Loggops::from_network(&network);
        parameters.eager_up_to = None;
        prop_assert!(loggops::placed(&schedule, parameters.into(), &mut Unobserved).is_ok());
    }
}
