//! The naive engine: one event for each frame and link and for each timer, all in one heap. The fast engine, which has only
//! one event for each link, must give the same completions for random patterns, protocols and queues.

use std::{cmp::Reverse, collections::BinaryHeap};

use proptest::prelude::*;

use super::{
    connection::PacketConnection, frame::Frame, link::PacketLink, picos::Picos, routes::END, *,
};
use flowcast_network::{
    cluster::{flow::Flow, racks::Racks},
    network::Duplex,
    sharing::{
        fabric::{AllocatedFraction, BusShare, Cabling},
        protocol::{Congestion, SHORTEST_TIMEOUT},
    },
};
use flowcast_units::Node;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReferenceEvent {
    Leaves(u64),
    Timer,
}

/// Time, link (for a timer, the number of links), connection of a timer, sequence number, event.
type Queued = (Picos, usize, usize, usize, ReferenceEvent);

struct Reference {
    links: Vec<PacketLink>,
    free: Vec<Picos>,
    routes: Routes,
    connections: Vec<PacketConnection>,
    frames: Vec<Frame>,
    queue: BinaryHeap<Reverse<Queued>>,
    sequence: usize,
    jitter: Option<Jitter>,
    hops: u64,
    dropped: u64,
}

impl Reference {
    fn push(&mut self, at: Picos, lane: usize, connection: usize, event: ReferenceEvent) {
        self.sequence += 1;
        self.queue
            .push(Reverse((at, lane, connection, self.sequence, event)));
    }

    fn run(&mut self) {
        for connection in 0..self.connections.len() {
            self.set_timer(connection);
        }
        while let Some(Reverse((now, _, connection, _, event))) = self.queue.pop() {
            match event {
                ReferenceEvent::Leaves(frame) => self.leave(now, self.frames[frame as usize]),
                ReferenceEvent::Timer if self.connections[connection].deadline() == now => {
                    let (packet, ack) = self.connections[connection].expire(now);
                    packet
                        .into_iter()
                        .chain(ack)
                        .for_each(|frame| self.join(now, frame));
                    self.send(now, connection);
                    self.set_timer(connection);
                }
                ReferenceEvent::Timer => {}
            }
        }
    }

    fn set_timer(&mut self, connection: usize) {
        let deadline = self.connections[connection].deadline();
        if deadline < Picos::NEVER {
            self.push(
                deadline,
                self.links.len(),
                connection,
                ReferenceEvent::Timer,
            );
        }
    }

    fn send(&mut self, now: Picos, connection: usize) {
        while let Some(frame) = self.connections[connection].send(now) {
            self.join(now, frame);
        }
    }

    fn join(&mut self, now: Picos, frame: Frame) {
        let (connection, link) = (
            frame.connection() as usize,
            self.routes.at(frame.route(), frame.hop()) as usize,
        );
        let payload = match frame.is_ack() {
            true => Bytes(0),
            false => self.connections[connection]
                .stream
                .payload(self.connections[connection].packet(frame)),
        };
        let service = self.links[link].service(payload);
        self.hops += 1;
        let is_first = frame.hop() == 0;
        let admitted = match is_first {
            true => Some(self.links[link].admit_own(now, service)),
            false => self.links[link].admit(now, service),
        };
        match admitted {
            Some(mut departure) => {
                if let Some(jitter) = self.jitter.as_mut() {
                    let later = if is_first {
                        let next = self.links.get(self.routes.at(frame.route(), 1) as usize);
                        let wait = next.map_or(Picos::ZERO, |next| next.wait(departure));
                        jitter.of_frame(wait.min(self.links[link].full_frame()))
                    } else {
                        Picos::ZERO
                    };
                    departure = (departure + later).max(self.free[link] + Picos(1));
                }
                assert!(
                    departure > now && departure > self.free[link],
                    "frames leave in order, after they came"
                );
                self.free[link] = departure;
                self.frames.push(frame);
                self.push(
                    departure,
                    link,
                    0,
                    ReferenceEvent::Leaves(self.frames.len() as u64 - 1),
                );
            }
            None => self.dropped += 1,
        }
    }

