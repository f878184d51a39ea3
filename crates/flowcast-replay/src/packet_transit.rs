//! Messages of a program, packet by packet, over one connection for each pair of ranks.
//!
//! A rendezvous message takes three transfers: the sender's request to send (RTS), the receiver's clear to send (CTS), and
//! the data. All three queue in the network like any other frame.
//!
//! If ranks progress messages in MPI calls only, a rank polls for RTS and CTS only while it waits in a call. A computing
//! rank handles an incoming RTS or CTS at its next MPI call, after it has sent its own pending messages. Two ranks that send
//! each other an RTS at nearly the same time therefore both send a CTS before any data.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    sync::Arc,
};

use super::{
    placement::Placement,
    polling::Polling,
    rank_order::RankOrder,
    slab::Slab,
    transit::{
        Delivery, Departure, NextProgress, Progress, ReceivePosted, Rts, Transit, racks_of,
        transfers_of,
    },
};
use flowcast_network::{
    cluster::flow::Flow,
    network::Network,
    sharing::{SharingError, fabric::Fabric, link_loads::LinkLoads},
};
use flowcast_program::{opcodes::Op, program::Program, slot::Slot};
use flowcast_traffic::{
    flows::concurrent::trace_wire,
    packet::{
        Wire,
        live::{ConnectionId, Live},
    },
};
use flowcast_units::{Bytes, Node, Rank, Time, TimePerByte};

/// Size of an RTS or a CTS.
pub(crate) const CONTROL: Bytes = Bytes(64);

/// Header of an MPI library on an eager message: 14 bytes of Open MPI and 8 bytes of its TCP module.
const ENVELOPE: Bytes = Bytes(22);

/// The messages in flight and the connections that carry them.
pub(crate) struct Packets {
    live: Live,
    fabric: Fabric,
    /// Loads of the links, if they are recorded.
    loads: Option<Arc<LinkLoads>>,
    per_byte: TimePerByte,
    /// Connections of pairs of ranks: forward at even indices, each followed by the reverse direction.
    open: Vec<ConnectionId>,
    /// Index of each message's connection, indexed by slot, if the message leaves its node.
    of_slot: Vec<u32>,
    /// Order of messages that are written at the same time, indexed by slot.
    places: Vec<SendPlace>,
    /// Connections of one-sided transfers, keyed by source and destination node.
    transfers: BTreeMap<(Node, Node), ConnectionId>,
    /// Messages that have departed, indexed by their number.
    in_flight: Slab<InFlight>,
    /// Indices of messages whose RTS has been sent and whose receive has not been posted yet, keyed by slot.
    requested: HashMap<Slot, u32>,
    polling: Polling,
    /// Indices of messages with something to write, ordered by the time at which their host writes it.
    coming: BinaryHeap<Reverse<(Time, TransitTurn, u32)>>,
    /// Time at which the last postponed write of a host takes place, indexed by its interface.
    written: Vec<Time>,
    put_off: u64,
    now: Time,
    latency: Time,
    /// Stage after the CTS: the data, or `Met` if another part of the replay sends the data.
    after_cts: TransitStage,
    /// Messages whose sender has the CTS and whose data are sent elsewhere, with the time at which the sender sends them.
    met: Vec<(Slot, Time)>,
}

/// Position of a send among all sends: in the order of the ranks in [`RankOrder`], then in the order of the program.
/// One-sided transfers follow them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct SendPlace(u32);

/// Order of a host's writes at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TransitTurn {
    /// The CTS of an RTS that was known when the receive was posted.
    Posted(SendPlace),
    /// A message of the program itself.
    Own(SendPlace),
    /// An answer to another rank, in the order of arrival of the messages that are answered.
    Reply(Time, SendPlace),
    /// A postponed write, in the order in which writes were postponed.
    Late(u64),
}

/// A message between its departure and its arrival.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    slot: Slot,
    start: Time,
    size: Bytes,
    stage: TransitStage,
    rts: Option<Rts>,
    there: ConnectionId,
    back: ConnectionId,
}

/// The part of a message that is in flight, or is written next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TransitStage {
    Rts,
    /// The RTS arrived at this time.
    RtsArrived(Time),
    Cts,
    Data,
    /// The data, if they are sent elsewhere.
    Met,
}

