//! The validation pattern of RR-5910 section 6.2: a chain of nodes with flows that start one after the other.
//!
//! Flow `i` (from 1) connects the nodes `i-1` and `i`, starts at `i` ms and has `1, 2, 4, 2, 1, ..` MB. The paper prints the
//! sizes 1 to 5 and 9 to 13; four is the shortest period that fits them. On a network slower than the paper's 1 Gbit/s, the
//! starts of the same sizes are farther apart by the same factor.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::flow::Flow;
use flowcast_units::{Bytes, Node, Rate, Time};

const SIZES_MB: [u64; 4] = [1, 2, 4, 2];
const PAPERS_RATE: f64 = 125e6;

/// Direction of a flow in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainDirection {
    /// From the lower node to the higher.
    Up,
    /// From the higher node to the lower.
    Down,
}

/// Random directions, each up or down with probability 1/2.
pub fn random_directions(count: usize, seed: u64) -> Vec<ChainDirection> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    (0..count)
        .map(|_| {
            if random.random() {
                ChainDirection::Up
            } else {
                ChainDirection::Down
            }
        })
        .collect()
}

/// One flow for each direction, at intervals of one millisecond.
pub fn staggered_chain(directions: &[ChainDirection]) -> Vec<Flow> {
    chain_with_gap(directions, Time::from_nanos(1e6))
}

/// The chain for a network with this wire rate. The interval between starts is the paper's, scaled by the time per byte.
pub fn staggered_chain_at(directions: &[ChainDirection], rate: Rate) -> Vec<Flow> {
    chain_with_gap(
        directions,
        Time::from_nanos(1e6 * PAPERS_RATE / rate.as_bytes_per_second()),
    )
}

fn chain_with_gap(directions: &[ChainDirection], gap: Time) -> Vec<Flow> {
    (1u32..)
        .zip(directions)
        .map(|(id, direction)| chain_flow(id, *direction, gap))
        .collect()
}

fn chain_flow(id: u32, direction: ChainDirection, gap: Time) -> Flow {
    let (src, dst) = match direction {
        ChainDirection::Up => (Node(id - 1), Node(id)),
        ChainDirection::Down => (Node(id), Node(id - 1)),
    };
    let size = Bytes(SIZES_MB[(id as usize - 1) % SIZES_MB.len()] * 1_000_000);
    Flow {
        id,
        src,
        dst,
        size,
        start: gap * f64::from(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_flows_carry_sixty_six_megabytes() {
        let flows = staggered_chain(&[ChainDirection::Up; 30]);
        assert_eq!(
            flows.iter().map(|flow| flow.size.0).sum::<u64>(),
            66_000_000
        );
        assert_eq!(flows[29].start, Time::parse("30ms").unwrap());
        assert_eq!((flows[2].src, flows[2].dst), (Node(2), Node(3)));
    }

    #[test]
    fn at_a_fiftieth_of_the_rate_starts_are_fifty_times_farther_apart() {
        let flows =
            staggered_chain_at(&[ChainDirection::Down; 4], Rate::parse("20Mbit/s").unwrap());
        assert_eq!(flows[3].start, Time::parse("200ms").unwrap());
        assert_eq!(flows[3].size, Bytes(2_000_000));
    }

    #[test]
    fn a_seed_gives_the_same_directions_each_time_and_both_kinds() {
        let directions = random_directions(30, 7);
        assert_eq!(directions, random_directions(30, 7));
        assert_ne!(directions, random_directions(30, 8));
        let up = directions
            .iter()
            .filter(|direction| **direction == ChainDirection::Up)
            .count();
        assert!((5..=25).contains(&up), "{up}");
    }
}
