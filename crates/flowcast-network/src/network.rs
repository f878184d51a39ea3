//! A network from the models' point of view: the cost of a message, the links, and how messages share them.
//!
//! [`crate::network_file`] defines the file format and converts it into these types.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

pub use super::{
    accuracy::Accuracy,
    error::NetworkError,
    link_rate::{LinkRate, SingleFlowRate},
    parameter_interval::ParameterInterval,
};
use super::{
    accuracy::AccuracyRecord,
    collective::Collectives,
    file_system::FileSystem,
    linpack_costs::FittedLinpack,
    machine::Machine,
    origin::{Evidence, Origin, OriginKind},
    sharing::{
        model::Model,
        parameters::{PacketParameters, Sharing},
        protocol::{FRAME_OVERHEAD, LARGEST_SEGMENT, Windows},
    },
    topology::Topology,
};
use flowcast_units::{Bytes, Rate, Time, TimePerByte, named};

/// A network from the models' point of view.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Short name, as given to `--network`.
    pub name: String,
    /// One-line description for people; empty by default in a network file.
    pub title: String,
    /// Source of the numbers.
    pub source: String,
    /// Rule for the cost of a single message.
    pub point_to_point: PointToPoint,
    /// The network interface of a node.
    pub nic: Nic,
    /// Links between racks, if they are slower than the sum of the links that they connect.
    pub backbone: Option<LinkRate>,
    /// Media shared by groups of nodes.
    pub bus: Option<Bus>,
    /// The switches between the nodes.
    pub topology: Option<Topology>,
    /// Processor time of single messages by size, in place of the rule's.
    pub overheads: Overheads,
    /// Sharing model for concurrent messages, with the parameters of the models.
    pub sharing: Sharing,
    /// Nodes, links and buses, in Dimemas' terms.
    pub machine: Machine,
    /// Costs of collective operations.
    pub collectives: Collectives,
    /// Costs of file reads and writes.
    pub file_system: FileSystem,
    /// Fitted constants of High Performance Linpack, if there are any.
    pub linpack: Option<Box<FittedLinpack>>,
    /// Confidence intervals of fitted fields, by dotted field name.
    pub intervals: BTreeMap<String, ParameterInterval>,
    /// Sources of single values, by dotted field name.
    pub origins: BTreeMap<String, Origin>,
    /// Accuracy of models' predictions on this network.
    pub accuracy: Vec<Accuracy>,
    /// Agreement of the parameters with the data that they were fitted to.
    pub fit: FitQuality,
    /// Provenance of the numbers: host, kernel, versions, command, date, seed.
    pub provenance: BTreeMap<String, String>,
}

section! {
    /// Quality of a fit: the section `[fit]`.
    pub struct FitQuality: Default {
        /// Relative error of the fitted parameters against the measurements, as a fraction; no interval is narrower.
        /// Default: unknown. Example: `0.023`.
        misfit: Option<f64>,
        /// Problems of the fit that limit the use of its numbers; predictions repeat them.
        /// Default: none. Example: `["L came out as -14.46us and is held at 0"]`.
        warnings: Vec<String> | default,
    }
}

/// Minimum number of packet trains in a window, and in a message. Fewer trains would change the times of messages.
const TRAINS_IN_A_WINDOW: u64 = 64;
const TRAINS_IN_A_MESSAGE: u64 = 64;

section! {
    /// Rule for single messages.
    pub struct PointToPoint + Copy {
        /// `hockney`: `T = L + size/bandwidth`, no processor time. `dimemas`: the same with the latency spent on the processors of
        /// both sides. `loggops`: overhead on both processors, gap and gap per byte at the sending interface.
        /// Default: required. Example: `"loggops"`.
        rule: MessageRule,
        /// Smallest size of rendezvous messages, for which a sender waits for its receiver; overrides the trace.
        /// Default: from the trace. Example: `"64KiB"`.
        rendezvous_from: Option<Bytes>,
        /// Progress of rendezvous messages between nodes while ranks compute: `asynchronous` (by the interface or a thread)
        /// or `in calls` (by the ranks, only inside MPI calls).
        /// Default: `asynchronous`. Example: `"in calls"`.
        progress: Progress | default,
    }
}

