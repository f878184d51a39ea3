//! Events in time order: frames that leave links, and timers of connections.
//!
//! A tournament finds the earliest event. It contains the first departure of each link and the first timer of all
//! connections. A frame that leaves a link joins the next link of its path or arrives at one of the ends, which send new
//! frames. Events at equal times are ordered by link number, then timers by connection.

mod periods;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use super::{
    connection::PacketConnection,
    frame::Frame,
    jitter::Jitter,
    link::PacketLink,
    picos::Picos,
    routes::{END, Routes},
};
use crate::queues::{KeyQueue, tournament::Tournament};
use flowcast_network::sharing::{completion::FlowCompletion, fabric::Fabric};
use flowcast_units::Bytes;
use periods::EngineNotes;

/// The network with its connections.
pub(super) struct PacketEngine {
    pub(super) links: Vec<PacketLink>,
    pub(super) routes: Routes,
    pub(super) connections: Vec<PacketConnection>,
    /// Connection of the opposite direction, whose data carry the ACKs, indexed by connection; the connection itself if
    /// there is none.
    others: Vec<u32>,
    events: Tournament,
    timers: BinaryHeap<Reverse<(Picos, u32)>>,
    first_timer: Picos,
    /// Earliest timer of each connection in `timers`; its other entries there are stale.
    scheduled: Vec<Picos>,
    jitter: Option<Jitter>,
    /// `true` if senders must know which packets have left their own interface.
    has_small_queues: bool,
    /// Messages that have arrived, with their numbers.
    pub(super) arrived: VecDeque<(usize, FlowCompletion)>,
    /// Messages whose unacknowledged rest is in the send buffer, each with the time at which it fitted in.
    pub(super) held: VecDeque<(usize, Picos)>,
    /// Notes for the search for steady states, during a search.
    noted: Option<EngineNotes>,
}

impl PacketEngine {
    pub(super) fn new(
        links: Vec<PacketLink>,
        routes: Routes,
        connections: Vec<PacketConnection>,
        jitter: Option<Jitter>,
    ) -> PacketEngine {
        let mut engine = PacketEngine {
            events: Tournament::new(links.len() as u32 + 1),
            timers: BinaryHeap::new(),
            first_timer: Picos::NEVER,
            scheduled: vec![Picos::NEVER; connections.len()],
            has_small_queues: connections.iter().any(PacketConnection::has_small_queue),
            links,
            routes,
            others: (0..connections.len() as u32).collect(),
            connections,
            jitter,
            arrived: VecDeque::new(),
            held: VecDeque::new(),
            noted: None,
        };
        for connection in 0..engine.connections.len() {
            engine.schedule(connection);
        }
        engine
    }

    /// Number of link crossings by frames so far.
    pub(super) fn packet_hops(&self) -> u64 {
        self.links.iter().map(|link| link.carried).sum()
    }

    /// Number of frames that were dropped at full queues.
    pub(super) fn dropped(&self) -> u64 {
        self.links.iter().map(|link| link.dropped).sum()
    }

    /// Runs until nothing is in flight.
    pub(super) fn run(&mut self) {
        while self.step() {}
    }

    /// Executes the next event; `false` if there is none.
    #[inline]
    pub(super) fn step(&mut self) -> bool {
        let (now, lane) = self.first();
        if now == Picos::NEVER {
            return false;
        }
        if lane < self.links.len() {
            self.leave(now, lane)
        } else {
            self.expire(now)
        }
        true
    }

    /// Time of the earliest event, [`Picos::NEVER`] if there is none, and its link, or the number after the last link for a
    /// timer.
    #[inline]
    fn first(&self) -> (Picos, usize) {
        let key = self.events.least();
        (Picos((key >> 64) as u64), key as u32 as usize)
    }

    /// Sets the time of the first event of a link, or of the timers.
    #[inline]
    fn set(&mut self, lane: usize, at: Picos) {
        self.events
            .set(lane as u32, u128::from(at.0) << 64 | lane as u128);
    }

    /// Time of the next event.
    pub(super) fn next_event(&self) -> Picos {
        self.first().0
    }

    /// Adds a connection that carries a flow of the fabric.
    pub(super) fn connect(&mut self, connection: PacketConnection, fabric: &Fabric, flow: usize) {
        self.has_small_queues |= connection.has_small_queue();
        self.others.push(self.connections.len() as u32);
        self.connections.push(connection);
        self.routes.push(fabric, flow);
        self.scheduled.push(Picos::NEVER);
    }

    /// Pairs two connections as the two directions of one: data of each carry ACKs of the other.
    pub(super) fn pair(&mut self, there: usize, back: usize) {
        (self.others[there], self.others[back]) = (back as u32, there as u32);
    }

    /// Writes a message to a connection. Returns `false` if no packet numbers are left.
    pub(super) fn write(
        &mut self,
        now: Picos,
        connection: usize,
        message: usize,
        size: Bytes,
    ) -> bool {
        let has_numbers = self.connections[connection].write(now, message, size);
        self.send(now, connection);
        self.hold(now, connection);
        self.schedule(connection);
        has_numbers
    }

    #[inline]
    fn leave(&mut self, now: Picos, lane: usize) {
        let (frame, next) = self.links[lane].pop();
        self.set(lane, next);
        let hop = frame.hop() + 1;
        let link = self.routes.at(frame.route(), hop);
        if link == END {
            return self.arrive(now, frame);
        }
        self.join(now, link, frame.on_next_hop());
        let connection = frame.connection() as usize;
        if self.has_small_queues
            && hop == 1
            && !frame.is_ack()
            && self.connections[connection].leave_host()
        {
            self.send(now, connection);
            self.schedule(connection);
        }
    }

