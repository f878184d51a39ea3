//! Machine of one simulated run.

use crate::{Kernel, KernelRates, Processor};
use flowcast_network::{collective_costs::CollectiveCosts, network::Overheads};
use flowcast_units::{Bytes, Time};

/// Costs of messages between two ranks of a node, or of two nodes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HplChannel {
    /// Time from the sender's last instruction to the receiver's first, in seconds.
    pub latency: f64,
    /// Time per byte of one message alone, in seconds.
    pub per_byte: f64,
    /// Time per byte of the shared resource, in seconds: a node's interface in one direction, or its memory.
    pub shared_per_byte: f64,
    /// Smallest size, in bytes, for which the sender waits for the receiver.
    pub rendezvous_from: u64,
    /// Processor times of both sides and additional latency, which depend on the size.
    pub overheads: Overheads,
}

impl HplChannel {
    /// Processor time of the sender for a message for which it does not wait, in seconds.
    pub(super) fn send(&self, bytes: u64) -> f64 {
        at(Overheads::at(&self.overheads.send, Bytes(bytes)))
    }

    /// Processor time of the receiver for a message that has arrived, in seconds.
    pub(super) fn receive(&self, bytes: u64) -> f64 {
        at(Overheads::at(&self.overheads.receive, Bytes(bytes)))
    }

    /// Time of a message without the time of its bytes, in seconds.
    pub(super) fn latency(&self, bytes: u64) -> f64 {
        self.latency + at(Overheads::at(&self.overheads.latency, Bytes(bytes)))
    }

    /// Time from the start of a short send to the end of its receive without contention, in seconds.
    pub(super) fn message(&self, bytes: u64) -> f64 {
        self.send(bytes) + self.latency(bytes) + self.per_byte * bytes as f64 + self.receive(bytes)
    }
}

fn at(time: Option<Time>) -> f64 {
    time.map_or(0.0, Time::as_seconds)
}

/// Machine: nodes and processors of the ranks, and all costs.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// Node of each rank.
    pub nodes: Vec<u32>,
    /// Number of ranks per node, at most all ranks of the run; the last node may have fewer.
    pub ranks_per_node: u32,
    /// Processor of each rank.
    pub processors: Vec<Processor>,
    /// Fraction of the spread of a processor's products that differs from call to call.
    pub call_spread: f64,
    /// Channel within a node.
    pub inside: HplChannel,
    /// Channel between ranks of different nodes. Its shared resource is a node's interface in one direction.
    pub between: HplChannel,
    /// Costs of long messages.
    pub collectives: CollectiveCosts,
    /// Costs of computations on a core of an otherwise idle node.
    pub rates: KernelRates,
    /// Memory bandwidth of all cores of a node, in bytes per second.
    pub node_memory_rate: f64,
}

impl Machine {
    /// Costs of computations while this number of ranks of the node do the same.
    pub(super) fn rates_beside(&self, ranks: u32) -> KernelRates {
        let share = self.node_memory_rate / f64::from(ranks);
        KernelRates {
            memory_rate: self.rates.memory_rate.min(share),
            ..self.rates
        }
    }

    /// Time of a kernel, in seconds.
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
