//! Transport parameters of the packet level: the section `[sharing.packet]`.

pub use super::parameters::{Congestion, Connections};
use super::{error::SharingError, parameters::PacketParameters};
use flowcast_units::{Bytes, Time};

/// Payload of a full packet if the largest IP packet has 1500 bytes.
pub const SEGMENT: u64 = 1448;
/// Payload of the largest packet.
pub(crate) const LARGEST_SEGMENT: u64 = 65_000;
/// Bytes of a frame in addition to its payload: 52 bytes of TCP and IP headers with time stamps, 14 of Ethernet, 24 of
/// preamble, checksum and gap.
pub const FRAME_OVERHEAD: u64 = 90;

/// Shortest retransmission timeout of Linux (`TCP_RTO_MIN`).
pub const SHORTEST_TIMEOUT: Time = Time::from_seconds(0.2);

/// Longest retransmission timeout of Linux (`TCP_RTO_MAX`).
pub const LONGEST_TIMEOUT: Time = Time::from_seconds(120.0);

/// Default limit on the packets of a run. A run with this number of packets takes 5 to 10 s.
const MOST_PACKETS: u64 = 100_000_000;

/// Transport settings: congestion control, packet size, windows and buffers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Protocol {
    /// Congestion control of a sender.
    pub congestion: Congestion,
    /// Payload of a full packet.
    pub segment: Bytes,
    /// Maximum number of bytes in flight, regardless of the congestion control: the receiver's window.
    pub window: Bytes,
    /// Bytes of a program's message that the sender's system accepts before they are acknowledged; at least a window.
    /// `None`: no such buffer.
    pub send_buffer: Option<Bytes>,
    /// Congestion window of a new connection.
    pub first_window: Bytes,
    /// Maximum number of bytes that wait in front of a port of the switch. `None`: no limit.
    pub queue: Option<Bytes>,
    /// Bytes that a link lets through without delay after a pause.
    pub burst: Bytes,
    /// Assignment of messages to connections.
    pub connections: Connections,
    /// Shortest retransmission timeout.
    pub shortest_timeout: Time,
    /// `true` if an idle connection falls back to its first window.
    pub idle_restart: bool,
    /// Number of previous transmissions of the messages over the same connections, which keep their windows.
    pub warm_ups: u32,
    /// `true` if a sender keeps its data in its own interface's queue small.
    pub small_queues: bool,
    /// With several seeds: maximum delay of a message's start.
    pub jitter: Time,
    /// With several seeds: standard deviation of the logarithm of a message's time without contention.
    pub noise: f64,
    /// Maximum number of packets of a run.
    pub most_packets: u64,
}

/// Equal windows through lossless queues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Windows {
    /// Bytes that each flow keeps in flight.
    pub window: Bytes,
    /// Payload of a full packet.
    pub segment: Bytes,
}

impl Protocol {
    /// Creates the protocol from the fields of a network file.
    ///
    /// # Errors
    /// A field is out of range; the error names it.
    pub fn new(given: &PacketParameters) -> Result<Protocol, SharingError> {
        let congestion = given.congestion.unwrap_or_default();
        // 32 KiB socket buffers, as in the reference measurements; Linux' largest send buffer.
        let window = if congestion == Congestion::Fixed {
            Bytes(44_000)
        } else {
            Bytes(4 << 20)
        };
        let segment = SharingError::check(
            "sharing.packet.segment",
            given.segment.unwrap_or(Bytes(SEGMENT)),
            Bytes(256)..=Bytes(LARGEST_SEGMENT),
            "256B to 65kB",
        )?;
        let window = at_least(
            segment,
            "sharing.packet.window",
            given.window.unwrap_or(window),
            "one packet to 1GB",
        )?;
        if let Some(buffer) = given.send_buffer {
            let range = "sharing.packet.window to 1GB";
            at_least(window, "sharing.packet.send_buffer", buffer, range)?;
        }
        if let Some(queue) = given.queue {
            let frame = Bytes(segment.0 + FRAME_OVERHEAD);
            at_least(frame, "sharing.packet.queue", queue, "one frame to 1GB")?;
        }
        Ok(Protocol {
            congestion,
            segment,
            window,
            send_buffer: given.send_buffer,
            first_window: at_least(
                segment,
                "sharing.packet.first_window",
                given.first_window.unwrap_or(Bytes(10 * segment.0)),
                "one packet to 1GB",
            )?,
            queue: given.queue,
            burst: at_least(
                Bytes(0),
                "sharing.packet.burst",
                given.burst.unwrap_or_default(),
                "0B to 1GB",
            )?,
            connections: given.connections.unwrap_or_default(),
            shortest_timeout: SharingError::check(
                "sharing.packet.shortest_timeout",
                given.shortest_timeout.unwrap_or(SHORTEST_TIMEOUT),
                Time::from_seconds(0.001)..=LONGEST_TIMEOUT,
                "1ms to 120s",
            )?,
            idle_restart: given.idle_restart.unwrap_or(true),
            warm_ups: SharingError::check(
                "sharing.packet.warm_ups",
                given.warm_ups.unwrap_or(0),
                0..=1000,
                "0 to 1000",
            )?,
            small_queues: given
                .small_queues
                .unwrap_or(congestion != Congestion::Fixed),
            jitter: given.jitter.unwrap_or(Time::from_micros(100.0)),
            noise: SharingError::check(
                "sharing.packet.noise",
                given.noise.unwrap_or(0.0),
                0.0..=1.0,
                "a fraction from 0 to 1",
            )?,
            most_packets: given.most_packets.unwrap_or(MOST_PACKETS),
        })
    }
}

fn at_least(
    least: Bytes,
    field: &'static str,
    found: Bytes,
    range: &'static str,
) -> Result<Bytes, SharingError> {
    SharingError::check(field, found, least..=Bytes(1_000_000_000), range)
}
