//! Messages of a program over several networks (rails) at the same time.
//!
//! Each rail is a separate transit with its own LogGP parameters and its own model of sharing. A message waits here until it
//! departs, so that messages are assigned to rails in the order of time, as in MPI itself. The account of the source node
//! ([`NodeAccount`]) assigns a message as a whole or in pieces. A message has arrived when its last piece has arrived. A
//! rank's interface to a rail rests `g + (s-1)G` from one start to the next, the same as without rails. However, a sender
//! does not wait for that, since another rail may be free.
//!
//! If RTS and CTS cross the network, they use the rail that is chosen for a message of their size. The data are assigned to
//! rails once the sender has the CTS.
//!
//! Links and buses of the machine do not limit messages over rails. Rails advance together: an event on one rail may cause
//! sends over another.

use std::{
    cell::Cell,
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    rc::Rc,
};

use crate::{
    SimulateError,
    costs::RouteTimes,
    outcome::RailTraffic,
    packet_transit::{CONTROL, Packets},
    placement::Placement,
    slab::Slab,
    transit::{Delivery, Departure, NextProgress, Progress, ReceivePosted, Shared, Transit},
};
use flowcast_network::{loggp::LogGp, network::Network, sharing::model::Model};
use flowcast_program::{opcodes::Op, program::Program, slot::Slot};
use flowcast_scheduler::{
    RailId, RailSet,
    policy::{MessagePolicy, NodeAccount, RailPiece, ReadyMessage},
};
use flowcast_units::{Bytes, Node, Rank, Time};

/// One of the networks that carry the messages of a program.
#[derive(Debug, Clone)]
pub struct ProgramRail {
    /// Parameters of the network.
    pub network: Network,
    /// Model of contention between messages on this network.
    pub model: Model,
    /// Mapping of the ranks to the nodes of its machine.
    pub placement: Placement,
}

/// Rule that assigns messages to rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailRule {
    /// Policy that chooses the rails.
    pub policy: MessagePolicy,
    /// Size above which messages are long for Open MPI's own policy.
    pub eager_limit: Bytes,
}

/// A transit that can be one of several rails.
pub(crate) trait RailTransit: Transit {
    /// Time of the next event without further departures, once everything that is due has been delivered.
    fn next_event(&self) -> Option<Time>;

    /// A message whose handshake is complete, with the time at which its data may depart.
    fn take_met(&mut self) -> Option<(Slot, Time)>;
}

impl RailTransit for Shared {
    fn next_event(&self) -> Option<Time> {
        Shared::next_event(self)
    }

    fn take_met(&mut self) -> Option<(Slot, Time)> {
        None
    }
}

impl RailTransit for Packets {
    fn next_event(&self) -> Option<Time> {
        Packets::next_event(self)
    }

    fn take_met(&mut self) -> Option<(Slot, Time)> {
        Packets::take_met(self)
    }
}

/// A rail and its state.
struct TransitRail<T> {
    transit: T,
    /// Costs of messages, indexed by the group of the machine's nodes.
    routes: Vec<RouteTimes>,
    /// Group of each node, indexed by node.
    group_of: Vec<usize>,
    /// Earliest time at which each rank's interface may start the next message, indexed by rank.
    free: Vec<Time>,
}

/// A message in pieces, some of which have not arrived yet.
struct DividedMessage {
    delivery: Delivery,
    missing: RailSet,
    /// Rails on which the sender still waits until the system stores the rest of the piece.
    unheld: RailSet,
}

/// All rails of a replay.
pub(crate) struct RailsTransit<T> {
    rails: Vec<TransitRail<T>>,
    /// Accounts, indexed by node.
    accounts: Vec<NodeAccount>,
    /// Sender and receiver of each message, indexed by slot.
    ends: Vec<[Rank; 2]>,
    /// Node of each rank, indexed by rank.
    node_of: Vec<Node>,
    /// Messages waiting for their departure, ordered by its time.
    pending: BinaryHeap<Reverse<(Time, Slot, u32)>>,
    departures: Slab<Departure>,
    /// Indices of pending RTS whose receive has not been posted yet, keyed by slot.
    requested: HashMap<Slot, u32>,
    /// Messages whose RTS has departed, keyed by slot.
    handshakes: HashMap<Slot, Departure>,
    divided: HashMap<Slot, DividedMessage>,
    pieces: Vec<RailPiece>,
    traffic: Rc<[Cell<RailTraffic>]>,
    now: Time,
}

