//! Programs packet by packet, calculated by hand and compared with patterns of the same messages.

use crate::{
    random_programs::{Record, Records, any_records, explained, recorded},
    testing::{begun, dim, program_of},
};
use flowcast::{
    flows::concurrent::{Method, predict_flows},
    model::{
        builtin,
        cluster::{flow::Flow, racks::Racks},
        machine::{Mapping, wide_area::Site},
        network::Network,
        sharing::{flow_cuts::Strictness, model::Model},
    },
    replay::{ReplayEngine, costs::Rendezvous, outcome::Outcome, placement::Placement},
    trace::Program,
    units::{Bytes, Node, Time},
};
use proptest::prelude::*;

const WIRE: f64 = 1e6;
/// Time of a full packet.
const FRAME: f64 = 1538.0 / WIRE;
/// Time of an offer or its answer.
const CONTROL: f64 = 154.0 / WIRE;
/// Bytes that the library puts before an eager message.
const ENVELOPE: u32 = 22;
/// Time of the transport's acknowledgement, which precedes data that are written on arrival.
const ACKNOWLEDGEMENT: f64 = 90.0 / WIRE;

fn network() -> Network {
    network_with(&[])
}

fn network_with(more: &[(&str, &str)]) -> Network {
    let fields = [
        ("nic.latency", "0us"),
        ("nic.bandwidth", "1MB/s"),
        ("sharing.window", "44kB"),
        ("point_to_point.progress", "in calls"),
    ];
    let fields: Vec<_> = fields
        .iter()
        .chain(more)
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    builtin::network("gige-lam")
        .unwrap()
        .with_overrides(&fields)
        .unwrap()
}

/// One task for each stream of records, each on its own node.
fn program(streams: &[&str]) -> Program {
    program_of(dim(&[], &begun(streams)))
}

fn ends(streams: &[&str], rendezvous: Rendezvous) -> Vec<f64> {
    ends_over(&network(), streams, rendezvous)
}

fn ends_over(network: &Network, streams: &[&str], rendezvous: Rendezvous) -> Vec<f64> {
    let program = program(streams);
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let engine =
        ReplayEngine::sharing(&program, network, placement, rendezvous, Model::Packet).unwrap();
    let (outcome, explanation) = explained(&engine);
    for (sums, times) in explanation.ranks.iter().zip(&outcome.ranks) {
        let (found, expected) = (
            sums.total().as_nanos(),
            (times.blocked + times.overhead).as_nanos(),
        );
        assert!((found - expected).abs() < 1e-3, "{found} {expected}");
    }
    assert_eq!(
        recorded(&program, |journal| engine.observed(journal)).0,
        outcome
    );
    let ends = |outcome: &Outcome| {
        outcome
            .ranks
            .iter()
            .map(|rank| rank.end.as_seconds())
            .collect::<Vec<_>>()
    };
    // With a second site without nodes, events are replayed in their order, as with limits of the machine.
    let mut limited = network.clone();
    limited.machine.further_sites.push(Site::default());
    let placement = Placement::new(&limited.machine, None, program.ranks()).unwrap();
    let engine =
        ReplayEngine::sharing(&program, &limited, placement, rendezvous, Model::Packet).unwrap();
    let limited = explained(&engine).0;
    for (found, expected) in ends(&limited).iter().zip(ends(&outcome)) {
        assert!((found - expected).abs() < 1e-9, "{limited:?} {outcome:?}");
    }
    ends(&outcome)
}

#[test]
fn a_message_of_one_packet_crosses_two_links_and_has_an_envelope() {
    let last = |size: u32| {
        let streams = [format!("2:1:{size}:0:0:0"), format!("3:0:{size}:0:0:0")];
        ends(
            &streams.each_ref().map(String::as_str),
            Rendezvous::AsRecorded,
        )[1]
    };
    assert!((last(1448 - ENVELOPE) - 2.0 * FRAME).abs() < 1e-9);
    assert!((last(0) - 2.0 * f64::from(90 + ENVELOPE) / WIRE).abs() < 1e-9);
    // One more byte makes a second frame, of 91 bytes. The other link carries it while the first frame arrives.
    assert!((last(1449 - ENVELOPE) - (2.0 * FRAME + 91.0 / WIRE)).abs() < 1e-9);
}

