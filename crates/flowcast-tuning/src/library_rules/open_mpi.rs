//! Open MPI's file of dynamic rules (`--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE`),
//! as its component `tuned` reads it (coll_tuned_dynamic_file.c of 4.1, 5.0 and 6.0).
//!
//! Up to 5.0, the file is a tree of numbers. It begins with the number of operations. Each operation has its number in
//! `COLLTYPE` and the number of communicator sizes. Each communicator size is followed by the number of message sizes. Each
//! message size, from which on a rule holds, is followed by the algorithm, its fan-out, its segment and, in a file of version
//! 2, its requests. The last size that does not exceed the size of the call decides; if all exceed it, the first decides.
//! Algorithm 0 leaves the decision to the library.
//!
//! From 6.0 on, the file is JSON with the same settings by name. The first communicator that fits decides, then the first
//! size. Calls that fit none are left to the library.

use std::fmt::Write;

use flowcast_network::algorithm::{Algorithm, Choice};
use flowcast_units::{Bytes, CollectiveOp};
use serde_json::{Map, Value, json};

use super::{LibraryRule, LibraryRuleError, RankDistribution, RuleForm};

/// Tree of numbers. Sizes are converted to those that `tuned` compares; for an Allgatherv, this is the mean block.
///
/// Files with a limit of requests (an Alltoall by `linear-sync width N`) have version 2, which Open MPI reads from 4.1.8 and
/// 5.0.7 on.
pub(super) fn numbers(form: RuleForm, rules: &[LibraryRule]) -> Result<String, LibraryRuleError> {
    let by_op: Vec<&[LibraryRule]> = rules.chunk_by(|one, other| one.op == other.op).collect();
    let has_limits = rules.iter().any(|rule| requests(&rule.choice).is_some());
    let mut text = if has_limits {
        "rule-file-version-2\n".to_owned()
    } else {
        String::new()
    };
    put(&mut text, &[by_op.len() as u64], "operations");
    for rules in by_op {
        put_operation(&mut text, form, rules)?;
    }
    Ok(text)
}

/// JSON of Open MPI 6.0.
pub(super) fn json(rules: &[LibraryRule]) -> Result<String, LibraryRuleError> {
    let mut collectives = Map::new();
    for rules in rules.chunk_by(|one, other| one.op == other.op) {
        let mut communicators = Vec::new();
        for alike in rules.chunk_by(LibraryRule::is_for_ranks_of) {
            // The first size that fits decides, so the largest comes first.
            let sizes = alike.iter().rev().map(json_rule);
            let sizes = sizes.collect::<Result<Vec<Value>, _>>()?;
            communicators.push(json!({
                "comm_size_min": alike[0].ranks,
                "comm_size_max": alike[0].ranks,
                "comm_rank_distribution": distribution(&alike[0], rules),
                "rules": sizes,
            }));
        }
        collectives.insert(
            rules[0].op.name().to_ascii_lowercase(),
            communicators.into(),
        );
    }
    let file = json!({"rule_file_version": 3, "module": "tuned", "collectives": collectives});
    Ok(serde_json::to_string_pretty(&file).expect("the keys are texts"))
}

/// Settings of a rule, without those that are 0, their default.
fn json_rule(rule: &LibraryRule) -> Result<Value, LibraryRuleError> {
    let names = ["msg_size_min", "alg", "faninout", "seg_size", "reqs"];
    let settings = names
        .into_iter()
        .zip(rule_numbers(RuleForm::OpenMpi60, rule)?);
    let settings = settings.filter(|(_, number)| *number > 0);
    Ok(settings
        .map(|(name, number)| (name.to_owned(), Value::from(number)))
        .collect::<Map<String, Value>>()
        .into())
}

/// Name of the distribution of a rule's ranks, among all rules of its operation.
fn distribution(rule: &LibraryRule, rules: &[LibraryRule]) -> &'static str {
    let other = LibraryRule {
        distribution: RankDistribution::Any,
        ..*rule
    };
    match rule.distribution {
        RankDistribution::SingleNode => "single-node",
        // Open MPI 6.0 does not detect this distribution on MPI_COMM_WORLD. Without rules for another one, `any` covers it.
        RankDistribution::OnePerNode if rules.iter().any(|rule| rule.is_for_ranks_of(&other)) => {
            "one-per-node"
        }
        RankDistribution::OnePerNode | RankDistribution::Any => "any",
    }
}

