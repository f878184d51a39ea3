//! Files that make an MPI library use the chosen algorithms, in the form of the library's version.
//!
//! Each row gives the algorithm of an operation for a number of ranks, from a size on. For other numbers of ranks, smaller
//! sizes and operations without a row, the library decides itself.

mod mpich;
mod open_mpi;

use flowcast_network::algorithm::{Base, Choice};
use flowcast_units::{Bytes, CollectiveOp};
use thiserror::Error;

/// Form of the file, named after the first version of the library that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleForm {
    /// A tree of numbers for Open MPI 4.1.
    OpenMpi41,
    /// A tree of numbers for Open MPI 5.0, which has more algorithms.
    OpenMpi50,
    /// JSON for Open MPI 6.0, with the distribution of the ranks.
    OpenMpi60,
    /// A selection for MPICH 4.0.
    Mpich40,
    /// A selection for MPICH 4.1 to 5.0, whose barriers have a radix.
    Mpich41,
}

use RuleForm::*;

impl RuleForm {
    /// Forms by library, with or without its version.
    pub const NAMES: [(&'static str, RuleForm); 10] = [
        ("openmpi", OpenMpi50),
        ("openmpi-4.1", OpenMpi41),
        ("openmpi-5.0", OpenMpi50),
        ("openmpi-6.0", OpenMpi60),
        ("mpich", Mpich40),
        ("mpich-4.0", Mpich40),
        ("mpich-4.1", Mpich41),
        ("mpich-4.2", Mpich41),
        ("mpich-4.3", Mpich41),
        ("mpich-5.0", Mpich41),
    ];

    /// Library that reads the file.
    pub const fn library(self) -> Base {
        match self {
            OpenMpi41 | OpenMpi50 | OpenMpi60 => Base::OpenMpi,
            Mpich40 | Mpich41 => Base::Mpich,
        }
    }

    /// Content of the file. For MPICH, the rows are in front of `selection`, which the library has in its sources
    /// (maint/tuning/coll/mpir/generic.json), or of Flowcast's own.
    ///
    /// ```
    /// use flowcast::{model::algorithm::{Algorithm, Choice}, units::{Bytes, CollectiveOp}};
    /// use flowcast_tuning::library_rules::{LibraryRule, RankDistribution, RuleForm};
    ///
    /// let rule = LibraryRule {
    ///     op: CollectiveOp::Bcast,
    ///     ranks: 32,
    ///     distribution: RankDistribution::Any,
    ///     from: Bytes(4096),
    ///     choice: Choice::plain(Algorithm::ScatterRing),
    /// };
    /// let text = RuleForm::OpenMpi50.write(&[rule], None)?;
    /// assert!(text.contains("\n32 2 "));
    /// # Ok::<(), flowcast_tuning::library_rules::LibraryRuleError>(())
    /// ```
    ///
    /// # Errors
    /// [`LibraryRuleError`] for an algorithm, segment or width that the library cannot be configured to use, and for an
    /// invalid `selection`.
    pub fn write(
        self,
        rules: &[LibraryRule],
        selection: Option<&str>,
    ) -> Result<String, LibraryRuleError> {
        let rules = self.sorted(rules)?;
        match self {
            OpenMpi41 | OpenMpi50 => open_mpi::numbers(self, &rules),
            OpenMpi60 => open_mpi::json(&rules),
            Mpich40 | Mpich41 => mpich::with_selection(self, &rules, selection),
        }
    }

    /// Rows sorted by operation, ranks, distribution and size.
    ///
    /// # Errors
    /// [`LibraryRuleError::Row`].
    fn sorted(self, rules: &[LibraryRule]) -> Result<Vec<LibraryRule>, LibraryRuleError> {
        let mut rules = rules.to_vec();
        if self != OpenMpi60 {
            for rule in &mut rules {
                rule.distribution = RankDistribution::Any;
            }
        }
        rules.sort_by_key(|rule| (rule.op, rule.ranks, rule.distribution, rule.from));
        for rule in &rules {
            if rule.ranks < 2 || rule.ranks > MOST || rule.from.0 > u64::from(MOST) {
                return Err(LibraryRuleError::Row {
                    rule: *rule,
                    found: "a number out of range",
                    expected: "2 to 2147483646 ranks and at most 2147483646 bytes",
                });
            }
        }
        let same = rules
            .windows(2)
            .find(|pair| pair[0].is_for_ranks_of(&pair[1]) && pair[0].from == pair[1].from);
        match same {
            None => Ok(rules),
            Some(pair) => Err(LibraryRuleError::Row {
                rule: pair[1],
                found: "two rows",
                expected: "one; the form openmpi-6.0 has one for each distribution of the ranks over nodes",
            }),
        }
    }
}

/// An algorithm and the condition under which a library uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryRule {
    /// Collective operation for which the rule holds.
    pub op: CollectiveOp,
    /// Ranks of the communicator, at least 2.
    pub ranks: u32,
    /// Distribution of the ranks. Only Open MPI 6.0 distinguishes it; the other forms ignore it.
    pub distribution: RankDistribution,
    /// Smallest size of the buffer for which the algorithm is used, up to the size of the next row. The buffer is the vector
    /// for an operation on one vector; all blocks for a gather, scatter, allgather or reduce-scatter; all data that one rank
    /// sends for an alltoall.
    pub from: Bytes,
    /// Algorithm to use, with its parameters.
    pub choice: Choice,
}

impl LibraryRule {
    /// `true` if both rules are for the same operation on the same ranks.
    fn is_for_ranks_of(&self, other: &LibraryRule) -> bool {
        (self.op, self.ranks, self.distribution) == (other.op, other.ranks, other.distribution)
    }
}

/// Distribution of a communicator's ranks over nodes, the most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RankDistribution {
    /// All ranks on one node.
    SingleNode,
    /// Each rank on its own node.
    OnePerNode,
    /// Any distribution.
    Any,
}

impl RankDistribution {
    /// Distribution of a number of ranks over a number of nodes.
    pub const fn on_nodes(ranks: u32, nodes: u32) -> RankDistribution {
        match nodes {
            1 => RankDistribution::SingleNode,
            _ if nodes == ranks => RankDistribution::OnePerNode,
            _ => RankDistribution::Any,
        }
    }
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

/// Limit of numbers: the libraries read them as C's `int`, and one more must fit.
const MOST: u32 = i32::MAX as u32 - 1;
