//! The packet level, calculated by hand, and as the twin of the closed loop.

use flowcast::{
    Contention, Options,
    flows::concurrent::{FlowsPrediction, Method, predict_flows, predict_seeds},
    model::{
        builtin,
        cluster::{
            flow::Flow,
            pattern::Pattern,
            racks::Racks,
            staggered::{ChainDirection, staggered_chain},
        },
        network::Network,
        sharing::{flow_cuts::Strictness, model::Model},
    },
    packet::{
        FRAME_OVERHEAD, SEGMENT,
        seeds::{Runs, Spread},
    },
    units::{Bytes, Node, Time},
};

/// Bytes per second on the wire.
const WIRE: f64 = 2.5e6;
/// Bytes of payload per second.
const GOODPUT: f64 = WIRE * SEGMENT as f64 / (SEGMENT + FRAME_OVERHEAD) as f64;

fn network(rate: f64, overrides: &[(&str, &str)]) -> Network {
    let rate = format!("{rate}B/s");
    let fields = [
        ("nic.latency", "0us"),
        ("nic.bandwidth", rate.as_str()),
        ("sharing.window", "44KB"),
    ];
    let fields = fields
        .iter()
        .chain(overrides)
        .map(|(key, value)| (key.to_string(), value.to_string()));
    builtin::network("gige-lam")
        .unwrap()
        .with_overrides(&fields.collect::<Vec<_>>())
        .unwrap()
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

fn packets(flows: &[Flow]) -> FlowsPrediction {
    predict(flows, &Racks::default(), &network(WIRE, &[]), Model::Packet)
}

fn flow(id: u32, src: u32, dst: u32, megabytes: u64) -> Flow {
    Flow {
        id,
        src: Node(src),
        dst: Node(dst),
        size: Bytes(megabytes * 1_000_000),
        start: Time::ZERO,
    }
}

#[test]
fn one_packet_crosses_two_links_one_after_the_other() {
    let small = Flow {
        size: Bytes(910),
        ..flow(1, 0, 1, 0)
    };
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
    let network = network(
        1e9,
        &[("nic.latency", "10ms"), ("sharing.window", "14480B")],
    );
    let prediction = predict(
        &[flow(1, 0, 1, 2)],
        &Racks::default(),
        &network,
        Model::Packet,
    );
    let expected = 2e6 / 14_480.0 * 0.02;
    assert!((prediction.flows[0].duration.as_seconds() - expected).abs() < 0.02 * expected);
}

#[test]
fn two_in_and_one_out_all_get_half_as_in_the_closed_loop() {
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
    let flows: Vec<Flow> = (0..4)
        .map(|node| flow(node + 1, node, node + 10, 4))
        .collect();
    for flow in predict(&flows, &racks, &network, Model::Packet).flows {
        assert!((flow.slowdown() - 2.0).abs() < 0.05, "{}", flow.slowdown());
    }
}

#[test]
fn every_byte_arrives_once_and_empty_messages_end_at_once() {
    let flows = [
        flow(1, 0, 1, 0),
        flow(2, 0, 1, 3),
        flow(3, 2, 1, 1),
        flow(4, 1, 0, 2),
    ];
    let prediction = packets(&flows);
    assert_eq!(prediction.flows[0].end, Time::ZERO);
    for (index, flow) in flows.iter().enumerate() {
        let interval_bytes = prediction
            .intervals_of(index)
            .iter()
            .map(|i| (i.to - i.from).as_seconds() * i.share.0 * WIRE);
        assert!((interval_bytes.sum::<f64>() - flow.size.0 as f64).abs() < 1e-3);
    }
    assert_eq!(packets(&flows), prediction);
}

#[test]
fn the_closed_loop_is_near_its_packets_and_nearer_than_max_min() {
    let directions: Vec<ChainDirection> = "dduuuududdudduuuuduududuudduud"
        .chars()
        .map(|letter| {
            if letter == 'u' {
                ChainDirection::Up
            } else {
                ChainDirection::Down
            }
        })
        .collect();
    let flows = staggered_chain(&directions);
    let exact = packets(&flows);
    let mean_error = |model| {
        let fluid = predict(&flows, &Racks::default(), &network(GOODPUT, &[]), model);
        let errors =
            fluid.flows.iter().zip(&exact.flows).map(|(one, other)| {
                (one.duration.as_nanos() / other.duration.as_nanos() - 1.0).abs()
            });
        errors.sum::<f64>() / flows.len() as f64
    };
    let (closed_loop, fair) = (mean_error(Model::ClosedLoop), mean_error(Model::Fair));
    assert!(
        closed_loop < 0.03 && closed_loop < fair,
        "closed loop {closed_loop}, max-min {fair}"
    );
}

fn with(overrides: &[(&str, &str)]) -> Network {
    network(
        6.25e6,
        &[
            &[("nic.latency", "10us"), ("sharing.window", "4MB")],
            overrides,
        ]
        .concat(),
    )
}

fn by(network: &Network, flows: &[Flow]) -> FlowsPrediction {
    predict(flows, &Racks::default(), network, Model::Packet)
}

#[test]
fn a_flow_alone_runs_at_the_goodput_under_every_congestion_control() {
    for congestion in ["fixed", "reno", "cubic", "bbr"] {
        for queue in ["30kB", "1MB"] {
            let network = with(&[("sharing.congestion", congestion), ("sharing.queue", queue)]);
            let seconds = by(&network, &[flow(1, 0, 1, 20)]).flows[0]
                .duration
                .as_seconds();
            let share = 20e6 / seconds / 6.25e6;
            assert!(
                (share - 0.9415).abs() < 0.0015,
                "{congestion}, {queue}: {share}"
            );
        }
    }
}

#[test]
fn equal_flows_are_served_alike_in_the_long_run() {
    for congestion in ["reno", "cubic", "bbr"] {
        let network = with(&[
            ("sharing.congestion", congestion),
            ("sharing.queue", "100kB"),
        ]);
        let pattern = Pattern {
            flows: (0..3).map(|n| flow(n + 1, n, 9, 40)).collect(),
            ..Pattern::default()
        };
        let (prediction, spreads) = predict_seeds(&pattern, &network, Runs::once(9)).unwrap();
        for (flow, spread) in prediction.flows.iter().zip(&spreads) {
            assert!(
                (flow.slowdown() - 2.8).abs() < 0.3,
                "{congestion}: {}",
                flow.slowdown()
            );
            assert!(spread.low.end <= flow.end && flow.end <= spread.high.end);
        }
    }
}

#[test]
fn seeds_give_the_same_interval_each_time() {
    let network = with(&[("sharing.congestion", "cubic"), ("sharing.queue", "60kB")]);
    let pattern = Pattern {
        flows: vec![flow(1, 0, 2, 4), flow(2, 1, 2, 4)],
        ..Pattern::default()
    };
    let first = predict_seeds(&pattern, &network, Runs::once(5)).unwrap();
    assert_eq!(
        first,
        predict_seeds(&pattern, &network, Runs::once(5)).unwrap()
    );
    assert!(
        first
            .1
            .iter()
            .all(|spread| spread.low.end < spread.high.end)
    );
}

/// 1 Gbit/s and 10 ms for a round trip: a window of n packets takes one round trip while it is below 1.2 MB.
#[test]
fn slow_start_doubles_the_window_in_each_round_trip() {
    let packets = |count: u64| Flow {
        size: Bytes(count * SEGMENT),
        ..flow(1, 0, 1, 0)
    };
    let reno = [("sharing.congestion", "reno"), ("sharing.queue", "1MB")];
    for congestion in [&reno[..], &[("sharing.congestion", "fixed")]] {
        let network = network(
            1.25e8,
            &[
                &[("nic.latency", "5ms"), ("sharing.window", "4MB")],
                congestion,
            ]
            .concat(),
        );
        for (count, round_trips) in [(10, 0.5), (30, 1.5), (70, 2.5), (150, 3.5)] {
            let seconds = by(&network, &[packets(count)]).flows[0]
                .duration
                .as_seconds();
            assert!(
                (seconds - round_trips * 0.01).abs() < 0.003,
                "{congestion:?}, {count} packets: {seconds} s"
            );
        }
    }
}

#[test]
fn a_tiny_window_waits_for_the_held_back_answer() {
    let network = network(WIRE, &[("sharing.window", "1448B")]);
    let flow = Flow {
        size: Bytes(3 * SEGMENT),
        ..flow(1, 0, 1, 0)
    };
    let seconds = by(&network, &[flow]).flows[0].duration.as_seconds();
    assert!((seconds - 2.0 * 0.040).abs() < 0.006, "{seconds}");
}

#[test]
fn hystart_keeps_cubic_below_windows_that_reno_fills() {
    let shares = |congestion| {
        let network = with(&[
            ("sharing.congestion", congestion),
            ("sharing.window", "164448B"),
        ]);
        let flows = [
            flow(1, 0, 2, 4),
            Flow {
                start: Time::from_seconds(2.0),
                ..flow(2, 0, 3, 2)
            },
            flow(3, 1, 3, 30),
        ];
        by(&network, &flows).flows[1].slowdown()
    };
    assert!(
        shares("cubic") > 1.15 * shares("reno"),
        "cubic {}, reno {}",
        shares("cubic"),
        shares("reno")
    );
}

#[test]
fn an_idle_connection_starts_slowly_again_unless_this_is_disabled() {
    let second = |restart, timeout| {
        let network = network(
            1.25e8,
            &[
                ("nic.latency", "5ms"),
                ("sharing.window", "4MB"),
                ("sharing.congestion", "reno"),
                ("sharing.connections", "pair"),
                ("sharing.idle_restart", restart),
                ("sharing.packet.shortest_timeout", timeout),
            ],
        );
        let later = Flow {
            start: Time::from_seconds(5.0),
            size: Bytes(150 * SEGMENT),
            ..flow(2, 0, 1, 0)
        };
        by(&network, &[flow(1, 0, 1, 2), later]).flows[1]
            .duration
            .as_seconds()
    };
    let restarted = second("true", "200ms");
    assert!((restarted - 0.035).abs() < 0.003, "{restarted}");
    // The pause is shorter than 20 s.
    for kept in [second("false", "200ms"), second("true", "20s")] {
        assert!((kept - 0.005).abs() < 0.003, "{kept}");
    }
}

#[test]
fn a_connection_that_was_warmed_up_begins_at_the_window_it_has_reached() {
    let duration = |warm_ups: &str, first_window: &str| {
        let network = network(
            1.25e8,
            &[
                ("nic.latency", "5ms"),
                ("sharing.window", "1448000B"),
                ("sharing.congestion", "reno"),
                ("sharing.idle_restart", "false"),
                ("sharing.first_window", first_window),
                ("sharing.warm_ups", warm_ups),
            ],
        );
        by(
            &network,
            &[Flow {
                size: Bytes(400 * SEGMENT),
                ..flow(1, 0, 1, 0)
            }],
        )
        .flows[0]
            .duration
            .as_seconds()
    };
    // From ten packets on, it sends 10, 20, 40, 80, 160 and 90 of them. Each window but the last takes a round trip of 10
    // ms.
    assert!(
        (duration("0", "14480B") - 0.056).abs() < 0.001,
        "{}",
        duration("0", "14480B")
    );
    // 10 + 400 packets are more than there are to send.
    assert!((duration("1", "14480B") - duration("0", "1448000B")).abs() < 1e-9);
    assert_eq!(duration("1", "14480B"), duration("7", "14480B"));
}

#[test]
fn hosts_widen_intervals_by_their_noise_and_leave_medians_where_they_are() {
    // For flows that do not meet, nothing else differs.
    let short = |flow: Flow| Flow {
        size: Bytes(100_000),
        ..flow
    };
    let pattern = Pattern {
        flows: vec![short(flow(1, 0, 1, 0)), short(flow(2, 2, 3, 0))],
        racks: Racks::default(),
    };
    let runs =
        |noise, runs| predict_seeds(&pattern, &with(&[("sharing.noise", noise)]), runs).unwrap();
    let (quiet, noisy) = (runs("0.0", Runs::once(400)), runs("0.02", Runs::once(400)));
    for ((still, moved), flow) in quiet.1.iter().zip(&noisy.1).zip(&noisy.0.flows) {
        let of = |time: Time| time.as_seconds() / still.median.duration.as_seconds();
        // 5 % of a normal distribution lie beyond 1.645 standard deviations.
        assert!(
            (of(moved.low.duration) - (-0.0329f64).exp()).abs() < 0.008,
            "{}",
            of(moved.low.duration)
        );
        assert!(
            (of(moved.high.duration) - 0.0329f64.exp()).abs() < 0.008,
            "{}",
            of(moved.high.duration)
        );
        assert!((of(moved.median.duration) - 1.0).abs() < 0.004);
        assert_eq!(flow.duration, moved.median.duration);
    }
    let again = runs(
        "0.02",
        Runs {
            seeds: 40,
            repetitions: 10,
        },
    );
    let width = |spread: &Spread| (spread.high.duration - spread.low.duration).as_seconds();
    assert!((width(&again.1[0]) / width(&noisy.1[0]) - 1.0).abs() < 0.2);
}

#[test]
fn rounds_that_take_longer_than_the_first_do_not_run_into_each_other() {
    let network = |warm_ups| {
        with(&[
            ("sharing.congestion", "cubic"),
            ("sharing.queue", "20kB"),
            ("sharing.idle_restart", "false"),
            ("sharing.warm_ups", warm_ups),
        ])
    };
    let flows = [
        flow(1, 0, 2, 1),
        flow(2, 1, 2, 1),
        Flow {
            start: Time::from_seconds(0.1),
            ..flow(3, 0, 3, 1)
        },
    ];
    let (cold, warm) = (by(&network("0"), &flows), by(&network("5"), &flows));
    let seconds = |prediction: &FlowsPrediction| prediction.makespan().as_seconds();
    assert_ne!(cold, warm);
    assert!(
        (seconds(&warm) / seconds(&cold) - 1.0).abs() < 0.3,
        "{} and {}",
        seconds(&cold),
        seconds(&warm)
    );
    for (flow, (prediction, intervals)) in flows
        .iter()
        .zip(warm.flows.iter().zip(&warm.intervals.of_flow))
    {
        assert!((prediction.end - prediction.duration - flow.start).as_seconds() < 1e-9);
        assert!(
            intervals
                .iter()
                .all(|interval| interval.from >= flow.start && interval.to <= prediction.end)
        );
        assert!(prediction.slowdown() > 0.999, "{}", prediction.slowdown());
    }
}

#[test]
fn messages_of_a_pair_go_one_after_the_other_over_one_connection() {
    let network = with(&[("sharing.connections", "pair")]);
    let prediction = by(
        &network,
        &[flow(1, 0, 1, 4), flow(2, 0, 1, 4), flow(3, 1, 0, 1)],
    );
    let [first, second, _] = &prediction.flows[..] else {
        panic!("three flows")
    };
    let ratio = second.end.as_seconds() / first.end.as_seconds();
    assert!((ratio - 2.0).abs() < 0.05, "{ratio}");
}

#[test]
fn small_queues_keep_a_flow_from_filling_its_own_interface() {
    let out_flow = |small| {
        let network = with(&[
            ("sharing.congestion", "reno"),
            ("sharing.window", "1MB"),
            ("sharing.small_queues", small),
            ("nic.latency", "5ms"),
        ]);
        let flows = [
            flow(1, 0, 1, 20),
            Flow {
                start: Time::from_seconds(1.0),
                size: Bytes(1448),
                ..flow(2, 0, 2, 0)
            },
        ];
        by(&network, &flows).flows[1].duration.as_seconds()
    };
    assert!(
        out_flow("true") < 0.2 * out_flow("false"),
        "{} and {}",
        out_flow("true"),
        out_flow("false")
    );
}

#[test]
fn fields_out_of_range_are_refused_by_name() {
    for (field, value) in [
        ("sharing.packet.window", "1447B"),
        ("sharing.packet.first_window", "2GB"),
        ("sharing.packet.queue", "1537B"),
        ("sharing.packet.queue", "0B"),
        ("sharing.packet.warm_ups", "1001"),
        ("sharing.packet.shortest_timeout", "0s"),
        ("sharing.packet.noise", "1.5"),
    ] {
        let network = network(WIRE, &[(field, value)]);
        let method = Method {
            model: Model::Packet,
            strictness: Strictness::Extended,
        };
        let error =
            predict_flows(&[flow(1, 0, 1, 1)], &Racks::default(), &network, method).unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("{field}: found ")),
            "{error}"
        );
    }
    let method = Method {
        model: Model::Packet,
        strictness: Strictness::Extended,
    };
    let slow = network(1e-3, &[]);
    let error = predict_flows(&[flow(1, 0, 1, 4)], &Racks::default(), &slow, method).unwrap_err();
    assert!(error.to_string().contains("expected at most"), "{error}");
}

