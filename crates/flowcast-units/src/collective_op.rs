//! The collective operations of MPI.

crate::named! {
    /// The collective operations by their names in MPI without the prefix, in the order of the ids of `.dim` records.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[repr(u8)]
    #[allow(missing_docs)]
    pub enum CollectiveOp {
        Barrier = "Barrier",
        Bcast = "Bcast",
        Gather = "Gather",
        Gatherv = "Gatherv",
        Scatter = "Scatter",
        Scatterv = "Scatterv",
        Allgather = "Allgather",
        Allgatherv = "Allgatherv",
        Alltoall = "Alltoall",
        Alltoallv = "Alltoallv",
        Reduce = "Reduce",
        Allreduce = "Allreduce",
        #[cfg_attr(feature = "serde", serde(rename = "Reduce_scatter"))]
        ReduceScatter = "Reduce_scatter",
        #[cfg_attr(feature = "serde", serde(rename = "Reduce_scatter_block"))]
        ReduceScatterBlock = "Reduce_scatter_block",
        Scan = "Scan",
        Alltoallw = "Alltoallw",
    }
}

impl CollectiveOp {
    /// Name of the operation's non-blocking form.
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

    /// Returns the collective operation of an MPI function, regardless of case.
    ///
    /// ```
    /// use flowcast_units::CollectiveOp;
    ///
    /// assert_eq!(CollectiveOp::from_function("MPI_Bcast"), Some(CollectiveOp::Bcast));
    /// assert_eq!(CollectiveOp::from_function("MPI_Send"), None);
    /// ```
    pub fn from_function(name: &str) -> Option<CollectiveOp> {
        let bare = name.strip_prefix("MPI_").unwrap_or(name);
        CollectiveOp::ALL
            .into_iter()
            .find(|op| op.name().eq_ignore_ascii_case(bare))
    }
}
