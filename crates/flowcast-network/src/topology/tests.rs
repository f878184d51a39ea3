//! Tests of routes and other properties of topologies.

use super::{
    wiring::{Hop, Wiring},
    *,
};
use dragonfly::Arrangement;
use std::collections::BTreeSet;

/// Cables on the route of the first message.
pub(crate) fn hops(wiring: &dyn Wiring, src: u32, dst: u32) -> Vec<Hop> {
    hops_of(wiring, src, dst, 0)
}

fn hops_of(wiring: &dyn Wiring, src: u32, dst: u32, message: u64) -> Vec<Hop> {
    let trip = Trip {
        src: Node(src),
        dst: Node(dst),
        plane: 0,
        message,
    };
    let mut way = Vec::new();
    wiring.way(&trip, &mut way);
    way
}

/// Checks that these cables lead from the switch of one node to the switch of the other.
pub(crate) fn assert_walk(wiring: &dyn Wiring, way: &[Hop], src: u32, dst: u32) {
    let mut at = wiring.switch_of(Node(src));
    for hop in way {
        let [mut from, mut to] = wiring.ends(hop.cable);
        if hop.is_backward {
            (from, to) = (to, from);
        }
        assert_eq!(at, from, "{src} {dst} {hop:?} of {way:?}");
        at = to;
    }
    assert_eq!(at, wiring.switch_of(Node(dst)), "{src} {dst} {way:?}");
}

/// Checks that all routes and detours between the first `nodes` nodes are connected, and that each route uses only cables
/// that [`Wiring::cables`] returns for its two nodes.
pub(crate) fn check_ways(wiring: &dyn Wiring, nodes: u32) {
    for (src, dst) in (0..nodes).flat_map(|src| (0..nodes).map(move |dst| (src, dst))) {
        let both = [src.min(dst), src.max(dst)].map(Node);
        let cables: BTreeSet<Cable> = wiring.cables(&both).into_iter().collect();
        let is_known = |hop: &Hop| cables.contains(&hop.cable);
        let mut detour = Vec::new();
        let trip = Trip {
            src: Node(src),
            dst: Node(dst),
            plane: 0,
            message: 5,
        };
        if wiring.detour(&trip, &mut detour) {
            assert_walk(wiring, &detour, src, dst);
        }
        for way in [0, 1].map(|message| hops_of(wiring, src, dst, message)) {
            assert_walk(wiring, &way, src, dst);
            assert!(way.len() as u32 <= wiring.longest(), "{way:?}");
            assert!(way.iter().all(is_known), "{src} {dst} {way:?}");
            let is_same = wiring.switch_of(Node(src)) == wiring.switch_of(Node(dst));
            assert_eq!(way.is_empty(), is_same);
            assert_eq!(wiring.meeting(Node(src), Node(dst)) == 0, is_same);
            assert!(wiring.meeting(Node(src), Node(dst)) < wiring.meetings().len());
        }
    }
}

/// Checks that the shortest route between two switches is as long as the shortest route of a message between nodes on them.
/// The routes of a single pair of nodes may all be longer.
fn check_distances(topology: &Topology) {
    let wiring = topology.wiring().unwrap();
    let nodes: Vec<Node> = (0..wiring.nodes().unwrap_or(40) as u32).map(Node).collect();
    let mut least = std::collections::BTreeMap::new();
    for (src, dst) in nodes
        .iter()
        .flat_map(|src| nodes.iter().map(move |dst| (*src, *dst)))
    {
        let way = hops(&*wiring, src.0, dst.0).len() as u16;
        let pair = [src, dst].map(|node| wiring.switch_of(node));
        let known = least.entry(pair).or_insert(way);
        *known = way.min(*known);
    }
    let mut distances = topology.distances(&nodes).unwrap();
    for (place, src) in nodes.iter().enumerate() {
        for (dst, cables) in nodes.iter().zip(distances.from_node(place)) {
            let pair = [*src, *dst].map(|node| wiring.switch_of(node));
            assert_eq!(cables, least[&pair], "{src} {dst} {topology:?}");
        }
    }
}