#[test]
fn too_many_packets_for_a_run_are_refused_before_it_starts() {
    let method = Method {
        model: Model::Packet,
        strictness: Strictness::Extended,
    };
    let large = [flow(1, 0, 1, 2_000_000)];
    let network = network(1.25e8, &[]);
    let refused = predict_flows(&large, &Racks::default(), &network, method)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("expected at most 100000000: raise sharing.packet.most_packets"),
        "{refused}"
    );
    let few = network
        .with_overrides(&[("sharing.packet.most_packets".into(), "690".into())])
        .unwrap();
    let carry = |bytes: u64| {
        let goal = format!(
            "num_ranks 2\nrank 0 {{\nsend {bytes}b to 1 tag 0\n}}\nrank 1 {{\nrecv {bytes}b from 0 tag 0\n}}\n"
        );
        let trace = flowcast::read_text("t.goal", goal).unwrap();
        let options = Options {
            contention: Contention::Shared(Model::Packet),
            ..Options::default()
        };
        flowcast::predict(&trace, &few, &options)
    };
    carry(100 * SEGMENT).unwrap();
    let refused = carry(1_200_000_000_000).unwrap_err().to_string();
    assert!(
        refused.contains("expected at most 690: raise sharing.packet.most_packets"),
        "{refused}"
    );
    assert!(predict_flows(&[flow(1, 0, 1, 1)], &Racks::default(), &few, method).is_err());
}
