//! MPICH's selection of algorithms (`MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE`), as its csel.c reads it.
//!
//! The file is an object of conditions. MPICH follows the first key that holds and never backtracks. The file must decide
//! for all operations, or the library aborts. Rows are therefore put in front of a complete selection: a given one, or
//! [`own`], which decides like MPICH without a file. The form is the same in MPICH 4.0 to 5.0. Its names differ in one:
//! from 4.1 on, the barrier by dissemination has a radix.

mod functions;
mod own;
mod selection;

use flowcast_units::{Bytes, CollectiveOp};

use self::{
    functions::{function, where_allowed},
    own::own_selection,
    selection::AlgorithmSelection,
};
use super::{LibraryRule, LibraryRuleError, RuleForm};

/// Selection with the rows in front of `selection`, or of Flowcast's own.
///
/// The rows do not apply to calls that their algorithms do not support: data in place of an alltoall, reductions whose
/// operation does not commute or is user-defined, and vectors with fewer elements than ranks. The selection behind the rows
/// decides for these.
pub(super) fn with_selection(
    form: RuleForm,
    rules: &[LibraryRule],
    selection: Option<&str>,
) -> Result<String, LibraryRuleError> {
    let mut selection: AlgorithmSelection = match selection {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| LibraryRuleError::Generic(error.to_string()))?,
        None => own_selection(),
    };
    for rules in rules.chunk_by(|one, other| one.op == other.op) {
        let key = format!("collective={}", rules[0].op.name().to_ascii_lowercase());
        let decides = selection.find(&key).ok_or_else(|| {
            LibraryRuleError::Generic(format!("found no `{key}`, expected one for each operation"))
        })?;
        // Rules are for one group of ranks. A selection without this key treats both kinds of communicator alike.
        let inside = match decides.find(INTRA) {
            Some(inside) => inside,
            None => {
                let all = std::mem::take(decides);
                *decides = AlgorithmSelection::either([INTRA, INTER], [all.clone(), all]);
                &mut decides.0[0].1
            }
        };
        *inside = with_rules(rules, inside)?;
    }
    if form == RuleForm::Mpich41 {
        selection.give_barriers_a_radix();
    }
    Ok(serde_json::to_string_pretty(&selection).expect("a selection has text keys"))
}

const INTRA: &str = "comm_type=intra";
const INTER: &str = "comm_type=inter";
const LIBRARY: &str = "MPICH";

/// Selection by number of ranks. The library's own selection applies to numbers without rules.
fn with_rules(
    rules: &[LibraryRule],
    own: &AlgorithmSelection,
) -> Result<AlgorithmSelection, LibraryRuleError> {
    let mut by_ranks = AlgorithmSelection::default();
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

fn by_size(
    rules: &[LibraryRule],
    own: &AlgorithmSelection,
) -> Result<AlgorithmSelection, LibraryRuleError> {
    let quantity = compared(rules[0].op);
    let mut by_size = AlgorithmSelection::default();
    let mut before = own.clone();
    for rule in rules {
        let found = AlgorithmSelection::function(&function(rule)?);
        let found = where_allowed(rule.op, rule.choice.algorithm, found, own);
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

/// Name of the size that MPICH compares: the vector, the data for one rank of an Alltoall, or all blocks. For gathers and
/// scatters, MPICH counts elements instead of bytes (csel.c, `get_total_msgsize`).
fn compared(op: CollectiveOp) -> Option<&'static str> {
    use CollectiveOp::*;
    match op {
        Bcast | Reduce | Allreduce | Alltoall => Some("avg_msg_size"),
        Allgather | Allgatherv | ReduceScatter | ReduceScatterBlock => Some("total_msg_size"),
        _ => None,
    }
}
