//! What the steps of collective operations cost on a machine: the parameters that [`fit`] finds from measured operations.
//!
//! [`fit`]: https://docs.rs/flowcast

use crate::costs::costs;

// Priors: interfaces of 100 to 400 Gbit/s and processors of 2019 to 2023; a factor of 2 to 4 to both sides.
costs! {
/// What messages and memory cost in the steps of a collective operation.
CollectiveCosts {
    /// Time before the first step of a rank, and by which the slowest begins later than the others.
    start: Seconds, 1e-6, 0.7;
    /// Processor time of a message's sender.
    send_overhead: Seconds, 3e-7, 0.7;
    /// Processor time of a message's receiver.
    receive_overhead: Seconds, 3e-7, 0.7;
    /// Messages up to this size are handed to the interface with their descriptor.
    inline_limit: Bytes, 200.0, 0.5;
    /// By how much longer messages take the processors of both sides.
    beyond_inline: Seconds, 3e-7, 1.0;
    /// Latency inside a node.
    node_latency: Seconds, 3e-7, 0.7;
    /// Latency between nodes of a switch.
    switch_latency: Seconds, 1e-6, 0.5;
    /// Latency between switches of a group.
    group_latency: Seconds, 1.2e-6, 0.5;
    /// Latency between groups.
    global_latency: Seconds, 1.6e-6, 0.5;
    /// Mean by which a message is late by chance; the delays are exponential.
    noise: Seconds, 2e-7, 1.0;
    /// Time per byte inside a node.
    node_gap: SecondsPerByte, 1e-10, 1.0;
    /// Time per byte of an interface.
    gap: SecondsPerByte, 4.3e-11, 0.5;
    /// Messages above this size take longer per byte: they fit no cache.
    long_from: Bytes, 8e6, 1.0;
    /// By how much, for each byte above it.
    long_gap: SecondsPerByte, 4e-11, 1.5;
    /// Messages above this size are sent when their receiver has answered.
    eager_limit: Bytes, 8192.0, 0.7;
    /// What asking and answering takes beyond twice the latency.
    handshake: Seconds, 5e-7, 0.7;
    /// Copies of messages up to the eager limit, at both ends.
    eager_copy: SecondsPerByte, 5e-11, 1.0;
    /// Packing and unpacking of blocks that lie apart.
    pack: SecondsPerByte, 2e-10, 1.0;
    /// Copying the operation's data in memory, once.
    copy: SecondsPerByte, 5e-11, 1.0;
    /// Combining data with others.
    combine: SecondsPerByte, 1e-10, 1.0;
    /// What memory is touched beyond this size comes from outside the cache.
    cache: Bytes, 1048576.0, 0.7;
    /// By how much copying takes longer there.
    far_copy: SecondsPerByte, 1e-10, 1.0;
    /// By how much combining takes longer there.
    far_combine: SecondsPerByte, 1e-10, 1.0;
    /// Temporary memory that each call gets anew from the kernel, above 32 MiB (glibc, `DEFAULT_MMAP_THRESHOLD_MAX`).
    mapped_memory: SecondsPerByte, 2e-10, 1.0;
    /// Two temporaries or more above 128 KiB, which together are given back to the kernel after each call (glibc, `M_TRIM_THRESHOLD`).
    trimmed_memory: SecondsPerByte, 1e-10, 1.5;
    /// Ranks of a node that use up its memory's bandwidth.
    memory_ranks: Ratio, 4.0, 0.7;
    /// The part of the links between groups that the other jobs leave.
    global_share: Ratio, 0.5, 0.5;
}
}
