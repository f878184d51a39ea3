//! Network made of LogGP parameters, for two ends in two threads, with virtual time.
//!
//! Each end has its own clock. A message carries its arrival time, and receiving it advances the receiver's clock to that
//! time. This is exact for two ends that only wait for each other's messages, and does not depend on the scheduling of the
//! threads. [`connect_noisy`] adds the disturbances of real networks and hosts, from a seed.

use std::sync::mpsc::{Receiver, Sender, channel};

use flowcast_network::loggp::LogGp;
use flowcast_statistics::resampling::Resampler;
use flowcast_units::{Bytes, Time};

use crate::transport::{Transport, TransportError};

/// Time after which TCP retransmits a lost packet: its shortest timeout on Linux.
const RETRANSMISSION: Time = Time::from_nanos(2e8);
/// Payload of a TCP segment over Ethernet, in bytes.
const SEGMENT: u64 = 1448;

/// Disturbances of messages; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MessageNoise {
    /// Additional latency of each message: the largest value if uniform, the mean if exponential. No message overtakes
    /// another.
    pub jitter: Time,
    /// `true` if jitter is exponentially distributed.
    pub exponential: bool,
    /// Probability that a packet of 1448 bytes is lost; its message arrives 200 ms later.
    pub loss: f64,
    /// Mean of an exponential addition to each overhead.
    pub overhead: Time,
    /// Probability that a message meets an interruption of the processor, which lasts for `interruption`.
    pub interrupted: f64,
    /// Duration of an interruption.
    pub interruption: Time,
}

impl MessageNoise {
    /// Returns the parameters that a measurement by means should find: the network's parameters plus the mean of each
    /// addition, without interruptions and losses.
    pub fn truth(&self, network: LogGp) -> LogGp {
        let jitter = self.jitter * if self.exponential { 1.0 } else { 0.5 };
        LogGp {
            latency: network.latency + jitter,
            overhead: network.overhead + self.overhead,
            ..network
        }
    }

    fn jitter(&self, random: &mut Resampler) -> Time {
        self.jitter
            * if self.exponential {
                exponential(random)
            } else {
                random.share()
            }
    }

    fn overhead(&self, random: &mut Resampler) -> Time {
        let interruption = if random.share() < self.interrupted {
            self.interruption
        } else {
            Time::ZERO
        };
        self.overhead * exponential(random) + interruption
    }

    /// Returns the delay of a message due to losses of its packets.
    fn repetition(&self, size: Bytes, random: &mut Resampler) -> Time {
        let packets = size.0.div_ceil(SEGMENT).max(1) as f64;
        let lost = random.share() < 1.0 - (1.0 - self.loss).powf(packets);
        if lost { RETRANSMISSION } else { Time::ZERO }
    }
}

fn exponential(random: &mut Resampler) -> f64 {
    -(1.0 - random.share()).ln()
}

/// One end of a connection over a LogGP network, with its own clock of virtual time.
#[derive(Debug)]
pub struct VirtualEnd {
    network: LogGp,
    clock: Time,
    /// Earliest start of the next message: the previous start plus its gap.
    interface_free: Time,
    /// Delivery of the previous message.
    delivered: Time,
    noise: MessageNoise,
    random: Resampler,
    outgoing: Sender<VirtualMessage>,
    incoming: Receiver<VirtualMessage>,
}

#[derive(Debug)]
struct VirtualMessage {
    bytes: Vec<u8>,
    arrival: Time,
}

/// Returns both ends of a connection over `network`; both clocks start at 0.
///
/// ```
/// use flowcast_measure::transport::Transport;
/// use flowcast_measure::virtual_network::connect;
/// use flowcast_network::loggp::LogGp;
/// use flowcast_units::{Time, TimePerByte};
///
/// let network = LogGp {
///     latency: Time::from_micros(5.0),
///     overhead: Time::from_micros(1.0),
///     gap: Time::from_micros(2.0),
///     gap_per_byte: TimePerByte::from_nanos(0.0),
/// };
/// let (mut here, mut there) = connect(network);
/// here.send(&[7])?;
/// let mut message = [0];
/// there.receive(&mut message)?;
/// assert_eq!((message, there.now()), ([7], Time::from_micros(7.0)));
/// # Ok::<(), flowcast_measure::transport::TransportError>(())
/// ```
pub fn connect(network: LogGp) -> (VirtualEnd, VirtualEnd) {
    connect_noisy(network, MessageNoise::default(), 1)
}

