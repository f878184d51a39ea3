//! Programs whose ranks form a grid and send to neighbours: detection of the grid, and mappings by blocks of it.
//!
//! The last dimension of a grid varies fastest, as in the numbering of MPI_Cart_create. With a block of the grid on each
//! node, ranks have fewer neighbours on other nodes than with a row of ranks (Gropp: Using node and socket information to
//! implement MPI Cartesian topologies, Parallel Computing 85, 2019).

use flowcast_units::{Node, Rank};

use super::matrix::CommunicationMatrix;

/// Largest number of dimensions of the grids that are tried.
const MOST_DIMENSIONS: usize = 4;

/// A grid explains the messages if at least this share of the bytes goes between neighbours, and at least this share of the
/// pairs of neighbours communicates.
const NEIGHBOURS_SHARE: f64 = 0.9;

/// A grid that is cut into equal blocks, one for each node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridBlocks {
    /// Ranks along each dimension.
    pub dims: Vec<u32>,
    /// Ranks of a node along each dimension.
    pub block: Vec<u32>,
}

/// Returns the number of ranks along each dimension of the grid whose neighbours send each other nearly all bytes. `None`
/// if there is no such grid or it is a row.
pub fn grid_of(matrix: &CommunicationMatrix) -> Option<Vec<u32>> {
    let ranks = u32::try_from(matrix.ranks()).ok()?;
    let mut all = Vec::new();
    factorisations(ranks, MOST_DIMENSIONS, &mut Vec::new(), &mut all);
    let mut best = (0, None);
    // If two grids explain the same bytes, the one with fewer dimensions wins.
    all.sort_by_key(Vec::len);
    for dims in all {
        let bytes = explained(matrix, &dims);
        if bytes > best.0 {
            best = (bytes, Some(dims));
        }
    }
    best.1.filter(|dims| dims.len() > 1)
}

/// Bytes between neighbours of a grid, which may be a torus, counted for both ranks of each pair. Returns 0 if too many
/// bytes go elsewhere or too few pairs of neighbours communicate.
fn explained(matrix: &CommunicationMatrix, dims: &[u32]) -> u64 {
    let (mut bytes, mut missed, mut pairs) = (0, 0, 0);
    let most = 2.0 * matrix.bytes() as f64 * (1.0 - NEIGHBOURS_SHARE);
    for rank in Rank::all(matrix.ranks()) {
        for (partner, count) in matrix.partners(rank) {
            if are_neighbours(rank.0, partner.0, dims) {
                bytes += count;
                pairs += 1;
            } else {
                missed += count;
            }
        }
        if missed as f64 > most {
            return 0;
        }
    }
    let ranks = matrix.ranks() as f64;
    let of_mesh: f64 = dims
        .iter()
        .map(|side| 2.0 * ranks * (1.0 - 1.0 / f64::from(*side)))
        .sum();
    if f64::from(pairs) < NEIGHBOURS_SHARE * of_mesh {
        return 0;
    }
    bytes
}

fn are_neighbours(mut one: u32, mut other: u32, dims: &[u32]) -> bool {
    let mut steps = 0;
    for side in dims.iter().rev() {
        let apart = (one % side).abs_diff(other % side);
        steps += apart.min(side - apart);
        (one, other) = (one / side, other / side);
    }
    steps == 1
}

/// Adds to `all` the factorisations of a number into at most `most` factors above 1, in every order of the factors.
fn factorisations(number: u32, most: usize, before: &mut Vec<u32>, all: &mut Vec<Vec<u32>>) {
    if number == 1 {
        all.push(before.clone());
        return;
    }
    if most == 0 {
        return;
    }
    for factor in (2..=number).filter(|factor| number.is_multiple_of(*factor)) {
        before.push(factor);
        factorisations(number / factor, most - 1, before, all);
        before.pop();
    }
}

impl GridBlocks {
    /// Returns all blocks of `ranks_of_node` ranks into which a grid can be cut.
    pub fn all(dims: &[u32], ranks_of_node: u32) -> Vec<GridBlocks> {
        let mut blocks = Vec::new();
        blocks_of(dims, ranks_of_node, &mut Vec::new(), &mut blocks);
        blocks
            .into_iter()
            .map(|block| GridBlocks {
                dims: dims.to_vec(),
                block,
            })
            .collect()
    }

    /// Returns the node of each rank. Block n is on node n.
    pub fn mapping(&self) -> Vec<Node> {
        let ranks = self.dims.iter().product();
        (0..ranks).map(|rank| Node(self.block_of(rank))).collect()
    }

    fn block_of(&self, rank: u32) -> u32 {
        let (mut rest, mut number, mut stride) = (rank, 0, 1);
        for (side, block) in self.dims.iter().zip(&self.block).rev() {
            number += rest % side / block * stride;
            stride *= side / block;
            rest /= side;
        }
        number
    }
}

fn blocks_of(dims: &[u32], ranks: u32, before: &mut Vec<u32>, blocks: &mut Vec<Vec<u32>>) {
    let Some((side, rest)) = dims.split_first() else {
        if ranks == 1 {
            blocks.push(before.clone());
        }
        return;
    };
    for block in (1..=*side.min(&ranks))
        .filter(|block| side.is_multiple_of(*block) && ranks.is_multiple_of(*block))
    {
        before.push(block);
        blocks_of(rest, ranks / block, before, blocks);
        before.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::{super::matrix::message, *};

    fn halo(dims: &[u32]) -> CommunicationMatrix {
        let ranks: u32 = dims.iter().product();
        let mut messages = Vec::new();
        for one in 0..ranks {
            for other in one + 1..ranks {
                if are_neighbours(one, other, dims) {
                    messages.push(message(one, other, 1000));
                }
            }
        }
        messages.push(message(0, ranks - 1, 10));
        CommunicationMatrix::from_messages(ranks as usize, messages).unwrap()
    }

    #[test]
    fn grids_are_found_and_a_row_is_not_a_grid() {
        for dims in [
            vec![4, 6],
            vec![6, 4],
            vec![3, 4, 5],
            vec![8, 8],
            vec![4, 4, 4, 4],
        ] {
            assert_eq!(grid_of(&halo(&dims)), Some(dims));
        }
        assert_eq!(grid_of(&halo(&[12])), None);
        let tree = [(0, 4), (0, 2), (4, 6), (0, 1), (2, 3), (4, 5), (6, 7)];
        let tree = tree.map(|(from, to)| message(from, to, 10));
        let tree = CommunicationMatrix::from_messages(8, tree).unwrap();
        assert_eq!(grid_of(&tree), None);
        let nothing = CommunicationMatrix::from_messages(4, []).unwrap();
        assert_eq!(grid_of(&nothing), None);
    }

    #[test]
    fn a_block_has_as_many_ranks_as_a_node() {
        let all = GridBlocks::all(&[4, 6], 4);
        let blocks: Vec<&[u32]> = all.iter().map(|blocks| &blocks.block[..]).collect();
        assert_eq!(blocks, [[2, 2], [4, 1]]);
        let nodes: Vec<u32> = all[0].mapping().iter().map(|node| node.0).collect();
        assert_eq!(nodes[..12], [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
        assert_eq!(nodes[12], 3);
    }
}
