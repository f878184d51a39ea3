//! MPICH's selection of algorithms (`MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE`), as its csel.c reads it.
//!
//! An object of conditions: the first key that holds leads on, and there is no way back. The file has to decide for all operations,
//! or the library stops; so rows are put in front of the selection that the library has, in its sources
//! maint/tuning/coll/mpir/generic.json.

use std::fmt;

use flowcast_model::algorithm::Algorithm;
use flowcast_units::{Bytes, CollectiveOp};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};

use super::{LibraryRule, LibraryRuleError, sorted};

/// The selection for MPICH 4: `generic`, the selection of the library itself, with the rows in front.
///
/// # Errors
/// [`LibraryRuleError`] for an algorithm that MPICH 4.0 cannot be told, and for a `generic` that is no selection.
pub fn mpich_rules(rules: &[LibraryRule], generic: &str) -> Result<String, LibraryRuleError> {
    let mut selection: Selection = serde_json::from_str(generic)
        .map_err(|error| LibraryRuleError::Generic(error.to_string()))?;
    let rules = sorted(rules)?;
    for rules in rules.chunk_by(|one, other| one.op == other.op) {
        let key = format!("collective={}", rules[0].op.name().to_ascii_lowercase());
        let decides = selection.find(&key).ok_or_else(|| {
            LibraryRuleError::Generic(format!("found no `{key}`, expected one for each operation"))
        })?;
        // Rules are for one group of ranks; a selection without this key takes both kinds alike.
        let inside = match decides.find(INTRA) {
            Some(inside) => inside,
            None => {
                let all = std::mem::take(decides);
                decides.0.push((INTRA.to_owned(), all.clone()));
                decides.0.push(("comm_type=inter".to_owned(), all));
                &mut decides.0[0].1
            }
        };
        *inside = with_rules(rules, inside)?;
    }
    Ok(serde_json::to_string_pretty(&selection).expect("a selection has text keys"))
}

const INTRA: &str = "comm_type=intra";
const LIBRARY: &str = "MPICH";

/// Conditions in their order, each with what follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Selection(Vec<(String, Selection)>);

impl Selection {
    fn find(&mut self, key: &str) -> Option<&mut Selection> {
        let mut entries = self.0.iter_mut();
        entries
            .find(|(name, _)| name == key)
            .map(|(_, below)| below)
    }

    fn put(&mut self, key: String, below: Selection) {
        self.0.push((key, below));
    }
}

/// By number of ranks, what the library does without rules in between.
fn with_rules(rules: &[LibraryRule], own: &Selection) -> Result<Selection, LibraryRuleError> {
    let mut by_ranks = Selection::default();
    let mut last = 0;
    for rules in rules.chunk_by(|one, other| one.ranks == other.ranks) {
        let ranks = rules[0].ranks;
        if last + 1 < ranks {
            by_ranks.put(format!("comm_size<={}", ranks - 1), own.clone());
        }
        by_ranks.put(format!("comm_size<={ranks}"), by_size(rules, own)?);
        last = ranks;
    }
    by_ranks.put("comm_size=any".to_owned(), own.clone());
    Ok(by_ranks)
}

fn by_size(rules: &[LibraryRule], own: &Selection) -> Result<Selection, LibraryRuleError> {
    let quantity = compared(rules[0].op);
    let mut by_size = Selection::default();
    let mut before = own.clone();
    for rule in rules {
        let mut found = Selection::default();
        found.put(
            format!("algorithm={}", function(rule)?),
            Selection::default(),
        );
        let before = std::mem::replace(&mut before, found);
        if rule.from == Bytes(0) {
            continue;
        }
        let Some(quantity) = quantity else {
            return Err(LibraryRuleError::Size {
                rule: *rule,
                library: LIBRARY,
            });
        };
        let is_pair = rule.op == CollectiveOp::Alltoall;
        let shares = if is_pair { u64::from(rule.ranks) } else { 1 };
        by_size.put(
            format!("{quantity}<{}", rule.from.0.div_ceil(shares)),
            before,
        );
    }
    match quantity {
        Some(quantity) if !by_size.0.is_empty() => {
            by_size.put(format!("{quantity}=any"), before);
            Ok(by_size)
        }
        _ => Ok(before),
    }
}

/// The size that MPICH compares: the vector, what goes to one rank of an Alltoall, or all blocks. For gathers and scatters it
/// counts elements in place of bytes (csel.c, `get_total_msgsize`).
fn compared(op: CollectiveOp) -> Option<&'static str> {
    use CollectiveOp::*;
    match op {
        Bcast | Reduce | Allreduce | Alltoall => Some("avg_msg_size"),
        Allgather | Allgatherv | ReduceScatter | ReduceScatterBlock => Some("total_msg_size"),
        _ => None,
    }
}

/// The algorithms of an operation and the ends of their functions' names; those of MPICH 4.0.
const fn algorithms(op: CollectiveOp) -> &'static [(Algorithm, &'static str)] {
    use Algorithm::*;
    use CollectiveOp as Op;
    match op {
        Op::Barrier => &[(Dissemination, "dissemination")],
        Op::Bcast => &[
            (Binomial, "binomial"),
            (
                ScatterRecursiveDoubling,
                "scatter_recursive_doubling_allgather",
            ),
            (ScatterRing, "scatter_ring_allgather"),
        ],
        Op::Gather | Op::Scatter => &[(Binomial, "binomial")],
        Op::Allgather | Op::Allgatherv => &[
            (Bruck, "brucks"),
            (RecursiveDoubling, "recursive_doubling"),
            (Ring, "ring"),
        ],
        Op::Alltoall => &[
            (Bruck, "brucks"),
            (Pairwise, "pairwise"),
            (Linear, "scattered"),
        ],
        Op::Alltoallv | Op::Alltoallw => &[(Linear, "scattered")],
        Op::Reduce => &[
            (Binomial, "binomial"),
            (Rabenseifner, "reduce_scatter_gather"),
        ],
        Op::Allreduce => &[
            (RecursiveDoubling, "recursive_doubling"),
            (Rabenseifner, "reduce_scatter_allgather"),
        ],
        Op::ReduceScatter | Op::ReduceScatterBlock => &[
            (Pairwise, "pairwise"),
            (RecursiveDoubling, "recursive_doubling"),
            (RecursiveHalving, "recursive_halving"),
            (InterleavedHalving, "noncommutative"),
        ],
        Op::Scan => &[(RecursiveDoubling, "recursive_doubling")],
        Op::Gatherv | Op::Scatterv => &[],
    }
}

/// The function that a rule names. `scattered` has a parameter of its own for its requests, with 32 as default
/// (`MPIR_CVAR_ALLTOALL_THROTTLE`).
fn function(rule: &LibraryRule) -> Result<String, LibraryRuleError> {
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

impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Selection, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Selection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of conditions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Selection, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Selection(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl Serialize for Selection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, below) in &self.0 {
            map.serialize_entry(key, below)?;
        }
        map.end()
    }
}
