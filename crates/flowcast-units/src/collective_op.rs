//! The collective operations of MPI.

/// The collective operations, in the order of the ids of `.dim` records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
#[allow(missing_docs)]
pub enum CollectiveOp {
    Barrier,
    Bcast,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Reduce,
    Allreduce,
    #[cfg_attr(feature = "serde", serde(rename = "Reduce_scatter"))]
    ReduceScatter,
    #[cfg_attr(feature = "serde", serde(rename = "Reduce_scatter_block"))]
    ReduceScatterBlock,
    Scan,
    Alltoallw,
}

impl CollectiveOp {
    /// All operations, in id order.
    pub const ALL: [CollectiveOp; 16] = {
        use CollectiveOp::*;
        [
            Barrier,
            Bcast,
            Gather,
            Gatherv,
            Scatter,
            Scatterv,
            Allgather,
            Allgatherv,
            Alltoall,
            Alltoallv,
            Reduce,
            Allreduce,
            ReduceScatter,
            ReduceScatterBlock,
            Scan,
            Alltoallw,
        ]
    };

    /// The operation's name in MPI, without the prefix.
    pub const fn name(self) -> &'static str {
        const NAMES: [&str; 16] = [
            "Barrier",
            "Bcast",
            "Gather",
            "Gatherv",
            "Scatter",
            "Scatterv",
            "Allgather",
            "Allgatherv",
            "Alltoall",
            "Alltoallv",
            "Reduce",
            "Allreduce",
            "Reduce_scatter",
            "Reduce_scatter_block",
            "Scan",
            "Alltoallw",
        ];
        NAMES[self as usize]
    }

    /// The name of its non-blocking form.
    pub const fn non_blocking_name(self) -> &'static str {
        const NAMES: [&str; 16] = [
            "Ibarrier",
            "Ibcast",
            "Igather",
            "Igatherv",
            "Iscatter",
            "Iscatterv",
            "Iallgather",
            "Iallgatherv",
            "Ialltoall",
            "Ialltoallv",
            "Ireduce",
            "Iallreduce",
            "Ireduce_scatter",
            "Ireduce_scatter_block",
            "Iscan",
            "Ialltoallw",
        ];
        NAMES[self as usize]
    }

    /// The operation of that name, with or without `MPI_`.
    pub fn from_name(name: &str) -> Option<CollectiveOp> {
        let bare = name.strip_prefix("MPI_").unwrap_or(name);
        CollectiveOp::ALL
            .into_iter()
            .find(|op| op.name().eq_ignore_ascii_case(bare))
    }
}
