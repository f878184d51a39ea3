//! Half-duplex ports, and media that a group of nodes shares: cases calculated by hand for each model.

use flowcast::{
    flows::concurrent::{Method, predict},
    model::{
        builtin,
        cluster::pattern::Pattern,
        network::Network,
        sharing::{SharingError, flow_cuts::Strictness, model::Model},
    },
};

/// 100 MB/s without latency, with the cuts of LAM.
fn network(overrides: &[(&str, &str)]) -> Network {
    let all = [("nic.bandwidth", "100MB/s"), ("nic.latency", "0us")];
    let all: Vec<_> = all
        .iter()
        .chain(overrides)
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    builtin::network("gige-lam")
        .unwrap()
        .with_overrides(&all)
        .unwrap()
}

fn half_duplex() -> Network {
    network(&[("nic.duplex", "half")])
}

/// Durations in units of the time of a single flow of 100 MB.
fn times(pattern: &str, network: &Network, model: Model) -> Vec<f64> {
    let pattern = Pattern::read("case", pattern.as_bytes()).unwrap();
    let method = Method {
        model,
        strictness: Strictness::Extended,
    };
    let prediction = predict(&pattern, network, method).unwrap();
    prediction
        .flows
        .iter()
        .map(|flow| flow.duration.as_seconds())
        .collect()
}

fn close(found: &[f64], expected: &[f64], within: f64, what: &str) {
    let is_near = |(found, expected): (&f64, &f64)| (found / expected - 1.0).abs() <= within;
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(is_near),
        "{what}: {found:?}"
    );
}

const ALL: [Model; 6] = [
    Model::Fair,
    Model::DegreeFair,
    Model::FlowCuts,
    Model::Asymmetric,
    Model::ClosedLoop,
    Model::AlphaFair,
];

#[test]
fn incoming_and_outgoing_messages_share_a_half_duplex_port() {
    for model in ALL {
        let of = |pattern| times(pattern, &half_duplex(), model);
        close(&of("0 -> 1 100MB"), &[1.0], 1e-6, model.name());
        close(
            &of("0 -> 1 100MB\n1 -> 0 100MB"),
            &[2.0, 2.0],
            1e-6,
            model.name(),
        );
        // Two of the three at node 1, and two at node 0: the ring of three fills every port.
        close(
            &of("0 -> 1 100MB\n1 -> 2 100MB\n2 -> 0 100MB"),
            &[2.0; 3],
            1e-6,
            model.name(),
        );
        close(
            &of("1 -> 0 100MB\n2 -> 0 100MB\n0 -> 3 100MB"),
            &[3.0; 3],
            1e-6,
            model.name(),
        );
        let full = times(
            "0 -> 1 100MB\n1 -> 0 100MB",
            &network(&[("nic.duplex", "full")]),
            Model::Fair,
        );
        close(&full, &[1.0, 1.0], 1e-9, "full duplex");
    }
}

#[test]
fn a_chain_through_half_duplex_ports_is_a_zig_zag() {
    // The ends get 2/3 and the middle 1/3 until the ends finish at 1.5. Half of the middle flow remains and is then alone.
    let chain = "0 -> 1 100MB\n1 -> 2 100MB\n2 -> 3 100MB";
    for model in [Model::FlowCuts, Model::ClosedLoop, Model::AlphaFair] {
        close(
            &times(chain, &half_duplex(), model),
            &[1.5, 2.0, 1.5],
            1e-6,
            model.name(),
        );
    }
    close(
        &times(chain, &half_duplex(), Model::Fair),
        &[2.0; 3],
        1e-6,
        "fair",
    );
    // With full duplex, they do not meet under max-min fairness.
    close(
        &times(chain, &network(&[]), Model::Fair),
        &[1.0; 3],
        1e-9,
        "fair, full duplex",
    );
}

#[test]
fn kappa_makes_no_difference_where_acknowledgements_wait_with_their_data() {
    let pattern = "0 -> 1 100MB\n1 -> 2 80MB\n2 -> 3 60MB\n4 -> 1 90MB\n1 -> 3 50MB\n3 -> 4 70MB";
    let with = |kappa| {
        let network = half_duplex()
            .with_overrides(&[("sharing.kappa".into(), kappa)])
            .unwrap();
        times(pattern, &network, Model::ClosedLoop)
    };
    let without = with("0.0".to_owned());
    for kappa in ["0.5", "1.0", "2.0"] {
        close(&with(kappa.to_owned()), &without, 1e-5, kappa);
    }
}

#[test]
fn all_nodes_of_a_group_share_their_medium() {
    let four = network(&[("bus.bandwidth", "100MB/s"), ("bus.nodes", "4")]);
    for model in ALL {
        let of = |pattern| times(pattern, &four, model);
        close(&of("0 -> 1 100MB"), &[1.0], 1e-6, model.name());
        close(
            &of("0 -> 1 100MB\n2 -> 3 100MB"),
            &[2.0, 2.0],
            1e-6,
            model.name(),
        );
        // Two groups do not disturb each other. A message between them crosses both media.
        close(
            &of("0 -> 1 100MB\n4 -> 5 100MB"),
            &[1.0, 1.0],
            1e-6,
            model.name(),
        );
        close(
            &of("0 -> 4 100MB\n5 -> 1 100MB"),
            &[2.0, 2.0],
            1e-6,
            model.name(),
        );
    }
    let faster = network(&[("bus.bandwidth", "150MB/s"), ("bus.nodes", "1")]);
    for model in [Model::Fair, Model::ClosedLoop, Model::AlphaFair] {
        // A bus in each node with 1.5 times the rate of its interface, as in the lab `bus`.
        let ring = times("0 -> 1 100MB\n1 -> 2 100MB\n2 -> 0 100MB", &faster, model);
        close(&ring, &[4.0 / 3.0; 3], 1e-6, model.name());
    }
    let slow = network(&[("bus.bandwidth", "50MB/s")]);
    close(
        &times("0 -> 9 100MB", &slow, Model::Fair),
        &[2.0],
        1e-9,
        "slower than the interface",
    );
}

