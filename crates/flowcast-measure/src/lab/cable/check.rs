//! Frame-by-frame check of a link emulator against its file.
//!
//! Numbered datagrams go through the link emulator, and the kernel timestamps their arrival at the other node. A
//! [`VirtualQueue`] with the same seed gets the send times. It gives the instant at which each datagram should have arrived,
//! and the datagrams that should have been lost. The difference is the emulator's error: its lateness (a constant and its
//! spread) and unintended losses. The check is valid only if nothing else has gone through the emulator.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use flowcast_statistics::sample::{median, quantile};
use flowcast_units::{Bytes, Node, Rate, Time};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{SocketType, bind, connect, getsockname},
};

use super::{
    queue::{Fate, VirtualQueue, wire_time},
    socket::{ReceiveBuffers, StampedSocket},
    spec::DirectionSpec,
};
use crate::lab::{error::LabError, nominal::FRAME_OVERHEAD, running::Lab};

/// Bytes of Ethernet, IP and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
/// Bytes of a datagram's number.
const NUMBER: usize = 4;
/// Duration of the sequence of frames in a row.
const TRAIN: Time = Time::from_nanos(1e8);
/// Largest excess of the frames' send rate over the emulated rate, as a share.
const HASTE: f64 = 0.25;
/// Time to wait after the last expected delivery.
const TIMEOUT: Duration = Duration::from_millis(300);

/// Delay of single frames beyond their delivery in virtual time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lateness {
    /// Median: the constant that the measuring side may subtract.
    pub median: Time,
    /// 5th percentile of the delay.
    pub p5: Time,
    /// 95th percentile of the delay.
    pub p95: Time,
}

/// Result for one direction of a link emulator.
#[derive(Debug, Clone, PartialEq)]
pub struct CableCheck {
    /// The rail that the link belongs to, from 0.
    pub rail: usize,
    /// Node that sends the frames.
    pub from: Node,
    /// Lateness of single frames; `None` if none arrived.
    pub lateness: Option<Lateness>,
    /// Measured wire rate of frames in a row.
    pub rate: Rate,
    /// Specified wire rate of this direction.
    pub nominal: Rate,
    /// Number of frames sent in this direction.
    pub sent: u32,
    /// Number of frames that did not arrive.
    pub lost: u32,
    /// Specified probability of a loss.
    pub specified_loss: f64,
    /// Number of frames that the seed marks as lost, or that find the queue full in virtual time.
    pub expected_lost: u32,
    /// Number of frames that arrived unexpectedly or are missing unexpectedly.
    pub unexplained: u32,
}

impl CableCheck {
    /// Returns the error of the rate, as a share of the nominal rate.
    pub fn rate_error(&self) -> f64 {
        self.rate.as_bytes_per_second() / self.nominal.as_bytes_per_second() - 1.0
    }

    /// Returns `true` if the rate is within `tolerance` and at most 1 of 200 frames is unexplained.
    pub fn passes(&self, tolerance: f64) -> bool {
        self.rate_error().abs() <= tolerance && 200 * self.unexplained <= self.sent
    }
}

/// Checker of the link emulators of a lab. No other traffic may have passed through them.
#[derive(Debug)]
pub struct CableChecker<'a> {
    lab: &'a Lab,
    directions: Vec<ReferenceCable>,
}

/// One direction, and the fate of its frames in virtual time.
#[derive(Debug)]
struct ReferenceCable {
    rail: usize,
    from: Node,
    spec: DirectionSpec,
    queue: VirtualQueue,
    start: SystemTime,
}

#[derive(Debug)]
struct SentFrame {
    size: Bytes,
    fate: Fate,
}

