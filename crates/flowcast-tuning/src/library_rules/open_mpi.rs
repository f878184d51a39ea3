//! Open MPI's file of dynamic rules (`--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE`),
//! as its component `tuned` reads it (coll_tuned_dynamic_file.c, the same in 4.1 and 5.0).
//!
//! The file is a tree of numbers. It begins with the number of operations. Each operation has its number in `COLLTYPE` and
//! the number of communicator sizes. Each communicator size is followed by the number of message sizes. Each message size,
//! from which on a rule holds, is followed by the algorithm, its fan-out, its segment and, in a file of version 2, its
//! requests. The last size that does not exceed the size of the call decides; if all exceed it, the first decides. Algorithm
//! 0 leaves the decision to the library.

use std::fmt::Write;

use flowcast_network::algorithm::{Algorithm, Choice};
use flowcast_units::{Bytes, CollectiveOp};

use super::{LibraryRule, LibraryRuleError, sorted};

/// Content of the file for Open MPI 4.1 and 5.0. Sizes are converted to those that `tuned` compares; for an Allgatherv, this
/// is the mean block.
///
/// Files with a limit of requests (an Alltoall by `linear-sync width N`) have version 2, which Open MPI reads from 5.0.7 on.
///
/// ```
/// use flowcast::{model::algorithm::{Algorithm, Choice}, units::{Bytes, CollectiveOp}};
/// use flowcast_tuning::library_rules::{LibraryRule, open_mpi_rules};
///
/// let rule = LibraryRule {
///     op: CollectiveOp::Bcast,
///     ranks: 32,
///     from: Bytes(4096),
///     choice: Choice::plain(Algorithm::ScatterRing),
/// };
/// let text = open_mpi_rules(&[rule])?;
/// assert!(text.contains("\n32 2 "));
/// # Ok::<(), flowcast_tuning::library_rules::LibraryRuleError>(())
/// ```
///
/// # Errors
/// [`LibraryRuleError`] for an algorithm, segment or width that the file cannot express.
pub fn open_mpi_rules(rules: &[LibraryRule]) -> Result<String, LibraryRuleError> {
    let rules = sorted(rules)?;
    let by_op: Vec<&[LibraryRule]> = rules.chunk_by(|one, other| one.op == other.op).collect();
    let has_limits = rules.iter().any(|rule| requests(&rule.choice).is_some());
    let mut text = if has_limits {
        "rule-file-version-2\n".to_owned()
    } else {
        String::new()
    };
    put(&mut text, &[by_op.len() as u64], "operations");
    for rules in by_op {
        put_operation(&mut text, rules)?;
    }
    Ok(text)
}

fn put_operation(text: &mut String, rules: &[LibraryRule]) -> Result<(), LibraryRuleError> {
    let by_ranks: Vec<&[LibraryRule]> = rules
        .chunk_by(|one, other| one.ranks == other.ranks)
        .collect();
    let follows = |at: usize| {
        let next = by_ranks.get(at + 1).map(|rules| rules[0].ranks);
        next == Some(by_ranks[at][0].ranks + 1)
    };
    let gaps = (0..by_ranks.len()).filter(|at| !follows(*at)).count();
    put(text, &[number(rules[0].op)], rules[0].op.name());
    put(
        text,
        &[(1 + by_ranks.len() + gaps) as u64],
        "sizes of communicators",
    );
    put_default(text, 0);
    for (at, rules) in by_ranks.iter().enumerate() {
        put_ranks(text, rules)?;
        if !follows(at) {
            put_default(text, rules[0].ranks + 1);
        }
    }
    Ok(())
}

/// Leaves the decision to the library from this number of ranks on.
fn put_default(text: &mut String, ranks: u32) {
    put(text, &[u64::from(ranks), 1], "ranks, sizes");
    put(text, &[0, 0, 0, 0], "the library's own");
}