named! {
    /// Agent that moves messages between nodes while their ranks compute.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Progress {
        /// The interface or a thread of the library: a rendezvous starts as soon as both ranks have posted it.
        #[default]
        #[serde(rename = "asynchronous")]
        Asynchronous = "asynchronous",
        /// The ranks themselves, inside MPI calls: a waiting receiver answers an RTS, a waiting sender sends the data.
        #[serde(rename = "in calls")]
        InCalls = "in calls",
    }
}

/// Rules for a single message (`docs/reference/models.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageRule {
    /// `T = L + size/bandwidth`, no processor time (basis of every other rule; RR-5910 section 3).
    Hockney,
    /// Hockney with the latency spent on the processors of both sides (Dimemas).
    Dimemas,
    /// Overhead on both processors, gap and gap per byte at the sending interface (LogGOPS).
    Loggops,
}

/// A node's network interface.
///
/// ```
/// use flowcast_network::network::Nic;
/// use flowcast_units::{Bytes, Rate, Time};
///
/// let nic = Nic::new(Time::from_micros(10.0), Rate::from_bytes_per_second(1e8));
/// assert_eq!(nic.lone_message(Bytes(1000)), Time::from_micros(20.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nic {
    /// `L`: time from the sender's last instruction to the receiver's first, 0 or more.
    pub latency: Time,
    /// Rate of a single flow.
    pub rate: LinkRate<SingleFlowRate>,
    /// `o`: processor time per message on each side, 0 or more.
    pub overhead: Time,
    /// `g`: minimum time between two messages at an interface, 0 or more.
    pub gap: Time,
    /// Sharing between the two directions of the interface.
    pub duplex: Duplex,
    /// Number of such interfaces per node, at least 1.
    pub count: u32,
    /// Choice of the interface for a message.
    pub choice: NicChoice,
}

named! {
    /// Choice of the interface for a message if a node has several; the same at both ends.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum NicChoice {
        /// Selected by a hash of source and destination: all messages of a node pair use the same interface.
        #[default]
        Pair = "pair",
        /// Selected in turn for the messages between two nodes.
        RoundRobin = "round-robin",
    }
}

named! {
    /// Capacity that the two directions of a node's port share.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Duplex {
        /// None: each direction has the interface's rate.
        #[default]
        Full = "full",
        /// The interface's rate: a single transmitter handles both outgoing and incoming data.
        Half = "half",
    }
}

/// Media, each shared by a group of nodes with consecutive numbers. All data that a node of the group sends or receives
/// cross the medium, in either direction; a message within the group crosses it once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bus {
    /// Number of nodes per medium, at least 1: node `n` is attached to medium `n / nodes`. `None`: all nodes share one
    /// medium.
    pub nodes: Option<u32>,
    /// Rate of each medium, for both directions together.
    pub rate: LinkRate,
}

impl Nic {
    /// Creates an interface with this goodput and without processor time.
    pub fn new(latency: Time, goodput: impl Into<SingleFlowRate>) -> Nic {
        Nic {
            latency,
            rate: LinkRate::Goodput(goodput.into()),
            overhead: Time::ZERO,
            gap: Time::ZERO,
            duplex: Duplex::Full,
            count: 1,
            choice: NicChoice::Pair,
        }
    }

    fn lone_flow(&self) -> SingleFlowRate {
        self.rate
            .given_goodput()
            .unwrap_or_else(|| self.rate.wire().into())
    }

    /// Time per byte, in either form of the given rate.
    pub fn per_byte(&self) -> TimePerByte {
        match self.lone_flow() {
            SingleFlowRate::GapPerByte(gap) => gap,
            SingleFlowRate::Bandwidth(rate) => TimePerByte::from_rate(rate),
        }
    }

