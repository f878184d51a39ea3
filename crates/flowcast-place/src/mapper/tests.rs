//! Searches of small cases, compared with reference implementations.

use flowcast_network::topology::{
    CableKind, Topology, TopologyShape, grid::SwitchGrid, tree::Level,
};
use flowcast_units::Node;
use proptest::prelude::*;

use super::{
    super::{
        matrix::{CommunicationMatrix, message},
        target::Target,
    },
    *,
};

const LIMITS: SearchLimits = SearchLimits {
    seed: 7,
    moves: 20_000,
    threads: 2,
};

fn grid(sides: &[u32], is_torus: bool) -> Topology {
    let grid = SwitchGrid {
        sides: sides.to_vec(),
        is_torus,
        nodes_per_switch: 1,
    };
    Topology::new(TopologyShape::Grid(grid, CableKind::default()))
}

fn tree(downs: &[u32]) -> Topology {
    let last = downs.len() - 1;
    let level = |(at, down): (usize, &u32)| Level::new(*down, u32::from(at < last));
    let levels = downs.iter().enumerate().map(level);
    let kinds = levels.map(|level| (level, CableKind::default()));
    Topology::new(TopologyShape::Levels(kinds.collect()))
}

fn matrix(ranks: usize, messages: &[[u32; 3]]) -> CommunicationMatrix {
    let known = |[src, dst, bytes]: &[u32; 3]| {
        let rank = |number: &u32| number % ranks as u32;
        message(rank(src), rank(dst), u64::from(*bytes))
    };
    CommunicationMatrix::from_messages(ranks, messages.iter().map(known)).unwrap()
}

fn target(slots: &[u32], shape: usize) -> Target {
    let positions: Vec<Node> = (0..slots.len() as u32).map(|node| Node(2 * node)).collect();
    let topologies = [
        grid(&[4, 5], true),
        grid(&[7, 2, 2], false),
        tree(&[2, 3, 4]),
    ];
    Target::new(slots.to_vec(), topologies.get(shape), &positions).unwrap()
}

