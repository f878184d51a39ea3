//! Functions of MPICH 4.0 that implement collective operations, and the calls that they support.

use flowcast_network::algorithm::Algorithm;
use flowcast_units::CollectiveOp;

use super::{LIBRARY, selection::AlgorithmSelection};
use crate::library_rules::{LibraryRule, LibraryRuleError};

/// Selects `function` for calls that it supports, and `otherwise` for calls for which MPICH would abort or combine in a
/// wrong order: buffers in place, operations that do not commute, vectors with fewer elements than ranks.
pub(super) fn where_allowed(
    op: CollectiveOp,
    algorithm: Algorithm,
    function: AlgorithmSelection,
    otherwise: &AlgorithmSelection,
) -> AlgorithmSelection {
    use Algorithm::*;
    use CollectiveOp::*;
    let condition = match (op, algorithm) {
        (Alltoall | Alltoallv | Alltoallw, _) => "is_sendbuf_inplace=no",
        (Reduce | Allreduce, Rabenseifner) => "is_op_built_in=yes",
        (ReduceScatter | ReduceScatterBlock, Pairwise | RecursiveHalving) => "is_commutative=yes",
        (ReduceScatter, InterleavedHalving) => "is_block_regular=yes",
        _ => return function,
    };
    let function = match algorithm {
        Rabenseifner => {
            AlgorithmSelection::either(["count<pow2", "count=any"], [otherwise.clone(), function])
        }
        _ => function,
    };
    let opposite = match condition.strip_suffix("yes") {
        Some(question) => format!("{question}no"),
        None => condition.replace("=no", "=yes"),
    };
    AlgorithmSelection::either([condition, &opposite], [function, otherwise.clone()])
}

/// Algorithms of an operation and the endings of their functions' names in MPICH 4.0.
pub(super) const fn algorithms(op: CollectiveOp) -> &'static [(Algorithm, &'static str)] {
    use Algorithm::*;
    use CollectiveOp::*;
    match op {
        Barrier => &[(Dissemination, "dissemination")],
        Bcast => &[
            (Binomial, "binomial"),
            (
                ScatterRecursiveDoubling,
                "scatter_recursive_doubling_allgather",
            ),
            (ScatterRing, "scatter_ring_allgather"),
        ],
        Gather | Scatter => &[(Binomial, "binomial")],
        Allgather | Allgatherv => &[
            (Bruck, "brucks"),
            (RecursiveDoubling, "recursive_doubling"),
            (Ring, "ring"),
        ],
        Alltoall => &[
            (Bruck, "brucks"),
            (Pairwise, "pairwise"),
            (Linear, "scattered"),
        ],
        Alltoallv | Alltoallw => &[(Linear, "scattered")],
        Reduce => &[
            (Binomial, "binomial"),
            (Rabenseifner, "reduce_scatter_gather"),
        ],
        Allreduce => &[
            (RecursiveDoubling, "recursive_doubling"),
            (Rabenseifner, "reduce_scatter_allgather"),
        ],
        ReduceScatter | ReduceScatterBlock => &[
            (Pairwise, "pairwise"),
            (RecursiveDoubling, "recursive_doubling"),
            (RecursiveHalving, "recursive_halving"),
            (InterleavedHalving, "noncommutative"),
        ],
        Scan => &[(RecursiveDoubling, "recursive_doubling")],
        Gatherv | Scatterv => &[],
    }
}

/// Name of the function for a rule. The number of requests of `scattered` is a separate parameter with default 32
/// (`MPIR_CVAR_ALLTOALL_THROTTLE`).
pub(super) fn function(rule: &LibraryRule) -> Result<String, LibraryRuleError> {
    let LibraryRule { op, choice, .. } = *rule;
    let known = algorithms(op);
    let width = if choice.algorithm == Algorithm::Linear {
        32
    } else {
        2
    };
    let found = known
        .iter()
        .find(|(algorithm, _)| *algorithm == choice.algorithm);
    match found {
        Some((_, name)) if choice.segment.is_none() && choice.width.unwrap_or(width) == width => {
            Ok(format!("MPIR_{}_intra_{name}", op.name()))
        }
        _ => {
            let names: Vec<&str> = known
                .iter()
                .map(|(algorithm, _)| algorithm.name())
                .collect();
            Err(LibraryRuleError::Choice {
                rule: *rule,
                library: LIBRARY,
                expected: format!("{}, without segments", names.join(", ")),
            })
        }
    }
}
