//! Steps of one rank in one operation by one algorithm.

use super::{
    moves::{BlockLayout, ExpandedMove, MessagePart},
    tree::CollectiveTree,
};
use flowcast_network::algorithm::{
    Algorithm::{self, *},
    Choice,
};
use flowcast_units::CollectiveOp;

/// An operation, its algorithm and its number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpansionTask {
    /// Operation. Variants with blocks of different sizes have the same moves as those with equal ones.
    pub op: CollectiveOp,
    /// Algorithm, with segment and width.
    pub choice: Choice,
    /// Number of ranks in the communicator.
    pub ranks: u32,
    /// Root, if the operation has one.
    pub root: u32,
}

impl ExpansionTask {
    /// Passes the steps of a rank to `put`, one by one. `layout` is the result of [`ExpansionTask::layout`].
    pub fn moves(&self, rank: u32, layout: &BlockLayout, put: &mut dyn FnMut(ExpandedMove)) {
        let ExpansionTask {
            choice,
            ranks,
            root,
            ..
        } = *self;
        let mut plan = Plan {
            ranks,
            root,
            rank,
            parts: layout.parts(),
            width: choice.width,
            base: choice.base(ranks),
            put,
        };
        if ranks > 1 {
            plan.run(self.op, choice.algorithm);
        }
    }

    /// Returns the division of the vector, for an operation on one vector.
    pub fn layout(&self, total: u64) -> BlockLayout {
        let segment = self.choice.segment.map(|size| size.0);
        match (self.op, self.choice.algorithm) {
            (CollectiveOp::Bcast, SplitBinary) => BlockLayout::Halves {
                total,
                segment: segment.unwrap_or(u64::MAX),
            },
            (CollectiveOp::Bcast, ScatterRing | ScatterRecursiveDoubling) => BlockLayout::Even {
                total,
                parts: self.ranks,
            },
            (CollectiveOp::Allreduce, Ring) => BlockLayout::Even {
                total,
                parts: self.ranks.saturating_mul(self.ring_phases(total)),
            },
            (CollectiveOp::Reduce | CollectiveOp::Allreduce, Rabenseifner) => {
                let ranks = self.ranks.max(1);
                let base = self.choice.base(ranks);
                BlockLayout::Even {
                    total,
                    parts: base.pow(ranks.ilog(base)),
                }
            }
            (CollectiveOp::Reduce | CollectiveOp::Allreduce, RabenseifnerHalves) => {
                BlockLayout::Even {
                    total,
                    parts: 1 << self.ranks.max(1).ilog2(),
                }
            }
            (
                CollectiveOp::Bcast | CollectiveOp::Reduce,
                Linear | Chain | Binary | Kary | Binomial | BinomialNearest | Knomial,
            ) => BlockLayout::Segments {
                total,
                segment: segment.unwrap_or(u64::MAX),
            },
            _ => BlockLayout::Even { total, parts: 1 },
        }
    }

    /// Number of rounds of a segmented ring: the number of full pieces in the block of a rank, plus one for the remainder if
    /// that is more than half a piece (Open MPI, coll_base_allreduce.c, `ring_segmented`).
    fn ring_phases(&self, total: u64) -> u32 {
        let Some(segment) = self.choice.segment else {
            return 1;
        };
        let round = segment.0.saturating_mul(u64::from(self.ranks)).max(1);
        let phases = total / round + u64::from(total % round > round / 2);
        phases.clamp(1, MAX_RING_PARTS / u64::from(self.ranks.max(1)) + 1) as u32
    }
}

/// Approximate upper limit for the parts of a ring's vector.
const MAX_RING_PARTS: u64 = 1 << 24;

/// Way in which ranks that do not take part in Rabenseifner's algorithm hand over their vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joining {
    /// Whole, to the last rank of their group, which combines them, as in MPICH.
    Vectors,
    /// In pairs: both ranks combine a half, then the first gets the other half, as in Open MPI.
    Halves,
}

/// Construction of one rank's steps.
pub struct Plan<'a> {
    pub(super) ranks: u32,
    pub(super) root: u32,
    pub(super) rank: u32,
    /// Number of blocks in the vector.
    pub(super) parts: u32,
    width: Option<u32>,
    base: u32,
    put: &'a mut dyn FnMut(ExpandedMove),
}

