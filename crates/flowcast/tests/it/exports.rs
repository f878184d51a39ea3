//! Files of a replay for other programs follow their formats and agree with the replay.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read as _,
    path::PathBuf,
    sync::Arc,
};

use crate::{
    paraver_rules::Contents,
    protobuf::{Value, fields, one},
    random_programs::{any_numbers, any_records},
    testing::{as_program, file, program_at, program_of},
};
use flowcast::{
    formats::read,
    model::{dimemas_cfg::DimemasConfig, machine::Machine, network::Network},
    observers::journal::{JournalContents, ReplayJournal},
    replay::{
        ReplayEngine,
        costs::Rendezvous,
        loggops::{self, Loggops, sends::Sends},
        observer::Unobserved,
        outcome::Outcome,
        placement::Placement,
    },
    report::export::{
        Replayed,
        paraver::{self, Stamp},
        perfetto, tables,
    },
    trace::{Program, ReadOptions, Trace, TraceRef, schedule::Schedule},
    units::{Bytes, Rank, Time, TimePerByte},
};
use proptest::prelude::*;

/// All files of one replay.
#[derive(PartialEq)]
struct Written {
    outcome: Outcome,
    prv: String,
    pcf: String,
    row: String,
    pftrace: Vec<u8>,
    messages: String,
    ranks: String,
    pairs: String,
}

fn write(program: &Program, network: &Network, rendezvous: Rendezvous) -> Written {
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let engine = ReplayEngine::new(program, network, placement.clone(), rendezvous).unwrap();
    let mut journal = ReplayJournal::new(program, JournalContents::FILES);
    let outcome = engine.observed(&mut journal).unwrap();
    assert_eq!(
        outcome,
        engine.run().unwrap(),
        "watching must not change what happens"
    );
    let replayed = Replayed {
        trace: TraceRef::Program(program),
        placement: &placement,
        outcome: &outcome,
        journal: &journal,
    };
    let written = written(replayed);
    for (rank, keeps) in (0..program.ranks() as u32)
        .map(Rank)
        .zip([TABLES, SLICES].into_iter().cycle())
    {
        assert_eq!(
            journal.traffic_received(rank).messages as usize,
            journal.received(rank).count()
        );
        let mut lean = ReplayJournal::new(program, keeps);
        engine.observed(&mut lean).unwrap();
        compare_lean(
            &written,
            Replayed {
                journal: &lean,
                ..replayed
            },
            keeps,
        );
    }
    written
}

const TABLES: JournalContents = JournalContents {
    slices: false,
    calls: false,
    receipts: false,
    timeline: false,
};
const SLICES: JournalContents = JournalContents {
    slices: true,
    receipts: true,
    ..TABLES
};

