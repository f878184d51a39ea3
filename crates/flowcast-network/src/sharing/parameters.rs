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
        /// Exponent of the fairness, 0.1 to 100: 1 is proportional fairness, large values approach max-min fairness.
        /// Default: 1. Example: `1.0`.
        alpha: Option<f64>,
        /// Weight of the queueing delay of acknowledgements, 0 to 2.
        /// Default: 1. Example: `1.0`.
        kappa: Option<f64>,
        /// `true`: packets of a window [fill and empty the queues](../explanation/sharing-models.md); needs
        /// `sharing.packet.window` and alpha = kappa = 1, and reads `sharing.packet.segment`.
        /// Default: `false`. Example: `true`.
        transient: Option<bool>,
    }

    /// `[sharing.alpha_fair]`: parameters of the model `alpha-fair`.
    pub struct AlphaParameters: Default + Copy {
        /// Exponent of the fairness, 0.1 to 100.
        /// Default: `sharing.closed_loop.alpha`. Example: `2.4`.
        alpha: Option<f64>,
    }

    /// `[sharing.asymmetric]`: parameters of the models `asymmetric` and `degree-fair`.
    pub struct SaturationParameters: Default + Copy {
        /// Smallest number of flows over the backbone at which it is a limit.
        /// Default: any number, if it is slower than the interfaces. Example: `10`.
        backbone_from: Option<u32>,
        /// Maximum goodput of a flow over a saturated backbone, above 0.
        /// Default: its share of the backbone. Example: `"9400Mbit/s"`.
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
        /// Latency of a message in addition to the time of its frames on the wire.
        /// Default: `nic.latency`. Example: `"76us"`.
        latency: Option<Time>,
        /// Payload of a full packet, 256B to 65kB: the MTU minus 52B.
        /// Default: `1448B`. Example: `"1448B"`.
        segment: Option<Bytes>,
        /// Maximum number of bytes in flight of a flow, one packet to 1GB.
        /// Default: 44kB; 4MiB unless `congestion` is `fixed`. Example: `"160KiB"`.
        window: Option<Bytes>,
        /// Send buffer for a message of a program, one window to 1GB. A rendezvous sender continues as soon as the buffer
        /// contains the remaining bytes.
        /// Default: none. Example: `"256KiB"`.
        send_buffer: Option<Bytes>,
        /// Congestion control: `fixed`, `reno`, `cubic` or `bbr`.
        /// Default: `fixed`. Example: `"cubic"`.
        congestion: Option<Congestion>,
        /// Congestion window of a new connection, one packet to 1GB.
        /// Default: 10 packets. Example: `"14480B"`.
        first_window: Option<Bytes>,
        /// Size of the queue of a switch port, one frame to 1GB.
        /// Default: no limit. Example: `"100kB"`.
        queue: Option<Bytes>,
        /// Size of the burst that a link passes after a pause, like a token bucket, up to 1GB.
        /// Default: 0. Example: `"3kB"`.
        burst: Option<Bytes>,
        /// `each`: one connection per message; `pair`: one connection per pair of nodes.
        /// Default: `each`. Example: `"pair"`.
        connections: Option<Connections>,
        /// Shortest retransmission timeout, and the additional wait for the ACK of a lone packet; 1ms to 120s.
        /// Default: 200ms. Example: `"4s"`.
        shortest_timeout: Option<Time>,
        /// `true`: the window of an idle connection is halved for each timeout, down to `first_window`; not with `bbr`.
        /// Default: `true`. Example: `false`.
        idle_restart: Option<bool>,
        /// Number of earlier transmissions of the pattern over the same connections, 0 to 1000.
        /// Default: 0. Example: `2`.
        warm_ups: Option<u32>,
        /// `true`: a sender keeps its data in its own interface's queue small.
        /// Default: `true` unless `congestion` is `fixed`. Example: `true`.
        small_queues: Option<bool>,
        /// Maximum delay of the start of a message, with `--replicates`.
        /// Default: 100us. Example: `"100us"`.
        jitter: Option<Time>,
        /// Relative standard deviation of the time of a message without contention, from 0 to 1, with `--replicates`.
        /// Default: 0. Example: `0.015`.
        noise: Option<f64>,
        /// Maximum number of packets of a run, at least 1; a run with more is an error. 100 million packets take 5 to 10 s.
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