    fn leave(&mut self, now: Picos, frame: Frame) {
        let connection = frame.connection() as usize;
        let next = self.routes.at(frame.route(), frame.hop() + 1);
        if next != END {
            self.join(now, frame.on_next_hop());
            let is_first_of_data = frame.hop() == 0 && !frame.is_ack();
            let connections = &mut self.connections;
            if is_first_of_data
                && connections[connection].has_small_queue()
                && connections[connection].leave_host()
            {
                self.send(now, connection);
                self.set_timer(connection);
            }
            return;
        }
        if frame.is_ack() {
            self.connections[connection].hear(now, frame);
            self.send(now, connection);
        } else if self.connections[connection].receive(now, frame) {
            let ack = self.connections[connection].ack();
            self.join(now, ack);
        }
        self.set_timer(connection);
    }
}

fn by_twin(messages: &[PacketMessage], fabric: &Fabric, wire: &Wire) -> CarriedPackets {
    let plan = Plan::new(messages, fabric, wire, Rounds::once()).unwrap();
    let links = plan.links();
    let mut twin = Reference {
        free: vec![Picos::ZERO; links.len()],
        links,
        routes: plan.routes().unwrap(),
        connections: plan.connections(),
        frames: Vec::new(),
        queue: BinaryHeap::new(),
        sequence: 0,
        jitter: plan.jitter(),
        hops: 0,
        dropped: 0,
    };
    twin.run();
    let mut carried = CarriedPackets {
        completions: messages
            .iter()
            .map(|message| FlowCompletion {
                end: message.start,
                ..FlowCompletion::default()
            })
            .collect(),
        intervals: vec![Vec::new(); messages.len()],
        packet_hops: twin.hops,
        dropped: twin.dropped,
        detoured: Vec::new(),
    };
    for mut connection in twin.connections {
        while let Some((message, completion)) = connection.stream.take_completion() {
            carried.completions[message] = completion;
        }
        connection
            .stream
            .into_intervals()
            .for_each(|(message, intervals)| carried.intervals[message] = intervals);
    }
    carried
}

/// Long flows among eight nodes, without random times.
fn long_patterns() -> impl Strategy<Value = (Vec<PacketMessage>, Fabric, Wire)> {
    let times = prop::sample::select(vec![1u64, 10, 40]);
    (patterns(), wires(), times).prop_map(|((mut messages, fabric), wire, times)| {
        messages
            .iter_mut()
            .for_each(|message| message.size = Bytes(message.size.0 * times));
        (messages, fabric, Wire { seed: None, ..wire })
    })
}

/// Flows among eight nodes in two racks, with sizes from 0 to 400 kB, over full-duplex or half-duplex ports and perhaps
/// buses of three nodes.
pub(super) fn patterns() -> impl Strategy<Value = (Vec<PacketMessage>, Fabric)> {
    let flow = (
        0u32..8,
        1u32..8,
        prop_oneof![0u64..4000, 4000u64..400_000],
        0u32..40,
    );
    let duplex = prop::sample::select(vec![Duplex::Full, Duplex::Half]);
    let rates = (prop::option::of(0.5f64..4.0), prop::option::of(0.5f64..2.0));
    (prop::collection::vec(flow, 1..10), rates, duplex).prop_map(
        |(flows, (backbone, bus), duplex)| {
            let flow = |(id, (src, other, size, start)): (u32, &(u32, u32, u64, u32))| Flow {
                id,
                src: Node(*src),
                dst: Node((src + other) % 8),
                size: Bytes(*size),
                start: Time::from_micros(f64::from(*start) * 500.0),
            };
            let flows: Vec<Flow> = (1..).zip(&flows).map(flow).collect();
            let mut racks = Racks::default();
            racks.place(Node(0), Node(3), "A").unwrap();
            racks.place(Node(4), Node(7), "B").unwrap();
            let messages = flows
                .iter()
                .map(|flow| PacketMessage {
                    start: flow.start,
                    size: flow.size,
                })
                .collect();
            let bus = bus.map(|capacity| BusShare {
                nodes: Some(3),
                capacity: AllocatedFraction(capacity),
            });
            (
                messages,
                Fabric::cabled(
                    &flows,
                    &racks,
                    Cabling {
                        backbone: backbone.map(AllocatedFraction),
                        duplex,
                        bus,
                    },
                ),
            )
        },
    )
}

