//! Messages of a program packet by packet: each pair of ranks has a connection that stays, and a sender that waits for
//! its receiver is told by a frame that queues like all others.
//!
//! What comes is looked at by ranks that wait in a call, as in MPI libraries without a thread of their own for it: an
//! offer or an answer that comes to a rank which computes is answered when that waits next, and after what it has itself
//! to say. Two ranks that offer each other messages at nearly the same time therefore both answer before any data go.
//!
//! Where the rates of [`Shared`](super::transit::Shared) hold from begin to end, here short messages pass the queues one
//! after the other, and what comes back waits behind what goes there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::placement::Placement;
use super::transit::{Delivery, Departure, Offer, Progress, Transit, Wanted, transfers_of};
use flowcast_flows::concurrent::trace_wire;
use flowcast_model::cluster::flow::Flow;
use flowcast_model::cluster::racks::Racks;
use flowcast_model::network::Network;
use flowcast_model::sharing::SharingError;
use flowcast_model::sharing::fabric::Fabric;
use flowcast_packet::Wire;
use flowcast_packet::live::{ConnectionId, Live};
use flowcast_trace::opcodes::Op;
use flowcast_trace::program::Program;
use flowcast_units::{Bytes, Node, Rank, Time};

/// Bytes of a message that offers another, or answers the offer.
const CONTROL: Bytes = Bytes(64);

/// Bytes that an MPI library puts before a message that it sends at once: Open MPI's 14 and its TCP module's 8.
const ENVELOPE: Bytes = Bytes(22);

/// Messages share queues.
pub(crate) struct Packets {
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
    /// By slot: the places of messages that were offered and are not yet wanted.
    offered: HashMap<u32, u32>,
    hosts: Vec<Host>,
    /// Places of those of which something is to be written, by the time when their hosts come to it.
    coming: BinaryHeap<Reverse<(Time, Turn, u32)>>,
    /// By connection: when the last that was put off is written.
    written: Vec<Time>,
    put_off: u64,
    now: Time,
    latency: f64,
}

/// What a host does first of what it comes to at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// What the program itself sends, by slot.
    Own(u32),
    /// What answers others, by slot.
    Reply(u32),
    /// What was put off, in the order in which it came.
    Late(u64),
}

/// A message that has departed.
#[derive(Debug, Clone, Copy)]
struct Voyage {
    slot: u32,
    start: f64,
    size: Bytes,
    stage: Stage,
    offer: Option<Offer>,
    there: ConnectionId,
    back: ConnectionId,
}

/// What of a message is under way, or is to be written next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Offer,
    /// The offer came at this time.
    Offered(f64),
    Answer,
    Data,
}

/// Where a rank runs.
#[derive(Debug, Clone, Default)]
struct Host {
    /// Since when it looks at what comes, if it does.
    looks: Option<f64>,
    /// What it is to see when it looks: places of messages, and from when on.
    unseen: Vec<(f64, u32)>,
}

impl Packets {
    /// For the messages of a program on placed ranks; with a seed hosts take random times.
    ///
    /// # Errors
    /// A parameter of the packet level out of range, or a topology that has no place for a node.
    pub(crate) fn new(
        program: &Program,
        placement: &Placement,
        network: &Network,
        seed: Option<u64>,
    ) -> Result<Packets, SharingError> {
        // Strands use the connections of their ranks.
        let sends = |stream: Rank| {
            program.ops(stream).filter_map(move |(_, op)| match op {
                Op::Send { slot, .. } => Some((slot, program.owner(stream), program.owner(program.receiver(slot)))),
                _ => None,
            })
        };
        let streams = (0..program.streams() as u32).map(Rank);
        let pairs = Pairs::of(program.messages() as usize, placement, streams.flat_map(sends));
        Packets::over(pairs, &transfers_of(program, placement), trace_wire(network, seed)?, network)
    }

    /// For what ranks send in so many slots: slot, sender and receiver of each message.
    ///
    /// # Errors
    /// As [`Packets::new`].
    pub(crate) fn between(
        slots: usize,
        placement: &Placement,
        sends: impl Iterator<Item = (u32, Rank, Rank)>,
        network: &Network,
    ) -> Result<Packets, SharingError> {
        Packets::over(Pairs::of(slots, placement, sends), &[], trace_wire(network, None)?, network)
    }

