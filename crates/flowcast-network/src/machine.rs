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
        /// Messages between nodes that may be in flight together; 0 is no limit.
        /// Default: 0. Example: `2`.
        buses: u32,
        /// Processors of the one machine that all nodes are parts of, as those of a lab are: ranks of all nodes take turns on
        /// them, first come, first served. 0: each node has its own, as `cpus` says.
        /// Default: 0. Example: `2`.
        processors: u32 | default,
        /// Nodes in each rack, in node order, for the messages of programs: those between racks cross the `backbone`. 0: one
        /// rack. A pattern names its racks itself.
        /// Default: 0. Example: `4`.
        nodes_per_rack: u32 | default,
        /// Where ranks run when the command line does not say: `"fill"`, `"round-robin"`, `{ per-node = 2 }` or
        /// `{ list = [0, 0, 1] }`.
        /// Default: one rank on each node. Example: `"fill"`.
        mapping: Option<Mapping>,
        /// Mappings of the second, third, ... program where several run at once, each in the form of `mapping`.
        /// Default: `mapping`. Example: `["round-robin"]`.
        further_mappings: Vec<Mapping> | default,
        /// Groups of equal nodes, in node order.
        nodes: Vec<NodeGroup> | default,
        /// How ranks that share a processor take turns.
        scheduler: Scheduler | default,
        /// The sites after the first; nodes say by `site` where they are.
        further_sites: Vec<Site> | default,
        /// The network between sites.
        wide_area: WideArea | default,
        /// Random variation of computation and of messages; by default nothing varies.
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
        /// Nodes of the group, one behind the other in node order.
        /// Default: 1. Example: `4`.
        count: u32,
        /// Processors in each; 0: as many as the mapping places ranks on one.
        /// Default: 0. Example: `2`.
        cpus: u32,
        /// Divides every computation; at 0 computation takes no time.
        /// Default: 1. Example: `2.0`.
        speed: f64,
        /// Links into the node.
        /// Default: 0. Example: `1`.
        in_links: u32,
        /// Links out of the node.
        /// Default: 0. Example: `1`.
        out_links: u32,
        /// Start-up of a message to another node.
        /// Default: that of `nic`. Example: `"5us"`.
        latency: Option<Time>,
        /// Start-up of a message inside the node.
        /// Default: that of the built-in network `shared-memory`. Example: `"0.5us"`.
        intra_latency: Option<Time>,
        /// Bytes per second inside the node; 0 is infinite.
        /// Default: that of `shared-memory`. Example: `"1GB/s"`.
        intra_bandwidth: Option<Rate>,
        /// Messages inside the node that may be in flight together; 0 is no limit.
        /// Default: 0. Example: `2`.
        intra_buses: u32,
        /// Links into a rank for messages inside the node.
        /// Default: 0. Example: `1`.
        intra_in_links: u32,
        /// Links out of a rank for messages inside the node.
        /// Default: 0. Example: `1`.
        intra_out_links: u32,
        /// The site that the nodes belong to.
        /// Default: 0.
        site: u32 | default,
        /// Start-up of a message to another site.
        /// Default: 0. Example: `"1ms"`.
        wide_area_latency: Time | default,
        /// Divides every computation on an accelerator; at 0 it takes no time.
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