fn put_ranks(text: &mut String, rules: &[LibraryRule]) -> Result<(), LibraryRuleError> {
    let begins = rules[0].from.0 == 0;
    let sizes = rules.len() as u64 + u64::from(!begins);
    put(text, &[u64::from(rules[0].ranks), sizes], "ranks, sizes");
    if !begins {
        put(text, &[0, 0, 0, 0], "the library's own");
    }
    for rule in rules {
        let mut numbers = vec![compared_size(rule)?];
        numbers.extend(rule_numbers(rule)?);
        put(text, &numbers, &rule.choice.to_string());
    }
    Ok(())
}

fn put(text: &mut String, numbers: &[u64], says: &str) {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    writeln!(text, "{} # {says}", numbers.join(" ")).expect("a string takes all");
}

/// Size that `tuned` compares (coll_tuned_decision_dynamic.c).
fn compared_size(rule: &LibraryRule) -> Result<u64, LibraryRuleError> {
    use CollectiveOp::*;
    match rule.op {
        Allgatherv => Ok(rule.from.0.div_ceil(u64::from(rule.ranks))),
        Barrier | Alltoallv | Scan if rule.from != Bytes(0) => Err(LibraryRuleError::Size {
            rule: *rule,
            library: LIBRARY,
        }),
        _ => Ok(rule.from.0),
    }
}

const LIBRARY: &str = "Open MPI";

/// Number of the operation in `COLLTYPE` (coll_base_functions.h).
const fn number(op: CollectiveOp) -> u64 {
    use CollectiveOp::*;
    match op {
        Allgather => 0,
        Allgatherv => 1,
        Allreduce => 2,
        Alltoall => 3,
        Alltoallv => 4,
        Alltoallw => 5,
        Barrier => 6,
        Bcast => 7,
        Gather => 9,
        Gatherv => 10,
        Reduce => 11,
        ReduceScatter => 12,
        ReduceScatterBlock => 13,
        Scan => 14,
        Scatter => 15,
        Scatterv => 16,
    }
}

/// Algorithms of an operation, from number 1 on (coll_tuned_OPERATION_decision.c).
const fn algorithms(op: CollectiveOp) -> &'static [Option<Algorithm>] {
    use Algorithm::*;
    use CollectiveOp::*;
    match op {
        Allgather => &[
            Some(GatherThenBcast),
            Some(Bruck),
            Some(RecursiveDoubling),
            Some(Ring),
            Some(NeighborExchange),
            None,
            Some(Sparbit),
        ],
        Allgatherv => &[
            Some(GatherThenBcast),
            Some(Bruck),
            Some(Ring),
            Some(NeighborExchange),
            None,
            Some(Sparbit),
        ],
        Allreduce => &[
            Some(Linear),
            Some(ReduceThenBcast),
            Some(RecursiveDoubling),
            Some(Ring),
            None,
            Some(RabenseifnerHalves),
        ],
        Alltoall => &[Some(Linear), Some(Pairwise), Some(Bruck), Some(LinearSync)],
        Alltoallv => &[Some(LinearInOrder), Some(Pairwise)],
        Barrier => &[
            Some(Linear),
            Some(DoubleRing),
            Some(RecursiveDoubling),
            Some(Dissemination),
            None,
            Some(Binomial),
        ],
        Bcast => &[
            Some(Linear),
            Some(Chain),
            None,
            Some(SplitBinary),
            Some(Binary),
            Some(BinomialNearest),
            Some(Knomial),
            Some(ScatterRecursiveDoubling),
            Some(ScatterRing),
        ],
        Gather => &[Some(Linear), Some(Binomial), Some(LinearSync)],
        Reduce => &[
            Some(Linear),
            Some(Chain),
            None,
            Some(Binary),
            Some(Binomial),
            Some(InOrderBinary),
            Some(RabenseifnerHalves),
        ],
        ReduceScatter => &[
            Some(ReduceThenScatter),
            Some(RecursiveHalving),
            Some(Ring),
            Some(Butterfly),
        ],
        ReduceScatterBlock => &[
            Some(ReduceThenScatter),
            Some(RecursiveDoubling),
            Some(RecursiveHalving),
            Some(Butterfly),
        ],
        Scan => &[Some(Linear), Some(RecursiveDoubling)],
        Scatter => &[Some(Linear), Some(Binomial), Some(LinearImmediate)],
        Alltoallw | Gatherv | Scatterv => &[],
    }
}