/// Returns both ends of a connection over `network` with disturbances of messages; equal seeds give equal disturbances.
pub fn connect_noisy(network: LogGp, noise: MessageNoise, seed: u64) -> (VirtualEnd, VirtualEnd) {
    let (to_second, from_first) = channel();
    let (to_first, from_second) = channel();
    let ends = [
        (to_second, from_second, 2 * seed),
        (to_first, from_first, 2 * seed + 1),
    ];
    ends.map(|(outgoing, incoming, seed)| VirtualEnd {
        network,
        clock: Time::ZERO,
        interface_free: Time::ZERO,
        delivered: Time::ZERO,
        noise,
        random: Resampler::from_seed(seed),
        outgoing,
        incoming,
    })
    .into()
}

impl Transport for VirtualEnd {
    fn now(&self) -> Time {
        self.clock
    }

    fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let size = Bytes(message.len() as u64);
        let start = self.clock.max(self.interface_free);
        self.clock = start + self.network.overhead + self.noise.overhead(&mut self.random);
        self.interface_free = start + self.network.spacing(size);
        let late =
            self.noise.jitter(&mut self.random) + self.noise.repetition(size, &mut self.random);
        let arrival = self.clock + self.network.latency + self.network.transfer(size) + late;
        let arrival = arrival.max(self.delivered);
        self.delivered = arrival;
        self.outgoing
            .send(VirtualMessage {
                bytes: message.to_vec(),
                arrival,
            })
            .map_err(|_| TransportError::Closed)
    }

    fn receive(&mut self, message: &mut [u8]) -> Result<(), TransportError> {
        let VirtualMessage { bytes, arrival } =
            self.incoming.recv().map_err(|_| TransportError::Closed)?;
        if bytes.len() != message.len() {
            return Err(TransportError::Size {
                found: bytes.len(),
                expected: message.len(),
            });
        }
        message.copy_from_slice(&bytes);
        self.clock =
            self.clock.max(arrival) + self.network.overhead + self.noise.overhead(&mut self.random);
        Ok(())
    }

    fn compute(&mut self, duration: Time) {
        self.clock += duration;
    }

    fn rest(&mut self, duration: Time) {
        self.compute(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::TimePerByte;

    fn network() -> LogGp {
        LogGp {
            latency: Time::from_nanos(1000.0),
            overhead: Time::from_nanos(100.0),
            gap: Time::from_nanos(300.0),
            gap_per_byte: TimePerByte::from_nanos(2.0),
        }
    }

    #[test]
    fn a_message_arrives_after_two_overheads_the_latency_and_its_bytes() {
        let (mut first, mut second) = connect(network());
        first.send(&[7; 11]).unwrap();
        let mut message = [0; 11];
        second.receive(&mut message).unwrap();
        assert_eq!(
            (message, first.now(), second.now()),
            ([7; 11], Time::from_nanos(100.0), Time::from_nanos(1220.0))
        );
    }

    #[test]
    fn messages_in_a_row_start_a_gap_apart() {
        let (mut first, mut second) = connect(network());
        first.send(&[1; 11]).unwrap();
        first.send(&[2; 11]).unwrap();
        // The second message starts at 300 + 10·2 and occupies the processor for 100.
        assert_eq!(first.now(), Time::from_nanos(420.0));
        let mut message = [0; 11];
        second.receive(&mut message).unwrap();
        second.receive(&mut message).unwrap();
        assert_eq!(second.now(), Time::from_nanos(1540.0));
    }

    #[test]
    fn a_closed_end_and_a_wrong_size_are_errors() {
        let (mut first, mut second) = connect(network());
        first.send(&[1; 3]).unwrap();
        let error = second.receive(&mut [0; 4]).unwrap_err().to_string();
        assert_eq!(error, "found a message of 3 bytes, expected 4");
        drop(first);
        assert!(matches!(
            second.receive(&mut [0; 1]),
            Err(TransportError::Closed)
        ));
        assert!(matches!(second.send(&[0; 1]), Err(TransportError::Closed)));
    }
}
