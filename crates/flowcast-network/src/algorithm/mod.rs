//! Algorithms with which MPI libraries carry out collective operations as messages.
//!
//! Libraries know several algorithms for each operation and choose by the number of ranks and the size (Thakur,
//! Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, 2005; Pjesivac-Grbovic et al.:
//! Performance analysis of MPI collective operations, 2007). A table of [`AlgorithmRule`]s selects the algorithm; the first
//! rule whose conditions hold decides. The crate includes the defaults of Open MPI 4.1 and 5.0 (fixed decisions of their
//! component `tuned`), of MPICH 4.0 (its generic tuning table) and of Cray MPICH 8.1 in
//! `crates/flowcast-network/collectives`. It also includes the names that these libraries give to the algorithms
//! ([`named_choice`]).

mod named;
mod rule;
mod table;

pub use named::{NameError, algorithm_names, library_base, mpich_non_blocking, named_choice};
pub use rule::{AlgorithmRule, Measure, Relation, RuleCondition, RuleExtent};
pub use table::{AlgorithmTable, Base, TableError};

use flowcast_units::{Bytes, CollectiveOp, named};

named! {
    /// An algorithm for collective operations.
    #[allow(missing_docs)]
    pub enum Algorithm {
        Linear = "linear",
        LinearInOrder = "linear-in-order",
        LinearImmediate = "linear-immediate",
        LinearSync = "linear-sync",
        Chain = "chain",
        Binary = "binary",
        SplitBinary = "split-binary",
        Kary = "k-ary",
        InOrderBinary = "in-order-binary",
        Binomial = "binomial",
        BinomialNearest = "binomial-nearest",
        Knomial = "knomial",
        DoubleRing = "double-ring",
        Dissemination = "dissemination",
        RecursiveDoubling = "recursive-doubling",
        RecursiveHalving = "recursive-halving",
        Butterfly = "butterfly",
        Ring = "ring",
        NeighborExchange = "neighbor-exchange",
        Bruck = "bruck",
        Sparbit = "sparbit",
        RecursiveExchange = "recursive-exchange",
        InterleavedHalving = "interleaved-halving",
        Pairwise = "pairwise",
        PairwiseInOrder = "pairwise-in-order",
        Rabenseifner = "rabenseifner",
        RabenseifnerHalves = "rabenseifner-halves",
        ScatterRecursiveDoubling = "scatter-recursive-doubling",
        ScatterRing = "scatter-ring",
        ReduceThenBcast = "reduce-then-bcast",
        ReduceThenScatter = "reduce-then-scatter",
        GatherThenBcast = "gather-then-bcast",
        AllgatherThenReduce = "allgather-then-reduce",
        ReduceThenBcastTree = "reduce-then-bcast-tree",
    }
}

use Algorithm::*;

impl Algorithm {
    /// Algorithms that can carry out an operation.
    pub const fn all_for(op: CollectiveOp) -> &'static [Algorithm] {
        use CollectiveOp::*;
        match op {
            Barrier => &[
                Linear,
                DoubleRing,
                RecursiveDoubling,
                Dissemination,
                Binomial,
            ],
            Bcast => &[
                Linear,
                Chain,
                Binary,
                SplitBinary,
                Binomial,
                BinomialNearest,
                Knomial,
                ScatterRecursiveDoubling,
                ScatterRing,
                Kary,
            ],
            Gather => &[Linear, Binomial, LinearSync],
            Gatherv => &[Linear],
            Scatter => &[Linear, Binomial, LinearImmediate],
            Scatterv => &[Linear, LinearImmediate],
            Allgather | Allgatherv => &[
                Ring,
                Bruck,
                RecursiveDoubling,
                NeighborExchange,
                GatherThenBcast,
                Sparbit,
                RecursiveExchange,
                Linear,
            ],
            Alltoall => &[
                Linear,
                LinearInOrder,
                Pairwise,
                Bruck,
                LinearSync,
                PairwiseInOrder,
            ],
            Alltoallv | Alltoallw => {
                &[Linear, LinearInOrder, Pairwise, LinearSync, PairwiseInOrder]
            }
            Reduce => &[
                Linear,
                Chain,
                Binary,
                InOrderBinary,
                Binomial,
                Knomial,
                Rabenseifner,
                RabenseifnerHalves,
                Kary,
            ],
            Allreduce => &[
                RecursiveDoubling,
                Ring,
                Rabenseifner,
                RabenseifnerHalves,
                Linear,
                ReduceThenBcast,
                AllgatherThenReduce,
                ReduceThenBcastTree,
            ],
            ReduceScatter | ReduceScatterBlock => &[
                RecursiveHalving,
                RecursiveDoubling,
                Ring,
                Pairwise,
                Butterfly,
                ReduceThenScatter,
                InterleavedHalving,
            ],
            Scan => &[Linear, RecursiveDoubling],
        }
    }

    /// `true` if the number of messages that a rank sends grows with the logarithm of the number of ranks.
    pub const fn is_logarithmic(self) -> bool {
        matches!(
            self,
            Binary
                | SplitBinary
                | Kary
                | InOrderBinary
                | Binomial
                | BinomialNearest
                | Knomial
                | Dissemination
                | RecursiveDoubling
                | RecursiveHalving
                | Butterfly
                | Bruck
                | RecursiveExchange
                | InterleavedHalving
                | Rabenseifner
                | ScatterRecursiveDoubling
        )
    }

    /// Replacement that the libraries use if an algorithm requires another number of ranks; otherwise the algorithm itself.
    pub const fn for_ranks(self, op: CollectiveOp, ranks: u32) -> Algorithm {
        match (self, op) {
            (RecursiveDoubling, CollectiveOp::Allgather | CollectiveOp::Allgatherv)
                if !ranks.is_power_of_two() =>
            {
                Bruck
            }
            (RecursiveDoubling, CollectiveOp::ReduceScatter | CollectiveOp::ReduceScatterBlock)
                if !ranks.is_power_of_two() =>
            {
                RecursiveHalving
            }
            (RabenseifnerHalves, _) if ranks.is_power_of_two() => Rabenseifner,
            (InterleavedHalving, _) if !ranks.is_power_of_two() => RecursiveHalving,
            (NeighborExchange, _) if !ranks.is_multiple_of(2) => Ring,
            (same, _) => same,
        }
    }
}

/// An algorithm with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice {
    /// The algorithm. It ignores options that it does not have.
    pub algorithm: Algorithm,
    /// Size of the segments into which messages are split.
    pub segment: Option<Bytes>,
    /// Algorithm-dependent: number of chains that start at the root; children per node of a k-ary tree; base of a k-nomial
    /// tree, of Bruck's distances or of recursive doubling and halving; or number of messages in flight.
    pub width: Option<u32>,
}

impl Choice {
    /// The algorithm with its default segment and width.
    pub const fn plain(algorithm: Algorithm) -> Choice {
        Choice {
            algorithm,
            segment: None,
            width: None,
        }
    }

    /// Base of distances among `ranks` ranks: the width, at least 2 and at most the number of ranks.
    pub fn base(&self, ranks: u32) -> u32 {
        self.width.unwrap_or(2).clamp(2, ranks.max(2))
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.algorithm.name())?;
        if let Some(width) = self.width {
            write!(f, " width {width}")?;
        }
        if let Some(segment) = self.segment {
            write!(f, " segment {segment}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_the_index_of_its_algorithm() {
        for (place, algorithm) in Algorithm::ALL.into_iter().enumerate() {
            assert_eq!(algorithm as usize, place);
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
    }
}
