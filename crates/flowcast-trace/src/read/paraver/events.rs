//! The events that mark collective calls, as Extrae numbers them: for readers and writers of traces.

use flowcast_units::CollectiveOp;

/// The type of the event of a collective call.
pub const COLLECTIVE: i64 = 50_000_002;
/// Bytes that the rank sends in a collective.
pub const SEND_SIZE: i64 = 50_100_001;
/// Bytes that it receives.
pub const RECV_SIZE: i64 = 50_100_002;
/// Whether it is the root.
pub const IS_ROOT: i64 = 50_100_003;
/// The communicator's number.
pub const COMMUNICATOR: i64 = 50_100_004;

/// The value of the event of a call of an operation.
pub const fn value_of(op: CollectiveOp) -> i64 {
    use CollectiveOp::*;
    match op {
        Bcast => 7,
        Barrier => 8,
        Reduce => 9,
        Allreduce => 10,
        Alltoall => 11,
        Alltoallv => 12,
        Gather => 13,
        Gatherv => 14,
        Scatter => 15,
        Scatterv => 16,
        Allgather => 17,
        Allgatherv => 18,
        Scan => 30,
        ReduceScatter => 80,
        ReduceScatterBlock => 168,
        Alltoallw => 170,
    }
}

/// The operation behind the value of an event.
pub fn operation_of(value: i64) -> Option<CollectiveOp> {
    CollectiveOp::ALL
        .into_iter()
        .find(|op| value_of(*op) == value)
}
