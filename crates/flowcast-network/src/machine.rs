//! Nodes, links, buses and the placement of ranks: the `[machine]` section of a network file.

pub mod inside;
pub mod random;
pub mod scheduler;
pub mod wide_area;

use serde::{Deserialize, Serialize};

use self::{
    random::Randomness,
    scheduler::Scheduler,
    wide_area::{Site, WideArea},
};
use flowcast_units::{Rate, Time};

section! {
    /// The machine in Dimemas' terms. If it is empty: one rank per node, as many nodes as ranks, no limits.
    pub struct Machine: Default {
        /// Maximum number of concurrent messages between nodes; 0 is no limit.
        /// Default: 0. Example: `2`.
        buses: u32,
        /// Number of processors of a single machine that hosts all nodes, such as a lab: the ranks of all nodes share them,
        /// first come, first served. 0: each node has its own processors (`cpus`).
        /// Default: 0. Example: `2`.
        processors: u32 | default,
        /// Number of nodes in each rack, in node order, for programs; messages between racks cross the `backbone`. 0: a
        /// single rack. A pattern names its own racks.
        /// Default: 0. Example: `4`.
        nodes_per_rack: u32 | default,
        /// Mapping of ranks to nodes if the command line has none: `"fill"`, `"round-robin"`, `{ per-node = 2 }` or `{ list
        /// = [0, 0, 1] }`.
        /// Default: one rank on each node. Example: `"fill"`.
        mapping: Option<Mapping>,
        /// Mappings of the second, third, ... of several concurrent programs, each in the form of `mapping`.
        /// Default: `mapping`. Example: `["round-robin"]`.
        further_mappings: Vec<Mapping> | default,
        /// Groups of equal nodes, in node order.
        nodes: Vec<NodeGroup> | default,
        /// Scheduling of ranks that share a processor.
        scheduler: Scheduler | default,
        /// Sites after the first. The field `site` of a group of nodes names its site.
        further_sites: Vec<Site> | default,
        /// Network between sites: latency, bandwidth and traffic.
        wide_area: WideArea | default,
        /// Random variation of computations and messages; none by default.
        random: Randomness | default,
    }
}

/// Rule that assigns each rank to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Fills the processors of each node before the next node.
    Fill,
    /// Places this number of ranks on each node.
    PerNode(u32),
    /// Places one rank on each node in turn.
    RoundRobin,
    /// Lists the node of each rank.
    List(Vec<u32>),
}

section! {
    /// Equal nodes. If both numbers of links are 0, there is no limit. If exactly one of the in and out numbers is 0, the
    /// links are half duplex, and the other number applies.
    #[serde(default)]
    pub struct NodeGroup + Copy {
        /// Number of nodes in the group, consecutive in node order.
        /// Default: 1. Example: `4`.
        count: u32,
        /// Number of processors of each node; 0: the number of ranks that the mapping places on it.
        /// Default: 0. Example: `2`.
        cpus: u32,
        /// Relative speed, the divisor of the time of each computation; at 0, computations take no time.
        /// Default: 1. Example: `2.0`.
        speed: f64,
        /// Number of links into each node.
        /// Default: 0. Example: `1`.
        in_links: u32,
        /// Number of links out of each node.
        /// Default: 0. Example: `1`.
        out_links: u32,
        /// Start-up time of a message to another node.
        /// Default: latency of `nic`. Example: `"5us"`.
        latency: Option<Time>,
        /// Start-up time of a message inside a node.
        /// Default: latency of the built-in network `shared-memory`. Example: `"0.5us"`.
        intra_latency: Option<Time>,
        /// Bandwidth of a message inside a node; 0 is infinite.
        /// Default: bandwidth of `shared-memory`. Example: `"1GB/s"`.
        intra_bandwidth: Option<Rate>,
        /// Maximum number of concurrent messages inside a node; 0 is no limit.
        /// Default: 0. Example: `2`.
        intra_buses: u32,
        /// Number of links into each rank for messages inside a node.
        /// Default: 0. Example: `1`.
        intra_in_links: u32,
        /// Number of links out of each rank for messages inside a node.
        /// Default: 0. Example: `1`.
        intra_out_links: u32,
        /// Site of the nodes, counted from 0.
        /// Default: 0.
        site: u32 | default,
        /// Start-up time of a message to another site.
        /// Default: 0. Example: `"1ms"`.
        wide_area_latency: Time | default,
        /// Relative speed of an accelerator, the divisor of the time of each computation on it; at 0, they take no time.
        /// Default: 1. Example: `2.0`.
        accelerator_speed: f64 [skip_serializing_if = "is_one"],
    }
}

fn is_one(ratio: &f64) -> bool {
    *ratio == 1.0
}

impl Default for NodeGroup {
    fn default() -> NodeGroup {
        NodeGroup {
            count: 1,
            cpus: 0,
            speed: 1.0,
            in_links: 0,
            out_links: 0,
            latency: None,
            intra_latency: None,
            intra_bandwidth: None,
            intra_buses: 0,
            intra_in_links: 0,
            intra_out_links: 0,
            site: 0,
            wide_area_latency: Time::ZERO,
            accelerator_speed: 1.0,
        }
    }
}
