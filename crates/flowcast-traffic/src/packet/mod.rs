//! Messages carried packet by packet over first-in, first-out links, with acknowledgements, windows and losses.
//!
//! Within Flowcast, this simulation is the reference for contention between messages. The fluid models of `flowcast-traffic`
//! are its limits for long messages. Packets are needed if messages are short compared with the window, if queues overflow
//! or if congestion control decides. The crate uses neither a clock nor sockets: its input is messages, a [`Fabric`] and a
//! [`Wire`], its output is completions, and equal inputs give equal outputs to the last bit. [`simulate`] carries messages
//! with known starts; [`live::Live`] carries those of a program, whose starts depend on earlier arrivals; [`seeds`] repeats
//! a pattern under random starts and host times.
//!
//! # The model
//!
//! A link of rate `C` serves frames one after another, in the order of their arrival. A frame of `b` bytes that arrives at
//! time `a` leaves at
//!
//! `d = max(a, d') + b / C`,
//!
//! where `d'` is the departure of the frame before it. A switch port drops a frame that would raise its waiting bytes above
//! `sharing.packet.queue`. A data frame carries up to `sharing.packet.segment` bytes of payload and is [`FRAME_OVERHEAD`]
//! longer. An ACK is a frame of [`FRAME_OVERHEAD`] bytes that returns on the path of a message in that direction. The
//! receiver sends an ACK for every second full packet, for the last packet of a message, and immediately for any packet that
//! opens, follows or fills a gap. Any other packet is acknowledged after at most 40 ms (RFC 5681, section 4.2). The sender
//! keeps at most a window of `w` packets in flight, so that alone it runs at `min(C, w * segment / RTT)`. Congestion control
//! determines how `w` grows and shrinks: fixed after slow start, reno, cubic or BBR. With fixed windows and queues without
//! limit, the fluid limit of this system is the closed loop (`flowcast_network::sharing::closed_loop`).
//!
//! | part | subject | rules |
//! |---|---|---|
//! | `link`, `engine` | queues and events | the equation above |
//! | `steady` | exact repetitions, which are skipped | |
//! | `receiver` | times of acknowledgements | RFC 5681 section 4.2, RFC 2018 |
//! | `sender`, `round_trip` | loss, recovery, timers | RFC 6298, 6675, 6937, 8985, 2861, 4015 |
//! | `control` | windows | RFC 5681, RFC 9438 and HyStart, the BBR draft |
//! | `jitter`, `seeds` | repetitions | Floyd and Jacobson 1992 |
//! | `warm_up` | state that connections keep from earlier repetitions | Linux |
//!
//! `docs/explanation/packet.md` has the rules in one place, and lists what is not modelled.

mod connection;
mod control;
mod engine;
mod frame;
mod jitter;
mod link;
pub mod live;
mod order;
mod pace;
mod picos;
mod receiver;
#[cfg(test)]
mod reference;
mod round_trip;
mod routes;
pub mod seeds;
mod sender;
mod shift;
mod steady;
mod stream;
mod transmission;
mod warm_up;

use std::collections::BTreeMap;

use connection::PacketConnection;
use engine::PacketEngine;
use flowcast_network::sharing::{
    SharingError,
    completion::{FlowCompletion, RateInterval},
    fabric::{Fabric, FlowPath, LinkId},
    protocol::{Connections, Protocol},
};
use flowcast_units::{Bytes, Rate, Time};
use frame::MOST_CONNECTIONS;
use jitter::Jitter;
use link::{LinkKind, PacketLink};
use picos::Picos;
use routes::Routes;
use warm_up::Rounds;

pub use flowcast_network::sharing::protocol::{FRAME_OVERHEAD, SEGMENT};

/// Longest time that can be counted, in seconds, with room for time-outs.
const LONGEST: f64 = 2.2e6;

/// Links, and the transport over them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wire {
    /// Rate of an interface, in bytes of frames per second.
    pub rate: Rate,
    /// Time from the last link to the other side.
    pub latency: Time,
    /// Windows, queues, congestion control.
    pub protocol: Protocol,
    /// Seed of random starts and host times; `None` without random times.
    pub seed: Option<u64>,
}

/// One message to be carried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketMessage {
    /// Time at which its sender starts it.
    pub start: Time,
    /// Payload, without headers; an empty message sends no packets.
    pub size: Bytes,
}

/// Outcome for the messages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CarriedPackets {
    /// Completion of each message, in the order of the input.
    pub completions: Vec<FlowCompletion>,
    /// Average shares of each message, over each 1/32 of it.
    pub intervals: Vec<Vec<RateInterval>>,
    /// Number of link crossings, summed over all frames.
    pub packet_hops: u64,
    /// Number of frames that were dropped at full queues.
    pub dropped: u64,
    /// Indices in the pattern of the messages that took the longer of two paths.
    pub detoured: Vec<usize>,
}

/// Carries all messages over the paths of the fabric.
///
/// # Errors
/// More than can be counted: 2^24 connections, paths over more than 64 links, 2^31 packets of a connection, or 25 days.
pub fn simulate(
    messages: &[PacketMessage],
    fabric: &Fabric,
    wire: &Wire,
) -> Result<CarriedPackets, SharingError> {
    let mut all = simulate_repetitions(messages, fabric, wire, 1)?;
    Ok(all.pop().expect("one repetition was requested"))
}

