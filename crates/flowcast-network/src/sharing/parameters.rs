//! Parameters of the sharing models: the section `[sharing]` of a network.

use serde::{Deserialize, Serialize};

use super::model::Model;
use flowcast_units::{Bytes, Rate, Time};

/// Parameters of the sharing models. Each model reads those of its own section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sharing {
    /// Default model for the network's messages. `None`: max-min fairness.
    pub model: Option<Model>,
    /// `true` if programs follow Dimemas' rules by default, even if nothing is limited: `model = "limits"`, as in every
    /// network from a `.cfg`.
    pub limits: bool,
    /// Parameters of the model `flow-cuts`: table `[sharing.flow_cuts]` of the network file.
    pub flow_cuts: FlowCutParameters,
    /// Parameters of the model `closed-loop`: table `[sharing.closed_loop]` of the network file.
    pub closed_loop: LoopParameters,
    /// Parameters of the model `alpha-fair`: table `[sharing.alpha_fair]` of the network file.
    pub alpha_fair: AlphaParameters,
    /// Parameters of the models `asymmetric` and `degree-fair`: table `[sharing.asymmetric]` of the network file.
    pub asymmetric: SaturationParameters,
    /// Parameters of the model `ib-penalty`: table `[sharing.ib_penalty]` of the network file.
    pub ib_penalty: PenaltyParameters,
    /// Parameters of the model `packet`: table `[sharing.packet]` of the network file. A transient `closed-loop` uses its
    /// `segment` and `window`.
    pub packet: PacketParameters,
}

