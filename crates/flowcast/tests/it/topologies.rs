//! Shapes of switches and cables under the models: cases calculated by hand, and invariants of all shapes.

use crate::{
    random_programs::{any_groups, explained, recorded},
    testing::{program_of, shared_engine},
};
use flowcast::{
    flows::concurrent::{FlowsPrediction, Method, predict_flows},
    graph::EventGraph,
    model::{
        cluster::{flow::Flow, racks::Racks},
        network::Network,
        sharing::{
            fabric::{Fabric, FlowPath, LinkId},
            flow_cuts::Strictness,
            model::Model,
            rates::rate_model,
        },
        topology::Topology,
    },
    replay::{ReplayEngine, time_part::TimePart},
    trace::{Program, slot::Slot},
    units::{Bytes, Node, Rate, Time},
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Sections of shapes with at least 32 nodes.
const SHAPES: [&str; 10] = [
    "fat_tree = 8\noversubscription = 2\nbandwidth = \"80MB/s\"",
    "routing = \"s-mod-k\"\nk_ary_n_tree = { arity = 2, levels = 5 }",
    "routing = \"ecmp\"\nlevels = [{ down = 8, up = 2, cables = 2, bandwidth = \"150MB/s\" }, { down = 4, up = 0 }]",
    "routing = \"random\"\nk_ary_n_tree = { arity = 4, levels = 3 }",
    "torus = [4, 3, 3]\nbandwidth = \"70MB/s\"",
    "mesh = [6, 6]",
    "dragonfly = { groups = 5, switches = 4, nodes = 2, global = 1, global_cables = { bandwidth = \"120MB/s\" } }",
    "routing = \"valiant\"\ndragonfly = { groups = 9, switches = 4, nodes = 1, global = 2 }",
    "routing = \"ugal\"\ndragonfly_plus = { groups = 4, leaves = 2, spines = 3, nodes = 4, global = 1 }",
    "graph = { nodes = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3], \
     cables = [{ class = \"ring\", between = [[0, 1], [1, 2], [2, 3], [3, 0]], bandwidth = \"300MB/s\" }] }",
];

/// 100 MB/s and a latency of 1 us.
fn network(topology: &str) -> Network {
    with_nic("", topology)
}

fn with_nic(nic: &str, topology: &str) -> Network {
    let text = format!(
        "schema = \"flowcast/network/2\"\nname = \"test\"\npoint_to_point = {{ rule = \"hockney\" }}\n\
         [nic]\nlatency = \"1us\"\nbandwidth = \"100MB/s\"\n{nic}\n[topology]\n{topology}\n"
    );
    Network::from_toml(&text, &[]).unwrap()
}

fn flows(ends: &[(u32, u32)]) -> Vec<Flow> {
    let flow = |(id, (src, dst)): (u32, &(u32, u32))| Flow {
        id,
        src: Node(*src),
        dst: Node(*dst),
        size: Bytes(1_000_000),
        start: Time::ZERO,
    };
    (1..).zip(ends).map(flow).collect()
}

fn fabric(network: &Network, ends: &[(u32, u32)]) -> Fabric {
    Fabric::from_network(&flows(ends), &Racks::default(), network).unwrap()
}

fn predicted(network: &Network, flows: &[Flow], model: Model) -> FlowsPrediction {
    let method = Method {
        model,
        strictness: Strictness::Extended,
    };
    predict_flows(flows, &Racks::default(), network, method).unwrap()
}

fn makespan(network: &Network, ends: &[(u32, u32)], model: Model) -> Time {
    predicted(network, &flows(ends), model).makespan()
}

/// Number of flows that cross each link of a class, by its name.
fn crossings(fabric: &Fabric, class: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for link in fabric.paths.iter().flat_map(FlowPath::data) {
        if fabric.classes()[fabric.class(*link)] == class {
            *counts.entry(fabric.link(*link).to_string()).or_default() += 1;
        }
    }
    counts
}

fn all_pairs(nodes: u32) -> Vec<(u32, u32)> {
    let others = |src| (0..nodes).filter(move |dst| *dst != src);
    (0..nodes)
        .flat_map(|src| others(src).map(move |dst| (src, dst)))
        .collect()
}

fn any_pairs() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let pair = (0u32..32, 1u32..32).prop_map(|(src, other)| (src, (src + other) % 32));
    prop::collection::vec(pair, 1..60)
}

