//! Placement: results of a search compared with all mappings, for any number of threads, and within the available slots.

use flowcast::{
    Options,
    model::{machine::inside::InsideNode, network::Network},
    units::{Node, Rate, Time},
};
use flowcast_place::{
    input::PlaceInput,
    job::Job,
    options::PlaceOptions,
    placed::{Placed, PlacementObjective},
    predictor::MappingPredictor,
    question::PlaceQuestion,
};
use proptest::prelude::*;

/// A network whose messages share interfaces of 100 MB/s, with further sections.
fn network(more: &str) -> Network {
    let text = format!(
        "schema = \"flowcast/network/2\"\nname = \"test\"\npoint_to_point = {{ rule = \"hockney\" }}\n[nic]\nlatency = \"1us\"\nbandwidth = \"100MB/s\"\n\
         [sharing]\nmodel = \"fair\"\n{more}"
    );
    let mut network = Network::from_toml(&text, &[]).unwrap();
    network.machine.set_inside(InsideNode {
        latency: Time::from_micros(1.0),
        rate: Rate::from_bytes_per_second(5e9),
    });
    network
}

fn options(seed: u64, moves: u64, threads: usize) -> PlaceOptions {
    PlaceOptions {
        seed,
        moves: Some(moves),
        has_time_limit: false,
        level: 0.9,
        threads,
    }
}

fn placed(
    text: &str,
    network: &Network,
    slots: &[u32],
    objective: PlacementObjective,
    options: PlaceOptions,
) -> Placed {
    let input = PlaceInput::read("test", text.as_bytes()).unwrap();
    let predictor = MappingPredictor::new(&input, network, Options::default()).unwrap();
    let job = Job {
        slots: slots.to_vec(),
        ..Job::default()
    };
    let question = PlaceQuestion::new(predictor, &job, options).unwrap();
    if objective == PlacementObjective::Hops {
        return question.least_hops(&mut |_| true).unwrap();
    }
    let mut search = question.time_search(&mut |_| true).unwrap();
    while !search.batch().is_empty() && (search.moves() == 0 || search.moves() < question.moves()) {
        let times = question.times(search.batch(), options.threads).unwrap();
        question.learn(&mut search, &times).unwrap();
    }
    question.found(&search).unwrap()
}

/// Rows of a matrix of `ranks` ranks; the highest rank has a row.
fn matrix(ranks: u32) -> impl Strategy<Value = String> {
    let row = (0..ranks, 0..ranks, 1u64..1000);
    prop::collection::vec(row, 1..30).prop_map(move |rows| {
        let rows = rows.into_iter().chain([(0, ranks - 1, 1)]);
        let rows = rows.map(|(from, to, kilobytes)| format!("{from},{to},{}\n", kilobytes * 1000));
        format!("from,to,bytes\n{}", rows.collect::<String>())
    })
}

fn both_ways(one: u32, other: u32) -> String {
    format!("{one},{other},10000\n{other},{one},10000\n")
}