/// Simulates like [`simulate`], `repetitions` times over the same connections, after the warm-ups. Frames and losses are
/// counted over all of them.
///
/// # Errors
/// Errors of [`simulate`].
pub(crate) fn simulate_repetitions(
    messages: &[PacketMessage],
    fabric: &Fabric,
    wire: &Wire,
    repetitions: u32,
) -> Result<Vec<CarriedPackets>, SharingError> {
    warm_up::last_rounds(wire.protocol.warm_ups, repetitions.max(1), |rounds| {
        simulate_rounds(messages, fabric, wire, rounds)
    })
}

/// Carries the messages in rounds over the same connections; the results of the first round come first.
fn simulate_rounds(
    messages: &[PacketMessage],
    fabric: &Fabric,
    wire: &Wire,
    rounds: Rounds,
) -> Result<CarriedPackets, SharingError> {
    carry_rounds(messages, fabric, wire, rounds, |engine| match wire.seed {
        None => drop(engine.run_skipping()),
        Some(_) => engine.run(),
    })
}

/// Simulates like [`simulate`], but carries every packet even if the state repeats: the reference for skipping.
///
/// # Errors
/// Errors of [`simulate`].
pub(crate) fn simulate_each_packet(
    messages: &[PacketMessage],
    fabric: &Fabric,
    wire: &Wire,
) -> Result<CarriedPackets, SharingError> {
    carry_rounds(messages, fabric, wire, Rounds::once(), PacketEngine::run)
}

fn carry_rounds(
    messages: &[PacketMessage],
    fabric: &Fabric,
    wire: &Wire,
    rounds: Rounds,
    run: impl Fn(&mut PacketEngine),
) -> Result<CarriedPackets, SharingError> {
    let plan = Plan::new(messages, fabric, wire, rounds)?;
    let mut engine = PacketEngine::new(
        plan.links(),
        plan.routes()?,
        plan.connections(),
        plan.jitter(),
    );
    run(&mut engine);
    if !engine
        .connections
        .iter()
        .all(|connection| connection.stream.is_whole())
    {
        return Err(SharingError::TooLong {
            seconds: Picos::NEVER.as_seconds(),
            most: LONGEST,
        });
    }
    let mut carried = CarriedPackets {
        completions: rounds
            .repeat(messages)
            .map(|message| FlowCompletion {
                end: message.start,
                ..FlowCompletion::default()
            })
            .collect(),
        intervals: vec![Vec::new(); rounds.count() * messages.len()],
        packet_hops: engine.packet_hops(),
        dropped: engine.dropped(),
        detoured: plan.sharing_connections_of(engine.routes.detoured()),
    };
    engine
        .arrived
        .into_iter()
        .for_each(|(message, completion)| carried.completions[message] = completion);
    for (message, intervals) in engine
        .connections
        .into_iter()
        .flat_map(|c| c.stream.into_intervals())
    {
        carried.intervals[message] = intervals;
    }
    Ok(carried)
}

/// Assignment of messages to connections.
struct Plan<'a> {
    fabric: &'a Fabric,
    wire: &'a Wire,
    /// Path and messages of each connection, the messages ordered by start.
    loads: Vec<Load>,
    jitter: Option<Jitter>,
}

/// Load of one connection.
struct Load {
    /// First of its flows, whose path it takes.
    flow: usize,
    /// Its messages with their places in the pattern.
    messages: Vec<(usize, PacketMessage)>,
}