#[test]
fn cables_of_a_class_carry_as_much_of_an_exchange_among_all() {
    let dragonfly = "dragonfly = { groups = 9, switches = 4, nodes = 2, global = 2, per_pair = 1 }";
    let between_groups = crossings(&fabric(&network(dragonfly), &all_pairs(72)), "global");
    assert_eq!(between_groups.len(), 9 * 8);
    assert!(between_groups.values().all(|count| *count == 8 * 8));
    let torus = fabric(&network("torus = [5, 5]"), &all_pairs(25));
    for class in ["x", "y"] {
        // Of the steps 1, 2, -1 and -2, three cross a given cable in one direction, from and to five rows.
        let counts = crossings(&torus, class);
        assert_eq!(counts.len(), 2 * 25);
        assert!(counts.values().all(|count| *count == 3 * 5), "{counts:?}");
    }
    let tree = "k_ary_n_tree = { arity = 3, levels = 3 }";
    let upward = crossings(&fabric(&network(tree), &all_pairs(27)), "leaf");
    let counts: BTreeSet<usize> = upward.values().copied().collect();
    assert_eq!(counts, BTreeSet::from([3 * 24 / 3]));
}

#[test]
fn a_hash_of_the_pair_keeps_its_route_and_a_hash_of_the_message_does_not() {
    let ends = vec![(0, 20); 40];
    let ways = |routing: &str| {
        let text = format!("routing = \"{routing}\"\nk_ary_n_tree = {{ arity = 4, levels = 3 }}");
        let fabric = fabric(&network(&text), &ends);
        let ways = fabric.paths.iter().map(|path| path.data().to_vec());
        ways.collect::<BTreeSet<Vec<LinkId>>>().len()
    };
    assert_eq!(ways("ecmp"), 1);
    assert_eq!(ways("d-mod-k"), 1);
    assert!(ways("random") > 4, "{}", ways("random"));
}