impl<T: RailTransit> RailsTransit<T> {
    /// Combines these transits, one for each rail.
    ///
    /// # Errors
    /// No rail, or too many rails.
    pub(crate) fn new(
        program: &Program,
        rails: &[ProgramRail],
        rule: RailRule,
        transits: Vec<T>,
    ) -> Result<RailsTransit<T>, SimulateError> {
        let streams = program.streams();
        let node_of: Vec<Node> = (0..streams as u32)
            .map(|rank| rails[0].placement.node(Rank(rank)))
            .collect();
        let costs: Vec<LogGp> = rails
            .iter()
            .map(|rail| LogGp::from(&rail.network.nic))
            .collect();
        let nodes = node_of.iter().map(|node| node.index() + 1).max();
        let accounts = (0..nodes.unwrap_or(0))
            .map(|_| NodeAccount::new(rule.policy, &costs, rule.eager_limit))
            .collect::<Result<_, _>>()
            .map_err(|error| SimulateError::Rails(error.to_string()))?;
        let lanes = rails.iter().zip(transits).map(|(rail, transit)| {
            let placement = &rail.placement;
            let groups = placement.groups().iter();
            TransitRail {
                transit,
                routes: groups
                    .map(|group| RouteTimes::between(&rail.network, group))
                    .collect(),
                group_of: (0..placement.nodes() as u32)
                    .map(|node| placement.group_index(Node(node)))
                    .collect(),
                free: vec![Time::ZERO; streams],
            }
        });
        Ok(RailsTransit {
            rails: lanes.collect(),
            accounts,
            ends: ends_of(program),
            node_of,
            pending: BinaryHeap::new(),
            departures: Slab::default(),
            requested: HashMap::new(),
            handshakes: HashMap::new(),
            divided: HashMap::new(),
            pieces: Vec::new(),
            traffic: rails.iter().map(|_| Cell::default()).collect(),
            now: Time::ZERO,
        })
    }

    /// Traffic of each rail; it is updated during the replay.
    pub(crate) fn traffic(&self) -> Rc<[Cell<RailTraffic>]> {
        Rc::clone(&self.traffic)
    }

    /// Assigns to rails all messages that depart by now.
    fn give_due(&mut self) {
        while let Some(Reverse((at, _, index))) = self.pending.peek().copied()
            && at <= self.now
        {
            self.pending.pop();
            self.departures.give_back(index);
            self.give(self.departures[index]);
        }
    }