    /// Time for the bytes of a single flow, without latency. It is exact for either form of the given rate.
    pub fn time_for(&self, bytes: Bytes) -> Time {
        match self.lone_flow() {
            SingleFlowRate::GapPerByte(gap) => gap.time_for(bytes),
            SingleFlowRate::Bandwidth(rate) => rate.time_for(bytes),
        }
    }

    /// Bytes of payload per second, in either form of the given rate; 0 is infinite.
    pub fn rate(&self) -> Rate {
        self.rate.goodput()
    }

    /// Time of a message without contention: `T = L + size/bandwidth` (Hockney).
    pub fn lone_message(&self, size: Bytes) -> Time {
        self.latency + self.rate().time_for(size)
    }
}

section! {
    /// Processor time by message size, on both sides, and latency by message size; empty if the file has none.
    pub struct Overheads: Default {
        /// Processor time of the sender by message size: pieces in ascending size, the first from 0.
        /// Default: from the rule.
        send: Vec<OverheadPiece> | default,
        /// Processor time of the receiver by message size: pieces in ascending size, the first from 0.
        /// Default: from the rule.
        receive: Vec<OverheadPiece> | default,
        /// Additional latency by message size, such as for a handshake; it occupies no processor and no link.
        /// Default: none.
        latency: Vec<OverheadPiece> | default,
    }
}

impl Overheads {
    /// `true` if neither side's processor time depends on the size.
    pub fn have_no_processor_time(&self) -> bool {
        self.send.is_empty() && self.receive.is_empty()
    }

    /// Time of a message of this size according to one of the three lists; `None` if the list is empty.
    pub fn at(pieces: &[OverheadPiece], size: Bytes) -> Option<Time> {
        let piece = pieces.iter().rev().find(|piece| piece.from <= size);
        piece.map(|piece| piece.fixed + piece.per_byte.time_for(size))
    }
}

section! {
    /// `fixed + per_byte · size` for sizes from `from` up to the next piece.
    pub struct OverheadPiece + Copy {
        /// Smallest size of the piece: 0 for the first piece, then ascending.
        /// Default: required. Example: `"64KiB"`.
        from: Bytes,
        /// Time for each message, 0 or more.
        /// Default: required. Example: `"5us"`.
        fixed: Time,
        /// Time for each byte, 0 or more.
        /// Default: required. Example: `"0.02ns/B"`.
        per_byte: TimePerByte,
    }
}

impl Network {
    /// Creates a network with these costs and defaults in all other fields.
    pub fn new(name: impl Into<String>, rule: MessageRule, nic: Nic) -> Network {
        Network {
            name: name.into(),
            title: String::new(),
            source: String::new(),
            point_to_point: PointToPoint {
                rule,
                rendezvous_from: None,
                progress: Progress::default(),
            },
            nic,
            backbone: None,
            bus: None,
            topology: None,
            overheads: Overheads::default(),
            sharing: Sharing::default(),
            machine: Machine::default(),
            collectives: Collectives::default(),
            file_system: FileSystem::default(),
            linpack: None,
            intervals: BTreeMap::new(),
            origins: BTreeMap::new(),
            accuracy: Vec::new(),
            fit: FitQuality::default(),
            provenance: BTreeMap::new(),
        }
    }

