//! Messages of a program packet by packet: each pair of ranks has a connection that stays, and a sender that waits for
//! its receiver is told by a frame that queues like all others.
//!
//! Where the rates of [`Shared`](super::transit::Shared) hold from begin to end, here short messages pass the queues one
//! after the other, and what comes back waits behind what goes there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::concurrent::trace_wire;
use super::packet::live::{ConnectionId, Live};
use super::placement::Placement;
use super::transit::{Delivery, Departure, Handshake, Transit, transfers_of};
use crate::cluster::flow::Flow;
use crate::cluster::racks::Racks;
use crate::model::network::Network;
use crate::model::sharing::SharingError;
use crate::model::sharing::fabric::Fabric;
use crate::trace::program::Program;
use crate::trace::words::Op;
use crate::units::{Bytes, Node, Rank, Time};

/// Bytes of a message that offers another, or answers the offer.
const CONTROL: Bytes = Bytes(64);

/// Messages share queues.
pub struct Packets {
    live: Live,
    /// The connections of pairs of ranks: there at even places, back behind it.
    open: Vec<ConnectionId>,
    /// By slot: the place of the connection that it takes, if it leaves its node.
    of_slot: Vec<u32>,
    /// By ends: those of one-sided transfers.
    transfers: BTreeMap<(Node, Node), ConnectionId>,
    /// Messages that have departed, by place; places are used again.
    voyages: Vec<Voyage>,
    free: Vec<u32>,
    /// Places of those that are not yet written, by the time when they are, then by slot.
    coming: BinaryHeap<Reverse<(Time, u32, u32)>>,
    now: Time,
    latency: f64,
}

/// A message that has departed.
#[derive(Debug, Clone, Copy)]
struct Voyage {
    slot: u32,
    start: f64,
    size: Bytes,
    /// What is said before the data go.
    before: Handshake,
    there: ConnectionId,
    back: ConnectionId,
}

impl Packets {
    /// For the messages of a program on placed ranks.
    ///
    /// # Errors
    /// A parameter of the packet level out of range, or a topology that has no place for a node.
    pub fn new(program: &Program, placement: &Placement, network: &Network) -> Result<Packets, SharingError> {
        // Strands use the connections of their ranks.
        let sends = |stream: Rank| {
            program.ops(stream).filter_map(move |(_, op)| match op {
                Op::Send { slot, .. } => Some((slot, program.owner(stream), program.owner(program.receiver(slot)))),
                _ => None,
            })
        };
        let streams = (0..program.streams() as u32).map(Rank);
        let pairs = Pairs::of(program.messages() as usize, placement, streams.flat_map(sends));
        Packets::over(pairs, &transfers_of(program, placement), network)
    }

    /// For what ranks send in so many slots: slot, sender and receiver of each message.
    ///
    /// # Errors
    /// As [`Packets::new`].
    pub fn between(
        slots: usize,
        placement: &Placement,
        sends: impl Iterator<Item = (u32, Rank, Rank)>,
        network: &Network,
    ) -> Result<Packets, SharingError> {
        Packets::over(Pairs::of(slots, placement, sends), &[], network)
    }

    fn over(pairs: Pairs, transfers: &[Flow], network: &Network) -> Result<Packets, SharingError> {
        let flows: Vec<Flow> = pairs.flows.iter().chain(transfers).copied().collect();
        let fabric = Fabric::of(&flows, &Racks::default(), network)?;
        let wire = trace_wire(network)?;
        let mut live = Live::new(&fabric, wire);
        let mut open: Vec<ConnectionId> = fabric.paths.iter().map(|path| live.connect(path)).collect();
        let of_transfers = open.split_off(pairs.flows.len());
        let ends = transfers.iter().map(|flow| (flow.src, flow.dst));
        Ok(Packets {
            open,
            of_slot: pairs.of_slot,
            transfers: ends.zip(of_transfers).collect(),
            live,
            voyages: Vec::new(),
            free: Vec::new(),
            coming: BinaryHeap::new(),
            now: Time::ZERO,
            latency: network.nic.latency.as_nanos(),
        })
    }

