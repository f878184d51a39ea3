//! Picture of the matrix of bytes between ranks, for pages. Ranks appear in the order of their nodes.

use flowcast_table::Record;
use flowcast_units::{Node, Rank};

use super::matrix::CommunicationMatrix;

/// Maximum number of cells along a side. If there are more ranks, neighbouring ranks share a cell.
const SIDE: usize = 128;

/// Returns the bytes between ranks in the order of their nodes, row by row: `cells` of a square with `side` cells along
/// each side. If each rank has its own cell, `nodes` contains the first cell of every node except the first.
pub fn matrix_picture(matrix: &CommunicationMatrix, node_of_rank: &[Node]) -> Record {
    let ranks = matrix.ranks();
    let mut order: Vec<usize> = (0..ranks).collect();
    order.sort_by_key(|rank| (node_of_rank[*rank], *rank));
    let mut place = vec![0; ranks];
    for (at, rank) in order.iter().enumerate() {
        place[*rank] = at;
    }
    let ranks_per_cell = ranks.div_ceil(SIDE).max(1);
    let side = ranks.div_ceil(ranks_per_cell);
    let mut cells = vec![0u64; side * side];
    for rank in Rank::all(ranks) {
        let row = place[rank] / ranks_per_cell;
        for (partner, bytes) in matrix.partners(rank) {
            cells[row * side + place[partner] / ranks_per_cell] += bytes;
        }
    }
    let nodes: Vec<u64> = match ranks_per_cell {
        1 => (1..ranks)
            .filter(|at| node_of_rank[order[*at]] != node_of_rank[order[at - 1]])
            .map(|at| at as u64)
            .collect(),
        _ => Vec::new(),
    };
    let record = Record::new()
        .field("side", side as u64)
        .field("ranks_per_cell", ranks_per_cell as u64);
    record.field("cells", cells).field("nodes", nodes)
}

#[cfg(test)]
mod tests {
    use super::{super::matrix::message, *};

    #[test]
    fn ranks_of_a_node_are_neighbours() {
        let messages = [message(0, 2, 5), message(1, 0, 1)];
        let matrix = CommunicationMatrix::from_messages(3, messages).unwrap();
        let picture = matrix_picture(&matrix, &[Node(0), Node(1), Node(0)]);
        let expected = serde_json::json!({"side": 3, "ranks_per_cell": 1,
            "cells": [0, 5, 1, 5, 0, 0, 1, 0, 0], "nodes": [2]});
        assert_eq!(picture.json().unwrap(), expected);
    }
}