impl<'a> CableChecker<'a> {
    /// Creates a checker for a newly built lab.
    pub fn new(lab: &'a Lab) -> CableChecker<'a> {
        let rails = 0..lab.spec().nic.bandwidth.0.len();
        let ends = rails.flat_map(|rail| [(rail, Node(0)), (rail, Node(1))]);
        let start = SystemTime::now();
        CableChecker {
            lab,
            directions: ends
                .filter_map(|(rail, from)| {
                    let spec = lab.spec().direction(rail, from)?;
                    Some(ReferenceCable {
                        rail,
                        from,
                        spec,
                        queue: VirtualQueue::new(spec),
                        start,
                    })
                })
                .collect(),
        }
    }

    /// Sends `singles` separate frames and then some in a row, through each direction. The check can be repeated.
    ///
    /// # Errors
    /// The system refuses a socket.
    pub fn check(&mut self, singles: u32) -> Result<Vec<CableCheck>, LabError> {
        let lab = self.lab;
        self.directions
            .iter_mut()
            .map(|twin| twin.check(lab, singles))
            .collect()
    }
}

impl ReferenceCable {
    fn check(&mut self, lab: &Lab, singles: u32) -> Result<CableCheck, LabError> {
        let (sender, receiver) = self.sockets(lab).map_err(|source| LabError::System {
            what: "creating the sockets that check a cable",
            source,
        })?;
        let finished = AtomicBool::new(false);
        let (sent, arrivals) = thread::scope(|scope| {
            let listener =
                scope.spawn(|| listen(&receiver, lab.spec().nic.mtu.0 as usize, &finished));
            let sent = self.send_all(&sender, singles, lab.spec().nic.mtu.0 as usize);
            thread::sleep(
                Duration::from_secs_f64(self.still_to_come(&sent).as_seconds()) + TIMEOUT,
            );
            finished.store(true, Ordering::Relaxed);
            (sent, listener.join().expect("listeners do not panic"))
        });
        let mut arrived: Vec<Option<SystemTime>> = vec![None; sent.len()];
        for (number, at) in arrivals {
            if let Some(place) = arrived.get_mut(number as usize) {
                *place = Some(at);
            }
        }
        Ok(self.judge(&sent, &arrived, singles as usize))
    }

    fn sockets(&self, lab: &Lab) -> std::io::Result<(StampedSocket, StampedSocket)> {
        let to = Node(1 - self.from.0);
        let address: Ipv4Addr = lab.address(to, self.rail).map_err(other)?;
        let [sender, receiver] = [self.from, to].map(|node| lab.socket_in(node, SocketType::DGRAM));
        let (sender, receiver) = (sender.map_err(other)?, receiver.map_err(other)?);
        bind(&receiver, &SocketAddrV4::new(address, 0))?;
        connect(&sender, &SocketAddrV4::try_from(getsockname(&receiver)?)?)?;
        Ok((StampedSocket::over(sender)?, StampedSocket::over(receiver)?))
    }

    /// Sends small frames with pauses between them, then full frames at a little more than the emulated rate.
    fn send_all(&mut self, sender: &StampedSocket, singles: u32, mtu: usize) -> Vec<SentFrame> {
        let mut sent = Vec::new();
        let small = vec![0; 18];
        let pause = wire_time(&self.spec, Bytes(60)).as_seconds() * 4.0;
        for number in 0..singles {
            // The pauses have different lengths, so they cannot resonate with a timer of the system.
            let uneven = 300e-6 + 10e-6 * f64::from(number * 7 % 41);
            thread::sleep(Duration::from_secs_f64(pause.max(uneven)));
            sent.push(self.send(sender, number, &small));
        }
        let frame = Bytes((mtu + 14) as u64);
        let count =
            (TRAIN.as_nanos() / wire_time(&self.spec, frame).as_nanos()).clamp(40.0, 3000.0) as u32;
        let room = self.spec.queue.0 as f64 / (2.0 * frame.0 as f64);
        let haste = HASTE.min(room / f64::from(count));
        let together = (room as u32).clamp(1, 8);
        let full = vec![0; mtu + 14 - HEADERS];
        let began = Instant::now();
        for index in 0..count {
            if index % together == 0 {
                let due = wire_time(&self.spec, frame) * (f64::from(index) / (1.0 + haste));
                thread::sleep(
                    Duration::from_secs_f64(due.as_seconds()).saturating_sub(began.elapsed()),
                );
            }
            sent.push(self.send(sender, singles + index, &full));
        }
        sent
    }

    /// Sends a datagram. One that cannot be sent counts as lost.
    fn send(&mut self, sender: &StampedSocket, number: u32, payload: &[u8]) -> SentFrame {
        let mut payload = payload.to_vec();
        payload[..NUMBER].copy_from_slice(&number.to_be_bytes());
        let at = SystemTime::now();
        let _ = sender.send(&payload);
        let size = Bytes((payload.len() + HEADERS) as u64);
        SentFrame {
            size,
            fate: self.queue.arrive(since(self.start, at), size),
        }
    }