section! {
    /// `[sharing.flow_cuts]`: a flow with the cut `c` gets `1/(1+c)` of its rate (RR-5910 Table 2). The model needs all five
    /// cuts.
    pub struct FlowCutParameters: Default + Copy {
        /// Cut of the two ends of an odd zig-zag.
        /// Default: required. Example: `0.5`.
        odd_end: Option<f64>,
        /// Cut of every second flow inside an odd zig-zag.
        /// Default: required. Example: `2.0`.
        odd_inner: Option<f64>,
        /// Cut of the outgoing flow of an income/outgo conflict.
        /// Default: required. Example: `3.0`.
        io_out: Option<f64>,
        /// Cut of a flow left over between two active neighbours.
        /// Default: required. Example: `0.5`.
        include: Option<f64>,
        /// Cut of a flow left over at the start or end of its path.
        /// Default: required. Example: `0.0`.
        start_end: Option<f64>,
    }

    /// `[sharing.closed_loop]`: parameters of the model `closed-loop`.
    pub struct LoopParameters: Default + Copy {
        /// Exponent of the fairness, 0.1 to 100: 1 proportional, large max-min.
        /// Default: 1. Example: `1.0`.
        alpha: Option<f64>,
        /// Weight of the delay that acknowledgements meet, 0 to 2.
        /// Default: 1. Example: `1.0`.
        kappa: Option<f64>,
        /// Whether messages go as the packets of a window [that fill and empty queues](../explanation/sharing-models.md); needs
        /// `sharing.packet.window`, reads `sharing.packet.segment`, alpha = kappa = 1.
        /// Default: `false`. Example: `true`.
        transient: Option<bool>,
    }

    /// `[sharing.alpha_fair]`: parameters of the model `alpha-fair`.
    pub struct AlphaParameters: Default + Copy {
        /// Exponent of the fairness, 0.1 to 100.
        /// Default: that of `sharing.closed_loop`. Example: `2.4`.
        alpha: Option<f64>,
    }

    /// `[sharing.asymmetric]`: parameters of the models `asymmetric` and `degree-fair`.
    pub struct SaturationParameters: Default + Copy {
        /// Flows over the backbone from which it is the limit.
        /// Default: when it is full. Example: `10`.
        backbone_from: Option<u32>,
        /// Goodput that one flow of a saturated backbone may take, a rate above 0.
        /// Default: its part. Example: `"9400Mbit/s"`.
        backbone_share: Option<Rate>,
    }

    /// `[sharing.ib_penalty]`: parameters of the model `ib-penalty`; absent ones have their published values.
    pub struct PenaltyParameters: Default + Copy {
        /// Weight of the flows that leave a node, above 0.
        /// Default: 0.925.
        out: Option<f64>,
        /// Weight of the flows that enter a node, above 0.
        /// Default: 0.965.
        into: Option<f64>,
        /// Penalty of a sender whose receiver has more than two flows, above 0.
        /// Default: 1.35. Example: `1.4`.
        crowded: Option<f64>,
    }

    /// `[sharing.packet]`; [`Protocol`](super::protocol::Protocol) has ranges and defaults.
    pub struct PacketParameters: Default + Copy {
        /// Latency of a message beyond the time of its frames on the wire.
        /// Default: `nic.latency`. Example: `"76us"`.
        latency: Option<Time>,
        /// Payload of a full packet, 256B to 65kB: the MTU less 52.
        /// Default: `1448B`. Example: `"1448B"`.
        segment: Option<Bytes>,
        /// Most bytes that a flow keeps in flight, one packet to 1GB.
        /// Default: 44kB; 4MiB unless `congestion` is `fixed`. Example: `"160KiB"`.
        window: Option<Bytes>,
        /// Of a program's message, what the sender's system takes before it is acknowledged, a window to 1GB: a rendezvous
        /// sender goes on when it holds the rest.
        /// Default: none. Example: `"256KiB"`.
        send_buffer: Option<Bytes>,
        /// `fixed`, `reno`, `cubic` or `bbr`.
        /// Default: `fixed`. Example: `"cubic"`.
        congestion: Option<Congestion>,
        /// Congestion window of a new connection, one packet to 1GB.
        /// Default: 10 packets. Example: `"14480B"`.
        first_window: Option<Bytes>,
        /// Bytes that wait at most before a port of the switch, one frame to 1GB.
        /// Default: no limit. Example: `"100kB"`.
        queue: Option<Bytes>,
        /// Bytes that a link lets through at once after a pause, as token buckets do, up to 1GB.
        /// Default: 0. Example: `"3kB"`.
        burst: Option<Bytes>,
        /// `each` message has its own, or those of a `pair` of nodes share one.
        /// Default: `each`. Example: `"pair"`.
        connections: Option<Connections>,
        /// Whether an idle connection falls back to its first window.
        /// Default: `true`. Example: `false`.
        idle_restart: Option<bool>,
        /// How often the pattern was sent before over the same connections, 0 to 1000.
        /// Default: 0. Example: `2`.
        warm_ups: Option<u32>,
        /// Whether a sender keeps its own interface's queue small.
        /// Default: unless `congestion` is `fixed`. Example: `true`.
        small_queues: Option<bool>,
        /// With `--replicates`: how much later than its time a message may start.
        /// Default: 100us. Example: `"100us"`.
        jitter: Option<Time>,
        /// With `--replicates`: standard deviation, as a share, of what a message alone takes, 0 to 1.
        /// Default: 0. Example: `0.015`.
        noise: Option<f64>,
        /// Most packets of a run, at least 1; a run with more is refused. 100 million take some 5 to 10 s.
        /// Default: 100000000. Example: `2000000000`.
        most_packets: Option<u64>,
    }
}

/// Congestion control of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// Slow start up to `sharing.packet.window`, which is never reduced.
    #[default]
    Fixed,
    /// Reno: slow start and congestion avoidance as in RFC 5681.
    Reno,
    /// RFC 9438 with HyStart (Ha and Rhee 2011).
    Cubic,
    /// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr,
}

/// Assignment of messages to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// Each message has its own, new connection.
    #[default]
    Each,
    /// Messages from one node to another use one connection, one after the other.
    Pair,
}
