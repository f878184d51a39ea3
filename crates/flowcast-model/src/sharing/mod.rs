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
//! Half-duplex ports (`nic.duplex`) and media that a group of nodes shares (`[bus]`) are links that carry both directions:
//! what the models say of a link holds for them too, with the flows of both directions.
//!
//! [`active_flows`] has the flows by link and what has changed, so that a model allocates anew only what a start or an end
//! can reach; [`model`] makes the models from a network file; [`protocol`] has the parameters of the packet level.

pub mod active_flows;
mod advertised;
pub mod asymmetric;
mod bus;
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

use crate::network::NetworkError;
use crate::network_file::{field_error, is_default};
use active_flows::{ActiveFlows, Reach};
use fabric::{Allocation, Fabric};
use flowcast_units::{Bytes, Node, Rate, Time};
use model::Model;
use protocol::{Congestion, Connections};

/// What stands in the place of a sharing model where Dimemas' links, buses and processors hold.
pub const LIMITS: &str = "limits";

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
    #[error("no sharing model is named {found}, expected one of {expected}")]
    UnknownModel {
        /// The name asked for, and the one that may be meant.
        found: String,
        /// Names of all models, with commas between.
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
        /// The node with more than two flows in one direction.
        node: Node,
        /// Flows in one direction.
        flows: u32,
        /// `out` of the node or `in`.
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
        /// Number of packets or connections that were asked for.
        found: u64,
        /// What can be counted.
        most: u64,
    },
    /// More packets than a run is to take.
    #[error(
        "packet: found {found} packets or more, expected at most {most}: raise sharing.packet.most_packets, or take a model \
         without packets, such as fair"
    )]
    TooMuchWork {
        /// Packets that the messages make.
        found: u64,
        /// The most that are followed (`sharing.packet.most_packets`).
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
        /// The node, whose number is too large.
        node: Node,
        /// How many nodes there are.
        nodes: u64,
    },
    /// The pattern says where nodes stand, and so does the network.
    #[error("found `node .. rack` lines beside a network with [topology], expected one of the two")]
    RacksInTopology,
    /// The network says twice what joins the nodes.
    #[error("found [bus] beside [topology], expected one of the two")]
    BusInTopology,
    /// The closed loop's equations were not solved to the accuracy promised.
    #[error(
        "closed-loop found no steady rates for {flows} flows: a link is {residual:.1e} of its capacity off its balance \
         (try another sharing.closed_loop.alpha or sharing.closed_loop.kappa)"
    )]
    Unsettled {
        /// Flows in the part that did not settle.
        flows: usize,
        /// Largest part of a link's capacity by which its load misses the complementarity conditions.
        residual: f64,
    },
}

/// Parameters of the sharing models: each model reads those of its own section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sharing {
    /// The model that is used when none is asked for.
    pub model: Option<Model>,
    /// Whether programs follow Dimemas' rules when no model is asked for, even where nothing is limited: `model = "limits"`,
    /// as in every network that comes from a `.cfg`.
    pub limits: bool,
    /// Parameters of the model `flow-cuts`: table `[sharing.flow_cuts]` of the network file.
    pub flow_cuts: FlowCutParameters,
    /// Parameters of the model `closed-loop`: table `[sharing.closed_loop]` of the network file.
    pub closed_loop: LoopParameters,
    /// Parameters of the model `alpha-fair`: table `[sharing.alpha_fair]` of the network file.
    pub alpha_fair: AlphaParameters,
    /// Of `asymmetric` and `degree-fair`.
    pub asymmetric: SaturationParameters,
    /// Parameters of the model `ib-penalty`: table `[sharing.ib_penalty]` of the network file.
    pub ib_penalty: PenaltyParameters,
    /// Of `packet`; `closed-loop` takes `segment` and `window` where it is transient.
    pub packet: PacketParameters,
}

/// The section on disk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SharingFile {
    pub model: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub flow_cuts: FlowCutParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub closed_loop: LoopParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub alpha_fair: AlphaParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub asymmetric: SaturationParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub ib_penalty: PenaltyParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub packet: PacketParameters,
}

impl TryFrom<SharingFile> for Sharing {
    type Error = NetworkError;