    fn still_to_come(&self, sent: &[SentFrame]) -> Time {
        let last = sent.iter().rev().find_map(|sent| match sent.fate {
            Fate::Delivered(at) => Some(at),
            _ => None,
        });
        (last.unwrap_or_default() - since(self.start, SystemTime::now())).max(Time::ZERO)
    }

    fn judge(
        &self,
        sent: &[SentFrame],
        arrived: &[Option<SystemTime>],
        singles: usize,
    ) -> CableCheck {
        let late = sent[..singles]
            .iter()
            .zip(arrived)
            .filter_map(|(sent, arrived)| match (sent.fate, arrived) {
                (Fate::Delivered(due), Some(at)) => Some((since(self.start, *at) - due).as_nanos()),
                _ => None,
            });
        let late: Vec<f64> = late.collect();
        let count = |which: &dyn Fn(&SentFrame, bool) -> bool| {
            sent.iter()
                .zip(arrived)
                .filter(|(sent, arrived)| which(sent, arrived.is_some()))
                .count() as u32
        };
        CableCheck {
            rail: self.rail,
            from: self.from,
            lateness: lateness(&late),
            rate: rate(&sent[singles..], &arrived[singles..]),
            nominal: self.spec.rate,
            sent: sent.len() as u32,
            lost: count(&|_, arrived| !arrived),
            specified_loss: self.spec.loss,
            expected_lost: count(&|sent, _| !due(sent)),
            unexplained: count(&|sent, arrived| due(sent) != arrived),
        }
    }
}

fn other(error: LabError) -> std::io::Error {
    std::io::Error::other(error.to_string())
}

fn due(sent: &SentFrame) -> bool {
    matches!(sent.fate, Fate::Delivered(_))
}

/// Returns the numbers and times of arriving datagrams, until `finished` is set.
fn listen(
    receiver: &StampedSocket,
    largest: usize,
    finished: &AtomicBool,
) -> Vec<(u32, SystemTime)> {
    let mut batch = ReceiveBuffers::new(largest);
    let mut all = Vec::new();
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    while !finished.load(Ordering::Relaxed) {
        // Errors show as frames that did not arrive.
        let _ = poll(&mut [PollFd::new(receiver, PollFlags::IN)], Some(&wait));
        while let Ok(received @ [_, ..]) = receiver.receive(&mut batch).as_deref() {
            let numbered =
                |bytes: &[u8]| Some(u32::from_be_bytes(bytes.get(..NUMBER)?.try_into().ok()?));
            all.extend(
                received
                    .iter()
                    .filter_map(|datagram| Some((numbered(&datagram.bytes)?, datagram.at?))),
            );
        }
    }
    all
}

fn lateness(nanos: &[f64]) -> Option<Lateness> {
    let [p5, p95] = [0.05, 0.95].map(|share| quantile(nanos, share).map(Time::from_nanos).ok());
    Some(Lateness {
        median: Time::from_nanos(median(nanos).ok()?),
        p5: p5?,
        p95: p95?,
    })
}

/// Returns the rate: bytes on the wire after the first frame that arrived, up to and including the last, divided by the time
/// between the two.
fn rate(sent: &[SentFrame], arrived: &[Option<SystemTime>]) -> Rate {
    let ends = (
        arrived.iter().position(Option::is_some),
        arrived.iter().rposition(Option::is_some),
    );
    let (Some(first), Some(last)) = ends else {
        return Rate::default();
    };
    let carried = sent[first + 1..=last]
        .iter()
        .filter(|sent| sent.fate != Fate::Overflowed);
    let bytes: u64 = carried.map(|sent| sent.size.0 + FRAME_OVERHEAD).sum();
    let time = match (arrived[first], arrived[last]) {
        (Some(first), Some(last)) => since(first, last).as_seconds(),
        _ => 0.0,
    };
    Rate::from_bytes_per_second(if time > 0.0 { bytes as f64 / time } else { 0.0 })
}

fn since(start: SystemTime, at: SystemTime) -> Time {
    Time::from_nanos(at.duration_since(start).unwrap_or_default().as_nanos() as f64)
}