    #[inline]
    fn join(&mut self, now: Picos, link: u32, frame: Frame) {
        let connection = &self.connections[frame.connection() as usize];
        let at = &mut self.links[link as usize];
        let service = if frame.is_ack() {
            at.ack()
        } else if frame.is_last() {
            at.service(connection.stream.payload(connection.packet(frame)))
        } else {
            at.full_frame()
        };
        at.carried += 1;
        let is_first = frame.hop() == 0;
        let admitted = if is_first {
            Some(at.admit_own(now, service))
        } else {
            at.admit(now, service)
        };
        let Some(mut departure) = admitted else {
            at.dropped += 1;
            return;
        };
        if let Some(jitter) = self.jitter.as_mut() {
            // Frames over a shared port stay behind those that its host has delayed.
            let later = if is_first {
                let full = at.full_frame();
                let next = self.routes.at(frame.route(), 1);
                let next = self.links.get(next as usize);
                jitter.of_frame(next.map_or(Picos::ZERO, |next| next.wait(departure).min(full)))
            } else {
                Picos::ZERO
            };
            departure = self.links[link as usize].put_off(departure, later);
        }
        let at = &mut self.links[link as usize];
        if at.push(departure, frame) {
            self.set(link as usize, departure);
        }
    }

    #[inline]
    fn arrive(&mut self, now: Picos, frame: Frame) {
        let connection = frame.connection() as usize;
        if frame.is_ack() {
            self.hear(now, connection, frame);
        } else {
            if let Some(noted) = &mut self.noted {
                noted.arrive(now, connection);
            }
            let is_due = self.connections[connection].receive(now, frame);
            while let Some(message) = self.connections[connection].stream.take_completion() {
                self.arrived.push_back(message);
                self.change(connection);
            }
            let has_answered = self.hear_carried(now, connection, frame);
            if is_due && !has_answered {
                let ack = self.connections[connection].ack();
                self.start(now, ack);
            }
        }
        self.schedule(connection);
    }

    /// Notes that a message of a connection has begun or ended.
    fn change(&mut self, connection: usize) {
        if let Some(noted) = &mut self.noted {
            noted.change(connection);
        }
    }

    #[inline]
    fn hear(&mut self, now: Picos, connection: usize, ack: Frame) -> bool {
        self.connections[connection].hear(now, ack);
        let has_sent = self.send(now, connection);
        self.hold(now, connection);
        has_sent
    }

    /// Passes the ACK in a data frame of one direction to the sender of the other. Returns `true` if that sender then sends
    /// data, which also carry an ACK.
    #[inline]
    fn hear_carried(&mut self, now: Picos, connection: usize, frame: Frame) -> bool {
        let other = self.others[connection];
        if other as usize == connection {
            return false;
        }
        let Some(ack) = self.connections[connection].carried(frame, other) else {
            return false;
        };
        let has_sent = self.hear(now, other as usize, ack);
        self.schedule(other as usize);
        has_sent
    }

    /// Sends all packets that may go now. Returns `true` if there were any.
    #[inline]
    fn send(&mut self, now: Picos, connection: usize) -> bool {
        let mut has_sent = false;
        while let Some(frame) = self.connections[connection].send(now) {
            self.start_data(now, frame);
            has_sent = true;
        }
        has_sent
    }

    #[inline]
    fn start_data(&mut self, now: Picos, frame: Frame) {
        let connection = frame.connection() as usize;
        let other = self.others[connection] as usize;
        if other != connection {
            let ack = self.connections[other].ride(now);
            self.connections[connection].carry(frame, ack);
        }
        if self.routes.have_choices() {
            self.routes
                .choose(now, connection, &self.links, &self.connections);
        }
        self.start(now, frame);
    }

    #[inline]
    fn hold(&mut self, now: Picos, connection: usize) {
        while let Some(message) = self.connections[connection].hold() {
            self.held.push_back((message, now));
        }
    }

    #[inline]
    fn start(&mut self, now: Picos, frame: Frame) {
        self.join(now, self.routes.at(frame.route(), 0), frame);
    }

    /// Schedules the timer of a connection. Postponed timers are not removed: they expire early and are scheduled again.
    #[inline]
    fn schedule(&mut self, connection: usize) {
        let deadline = self.connections[connection].deadline();
        if deadline < self.scheduled[connection] {
            self.scheduled[connection] = deadline;
            self.timers.push(Reverse((deadline, connection as u32)));
            if deadline < self.first_timer {
                self.first_timer = deadline;
                self.set(self.links.len(), deadline);
            }
        }
    }

    fn expire(&mut self, now: Picos) {
        let Some(Reverse((at, number))) = self.timers.pop() else {
            return;
        };
        // Timers that are scheduled in the meantime are not earlier, and are taken into account at the end.
        self.first_timer = at;
        let connection = number as usize;
        if self.scheduled[connection] == at {
            self.scheduled[connection] = Picos::NEVER;
            if self.connections[connection].deadline() <= now {
                let next_write = self.connections[connection].next_write();
                let (packet, ack) = self.connections[connection].expire(now);
                if self.connections[connection].next_write() != next_write {
                    self.change(connection);
                }
                packet
                    .into_iter()
                    .for_each(|frame| self.start_data(now, frame));
                ack.into_iter().for_each(|frame| self.start(now, frame));
                self.send(now, connection);
            }
            self.schedule(connection);
        }
        self.first_timer = self
            .timers
            .peek()
            .map_or(Picos::NEVER, |Reverse((at, _))| *at);
        self.set(self.links.len(), self.first_timer);
    }
}
