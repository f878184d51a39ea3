//! The validation pattern of RR-5910 section 6.2: a chain of nodes whose flows start one after the other.
//!
//! Flow `i` (from 1) joins the nodes `i-1` and `i`, starts at `i` ms and has `1, 2, 4, 2, 1, ..` MB. The paper prints
//! the sizes 1 to 5 and 9 to 13; four is the shortest period that fits them.

use super::flow::Flow;
use crate::units::{Bytes, Node, Time};

const SIZES_MB: [u64; 4] = [1, 2, 4, 2];

/// Which way a flow of the chain goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the lower node to the higher.
    Up,
    /// From the higher node to the lower.
    Down,
}

/// One flow for each direction given.
pub fn staggered_chain(directions: &[Direction]) -> Vec<Flow> {
    (1u32..).zip(directions).map(|(id, direction)| chain_flow(id, *direction)).collect()
}

fn chain_flow(id: u32, direction: Direction) -> Flow {
    let (src, dst) = match direction {
        Direction::Up => (Node(id - 1), Node(id)),
        Direction::Down => (Node(id), Node(id - 1)),
    };
    let size = Bytes(SIZES_MB[(id as usize - 1) % SIZES_MB.len()] * 1_000_000);
    Flow { id, src, dst, size, start: Time::from_nanos(f64::from(id) * 1e6) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_flows_carry_sixty_six_megabytes() {
        let flows = staggered_chain(&[Direction::Up; 30]);
        assert_eq!(flows.iter().map(|flow| flow.size.0).sum::<u64>(), 66_000_000);
        assert_eq!(flows[29].start, Time::parse("30ms").unwrap());
        assert_eq!((flows[2].src, flows[2].dst), (Node(2), Node(3)));
    }
}
