//! Kinds of records: their text forms, and the kinds that a replay ignores.

pub(super) const RECEIVE_TYPES: u32 = 1_000_000;
pub(super) const NO_COMMUNICATOR: u32 = 2_000_000;
const OPENMP_EVENTS: u32 = 3_000_000;
const CUDA_EVENTS: u32 = 3_000_001;
const OPENCL_EVENTS: u32 = 3_000_002;

/// Returns the kind of the records for events of type `kind`, or `None` if no parallel runtime emits such events.
pub(super) fn parallel_events(kind: i64) -> Option<u32> {
    match kind {
        60_000_001..=60_000_100 => Some(OPENMP_EVENTS),
        63_000_001..=63_299_999 => Some(CUDA_EVENTS),
        64_000_000..=64_299_999 => Some(OPENCL_EVENTS),
        _ => None,
    }
}

pub(super) fn ignored_kind(number: u32) -> String {
    match number {
        OPENMP_EVENTS => "OpenMP events; the threads are replayed as recorded, without the runtime's rules".to_owned(),
        CUDA_EVENTS => {
            "CUDA events; bursts and transfers are replayed as recorded, without the runtime's rules".to_owned()
        }
        OPENCL_EVENTS => {
            "OpenCL events; bursts and transfers are replayed as recorded, without the runtime's rules".to_owned()
        }
        NO_COMMUNICATOR => "collectives without a communicator".to_owned(),
        RECEIVE_TYPES.. => format!("receives of type {}", number - RECEIVE_TYPES),
        other => format!("records of type {other}"),
    }
}

pub(super) fn format_of(kind: i64) -> &'static str {
    match kind {
        0 => "0:task:thread",
        1 => "1:task:thread:seconds",
        2 => "2:task:thread:destination:thread:size:tag:communicator:sync",
        3 => "3:task:thread:source:thread:size:tag:communicator:type",
        10 => "10:task:thread:operation:communicator:root:thread:send bytes:receive bytes[:sync]",
        11 => "11:task:thread:seconds",
        20 => "20:task:thread:type:value",
        30 => "30:task:thread:operation:communicator:target:bytes",
        31 => "31:task:thread:operation:file:communicator:bytes",
        32 => "32:task:thread:sends since",
        _ => "number:task:thread:...",
    }
}
