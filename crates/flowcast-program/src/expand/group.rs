//! Data of all ranks in one execution of a collective, and the stages that carry it out.
//!
//! A trace gives for each call the bytes that the rank sends and receives, in the sense of MPI's arguments:
//!
//! | operation | the rank's block |
//! |---|---|
//! | Bcast, Reduce, Allreduce, Scan | one vector: the largest size that any rank sends or receives |
//! | Gather(v), Allgather(v) | the bytes that it sends; if no rank sends, its share of the bytes received |
//! | Scatter(v), Reduce_scatter(_block) | the bytes that it receives; if no rank receives, its share of the bytes sent |
//! | Alltoall(v, w) | the bytes that it sends to all, divided in proportion to the bytes that they receive |
//!
//! In an alltoall, some tracers give the bytes for one rank, and others the bytes for all ranks. The larger of the bytes
//! sent and received is used as the number for all ranks.

use super::{moves::BlockLayout, plan::ExpansionTask};
use crate::program::CollectiveCall;
use flowcast_network::algorithm::{Algorithm, AlgorithmTable, Choice, RuleExtent};
use flowcast_units::{Bytes, CollectiveOp};

/// A part of an operation that one algorithm carries out.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Operation and algorithm of the stage, its ranks and root.
    pub task: ExpansionTask,
    /// Division of the data.
    pub layout: BlockLayout,
    /// Bytes of received data that each rank combines after the messages of the stage.
    pub combined: u64,
}

/// Algorithm and stages of the executions with the same calls.
#[derive(Debug, Clone)]
pub struct ExecutionGroup {
    /// Collective operation that the members call; its stages can be other operations.
    pub op: CollectiveOp,
    /// `true` if a member continues while its messages move.
    pub is_non_blocking: bool,
    /// Number of ranks and sizes that the rules examined.
    pub extent: RuleExtent,
    /// Algorithm that the rules chose, with segment and width.
    pub choice: Choice,
    /// Stages, in order; none if there is nothing to send.
    pub stages: Vec<Stage>,
}

impl ExecutionGroup {
    /// Chooses the stages from the calls of all members, in the order of the communicator.
    pub fn new(calls: &[CollectiveCall], table: &AlgorithmTable) -> ExecutionGroup {
        let op = calls[0].op;
        let data = Data::new(op, calls);
        let extent = data.extent(op);
        let choice = table.choose(op, &extent);
        let moves_nothing = calls.len() < 2 || op != CollectiveOp::Barrier && extent.total.0 == 0;
        let stages = if moves_nothing {
            Vec::new()
        } else {
            data.stages(op, choice, table)
        };
        let is_non_blocking = calls.iter().any(CollectiveCall::is_non_blocking);
        ExecutionGroup {
            op,
            is_non_blocking,
            extent,
            choice,
            stages,
        }
    }
}

/// Returns the stages of an operation in which all ranks have equal parts, with the first rank as root.
pub fn uniform_stages(
    op: CollectiveOp,
    choice: Choice,
    extent: &RuleExtent,
    table: &AlgorithmTable,
) -> Vec<Stage> {
    use CollectiveOp::*;
    let (ranks, block) = (extent.ranks, extent.bytes.0);
    let is_vector = matches!(op, Barrier | Bcast | Reduce | Allreduce | Scan);
    let sizes = match op {
        _ if is_vector => vec![block],
        Alltoall | Alltoallv | Alltoallw => vec![block * u64::from(ranks); ranks as usize],
        _ => vec![block; ranks as usize],
    };
    let data = Data {
        root: 0,
        sizes,
        received: vec![0; ranks as usize],
        is_vector,
    };
    data.stages(op, choice, table)
}

/// Sizes, as far as algorithms need them.
struct Data {
    root: u32,
    /// One size for each member if the data are blocks, otherwise one for all.
    sizes: Vec<u64>,
    /// Bytes that members receive, if that is not their own block.
    received: Vec<u64>,
    is_vector: bool,
}

impl Data {
    fn new(op: CollectiveOp, calls: &[CollectiveCall]) -> Data {
        use CollectiveOp::*;
        let root = calls.iter().position(|call| call.is_root).unwrap_or(0) as u32;
        let sent: Vec<u64> = calls.iter().map(|call| call.send.0).collect();
        let received: Vec<u64> = calls.iter().map(|call| call.recv.0).collect();
        let is_vector = matches!(op, Barrier | Bcast | Reduce | Allreduce | Scan);
        let sizes = match op {
            Barrier => vec![0],
            Bcast | Reduce | Allreduce | Scan => {
                vec![sent.iter().chain(&received).copied().max().unwrap_or(0)]
            }
            Gather | Gatherv | Allgather | Allgatherv => or_share_of(&sent, &received),
            Scatter | Scatterv | ReduceScatter | ReduceScatterBlock => {
                or_share_of(&received, &sent)
            }
            Alltoall => sent
                .iter()
                .zip(&received)
                .map(|(sent, received)| *sent.max(received))
                .collect(),
            Alltoallv | Alltoallw => sent,
        };
        Data {
            root,
            sizes,
            received,
            is_vector,
        }
    }

