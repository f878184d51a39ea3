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
use crate::is_default;
use flowcast_units::{Rate, Time};

/// The machine in Dimemas' terms. Empty means: one rank per node, as many nodes as ranks, no limits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// Messages between nodes that may be in flight together; 0 is no limit.
    pub buses: u32,
    /// Processors of the one machine that all nodes are parts of, as those of a lab are; 0 where each node has its own.
    #[serde(skip_serializing_if = "is_default")]
    pub processors: u32,
    /// Nodes in each rack, in node order, for the messages of programs: those between racks cross the backbone. 0 where all
    /// stand in one rack.
    #[serde(skip_serializing_if = "is_default")]
    pub nodes_per_rack: u32,
    /// Where ranks run when the command line does not say.
    pub mapping: Option<Mapping>,
    /// The same for the second, third, ... of several programs that run at once; without one they have `mapping`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further_mappings: Vec<Mapping>,
    /// Groups of equal nodes, in node order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeGroup>,
    /// How ranks that share a processor take turns.
    #[serde(skip_serializing_if = "is_default")]
    pub scheduler: Scheduler,
    /// The sites after the first; nodes say by `site` where they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further_sites: Vec<Site>,
    /// The network between sites.
    #[serde(skip_serializing_if = "is_default")]
    pub wide_area: WideArea,
    /// Random variation of computation and of messages; by default nothing varies.
    #[serde(skip_serializing_if = "is_default")]
    pub random: Randomness,
}

/// The rule that gives each rank its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Fill each node's processors before the next node.
    Fill,
    /// This many ranks on each node.
    PerNode(u32),
    /// One rank to each node in turn.
    RoundRobin,
    /// The node of each rank.
    List(Vec<u32>),
}

/// Equal nodes. All links 0 means no limit; exactly one of in and out 0 means half duplex with the other's number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeGroup {
    /// Nodes of the group, one behind the other in node order.
    pub count: u32,
    /// Processors in each; at 0 there are as many as the mapping places ranks on one of these nodes.
    pub cpus: u32,
    /// Divides every computation; at 0 computation takes no time.
    pub speed: f64,
    /// Links into the node.
    pub in_links: u32,
    /// Links out of the node.
    pub out_links: u32,
    /// Start-up of a message to another node; the network's own when absent.
    pub latency: Option<Time>,
    /// Start-up of a message inside the node; [`NodeGroup::inside`] says what holds when absent.
    pub intra_latency: Option<Time>,
    /// Bytes per second inside the node; 0 is infinite, and absent as with `intra_latency`.
    pub intra_bandwidth: Option<Rate>,
    /// Messages inside the node that may be in flight together; 0 is no limit.
    pub intra_buses: u32,
    /// Links into a rank for messages inside the node.
    pub intra_in_links: u32,
    /// Links out of a rank for messages inside the node.
    pub intra_out_links: u32,
    /// The site that the nodes belong to.
    #[serde(skip_serializing_if = "is_default")]
    pub site: u32,
    /// Start-up of a message to another site.
    #[serde(skip_serializing_if = "is_default")]
    pub wide_area_latency: Time,
    /// Divides every computation on an accelerator; at 0 it takes no time.
    #[serde(skip_serializing_if = "is_one")]
    pub accelerator_speed: f64,
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