/// Numbers of a rule: algorithm, fan-out, segment, and the limit of requests if there is one.
fn rule_numbers(rule: &LibraryRule) -> Result<Vec<u64>, LibraryRuleError> {
    let LibraryRule { op, choice, .. } = *rule;
    let known = algorithms(op);
    let place = known
        .iter()
        .position(|known| *known == Some(own_name(choice.algorithm)));
    let Some(place) = place.filter(|_| takes_width(op, &choice) && takes_segment(op, &choice))
    else {
        return Err(LibraryRuleError::Choice {
            rule: *rule,
            library: LIBRARY,
            expected: expected(known),
        });
    };
    let mut fan_out = 0;
    let mut algorithm = place as u64 + 1;
    match (op, choice.algorithm) {
        (_, Algorithm::Chain) => match choice.width.unwrap_or(1) {
            // One chain is the pipeline, which has the next number.
            1 => algorithm += 1,
            chains => fan_out = u64::from(chains),
        },
        // With segments, it has the next number.
        (CollectiveOp::Allreduce, Algorithm::Ring) if choice.segment.is_some() => algorithm += 1,
        _ => {}
    }
    let segment = choice.segment.map_or(0, |size| size.0);
    let limit = requests(&choice).map(u64::from);
    Ok([algorithm, fan_out, segment]
        .into_iter()
        .chain(limit)
        .collect())
}

/// The algorithm under Open MPI's name. On a power of two of ranks, both of Rabenseifner's algorithms are the same; on other
/// numbers, Open MPI joins ranks by halves.
const fn own_name(algorithm: Algorithm) -> Algorithm {
    match algorithm {
        Algorithm::Rabenseifner => Algorithm::RabenseifnerHalves,
        other => other,
    }
}

/// Limit of open requests in each direction.
fn requests(choice: &Choice) -> Option<u32> {
    choice
        .width
        .filter(|_| choice.algorithm == Algorithm::LinearSync)
}

/// `true` if the rule can express the width. The radix of `knomial` is a separate parameter,
/// `coll_tuned_bcast_algorithm_knomial_radix`, with default 4.
fn takes_width(op: CollectiveOp, choice: &Choice) -> bool {
    match (op, choice.algorithm, choice.width) {
        (_, _, None) | (_, Algorithm::Chain, _) => true,
        (_, Algorithm::Knomial, Some(radix)) => radix == 4,
        (CollectiveOp::Alltoall, Algorithm::LinearSync, _) => true,
        (_, _, Some(base)) => base == 2,
    }
}

fn takes_segment(op: CollectiveOp, choice: &Choice) -> bool {
    use Algorithm::*;
    use CollectiveOp::*;
    let Some(segment) = choice.segment else {
        return true;
    };
    let has_pieces = match op {
        Bcast => matches!(
            choice.algorithm,
            Chain | SplitBinary | Binary | BinomialNearest | Knomial
        ),
        Reduce => matches!(choice.algorithm, Chain | Binary | Binomial),
        Allreduce => choice.algorithm == Ring,
        Gather => choice.algorithm == LinearSync,
        _ => false,
    };
    has_pieces && segment.0 <= i32::MAX as u64
}

fn expected(known: &[Option<Algorithm>]) -> String {
    let names: Vec<&str> = known
        .iter()
        .flatten()
        .map(|algorithm| algorithm.name())
        .collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        format!(
            "{}, with a width for `chain` and for `linear-sync` of an Alltoall, and a segment for trees, `ring` of an Allreduce and `linear-sync`",
            names.join(", ")
        )
    }
}
