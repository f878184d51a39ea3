//! The slow and evident engine for fixed windows and queues without limit: one event for each frame and link, all in one
//! heap, every link a rate and a time at which it is free. The fast engine has to give the same times to the picosecond.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::picos::Picos;
use super::receiver::LONGEST_DELAY;
use super::{Carried, FRAME_OVERHEAD, Message, Wire, travel};
use flowcast_model::sharing::completion::{FlowCompletion, Interval};
use flowcast_model::sharing::fabric::{Fabric, Limit, LinkId, Path, Share};
use flowcast_units::Bytes;

const PACKETS_PER_ACK: u32 = 2;
const NOTES: u64 = 32;

/// Carries all messages over the ways of the fabric.
pub(super) fn simulate(messages: &[Message], fabric: &Fabric, wire: &Wire) -> Carried {
    let mut engine = Reference::new(messages, fabric, wire);
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
    Ack {
        hop: u8,
        up_to: u64,
    },
    /// A held-back ACK to the packet that made so many bytes is due.
    Due {
        arrived: u64,
    },
}

struct Connection {
    data: Vec<u32>,
    acks: Vec<u32>,
    start: Picos,
    size: u64,
    sent: u64,
    acknowledged: u64,
    arrived: u64,
    unacknowledged: u32,
    window: u64,
    noted_at: Picos,
    noted: u64,
}

/// Time, the link that a frame comes from (or the number of links), the connection if it is a timer, sequence number.
type Queued = Reverse<(Picos, u32, u32, u64, u32, Event)>;

struct Reference {
    connections: Vec<Connection>,
    /// Picoseconds per byte of each link, and when it is free.
    links: Vec<(f64, Picos)>,
    window: u64,
    segment: u64,
    wire: Wire,
    queue: BinaryHeap<Queued>,
    sequence: u64,
    carried: Carried,
}

impl Reference {
    fn new(messages: &[Message], fabric: &Fabric, wire: &Wire) -> Reference {
        let rate = wire.rate.as_bytes_per_second();
        let link = |link: u32| (1e12 / (rate * fabric.capacity(LinkId(link)).0), Picos::ZERO);
        let mut engine = Reference {
            connections: messages.iter().zip(&fabric.paths).map(|(m, path)| connection(m, path, wire)).collect(),
            links: (0..fabric.link_count() as u32).map(link).collect(),
            window: whole_packets(wire.protocol.window, wire),
            segment: wire.protocol.segment.0,
            wire: *wire,
            queue: BinaryHeap::new(),
            sequence: 0,
            carried: Carried {
                completions: messages
                    .iter()
                    .map(|message| FlowCompletion { end: message.start, ..FlowCompletion::default() })
                    .collect(),
                intervals: vec![Vec::new(); messages.len()],
                ..Carried::default()
            },
        };
        for (flow, message) in messages.iter().enumerate().filter(|(_, message)| message.size.0 > 0) {
            engine.set_timer(Picos::from_time(message.start), flow, Event::Start);
        }
        engine
    }

    fn push(&mut self, at: Picos, link: u32, flow: usize, event: Event) {
        self.sequence += 1;
        self.queue.push(Reverse((at, link, 0, self.sequence, flow as u32, event)));
    }

