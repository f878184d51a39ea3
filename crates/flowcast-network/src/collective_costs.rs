//! Costs of the steps of collective operations on a machine: the parameters that [`fit`] finds from measured operations.
//!
//! [`fit`]: https://docs.rs/flowcast

use crate::costs::costs;

/// Size from which on glibc's malloc maps memory for each request and unmaps it afterwards (`DEFAULT_MMAP_THRESHOLD_MAX`),
/// in bytes.
pub const MAPPED_FROM: f64 = 33_554_432.0;

// Priors: interfaces of 100 to 400 Gbit/s and processors of 2019 to 2023, with a factor of 2 to 4 to both sides.
costs! {
/// Costs of messages and memory accesses in the steps of a collective operation.
CollectiveCosts {
    /// Time before the first step of a rank, and delay of the slowest rank's start relative to the others.
    start: Seconds, 1e-6, 0.7;
    /// Processor time of a message at the sender.
    send_overhead: Seconds, 3e-7, 0.7;
    /// Processor time of a message at the receiver.
    receive_overhead: Seconds, 3e-7, 0.7;
    /// Largest message that is handed to the interface together with its descriptor.
    inline_limit: Bytes, 200.0, 0.5;
    /// Additional processor time of larger messages, on both sides.
    beyond_inline: Seconds, 3e-7, 1.0;
    /// Latency within a node.
    node_latency: Seconds, 3e-7, 0.7;
    /// Latency between nodes of the same switch.
    switch_latency: Seconds, 1e-6, 0.5;
    /// Latency between switches of the same group.
    group_latency: Seconds, 1.2e-6, 0.5;
    /// Latency between groups.
    global_latency: Seconds, 1.6e-6, 0.5;
    /// Mean random delay of a message; the delays are exponentially distributed.
    noise: Seconds, 2e-7, 1.0;
    /// Time per byte within a node.
    node_gap: SecondsPerByte, 1e-10, 1.0;
    /// Time per byte at an interface.
    gap: SecondsPerByte, 4.3e-11, 0.5;
    /// Size above which messages take more time per byte because they fit into no cache.
    long_from: Bytes, 8e6, 1.0;
    /// Additional time for each byte above that size.
    long_gap: SecondsPerByte, 4e-11, 1.5;
    /// Size above which a message is sent only after its receiver has answered.
    eager_limit: Bytes, 8192.0, 0.7;
    /// Time of the request and the answer beyond twice the latency.
    handshake: Seconds, 5e-7, 0.7;
    /// Copying of messages up to the eager limit, at both ends.
    eager_copy: SecondsPerByte, 5e-11, 1.0;
    /// Packing and unpacking of blocks that are not contiguous.
    pack: SecondsPerByte, 2e-10, 1.0;
    /// Copying of the operation's data in memory, once.
    copy: SecondsPerByte, 5e-11, 1.0;
    /// Combining of data with other data.
    combine: SecondsPerByte, 1e-10, 1.0;
    /// Cache size: memory accessed beyond this size comes from outside the cache.
    cache: Bytes, 1048576.0, 0.7;
    /// Additional copying time outside the cache.
    far_copy: SecondsPerByte, 1e-10, 1.0;
    /// Additional combining time outside the cache.
    far_combine: SecondsPerByte, 1e-10, 1.0;
    /// Cost of temporary memory above 32 MiB, which each call requests anew from the kernel (glibc,
    /// `DEFAULT_MMAP_THRESHOLD_MAX`).
    mapped_memory: SecondsPerByte, 2e-10, 1.0;
    /// Cost of two or more temporaries above 128 KiB, which each call returns to the kernel (glibc, `M_TRIM_THRESHOLD`).
    trimmed_memory: SecondsPerByte, 1e-10, 1.5;
    /// Number of ranks that saturate the memory bandwidth of a node.
    memory_ranks: Ratio, 4.0, 0.7;
    /// Share of the links between groups that other jobs leave free.
    global_share: Ratio, 0.5, 0.5;
}
}
