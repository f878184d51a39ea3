//! The closed loop in trains of packets, while its queues fill.

use flowcast::{
    flows::concurrent::{FlowsPrediction, Method, predict_flows},
    model::{
        builtin,
        cluster::{flow::Flow, racks::Racks},
        network::Network,
        sharing::{flow_cuts::Strictness, model::Model},
    },
    units::{Bytes, Node, Time},
};
use proptest::prelude::*;

/// Goodput of 50 Mbit/s on the wire, in MB/s.
const GOODPUT: f64 = 6.25 * 1448.0 / 1538.0;

/// A window that sends single packets, and one that sends trains of packets.
const WINDOWS: [&str; 2] = ["44kB", "256kB"];

/// A network with rates of `times` times the goodput. Nodes 0 to 2 are in one rack and 3 to 5 in another if the shape has
/// racks.
fn network(window: &str, shape: Shape, times: f64, more: &[(&str, &str)]) -> (Network, Racks) {
    let rate = |goodput: f64| format!("{}MB/s", goodput * times);
    let mut all = vec![
        ("nic.latency", "0us".to_owned()),
        ("sharing.window", window.to_owned()),
        ("sharing.first_window", window.to_owned()),
        ("nic.bandwidth", rate(GOODPUT)),
    ];
    let mut racks = Racks::default();
    match shape {
        Shape::Bus => all.extend([("bus.bandwidth", rate(11.0)), ("bus.nodes", "6".to_owned())]),
        Shape::Racks => {
            racks.place(Node(0), Node(2), "A").unwrap();
            racks.place(Node(3), Node(5), "B").unwrap();
            all.push(("backbone.bandwidth", rate(9.0)));
        }
        _ => {}
    }
    all.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
    let all: Vec<_> = all
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let network = builtin::network("gige-lam").unwrap();
    (network.with_overrides(&all).unwrap(), racks)
}

fn settling(flows: &[Flow]) -> FlowsPrediction {
    let (network, racks) = transient(WINDOWS[0], Shape::Random, &[]);
    predict(flows, &racks, &network, Model::ClosedLoop)
}

fn transient(window: &str, shape: Shape, more: &[(&str, &str)]) -> (Network, Racks) {
    let more = [more, &[("sharing.transient", "true")]].concat();
    network(window, shape, 1.0, &more)
}

fn predict(flows: &[Flow], racks: &Racks, network: &Network, model: Model) -> FlowsPrediction {
    predict_flows(
        flows,
        racks,
        network,
        Method {
            model,
            strictness: Strictness::Extended,
        },
    )
    .unwrap()
}

/// Flows by source, destination, bytes, and start in milliseconds.
fn flows(wishes: &[(u32, u32, u64, u32)]) -> Vec<Flow> {
    let flow = |(id, (src, dst, size, start)): (u32, &(u32, u32, u64, u32))| Flow {
        id,
        src: Node(*src),
        dst: Node(*dst),
        size: Bytes(*size),
        start: Time::from_micros(f64::from(*start) * 1e3),
    };
    (1..).zip(wishes).map(flow).collect()
}

fn seconds(prediction: &FlowsPrediction) -> Vec<f64> {
    prediction
        .flows
        .iter()
        .map(|flow| flow.duration.as_seconds())
        .collect()
}

#[test]
fn a_single_flow_takes_its_bytes_over_the_rate_and_one_packet_into_the_node() {
    let packet = 1448e-6 / GOODPUT;
    for size in [2_000_000, 100_000, 10_000] {
        let took = seconds(&settling(&flows(&[(0, 1, size, 3)])))[0] - size as f64 * 1e-6 / GOODPUT;
        assert!(
            (-0.3 * packet..1.3 * packet).contains(&took),
            "{size} bytes: {took} s more than alone"
        );
    }
}

#[test]
fn an_empty_pattern_takes_no_time() {
    let prediction = settling(&flows(&[(0, 1, 0, 7), (2, 1, 0, 0)]));
    assert_eq!(seconds(&prediction), [0.0, 0.0]);
    assert_eq!(prediction.flows[0].end, Time::from_micros(7e3));
}

#[test]
fn two_flows_into_a_node_halve_the_rate_of_the_flow_out_of_it() {
    let alone = 4.0 / GOODPUT;
    for took in seconds(&settling(&flows(&[
        (1, 0, 4_000_000, 0),
        (2, 0, 4_000_000, 0),
        (0, 3, 4_000_000, 0),
    ]))) {
        assert!(
            (took / alone / 2.0 - 1.0).abs() < 0.04,
            "{took} s, alone {alone} s"
        );
    }
}

#[test]
fn the_reason_is_the_busiest_link_of_the_route() {
    let reasons = |wishes: &[(u32, u32, u64, u32)], flow: usize| {
        let prediction = settling(&flows(wishes));
        let intervals = prediction.intervals_of(flow).iter();
        let mut reasons: Vec<_> = intervals
            .map(|one| prediction.reason(flow, one.limit))
            .collect();
        reasons.dedup();
        reasons
    };
    let size = 4_000_000;
    assert_eq!(reasons(&[(0, 1, size, 0)], 0), ["alone"]);
    assert_eq!(
        reasons(&[(1, 0, size, 0), (2, 0, size, 0)], 0),
        ["shares the link into node 0"]
    );
    assert_eq!(
        reasons(&[(0, 1, size, 0), (0, 2, size / 4, 0)], 0),
        ["shares the link out of node 0", "alone"]
    );
    assert_eq!(
        reasons(&[(1, 0, size, 0), (0, 2, size, 0), (0, 3, size, 0)], 0),
        ["acknowledgements wait on the link out of node 0"]
    );
}