    fn total(&self) -> u64 {
        self.sizes
            .iter()
            .fold(0, |sum, size| sum.saturating_add(*size))
    }

    fn members(&self) -> u32 {
        self.received.len() as u32
    }

    fn extent(&self, op: CollectiveOp) -> RuleExtent {
        let (ranks, total) = (self.members(), self.total());
        let is_of_pairs = matches!(
            op,
            CollectiveOp::Alltoall | CollectiveOp::Alltoallv | CollectiveOp::Alltoallw
        );
        let each = u64::from(ranks.max(1)).pow(if is_of_pairs { 2 } else { 1 });
        RuleExtent {
            ranks,
            bytes: Bytes(if self.is_vector { total } else { total / each }),
            total: Bytes(total),
        }
    }

    fn stages(&self, op: CollectiveOp, choice: Choice, table: &AlgorithmTable) -> Vec<Stage> {
        use CollectiveOp::*;
        let plain = Choice::plain;
        let vector = RuleExtent {
            bytes: Bytes(self.total()),
            ..self.extent(op)
        };
        let chosen = |op| table.choose(op, &vector);
        match (op, choice.algorithm) {
            (Allreduce, Algorithm::Linear) => {
                vec![
                    self.vector(Reduce, plain(Algorithm::Linear)),
                    self.vector(Bcast, plain(Algorithm::Linear)),
                ]
            }
            (Allreduce, Algorithm::AllgatherThenReduce) => {
                vec![self.allgather_of_vectors(table)]
            }
            (Allreduce, Algorithm::ReduceThenBcastTree) => {
                let tree = Choice {
                    algorithm: Algorithm::Knomial,
                    width: Some(choice.base(self.members())),
                    ..choice
                };
                vec![self.vector(Reduce, tree), self.vector(Bcast, tree)]
            }
            (Allreduce, Algorithm::ReduceThenBcast) => {
                vec![
                    self.vector(Reduce, chosen(Reduce)),
                    self.vector(Bcast, chosen(Bcast)),
                ]
            }
            (_, Algorithm::ReduceThenScatter) => {
                vec![
                    self.vector(Reduce, chosen(Reduce)),
                    self.blocks(Scatter, plain(Algorithm::Linear)),
                ]
            }
            (_, Algorithm::GatherThenBcast) => {
                let gather = table.choose(Gather, &self.extent(op));
                vec![
                    self.blocks(Gather, gather),
                    self.vector(Bcast, chosen(Bcast)),
                ]
            }
            _ if self.is_vector => vec![self.vector(op, choice)],
            _ => vec![self.blocks(op, choice)],
        }
    }

    /// A stage in which each rank gets the vectors of all ranks and combines them.
    fn allgather_of_vectors(&self, table: &AlgorithmTable) -> Stage {
        let (ranks, vector) = (self.members(), self.total());
        let extent = RuleExtent {
            ranks,
            bytes: Bytes(vector),
            total: Bytes(vector.saturating_mul(u64::from(ranks))),
        };
        let choice = table.choose(CollectiveOp::Allgather, &extent);
        Stage {
            task: self.task(CollectiveOp::Allgather, choice),
            layout: BlockLayout::given((0..ranks).map(|_| vector)),
            combined: vector.saturating_mul(u64::from(ranks.saturating_sub(1))),
        }
    }

    fn task(&self, op: CollectiveOp, choice: Choice) -> ExpansionTask {
        ExpansionTask {
            op,
            choice,
            ranks: self.members(),
            root: self.root,
        }
    }

    /// A stage on one vector that contains all blocks.
    fn vector(&self, op: CollectiveOp, choice: Choice) -> Stage {
        let task = self.task(op, choice);
        Stage {
            task,
            layout: task.layout(self.total()),
            combined: 0,
        }
    }

    fn blocks(&self, op: CollectiveOp, choice: Choice) -> Stage {
        use CollectiveOp::*;
        let layout = match (op, choice.algorithm) {
            (Alltoall, _) => BlockLayout::pairs(self.sizes.clone(), &[]),
            (Alltoallv | Alltoallw, _) => BlockLayout::pairs(self.sizes.clone(), &self.received),
            (Gather, Algorithm::LinearSync) => {
                // Without a given size, the first piece is the whole block (Open MPI, coll_base_util.h, COMPUTED_SEGCOUNT).
                let first = choice.segment.map_or(u64::MAX, |size| size.0);
                BlockLayout::given(
                    self.sizes
                        .iter()
                        .flat_map(|size| [*size.min(&first), size.saturating_sub(first)]),
                )
            }
            _ => BlockLayout::given(self.sizes.iter().copied()),
        };
        Stage {
            task: self.task(op, choice),
            layout,
            combined: 0,
        }
    }
}

/// Returns the sizes or, if all are zero, equal shares of the largest of `others`.
fn or_share_of(sizes: &[u64], others: &[u64]) -> Vec<u64> {
    if sizes.iter().any(|size| *size > 0) {
        return sizes.to_vec();
    }
    let all = u128::from(others.iter().copied().max().unwrap_or(0));
    let ranks = sizes.len() as u128;
    (0..ranks)
        .map(|rank| (all * (rank + 1) / ranks - all * rank / ranks) as u64)
        .collect()
}
