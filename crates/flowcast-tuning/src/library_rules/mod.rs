//! Files by which an MPI library uses the algorithms that were chosen for it.
//!
//! Each row says: an operation among so many ranks, from so many bytes on, by this algorithm. Other numbers of ranks, smaller
//! sizes and operations without a row stay as the library decides itself.

mod mpich;
mod open_mpi;

pub use mpich::mpich_rules;
pub use open_mpi::open_mpi_rules;

use flowcast_network::algorithm::Choice;
use flowcast_units::{Bytes, CollectiveOp};
use thiserror::Error;

/// An algorithm and when a library is to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryRule {
    /// Which collective operation.
    pub op: CollectiveOp,
    /// Ranks of the communicator, at least 2.
    pub ranks: u32,
    /// Size of the buffer from which on it is used, up to the next row's: the vector of an operation on one vector; all
    /// blocks together of a gather, scatter, allgather or reduce-scatter; what one rank sends to all in an alltoall.
    pub from: Bytes,
    /// What is used.
    pub choice: Choice,
}

/// Why a library cannot be told to use what was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LibraryRuleError {
    /// The library has no such algorithm, or not with this segment or width.
    #[error(
        "{} among {} ranks: found `{}`, expected what {library} can be told: {expected}", rule.op.name(), rule.ranks, rule.choice
    )]
    Choice {
        /// What was chosen.
        rule: LibraryRule,
        /// Who cannot be told so.
        library: &'static str,
        /// What it can be told.
        expected: String,
    },
    /// The library does not look at the size there.
    #[error(
        "{} among {} ranks from {} on: found a size, expected 0 bytes: {library} has one algorithm for all sizes there",
        rule.op.name(), rule.ranks, rule.from
    )]
    Size {
        /// What was chosen.
        rule: LibraryRule,
        /// Which library.
        library: &'static str,
    },
    /// Two rows for the same case, or a row that no file can have.
    #[error("{} among {} ranks from {} on: found {found}, expected {expected}", rule.op.name(), rule.ranks, rule.from)]
    Row {
        /// The row.
        rule: LibraryRule,
        /// What is wrong with it.
        found: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// The selection that MPICH has is not what its sources have.
    #[error("selection of MPICH: {0}")]
    Generic(String),
}

/// The rows by operation, ranks and size.
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
                found: "a number out of bounds",
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

/// The libraries read numbers as C's `int`, and one more has to fit.
const MOST: u32 = i32::MAX as u32 - 1;