fn assert_fits(nodes: &[Node], slots: &[u32]) {
    for (node, slots) in slots.iter().enumerate() {
        let there = nodes.iter().filter(|other| other.index() == node).count();
        assert!(there <= *slots as usize, "{there} ranks on node {node}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5))]

    #[test]
    fn a_search_on_equal_nodes_finds_the_optimum_of_all_mappings(matrix in matrix(6), seed in 0u64..100) {
        let network = network("");
        let slots = [2, 2, 2];
        let all = placed(&matrix, &network, &slots, PlacementObjective::Time, options(seed, 1000, 2));
        prop_assert!(all.ranking.is_some());
        // One more slot on one node, which no mapping needs, makes the nodes different.
        let search = placed(&matrix, &network, &[2, 2, 3], PlacementObjective::Time, options(seed, 1500, 2));
        prop_assert!(search.ranking.is_none());
        prop_assert!(search.best.value <= all.best.value * (1.0 + 1e-12), "{} {}", search.best.value, all.best.value);
    }

    #[test]
    fn mappings_fit_and_do_not_depend_on_threads(matrix in matrix(9), seed in 0u64..100) {
        let network = network("[topology]\nmesh = [3, 3]\n");
        let slots = [3, 1, 2, 1, 1, 2, 1, 1, 1];
        for objective in PlacementObjective::ALL {
            let moves = if objective == PlacementObjective::Time { 60 } else { 20_000 };
            let one = placed(&matrix, &network, &slots, objective, options(seed, moves, 1));
            assert_fits(&one.best.node_of_rank, &slots);
            prop_assert!(one.best.value <= one.fill.value.min(one.round_robin.value));
            prop_assert_eq!(one.verdict() == "gain", one.best.value <= 0.99 * one.fill.value);
            for threads in [2, 3] {
                let other = placed(&matrix, &network, &slots, objective, options(seed, moves, threads));
                prop_assert_eq!(&one, &other);
            }
        }
    }

    #[test]
    fn an_exhaustive_search_finds_the_least_hops_too(matrix in matrix(6), seed in 0u64..100) {
        // On one switch, hop-bytes are twice the bytes between nodes.
        let found = placed(&matrix, &network(""), &[2, 2, 2], PlacementObjective::Hops, options(seed, 50_000, 2));
        prop_assert_eq!(found.best.value, 2.0 * found.best.traffic.between.0 as f64);
        let mut least = f64::INFINITY;
        for code in 0..3u32.pow(6) {
            let nodes: Vec<u32> = (0..6).map(|rank| code / 3u32.pow(rank) % 3).collect();
            if (0..3).any(|node| nodes.iter().filter(|other| **other == node).count() > 2) {
                continue;
            }
            let rows = matrix.lines().skip(1).map(|row| {
                let mut numbers = row.split(',').map(|number| number.parse::<usize>().unwrap());
                let [from, to, bytes] = [(); 3].map(|()| numbers.next().unwrap());
                if nodes[from] == nodes[to] { 0.0 } else { 2.0 * bytes as f64 }
            });
            least = least.min(rows.sum());
        }
        prop_assert_eq!(found.best.value, least);
    }
}

#[test]
fn a_halo_on_a_torus_of_its_own_shape_crosses_one_cable_each() {
    let side = 4;
    let mut rows = "from,to,bytes\n".to_owned();
    // Ranks are numbered at random: 5 has no factor in common with 16.
    let rank = |x: u32, y: u32| ((x % side) * side + y % side) * 5 % 16;
    for (x, y) in (0..side).flat_map(|x| (0..side).map(move |y| (x, y))) {
        for (right, below) in [(1, 0), (0, 1)] {
            let (from, to) = (rank(x, y), rank(x + right, y + below));
            rows += &format!("{from},{to},1000\n");
        }
    }
    let network = network("[topology]\ntorus = [4, 4]\n");
    let found = placed(
        &rows,
        &network,
        &[1; 16],
        PlacementObjective::Hops,
        options(1, 300_000, 2),
    );
    assert_eq!(found.best.value, 32.0 * 1000.0 * 3.0);
    assert!(
        found
            .best
            .traffic
            .levels
            .iter()
            .any(|(name, bytes)| name == "x" && *bytes == 16_000)
    );
}

#[test]
fn blocks_of_a_grid_are_found_and_named() {
    let mut rows = "from,to,bytes\n".to_owned();
    for x in 0..8 {
        for y in 0..8 {
            if x < 7 {
                rows += &both_ways(x * 8 + y, x * 8 + y + 8);
            }
            if y < 7 {
                rows += &both_ways(x * 8 + y, x * 8 + y + 1);
            }
        }
    }
    let found = placed(
        &rows,
        &network(""),
        &[16; 4],
        PlacementObjective::Time,
        options(1, 20, 2),
    );
    let blocks = found.blocks.as_ref().expect("there is a grid");
    assert_eq!(
        (&blocks.dims[..], &blocks.block[..]),
        (&[8, 8][..], &[4, 4][..])
    );
    assert!(found.sentence().starts_with("the best mapping takes "));
}