    fn over(pairs: Pairs, transfers: &[Flow], wire: Wire, network: &Network) -> Result<Packets, SharingError> {
        let flows: Vec<Flow> = pairs.flows.iter().chain(transfers).copied().collect();
        let fabric = Fabric::of(&flows, &Racks::default(), network)?;
        let mut live = Live::new(&fabric, wire);
        let mut open: Vec<ConnectionId> = fabric.paths.iter().map(|path| live.connect(path)).collect();
        let of_transfers = open.split_off(pairs.flows.len());
        open.chunks_exact(2).for_each(|both| live.pair(both[0], both[1]));
        let ends = transfers.iter().map(|flow| (flow.src, flow.dst));
        Ok(Packets {
            open,
            of_slot: pairs.of_slot,
            transfers: ends.zip(of_transfers).collect(),
            live,
            voyages: Vec::new(),
            free: Vec::new(),
            offered: HashMap::new(),
            hosts: Vec::new(),
            coming: BinaryHeap::new(),
            written: Vec::new(),
            put_off: 0,
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

    fn host(&mut self, rank: u32) -> &mut Host {
        let rank = rank as usize;
        if self.hosts.len() <= rank {
            self.hosts.resize(rank + 1, Host::default());
        }
        &mut self.hosts[rank]
    }

    fn schedule(&mut self, at: f64, turn: Turn, place: u32) {
        self.coming.push(Reverse((Time::from_nanos(at), turn, place)));
    }

    /// A rank sees that something has come, at the earliest at this time.
    fn see(&mut self, rank: u32, earliest: f64, place: u32) {
        match self.host(rank).looks {
            Some(since) => self.reply(since.max(earliest), place),
            None => self.host(rank).unseen.push((earliest, place)),
        }
    }

    fn reply(&mut self, at: f64, place: u32) {
        self.schedule(at, Turn::Reply(self.voyages[place as usize].slot), place);
    }

    /// An offer has come that is wanted.
    fn answer(&mut self, place: u32, came: f64, offer: Offer, wanted: Wanted) {
        self.voyages[place as usize].stage = Stage::Answer;
        if came <= wanted.looked {
            self.reply(wanted.since, place);
        } else {
            self.see(offer.to, came.max(wanted.since), place);
        }
    }

    /// Writes what is next of a message, or puts it off for as long as its host takes.
    fn write(&mut self, turn: Turn, place: u32) -> Result<(), SharingError> {
        let Voyage { stage, there, back, size, .. } = self.voyages[place as usize];
        let (connection, size) = match stage {
            Stage::Offer | Stage::Offered(_) => (there, CONTROL),
            Stage::Answer => (back, CONTROL),
            Stage::Data => (there, size),
        };
        if !matches!(turn, Turn::Late(_)) {
            let number = connection.0 as usize;
            if self.written.len() <= number {
                self.written.resize(number + 1, Time::ZERO);
            }
            // A host writes in order.
            let at = (self.now + self.live.host_delay()).max(self.written[number]);
            if at > self.now {
                (self.written[number], self.put_off) = (at, self.put_off + 1);
                self.coming.push(Reverse((at, Turn::Late(self.put_off), place)));
                return Ok(());
            }
        }
        self.live.write(self.now, connection, place as usize, size)
    }

    /// Something has arrived: a message, or what was said before it.
    fn arrive(&mut self, place: u32, at: Time) -> Option<Delivery> {
        let at = at.as_nanos();
        let Voyage { slot, start, stage, offer, .. } = self.voyages[place as usize];
        match (stage, offer) {
            (Stage::Offer, Some(offer)) => {
                self.voyages[place as usize].stage = Stage::Offered(at);
                if let Some(wanted) = offer.wanted {
                    self.answer(place, at, offer, wanted);
                }
                None
            }
            (Stage::Answer, Some(offer)) => {
                self.voyages[place as usize].stage = Stage::Data;
                self.see(offer.from, at, place);
                None
            }
            _ => {
                self.free.push(place);
                Some(Delivery { slot, start, arrival: at, left: at - self.latency })
            }
        }
    }

    /// Of a message whose sender may go on.
    fn held(&mut self) -> Option<Progress> {
        loop {
            let (place, since) = self.live.held()?;
            let Voyage { slot, stage, .. } = self.voyages[place];
            if stage == Stage::Data {
                return Some(Progress::Held { slot, since: since.as_nanos() });
            }
        }
    }
}

impl Transit for Packets {
    const SHARED: bool = true;
    const HANDSHAKES: bool = true;

    fn depart(&mut self, departure: Departure) {
        let Departure { slot, start, size, offer, ends, .. } = departure;
        let (there, back) = match ends {
            Some(ends) => (self.transfers[&ends], self.transfers[&ends]),
            None => {
                let place = self.of_slot[slot as usize] as usize;
                (self.open[place], self.open[place ^ 1])
            }
        };
        let stage = if offer.is_some() { Stage::Offer } else { Stage::Data };
        let since = offer.and_then(|offer| offer.wanted).map_or(start, |wanted| wanted.since);
        let size = if offer.is_none() && ends.is_none() { Bytes(size.0 + ENVELOPE.0) } else { size };
        let place = self.board(Voyage { slot, start: start.max(since), size, stage, offer, there, back });
        if offer.is_some_and(|offer| offer.wanted.is_none()) {
            self.offered.insert(slot, place);
        }
        self.schedule(start, Turn::Own(slot), place);
    }

    fn want(&mut self, slot: u32, wanted: Wanted) {
        let Some(place) = self.offered.remove(&slot) else { return };
        let voyage = &mut self.voyages[place as usize];
        voyage.start = voyage.start.max(wanted.since);
        let Some(offer) = &mut voyage.offer else { return };
        offer.wanted = Some(wanted);
        let (stage, offer) = (voyage.stage, *offer);
        if let Stage::Offered(came) = stage {
            self.answer(place, came, offer, wanted);
        }
    }

    fn wait(&mut self, rank: u32, since: f64) {
        let host = self.host(rank);
        host.looks = Some(since);
        for (earliest, place) in std::mem::take(&mut host.unseen) {
            self.reply(earliest.max(since), place);
        }
    }

    fn go_on(&mut self, rank: u32) {
        self.host(rank).looks = None;
    }

    fn deliver(&mut self, limit: Option<Time>) -> Result<Option<Progress>, SharingError> {
        loop {
            if let Some(progress) = self.held() {
                return Ok(Some(progress));
            }
            if let Some((place, passage)) = self.live.arrived() {
                match self.arrive(place as u32, passage.end) {
                    Some(delivery) => return Ok(Some(Progress::Arrived(delivery))),
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
            } else if let Some(Reverse((_, turn, place))) = self.coming.pop() {
                self.write(turn, place)?;
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