fn put_operation(
    text: &mut String,
    form: RuleForm,
    rules: &[LibraryRule],
) -> Result<(), LibraryRuleError> {
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
        put_ranks(text, form, rules)?;
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

fn put_ranks(
    text: &mut String,
    form: RuleForm,
    rules: &[LibraryRule],
) -> Result<(), LibraryRuleError> {
    let begins = rules[0].from.0 == 0;
    let sizes = rules.len() as u64 + u64::from(!begins);
    put(text, &[u64::from(rules[0].ranks), sizes], "ranks, sizes");
    if !begins {
        put(text, &[0, 0, 0, 0], "the library's own");
    }
    for rule in rules {
        put(text, &rule_numbers(form, rule)?, &rule.choice.to_string());
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

/// Algorithms of an operation, from number 1 on (coll_tuned_OPERATION_decision.c). An algorithm with two numbers has the
/// second with segments, as a pipeline, or for two ranks.
const fn algorithms(op: CollectiveOp) -> &'static [Algorithm] {
    use Algorithm::*;
    use CollectiveOp::*;
    match op {
        Allgather => &[
            GatherThenBcast,
            Bruck,
            RecursiveDoubling,
            Ring,
            NeighborExchange,
            Ring,
            Sparbit,
        ],
        Allgatherv => &[
            GatherThenBcast,
            Bruck,
            Ring,
            NeighborExchange,
            Ring,
            Sparbit,
        ],
        Allreduce => &[
            Linear,
            ReduceThenBcast,
            RecursiveDoubling,
            Ring,
            Ring,
            RabenseifnerHalves,
        ],
        Alltoall => &[Linear, Pairwise, Bruck, LinearSync],
        Alltoallv => &[LinearInOrder, Pairwise],
        Barrier => &[
            Linear,
            DoubleRing,
            RecursiveDoubling,
            Dissemination,
            RecursiveDoubling,
            Binomial,
        ],
        Bcast => &[
            Linear,
            Chain,
            Chain,
            SplitBinary,
            Binary,
            BinomialNearest,
            Knomial,
            ScatterRecursiveDoubling,
            ScatterRing,
        ],
        Gather => &[Linear, Binomial, LinearSync],
        Reduce => &[
            Linear,
            Chain,
            Chain,
            Binary,
            Binomial,
            InOrderBinary,
            RabenseifnerHalves,
        ],
        ReduceScatter => &[ReduceThenScatter, RecursiveHalving, Ring, Butterfly],
        ReduceScatterBlock => &[
            ReduceThenScatter,
            RecursiveDoubling,
            RecursiveHalving,
            Butterfly,
        ],
        Scan => &[Linear, RecursiveDoubling],
        Scatter => &[Linear, Binomial, LinearImmediate],
        Alltoallw | Gatherv | Scatterv => &[],
    }
}

/// Algorithms that a version has.
fn known_algorithms(form: RuleForm, op: CollectiveOp) -> &'static [Algorithm] {
    match (form, algorithms(op)) {
        (RuleForm::OpenMpi41, [older @ .., Algorithm::Sparbit]) => older,
        (_, all) => all,
    }
}

/// Numbers of a rule: size, algorithm, fan-out, segment, and the limit of requests if there is one.
fn rule_numbers(form: RuleForm, rule: &LibraryRule) -> Result<Vec<u64>, LibraryRuleError> {
    let LibraryRule { op, choice, .. } = *rule;
    let known = known_algorithms(form, op);
    let place = known
        .iter()
        .position(|known| *known == own_name(choice.algorithm));
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
        // Open MPI 6.0 has a radix here, and does not end without one.
        (CollectiveOp::Allgather, Algorithm::Bruck) => fan_out = 2,
        // With segments, it has the next number.
        (CollectiveOp::Allreduce, Algorithm::Ring) if choice.segment.is_some() => algorithm += 1,
        _ => {}
    }
    let segment = choice.segment.map_or(0, |size| size.0);
    let limit = requests(&choice).map(u64::from);
    Ok([compared_size(rule)?, algorithm, fan_out, segment]
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

fn expected(known: &[Algorithm]) -> String {
    let first = (0..known.len()).filter(|at| !known[..*at].contains(&known[*at]));
    let names: Vec<&str> = first.map(|at| known[at].name()).collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        format!(
            "{}, with a width for `chain` and for `linear-sync` of an Alltoall, and a segment for trees, `ring` of an Allreduce and `linear-sync`",
            names.join(", ")
        )
    }
}
