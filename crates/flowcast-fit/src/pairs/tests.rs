//! Synthetic networks: planted nodes, links, ports and racks are found, and healthy networks raise no alarm.

use super::{
    racks::{groups, racks, topology},
    samples::{ConcurrentLoad, PairSamples},
    *,
};
use flowcast_network::{cluster::tournament::rounds, topology::TopologyShape};
use flowcast_statistics::resampling::{Resampler, normal_score};
use flowcast_units::{Bytes, Rate};

/// Times between `count` nodes with 3 % noise, multiplied by `slow`.
fn times(count: u32, seed: u64, slow: impl Fn(u32, u32) -> f64) -> PairTimes {
    let pairs: Vec<(u32, u32)> = (0..count)
        .flat_map(|from| (0..count).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect();
    let all = pairs.len() as f64;
    let mut noise: Vec<f64> = (0..pairs.len())
        .map(|at| 0.03 * normal_score((at as f64 + 0.5) / all))
        .collect();
    Resampler::from_seed(seed).shuffle(&mut noise);
    pairs
        .iter()
        .zip(noise)
        .map(|((from, to), noise): (&(u32, u32), f64)| {
            (
                (Node(*from), Node(*to)),
                Time::from_micros(100.0 * slow(*from, *to) * noise.exp()),
            )
        })
        .collect()
}

fn found(times: &PairTimes) -> Vec<Slow> {
    analyse(times, None, PairOptions::default())
        .unwrap()
        .findings
        .iter()
        .map(|finding| finding.slow)
        .collect()
}

#[test]
fn planted_nodes_and_links_are_found_in_fifty_of_fifty_networks_and_nothing_else() {
    for seed in 0..50 {
        let planted = times(32, seed, |from, to| match (from, to) {
            (7, _) => 1.3,
            (_, 12) => 1.5,
            (3, 20) => 1.4,
            _ => 1.0,
        });
        let mut slow = found(&planted);
        slow.sort_unstable();
        assert_eq!(
            slow,
            [
                Slow::Sender(Node(7)),
                Slow::Receiver(Node(12)),
                Slow::Link(Node(3), Node(20))
            ],
            "{seed}"
        );
    }
}

#[test]
fn healthy_networks_have_no_alarm() {
    let alarms = (0..50)
        .filter(|seed| !found(&times(32, *seed, |_, _| 1.0)).is_empty())
        .count();
    assert_eq!(alarms, 0);
    let small = (0..50)
        .filter(|seed| !found(&times(4, *seed, |_, _| 1.0)).is_empty())
        .count();
    assert!(small <= 2, "{small}");
}

#[test]
fn a_half_duplex_port_is_distinguished_from_a_slow_one() {
    let alone = times(8, 1, |_, _| 1.0);
    let both = times(
        8,
        2,
        |from, to| if from == 5 || to == 5 { 2.0 } else { 1.0 },
    );
    let analysis = analyse(&alone, Some(&both), PairOptions::default()).unwrap();
    let slow: Vec<Slow> = analysis
        .findings
        .iter()
        .map(|finding| finding.slow)
        .collect();
    assert_eq!(slow, [Slow::HalfDuplex(Node(5))]);
    assert!((analysis.findings[0].times - 2.0).abs() < 0.2);
    assert!((analysis.usual.as_micros() - 100.0).abs() < 3.0);
}

#[test]
fn three_nodes_are_too_few() {
    assert!(analyse(&times(3, 1, |_, _| 1.0), None, PairOptions::default()).is_err());
}

/// Two racks with alternating nodes. Messages between the racks take twice as long.
fn in_turn(from: u32, to: u32) -> f64 {
    if from % 2 == to % 2 { 1.0 } else { 2.0 }
}

#[test]
fn racks_are_found_despite_a_slow_node_and_a_slow_link_and_healthy_networks_have_none() {
    for seed in 0..20 {
        let found = groups(
            &times(16, seed, |from, to| {
                in_turn(from, to) * if from == 5 { 3.0 } else { 1.0 }
            }),
            0.1,
        );
        let found = found.unwrap().unwrap();
        let numbers: Vec<Vec<u32>> = found
            .nodes
            .iter()
            .map(|group| group.iter().map(|node| node.0).collect())
            .collect();
        assert_eq!(
            numbers,
            [
                (0..16).step_by(2).collect::<Vec<u32>>(),
                (1..16).step_by(2).collect()
            ],
            "{seed}"
        );
        assert!((found.times - 2.0).abs() < 0.1, "{}", found.times);
        assert_eq!(
            groups(
                &times(16, seed, |from, to| if from == 3 || to == 3 {
                    2.0
                } else {
                    1.0
                }),
                0.1
            )
            .unwrap(),
            None,
            "{seed}"
        );
        assert_eq!(
            groups(&times(16, seed, |_, _| 1.0), 0.1).unwrap(),
            None,
            "{seed}"
        );
    }
}

#[test]
fn four_racks_of_four_become_a_topology_with_the_rate_of_their_cables() {
    // A node sends 100 MB/s and the cable of a rack 200 MB/s. Three or four messages that leave at the same time share it.
    let size = Bytes(1_000_000);
    let nodes: Vec<Node> = (0..16).map(Node).collect();
    let mut samples = PairSamples::default();
    for round in rounds(&nodes) {
        let back: Vec<(Node, Node)> = round.iter().map(|(one, other)| (*other, *one)).collect();
        for pairs in [round, back] {
            let leaves = |from: Node, to: Node| from.0 / 4 != to.0 / 4;
            for (from, to) in &pairs {
                let of_rack = |end: fn(&(Node, Node)) -> Node, own: Node| {
                    pairs
                        .iter()
                        .filter(|pair| leaves(pair.0, pair.1) && end(pair).0 / 4 == own.0 / 4)
                        .count()
                };
                let at_once = of_rack(|pair| pair.0, *from).max(of_rack(|pair| pair.1, *to));
                let share = if leaves(*from, *to) {
                    (at_once as f64 / 2.0).max(1.0)
                } else {
                    1.0
                };
                let time = Time::from_seconds(0.01 * share);
                samples.extend(size, ConcurrentLoad::Alone, *from, *to, [time]);
                // The path has two more switches.
                let small = Time::from_micros(if leaves(*from, *to) { 14.0 } else { 10.0 });
                samples.extend(Bytes(1), ConcurrentLoad::Alone, *from, *to, [small]);
            }
        }
    }
    let (seen_by, found) = racks(&samples, 0.1).unwrap().unwrap();
    assert_eq!((seen_by, found.nodes.len()), (Bytes(1), 4));
    let TopologyShape::Levels(levels) = topology(&found, &samples).unwrap().shape else {
        panic!("{found:?}")
    };
    assert_eq!((levels[0].0.down, levels[0].0.up), (4, 1));
    assert_eq!(
        levels[0].1.rate.unwrap().goodput(),
        Rate::from_bytes_per_second(2e8)
    );
    // A network file cannot express racks whose nodes are not numbered consecutively.
    let mixed = groups(&times(16, 1, in_turn), 0.1).unwrap().unwrap();
    assert_eq!(topology(&mixed, &samples), None);
}

/// The lower quartile of five repetitions, as on a busy machine: each has 5 % noise, and one in twenty is up to three times
/// as long.
fn repeated(count: u32, seed: u64, slow: impl Fn(u32, u32) -> f64) -> PairTimes {
    let mut scores: Vec<f64> = (0..1000)
        .map(|at| normal_score((f64::from(at) + 0.5) / 1000.0))
        .collect();
    let mut late: Vec<f64> = (0..1000)
        .map(|at| {
            if at < 50 {
                1.0 + f64::from(at) / 25.0
            } else {
                1.0
            }
        })
        .collect();
    let mut chance = Resampler::from_seed(seed);
    chance.shuffle(&mut scores);
    chance.shuffle(&mut late);
    let pairs = (0..count)
        .flat_map(|from| (0..count).map(move |to| (from, to)))
        .filter(|(from, to)| from != to);
    let mut drawn: Vec<f64> = Vec::new();
    pairs
        .map(|(from, to): (u32, u32)| {
            let mut times = [0.0; 5].map(|_| {
                if drawn.is_empty() {
                    chance.draw_into(&scores, &mut drawn);
                    let mut factors = Vec::new();
                    chance.draw_into(&late, &mut factors);
                    drawn
                        .iter_mut()
                        .zip(factors)
                        .for_each(|(score, late)| *score = (0.05 * *score).exp() * late);
                }
                Time::from_micros(
                    100.0 * slow(from, to) * drawn.pop().expect("there are a thousand"),
                )
            });
            ((Node(from), Node(to)), typical(&mut times))
        })
        .collect()
}

/// Prints the figures of the page: `cargo test -p flowcast-fit planted -- --nocapture`.
#[test]
fn planted_senders_receivers_links_and_ports_are_found_among_busy_nodes_with_few_alarms_of_healthy_ones()
 {
    let (mut found_all, mut alarms) = (0, 0);
    for seed in 0..50 {
        let planted = |from, to| match (from, to) {
            (7, _) => 1.3,
            (_, 12) => 1.5,
            (3, 20) => 1.4,
            _ => 1.0,
        };
        let (alone, both) = (
            repeated(32, seed, planted),
            repeated(32, seed + 1000, |from, to| {
                planted(from, to) * if from == 25 || to == 25 { 1.8 } else { 1.0 }
            }),
        );
        let analysis = analyse(&alone, Some(&both), PairOptions::default()).unwrap();
        let mut slow: Vec<Slow> = analysis
            .findings
            .iter()
            .map(|finding| finding.slow)
            .collect();
        slow.sort_unstable();
        let wanted = [
            Slow::Sender(Node(7)),
            Slow::Receiver(Node(12)),
            Slow::HalfDuplex(Node(25)),
            Slow::Link(Node(3), Node(20)),
        ];
        found_all += u32::from(slow == wanted);
        let healthy = (
            repeated(32, seed + 2000, |_, _| 1.0),
            repeated(32, seed + 3000, |_, _| 1.0),
        );
        let alarm = analyse(&healthy.0, Some(&healthy.1), PairOptions::default()).unwrap();
        let racks = groups(&healthy.0, 0.1).unwrap();
        alarms += u32::from(!alarm.findings.is_empty() || racks.is_some());
    }
    println!(
        "all four planted, and nothing else, found in {found_all} of 50; alarms in {alarms} of 50 healthy networks"
    );
    assert!(found_all >= 41 && alarms <= 4, "{found_all} {alarms}");
}

/// Two packages with two caches of four cores each. The relative time is 1 within a cache, 1.3 in a package and 2.6 to the
/// other package.
fn between_cores(from: u32, to: u32) -> f64 {
    match (from / 4 == to / 4, from / 8 == to / 8) {
        (true, _) => 1.0,
        (_, true) => 1.3,
        _ => 2.6,
    }
}

#[test]
fn packages_of_cores_are_found_or_caches_within_a_single_package() {
    let blocks = |count: u32, size: u32| {
        (0..count)
            .step_by(size as usize)
            .map(move |at| (at..at + size).map(Node).collect())
    };
    for seed in 0..20 {
        let found = groups(&times(16, seed, between_cores), 0.1)
            .unwrap()
            .unwrap();
        assert_eq!(
            found.nodes,
            blocks(16, 8).collect::<Vec<Vec<Node>>>(),
            "{seed}"
        );
        let found = groups(&times(8, seed, between_cores), 0.1)
            .unwrap()
            .unwrap();
        assert_eq!(
            found.nodes,
            blocks(8, 4).collect::<Vec<Vec<Node>>>(),
            "{seed}"
        );
        assert!((found.times - 1.3).abs() < 0.06, "{}", found.times);
    }
}

#[test]
fn a_slow_core_is_named_and_packages_are_no_fault() {
    for seed in 0..20 {
        assert_eq!(found(&times(16, seed, between_cores)), [], "{seed}");
        assert_eq!(
            found(&times(16, seed, |from, to| between_cores(from, to)
                * if from == 5 { 2.0 } else { 1.0 })),
            [Slow::Sender(Node(5))],
            "{seed}"
        );
    }
}