impl Plan<'_> {
    fn run(&mut self, op: CollectiveOp, algorithm: Algorithm) {
        use CollectiveOp::*;
        match op {
            Barrier => self.barrier(algorithm),
            Bcast => self.bcast(algorithm),
            Gather | Gatherv => self.gather(algorithm),
            Scatter | Scatterv => self.scatter(algorithm),
            Allgather | Allgatherv => self.allgather(algorithm),
            Alltoall | Alltoallv | Alltoallw => self.alltoall(algorithm),
            Reduce => self.reduce(algorithm),
            Allreduce => self.allreduce(algorithm),
            ReduceScatterBlock if algorithm == Butterfly && self.ranks.is_power_of_two() => {
                self.reduce_scatter_interleaved()
            }
            ReduceScatter | ReduceScatterBlock => self.reduce_scatter(algorithm),
            Scan => self.scan(algorithm),
        }
    }

    fn barrier(&mut self, algorithm: Algorithm) {
        match algorithm {
            Linear => self.meet(CollectiveTree::Flat),
            Binomial => self.meet(CollectiveTree::Knomial(2)),
            DoubleRing => self.double_ring(),
            RecursiveDoubling => self.barrier_doubling(),
            _ => self.dissemination(),
        }
    }

    fn bcast(&mut self, algorithm: Algorithm) {
        match algorithm {
            SplitBinary => self.split_binary(),
            ScatterRing => {
                self.scatter_binomial(0);
                self.allgather_ring(self.number());
            }
            ScatterRecursiveDoubling => {
                self.scatter_binomial(0);
                self.allgather_doubling(self.number());
            }
            other => self.down(self.tree(other)),
        }
    }

    fn reduce(&mut self, algorithm: Algorithm) {
        match algorithm {
            InOrderBinary => self.up_in_order(),
            Rabenseifner => self.reduce_halving(Joining::Vectors),
            RabenseifnerHalves => self.reduce_halving(Joining::Halves),
            other => self.up(self.tree(other)),
        }
    }

    fn tree(&self, algorithm: Algorithm) -> CollectiveTree {
        match algorithm {
            Linear => CollectiveTree::Flat,
            Chain => CollectiveTree::Chains(self.width.unwrap_or(1)),
            Binary => CollectiveTree::Binary,
            Kary => CollectiveTree::Kary(self.width.unwrap_or(2)),
            Knomial => CollectiveTree::Knomial(self.width.unwrap_or(4)),
            BinomialNearest => CollectiveTree::BinomialNearest,
            _ => CollectiveTree::Knomial(2),
        }
    }

    fn allreduce(&mut self, algorithm: Algorithm) {
        match algorithm {
            Ring => self.allreduce_ring(),
            Rabenseifner => self.allreduce_halving(Joining::Vectors),
            RabenseifnerHalves => self.allreduce_halving(Joining::Halves),
            _ => self.allreduce_doubling(),
        }
    }

    fn reduce_scatter(&mut self, algorithm: Algorithm) {
        match algorithm {
            Ring => self.reduce_scatter_ring(),
            Pairwise => self.reduce_scatter_pairwise(),
            RecursiveDoubling => self.reduce_scatter_doubling(),
            Butterfly => self.reduce_scatter_butterfly(),
            InterleavedHalving => self.reduce_scatter_interleaved(),
            _ => self.reduce_scatter_halving(),
        }
    }

    fn allgather(&mut self, algorithm: Algorithm) {
        match algorithm {
            Bruck => self.allgather_bruck(),
            Sparbit => self.allgather_sparbit(),
            RecursiveExchange => self.allgather_exchange(),
            Linear => self.allgather_linear(),
            RecursiveDoubling => self.allgather_doubling(self.rank),
            NeighborExchange => self.neighbor_exchange(),
            _ => self.allgather_ring(self.rank),
        }
    }

    fn gather(&mut self, algorithm: Algorithm) {
        match algorithm {
            Binomial => self.gather_binomial(),
            LinearSync => self.gather_in_two_parts(),
            _ => self.gather_linear(),
        }
    }

    fn scatter(&mut self, algorithm: Algorithm) {
        match algorithm {
            Binomial => self.scatter_binomial(self.root),
            LinearImmediate => self.scatter_immediate(),
            _ => self.scatter_linear(),
        }
    }

    fn alltoall(&mut self, algorithm: Algorithm) {
        match algorithm {
            Pairwise => self.alltoall_pairwise(),
            Bruck => self.alltoall_bruck(),
            LinearInOrder => self.alltoall_in_order(),
            PairwiseInOrder => self.alltoall_pairwise_in_order(),
            LinearSync => self.alltoall_window(self.width.unwrap_or(u32::MAX)),
            _ => self.alltoall_linear(self.width.unwrap_or(u32::MAX)),
        }
    }

    fn scan(&mut self, algorithm: Algorithm) {
        match algorithm {
            RecursiveDoubling => self.scan_doubling(),
            _ => self.scan_linear(),
        }
    }

    /// Number of the rank, counted from the root.
    pub(super) fn number(&self) -> u32 {
        (self.rank + self.ranks - self.root) % self.ranks
    }

    /// Rank with a number counted from the root.
    pub(super) fn real(&self, number: u32) -> u32 {
        (self.root + number) % self.ranks
    }

    /// Base of the distances, at least 2.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    pub(super) fn put(&mut self, step: ExpandedMove) {
        (self.put)(step);
    }

    pub(super) fn send(&mut self, to: u32, part: MessagePart) {
        self.put(ExpandedMove::Send { to, part });
    }

    pub(super) fn recv(&mut self, from: u32, part: MessagePart) {
        self.put(ExpandedMove::Recv { from, part });
    }

    /// Sends and receives at the same time.
    pub(super) fn exchange(
        &mut self,
        to: u32,
        sent: MessagePart,
        from: u32,
        received: MessagePart,
    ) {
        self.put(ExpandedMove::Post {
            from,
            part: received,
        });
        self.put(ExpandedMove::Start { to, part: sent });
        self.put(ExpandedMove::WaitAll);
    }
}