impl Packets {
    /// Creates the network for the messages of a program on placed ranks. With a seed, hosts take random times.
    ///
    /// # Errors
    /// A parameter of the packet level out of range, or a topology that has no index for a node.
    pub(crate) fn new(
        program: &Program,
        placement: &Placement,
        network: &Network,
        seed: Option<u64>,
    ) -> Result<Packets, SharingError> {
        let order = RankOrder::by_colour(program, placement);
        let pairs = Pairs::new(
            program.messages() as usize,
            placement,
            // Progress streams use the connections of their ranks.
            order.streams.iter().copied().flat_map(|stream: Rank| {
                program.ops(stream).filter_map(move |(_, op)| match op {
                    Op::Send { slot, .. } => Some((
                        slot,
                        program.owner(stream),
                        program.owner(program.receiver(slot)),
                    )),
                    _ => None,
                })
            }),
        );
        Packets::over(
            pairs,
            &transfers_of(program, placement),
            trace_wire(network, seed)?,
            network,
            |flows| order.renumber_nodes(flows, network),
        )
    }

    /// Creates the network for messages of the given number of slots: `sends` lists slot, sender and receiver of each
    /// message.
    ///
    /// # Errors
    /// The same as for [`Packets::new`].
    pub(crate) fn between(
        slots: usize,
        placement: &Placement,
        sends: impl Iterator<Item = (Slot, Rank, Rank)>,
        network: &Network,
    ) -> Result<Packets, SharingError> {
        Packets::over(
            Pairs::new(slots, placement, sends),
            &[],
            trace_wire(network, None)?,
            network,
            |_| {},
        )
    }

    fn over(
        pairs: Pairs,
        transfers: &[Flow],
        wire: Wire,
        network: &Network,
        renumber: impl Fn(&mut [Flow]),
    ) -> Result<Packets, SharingError> {
        let mut flows: Vec<Flow> = pairs.flows.iter().chain(transfers).copied().collect();
        renumber(&mut flows);
        let fabric = Fabric::from_network(&flows, &racks_of(&flows, network), network)?;
        let mut live = Live::new(&fabric, wire)?;
        let mut open: Vec<ConnectionId> = (0..flows.len())
            .map(|flow| live.connect(&fabric, flow))
            .collect();
        let of_transfers = open.split_off(pairs.flows.len());
        open.chunks_exact(2)
            .for_each(|both| live.pair(both[0], both[1]));
        let ends = transfers.iter().map(|flow| (flow.src, flow.dst));
        Ok(Packets {
            open,
            of_slot: pairs.of_slot,
            places: pairs.places,
            transfers: ends.zip(of_transfers).collect(),
            live,
            loads: None,
            per_byte: network.nic.per_byte(),
            fabric,
            in_flight: Slab::default(),
            requested: HashMap::new(),
            polling: Polling::new(network.point_to_point.progress),
            coming: BinaryHeap::new(),
            written: Vec::new(),
            put_off: 0,
            now: Time::ZERO,
            latency: network.nic.latency,
            after_cts: TransitStage::Data,
            met: Vec::new(),
        })
    }

    /// Carries only RTS and CTS of rendezvous messages; [`Packets::take_met`] returns the messages whose data may depart.
    pub(crate) fn without_data(self) -> Packets {
        Packets {
            after_cts: TransitStage::Met,
            ..self
        }
    }

    /// A message whose handshake is complete, with the time at which its data may depart.
    pub(crate) fn take_met(&mut self) -> Option<(Slot, Time)> {
        self.met.pop()
    }

    /// Time of the next event in the network, without further departures.
    pub(crate) fn next_event(&self) -> Option<Time> {
        let start = self.coming.peek().map(|Reverse((time, ..))| *time);
        start.into_iter().chain(self.live.next_event()).min()
    }

    /// Records the loads of the links.
    pub(crate) fn noting_loads(self) -> Packets {
        Packets {
            loads: Some(Arc::new(LinkLoads::new(&self.fabric))),
            ..self
        }
    }

    /// Loads of the links, if they are recorded.
    pub(crate) fn loads(&self) -> Option<Arc<LinkLoads>> {
        self.loads.clone()
    }

    fn place(&self, slot: Slot) -> SendPlace {
        self.places
            .get(slot.0 as usize)
            .copied()
            .unwrap_or(SendPlace(slot.0))
    }