    fn try_from(file: SharingFile) -> Result<Sharing, NetworkError> {
        let limits = file.model.as_deref() == Some(LIMITS);
        let model = file.model.as_deref().filter(|_| !limits).map(Model::named).transpose();
        let refused = |error: SharingError| field_error("sharing.model", error.to_string());
        Ok(Sharing {
            model: model.map_err(refused)?,
            limits,
            flow_cuts: file.flow_cuts,
            closed_loop: file.closed_loop,
            alpha_fair: file.alpha_fair,
            asymmetric: file.asymmetric,
            ib_penalty: file.ib_penalty,
            packet: file.packet,
        })
    }
}

impl From<Sharing> for SharingFile {
    fn from(sharing: Sharing) -> SharingFile {
        SharingFile {
            model: sharing.model.map(Model::name).or(sharing.limits.then_some(LIMITS)).map(str::to_owned),
            flow_cuts: sharing.flow_cuts,
            closed_loop: sharing.closed_loop,
            alpha_fair: sharing.alpha_fair,
            asymmetric: sharing.asymmetric,
            ib_penalty: sharing.ib_penalty,
            packet: sharing.packet,
        }
    }
}

/// `[sharing.flow_cuts]`: a flow with the cut c gets 1/(1+c) of its rate (RR-5910 Table 2). The model needs all five.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowCutParameters {
    /// The two ends of an odd zig-zag.
    pub odd_end: Option<f64>,
    /// Every second flow inside an odd zig-zag.
    pub odd_inner: Option<f64>,
    /// The outgoing flow of an income/outgo conflict.
    pub io_out: Option<f64>,
    /// A flow left over between two active neighbours.
    pub include: Option<f64>,
    /// A flow left over at the start or end of its path.
    pub start_end: Option<f64>,
}

/// `[sharing.closed_loop]`: parameters of the model `closed-loop`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoopParameters {
    /// Exponent of the fairness, 0.1 to 100: 1 proportional, large max-min; 1 if absent.
    pub alpha: Option<f64>,
    /// Weight of the delay that acknowledgements meet, 0 to 2; 1 if absent.
    pub kappa: Option<f64>,
    /// Whether patterns are stepped through the filling and emptying of queues, by the window of `[sharing.packet]`.
    pub transient: Option<bool>,
}

/// `[sharing.alpha_fair]`: parameters of the model `alpha-fair`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlphaParameters {
    /// Exponent of the fairness, 0.1 to 100; that of the closed loop if absent.
    pub alpha: Option<f64>,
}

/// `[sharing.asymmetric]`: parameters of the models `asymmetric` and `degree-fair`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SaturationParameters {
    /// Flows over the backbone from which it is the limit.
    pub backbone_from: Option<u32>,
    /// Goodput that one flow of a saturated backbone may take.
    pub backbone_share: Option<Rate>,
}

/// `[sharing.ib_penalty]`: parameters of the model `ib-penalty`; absent ones are as published.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PenaltyParameters {
    /// Weight of the flows that leave a node, above 0.
    pub out: Option<f64>,
    /// Weight of the flows that enter a node, above 0.
    pub into: Option<f64>,
    /// What a sender suffers whose receiver has more than two flows, above 0.
    pub crowded: Option<f64>,
}

/// `[sharing.packet]`; [`protocol::Protocol`] has ranges and defaults.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PacketParameters {
    /// Latency beyond the time of frames on the wire; that of the interface if absent.
    pub latency: Option<Time>,
    /// Payload of a full packet.
    pub segment: Option<Bytes>,
    /// Bytes that a flow keeps in flight.
    pub window: Option<Bytes>,
    /// Programs: what the sender's system takes of a message before it is acknowledged.
    pub send_buffer: Option<Bytes>,
    /// How a sender finds its window.
    pub congestion: Option<Congestion>,
    /// The congestion window of a new connection.
    pub first_window: Option<Bytes>,
    /// Bytes that wait at most before a port of the switch.
    pub queue: Option<Bytes>,
    /// Bytes that a link lets through at once after a pause, as token buckets do.
    pub burst: Option<Bytes>,
    /// Which messages go over one connection.
    pub connections: Option<Connections>,
    /// Whether a connection that was idle falls back to its first window.
    pub idle_restart: Option<bool>,
    /// How often the pattern was carried before over the same connections.
    pub warm_ups: Option<u32>,
    /// Whether a sender keeps its own interface's queue small.
    pub small_queues: Option<bool>,
    /// Several seeds: how much later than its time a message may start.
    pub jitter: Option<Time>,
    /// Several seeds: standard deviation, as a share, of what a message alone takes.
    pub noise: Option<f64>,
    /// Most packets of a run, from 1 on: more are refused before minutes are spent on them.
    pub most_packets: Option<u64>,
}