fn all_mappings(
    ranks: usize,
    slots: &mut [u32],
    mapping: &mut Vec<Node>,
    visit: &mut dyn FnMut(&[Node]),
) {
    if mapping.len() == ranks {
        return visit(mapping);
    }
    for node in 0..slots.len() {
        if slots[node] > 0 {
            slots[node] -= 1;
            mapping.push(Node(node as u32));
            all_mappings(ranks, slots, mapping, visit);
            mapping.pop();
            slots[node] += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_mapping_found_is_valid_and_independent_of_the_number_of_threads(
        messages in prop::collection::vec([0..40u32, 0..40u32, 0..1000u32], 0..120),
        slots in prop::collection::vec(0..6u32, 1..10),
        shape in 0..4usize,
        empty in 0..4u32,
    ) {
        let ranks = slots.iter().sum::<u32>().saturating_sub(empty).max(1) as usize;
        let (matrix, target) = (matrix(ranks, &messages), target(&slots, shape));
        let find = |threads| least_hops(&matrix, &target, SearchLimits { threads, ..LIMITS }, &mut |_| true);
        let Ok(found) = find(1) else {
            prop_assert!(ranks > slots.iter().sum::<u32>() as usize);
            return Ok(());
        };
        prop_assert_eq!(found.node_of_rank.len(), ranks);
        for (node, slots) in (0..).zip(&slots) {
            let held = found.node_of_rank.iter().filter(|other| **other == Node(node)).count();
            prop_assert!(held <= *slots as usize);
        }
        let hops: u64 = messages.iter().map(|[src, dst, bytes]| {
            let node = |number: &u32| found.node_of_rank[*number as usize % ranks];
            u64::from(*bytes) * u64::from(target.distance(node(src), node(dst)))
        }).sum();
        prop_assert_eq!(found.hops, hops);
        prop_assert_eq!(&find(2).unwrap(), &found);
        prop_assert_eq!(&find(3).unwrap(), &found);
    }

    #[test]
    fn the_best_mapping_of_few_ranks_is_found(
        messages in prop::collection::vec([0..6u32, 0..6u32, 0..100u32], 1..20),
        slots in prop::collection::vec(0..3u32, 4..6),
        shape in 0..4usize,
    ) {
        let ranks = slots.iter().sum::<u32>().clamp(1, 6) as usize;
        prop_assume!(slots.iter().sum::<u32>() as usize >= ranks);
        let (matrix, target) = (matrix(ranks, &messages), target(&slots, shape));
        let mut least = u64::MAX;
        all_mappings(ranks, &mut slots.clone(), &mut Vec::new(), &mut |mapping| {
            least = least.min(target.hops(&matrix, mapping));
        });
        let limits = SearchLimits { moves: 100_000, ..LIMITS };
        let found = least_hops(&matrix, &target, limits, &mut |_| true).unwrap();
        prop_assert_eq!(found.hops, least);
    }

    #[test]
    fn a_stopped_search_finds_the_same_as_a_search_limited_to_its_moves(
        messages in prop::collection::vec([0..30u32, 0..30u32, 0..1000u32], 1..90),
        rounds in 1..6usize,
    ) {
        let (matrix, target) = (matrix(30, &messages), target(&[4; 9], 0));
        let mut left = rounds;
        let mut told = Vec::new();
        let stopped = least_hops(&matrix, &target, SearchLimits { moves: u64::MAX, ..LIMITS }, &mut |progress| {
            told.push(progress.hops);
            left -= 1;
            left > 0
        }).unwrap();
        let moves = stopped.moves;
        let found = least_hops(&matrix, &target, SearchLimits { moves, ..LIMITS }, &mut |_| true).unwrap();
        prop_assert_eq!(&stopped, &found);
        prop_assert!(told.is_sorted_by(|before, after| before >= after));
    }
}

/// Halo exchanges of a grid with shuffled rank numbers.
fn shuffled_halo(sides: &[u32], is_torus: bool) -> CommunicationMatrix {
    let ranks: u32 = sides.iter().product();
    let mut messages = Vec::new();
    for rank in 0..ranks {
        let mut stride = 1;
        for side in sides {
            let here = rank / stride % side;
            if here + 1 < *side || is_torus {
                messages.push([rank, rank + stride * ((here + 1) % side) - stride * here, 5]);
            }
            stride *= side;
        }
    }
    // 37 has no divisor in common with the numbers of ranks here.
    let renamed = messages
        .iter()
        .map(|[src, dst, bytes]| [src * 37 % ranks, dst * 37 % ranks, *bytes]);
    matrix(ranks as usize, &renamed.collect::<Vec<_>>())
}

#[test]
fn a_grid_on_an_equal_grid_has_neighbours_at_neighbours() {
    for (sides, is_torus, onto) in [
        (&[6, 5][..], true, grid(&[6, 5], true)),
        (&[8, 8], true, grid(&[8, 8], true)),
        (&[5, 4, 4], false, grid(&[5, 4, 4], true)),
        (&[6, 4, 5], false, grid(&[6, 4, 5], false)),
    ] {
        let matrix = shuffled_halo(sides, is_torus);
        let positions: Vec<Node> = (0..matrix.ranks() as u32).map(Node).collect();
        let target = Target::new(vec![1; matrix.ranks()], Some(&onto), &positions).unwrap();
        let limits = SearchLimits { moves: 0, ..LIMITS };
        let found = least_hops(&matrix, &target, limits, &mut |_| true).unwrap();
        assert_eq!(found.hops, 3 * matrix.bytes(), "{sides:?} {is_torus}");
    }
}

#[test]
fn squares_of_a_mesh_fit_on_nodes() {
    let matrix = shuffled_halo(&[8, 8], false);
    let positions: Vec<Node> = (0..4).map(Node).collect();
    let target = Target::new(vec![16; 4], Some(&tree(&[2, 2])), &positions).unwrap();
    let found = least_hops(&matrix, &target, LIMITS, &mut |_| true).unwrap();
    // With four squares, 8 messages cross each of the two middle lines: 2 links on one line, 4 on the other.
    assert_eq!(found.hops, 5 * (8 * 2 + 8 * 4));
}