#[test]
fn another_seed_gives_other_routes() {
    let ways = |seed: u32| {
        let text = format!(
            "routing = \"ecmp\"\nseed = {seed}\nk_ary_n_tree = {{ arity = 4, levels = 3 }}"
        );
        let fabric = fabric(&network(&text), &all_pairs(64));
        crossings(&fabric, "spine")
    };
    assert_eq!(ways(1), ways(1));
    assert_ne!(ways(1), ways(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Bertsekas and Gallager: each flow crosses a full link on which no flow gets more, or has its whole interface.
    #[test]
    fn max_min_fairness_has_a_bottleneck_for_each_flow(ends in any_pairs(), shape in 0..SHAPES.len()) {
        let network = network(SHAPES[shape]);
        let mut fabric = fabric(&network, &ends);
        fabric.settle_ways(&(0..ends.len()).collect::<Vec<_>>());
        let mut model = rate_model(Model::Fair, &network, Strictness::Extended).unwrap().unwrap();
        let active: Vec<usize> = (0..ends.len()).collect();
        let shares: Vec<f64> = model.shares(&fabric, &active).unwrap().into_iter().map(|one| one.share.0).collect();
        let mut over: Vec<Vec<f64>> = vec![Vec::new(); fabric.link_count()];
        for (path, share) in fabric.paths.iter().zip(&shares) {
            path.data().iter().for_each(|link| over[link.index()].push(*share));
        }
        let load = |link: LinkId| over[link.index()].iter().sum::<f64>() / fabric.capacity(link).0;
        prop_assert!((0..fabric.link_count() as u32).all(|link| load(LinkId(link)) < 1.0 + 1e-9));
        for (path, share) in fabric.paths.iter().zip(&shares) {
            let is_bottleneck = |link: &LinkId| {
                let is_most = over[link.index()].iter().all(|other| *other <= share * (1.0 + 1e-9));
                load(*link) > 1.0 - 1e-9 && is_most
            };
            prop_assert!(path.data().iter().any(is_bottleneck), "{} {:?}", SHAPES[shape], ends);
        }
    }

    #[test]
    fn the_fluid_models_and_packets_carry_any_flows(ends in any_pairs(), shape in 0..SHAPES.len()) {
        let network = network(SHAPES[shape]);
        let few = &ends[..ends.len().min(8)];
        let alone = makespan(&network, few, Model::Independent);
        for model in [Model::Fair, Model::AlphaFair, Model::ClosedLoop, Model::DegreeFair, Model::Packet] {
            let shared = makespan(&network, few, model);
            prop_assert!(shared >= alone * 0.999, "{:?} {} {:?} {:?}", model, SHAPES[shape], shared, alone);
        }
    }
}

#[test]
fn one_flow_takes_as_long_by_packets_as_alone() {
    for shape in SHAPES {
        let network = network(shape);
        let far = 31;
        let (fluid, packets) = (
            makespan(&network, &[(0, far)], Model::Fair),
            makespan(&network, &[(0, far)], Model::Packet),
        );
        // Frames are 90 bytes longer than their payload of 1448. Each switch holds a frame until it has arrived completely.
        let headers = 1538.0 / 1448.0;
        let ratio = packets.as_seconds() / fluid.as_seconds();
        assert!((ratio / headers - 1.0).abs() < 0.03, "{shape}: {ratio}");
    }
}

#[test]
fn latencies_add_up_over_the_classes_of_cables() {
    let text = "dragonfly = { groups = 3, switches = 2, nodes = 2, global = 1, local_cables = { latency = \"100ns\" }, \
        global_cables = { latency = \"2us\" } }";
    let network = network(text);
    let empty = |src, dst| {
        let mut flow = flows(&[(src, dst)]);
        flow[0].size = Bytes(0);
        predicted(&network, &flow, Model::Fair).makespan()
    };
    let nanos = [(0, 1), (0, 2), (0, 4), (2, 7)].map(|(src, dst)| empty(src, dst).as_nanos());
    // Switch 0 of each group connects to the first of the two other groups, switch 1 to the second.
    let expected = [1000.0, 1100.0, 3000.0, 3200.0];
    for (found, expected) in nanos.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{nanos:?}");
    }
}

#[test]
fn ugal_avoids_loaded_cables() {
    let ends: Vec<(u32, u32)> = (0..8).map(|node| (node, 8 + node)).collect();
    let shape = "dragonfly = { groups = 9, switches = 4, nodes = 2, global = 2, per_pair = 1 }";
    for model in [Model::Fair, Model::Packet] {
        let takes = |routing: &str| {
            let text = format!("routing = \"{routing}\"\n{shape}");
            makespan(&network(&text), &ends, model).as_seconds()
        };
        let (minimal, ugal) = (takes("minimal"), takes("ugal"));
        // All eight flows from one group to another share one cable, or few of them do.
        assert!(minimal > 7.9 * 0.01, "{model:?} {minimal}");
        assert!(ugal < 0.6 * minimal, "{model:?} {ugal} {minimal}");
        // A single flow takes the shortest path.
        let text = format!("routing = \"ugal\"\n{shape}");
        let one = predicted(&network(&text), &flows(&ends[..1]), model);
        assert!(one.fabric.paths[0].data().len() <= 5);
    }
}

#[test]
fn interfaces_of_a_node_carry_flows_side_by_side() {
    let ends = [(0, 1), (0, 1)];
    let shape = "levels = [{ down = 4, up = 0 }]";
    let seconds = |nic: &str, topology: &str| {
        let network = with_nic(nic, topology);
        makespan(&network, &ends, Model::Fair).as_seconds()
    };
    let one = seconds("", shape);
    assert!((one - 0.020001).abs() < 1e-9, "{one}");
    let two = "count = 2\nchoice = \"round-robin\"";
    assert!((seconds(two, shape) - 0.010001).abs() < 1e-9);
    assert!((seconds(two, &format!("planes = 2\n{shape}")) - 0.010001).abs() < 1e-9);
    // A pair always uses the same interface.
    assert!((seconds("count = 2", shape) - one).abs() < 1e-9);
    let network = with_nic(two, &format!("planes = 2\n{shape}"));
    let names: Vec<String> = fabric(&network, &ends)
        .paths
        .iter()
        .map(|path| path.out())
        .zip(0..)
        .map(|(link, _): (LinkId, u32)| fabric(&network, &ends).link(link).to_string())
        .collect();
    assert_eq!(
        names,
        ["out of node 0, interface 0", "out of node 0, interface 1"]
    );
}

#[test]
fn links_of_a_program_are_those_between_its_nodes() {
    let dragonfly = "dragonfly = { groups = 4096, switches = 64, nodes = 16, global = 64 }";
    for (topology, ends, most) in [
        (format!("routing = \"ugal\"\n{dragonfly}"), (0, 1), 10_000),
        (
            format!("routing = \"ugal\"\n{dragonfly}"),
            (0, 4_000_000),
            50_000,
        ),
        (
            "routing = \"random\"\nfat_tree = 200".to_owned(),
            (0, 1_999_999),
            100_000,
        ),
    ] {
        let network = network(&topology);
        let fabric = Fabric::of_program(&flows(&[ends]), &Racks::default(), &network).unwrap();
        assert!(
            fabric.link_count() < most,
            "{topology}: {}",
            fabric.link_count()
        );
    }
    let nics = "count = 2\nchoice = \"round-robin\"";
    let network = with_nic(nics, "torus = [1000, 1000]");
    let fabric = Fabric::of_program(&flows(&[(0, 3)]), &Racks::default(), &network).unwrap();
    assert!(fabric.link_count() < 20, "{}", fabric.link_count());
}

#[test]
fn each_plane_has_cables_of_its_own() {
    let ends = [(0, 1), (0, 1)];
    let seconds = |planes: u32| {
        let text = format!("planes = {planes}\nlevels = [{{ down = 1, up = 1 }}]");
        let network = with_nic("count = 2\nchoice = \"round-robin\"", &text);
        makespan(&network, &ends, Model::Fair).as_seconds()
    };
    assert!((seconds(1) - 0.020001).abs() < 1e-9);
    assert!((seconds(2) - 0.010001).abs() < 1e-9);
}

#[test]
fn limits_are_named_in_the_words_of_the_topology() {
    let text = "dragonfly = { groups = 6, switches = 5, nodes = 2, global = 1 }";
    let network = network(text);
    let prediction = predicted(&network, &flows(&[(30, 50), (31, 51)]), Model::Fair);
    let limit = prediction.intervals_of(0)[0].limit;
    assert_eq!(
        prediction.reason(0, limit),
        "shares the local cable from switch 0 to switch 4 of group 3"
    );
    let loads = prediction.loads(&network);
    let classes: Vec<(&str, usize)> = loads
        .iter()
        .map(|load| (load.class.as_str(), load.links))
        .collect();
    assert_eq!(classes, [("node", 4), ("local", 2), ("global", 1)]);
    let global = &loads[2];
    assert!(global.highest > 0.99 && global.highest < 1.0, "{global:?}");
    assert_eq!(global.busiest, "global cable from group 3 to group 5");
    assert!((loads[0].mean - global.mean / 2.0).abs() < 1e-9);
}

fn engine<'a>(
    program: &'a Program,
    network: &Network,
    model: Model,
    threads: usize,
) -> ReplayEngine<'a> {
    shared_engine(program, network, model, threads).noting_loads()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn replays_give_the_same_bits_on_any_number_of_threads(records in any_groups(32), shape in 0..SHAPES.len()) {
        prop_assume!(records.ranks.len() <= 32);
        let (program, network) = (records.program(), network(SHAPES[shape]));
        for model in [Model::Fair, Model::ClosedLoop, Model::Packet] {
            let expected = engine(&program, &network, model, 1).run();
            for threads in [2, 5] {
                prop_assert_eq!(&engine(&program, &network, model, threads).run(), &expected, "{:?}", model);
            }
        }
    }
}