#[test]
fn packets_take_turns_at_a_half_duplex_port_and_on_a_bus() {
    let packets = |more: (&str, &str)| {
        let all = [
            ("sharing.packet.window", "256kB"),
            ("sharing.packet.first_window", "256kB"),
            more,
        ];
        network(&all)
    };
    let half = packets(("nic.duplex", "half"));
    let alone = times("0 -> 1 10MB", &half, Model::Packet)[0];
    for pattern in [
        "0 -> 1 10MB\n1 -> 0 10MB",
        "0 -> 1 10MB\n1 -> 2 10MB\n2 -> 0 10MB",
    ] {
        let each = times(pattern, &half, Model::Packet);
        close(&each, &vec![2.0 * alone; each.len()], 0.05, pattern);
    }
    // Acknowledgements take a part of the port's rate.
    let full = times(
        "0 -> 1 10MB",
        &packets(("nic.duplex", "full")),
        Model::Packet,
    )[0];
    assert!((1.02..1.04).contains(&(alone / full)), "{alone} {full}");
    let bus = packets(("bus.bandwidth", "100MB/s"));
    let alone = times("0 -> 1 10MB", &bus, Model::Packet)[0];
    close(
        &times("0 -> 1 10MB\n2 -> 3 10MB", &bus, Model::Packet),
        &[2.0 * alone; 2],
        0.05,
        "bus",
    );
}

#[test]
fn the_loop_that_settles_ends_at_the_shares_of_the_loop() {
    let settling = |more: &[(&str, &str)]| {
        let window = [
            ("sharing.packet.window", "64kB"),
            ("sharing.transient", "true"),
        ];
        network(&[&window[..], more].concat())
    };
    let half = settling(&[("nic.duplex", "half")]);
    let alone = times("0 -> 1 100MB", &half, Model::ClosedLoop)[0];
    close(&[alone], &[1.0], 0.01, "alone");
    close(
        &times("0 -> 1 100MB\n1 -> 0 100MB", &half, Model::ClosedLoop),
        &[2.0; 2],
        0.01,
        "half duplex",
    );
    let chain = times(
        "0 -> 1 100MB\n1 -> 2 100MB\n2 -> 3 100MB",
        &half,
        Model::ClosedLoop,
    );
    close(&chain, &[1.5, 2.0, 1.5], 0.02, "chain");
}

#[test]
fn a_bus_beside_a_topology_is_refused_and_limits_have_names() {
    let both = network(&[("bus.bandwidth", "100MB/s"), ("topology.fat_tree", "4")]);
    let pattern = Pattern::read("case", b"0 -> 1 1MB\n2 -> 1 1MB").unwrap();
    let method = |model| Method {
        model,
        strictness: Strictness::Extended,
    };
    let refused = predict(&pattern, &both, method(Model::Fair)).unwrap_err();
    assert_eq!(refused, SharingError::BusInTopology);
    let reason = |network: &Network| {
        let prediction = predict(&pattern, network, method(Model::Fair)).unwrap();
        prediction.reason(0, prediction.intervals_of(0)[0].limit)
    };
    assert_eq!(
        reason(&half_duplex()),
        "shares the link at the port of node 1"
    );
    assert_eq!(
        reason(&network(&[("bus.bandwidth", "100MB/s")])),
        "shares the link into node 1"
    );
    assert_eq!(
        reason(&network(&[("bus.bandwidth", "80MB/s")])),
        "shares the link over the bus of nodes 0 to 2"
    );
    let tree = network(&[("nic.duplex", "half"), ("topology.fat_tree", "4")]);
    close(
        &times("0 -> 15 100MB\n15 -> 0 100MB", &tree, Model::Fair),
        &[2.0; 2],
        1e-9,
        "in a tree",
    );
}

#[test]
fn a_file_with_duplex_and_bus_reads_back_and_an_empty_group_is_refused() {
    let network = network(&[
        ("nic.duplex", "half"),
        ("bus.wire_rate", "1Gbit/s"),
        ("bus.nodes", "8"),
    ]);
    assert_eq!(
        Network::from_toml(&network.to_toml(), &[]).unwrap(),
        network
    );
    let refused = |key: &str, value: &str| {
        network
            .with_overrides(&[(key.to_owned(), value.to_owned())])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused("bus.nodes", "0"),
        "bus.nodes: found 0, expected at least 1"
    );
    assert!(
        refused("nic.duplex", "both").contains("`full` or `half`"),
        "{}",
        refused("nic.duplex", "both")
    );
}