/// A journal that keeps less data gives the same results where it has data.
fn compare_lean(written: &Written, lean: Replayed<'_>, keeps: JournalContents) {
    let text = |fill: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut bytes = Vec::new();
        fill(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let provenance = provenance();
    assert_eq!(
        text(&|out| tables::messages(lean, &provenance, out)),
        written.messages
    );
    assert_eq!(
        text(&|out| tables::ranks(lean, &provenance, out)),
        written.ranks
    );
    assert_eq!(
        text(&|out| tables::pairs(lean, &provenance, out)),
        written.pairs
    );
    if keeps.slices {
        let mut pftrace = Vec::new();
        perfetto::pftrace(lean, &mut pftrace).unwrap();
        assert!(pftrace == written.pftrace);
    }
}

fn provenance() -> BTreeMap<String, String> {
    BTreeMap::from([("command".to_owned(), "a\nb".to_owned())])
}

fn write_schedule(schedule: &Schedule, parameters: Loggops) -> Written {
    let placement = Placement::new(&Machine::default(), None, schedule.ranks()).unwrap();
    let sends = Sends::from_schedule(schedule);
    let replay = |keeps| {
        let mut journal = ReplayJournal::of_schedule(&sends, keeps);
        let outcome = loggops::placed(schedule, parameters.into(), &mut journal).unwrap();
        (journal, outcome)
    };
    let (journal, outcome) = replay(JournalContents::FILES);
    assert_eq!(
        outcome,
        loggops::placed(schedule, parameters.into(), &mut Unobserved).unwrap(),
        "watching must not change what happens"
    );
    let replayed = Replayed {
        trace: schedule.into(),
        placement: &placement,
        outcome: &outcome,
        journal: &journal,
    };
    let written = written(replayed);
    for keeps in [TABLES, SLICES] {
        compare_lean(
            &written,
            Replayed {
                journal: &replay(keeps).0,
                ..replayed
            },
            keeps,
        );
    }
    written
}

fn written(replayed: Replayed<'_>) -> Written {
    let text = |fill: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut bytes = Vec::new();
        fill(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let provenance = provenance();
    let mut pftrace = Vec::new();
    perfetto::pftrace(replayed, &mut pftrace).unwrap();
    Written {
        prv: text(&|out| paraver::prv(replayed, &Stamp("01/02/2026 at 03:04".into()), out)),
        pcf: text(&|out| paraver::pcf(replayed, out)),
        row: text(&|out| paraver::row(replayed, out)),
        messages: text(&|out| tables::messages(replayed, &provenance, out)),
        ranks: text(&|out| tables::ranks(replayed, &provenance, out)),
        pairs: text(&|out| tables::pairs(replayed, &provenance, out)),
        pftrace,
        outcome: replayed.outcome.clone(),
    }
}

fn data(name: &str) -> PathBuf {
    file("tests").join(name)
}

fn text_of(name: &str) -> String {
    let bytes = std::fs::read(data(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut text = String::new();
    match name.ends_with(".gz") {
        true => flate2::read::GzDecoder::new(&bytes[..])
            .read_to_string(&mut text)
            .unwrap(),
        false => (&bytes[..]).read_to_string(&mut text).unwrap(),
    };
    text
}

fn check(written: &Written) -> Contents {
    let checked = crate::paraver_rules::check(&written.prv, &written.pcf, &written.row);
    let contents =
        checked.unwrap_or_else(|problems| panic!("{}\n{}", problems.join("\n"), written.prv));
    let Outcome {
        messages, bytes, ..
    } = written.outcome;
    assert_eq!(
        (contents.messages as u64, contents.bytes),
        (messages, bytes.0)
    );
    assert!(contents.messages_by_logical_send);
    contents
}

/// Compute time of all ranks, in nanoseconds.
fn computed(outcome: &Outcome) -> f64 {
    outcome
        .ranks
        .iter()
        .map(|rank| rank.compute.as_nanos())
        .sum()
}

const SAMPLES: [&str; 2] = ["data/paraver/is.S.4", "data/paraver/ft.S.4"];

#[test]
fn the_checker_accepts_what_extrae_writes() {
    for sample in SAMPLES {
        let [prv, pcf, row] =
            ["prv.gz", "pcf", "row"].map(|ending| text_of(&format!("{sample}.{ending}")));
        let contents = crate::paraver_rules::check(&prv, &pcf, &row)
            .unwrap_or_else(|problems| panic!("{problems:?}"));
        assert_eq!((contents.tasks.len(), contents.communicators), (4, 5));
        assert!(contents.states > 100 && contents.events > 100);
    }
}

#[test]
fn the_checker_refuses_what_breaks_a_rule() {
    let [prv, pcf, row] =
        ["prv.gz", "pcf", "row"].map(|ending| text_of(&format!("{}.{ending}", SAMPLES[0])));
    let broken = [
        prv.replacen("_ns:1(4)", "_ns:2(4)", 1),
        prv.replacen("c:1:2:1:1\n", "c:1:2:2:1\n", 1),
        prv.replacen("c:1:2:1:1\n", "", 1),
        prv.replacen("1:2:1:2:1:99298:100100:15", "1:2:1:2:1:99297:100100:15", 1),
        prv.replacen("1:2:1:2:1:99298:100100:15", "1:2:1:2:1:100100:99298:15", 1),
        prv.replacen("1:2:1:2:1:99298:100100:15", "1:2:1:2:1:99298:100100:99", 1),
        prv.replacen("1:2:1:2:1:99298:100100:15", "1:5:1:2:1:99298:100100:15", 1),
        prv.replacen("50000003:31:", "50000003:0:", 1),
        prv.replacen("50000003:31:", "12345:31:", 1),
        prv.lines().map(|line| format!("{line}\n")).rev().collect(),
    ];
    for (index, broken) in broken.iter().enumerate() {
        assert_ne!(broken, &prv, "{index}");
        assert!(
            crate::paraver_rules::check(broken, &pcf, &row).is_err(),
            "{index}"
        );
    }
    assert!(
        crate::paraver_rules::check(&prv, &pcf.replacen("15    Others\n", "", 1), &row).is_err()
    );
    assert!(
        crate::paraver_rules::check(&prv, &pcf, &row.replacen("THREAD 1.4.1\n", "", 1)).is_err()
    );
}

#[test]
fn replays_with_limited_links_and_buses_are_written_by_the_rules() {
    for case in ["halo_16_5_8192", "alltoall_8_2_16", "dissem_8_3_16"] {
        let program = program_at(format!("tests/golden/replay/{case}.dim"));
        for machine in ["bus1", "hd1", "inf", "rdv"] {
            let cfg = text_of(&format!("golden/replay/{case}.{machine}.cfg"));
            let network = DimemasConfig::read(cfg.as_bytes(), &mut |_| unreachable!())
                .unwrap()
                .network;
            let written = write(&program, &network, Rendezvous::from_network(&network, None));
            let contents = check(&written);
            assert_eq!(
                contents.end,
                written.outcome.makespan().as_nanos().round() as u64
            );
            assert_eq!(
                *contents.time_in_state.get(&1).unwrap_or(&0),
                computed(&written.outcome) as u64,
                "{case}"
            );
            check_perfetto(&written);
        }
    }
}

#[test]
fn written_files_do_not_depend_on_the_number_of_threads() {
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    for name in [
        "golden/replay/halo_16_5_8192.dim",
        "golden/replay/dissem_8_3_16.dim",
        "data/paraver/is.S.4.prv.gz",
    ] {
        let [one, two, five] = [1, 2, 5].map(|threads| {
            let bytes = Arc::new(std::fs::read(data(name)).unwrap());
            let trace = read(
                name,
                bytes,
                &mut |_| unreachable!(),
                ReadOptions { threads },
            )
            .unwrap();
            write(
                &as_program(trace),
                &network,
                Rendezvous::from_network(&network, None),
            )
        });
        assert!(one == two && one == five, "{name}");
    }
}

#[test]
fn schedules_are_written_by_the_rules() {
    for case in ["halo_16_5_8192", "alltoall_8_2_16", "dissem_8_3_16"] {
        let name = format!("golden/replay/{case}.goal");
        let bytes = Arc::new(std::fs::read(data(&name)).unwrap());
        let trace = read(
            &name,
            bytes,
            &mut |_| unreachable!(),
            ReadOptions::default(),
        )
        .unwrap();
        let Trace::Schedule(schedule) = trace else {
            panic!("{name} is a schedule")
        };
        for eager_up_to in [None, Some(Bytes(10))] {
            let [latency, overhead, gap] = [2000.0, 500.0, 700.0].map(Time::from_nanos);
            let gap_per_byte = TimePerByte::from_nanos(1.0);
            let parameters = Loggops {
                latency,
                overhead,
                gap,
                gap_per_byte,
                eager_up_to,
            };
            let written = write_schedule(&schedule, parameters);
            let contents = check(&written);
            assert_eq!(
                contents.end,
                written.outcome.makespan().as_nanos().round() as u64
            );
            assert_eq!(
                *contents.time_in_state.get(&1).unwrap_or(&0),
                computed(&written.outcome) as u64,
                "{case}"
            );
            assert_eq!(
                contents.time_in_state.contains_key(&4),
                eager_up_to.is_some(),
                "{case}"
            );
            check_perfetto(&written);
            check_tables(&written);
        }
    }
}

#[test]
fn a_sample_of_extrae_has_the_contents_of_its_translation_for_dimemas() {
    let (prv, dim) = (
        program_at("tests/data/paraver/is.S.4.prv.gz"),
        program_at("tests/data/paraver/extrae_is.S.4.dim.gz"),
    );
    assert_eq!((prv.messages(), prv.bytes()), (dim.messages(), dim.bytes()));
    assert_eq!((prv.messages(), prv.bytes().0), (3, 12));
    // The translation counts the collectives of a communicator that it does not define: 36 calls by 4 ranks.
    assert_eq!(prv.instances().len(), 36);
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let times = [&prv, &dim].map(|program| {
        let written = write(program, &network, Rendezvous::from_network(&network, None));
        // The events equal those of the trace.
        assert!(check(&written).event_types.contains(&50_000_003));
        written.outcome.makespan().as_seconds()
    });
    assert!((times[0] / times[1] - 1.0).abs() < 0.01, "{times:?}");
    let ft = program_at("tests/data/paraver/ft.S.4.prv.gz");
    assert_eq!((ft.messages(), ft.ranks()), (0, 4));
    assert!(ft.instances().len() >= 20);
}

#[test]
fn written_collectives_read_back() {
    let text = "#DIMEMAS:\"t\":0:3(1,1,1),2\nd:1:1:3:0:1:2\nd:1:4:2:0:2\n\
        1:0:0:0.000010000\n10:0:0:1:1:1:0:800:800:1\n10:0:0:11:4:0:0:16:16:1\n10:0:0:0:1:0:0:0:0:1\n\
        1:1:0:0.000030000\n10:1:0:1:1:0:0:800:800:1\n10:1:0:0:1:0:0:0:0:1\n\
        1:2:0:0.000020000\n10:2:0:1:1:0:0:800:800:1\n10:2:0:11:4:0:0:16:16:1\n10:2:0:0:1:0:0:0:0:1\n";
    let program = program_of(text);
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let first = write(&program, &network, Rendezvous::from_network(&network, None));
    check(&first);
    let again = program_of(&*first.prv);
    assert!(again.ignored().is_empty(), "{:?}", again.ignored());
    assert_eq!(again.instances().len(), 3);
    let second = write(&again, &network, Rendezvous::from_network(&network, None));
    check(&second);
    let times = [&first, &second].map(|written| written.outcome.makespan().as_nanos());
    assert!((times[0] - times[1]).abs() < 10.0, "{times:?}");
    // A trace that is read and written again keeps the details.
    assert_eq!(program_of(&*second.prv).instances().len(), 3);
}

/// Checks that starts and ends alternate on each track, that tracks are described before use, and that each flow starts and
/// ends once.
fn check_perfetto(written: &Written) {
    let (mut tracks, mut open) = (BTreeSet::new(), BTreeMap::new());
    let (mut flows, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for (number, packet) in fields(&written.pftrace).unwrap() {
        let Value::Bytes(packet) = packet else {
            panic!("{packet:?}")
        };
        let packet = fields(&packet).unwrap();
        assert!(number == 1 && one(&packet, 10) == Some(&Value::Varint(1)));
        if let Some(Value::Bytes(track)) = one(&packet, 60) {
            let track = fields(track).unwrap();
            let Some(Value::Varint(uuid)) = one(&track, 1) else {
                panic!("{track:?}")
            };
            let process = one(&track, 3).is_some();
            assert!(
                process
                    || matches!(one(&track, 5), Some(Value::Varint(parent)) if tracks.contains(parent))
            );
            assert!(tracks.insert(*uuid));
            continue;
        }
        let (Some(Value::Varint(time)), Some(Value::Bytes(event))) =
            (one(&packet, 8), one(&packet, 11))
        else {
            panic!("{packet:?}")
        };
        let event = fields(event).unwrap();
        let (Some(Value::Varint(kind)), Some(Value::Varint(track))) =
            (one(&event, 9), one(&event, 11))
        else {
            panic!("{event:?}")
        };
        assert!(tracks.contains(track));
        match kind {
            1 | 2 => {
                let (before, reached) = open.insert(*track, (*kind, *time)).unwrap_or((2, 0));
                assert!(before != *kind && reached <= *time, "{event:?}");
                assert_eq!(one(&event, 23).is_some(), *kind == 1);
            }
            3 => match (one(&event, 47), one(&event, 48)) {
                (Some(Value::Fixed(flow)), None) => assert!(flows.insert(*flow)),
                (None, Some(Value::Fixed(flow))) => assert!(ended.insert(*flow)),
                other => panic!("{other:?}"),
            },
            other => panic!("{other}"),
        }
    }
    assert!(open.values().all(|(kind, _)| *kind == 2));
    assert_eq!(flows.len() as u64, written.outcome.messages);
    assert_eq!(flows, ended);
}

/// Rows of a table as numbers, under a header of the expected columns.
fn rows(table: &str, schema: &str, columns: &str) -> Vec<Vec<f64>> {
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some(&*format!("# schema: {schema}")));
    assert_eq!(lines.next(), Some("# command: a b"));
    assert_eq!(lines.next(), Some(columns));
    let row = |line: &str| {
        line.split(',')
            .map(|field| field.parse().unwrap())
            .collect::<Vec<f64>>()
    };
    let rows: Vec<_> = lines.map(row).collect();
    assert!(
        rows.iter()
            .all(|row| row.len() == columns.split(',').count())
    );
    rows
}

fn check_tables(written: &Written) {
    let messages = rows(
        &written.messages,
        "flowcast/messages/1",
        "src,dst,bytes,tag,sent_s,arrived_s,received_s",
    );
    assert_eq!(messages.len() as u64, written.outcome.messages);
    assert!(messages.iter().all(|row| row[4] <= row[5]));
    let columns = "rank,node,end_s,blocked_s,compute_s,overhead_s,late_sender_s,transfer_s,late_receiver_s,\
        collective_wait_s,collective_s,interface_wait_s,processor_wait_s,sent_messages,sent_bytes,received_messages,received_bytes";
    let ranks = rows(&written.ranks, "flowcast/ranks/1", columns);
    for (row, rank) in ranks.iter().zip(&written.outcome.ranks) {
        let (end, spent) = (rank.end.as_seconds(), row[4..13].iter().sum::<f64>());
        assert!(
            row[2] == end && (spent - end).abs() <= 1e-9 * end.max(1e-6),
            "{row:?}: {spent} of {end}"
        );
        assert_eq!(
            [row[3], row[4], row[5]],
            [rank.blocked, rank.compute, rank.overhead].map(Time::as_seconds)
        );
    }
    let columns = "src,dst,messages,bytes,flight_s,longest_s,first_sent_s,last_arrived_s";
    let pairs = rows(&written.pairs, "flowcast/pairs/1", columns);
    let total = |rows: &[Vec<f64>], column: usize| rows.iter().map(|row| row[column]).sum::<f64>();
    let bytes = written.outcome.bytes.0 as f64;
    assert_eq!(
        [total(&ranks, 13), total(&ranks, 15), total(&pairs, 2)],
        [messages.len() as f64; 3]
    );
    assert_eq!(
        [
            total(&ranks, 14),
            total(&ranks, 16),
            total(&pairs, 3),
            total(&messages, 2)
        ],
        [bytes; 4]
    );
    let flights: f64 = messages.iter().map(|row| row[5] - row[4]).sum();
    assert!((total(&pairs, 4) - flights).abs() <= 1e-9 * flights.max(1e-6));
}

#[test]
fn names_of_an_archive_stay_names_in_all_written_files() {
    let long = "n".repeat(70_000);
    for name in [
        "\u{1b}[31m\u{7}\r\nx",
        "<script>\"'&",
        "=1+1,\"x\";\0",
        "\u{202e}\u{fffd}",
        "../../etc",
        &long,
        "",
    ] {
        let program = crate::otf2_events::named(name);
        assert_eq!((program.ranks(), program.messages()), (3, 1));
        let network = flowcast::model::builtin::network("gige-tcp").unwrap();
        let written = write(&program, &network, Rendezvous::from_network(&network, None));
        check(&written);
        check_perfetto(&written);
        check_tables(&written);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_replay_is_written_by_the_rules_and_read_again(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let network = numbers.network(program.ranks());
        let written = write(&program, &network, numbers.rendezvous());
        let contents = check(&written);
        check_perfetto(&written);
        check_tables(&written);
        // Each state is rounded to whole nanoseconds at both ends.
        let running = *contents.time_in_state.get(&1).unwrap_or(&0) as f64;
        prop_assert!((running - computed(&written.outcome)).abs() <= contents.states as f64 + 1.0);

        let again = program_of(&*written.prv);
        prop_assert_eq!((again.ranks(), again.messages(), again.bytes()), (program.ranks(), program.messages(), program.bytes()));
        let replayed = write(&again, &network, Rendezvous::from_network(&network, None));
        check(&replayed);
        if numbers.speed == 1.0 {
            prop_assert!((computed(&replayed.outcome) - running).abs() < 1.0);
        }
    }
}
