//! Temporary buffers of an algorithm, as in Open MPI's coll/base (4.1.5, `coll_base_*.c`). Other libraries have the same
//! buffers if they use the same algorithm.

use flowcast_network::algorithm::{
    Algorithm::{self, *},
    Choice,
};
use flowcast_units::CollectiveOp::{self, Reduce, ReduceScatter, ReduceScatterBlock};

/// Number of temporaries of the size of the operation's buffer that a rank requests from the kernel. The ring of a
/// reduce-scatter has one of them and touches it twice, to copy and to combine in it.
pub(super) fn temporaries(op: CollectiveOp, choice: Choice) -> f64 {
    match (op, choice.algorithm) {
        (CollectiveOp::Allreduce, RecursiveDoubling | Rabenseifner) => 1.0,
        (ReduceScatter | ReduceScatterBlock, Algorithm::Ring) => 1.9,
        (ReduceScatter | ReduceScatterBlock, _) => 2.0,
        (Reduce, Linear) => 1.0,
        (Reduce, Rabenseifner) => 2.0,
        (Reduce, _) if choice.segment.is_none() => 3.0,
        _ => 0.0,
    }
}