#[test]
fn messages_that_share_a_global_cable_lose_their_time_there() {
    let text = "#DIMEMAS:\"t\":0:4(1,1,1,1),1\nd:1:1:4:0:1:2:3\n2:0:0:2:-1:1000000:1:1:0\n2:1:0:3:-1:2000000:1:1:0\n\
                3:2:0:0:-1:1000000:1:1:0\n3:3:0:1:-1:2000000:1:1:0\n";
    let program = program_of(text);
    let network = network("dragonfly = { groups = 2, switches = 1, nodes = 2, global = 1 }");
    let outcome = engine(&program, &network, Model::Fair, 1).run().unwrap();
    // Both have half of the cable for 20 ms, until the shorter one ends. Alone they take 10 and 20 ms.
    let [global] = &outcome.delays[..] else {
        panic!("{:?}", outcome.delays);
    };
    assert_eq!((global.class.as_str(), global.messages), ("global", 2));
    assert_eq!(global.worst, "global cable from group 0 to group 1");
    let millis = |time: Time| (time.as_seconds() * 1e9).round() / 1e6;
    assert_eq!([global.lost, global.lost_there].map(millis), [20.0; 2]);
    let lost: Vec<(f64, &str)> = outcome
        .delayed
        .iter()
        .map(|message| (millis(message.lost), message.link.as_str()))
        .collect();
    assert_eq!(lost, [(10.0, global.worst.as_str()); 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For networks without a cable that is slower than an interface.
    #[test]
    fn the_time_that_messages_lose_at_links_is_their_delay_over_the_time_alone(
        records in any_groups(32),
        shape in prop::sample::select(vec![1usize, 2, 3, 5, 6, 7, 8, 9]),
    ) {
        prop_assume!(records.ranks.len() <= 32);
        let (program, network) = (records.program(), network(SHAPES[shape]));
        let engine = engine(&program, &network, Model::Fair, 1);
        let (outcome, journal) = recorded(&program, |journal| engine.observed(journal));
        let (sources, mut longer) = (program.sources(), Time::ZERO);
        for slot in (0..program.messages()).map(Slot) {
            let flight = journal.flight(slot);
            let sender = program.owner(sources[slot.index()].0);
            if sender == program.owner(program.receiver(slot)) {
                continue;
            }
            let (Some(start), Some(arrival)) = (flight.start, flight.arrival) else {
                continue;
            };
            let size = program.class(flight.class).size;
            let alone = network.nic.latency + network.nic.time_for(size);
            longer += arrival - start - alone;
        }
        let lost = outcome.delays.iter().map(|delay| delay.lost).fold(Time::ZERO, |sum, lost| sum + lost);
        let difference = (lost - longer).as_nanos().abs();
        prop_assert!(difference <= 1e-6 * (1.0 + outcome.makespan().as_nanos()), "{lost} {longer}");
        let messages: u64 = outcome.delays.iter().map(|delay| delay.messages).sum();
        prop_assert!(messages <= u64::from(program.messages()));
        prop_assert_eq!(outcome.delayed.len() as u64, messages.min(100));
    }
}

/// The networks agree with the numbers in the files of machines.
#[test]
fn machines_have_the_nodes_and_links_of_their_sources() {
    let machine = |name| flowcast::model::builtin::network(name).unwrap();
    let crossed = |network: &Network, pairs: &[(u32, u32)]| {
        let pairs: Vec<[Node; 2]> = pairs
            .iter()
            .map(|(one, other)| [Node(*one), Node(*other)])
            .collect();
        network.topology.as_ref().unwrap().crossed(&pairs).unwrap()
    };
    let leonardo = machine("leonardo");
    let topology = leonardo.topology.as_ref().unwrap();
    assert_eq!(topology.nodes().unwrap(), Some(23 * 180));
    // One connection from each of 18 spines to each of 22 other cells.
    let interface = leonardo.nic.rate();
    let links = |topology: &Topology, interface: Rate, level| {
        let leaving = topology.leaving(level, interface).unwrap().unwrap();
        (leaving.as_bytes_per_second() / interface.as_bytes_per_second()).round()
    };
    assert_eq!(links(topology, interface, 1), 396.0);
    let ways = crossed(&leonardo, &[(0, 9), (0, 10), (0, 180)]);
    assert_eq!(
        ways.iter().map(|way| (way[1], way[2])).collect::<Vec<_>>(),
        [(0, 0), (2, 0), (2, 1)]
    );

    let lumi = machine("lumi");
    let topology = lumi.topology.as_ref().unwrap();
    assert_eq!(topology.nodes().unwrap(), Some(24 * 128));
    assert_eq!(links(topology, lumi.nic.rate(), 1), 23.0 * 20.0);

    let mare_nostrum = machine("mare-nostrum-5");
    let topology = mare_nostrum.topology.as_ref().unwrap();
    assert_eq!(topology.nodes().unwrap(), Some(1120));
    let nodes = f64::from(mare_nostrum.nic.count) * 32.0;
    assert_eq!(
        [0, 1].map(|level| links(topology, mare_nostrum.nic.rate(), level)),
        [nodes, 5.0 * nodes]
    );
}

#[test]
fn programs_run_on_the_machines_under_all_models() {
    let text = "#DIMEMAS:\"t\":0:2(1,1),1\nd:1:1:2:0:1\n2:0:0:1:-1:100000:1:1:0\n3:1:0:0:-1:100000:1:1:0\n";
    let program = program_of(text);
    for name in ["leonardo", "lumi", "mare-nostrum-5"] {
        let network = flowcast::model::builtin::network(name).unwrap();
        for model in [
            Model::Independent,
            Model::Fair,
            Model::ClosedLoop,
            Model::Packet,
        ] {
            let outcome = engine(&program, &network, model, 1).run().unwrap();
            let alone = network.nic.latency + network.nic.time_for(Bytes(100_000));
            let makespan = outcome.makespan();
            // Packets have the rate of the wire, which is higher.
            assert!(
                makespan >= alone * 0.9 && makespan <= alone * 1.5,
                "{name} {model:?}: {makespan}"
            );
        }
    }
}

#[test]
fn latency_of_cables_is_latency_and_not_conflict() {
    let shape = "dragonfly = { groups = 2, switches = 1, nodes = 1, global = 1, global_cables = { latency = \"1ms\" } }";
    let network = network(shape);
    for sync in [0, 1] {
        let text = format!(
            "#DIMEMAS:\"t\":0:2(1,1),1\nd:1:1:2:0:1\n2:0:0:1:-1:1000:1:1:{sync}\n3:1:0:0:-1:1000:1:1:0\n"
        );
        let program = program_of(text);
        for model in [Model::Independent, Model::Fair] {
            let engine = engine(&program, &network, model, 1);
            let (outcome, explanation) = explained(&engine);
            let of = |part| explanation.ranks[1].time(part).as_micros().round();
            // 1 us for the interface, 1000 us for the cable, 10 us for the bytes.
            assert_eq!(outcome.makespan().as_micros().round(), 1011.0);
            assert_eq!(of(TimePart::Contention), 0.0, "{model:?} {sync}");
            assert_eq!(of(TimePart::Latency), 1001.0, "{model:?} {sync}");
            let (_, graph) = EventGraph::record(&engine).unwrap();
            let path = graph.critical_path();
            let shares = path.shares();
            let latency = shares.iter().find(|share| share.limit == TimePart::Latency);
            assert_eq!(latency.unwrap().time.as_micros().round(), 1001.0);
            assert!(
                shares
                    .iter()
                    .all(|share| share.limit != TimePart::Contention || share.time == Time::ZERO)
            );
        }
    }
}
