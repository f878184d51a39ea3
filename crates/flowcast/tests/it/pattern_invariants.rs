//! Invariants of all patterns, for any numbers.

use flowcast::{
    flows::concurrent::{FlowsPrediction, Method, predict_flows},
    model::{
        builtin,
        cluster::{flow::Flow, racks::Racks},
        network::Network,
        sharing::{fabric::LinkId, flow_cuts::Strictness, model::Model},
    },
    units::{Bytes, Node, Time},
};
use proptest::prelude::*;

/// Models whose links carry no more than their capacity.
const WITHIN_CAPACITY: [Model; 6] = [
    Model::Fair,
    Model::DegreeFair,
    Model::FlowCuts,
    Model::Asymmetric,
    Model::ClosedLoop,
    Model::AlphaFair,
];
const FLUID: [Model; 8] = [
    Model::Independent,
    Model::Fair,
    Model::DegreeFair,
    Model::FlowCuts,
    Model::Asymmetric,
    Model::ClosedLoop,
    Model::AlphaFair,
    Model::IbPenalty,
];

fn network(latency: &str) -> Network {
    let overrides = [("nic.latency", latency), ("backbone.bandwidth", "250MB/s")];
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    builtin::network("gige-lam")
        .unwrap()
        .with_overrides(&overrides)
        .unwrap()
}

fn racks() -> Racks {
    let mut racks = Racks::default();
    racks.place(Node(0), Node(3), "A").unwrap();
    racks.place(Node(4), Node(7), "B").unwrap();
    racks
}

fn predict_in(flows: &[Flow], racks: &Racks, model: Model, latency: &str) -> FlowsPrediction {
    let method = Method {
        model,
        strictness: Strictness::Extended,
    };
    predict_flows(flows, racks, &network(latency), method).unwrap()
}

fn predict(flows: &[Flow], model: Model) -> FlowsPrediction {
    predict_in(flows, &racks(), model, "0us")
}

fn flows(most: usize) -> impl Strategy<Value = Vec<Flow>> {
    let flow =
        (0u32..8, 0u32..7, 0u64..5_000_000, 0u32..40).prop_map(|(src, other, size, start)| {
            let dst = if other >= src { other + 1 } else { other };
            let start = Time::from_nanos(f64::from(start) * 1e6);
            Flow {
                id: 0,
                src: Node(src),
                dst: Node(dst),
                size: Bytes(size),
                start,
            }
        });
    proptest::collection::vec(flow, 1..most).prop_map(|mut flows| {
        (1..).zip(&mut flows).for_each(|(id, flow)| flow.id = id);
        flows
    })
}

fn ends(prediction: &FlowsPrediction) -> Vec<f64> {
    prediction
        .flows
        .iter()
        .map(|flow| flow.end.as_nanos())
        .collect()
}

