//! Sharing models: which rates concurrent flows get, and the `[sharing]` section of a network file.
//!
//! A flow carries a message from one node to another over the links of its path ([`fabric`]): out of its source, up and
//! down the cables between switches, into its destination; its ACKs return over the links of the reversed path. All
//! rates are in units of a node's interface, so that a flow without others has its uncontended rate, 1 or the capacity of
//! the narrowest link on its path. A model answers one question, [`RateModel::shares`]: which fraction `r_i` of a node's
//! interface is allocated to each of the active flows? When flows start and end is not its business (`flowcast-flows`).
//!
//! - [`independent`]: `r_i = 1`.
//! - [`fair`]: max-min fairness. `sum of r_i over the flows through l <= C_l` on each link `l`, and each flow crosses a full
//!   link on which no flow gets more (Bertsekas and Gallager, Data Networks, section 6.5.2).
//! - [`asymmetric`]: `r_i = 1/max(degrees of its two nodes, flows over the backbone)`, counted by direction or, where data
//!   and ACKs disturb each other, as the larger of both directions (Zhu et al.).
//! - [`flow_cuts`]: `r_i = 1/(1 + cut)`, with measured cuts for each kind of conflict (Martinasso and Méhaut, RR-5910,
//!   sections 5.1 to 5.3).
//! - [`ib_penalty`]: `r_i = 1/max(p_source, p_destination)` (Vienne et al., 2008).
//! - [`closed_loop`]: flows with fixed windows fill queues of delays `q_l >= 0`, and
//!   `r_i = (sum of q_l over data + kappa * sum of q_l over ACKs)^(-1/alpha)` with `q_l > 0` only on full links. Its steady
//!   rates are solved link by link (`relaxation`); [`quasi_dynamic`] lets the queues change with time.
//!
//! [`active_flows`] has the flows by link and what has changed, so that a model allocates anew only what a start or an end
//! can reach; [`model`] makes the models from a network file; [`protocol`] has the parameters of the packet level.

pub mod active_flows;
mod advertised;
pub mod asymmetric;
pub mod closed_loop;
pub mod completion;
pub mod fabric;
pub mod fair;
pub mod flow_cuts;
pub mod ib_penalty;
pub mod independent;
pub mod model;
pub mod protocol;
pub mod quasi_dynamic;
mod queues;
mod relaxation;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use active_flows::{ActiveFlows, Reach};
use fabric::{Allocation, Fabric};
use flowcast_units::{Bytes, Node, Rate, Time};
use protocol::{Congestion, Connections};

/// New allocations, by flow; flows that are not named keep theirs.
pub type Changes = Vec<(u32, Allocation)>;

/// A rule by which active flows share the links that they cross.
pub trait RateModel {
    /// The allocations of the active flows; `active` are indices of the fabric's paths, in ascending order, and the result
    /// has the same order.
    ///
    /// # Errors
    /// The model does not know these flows' situation, or found no solution.
    fn shares(&mut self, fabric: &Fabric, active: &[usize]) -> Result<Vec<Allocation>, SharingError>;

    /// Which flows the start or end of one can affect.
    fn reach(&self) -> Reach {
        Reach::Nodes
    }

    /// As [`RateModel::shares`] for all active flows, but only what may have changed since they were last settled. One
    /// model has to see all changes of the active flows, one after the other.
    ///
    /// # Errors
    /// As [`RateModel::shares`].
    fn update(
        &mut self,
        fabric: &Fabric,
        active_flows: &mut ActiveFlows,
        changes: &mut Changes,
    ) -> Result<(), SharingError> {
        for group in active_flows.reached(fabric, self.reach()) {
            let allocations = self.shares(fabric, &group)?;
            changes.extend(group.iter().map(|flow| *flow as u32).zip(allocations));
        }
        Ok(())
    }
}