fn protocols() -> impl Strategy<Value = Protocol> {
    let congestion = prop::sample::select(vec![
        Congestion::Fixed,
        Congestion::Reno,
        Congestion::Cubic,
        Congestion::Bbr,
    ]);
    let windows = (
        1448u64..300_000,
        1448u64..30_000,
        prop::option::of(1538u64..60_000),
    );
    let (segments, bursts) = (
        prop::sample::select(vec![524, 1448, 8948]),
        prop::sample::select(vec![0, 3000]),
    );
    let frames = (segments, bursts);
    (congestion, frames, windows, any::<(bool, bool, bool)>()).prop_map(
        |(congestion, frames, windows, flags)| {
            let (segment, burst) = frames;
            let (window, first, queue): (u64, u64, Option<u64>) = windows;
            let (window, first) = (window.max(segment), first.max(segment));
            let queue = queue.map(|queue| queue.max(segment + FRAME_OVERHEAD));
            Protocol {
                send_buffer: None,
                congestion,
                segment: Bytes(segment),
                burst: Bytes(burst),
                window: Bytes(window),
                first_window: Bytes(first),
                queue: queue.map(Bytes),
                connections: if flags.0 {
                    Connections::Pair
                } else {
                    Connections::Each
                },
                shortest_timeout: SHORTEST_TIMEOUT,
                idle_restart: flags.1,
                warm_ups: 0,
                small_queues: flags.2,
                jitter: Time::from_micros(200.0),
                noise: 0.0,
                most_packets: u64::MAX,
            }
        },
    )
}

pub(super) fn wires() -> impl Strategy<Value = Wire> {
    (
        1e6f64..1e8,
        0.0f64..2e5,
        protocols(),
        prop::option::of(any::<u64>()),
    )
        .prop_map(|(rate, latency, protocol, seed)| Wire {
            rate: Rate::from_bytes_per_second(rate.round()),
            latency: Time::from_nanos(latency.round()),
            protocol,
            seed,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_tournament_of_links_does_not_change_results((messages, fabric) in patterns(), wire in wires()) {
        prop_assert_eq!(simulate(&messages, &fabric, &wire).unwrap(), by_twin(&messages, &fabric, &wire));
    }

    #[test]
    fn skipped_periods_do_not_change_results((messages, fabric, wire) in long_patterns()) {
        prop_assert_eq!(simulate(&messages, &fabric, &wire).unwrap(), by_twin(&messages, &fabric, &wire));
    }

    #[test]
    fn every_byte_arrives_once_despite_losses((messages, fabric) in patterns(), wire in wires()) {
        let carried = simulate(&messages, &fabric, &wire).unwrap();
        for (message, (completion, intervals)) in messages.iter().zip(carried.completions.iter().zip(&carried.intervals)) {
            let came: f64 =
                intervals.iter().map(|i| (i.to - i.from).as_seconds() * i.share.0 * wire.rate.as_bytes_per_second()).sum();
            // Data that arrive at the same instant as the end of the message before take no time of their own.
            let at_once = intervals.is_empty() && carried.completions.iter().filter(|p| p.end == completion.end).count() > 1;
            // Within a picosecond, in which tokens let packets through, a rate is known less exactly.
            let digits = if wire.protocol.burst == Bytes(0) { 1e-6 } else { 1e-5 };
            prop_assert!(at_once || (came - message.size.0 as f64).abs() < 1e-3 + digits * message.size.0 as f64);
            prop_assert!(completion.end >= message.start);
            let least = wire.rate.time_for(message.size);
            let tokens = wire.rate.time_for(wire.protocol.burst) * 4.0;
            prop_assert!((completion.duration + tokens).as_nanos() + 1.0 >= least.as_nanos());
        }
        prop_assert_eq!(carried, simulate(&messages, &fabric, &wire).unwrap());
    }
}
