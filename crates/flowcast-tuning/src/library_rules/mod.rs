//! Files that make an MPI library use the chosen algorithms.
//!
//! Each row gives the algorithm of an operation for a number of ranks, from a size on. For other numbers of ranks, smaller
//! sizes and operations without a row, the library decides itself.

mod mpich;
mod open_mpi;

pub use mpich::mpich_rules;
pub use open_mpi::open_mpi_rules;

use flowcast_network::algorithm::Choice;
use flowcast_units::{Bytes, CollectiveOp};
use thiserror::Error;

/// An algorithm and the condition under which a library uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryRule {
    /// Collective operation for which the rule holds.
    pub op: CollectiveOp,
    /// Ranks of the communicator, at least 2.
    pub ranks: u32,
    /// Smallest size of the buffer for which the algorithm is used, up to the size of the next row. The buffer is the vector
    /// for an operation on one vector; all blocks for a gather, scatter, allgather or reduce-scatter; all data that one rank
    /// sends for an alltoall.
    pub from: Bytes,
    /// Algorithm to use, with its parameters.
    pub choice: Choice,
}

/// Reasons why a library cannot be configured to use the chosen algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LibraryRuleError {
    /// The library does not have this algorithm, or not with this segment or width.
    #[error(
        "{} on {} ranks: found `{}`, expected a choice that {library} accepts: {expected}", rule.op.name(), rule.ranks, rule.choice
    )]
    Choice {
        /// Rule whose algorithm the library does not accept.
        rule: LibraryRule,
        /// Name of the library.
        library: &'static str,
        /// Algorithms that the library can be configured to use.
        expected: String,
    },
    /// The library does not consider the size for this operation.
    #[error(
        "{} on {} ranks from {} on: found a size, expected 0 bytes: {library} uses one algorithm for all sizes here",
        rule.op.name(), rule.ranks, rule.from
    )]
    Size {
        /// Rule that begins at a size above 0.
        rule: LibraryRule,
        /// Name of the library.
        library: &'static str,
    },
    /// Two rows for the same case, or a row that no file can contain.
    #[error("{} on {} ranks from {} on: found {found}, expected {expected}", rule.op.name(), rule.ranks, rule.from)]
    Row {
        /// Rejected row: out of bounds, or the second for its case.
        rule: LibraryRule,
        /// Fault of the row.
        found: &'static str,
        /// Expected bounds or number of rows, as text for the message.
        expected: &'static str,
    },
    /// The given selection of MPICH lacks something that MPICH's sources contain, or cannot be read.
    #[error("selection of MPICH: {0}")]
    Generic(String),
}

/// Rows sorted by operation, ranks and size.
///
/// # Errors
/// [`LibraryRuleError::Row`].
fn sorted(rules: &[LibraryRule]) -> Result<Vec<LibraryRule>, LibraryRuleError> {
    let mut rules = rules.to_vec();
    rules.sort_by_key(|rule| (rule.op, rule.ranks, rule.from));
    for rule in &rules {
        if rule.ranks < 2 || rule.ranks > MOST || rule.from.0 > u64::from(MOST) {
            return Err(LibraryRuleError::Row {
                rule: *rule,
                found: "a number out of range",
                expected: "2 to 2147483646 ranks and at most 2147483646 bytes",
            });
        }
    }
    let same = rules.windows(2).find(|pair| {
        (pair[0].op, pair[0].ranks, pair[0].from) == (pair[1].op, pair[1].ranks, pair[1].from)
    });
    match same {
        None => Ok(rules),
        Some(pair) => Err(LibraryRuleError::Row {
            rule: pair[1],
            found: "two rows",
            expected: "one",
        }),
    }
}

/// Limit of numbers: the libraries read them as C's `int`, and one more must fit.
const MOST: u32 = i32::MAX as u32 - 1;