    fn schedule(&mut self, at: Time, turn: TransitTurn, index: u32) {
        self.coming.push(Reverse((at, turn, index)));
    }

    /// Schedules the answer of a rank to an arrival, at `earliest` or at its next poll after that time.
    fn see(&mut self, rank: Rank, earliest: Time, index: u32) {
        if let Some(at) = self.polling.see(rank, earliest, index) {
            self.reply(at, earliest, index);
        }
    }

    /// Schedules the answer of a rank at the time `at` to a message that arrived at the time `came`.
    fn reply(&mut self, at: Time, came: Time, index: u32) {
        let turn = TransitTurn::Reply(came, self.place(self.in_flight[index].slot));
        self.schedule(at, turn, index);
    }

    /// Sends the CTS for an RTS that arrived at `came` and whose receive is now posted.
    fn send_cts(&mut self, index: u32, came: Time, rts: Rts, posted: ReceivePosted) {
        self.in_flight[index].stage = TransitStage::Cts;
        if came <= posted.polled {
            let turn = TransitTurn::Posted(self.place(self.in_flight[index].slot));
            self.schedule(posted.since, turn, index);
        } else {
            self.see(rts.to, came.max(posted.since), index);
        }
    }

    /// Writes the next part of a message, or postpones it by the time that its host needs.
    fn write(&mut self, turn: TransitTurn, index: u32) -> Result<(), SharingError> {
        let InFlight {
            stage,
            there,
            back,
            size,
            ..
        } = self.in_flight[index];
        let (connection, size) = match stage {
            TransitStage::Rts | TransitStage::RtsArrived(_) => (there, CONTROL),
            TransitStage::Cts => (back, CONTROL),
            TransitStage::Data => (there, size),
            TransitStage::Met => {
                self.met.push((self.in_flight[index].slot, self.now));
                self.in_flight.give_back(index);
                return Ok(());
            }
        };
        let flow = self.live.path_of(connection);
        if !matches!(turn, TransitTurn::Late(_)) {
            let host = self.fabric.paths[flow].src as usize;
            if self.written.len() <= host {
                self.written.resize(host + 1, Time::ZERO);
            }
            // A host writes in order.
            let at = (self.now + self.live.host_delay()).max(self.written[host]);
            if at > self.now {
                (self.written[host], self.put_off) = (at, self.put_off + 1);
                self.coming
                    .push(Reverse((at, TransitTurn::Late(self.put_off), index)));
                return Ok(());
            }
        }
        self.live
            .write(self.now, connection, index as usize, size)?;
        if let Some(loads) = &self.loads {
            loads.add(&self.fabric.paths[flow], self.per_byte.time_for(size));
        }
        Ok(())
    }

    /// Handles the arrival of an RTS, a CTS or the data.
    fn arrive(&mut self, index: u32, at: Time) -> Option<Delivery> {
        let InFlight {
            slot,
            start,
            stage,
            rts,
            ..
        } = self.in_flight[index];
        match (stage, rts) {
            (TransitStage::Rts, Some(rts)) => {
                self.in_flight[index].stage = TransitStage::RtsArrived(at);
                if let Some(posted) = rts.posted {
                    self.send_cts(index, at, rts, posted);
                }
                None
            }
            (TransitStage::Cts, Some(rts)) => {
                self.in_flight[index].stage = self.after_cts;
                self.see(rts.from, at, index);
                None
            }
            _ => {
                self.in_flight.give_back(index);
                Some(Delivery {
                    slot,
                    start,
                    arrival: at,
                    left: at - self.latency,
                })
            }
        }
    }

    /// Next message whose sender may continue.
    fn held(&mut self) -> Option<Progress> {
        loop {
            let (index, since) = self.live.held()?;
            let InFlight { slot, stage, .. } = self.in_flight[index as u32];
            if stage == TransitStage::Data {
                return Some(Progress::Held { slot, since });
            }
        }
    }
}

impl Transit for Packets {
    const SHARED: bool = true;
    const HANDSHAKES: bool = true;
    const CONTROL_FRAMES: bool = true;

