//! What a run of HPL takes place on, in plain numbers: seconds, bytes, seconds per byte.

use flowcast_trace::hpl::{Kernel, KernelRates, Processor};

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

/// The machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Node of each rank.
    pub nodes: Vec<u32>,
    /// Ranks of each node.
    pub ranks_per_node: u32,
    /// Processor of each rank.
    pub processors: Vec<Processor>,
    /// Messages inside nodes.
    pub inside: Channel,
    /// Messages between nodes.
    pub between: Channel,
    /// Cost of sends, the smallest size first.
    pub sends: Vec<SendCost>,
    /// What computations cost on a core whose node does nothing else.
    pub rates: KernelRates,
    /// Bytes per second of all cores of a node from and to memory.
    pub node_memory_rate: f64,
}

impl Machine {
    /// What computations cost while so many ranks of the node compute alike.
    pub(super) fn rates_beside(&self, ranks: u32) -> KernelRates {
        let share = self.node_memory_rate / f64::from(ranks);
        KernelRates {
            memory_rate: self.rates.memory_rate.min(share),
            ..self.rates
        }
    }

    /// Seconds of a kernel.
    pub(super) fn time(&self, rates: &KernelRates, rank: u32, kernel: Kernel) -> f64 {
        let processor = &self.processors[rank as usize];
        rates.time(kernel, processor).as_seconds()
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
    pub(super) fn message(&self, [from, to]: [u32; 2], bytes: u64) -> f64 {
        let channel = self.channel(from, to);
        self.send(bytes) + channel.latency + channel.per_byte * bytes as f64 + channel.receive
    }
}
