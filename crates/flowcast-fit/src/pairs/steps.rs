//! Messages of the pairs of a round: each size in one direction, then in the other, and the largest in both directions at
//! the same time.

use flowcast_network::cluster::flow::Flow;
use flowcast_units::{Bytes, Node, Time};

use super::samples::ConcurrentLoad;

/// Returns the steps of a round, each with flows that start together.
pub fn steps(round: &[(Node, Node)], sizes: &[Bytes]) -> Vec<(ConcurrentLoad, Vec<Flow>)> {
    let back: Vec<(Node, Node)> = round.iter().map(|(one, other)| (*other, *one)).collect();
    let largest = sizes.iter().max();
    let mut steps = Vec::new();
    for size in sizes {
        steps.push((ConcurrentLoad::Alone, flows(round, *size)));
        steps.push((ConcurrentLoad::Alone, flows(&back, *size)));
        if Some(size) == largest {
            steps.push((ConcurrentLoad::Both, flows(&[round, &back].concat(), *size)));
        }
    }
    steps
}

fn flows(pairs: &[(Node, Node)], size: Bytes) -> Vec<Flow> {
    (1..)
        .zip(pairs)
        .map(|(id, (src, dst)): (u32, &(Node, Node))| Flow {
            id,
            src: *src,
            dst: *dst,
            size,
            start: Time::ZERO,
        })
        .collect()
}
