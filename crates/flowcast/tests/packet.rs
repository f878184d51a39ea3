//! The packet level by hand, and as the twin of the closed loop.

use flowcast::cluster::flow::Flow;
use flowcast::cluster::racks::Racks;
use flowcast::cluster::staggered::{Direction, staggered_chain};
use flowcast::model::builtin;
use flowcast::model::network::Network;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::simulate::concurrent::{Method, Prediction, predict_flows};
use flowcast::simulate::packet::{FRAME_OVERHEAD, SEGMENT};
use flowcast::units::{Bytes, Node, Time};

/// Bytes per second of the wire.
const WIRE: f64 = 2.5e6;
/// What is left for payload.
const GOODPUT: f64 = WIRE * SEGMENT as f64 / (SEGMENT + FRAME_OVERHEAD) as f64;

fn network(rate: f64, overrides: &[(&str, &str)]) -> Network {
    let rate = format!("{rate}B/s");
    let fields = [("nic.latency", "0us"), ("nic.bandwidth", rate.as_str()), ("sharing.window", "44KB")];
    let fields = fields.iter().chain(overrides).map(|(key, value)| (key.to_string(), value.to_string()));
    builtin::network("gige-lam").unwrap().with_overrides(&fields.collect::<Vec<_>>()).unwrap()
}

fn predict(flows: &[Flow], racks: &Racks, network: &Network, model: Model) -> Prediction {
    predict_flows(flows, racks, network, Method { model, strictness: Strictness::Extended }).unwrap()
}

fn packets(flows: &[Flow]) -> Prediction {
    predict(flows, &Racks::default(), &network(WIRE, &[]), Model::Packet)
}

fn flow(id: u32, src: u32, dst: u32, megabytes: u64) -> Flow {
    Flow { id, src: Node(src), dst: Node(dst), size: Bytes(megabytes * 1_000_000), start: Time::ZERO }
}

#[test]
fn one_packet_crosses_two_links_one_after_the_other() {
    let small = Flow { size: Bytes(910), ..flow(1, 0, 1, 0) };
    let prediction = packets(&[small]);
    let expected = 2.0 * (910.0 + 90.0) / WIRE;
    assert!((prediction.flows[0].duration.as_seconds() - expected).abs() < 1e-12);
    assert_eq!(prediction.flows[0].slowdown(), 1.0);
}

#[test]
fn a_long_message_alone_runs_at_the_goodput() {
    let prediction = packets(&[flow(1, 0, 1, 8)]);
    let expected = 8e6 / GOODPUT;
    assert!((prediction.flows[0].duration.as_seconds() - expected).abs() < 0.002 * expected);
}

#[test]
fn a_small_window_and_a_long_latency_give_a_window_in_each_round_trip() {
    let network = network(1e9, &[("nic.latency", "10ms"), ("sharing.window", "14480B")]);
    let prediction = predict(&[flow(1, 0, 1, 2)], &Racks::default(), &network, Model::Packet);
    let expected = 2e6 / 14_480.0 * 0.02;
    assert!((prediction.flows[0].duration.as_seconds() - expected).abs() < 0.02 * expected);
}

#[test]
fn two_in_and_one_out_all_get_half_as_the_closed_loop_says() {
    for flow in packets(&[flow(1, 1, 0, 8), flow(2, 2, 0, 8), flow(3, 0, 3, 8)]).flows {
        assert!((flow.slowdown() - 2.0).abs() < 0.05, "{}", flow.slowdown());
    }
}

#[test]
fn flows_between_racks_share_the_backbone() {
    let mut racks = Racks::default();
    racks.place(Node(0), Node(9), "A").unwrap();
    racks.place(Node(10), Node(19), "B").unwrap();
    let network = network(WIRE, &[("backbone.bandwidth", "5MB/s")]);
    let flows: Vec<Flow> = (0..4).map(|node| flow(node + 1, node, node + 10, 4)).collect();
    for flow in predict(&flows, &racks, &network, Model::Packet).flows {
        assert!((flow.slowdown() - 2.0).abs() < 0.05, "{}", flow.slowdown());
    }
}

#[test]
fn every_byte_arrives_once_and_empty_messages_end_at_once() {
    let flows = [flow(1, 0, 1, 0), flow(2, 0, 1, 3), flow(3, 2, 1, 1), flow(4, 1, 0, 2)];
    let prediction = packets(&flows);
    assert_eq!(prediction.flows[0].end, Time::ZERO);
    for (index, flow) in flows.iter().enumerate() {
        let interval_bytes =
            prediction.intervals_of(index).iter().map(|i| (i.to - i.from).as_seconds() * i.share.0 * WIRE);
        assert!((interval_bytes.sum::<f64>() - flow.size.0 as f64).abs() < 1e-3);
    }
    assert_eq!(packets(&flows), prediction);
}

#[test]
fn the_closed_loop_is_near_its_packets_and_nearer_than_max_min() {
    let directions: Vec<Direction> = "dduuuududdudduuuuduududuudduud"
        .chars()
        .map(|letter| if letter == 'u' { Direction::Up } else { Direction::Down })
        .collect();
    let flows = staggered_chain(&directions);
    let exact = packets(&flows);
    let mean_error = |model| {
        let fluid = predict(&flows, &Racks::default(), &network(GOODPUT, &[]), model);
        let errors = fluid
            .flows
            .iter()
            .zip(&exact.flows)
            .map(|(one, other)| (one.duration.as_nanos() / other.duration.as_nanos() - 1.0).abs());
        errors.sum::<f64>() / flows.len() as f64
    };
    let (closed_loop, fair) = (mean_error(Model::ClosedLoop), mean_error(Model::Fair));
    assert!(closed_loop < 0.03 && closed_loop < fair, "closed loop {closed_loop}, max-min {fair}");
}
