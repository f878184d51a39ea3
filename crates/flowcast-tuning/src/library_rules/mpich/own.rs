//! A complete selection that decides like MPICH 4.0 to 5.0 without a file, derived from the tables of its decisions.
//!
//! This module adds the parts that these tables lack: the node-aware forms of barriers, scans and non-blocking operations;
//! the needs of reductions in a fixed order and of data in place; and one function for each operation between two groups of
//! ranks, among neighbours, or without a choice of algorithm. Persistent operations use the algorithms of non-blocking ones.

use flowcast_network::algorithm::{
    Algorithm, AlgorithmRule, AlgorithmTable, Base, Measure, Relation, RuleCondition,
    mpich_non_blocking,
};
use flowcast_units::CollectiveOp::{self, *};

use super::{
    INTER, INTRA, compared,
    functions::{algorithms, where_allowed},
    selection::AlgorithmSelection,
};

/// The selection for MPICH 4.0.
pub(super) fn own_selection() -> AlgorithmSelection {
    let mut whole = AlgorithmSelection::default();
    for call in [Blocking, NonBlocking] {
        for op in CollectiveOp::ALL {
            whole.put(key(call.operation_name(op)), operation(op, call));
        }
    }
    whole.put(
        key("exscan"),
        AlgorithmSelection::function("MPIR_Exscan_intra_recursive_doubling"),
    );
    whole.put(
        key("iexscan"),
        AlgorithmSelection::function("MPIR_Iexscan_intra_sched_recursive_doubling"),
    );
    for of in [
        "allgather",
        "allgatherv",
        "alltoall",
        "alltoallv",
        "alltoallw",
    ] {
        let blocking = format!("MPIR_Neighbor_{of}_allcomm_nb");
        let non_blocking = format!("MPIR_Ineighbor_{of}_allcomm_sched_linear");
        whole.put(
            key(&format!("neighbor_{of}")),
            AlgorithmSelection::function(&blocking),
        );
        whole.put(
            key(&format!("ineighbor_{of}")),
            AlgorithmSelection::function(&non_blocking),
        );
    }
    whole
}

fn key(operation: &str) -> String {
    format!("collective={}", operation.to_ascii_lowercase())
}

/// Mode in which a program calls an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallMode {
    Blocking,
    NonBlocking,
}

use CallMode::*;

impl CallMode {
    const fn operation_name(self, op: CollectiveOp) -> &'static str {
        match self {
            Blocking => op.name(),
            NonBlocking => op.non_blocking_name(),
        }
    }

    /// Function of MPICH for communicators of kind `among`: `intra`, `inter` or `allcomm`.
    fn function(self, op: CollectiveOp, among: &str, name: &str) -> AlgorithmSelection {
        let schedule = match self {
            Blocking => "",
            NonBlocking => "sched_",
        };
        AlgorithmSelection::function(&format!(
            "MPIR_{}_{among}_{schedule}{name}",
            self.operation_name(op)
        ))
    }
}

fn operation(op: CollectiveOp, call: CallMode) -> AlgorithmSelection {
    if matches!(op, Gatherv | Scatterv) {
        return call.function(op, "allcomm", "linear");
    }
    let inside = inside(op, call);
    let between = match call {
        _ if op == Scan => return inside,
        Blocking => call.function(op, "allcomm", "nb"),
        NonBlocking => call.function(op, "inter", between_groups(op)),
    };
    AlgorithmSelection::either([INTRA, INTER], [inside, between])
}

/// Non-blocking function between two groups of ranks. If MPICH has two, the one for large blocks.
const fn between_groups(op: CollectiveOp) -> &'static str {
    match op {
        Barrier => "bcast",
        Bcast => "flat",
        Gather => "long",
        Scatter | Gatherv | Scatterv | Scan => "linear",
        Allgather => "local_gather_remote_bcast",
        Allgatherv => "remote_gather_local_bcast",
        Alltoall | Alltoallv | Alltoallw => "pairwise_exchange",
        Reduce => "local_reduce_remote_send",
        Allreduce => "remote_reduce_local_bcast",
        ReduceScatter | ReduceScatterBlock => "remote_reduce_local_scatterv",
    }
}

