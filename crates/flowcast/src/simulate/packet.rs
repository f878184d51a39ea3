//! The closed loop packet by packet: windows, first-in-first-out links and acknowledgements, without loss.
//!
//! Each link (node out, node in, rack up, rack down) serves frames one after the other at its wire rate. A data frame
//! carries up to 1448 bytes and is 90 bytes longer; the receiver answers every second packet and the last with an
//! acknowledgement of 90 bytes, which goes back through the same kind of queues. A flow keeps at most a window of W
//! bytes in flight; its congestion window starts at 10 packets and doubles in each round trip up to W.
//!
//! `closed_loop` is the fluid limit of this; it is the slow twin, and the choice for messages of few windows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::fluid::{Interval, Passage};
use crate::model::sharing::fabric::{Fabric, Limit, LinkId, Path, Share};
use crate::units::{Bytes, Rate, Time};

/// Payload of a full packet.
pub const SEGMENT: u64 = 1448;
/// What a frame has beside its payload: headers, preamble, gap.
pub const FRAME_OVERHEAD: u64 = 90;
/// Packets in flight at the start.
const FIRST_WINDOW: u64 = 10;
/// An acknowledgement answers so many packets.
const PACKETS_PER_ANSWER: u32 = 2;
/// A flow's progress is noted so many times.
const NOTES: u64 = 32;

/// Links and windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wire {
    /// Bytes per second of an interface, frames included.
    pub rate: Rate,
    /// Time from the last link to the other side.
    pub latency: Time,
    /// Most bytes that a flow keeps in flight.
    pub window: Bytes,
}

/// One message to be carried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message {
    /// When it starts.
    pub start: Time,
    /// Its size.
    pub size: Bytes,
}

/// What became of the messages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Carried {
    /// By message.
    pub passages: Vec<Passage>,
    /// Average shares over 1/32 of each message.
    pub intervals: Vec<Vec<Interval>>,
    /// Frames times links crossed.
    pub packet_hops: u64,
}

/// Carries all messages over the ways of the fabric.
pub fn simulate(messages: &[Message], fabric: &Fabric, wire: Wire) -> Carried {
    let mut engine = Engine::new(messages, fabric, wire);
    engine.run();
    engine.carried
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start,
    /// A packet comes to the hop of this number, with so many bytes.
    Data {
        hop: u8,
        bytes: u32,
    },
    /// An acknowledgement of all bytes up to here comes to a hop.
    Answer {
        hop: u8,
        up_to: u64,
    },
}

struct Connection {
    data: Vec<LinkId>,
    answers: Vec<LinkId>,
    start: f64,
    size: u64,
    sent: u64,
    acknowledged: u64,
    arrived: u64,
    unanswered: u32,
    window: u64,
    noted_at: f64,
    noted: u64,
}

/// Time in nanoseconds as ordered bits, sequence number, connection, event.
type Queued = Reverse<(u64, u64, u32, Event)>;

struct Engine {
    connections: Vec<Connection>,
    /// Nanoseconds per byte of each link, and when it is free.
    links: Vec<(f64, f64)>,
    wire: Wire,
    queue: BinaryHeap<Queued>,
    sequence: u64,
    carried: Carried,
}

impl Engine {
    fn new(messages: &[Message], fabric: &Fabric, wire: Wire) -> Engine {
        let per_byte = 1e9 / wire.rate.as_bytes_per_second();
        let link = |link: u32| (per_byte / fabric.capacity(LinkId(link)).0, 0.0);
        let mut engine = Engine {
            connections: messages.iter().zip(&fabric.paths).map(|(message, path)| connection(message, path)).collect(),
            links: (0..fabric.link_count() as u32).map(link).collect(),
            wire,
            queue: BinaryHeap::new(),
            sequence: 0,
            carried: Carried {
                passages: messages.iter().map(|message| Passage { end: message.start, ..Passage::default() }).collect(),
                intervals: vec![Vec::new(); messages.len()],
                packet_hops: 0,
            },
        };
        for (flow, message) in messages.iter().enumerate().filter(|(_, message)| message.size.0 > 0) {
            engine.push(message.start.as_nanos(), flow, Event::Start);
        }
        engine
    }

    fn push(&mut self, at: f64, flow: usize, event: Event) {
        self.sequence += 1;
        // The bits of floats that are not negative have the order of their values.
        self.queue.push(Reverse((at.to_bits(), self.sequence, flow as u32, event)));
    }