fn assert_near(model: Model, found: &[f64], expected: &[f64]) {
    for (one, other) in found.iter().zip(expected) {
        assert!(
            (one - other).abs() <= 1e-6 * other.max(1.0),
            "{}: {found:?}, {expected:?}",
            model.name()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40, max_shrink_iters: 60, rng_seed: proptest::test_runner::RngSeed::Fixed(20), ..ProptestConfig::default()
    })]

    #[test]
    fn every_byte_is_carried_and_nothing_ends_too_soon(flows in flows(12)) {
        for model in FLUID {
            let prediction = predict_in(&flows, &racks(), model, "4.7us");
            for (index, flow) in prediction.flows.iter().enumerate() {
                let carried: f64 = prediction.intervals_of(index).iter()
                    .map(|interval| (interval.to - interval.from).as_nanos() * interval.share.0).sum();
                let work = network("0us").nic.time_for(flow.flow.size).as_nanos();
                prop_assert!((carried - work).abs() <= 1e-6 * work.max(1.0), "{} {carried} {work}", model.name());
                prop_assert!(flow.duration.as_nanos() >= flow.alone.as_nanos() * (1.0 - 1e-9), "{}", model.name());
                prop_assert!((flow.end - flow.flow.start - flow.duration).as_nanos().abs() < 1e-3);
            }
        }
    }

    #[test]
    fn no_link_carries_more_than_its_capacity(flows in flows(12)) {
        for model in WITHIN_CAPACITY {
            // Flow cuts do not support racks.
            let racks = if model == Model::FlowCuts { Racks::default() } else { racks() };
            let prediction = predict_in(&flows, &racks, model, "0us");
            let mut moments: Vec<Time> = prediction.intervals.of_flow.iter().flatten().map(|step| step.from).collect();
            moments.sort();
            for moment in moments {
                let mut loads = vec![0.0; prediction.fabric.link_count()];
                for (index, path) in prediction.fabric.paths.iter().enumerate() {
                    let now = prediction.intervals_of(index).iter().find(|at| at.from <= moment && moment < at.to);
                    path.data().iter().for_each(|link| loads[link.index()] += now.map_or(0.0, |at| at.share.0));
                }
                for (link, load) in loads.iter().enumerate() {
                    let capacity = prediction.fabric.capacity(LinkId(link as u32)).0;
                    prop_assert!(*load <= capacity * (1.0 + 1e-8), "{}: {load} of {capacity}", model.name());
                }
            }
        }
    }

    #[test]
    fn the_last_end_is_not_before_any_node_can_be_done(flows in flows(12)) {
        for model in WITHIN_CAPACITY {
            let prediction = predict(&flows, model);
            for node in 0..8 {
                for is_end in [|flow: &Flow, node| flow.src == Node(node), |flow: &Flow, node| flow.dst == Node(node)] {
                    let bytes: u64 = flows.iter().filter(|flow| is_end(flow, node)).map(|flow| flow.size.0).sum();
                    let least = network("0us").nic.time_for(Bytes(bytes)).as_nanos();
                    prop_assert!(prediction.makespan().as_nanos() >= least * (1.0 - 1e-8), "{}", model.name());
                }
            }
        }
    }

    #[test]
    fn the_names_of_nodes_do_not_matter(flows in flows(10), shift in 1u32..4) {
        // Nodes change within their racks, so that the same flows cross the backbone.
        let name = |node: Node| Node(node.0 / 4 * 4 + (node.0 + shift) % 4);
        let renamed: Vec<Flow> =
            flows.iter().map(|flow| Flow { src: name(flow.src), dst: name(flow.dst), ..*flow }).collect();
        for model in FLUID {
            assert_near(model, &ends(&predict(&renamed, model)), &ends(&predict(&flows, model)));
        }
    }

    #[test]
    fn the_order_of_flows_does_not_matter(flows in flows(10)) {
        let reversed: Vec<Flow> = flows.iter().rev().copied().collect();
        // Directed rings form pairs from the flow listed first.
        for model in FLUID.into_iter().filter(|model| *model != Model::FlowCuts) {
            let mut found = ends(&predict(&reversed, model));
            found.reverse();
            assert_near(model, &found, &ends(&predict(&flows, model)));
        }
    }

    #[test]
    fn scaled_sizes_and_starts_give_scaled_times(flows in flows(10), factor in 2u64..9) {
        let scaled: Vec<Flow> = flows.iter().map(|flow| Flow {
            size: Bytes(flow.size.0 * factor), start: flow.start * factor as f64, ..*flow
        }).collect();
        for model in FLUID {
            let expected: Vec<f64> = ends(&predict(&flows, model)).iter().map(|end| end * factor as f64).collect();
            assert_near(model, &ends(&predict(&scaled, model)), &expected);
        }
    }

    #[test]
    fn ethernet_is_the_same_in_the_mirror_and_never_faster_than_pure_fairness(flows in flows(12)) {
        let mirrored: Vec<Flow> = flows.iter().map(|flow| Flow { src: flow.dst, dst: flow.src, ..*flow }).collect();
        for model in [Model::Asymmetric, Model::DegreeFair, Model::Fair] {
            assert_near(model, &ends(&predict(&mirrored, model)), &ends(&predict(&flows, model)));
        }
        let (asymmetric, fair) = (predict(&flows, Model::Asymmetric), predict(&flows, Model::DegreeFair));
        for (one, other) in ends(&asymmetric).iter().zip(ends(&fair)) {
            prop_assert!(*one >= other * (1.0 - 1e-9));
        }
    }

    #[test]
    fn no_flow_on_ethernet_gains_from_another_flow(flows in flows(12), which in 0usize..12) {
        let which = which % flows.len();
        for model in [Model::Asymmetric, Model::DegreeFair] {
            let mut with = ends(&predict(&flows, model));
            with.remove(which);
            let mut fewer = flows.clone();
            fewer.remove(which);
            for (one, other) in ends(&predict(&fewer, model)).iter().zip(with) {
                prop_assert!(*one <= other * (1.0 + 1e-9), "{}", model.name());
            }
        }
    }

    #[test]
    fn algorithm_one_takes_at_most_as_many_steps_as_there_are_flows(mut flows in flows(12)) {
        flows.iter_mut().for_each(|flow| flow.start = Time::ZERO);
        for model in [Model::Asymmetric, Model::DegreeFair] {
            prop_assert!(predict(&flows, model).intervals.steps <= flows.len());
        }
    }

    #[test]
    fn equal_inputs_give_equal_bits(flows in flows(12)) {
        for model in FLUID {
            prop_assert_eq!(predict(&flows, model), predict(&flows, model));
        }
    }

    #[test]
    fn a_flow_without_conflicts_takes_exactly_its_time_alone(flows in flows(8), start in 0u32..50) {
        let start = Time::from_nanos(f64::from(start) * 1e6);
        let loner = Flow { id: 99, src: Node(50), dst: Node(51), size: Bytes(3_333_333), start };
        let mut all = flows.clone();
        all.push(loner);
        let network = network("4.7us");
        for model in FLUID {
            let prediction = predict_in(&all, &Racks::default(), model, "4.7us");
            let last = prediction.flows.last().unwrap();
            prop_assert_eq!(last.duration, network.nic.latency + network.nic.time_for(loner.size), "{}", model.name());
            prop_assert_eq!(last.slowdown(), 1.0);
        }
    }
}