    fn board(&mut self, voyage: Voyage) -> u32 {
        if let Some(place) = self.free.pop() {
            self.voyages[place as usize] = voyage;
            return place;
        }
        self.voyages.push(voyage);
        self.voyages.len() as u32 - 1
    }

    /// Writes what is next of a message: an offer, an answer, the data.
    fn write(&mut self, place: u32) -> Result<(), SharingError> {
        let voyage = self.voyages[place as usize];
        let (connection, size) = match voyage.before {
            Handshake::OfferAndAnswer => (voyage.there, CONTROL),
            Handshake::Answer => (voyage.back, CONTROL),
            Handshake::None => (voyage.there, voyage.size),
        };
        self.live.write(self.now, connection, place as usize, size)
    }

    /// Something has arrived: a message, or what was said before it.
    fn arrive(&mut self, place: u32, at: Time) -> Result<Option<Delivery>, SharingError> {
        let voyage = &mut self.voyages[place as usize];
        voyage.before = match voyage.before {
            Handshake::OfferAndAnswer => Handshake::Answer,
            Handshake::Answer => Handshake::None,
            Handshake::None => {
                let (slot, start, arrival) = (voyage.slot, voyage.start, at.as_nanos());
                self.free.push(place);
                return Ok(Some(Delivery { slot, start, arrival, left: arrival - self.latency }));
            }
        };
        self.write(place)?;
        Ok(None)
    }
}

impl Transit for Packets {
    const SHARED: bool = true;

    fn depart(&mut self, departure: Departure) {
        let Departure { slot, start, size, handshake, ends, .. } = departure;
        let (there, back) = match ends {
            Some(ends) => (self.transfers[&ends], self.transfers[&ends]),
            None => {
                let place = self.of_slot[slot as usize] as usize;
                (self.open[place], self.open[place ^ 1])
            }
        };
        let place = self.board(Voyage { slot, start, size, before: handshake, there, back });
        self.coming.push(Reverse((Time::from_nanos(start), slot, place)));
    }

    fn deliver(&mut self, limit: Option<Time>) -> Result<Option<Delivery>, SharingError> {
        loop {
            if let Some((place, passage)) = self.live.arrived() {
                match self.arrive(place as u32, passage.end)? {
                    Some(delivery) => return Ok(Some(delivery)),
                    None => continue,
                }
            }
            let start = self.coming.peek().map(|Reverse((time, ..))| *time);
            let event = self.live.next_event();
            let next = start.into_iter().chain(event).min();
            let Some(next) = next.filter(|next| limit.is_none_or(|limit| *next <= limit)) else { return Ok(None) };
            self.now = next.max(self.now);
            if event.is_some_and(|event| event <= self.now) {
                self.live.step();
            } else if let Some(Reverse((.., place))) = self.coming.pop() {
                self.write(place)?;
            }
        }
    }
}

/// Pairs of ranks on different nodes that exchange messages, each as two flows: there at even places, back behind it.
struct Pairs {
    flows: Vec<Flow>,
    /// By slot: the flow that it takes.
    of_slot: Vec<u32>,
}

impl Pairs {
    fn of(slots: usize, placement: &Placement, sends: impl Iterator<Item = (u32, Rank, Rank)>) -> Pairs {
        let mut pairs = Pairs { flows: Vec::new(), of_slot: vec![0; slots] };
        let mut known = BTreeMap::new();
        for (slot, rank, other) in sends {
            let (src, dst) = (placement.node(rank), placement.node(other));
            if src != dst {
                let ends = (rank.min(other), rank.max(other));
                let ordered = if rank < other { (src, dst) } else { (dst, src) };
                let first = *known.entry(ends).or_insert_with(|| pairs.add(ordered));
                pairs.of_slot[slot as usize] = first + u32::from(rank > other);
            }
        }
        pairs
    }

    fn add(&mut self, (src, dst): (Node, Node)) -> u32 {
        let first = self.flows.len() as u32;
        let flow = |id, src, dst| Flow { id, src, dst, size: Bytes(0), start: Time::ZERO };
        self.flows.extend([flow(first, src, dst), flow(first + 1, dst, src)]);
        first
    }
}