#[test]
fn a_frame_notifies_a_sender_that_waits_for_its_receiver() {
    // The receiver arrives later than the offer, and answers when it arrives.
    let late = ends(
        &["2:1:1448:0:0:0", "1:0.5 3:0:1448:0:0:0"],
        Rendezvous::From(Bytes(1)),
    );
    assert!(
        (late[1] - (0.5 + 2.0 * CONTROL + ACKNOWLEDGEMENT + 2.0 * FRAME)).abs() < 1e-9,
        "{late:?}"
    );
    // The receiver waits: the offer arrives first.
    let early = ends(
        &["1:0.5 2:1:1448:0:0:0", "3:0:1448:0:0:0"],
        Rendezvous::From(Bytes(1)),
    );
    assert!(
        (early[1] - (0.5 + 4.0 * CONTROL + 2.0 * ACKNOWLEDGEMENT + 2.0 * FRAME)).abs() < 1e-9,
        "{early:?}"
    );
}

#[test]
fn a_sender_continues_when_its_send_buffer_holds_the_rest() {
    let network = network_with(&[("sharing.send_buffer", "66kB")]);
    let both = |size: u32| {
        let streams = [
            format!("2:1:{size}:0:0:0"),
            format!("1:0.5 3:0:{size}:0:0:0"),
        ];
        let streams = streams.each_ref().map(String::as_str);
        let rendezvous = Rendezvous::From(Bytes(1));
        (
            ends(&streams, rendezvous),
            ends_over(&network, &streams, rendezvous),
        )
    };
    // All packets fit into the send buffer: the sender continues when the answer arrives.
    let (without, with) = both(10 * 1448);
    assert!((with[0] - (0.5 + 2.0 * CONTROL)).abs() < 1e-9, "{with:?}");
    assert_eq!((without[0], without[1]), (with[1], with[1]));
    // 45 packets fit. The program is woken when 15 of them are free: four times, until 60 of 100 have arrived.
    let (without, with) = both(100 * 1448);
    let sooner = (with[1] - with[0]) / FRAME;
    assert!((39.0..=41.0).contains(&sooner), "{sooner}");
    assert_eq!((without[0], without[1]), (with[1], with[1]));
}

#[test]
fn a_rank_sends_its_own_messages_before_it_answers() {
    // Each rank waits in its own send when the other's offer is examined: both answer before data block their way.
    let exchange = |other: u32| {
        format!("3:{other}:144800:0:0:1 2:{other}:144800:0:0:0 3:{other}:144800:0:0:2")
    };
    let found = ends(
        &[&exchange(1), &format!("1:0.001 {}", exchange(0))],
        Rendezvous::From(Bytes(1)),
    );
    for end in found {
        assert!((100.0..115.0).contains(&((end - 0.001) / FRAME)), "{end}");
    }
}

#[test]
fn a_cts_that_is_known_when_its_receive_is_posted_goes_before_the_messages_that_follow() {
    // Ranks 0 and 1 exchange 100 packets. Rank 1 starts later, after it has waited for rank 2 or computed.
    let exchange = |other: u32| {
        format!("3:{other}:144800:0:0:1 2:{other}:144800:0:0:0 3:{other}:144800:0:0:2")
    };
    let last = |before: &str, after: &str| {
        let second = format!("{before} {} {after}", exchange(0));
        let found = ends(
            &[&exchange(1), &second, "1:0.01 2:1:8:7:0:0"],
            Rendezvous::From(Bytes(1000)),
        );
        (found[0].max(found[1]) - 0.01) / FRAME
    };
    // It saw the RTS while it waited: its CTS leaves first, and the data of rank 0 leave before the CTS that rank 1 waits
    // for.
    let one_after_the_other = last("3:2:8:7:0:0", "");
    assert!(
        (200.0..230.0).contains(&one_after_the_other),
        "{one_after_the_other}"
    );
    let at_once = last("1:0.01", "3:2:8:7:0:0");
    assert!((100.0..115.0).contains(&at_once), "{at_once}");
}

#[test]
fn messages_between_racks_cross_the_backbone() {
    let of_racks = |nodes_per_rack: &str| {
        let more = [
            ("backbone.wire_rate", "0.5MB/s"),
            ("machine.nodes_per_rack", nodes_per_rack),
        ];
        ends_over(
            &network_with(&more),
            &["2:1:144800:0:0:0", "3:0:144800:0:0:0"],
            Rendezvous::AsRecorded,
        )[1] / FRAME
    };
    assert!(
        (100.0..104.0).contains(&of_racks("0")) && (100.0..104.0).contains(&of_racks("2")),
        "{}",
        of_racks("2")
    );
    assert!((200.0..206.0).contains(&of_racks("1")), "{}", of_racks("1"));
}