    fn set_timer(&mut self, at: Picos, flow: usize, event: Event) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.links.len() as u32, flow as u32, self.sequence, flow as u32, event)));
    }

    fn run(&mut self) {
        while let Some(Reverse((now, _, _, _, flow, event))) = self.queue.pop() {
            let flow = flow as usize;
            match event {
                Event::Start => self.send(now, flow),
                Event::Data { hop, bytes } => match self.connections[flow].data.get(hop as usize).copied() {
                    Some(link) => {
                        let done = self.serve(link, now, u64::from(bytes), self.is_last(flow, hop));
                        self.push(done, link, flow, Event::Data { hop: hop + 1, bytes });
                    }
                    None => self.receive(now, flow, u64::from(bytes)),
                },
                Event::Ack { hop, up_to } => match self.connections[flow].acks.get(hop as usize).copied() {
                    Some(link) => {
                        let done = self.serve(link, now, 0, self.is_last(flow, hop));
                        self.push(done, link, flow, Event::Ack { hop: hop + 1, up_to });
                    }
                    None => self.acknowledge(now, flow, up_to),
                },
                Event::Due { arrived } => {
                    let connection = &mut self.connections[flow];
                    if connection.arrived == arrived && connection.unacknowledged > 0 {
                        self.ack(now, flow);
                    }
                }
            }
        }
    }

    fn is_last(&self, flow: usize, hop: u8) -> LastHop {
        if hop as usize + 1 == self.connections[flow].data.len() { LastHop::Yes } else { LastHop::No }
    }

    /// When a frame that comes to a link now has left it, and the cable behind the last.
    fn serve(&mut self, link: u32, now: Picos, payload: u64, last: LastHop) -> Picos {
        self.carried.packet_hops += 1;
        let (per_byte, free) = &mut self.links[link as usize];
        *free = (*free).max(now) + Picos(((*per_byte * (payload + FRAME_OVERHEAD) as f64).round() as u64).max(1));
        match last {
            LastHop::Yes => *free + Picos::from_time(self.wire.latency),
            LastHop::No => *free,
        }
    }

    fn send(&mut self, now: Picos, flow: usize) {
        loop {
            let connection = &self.connections[flow];
            let bytes = self.segment.min(connection.size - connection.sent);
            let in_flight = connection.sent - connection.acknowledged;
            if bytes == 0 || in_flight + self.segment > connection.window.min(self.window) {
                return;
            }
            let (link, last) = (connection.data[0], self.is_last(flow, 0));
            self.connections[flow].sent += bytes;
            let done = self.serve(link, now, bytes, last);
            self.push(done, link, flow, Event::Data { hop: 1, bytes: bytes as u32 });
        }
    }

    fn receive(&mut self, now: Picos, flow: usize, bytes: u64) {
        let connection = &mut self.connections[flow];
        connection.arrived += bytes;
        connection.unacknowledged += 1;
        let (arrived, is_whole) = (connection.arrived, connection.arrived == connection.size);
        if is_whole || connection.unacknowledged == PACKETS_PER_ACK {
            self.ack(now, flow);
        } else {
            self.set_timer(now + LONGEST_DELAY, flow, Event::Due { arrived });
        }
        if is_whole || (arrived - self.connections[flow].noted) * NOTES >= self.connections[flow].size {
            self.note(now, flow);
        }
        if is_whole {
            let duration = (now - self.connections[flow].start).to_time();
            self.carried.completions[flow] = FlowCompletion { end: now.to_time(), duration };
        }
    }

    fn ack(&mut self, now: Picos, flow: usize) {
        let connection = &mut self.connections[flow];
        connection.unacknowledged = 0;
        let (up_to, link) = (connection.arrived, connection.acks[0]);
        let done = self.serve(link, now, 0, self.is_last(flow, 0));
        self.push(done, link, flow, Event::Ack { hop: 1, up_to });
    }

    fn note(&mut self, now: Picos, flow: usize) {
        let connection = &mut self.connections[flow];
        let rate = (connection.arrived - connection.noted) as f64 / (now - connection.noted_at).as_seconds();
        self.carried.intervals[flow].push(Interval {
            from: connection.noted_at.to_time(),
            to: now.to_time(),
            share: Share(rate / self.wire.rate.as_bytes_per_second()),
            limit: Limit::Queues,
        });
        (connection.noted_at, connection.noted) = (now, connection.arrived);
    }

    fn acknowledge(&mut self, now: Picos, flow: usize, up_to: u64) {
        let window = self.window;
        let connection = &mut self.connections[flow];
        connection.window = (connection.window + up_to - connection.acknowledged).min(window);
        connection.acknowledged = up_to;
        self.send(now, flow);
    }
}

#[derive(Clone, Copy)]
enum LastHop {
    Yes,
    No,
}

fn connection(message: &Message, path: &Path, wire: &Wire) -> Connection {
    let hops = path.data().len();
    let start = Picos::from_time(message.start);
    Connection {
        data: travel(path.data_in_order())[..hops].to_vec(),
        acks: travel(path.acknowledgements_in_order())[..hops].to_vec(),
        start,
        size: message.size.0,
        sent: 0,
        acknowledged: 0,
        arrived: 0,
        unacknowledged: 0,
        window: whole_packets(wire.protocol.first_window, wire),
        noted_at: start,
        noted: 0,
    }
}

fn whole_packets(bytes: Bytes, wire: &Wire) -> u64 {
    bytes.0 / wire.protocol.segment.0 * wire.protocol.segment.0
}