#[test]
fn an_empty_flow_ends_immediately_and_disturbs_no_other() {
    let flow = |id, src, dst, size| Flow {
        id,
        src: Node(src),
        dst: Node(dst),
        size: Bytes(size),
        start: Time::ZERO,
    };
    for model in FLUID {
        let prediction = predict(&[flow(1, 0, 1, 0), flow(2, 0, 2, 1_000_000)], model);
        assert_eq!(prediction.flows[0].end, Time::ZERO);
        assert_eq!(prediction.flows[1].slowdown(), 1.0, "{}", model.name());
    }
}

#[test]
fn strict_flow_cuts_refuse_three_flows_out_of_a_node_and_name_it() {
    let flow = |dst| Flow {
        id: dst,
        src: Node(7),
        dst: Node(dst),
        size: Bytes(1),
        start: Time::ZERO,
    };
    let flows = [flow(1), flow(2), flow(3)];
    let predict = |strictness| {
        let method = Method {
            model: Model::FlowCuts,
            strictness,
        };
        predict_flows(&flows, &Racks::default(), &network("0us"), method)
    };
    let message = predict(Strictness::Strict).unwrap_err().to_string();
    assert!(message.contains("node 7: found 3 flows out"), "{message}");
    let thirds = predict(Strictness::Extended).unwrap();
    assert!(
        thirds
            .flows
            .iter()
            .all(|flow| (flow.slowdown() - 3.0).abs() < 1e-9)
    );
}

#[test]
fn the_infiniband_penalties_are_those_of_the_paper() {
    let flow = |id, src, dst| Flow {
        id,
        src: Node(src),
        dst: Node(dst),
        size: Bytes(1_000_000),
        start: Time::ZERO,
    };
    let slowdown = |flows: &[Flow]| {
        predict_in(flows, &Racks::default(), Model::IbPenalty, "0us").flows[0].slowdown()
    };
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    near(slowdown(&[flow(1, 0, 1), flow(2, 0, 2)]), 2.0 * 0.925);
    near(slowdown(&[flow(1, 0, 1), flow(2, 2, 1)]), 2.0 * 0.965);
    near(
        slowdown(&[flow(1, 0, 1), flow(2, 0, 2), flow(3, 3, 2), flow(4, 4, 2)]),
        2.0 * 0.925 * 1.35,
    );
}

#[test]
fn wrong_parameters_are_named() {
    let flow = Flow {
        id: 1,
        src: Node(0),
        dst: Node(1),
        size: Bytes(1),
        start: Time::ZERO,
    };
    for (key, value, model) in [
        ("sharing.closed_loop.alpha", "0", Model::ClosedLoop),
        ("sharing.alpha_fair.alpha", "-1", Model::AlphaFair),
        ("sharing.alpha_fair.alpha", "0", Model::AlphaFair),
        ("sharing.closed_loop.alpha", "nan", Model::ClosedLoop),
        ("sharing.closed_loop.kappa", "-0.1", Model::ClosedLoop),
        ("sharing.closed_loop.kappa", "nan", Model::ClosedLoop),
        ("sharing.flow_cuts.io_out", "-1", Model::FlowCuts),
        ("sharing.flow_cuts.odd_end", "nan", Model::FlowCuts),
        ("sharing.ib_penalty.into", "0", Model::IbPenalty),
        (
            "sharing.asymmetric.backbone_share",
            "0B/s",
            Model::Asymmetric,
        ),
    ] {
        let method = Method {
            model,
            strictness: Strictness::Strict,
        };
        let message = match network("0us").with_overrides(&[(key.into(), value.into())]) {
            Ok(network) => predict_flows(&[flow], &Racks::default(), &network, method)
                .unwrap_err()
                .to_string(),
            Err(refused) => refused.to_string(),
        };
        assert!(message.starts_with(key), "{key}={value}: {message}");
    }
    let method = Method {
        model: Model::FlowCuts,
        strictness: Strictness::Strict,
    };
    let message = predict_flows(
        &[flow],
        &Racks::default(),
        &builtin::network("gige-tcp").unwrap(),
        method,
    );
    assert!(
        message
            .unwrap_err()
            .to_string()
            .contains("sharing.flow_cuts.odd_end: found nothing")
    );
}