#[test]
fn distances_equal_the_lengths_of_the_shortest_routes() {
    let groups = |inside, per_pair, arrangement| TopologyShape::Dragonfly {
        groups: Dragonfly {
            groups: 4,
            inside,
            nodes: 6,
            global: 2,
            per_pair,
            arrangement,
        },
        local: CableKind::default(),
        global: CableKind::default(),
    };
    let (all, leaves) = (
        Inside::All { switches: 4 },
        Inside::LeavesAndSpines {
            leaves: 3,
            spines: 2,
        },
    );
    let grid = |sides: &[u32], is_torus| {
        let grid = SwitchGrid {
            sides: sides.to_vec(),
            is_torus,
            nodes_per_switch: 2,
        };
        TopologyShape::Grid(grid, CableKind::default())
    };
    let levels = |levels: &[Level]| {
        let kinds = levels.iter().map(|level| (*level, CableKind::default()));
        TopologyShape::Levels(kinds.collect())
    };
    let ring = SwitchGraph {
        nodes: vec![4, 0, 0, 2, 1],
        edges: vec![graph::Edges {
            between: vec![[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [1, 3]],
            count: 1,
        }],
    };
    for shape in [
        groups(all, None, Arrangement::Absolute),
        groups(all, None, Arrangement::Spread),
        groups(all, Some(1), Arrangement::Absolute),
        groups(leaves, Some(1), Arrangement::Absolute),
        grid(&[5, 4, 3], true),
        grid(&[1, 6], false),
        levels(&[Level::new(3, 2), Level::new(2, 2), Level::new(4, 0)]),
        levels(&[Level::new(7, 2), Level::new(2, 1)]),
        TopologyShape::Graph(ring, vec![("cable".to_owned(), CableKind::default())]),
    ] {
        check_distances(&Topology::new(shape));
    }
}

#[test]
fn a_topology_has_levels_and_rates_of_the_links_that_leave_them() {
    let groups = Dragonfly {
        groups: 9,
        inside: Inside::All { switches: 4 },
        nodes: 2,
        global: 2,
        per_pair: None,
        arrangement: Arrangement::Absolute,
    };
    let rate = |rate| CableKind {
        rate: Some(LinkRate::Goodput(Rate::from_bytes_per_second(rate))),
        ..CableKind::default()
    };
    let mut topology = Topology::new(TopologyShape::Dragonfly {
        groups,
        local: CableKind::default(),
        global: rate(3e9),
    });
    let names: Vec<String> = topology
        .classes()
        .into_iter()
        .map(|class| class.name)
        .collect();
    assert_eq!(names, ["node", "local", "global"]);
    let pair = |one, other| [Node(one), Node(other)];
    let pairs = [pair(0, 1), pair(0, 7), pair(0, 8), pair(71, 0)];
    assert_eq!(topology.meetings_of(&pairs).unwrap(), [0, 1, 2, 2]);
    assert!(topology.meetings_of(&[pair(0, 72)]).is_err());
    assert_eq!(
        topology.crossed(&pairs[..2]).unwrap(),
        [[2, 0, 0], [2, 1, 0]]
    );
    assert_eq!(topology.crossed(&pairs[2..]).unwrap()[0][2], 1);
    assert_eq!(topology.cables_mut().len(), 2);
    let interface = Rate::from_bytes_per_second(1e9);
    let leaving = |topology: &Topology, level| {
        let rate = topology.leaving(level, interface).unwrap();
        rate.map(|rate| rate.as_bytes_per_second())
    };
    assert_eq!(leaving(&topology, 0), Some(3e9 + 2.0 * 3e9));
    assert_eq!(leaving(&topology, 1), Some(8.0 * 3e9));
    assert_eq!(leaving(&topology, 2), None);
    topology.planes = 2;
    assert_eq!(leaving(&topology, 1), Some(48e9));
    topology.routing = Routing::DModK;
    let error = topology.check().unwrap_err().to_string();
    assert!(
        error.starts_with(
            "topology.routing: found `d-mod-k`, expected one of minimal, valiant, ugal"
        ),
        "{error}"
    );
}
