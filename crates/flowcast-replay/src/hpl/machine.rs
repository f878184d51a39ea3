//! What a run of HPL takes place on, in plain numbers: seconds, bytes, seconds per byte.

use flowcast_trace::hpl::Kernel;

/// How messages travel between two ranks of a node, or of two nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Channel {
    /// From the sender's last instruction to the receiver's first, in seconds.
    pub latency: f64,
    /// Seconds of the receiver for a message.
    pub receive: f64,
    /// Seconds per byte of one message alone.
    pub per_byte: f64,
    /// Seconds per byte of what all messages cross: the interface of a node in one direction, or the memory of a node.
    pub shared_per_byte: f64,
    /// Bytes from which a sender waits for its receiver.
    pub rendezvous_from: u64,
}

/// Seconds of a sender for a message: `fixed + per_byte * size` from a size on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SendCost {
    /// Bytes from which it holds.
    pub from: u64,
    /// Seconds of each message.
    pub fixed: f64,
    /// Seconds of each byte.
    pub per_byte: f64,
}

/// Constants of the kernels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Factor on the times of dgemm.
    pub multiply: f64,
    /// A triangular solve takes this many times as long as a multiplication with as many operations.
    pub solve: f64,
    /// Bytes of cache that a core has for itself.
    pub cache: f64,
    /// Bytes per second of a core from its cache.
    pub cache_rate: f64,
    /// Bytes per second of one core alone from memory.
    pub memory_rate: f64,
    /// Bytes per second of all cores of a node from memory.
    pub node_memory_rate: f64,
    /// Seconds of a call of a kernel.
    pub call: f64,
}

/// A processor's dgemm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Multiplication {
    /// Seconds of a call.
    pub intercept: f64,
    /// Seconds for each `m n k`.
    pub per_mnk: f64,
}

/// The machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Node of each rank.
    pub nodes: Vec<u32>,
    /// Ranks of each node.
    pub ranks_per_node: u32,
    /// Processor of each rank.
    pub multiplications: Vec<Multiplication>,
    /// Messages inside nodes.
    pub inside: Channel,
    /// Messages between nodes.
    pub between: Channel,
    /// Cost of sends, the smallest size first.
    pub sends: Vec<SendCost>,
    /// Constants of the kernels.
    pub rates: Rates,
}

impl Machine {
    /// Seconds of a kernel while all ranks of the node compute.
    pub(super) fn time(&self, rank: u32, kernel: Kernel) -> f64 {
        let share = self.rates.node_memory_rate / f64::from(self.ranks_per_node);
        let rate = share.min(self.rates.memory_rate);
        match kernel {
            Kernel::Multiply { m, n, k } => {
                self.multiply(rank, m as f64 * n as f64 * f64::from(k))
            }
            Kernel::Solve { n, k } => {
                let operations = n as f64 * f64::from(k) * f64::from(k) / 2.0;
                self.rates.solve * self.multiply(rank, operations)
            }
            // Each element of a row is in a cache line of its own, which is read and written back.
            Kernel::CopyRows(elements) => self.rates.call + 128.0 * elements as f64 / rate,
            Kernel::Copy(elements) => self.rates.call + 24.0 * elements as f64 / rate,
            Kernel::MultiplyVector(elements) => self.rates.call + 8.0 * elements as f64 / rate,
        }
    }

    pub(super) fn multiply(&self, rank: u32, operations: f64) -> f64 {
        if operations == 0.0 {
            return 0.0;
        }
        let processor = self.multiplications[rank as usize];
        processor.intercept + self.rates.multiply * processor.per_mnk * operations
    }

    /// Seconds of a sender for a message that it does not wait for.
    pub(super) fn send(&self, bytes: u64) -> f64 {
        let piece = self.sends.iter().rev().find(|piece| piece.from <= bytes);
        piece.map_or(0.0, |piece| piece.fixed + piece.per_byte * bytes as f64)
    }

    pub(super) fn channel(&self, from: u32, to: u32) -> &Channel {
        if self.nodes[from as usize] == self.nodes[to as usize] {
            &self.inside
        } else {
            &self.between
        }
    }

    /// Seconds from the start of a short send to the end of its receive, if nothing else is in the way.
    pub(super) fn message(&self, from: u32, to: u32, bytes: u64) -> f64 {
        let channel = self.channel(from, to);
        self.send(bytes) + channel.latency + channel.per_byte * bytes as f64 + channel.receive
    }
}
