//! Events that mark calls and regions, with Extrae's numbers.

pub use flowcast_recording::table::FunctionNumber;
use flowcast_units::CollectiveOp;

/// Type of the event that marks regions; its value is the region's number, 0 at the end.
pub const REGION: i64 = 60_000_019;

/// Type of the event that names a call in recordings if its operations have another name. Its value is the number of the
/// function, and 0 after the call.
pub const CALLED: i64 = 50_000_000;

/// Type of the event of a call that sends, receives or waits.
pub const POINT_TO_POINT: i64 = 50_000_001;
/// Type of the event of a call that does not communicate.
pub const OTHER: i64 = 50_000_003;
/// Types of the events with which tracers of MPI mark its calls: point to point, collective, other, one-sided, files.
pub const MPI_EVENTS: std::ops::RangeInclusive<i64> = POINT_TO_POINT..=50_000_005;
/// Type of the event of a collective call.
pub const COLLECTIVE: i64 = 50_000_002;
/// Type of the event with the bytes that the rank sends in a collective.
pub const SEND_SIZE: i64 = 50_100_001;
/// Type of the event with the bytes that the rank receives in a collective.
pub const RECV_SIZE: i64 = 50_100_002;
/// Type of the event that marks the root of a collective.
pub const IS_ROOT: i64 = 50_100_003;
/// Type of the event with the number of a collective's communicator.
pub const COMMUNICATOR: i64 = 50_100_004;

/// Value of the event that marks a call of a collective operation.
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

/// Events of calls that are not collectives: type, value and the function's name without `MPI_`.
pub const CALLS: [(i64, i64, &str); 24] = [
    (POINT_TO_POINT, 1, "Send"),
    (POINT_TO_POINT, 2, "Recv"),
    (POINT_TO_POINT, 3, "Isend"),
    (POINT_TO_POINT, 4, "Irecv"),
    (POINT_TO_POINT, 5, "Wait"),
    (POINT_TO_POINT, 6, "Waitall"),
    (POINT_TO_POINT, 33, "Bsend"),
    (POINT_TO_POINT, 34, "Ssend"),
    (POINT_TO_POINT, 35, "Rsend"),
    (POINT_TO_POINT, 39, "Test"),
    (POINT_TO_POINT, 40, "Cancel"),
    (POINT_TO_POINT, 41, "Sendrecv"),
    (POINT_TO_POINT, 42, "Sendrecv_replace"),
    (POINT_TO_POINT, 59, "Waitany"),
    (POINT_TO_POINT, 60, "Waitsome"),
    (POINT_TO_POINT, 61, "Probe"),
    (OTHER, 19, "Comm_rank"),
    (OTHER, 20, "Comm_size"),
    (OTHER, 21, "Comm_create"),
    (OTHER, 22, "Comm_dup"),
    (OTHER, 23, "Comm_split"),
    (OTHER, 25, "Comm_free"),
    (OTHER, 31, "Init"),
    (OTHER, 32, "Finalize"),
];

/// Offset of the event values of functions that Extrae does not number: the value is this plus the function's number.
const OWN_VALUES: i64 = 1000;

/// Returns the type and value of the event that marks a call of a function.
pub fn event_of(function: FunctionNumber) -> (i64, i64) {
    let name = function.name();
    let known = CALLS.iter().find(|(.., known)| *known == name);
    match (known, CollectiveOp::from_function(name)) {
        (Some((kind, value, _)), _) => (*kind, *value),
        (None, Some(op)) => (COLLECTIVE, value_of(op)),
        (None, None) => (POINT_TO_POINT, OWN_VALUES + i64::from(function.get())),
    }
}

/// Returns the name, without `MPI_`, of the function whose call an event marks.
pub fn function_name(kind: i64, value: i64) -> Option<&'static str> {
    let known = CALLS.iter().find(|(_, known, _)| *known == value);
    match known {
        _ if kind == CALLED => numbered(value),
        Some((.., name)) => Some(name),
        None => operation_of(value)
            .map(CollectiveOp::name)
            .or_else(|| numbered(value - OWN_VALUES)),
    }
}

/// Returns the function whose call an event marks, if recordings have it.
pub fn function(kind: i64, value: i64) -> Option<FunctionNumber> {
    function_name(kind, value).and_then(FunctionNumber::named)
}

fn numbered(place: i64) -> Option<&'static str> {
    let function = FunctionNumber::new(u16::try_from(place).ok()?)?;
    Some(function.name())
}

/// Returns the collective operation that an event's value stands for.
pub fn operation_of(value: i64) -> Option<CollectiveOp> {
    CollectiveOp::ALL
        .into_iter()
        .find(|op| value_of(*op) == value)
}