/// Selection among the ranks of one group.
fn inside(op: CollectiveOp, call: CallMode) -> AlgorithmSelection {
    let table = match call {
        Blocking => AlgorithmTable::from_base(Base::Mpich),
        NonBlocking => mpich_non_blocking().clone(),
    };
    let otherwise = without_condition(op, call);
    let flat = by_rules(op, call, &table.rows[&op], &otherwise);
    let by_node = call.function(op, "intra", "smp");
    let conditions = match (op, call) {
        (Scan, Blocking) => ["is_node_consecutive=yes", "is_node_consecutive=no"],
        (Barrier, Blocking) | (Bcast | Reduce | Scan, NonBlocking) => {
            ["comm_hierarchy=parent", "comm_hierarchy=any"]
        }
        _ => return flat,
    };
    let by_node = match op {
        Reduce => AlgorithmSelection::either(
            ["is_commutative=yes", "is_commutative=no"],
            [by_node, otherwise],
        ),
        _ => by_node,
    };
    AlgorithmSelection::either(conditions, [by_node, flat])
}

/// The function that supports every call of an operation, if the others do not; otherwise nothing.
fn without_condition(op: CollectiveOp, call: CallMode) -> AlgorithmSelection {
    let inside = |name| call.function(op, "intra", name);
    match (op, call) {
        (Alltoall | Alltoallv | Alltoallw, Blocking) => inside("pairwise_sendrecv_replace"),
        (Alltoall | Alltoallv | Alltoallw, NonBlocking) => inside("inplace"),
        (Reduce, _) => inside("binomial"),
        (Allreduce, _) => inside("recursive_doubling"),
        (ReduceScatter | ReduceScatterBlock, _) => {
            let doubling = inside("recursive_doubling");
            let by_ranks = AlgorithmSelection::either(
                ["comm_size=pow2", "comm_size=any"],
                [inside("noncommutative"), doubling.clone()],
            );
            where_allowed(op, Algorithm::InterleavedHalving, by_ranks, &doubling)
        }
        _ => AlgorithmSelection::default(),
    }
}

/// Selection of the first rule that holds, as nested conditions.
fn by_rules(
    op: CollectiveOp,
    call: CallMode,
    rules: &[AlgorithmRule],
    otherwise: &AlgorithmSelection,
) -> AlgorithmSelection {
    let algorithm = rules[0].choice.algorithm;
    let Some(condition) = rules[0].conditions.first() else {
        let function = call.function(op, "intra", function_name(op, call, algorithm));
        return where_allowed(op, algorithm, function, otherwise);
    };
    let mut rules_where_it_holds = rules.to_vec();
    for rule in &mut rules_where_it_holds {
        rule.conditions.retain(|other| other != condition);
    }
    let mut other_rules = rules.to_vec();
    other_rules.retain(|rule| !rule.conditions.contains(condition));
    let [holds, fails] =
        [rules_where_it_holds, other_rules].map(|rules| by_rules(op, call, &rules, otherwise));
    let (key, is_opposite) = condition_key(op, *condition);
    let (quantity, _) = key.split_once(['<', '=']).expect("a key compares");
    let follow = if is_opposite {
        [fails, holds]
    } else {
        [holds, fails]
    };
    AlgorithmSelection::either([&key, &format!("{quantity}=any")], follow)
}

/// Key of a condition or of its opposite (`true`). MPICH 4.0 confuses `comm_size<` with `comm_size<=` in one place, so only
/// the latter is used.
fn condition_key(op: CollectiveOp, condition: RuleCondition) -> (String, bool) {
    use Relation::*;
    let RuleCondition::Compare(measure, relation, bound) = condition else {
        return ("comm_size=pow2".to_owned(), false);
    };
    let quantity = match measure {
        Measure::Ranks => "comm_size",
        Measure::Share => return ("count<pow2".to_owned(), false),
        _ => compared(op).expect("the tables look at sizes that MPICH looks at"),
    };
    match relation {
        AtMost => (format!("{quantity}<={bound}"), false),
        Above => (format!("{quantity}<={bound}"), true),
        Below => (format!("{quantity}<={}", bound - 1), false),
        AtLeast => (format!("{quantity}<={}", bound - 1), true),
        Equal => unreachable!("the tables compare by bounds"),
    }
}

fn function_name(op: CollectiveOp, call: CallMode, algorithm: Algorithm) -> &'static str {
    match (op, call) {
        (Barrier, NonBlocking) => return "recursive_doubling",
        (Alltoall, NonBlocking) if algorithm == Algorithm::Linear => return "permuted_sendrecv",
        (Alltoallv | Alltoallw, NonBlocking) => return "blocked",
        _ => {}
    }
    let known = algorithms(op).iter().find(|(known, _)| *known == algorithm);
    known.expect("the tables name MPICH's algorithms").1
}