/// Why a model gives no shares.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SharingError {
    /// No model of that name.
    #[error("no sharing model is named `{found}`, expected one of {expected}")]
    UnknownModel {
        /// The name asked for.
        found: String,
        /// All names.
        expected: String,
    },
    /// A parameter that the model needs is missing or out of range.
    #[error("{field}: found {found}, expected {expected}")]
    Parameter {
        /// Dotted name, as in `--set`.
        field: &'static str,
        /// Its value, or `nothing`.
        found: String,
        /// The range.
        expected: &'static str,
    },
    /// Flow cuts know dual-processor nodes only (RR-5910 section 5.2), and the strict reading was asked for.
    #[error("node {node}: found {flows} flows {direction} at a time, expected at most 2 (flow-cuts with --strict)")]
    Crowded {
        /// The node.
        node: Node,
        /// Flows in one direction.
        flows: u32,
        /// `out` or `in`.
        direction: &'static str,
    },
    /// Messages that take longer than times are counted at packet level.
    #[error(
        "packet: found messages that take {seconds:.3e} s, expected at most {most:.1e} s (sizes, starts, nic.bandwidth)"
    )]
    TooLong {
        /// A bound on the time of all of them.
        seconds: f64,
        /// What can be counted.
        most: f64,
    },
    /// More packets or connections than have numbers.
    #[error("packet: found {found} packets of a connection or connections, expected at most {most}")]
    TooManyPackets {
        /// How many.
        found: u64,
        /// What can be counted.
        most: u64,
    },
    /// The topology makes no tree.
    #[error("{field}: found {found}, expected {expected}")]
    Topology {
        /// Dotted name, as in `--set`.
        field: String,
        /// What stands there.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// A node that the topology has no place for.
    #[error("node {node}: found a flow from or to it, expected a node below {nodes}, as many as [topology] joins")]
    NoSuchNode {
        /// The node.
        node: Node,
        /// How many nodes there are.
        nodes: u64,
    },
    /// The pattern says where nodes stand, and so does the network.
    #[error("found `node .. rack` lines beside a network with [topology], expected one of the two")]
    RacksInTopology,
    /// The closed loop's equations were not solved to the accuracy promised.
    #[error(
        "closed-loop found no steady rates for {flows} flows: a link is {residual:.1e} of its capacity off its balance \
         (try another sharing.alpha or sharing.kappa)"
    )]
    Unsettled {
        /// Flows in the part that did not settle.
        flows: usize,
        /// Largest part of a link's capacity by which its load misses the complementarity conditions.
        residual: f64,
    },
}

/// Parameters of the sharing models; each model reads its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sharing {
    /// The model that is used when none is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Flow cuts: the two ends of an odd zig-zag (RR-5910 Table 2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub odd_end: Option<f64>,
    /// Flow cuts: every second flow inside an odd zig-zag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub odd_inner: Option<f64>,
    /// Flow cuts: the outgoing flow of an income/outgo conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_out: Option<f64>,
    /// Flow cuts: a flow left over between two active neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<f64>,
    /// Flow cuts: a flow left over at the start or end of its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_end: Option<f64>,
    /// Closed loop: exponent of the fairness, 1 proportional, large max-min.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Closed loop: weight of the delay that acknowledgements meet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kappa: Option<f64>,
    /// Closed loop: whether patterns are stepped through the filling and emptying of queues, by `window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transient: Option<bool>,
    /// Packet level, and closed loop with `transient`: payload of a full packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<Bytes>,
    /// Packet level, and closed loop with `transient`: bytes that a flow keeps in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// Packet level, programs: what the sender's system takes of a message before it is acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Bytes>,
    /// Packet level: how a sender finds its window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
    /// Packet level: the congestion window of a new connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_window: Option<Bytes>,
    /// Packet level: bytes that wait at most before a port of the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// Packet level: bytes that a link lets through at once after a pause, as token buckets do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
    /// Packet level: which messages go over one connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Packet level: whether a connection that was idle falls back to its first window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_restart: Option<bool>,
    /// Packet level: how often the pattern was carried before over the same connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_ups: Option<u32>,
    /// Packet level: whether a sender keeps its own interface's queue small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub small_queues: Option<bool>,
    /// Packet level, several seeds: how much later than its time a message may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Time>,
    /// Packet level, several seeds: standard deviation, as a share, of what a message alone takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// Asymmetric Ethernet: flows over the backbone from which it is the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backbone_from: Option<u32>,
    /// Asymmetric Ethernet: what one flow of a saturated backbone may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backbone_share: Option<Rate>,
    /// InfiniBand penalty: weight of the flows that leave a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty_out: Option<f64>,
    /// InfiniBand penalty: weight of the flows that enter a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty_in: Option<f64>,
    /// InfiniBand penalty: what a sender suffers whose receiver has more than two flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty_crowded: Option<f64>,
}

impl Sharing {
    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Sharing::default()
    }
}