    fn depart(&mut self, departure: Departure) {
        let Departure {
            slot,
            start,
            size,
            cost,
            rts,
            ends,
            ..
        } = departure;
        let (there, back) = match ends {
            Some(ends) => (self.transfers[&ends], self.transfers[&ends]),
            None => {
                let index = self.of_slot[slot] as usize;
                (self.open[index], self.open[index ^ 1])
            }
        };
        let stage = if rts.is_some() {
            TransitStage::Rts
        } else {
            TransitStage::Data
        };
        let since = rts
            .and_then(|rts| rts.posted)
            .map_or(start, |posted| posted.since);
        let size = if rts.is_none() && ends.is_none() {
            Bytes(size.0 + ENVELOPE.0)
        } else {
            size
        };
        let index = self.in_flight.insert(InFlight {
            slot,
            start: start.max(since),
            size,
            stage,
            rts,
            there,
            back,
        });
        if rts.is_some_and(|rts| rts.posted.is_none()) {
            self.requested.insert(slot, index);
        }
        let written = start + cost.added_latency;
        self.schedule(written, TransitTurn::Own(self.place(slot)), index);
    }

    fn receive_posted(&mut self, slot: Slot, posted: ReceivePosted) {
        let Some(index) = self.requested.remove(&slot) else {
            return;
        };
        let message = &mut self.in_flight[index];
        message.start = message.start.max(posted.since);
        let Some(rts) = &mut message.rts else { return };
        rts.posted = Some(posted);
        let (stage, rts) = (message.stage, *rts);
        if let TransitStage::RtsArrived(came) = stage {
            self.send_cts(index, came, rts, posted);
        }
    }

    fn wait(&mut self, rank: Rank, since: Time) {
        for (came, index) in self.polling.wait(rank, since) {
            self.reply(since.max(came), came, index);
        }
    }

    fn go_on(&mut self, rank: Rank) {
        self.polling.go_on(rank);
    }

    fn deliver(&mut self, limit: Option<Time>) -> NextProgress {
        loop {
            if let Some(progress) = self.held() {
                return Ok(Some(progress));
            }
            if let Some((index, completion)) = self.live.arrived() {
                match self.arrive(index as u32, completion.end) {
                    Some(delivery) => return Ok(Some(Progress::Arrived(delivery))),
                    None => continue,
                }
            }
            let start = self.coming.peek().map(|Reverse((time, ..))| *time);
            let event = self.live.next_event();
            let next = start.into_iter().chain(event).min();
            let Some(next) = next.filter(|next| limit.is_none_or(|limit| *next <= limit)) else {
                return Ok(None);
            };
            self.now = next.max(self.now);
            if event.is_some_and(|event| event <= self.now) {
                self.live.step();
            } else if let Some(Reverse((_, turn, index))) = self.coming.pop() {
                self.write(turn, index)?;
            }
        }
    }
}

/// Pairs of ranks on different nodes that exchange messages, each with two flows: forward at even indices, followed by the
/// reverse direction.
struct Pairs {
    flows: Vec<Flow>,
    /// Flow of each message, indexed by slot.
    of_slot: Vec<u32>,
    /// Position of each send, indexed by slot.
    places: Vec<SendPlace>,
}

impl Pairs {
    fn new(
        slots: usize,
        placement: &Placement,
        sends: impl Iterator<Item = (Slot, Rank, Rank)>,
    ) -> Pairs {
        let mut pairs = Pairs {
            flows: Vec::new(),
            of_slot: vec![0; slots],
            places: vec![SendPlace::default(); slots],
        };
        let mut known = BTreeMap::new();
        for (place, (slot, rank, other)) in (0..).map(SendPlace).zip(sends) {
            pairs.places[slot] = place;
            let (src, dst) = (placement.node(rank), placement.node(other));
            if src != dst {
                let ends = (rank.min(other), rank.max(other));
                let (opener, first) = *known
                    .entry(ends)
                    .or_insert_with(|| (rank, pairs.add(src, dst)));
                pairs.of_slot[slot] = first + u32::from(rank != opener);
            }
        }
        pairs
    }

    fn add(&mut self, src: Node, dst: Node) -> u32 {
        let first = self.flows.len() as u32;
        self.flows
            .extend([flow(first, src, dst), flow(first + 1, dst, src)]);
        first
    }
}

fn flow(id: u32, src: Node, dst: Node) -> Flow {
    Flow {
        id,
        src,
        dst,
        size: Bytes(0),
        start: Time::ZERO,
    }
}