#[test]
fn a_closed_loop_of_known_windows_follows_short_messages_as_packets_do() {
    let streams = [
        "2:1:2000:0:0:0 2:2:2000:0:0:0",
        "3:0:2000:0:0:0",
        "3:0:2000:0:0:0",
    ];
    let program = program(&streams);
    let ends = |model: Model| {
        let network = network_with(&[("sharing.transient", "true")]);
        let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
        let engine =
            ReplayEngine::sharing(&program, &network, placement, Rendezvous::AsRecorded, model)
                .unwrap();
        engine
            .run()
            .unwrap()
            .ranks
            .iter()
            .map(|rank| rank.end.as_seconds())
            .collect::<Vec<_>>()
    };
    let (packets, closed_loop) = (ends(Model::Packet), ends(Model::ClosedLoop));
    // The first message has arrived before the second is in flight. Rates shared from start to end would make both arrive
    // last.
    assert!(closed_loop[1] < 0.75 * closed_loop[2], "{closed_loop:?}");
    for (found, expected) in closed_loop[1..].iter().zip(&packets[1..]) {
        // Goodput has no headers.
        assert!(
            (found / expected - 1.0).abs() < 0.1,
            "{closed_loop:?} {packets:?}"
        );
    }
}

#[test]
fn a_rank_that_computes_answers_when_it_waits() {
    let end = |before: &str, after: &str| {
        let second = format!("{before} 3:0:144800:0:0:1 1:1.0 3:0:144800:0:0:2 {after}");
        ends(
            &["2:1:144800:0:0:0", &second, "1:0.1 2:1:8:7:0:0"],
            Rendezvous::From(Bytes(1000)),
        )[1]
    };
    // It saw the offer while it waited for another message: the answer leaves with the receive, and the data move meanwhile.
    let seen = end("3:2:8:7:0:0", "");
    assert!((1.1..1.101).contains(&seen), "{seen}");
    let unseen = end("1:0.1", "3:2:8:7:0:0") - 1.1;
    assert!((100.0 * FRAME..115.0 * FRAME).contains(&unseen), "{unseen}");
}

#[test]
fn hosts_take_random_times_with_a_seed() {
    let program = program(&["2:1:144800:0:0:0", "3:0:144800:0:0:0"]);
    let network = network();
    let placement = Placement::new(&network.machine, None, 2).unwrap();
    let engine = || {
        ReplayEngine::sharing(
            &program,
            &network,
            placement.clone(),
            Rendezvous::From(Bytes(1)),
            Model::Packet,
        )
        .unwrap()
    };
    let undisturbed = engine().run().unwrap();
    let ends = [1, 1, 2].map(|seed| engine().disturbed(seed).run().unwrap());
    assert_eq!(ends[0], ends[1]);
    assert_ne!(ends[1], ends[2]);
    assert!(ends[0].makespan() > undisturbed.makespan());
}

#[test]
fn a_disturbed_host_writes_in_the_order_of_its_program() {
    let program = program(&[
        "2:1:1426:0:0:0 2:2:1426:0:0:0",
        "3:0:1426:0:0:0",
        "3:0:1426:0:0:0",
    ]);
    let network = network();
    let placement = Placement::new(&network.machine, None, 3).unwrap();
    for seed in 1..=20 {
        let engine = ReplayEngine::sharing(
            &program,
            &network,
            placement.clone(),
            Rendezvous::AsRecorded,
            Model::Packet,
        );
        let found = engine.unwrap().disturbed(seed).run().unwrap().ranks;
        assert!(found[1].end < found[2].end, "{seed}: {found:?}");
    }
}

#[test]
fn a_buffer_is_not_less_than_a_window() {
    let program = program(&["2:1:1448:0:0:0", "3:0:1448:0:0:0"]);
    let network = network_with(&[("sharing.send_buffer", "43kB")]);
    let placement = Placement::new(&network.machine, None, 2).unwrap();
    let engine = ReplayEngine::sharing(
        &program,
        &network,
        placement,
        Rendezvous::AsRecorded,
        Model::Packet,
    )
    .unwrap();
    let error = engine.run().unwrap_err().to_string();
    assert!(
        error.contains("sharing.packet.send_buffer: found 43kB"),
        "{error}"
    );
}