#[test]
fn unsupported_settings_are_refused_by_name() {
    let method = Method {
        model: Model::ClosedLoop,
        strictness: Strictness::Extended,
    };
    let refusal = |field: &'static str, value: &'static str| {
        let (network, racks) = transient(WINDOWS[0], Shape::Random, &[(field, value)]);
        predict_flows(&flows(&[(0, 1, 1, 0)]), &racks, &network, method)
            .unwrap_err()
            .to_string()
    };
    assert!(refusal("sharing.alpha", "2").contains("sharing.closed_loop.alpha"));
    assert!(refusal("sharing.kappa", "0").contains("sharing.closed_loop.kappa"));
    assert!(refusal("sharing.window", "1kB").contains("sharing.packet.window"));
}

fn wishes() -> impl Strategy<Value = Vec<(u32, u32, u64, u32)>> {
    let wish = (0u32..6, 0u32..5, 500_000u64..3_000_000, 0u32..800).prop_map(
        |(src, other, size, start)| {
            (
                src,
                if other >= src { other + 1 } else { other },
                size,
                start,
            )
        },
    );
    proptest::collection::vec(wish, 1..10)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40, max_shrink_iters: 40, rng_seed: proptest::test_runner::RngSeed::Fixed(4), ..ProptestConfig::default()
    })]

    #[test]
    fn results_are_near_those_of_packets(
        wishes in wishes(), shape in shape(), window in proptest::sample::select(&WINDOWS)
    ) {
        let flows = flows(&shaped(&wishes, shape));
        let (trains, racks) = transient(window, shape, &[]);
        let (single, _) = network(window, shape, 1538.0 / 1448.0, &[]);
        let ours = seconds(&predict(&flows, &racks, &trains, Model::ClosedLoop));
        let theirs = seconds(&predict(&flows, &racks, &single, Model::Packet));
        let errors: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| (ours / theirs - 1.0).abs()).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        prop_assert!(mean < 0.03, "mean {mean}: {ours:?} {theirs:?}");
        prop_assert!(errors.iter().all(|error| *error < 0.12), "{errors:?}: {ours:?} {theirs:?}");
    }

    #[test]
    fn intervals_carry_every_byte_without_a_gap(wishes in wishes()) {
        let prediction = settling(&flows(&wishes));
        for (place, flow) in prediction.flows.iter().enumerate() {
            let intervals = prediction.intervals_of(place);
            let carried = |interval: &flowcast::model::sharing::completion::RateInterval| {
                interval.share.0 * (interval.to - interval.from).as_seconds() * GOODPUT * 1e6
            };
            let bytes: f64 = intervals.iter().map(carried).sum();
            prop_assert!((bytes - flow.flow.size.0 as f64).abs() < 1.0, "{bytes} of {}", flow.flow.size.0);
            prop_assert!(intervals.windows(2).all(|pair| pair[0].to == pair[1].from));
            prop_assert_eq!(intervals.last().unwrap().to, flow.end);
        }
    }

    #[test]
    fn other_names_of_nodes_and_another_order_of_flows_change_little(
        wishes in wishes(), nodes in Just((0..6u32).collect::<Vec<_>>()).prop_shuffle(), seed in any::<u64>(), together in any::<bool>()
    ) {
        let mut named: Vec<_> = wishes.iter().enumerate().map(|(place, (src, dst, size, start))| {
            let start = if together { 0 } else { *start };
            (place, (*src, *dst, *size, start))
        }).collect();
        let one = seconds(&settling(&flows(&named.iter().map(|(_, wish)| *wish).collect::<Vec<_>>())));
        named.sort_by_key(|(place, _)| (*place as u64 + 1).wrapping_mul(seed | 1));
        let renamed: Vec<_> = named.iter().map(|(_, (src, dst, size, start))| {
            (nodes[*src as usize], nodes[*dst as usize], *size, *start)
        }).collect();
        let other = seconds(&settling(&flows(&renamed)));
        let changes: Vec<f64> = named.iter().zip(other).map(|((place, _), other)| (one[*place] / other - 1.0).abs()).collect();
        prop_assert!(changes.iter().sum::<f64>() < 0.02 * changes.len() as f64, "{changes:?}: {wishes:?}");
        prop_assert!(changes.iter().all(|change| *change < 0.05), "{changes:?}: {wishes:?}");
    }
}

/// Connection of the nodes, and pattern of their flows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Random,
    Incast,
    FanOut,
    Bus,
    Racks,
}

fn shape() -> impl Strategy<Value = Shape> {
    proptest::sample::select(vec![
        Shape::Random,
        Shape::Incast,
        Shape::FanOut,
        Shape::Bus,
        Shape::Racks,
    ])
}

fn shaped(wishes: &[(u32, u32, u64, u32)], shape: Shape) -> Vec<(u32, u32, u64, u32)> {
    let one = |(place, (src, dst, size, start)): (usize, &(u32, u32, u64, u32))| {
        let other = 1 + place as u32 % 5;
        let (src, dst) = match shape {
            Shape::Incast => (other, 0),
            Shape::FanOut => (0, other),
            _ => (*src, *dst),
        };
        (src, dst, *size, *start)
    };
    wishes.iter().enumerate().map(one).collect()
}
