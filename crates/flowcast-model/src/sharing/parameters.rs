//! The parameters of the sharing models: the section `[sharing]` of a network.

use serde::{Deserialize, Serialize};

use super::model::Model;
use flowcast_units::{Bytes, Rate, Time};

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

/// `[sharing.packet]`; [`Protocol`](super::protocol::Protocol) has ranges and defaults.
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

/// How a sender finds its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// Slow start up to `sharing.packet.window`, which nothing makes smaller.
    #[default]
    Fixed,
    /// Reno: slow start and congestion avoidance as in RFC 5681.
    Reno,
    /// RFC 9438 with HyStart (Ha and Rhee 2011).
    Cubic,
    /// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr,
}

/// Which messages go over one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// Each has its own, new one.
    #[default]
    Each,
    /// Those from one node to another, one after the other.
    Pair,
}