    /// Accuracy of models' predictions on this network.
    pub fn accuracy_record(&self) -> AccuracyRecord<'_> {
        AccuracyRecord::new(&self.accuracy)
    }

    /// `true` if the network has intervals for its numbers, or an accuracy record.
    pub fn has_margins(&self) -> bool {
        !(self.intervals.is_empty() && self.accuracy_record().is_empty())
    }

    /// Sources of latency and bandwidth; `None` if `[origins]` names neither.
    pub fn evidence(&self) -> Option<Evidence<'_>> {
        const NAMES: [&str; 3] = ["nic.latency", "nic.bandwidth", "nic.gap_per_byte"];
        let origins = NAMES.iter().filter_map(|name| self.origins.get(*name));
        Some(Evidence {
            kind: origins.clone().map(|origin| origin.kind).max()?,
            year: origins.clone().filter_map(|origin| origin.year).min(),
            source: origins.min_by_key(|origin| origin.kind)?.short(),
        })
    }

    /// Values without a source, which stand in for unknown values, in the order of their field names.
    pub fn stand_ins(&self) -> impl Iterator<Item = (&str, &Origin)> {
        let unknown = self
            .origins
            .iter()
            .filter(|(_, origin)| origin.kind == OriginKind::Unknown);
        unknown.map(|(field, origin)| (field.as_str(), origin))
    }

    /// The network with the rates and the latency for a model: for packets, the wire rates.
    pub fn seen_by(&self, model: Model) -> Cow<'_, Network> {
        if model != Model::Packet {
            return Cow::Borrowed(self);
        }
        let mut network = self.with_rates(None);
        network.nic.latency = network
            .sharing
            .packet
            .latency
            .unwrap_or(network.nic.latency);
        Cow::Owned(network)
    }

    /// Returns a network whose packets reproduce the closed loop with these windows, in goodput and without losses. A packet
    /// is a train of segments: at most 1/64 of a window and of a message of the `usual` size, but at least one segment. If
    /// both directions share an interface, its wire rate has room for an acknowledgement of every second packet.
    #[must_use]
    pub fn in_trains(&self, windows: Windows, usual: Bytes) -> Network {
        let largest =
            (windows.window.0 / TRAINS_IN_A_WINDOW).clamp(windows.segment.0, LARGEST_SEGMENT);
        let segment = Bytes((usual.0 / TRAINS_IN_A_MESSAGE).clamp(windows.segment.0, largest));
        let overhead = match self.nic.duplex {
            Duplex::Full => FRAME_OVERHEAD as f64,
            Duplex::Half => FRAME_OVERHEAD as f64 * 1.5,
        };
        let mut network = self.with_rates(Some(1.0 + overhead / segment.0 as f64));
        network.nic.latency = self.sharing.packet.latency.unwrap_or(self.nic.latency);
        network.sharing.packet = PacketParameters {
            segment: Some(segment),
            window: Some(windows.window),
            first_window: Some(windows.window),
            send_buffer: self.sharing.packet.send_buffer,
            burst: self.sharing.packet.burst,
            idle_restart: Some(false),
            most_packets: self.sharing.packet.most_packets,
            ..PacketParameters::default()
        };
        network
    }

    /// Replaces all rates by wire rates only: the given ones, or `of_goodput` times the goodput.
    fn with_rates(&self, of_goodput: Option<f64>) -> Network {
        let mut network = self.clone();
        network.nic.rate = network.nic.rate.on_the_wire(of_goodput);
        network.backbone = network.backbone.map(|rate| rate.on_the_wire(of_goodput));
        network.bus = network.bus.map(|bus| Bus {
            rate: bus.rate.on_the_wire(of_goodput),
            ..bus
        });
        let cables = network.topology.iter_mut().flat_map(Topology::cables_mut);
        cables
            .flat_map(|kind| kind.rate.as_mut())
            .for_each(|rate| *rate = rate.on_the_wire(of_goodput));
        network
    }

    /// The network with the frame-level settings of another one: wire rates, packet parameters, and the progress of
    /// messages.
    #[must_use]
    pub fn with_wire_of(mut self, other: &Network) -> Network {
        let nic = LinkRate::given(self.nic.rate.given_goodput(), other.nic.rate.given_wire());
        self.nic.rate = nic.unwrap_or(self.nic.rate);
        if let (Some(own), Some(other)) = (&mut self.backbone, other.backbone) {
            *own = LinkRate::given(own.given_goodput(), other.given_wire()).unwrap_or(*own);
        }
        if let (Some(own), Some(other)) = (&mut self.bus, other.bus) {
            own.rate = LinkRate::given(own.rate.given_goodput(), other.rate.given_wire())
                .unwrap_or(own.rate);
        }
        self.sharing.packet = other.sharing.packet;
        self.point_to_point.progress = other.point_to_point.progress;
        self
    }
}