#[test]
fn short_messages_to_one_rank_pass_one_after_the_other() {
    let streams = [
        "3:1:1426:0:0:0 3:2:1426:0:0:0 3:3:1426:0:0:0",
        "2:0:1426:0:0:0",
        "2:0:1426:0:0:0",
        "2:0:1426:0:0:0",
    ];
    let found = ends(&streams, Rendezvous::AsRecorded);
    assert!((found[0] - 4.0 * FRAME).abs() < 1e-9, "{found:?}");
}

#[test]
fn independent_messages_take_the_same_time_as_in_a_pattern() {
    let flow = |id, src, dst, size, start| Flow {
        id,
        src: Node(src),
        dst: Node(dst),
        size: Bytes(size + u64::from(ENVELOPE)),
        start: Time::from_seconds(start),
    };
    let flows = [
        flow(0, 0, 1, 900_000, 0.0),
        flow(1, 2, 1, 700_000, 0.25),
        flow(2, 1, 3, 800_000, 0.125),
        flow(3, 3, 0, 600_000, 0.375),
    ];
    let predicted = predict_flows(
        &flows,
        &Racks::default(),
        &network(),
        Method {
            model: Model::Packet,
            strictness: Strictness::Extended,
        },
    )
    .unwrap();
    let found = ends(
        &[
            "2:1:900000:0:0:2 3:3:600000:0:0:0",
            "1:0.125 2:3:800000:0:0:2 3:0:900000:0:0:0 3:2:700000:0:0:0",
            "1:0.25 2:1:700000:0:0:2",
            "1:0.375 2:0:600000:0:0:2 3:1:800000:0:0:0",
        ],
        Rendezvous::AsRecorded,
    );
    let end = |flow: usize| predicted.flows[flow].end.as_seconds();
    let expected = [end(3), end(0).max(end(1)), 0.25, end(2)];
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }
}

#[test]
fn ranks_of_one_node_need_no_packets() {
    let program = program(&["2:1:1448:0:0:0", "3:0:1448:0:0:0"]);
    let network = network();
    let by = |model| {
        let placement =
            Placement::new(&network.machine, Some(&Mapping::List(vec![0, 0])), 2).unwrap();
        ReplayEngine::sharing(&program, &network, placement, Rendezvous::AsRecorded, model)
            .unwrap()
            .run()
            .unwrap()
    };
    assert_eq!(by(Model::Packet), by(Model::Fair));
}

/// Few different lengths of computations and messages, so that many events happen at the same time.
fn with_ties(mut records: Records) -> Records {
    for record in records.ranks.iter_mut().flatten() {
        match record {
            Record::Compute(nanos) => *nanos = *nanos / 1_000_000 * 1_000_000,
            Record::Send { bytes, .. } => *bytes = if *bytes < 2500 { 1000 } else { 80_000 },
            _ => {}
        }
    }
    records
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn ranks_may_be_renumbered(records in any_records().prop_map(with_ties), turn in 1usize..7, turns_round in any::<bool>()) {
        let ranks = records.ranks.len();
        let numbers: Vec<usize> = (0..ranks)
            .map(|rank| (if turns_round { ranks - 1 - rank } else { rank } + turn) % ranks)
            .collect();
        let steady = network_with(&[("point_to_point.progress", "asynchronous")]);
        let transient = network_with(&[("sharing.closed_loop.transient", "true")]);
        for (network, model) in [
            (&steady, Model::ClosedLoop),
            (&transient, Model::ClosedLoop),
            (&steady, Model::Packet),
            (&steady, Model::Fair),
        ] {
            let ends = |records: &Records| -> Vec<Time> {
                let text = records.to_dim(crate::random_programs::Offsets::Absent);
                let program = program_of(text);
                let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
                let engine = ReplayEngine::sharing(&program, network, placement, Rendezvous::AsRecorded, model).unwrap();
                engine.run().unwrap().ranks.iter().map(|times| times.end).collect()
            };
            let (ends, renumbered) = (ends(&records), ends(&records.renamed(&numbers)));
            let latest = |ends: &[Time]| ends.iter().copied().max().unwrap().as_nanos();
            prop_assert!(
                (latest(&ends) - latest(&renumbered)).abs() <= 1e-9 * latest(&ends),
                "{}: {ends:?} {renumbered:?}",
                model.name()
            );
        }
    }
}
