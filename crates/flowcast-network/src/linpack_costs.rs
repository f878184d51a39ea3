//! What High Performance Linpack costs on a machine beside the products of matrices that were measured and the messages between
//! nodes: the section `[linpack]` of a network file.

use crate::costs::{FittedCosts, costs};

// Priors: processors of 2017 with two sockets of 16 cores, 1 MiB of second-level cache and six channels of DDR4-2666 each.
costs! {
/// Constants of a machine's computations and of messages inside its nodes.
LinpackCosts {
    /// Time of a product in the program, as a multiple of the measured.
    multiply: Ratio, 1.0, 0.037;
    /// Part of the spread of measured products that differs from call to call; the rest goes with their shape.
    call_spread: Ratio, 0.3, 0.5;
    /// Time of a triangular solution, as a multiple of a product with as many operations.
    solve: Ratio, 1.3, 0.2;
    /// Cache that a core has for itself.
    cache: Bytes, 2.4e6, 0.3;
    /// Time per byte of a core from and to its cache.
    cache_gap: SecondsPerByte, 5e-11, 0.4;
    /// Time per byte of a core from and to memory while the others do not use it.
    memory_gap: SecondsPerByte, 8e-11, 0.2;
    /// Time per byte of all cores of a node from and to memory.
    node_memory_gap: SecondsPerByte, 5.3e-12, 0.2;
    /// Latency inside a node.
    node_latency: Seconds, 5e-7, 0.4;
    /// Time per byte of a message inside a node.
    node_gap: SecondsPerByte, 2e-10, 0.4;
    /// Time per byte of all messages inside a node together.
    node_copy_gap: SecondsPerByte, 1.67e-11, 0.4;
}
}

section! {
    /// What a fit to runs of High Performance Linpack found: the section `[linpack]` of a network file.
    pub struct FittedLinpack {
        /// Standard deviation of `ln(measured / predicted)` of the runs that the costs were fitted to.
        spread: f64,
        /// Fitted constants, each with the ends of its interval.
        costs: FittedCosts<LinpackCosts>,
    }
}