    fn give(&mut self, departure: Departure) {
        let Departure {
            slot, start, ends, ..
        } = departure;
        let (node, rank, pair) = match ends {
            // One-sided transfers are identified by nodes, whose numbers are below this bit on any machine.
            Some((from, to)) => (from, None, [from.0 | 1 << 31, to.0]),
            None => {
                let [from, to] = self.ends[slot];
                (self.node_of[from], Some(from), [from.0, to.0])
            }
        };
        // A sender may continue, and send more, one latency before it is known that it may.
        let mut message = ReadyMessage {
            now: start.max(self.now),
            size: departure.size,
            pair: u64::from(pair[0]) << 32 | u64::from(pair[1]),
        };
        let account = &mut self.accounts[node];
        if departure.rts.is_some() {
            message.size = CONTROL;
            let rail = account.pick(message);
            self.requested.remove(&slot);
            self.handshakes.insert(slot, departure);
            return self.rails[rail.index()].transit.depart(departure);
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        account.give(message, &mut pieces);
        for piece in &pieces {
            self.send(departure, *piece, node, rank);
        }
        if pieces.len() > 1 {
            let rails = pieces
                .iter()
                .fold(RailSet::NONE, |rails, piece| rails.with(piece.rail));
            let delivery = Delivery {
                slot,
                start,
                arrival: start,
                left: start,
            };
            let message = DividedMessage {
                delivery,
                missing: rails,
                unheld: rails,
            };
            self.divided.insert(slot, message);
        }
        self.pieces = pieces;
    }

    /// Sends a piece once the interface of its rank to the rail is free.
    fn send(&mut self, departure: Departure, piece: RailPiece, node: Node, rank: Option<Rank>) {
        let RailPiece { rail, size } = piece;
        let traffic = &self.traffic[rail.index()];
        let RailTraffic { messages, bytes } = traffic.get();
        traffic.set(RailTraffic {
            messages: messages + 1,
            bytes: Bytes(bytes.0 + size.0),
        });
        let lane = &mut self.rails[rail.index()];
        let (cost, latency) = lane.routes[lane.group_of[node]].piece(size);
        let mut start = departure.start;
        if let Some(rank) = rank.filter(|_| cost.busy > Time::ZERO) {
            start = start.max(lane.free[rank]);
            lane.free[rank] = start + cost.busy;
        }
        lane.transit.depart(Departure {
            start,
            size,
            cost,
            latency,
            ..departure
        });
    }

    /// Combines an event of a piece on one rail into an event of its message; `None` if the message has no event yet.
    fn join(&mut self, rail: RailId, progress: Progress) -> Option<Progress> {
        let (Progress::Held { slot, .. } | Progress::Arrived(Delivery { slot, .. })) = progress
        else {
            return Some(progress);
        };
        let Some(message) = self.divided.get_mut(&slot) else {
            return Some(progress);
        };
        let mut since = Time::ZERO;
        match progress {
            Progress::Arrived(piece) => {
                let whole = &mut message.delivery;
                whole.arrival = whole.arrival.max(piece.arrival);
                whole.left = whole.left.max(piece.left);
                since = piece.left;
                message.missing = message.missing.without(rail);
            }
            Progress::Held { since: held, .. } => since = held,
            Progress::Met(_) => {}
        }
        if message.missing.is_empty() {
            let whole = message.delivery;
            self.divided.remove(&slot);
            return Some(Progress::Arrived(whole));
        }
        let was_held = message.unheld.is_empty();
        message.unheld = message.unheld.without(rail);
        (message.unheld.is_empty() && !was_held).then_some(Progress::Held { slot, since })
    }

    /// Next event up to now and up to `limit`.
    fn happened(&mut self, limit: Option<Time>) -> NextProgress {
        let until = limit.into_iter().chain([self.now]).min();
        for rail in RailSet::first(self.rails.len()) {
            let index = rail.index();
            while let Some(progress) = self.rails[index].transit.deliver(until)? {
                if let Some(progress) = self.join(rail, progress) {
                    return Ok(Some(progress));
                }
            }
            if let Some((slot, start)) = self.rails[index].transit.take_met()
                && let Some(departure) = self.handshakes.remove(&slot)
            {
                let rts = None;
                return Ok(Some(Progress::Met(Departure {
                    start,
                    rts,
                    ..departure
                })));
            }
        }
        Ok(None)
    }

    fn next_event(&self) -> Option<Time> {
        let departs = self.pending.peek().map(|Reverse((at, ..))| *at);
        let events = self
            .rails
            .iter()
            .filter_map(|lane| lane.transit.next_event());
        events.chain(departs).min()
    }
}

impl<T: RailTransit> Transit for RailsTransit<T> {
    const SHARED: bool = true;
    const HANDSHAKES: bool = T::HANDSHAKES;
    // Each rail adds its own latency.
    const CONTROL_FRAMES: bool = true;

    fn depart(&mut self, departure: Departure) {
        let Departure {
            slot, start, rts, ..
        } = departure;
        let index = self.departures.insert(departure);
        if rts.is_some_and(|rts| rts.posted.is_none()) {
            self.requested.insert(slot, index);
        }
        self.pending.push(Reverse((start, slot, index)));
    }

    fn receive_posted(&mut self, slot: Slot, posted: ReceivePosted) {
        if let Some(index) = self.requested.remove(&slot) {
            if let Some(rts) = &mut self.departures[index].rts {
                rts.posted = Some(posted);
            }
            return;
        }
        for lane in &mut self.rails {
            lane.transit.receive_posted(slot, posted);
        }
    }

    fn wait(&mut self, rank: Rank, since: Time) {
        for lane in &mut self.rails {
            lane.transit.wait(rank, since);
        }
    }

    fn go_on(&mut self, rank: Rank) {
        for lane in &mut self.rails {
            lane.transit.go_on(rank);
        }
    }

    fn deliver(&mut self, limit: Option<Time>) -> NextProgress {
        loop {
            self.give_due();
            if let Some(progress) = self.happened(limit)? {
                return Ok(Some(progress));
            }
            let next = self.next_event();
            let Some(next) = next.filter(|next| limit.is_none_or(|limit| *next <= limit)) else {
                return Ok(None);
            };
            self.now = next.max(self.now);
        }
    }
}

/// Sender and receiver of each message, indexed by slot.
fn ends_of(program: &Program) -> Vec<[Rank; 2]> {
    let mut ends = vec![[Rank(0); 2]; program.messages() as usize];
    for stream in Rank::all(program.streams()) {
        for (_, op) in program.ops(stream) {
            if let Op::Send { slot, .. } = op {
                ends[slot] = [stream, program.receiver(slot)];
            }
        }
    }
    ends
}