impl<'a> Plan<'a> {
    fn new(
        messages: &[PacketMessage],
        fabric: &'a Fabric,
        wire: &'a Wire,
        rounds: Rounds,
    ) -> Result<Plan<'a>, SharingError> {
        let mut jitter = wire.seed.map(Jitter::from_seed);
        let most = Picos::from_time(wire.protocol.jitter);
        let mut loads: BTreeMap<(u32, u32, usize), Load> = BTreeMap::new();
        for (place, message) in rounds.repeat(messages).enumerate() {
            let flow = place % messages.len();
            let path = &fabric.paths[flow];
            let later = jitter
                .as_mut()
                .map_or(Picos::ZERO, |jitter| jitter.of_start(most));
            let message = PacketMessage {
                start: message.start + later.to_time(),
                ..message
            };
            let key = match wire.protocol.connections {
                Connections::Each => (0, 0, flow),
                Connections::Pair => (path.src, path.dst, 0),
            };
            if message.size.0 > 0 {
                loads
                    .entry(key)
                    .or_insert_with(|| Load {
                        flow,
                        messages: Vec::new(),
                    })
                    .messages
                    .push((place, message));
            }
        }
        let mut loads: Vec<_> = loads.into_values().collect();
        for load in &mut loads {
            load.messages.sort_by_key(|(_, message)| message.start);
        }
        let plan = Plan {
            fabric,
            wire,
            loads,
            jitter,
        };
        plan.check(&rounds.repeat(messages).collect::<Vec<_>>())?;
        Ok(plan)
    }

    /// Refuses counts that do not fit: times are whole picoseconds, and packets have numbers of 32 bits.
    fn check(&self, messages: &[PacketMessage]) -> Result<(), SharingError> {
        let bytes: f64 = messages.iter().map(|message| message.size.0 as f64).sum();
        let slowest = (0..self.fabric.link_count() as u32)
            .map(|link| rate_of(LinkId(link), self.fabric, self.wire).as_bytes_per_second())
            .fold(f64::INFINITY, f64::min);
        let last = messages
            .iter()
            .map(|message| message.start.as_seconds())
            .fold(0.0, f64::max);
        let frames = bytes / self.wire.protocol.segment.0 as f64 + messages.len() as f64;
        let seconds = (bytes + 2.0 * frames * FRAME_OVERHEAD as f64) / slowest + last;
        let each = self.wire.latency.as_seconds() * frames.max(1.0);
        if (seconds + each).is_nan() || seconds + each >= LONGEST {
            return Err(SharingError::TooLong {
                seconds: seconds + each,
                most: LONGEST,
            });
        }
        let packets = self.loads.iter().map(|load: &Load| {
            load.messages
                .iter()
                .map(|(_, message)| message.size.0.div_ceil(self.wire.protocol.segment.0))
                .sum::<u64>()
        });
        let (found, most) = (
            packets.clone().fold(0, u64::saturating_add),
            self.wire.protocol.most_packets,
        );
        if found > most {
            return Err(SharingError::TooMuchWork { found, most });
        }
        match packets.max() {
            Some(most) if most >= 1 << 31 => Err(SharingError::TooManyPackets {
                found: most,
                most: (1 << 31) - 1,
            }),
            _ if self.loads.len() > MOST_CONNECTIONS => Err(SharingError::TooManyPackets {
                found: self.loads.len() as u64,
                most: MOST_CONNECTIONS as u64,
            }),
            _ => Ok(()),
        }
    }

    fn links(&self) -> Vec<PacketLink> {
        links_of(self.fabric, self.wire)
    }

    fn routes(&self) -> Result<Routes, SharingError> {
        let mut routes = Routes::new(self.fabric)?;
        for load in &self.loads {
            routes.push(self.fabric, load.flow);
        }
        Ok(routes)
    }

    fn connections(&self) -> Vec<PacketConnection> {
        let links = self.links();
        (0..)
            .zip(&self.loads)
            .map(|(number, load): (u32, &Load)| {
                let path = &self.fabric.paths[load.flow];
                let opening = opening(path, &links, self.fabric, self.wire);
                PacketConnection::new(
                    number,
                    &load.messages,
                    &self.wire.protocol,
                    self.wire.rate,
                    opening,
                )
            })
            .collect()
    }

    /// Flows that share their connections with these.
    fn sharing_connections_of(&self, flows: &[usize]) -> Vec<usize> {
        let all = self.fabric.detour(0).unwrap_or(1);
        let loads = self.loads.iter().filter(|load| flows.contains(&load.flow));
        let mut found: Vec<usize> = loads
            .flat_map(|load| load.messages.iter().map(|(place, _)| place % all))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn jitter(&self) -> Option<Jitter> {
        self.jitter.clone()
    }
}

fn rate_of(link: LinkId, fabric: &Fabric, wire: &Wire) -> Rate {
    Rate::from_bytes_per_second(wire.rate.as_bytes_per_second() * fabric.capacity(link).0)
}

/// Links in the packet simulation. A node's link in is the last link of every path; its link out comes after the host's own
/// queue. The port of a half-duplex node is both, so that a frame has half of its latency after each of the two ports.
/// Frames that wait for a bus are held by the nodes.
fn links_of(fabric: &Fabric, wire: &Wire) -> Vec<PacketLink> {
    (0..fabric.link_count() as u32)
        .map(|number: u32| {
            let id = LinkId(number);
            let (is_of_node, is_shared) = (fabric.is_of_node(id), fabric.is_shared(id));
            let is_out = number.is_multiple_of(2) && !is_shared;
            let behind_ports = if is_shared {
                wire.latency * 0.5
            } else {
                wire.latency
            };
            PacketLink::new(LinkKind {
                rate: rate_of(id, fabric, wire),
                segment: wire.protocol.segment,
                latency: if is_of_node && !is_out {
                    behind_ports
                } else {
                    fabric.link_latency(id)
                },
                queue: wire
                    .protocol
                    .queue
                    .filter(|_| !(is_of_node && is_out || fabric.is_bus(id))),
                burst: wire.protocol.burst,
            })
        })
        .collect()
}

/// Time of empty frames there and back, before anything else is in flight.
fn opening(path: &FlowPath, links: &[PacketLink], fabric: &Fabric, wire: &Wire) -> Picos {
    let ways = path.data_in_order().chain(path.acknowledgements_in_order());
    ways.fold(Picos::from_time(wire.latency * 2.0), |sum, link| {
        sum + links[link.index()].lone_ack() + Picos::from_time(fabric.link_latency(link))
    })
}
