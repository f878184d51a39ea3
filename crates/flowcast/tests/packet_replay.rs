//! Programs packet by packet, by hand and beside patterns of the same messages.

mod random_programs;

use flowcast::cluster::flow::Flow;
use flowcast::cluster::racks::Racks;
use flowcast::model::builtin;
use flowcast::model::machine::Mapping;
use flowcast::model::network::Network;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::simulate::Engine;
use flowcast::simulate::concurrent::{Method, predict_flows};
use flowcast::simulate::costs::Rendezvous;
use flowcast::simulate::placement::Placement;
use flowcast::trace::Program;
use flowcast::units::{Bytes, Node, Time};
use random_programs::{as_program, read_text};

const WIRE: f64 = 1e6;
/// A full packet.
const FRAME: f64 = 1538.0 / WIRE;
/// An offer or its answer.
const CONTROL: f64 = 154.0 / WIRE;
/// The transport's acknowledgement, which goes before what is written on arrival.
const ACKNOWLEDGEMENT: f64 = 90.0 / WIRE;

fn network() -> Network {
    let fields = [("nic.latency", "0us"), ("nic.bandwidth", "1MB/s"), ("sharing.window", "44kB")];
    let fields = fields.map(|(key, value)| (key.to_owned(), value.to_owned()));
    builtin::network("gige-lam").unwrap().with_overrides(&fields).unwrap()
}

/// One task for each stream of records, each on a node of its own.
fn program(streams: &[&str]) -> Program {
    let mut text = format!("#DIMEMAS:\"x\":0:{}({}),0\n", streams.len(), vec!["1"; streams.len()].join(","));
    for (task, records) in streams.iter().enumerate() {
        text += &format!("1:{task}:0:0.0\n");
        for record in records.split_whitespace() {
            let (kind, rest) = record.split_once(':').unwrap();
            text += &format!("{kind}:{task}:0:{rest}\n");
        }
    }
    as_program(read_text(text).unwrap())
}

fn ends(streams: &[&str], rendezvous: Rendezvous) -> Vec<f64> {
    let (program, network) = (program(streams), network());
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let engine = Engine::sharing(&program, &network, placement, rendezvous, Model::Packet).unwrap();
    let (outcome, explanation) = engine.explain().unwrap();
    for (sums, times) in explanation.ranks.iter().zip(&outcome.ranks) {
        let (found, expected) = (sums.total().as_nanos(), (times.blocked + times.overhead).as_nanos());
        assert!((found - expected).abs() < 1e-3, "{found} {expected}");
    }
    assert_eq!(engine.record().unwrap().0, outcome);
    outcome.ranks.iter().map(|rank| rank.end.as_seconds()).collect()
}

#[test]
fn a_message_of_one_packet_crosses_two_links_and_one_of_none_is_a_frame() {
    let alone = ends(&["2:1:1448:0:0:0", "3:0:1448:0:0:0"], Rendezvous::AsRecorded);
    assert!((alone[1] - 2.0 * FRAME).abs() < 1e-9, "{alone:?}");
    let empty = ends(&["2:1:0:0:0:0", "3:0:0:0:0:0"], Rendezvous::AsRecorded);
    assert!((empty[1] - 2.0 * 90.0 / WIRE).abs() < 1e-9, "{empty:?}");
}

#[test]
fn a_sender_that_waits_for_its_receiver_is_told_by_a_frame() {
    // The receiver comes later than the offer: it answers when it comes.
    let late = ends(&["2:1:1448:0:0:0", "1:0.5 3:0:1448:0:0:0"], Rendezvous::From(Bytes(1)));
    assert!((late[1] - (0.5 + 2.0 * CONTROL + ACKNOWLEDGEMENT + 2.0 * FRAME)).abs() < 1e-9, "{late:?}");
    // It waits: the offer comes first.
    let early = ends(&["1:0.5 2:1:1448:0:0:0", "3:0:1448:0:0:0"], Rendezvous::From(Bytes(1)));
    assert!((early[1] - (0.5 + 4.0 * CONTROL + 2.0 * ACKNOWLEDGEMENT + 2.0 * FRAME)).abs() < 1e-9, "{early:?}");
}

#[test]
fn short_messages_to_one_rank_pass_one_after_the_other() {
    let streams =
        ["3:1:1448:0:0:0 3:2:1448:0:0:0 3:3:1448:0:0:0", "2:0:1448:0:0:0", "2:0:1448:0:0:0", "2:0:1448:0:0:0"];
    let found = ends(&streams, Rendezvous::AsRecorded);
    assert!((found[0] - 4.0 * FRAME).abs() < 1e-9, "{found:?}");
}

#[test]
fn messages_that_do_not_depend_on_each_other_take_what_they_take_in_a_pattern() {
    let flow = |id, src, dst, size, start| Flow {
        id,
        src: Node(src),
        dst: Node(dst),
        size: Bytes(size),
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
        Method { model: Model::Packet, strictness: Strictness::Extended },
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
        let placement = Placement::new(&network.machine, Some(&Mapping::List(vec![0, 0])), 2).unwrap();
        Engine::sharing(&program, &network, placement, Rendezvous::AsRecorded, model).unwrap().run().unwrap()
    };
    assert_eq!(by(Model::Packet), by(Model::Fair));
}
