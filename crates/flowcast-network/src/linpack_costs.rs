//! Costs of High Performance Linpack on a machine, apart from the measured matrix products and the messages between nodes:
//! the section `[linpack]` of a network file.

use crate::costs::{FittedCosts, costs};

// Priors: processors of 2017 with two sockets of 16 cores, 1 MiB of second-level cache and six channels of DDR4-2666 each.
costs! {
/// Constants for the computations of a machine and for messages within its nodes.
LinpackCosts {
    /// Time of a matrix product in the program, as a multiple of the measured time.
    multiply: Ratio, 1.0, 0.037;
    /// Share of the spread of measured products that differs between calls; the rest depends on their shape.
    call_spread: Ratio, 0.3, 0.5;
    /// Time of a triangular solve, as a multiple of a product with the same number of operations.
    solve: Ratio, 1.3, 0.2;
    /// Size of the cache that belongs to one core.
    cache: Bytes, 2.4e6, 0.3;
    /// Time per byte between a core and its cache.
    cache_gap: SecondsPerByte, 5e-11, 0.4;
    /// Time per byte between a core and memory while the other cores do not use memory.
    memory_gap: SecondsPerByte, 8e-11, 0.2;
    /// Time per byte between all cores of a node and memory.
    node_memory_gap: SecondsPerByte, 5.3e-12, 0.2;
    /// Latency within a node.
    node_latency: Seconds, 5e-7, 0.4;
    /// Time per byte of a single message within a node.
    node_gap: SecondsPerByte, 2e-10, 0.4;
    /// Time per byte of all concurrent messages within a node.
    node_copy_gap: SecondsPerByte, 1.67e-11, 0.4;
}
}

section! {
    /// Result of a fit to runs of High Performance Linpack: the section `[linpack]` of a network file.
    pub struct FittedLinpack {
        /// Standard deviation of `ln(measured / predicted)` of the runs that the costs were fitted to.
        spread: f64,
        /// Fitted constants, each with the ends of its interval.
        costs: FittedCosts<LinpackCosts>,
    }
}