    fn run(&mut self) {
        while let Some(Reverse((at, _, flow, event))) = self.queue.pop() {
            let (now, flow) = (f64::from_bits(at), flow as usize);
            match event {
                Event::Start => self.send(now, flow),
                Event::Data { hop, bytes } => match self.connections[flow].data.get(hop as usize) {
                    Some(link) => {
                        let done = self.serve(*link, now, u64::from(bytes) + FRAME_OVERHEAD, self.is_last(flow, hop));
                        self.push(done, flow, Event::Data { hop: hop + 1, bytes });
                    }
                    None => self.receive(now, flow, u64::from(bytes)),
                },
                Event::Answer { hop, up_to } => match self.connections[flow].answers.get(hop as usize) {
                    Some(link) => {
                        let done = self.serve(*link, now, FRAME_OVERHEAD, self.is_last(flow, hop));
                        self.push(done, flow, Event::Answer { hop: hop + 1, up_to });
                    }
                    None => self.acknowledge(now, flow, up_to),
                },
            }
        }
    }

    fn is_last(&self, flow: usize, hop: u8) -> LastHop {
        if hop as usize + 1 == self.connections[flow].data.len() { LastHop::Yes } else { LastHop::No }
    }

    /// When a frame that comes to a link now has left it, and the cable behind the last.
    fn serve(&mut self, link: LinkId, now: f64, bytes: u64, last: LastHop) -> f64 {
        self.carried.packet_hops += 1;
        let (per_byte, free) = &mut self.links[link.index()];
        *free = free.max(now) + *per_byte * bytes as f64;
        match last {
            LastHop::Yes => *free + self.wire.latency.as_nanos(),
            LastHop::No => *free,
        }
    }

    fn send(&mut self, now: f64, flow: usize) {
        loop {
            let connection = &self.connections[flow];
            let bytes = SEGMENT.min(connection.size - connection.sent);
            let in_flight = connection.sent - connection.acknowledged;
            if bytes == 0 || (in_flight > 0 && in_flight + bytes > connection.window.min(self.wire.window.0)) {
                return;
            }
            let (link, last) = (connection.data[0], self.is_last(flow, 0));
            self.connections[flow].sent += bytes;
            let done = self.serve(link, now, bytes + FRAME_OVERHEAD, last);
            self.push(done, flow, Event::Data { hop: 1, bytes: bytes as u32 });
        }
    }

    fn receive(&mut self, now: f64, flow: usize, bytes: u64) {
        let connection = &mut self.connections[flow];
        connection.arrived += bytes;
        connection.unanswered += 1;
        let (arrived, is_whole) = (connection.arrived, connection.arrived == connection.size);
        if is_whole || connection.unanswered == PACKETS_PER_ANSWER {
            connection.unanswered = 0;
            self.push(now, flow, Event::Answer { hop: 0, up_to: arrived });
        }
        if is_whole || (arrived - self.connections[flow].noted) * NOTES >= self.connections[flow].size {
            self.note(now, flow);
        }
        if is_whole {
            let duration = Time::from_nanos(now - self.connections[flow].start);
            self.carried.passages[flow] = Passage { end: Time::from_nanos(now), duration };
        }
    }

    fn note(&mut self, now: f64, flow: usize) {
        let connection = &mut self.connections[flow];
        let rate = (connection.arrived - connection.noted) as f64 * 1e9 / (now - connection.noted_at);
        self.carried.intervals[flow].push(Interval {
            from: Time::from_nanos(connection.noted_at),
            to: Time::from_nanos(now),
            share: Share(rate / self.wire.rate.as_bytes_per_second()),
            limit: Limit::Queues,
        });
        (connection.noted_at, connection.noted) = (now, connection.arrived);
    }

    fn acknowledge(&mut self, now: f64, flow: usize, up_to: u64) {
        let connection = &mut self.connections[flow];
        connection.window = (connection.window + up_to - connection.acknowledged).min(self.wire.window.0);
        connection.acknowledged = up_to;
        self.send(now, flow);
    }
}

#[derive(Clone, Copy)]
enum LastHop {
    Yes,
    No,
}

fn connection(message: &Message, path: &Path) -> Connection {
    Connection {
        data: path.data_in_order().collect(),
        answers: path.acknowledgements_in_order().collect(),
        start: message.start.as_nanos(),
        size: message.size.0,
        sent: 0,
        acknowledged: 0,
        arrived: 0,
        unanswered: 0,
        window: FIRST_WINDOW * SEGMENT,
        noted_at: message.start.as_nanos(),
        noted: 0,
    }
}
