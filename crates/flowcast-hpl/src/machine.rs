//! What a run of HPL takes place on.

use crate::{Kernel, KernelRates, Processor};
use flowcast_network::network::Overheads;
use flowcast_units::{Bytes, Time};

/// How messages travel between two ranks of a node, or of two nodes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HplChannel {
    /// From the sender's last instruction to the receiver's first, in seconds.
    pub latency: f64,
    /// Seconds per byte of one message alone.
    pub per_byte: f64,
    /// Seconds per byte of what all messages cross: the interface of a node in one direction, or the memory of a node.
    pub shared_per_byte: f64,
    /// Bytes from which a sender waits for its receiver.
    pub rendezvous_from: u64,
    /// Processor time of both sides and latency by size.
    pub overheads: Overheads,
}

impl HplChannel {
    /// Seconds of a sender for a message that it does not wait for.
    pub(super) fn send(&self, bytes: u64) -> f64 {
        at(Overheads::at(&self.overheads.send, Bytes(bytes)))
    }

    /// Seconds of a receiver for a message that has come.
    pub(super) fn receive(&self, bytes: u64) -> f64 {
        at(Overheads::at(&self.overheads.receive, Bytes(bytes)))
    }

    /// Seconds that a message takes beside those of its bytes.
    pub(super) fn latency(&self, bytes: u64) -> f64 {
        self.latency + at(Overheads::at(&self.overheads.latency, Bytes(bytes)))
    }

    /// Seconds from the start of a short send to the end of its receive, if nothing else is in the way.
    pub(super) fn message(&self, bytes: u64) -> f64 {
        self.send(bytes) + self.latency(bytes) + self.per_byte * bytes as f64 + self.receive(bytes)
    }
}

fn at(time: Option<Time>) -> f64 {
    time.map_or(0.0, Time::as_seconds)
}

/// The machine.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// Node of each rank.
    pub nodes: Vec<u32>,
    /// Ranks of each node.
    pub ranks_per_node: u32,
    /// Processor of each rank.
    pub processors: Vec<Processor>,
    /// Part of the spread of a processor's products that differs from call to call.
    pub call_spread: f64,
    /// Messages inside nodes.
    pub inside: HplChannel,
    /// Messages between nodes.
    pub between: HplChannel,
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

    pub(super) fn channel(&self, from: u32, to: u32) -> &HplChannel {
        if self.nodes[from as usize] == self.nodes[to as usize] {
            &self.inside
        } else {
            &self.between
        }
    }
}
