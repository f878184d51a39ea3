//! Transport of messages from sender to receiver in a replay: undisturbed, or sharing the network with other messages.
//!
//! A message is a flow. It departs when its sender's processor has finished with it, spends its latency undisturbed, and
//! then moves at the rate that a sharing model assigns to it among all messages in flight (RR-5910 section 5.3, Algorithm 1
//! of Zhu et al.; `traffic`). With max-min fairness, SimGrid's SMPI computes the same. The ranks follow the walk
//! ([`crate::walk`]), or Dimemas' rules ([`crate::contention`]) if processors, links or buses are limited.

pub(crate) mod delays;
mod pairs;
pub(crate) mod parts;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    sync::Arc,
};

pub(crate) use self::pairs::{cable_latencies, racks_of, transfers_of};
use self::{
    delays::{LinkDelays, MessageDelays},
    pairs::{routes_of, routes_of_program},
    parts::{Division, LookAhead},
};
use super::{costs::ClassCost, placement::Placement, rank_order::RankOrder};
use crate::slab::Slab;
use flowcast_network::{
    cluster::flow::Flow,
    network::Network,
    sharing::{
        SharingError,
        active_flows::Reach,
        components::components,
        fabric::{Fabric, FlowPath},
        link_loads::LinkLoads,
    },
};
use flowcast_program::{program::Program, slot::Slot};
use flowcast_traffic::flows::traffic::{NetworkTraffic, Rule};
use flowcast_units::{Bytes, Node, Rank, Time};

/// Transport of messages between nodes.
pub(crate) trait Transit {
    /// `true` if messages affect each other; otherwise no method of this trait is ever called.
    const SHARED: bool;

    /// `true` if results may depend on the order in which the replay follows ranks that could run at the same time.
    const IS_ORDERED: bool = Self::SHARED;

    /// `true` if it implements the handshake between the sender and the receiver of a rendezvous. Such a message departs
    /// with its RTS, and the transit is notified when ranks wait and when they continue.
    const HANDSHAKES: bool = false;

    /// `true` if messages need no links of the machine and have spent their latency when they are delivered: at the packet
    /// level, where RTS and CTS also cross the network, and over several rails.
    const CONTROL_FRAMES: bool = false;

    /// `true` if it carries the message of a slot.
    #[inline(always)]
    fn carries(&self, _slot: Slot, is_between_nodes: bool) -> bool {
        is_between_nodes
    }

    /// Starts a message, or its RTS, at its sender.
    fn depart(&mut self, departure: Departure);

    /// Reports that a receive is posted for a message whose RTS was sent earlier.
    fn receive_posted(&mut self, _slot: Slot, _posted: ReceivePosted) {}

    /// Reports that a rank has been waiting since this time, or has ended: it polls and replies.
    fn wait(&mut self, _rank: Rank, _since: Time) {}

    /// Reports that a rank continues and does not poll until it waits again.
    fn go_on(&mut self, _rank: Rank) {}

    /// Returns the next event of a message, once no rank can continue without one; `None` if nothing happens until `limit`.
    ///
    /// # Errors
    /// Errors of the sharing model.
    fn deliver(&mut self, limit: Option<Time>) -> NextProgress;

    /// Returns a further event that has also happened by now. It is called after [`Transit::deliver`] where nothing observes
    /// the order.
    fn deliver_more(&mut self) -> Option<Progress> {
        None
    }
}

/// A message that leaves its sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departure {
    /// Its slot. Numbers from the number of messages upwards are one-sided transfers.
    pub slot: Slot,
    /// Time at which its sender's processor had finished with it.
    pub start: Time,
    /// Size of its data.
    pub size: Bytes,
    /// Its cost without other messages.
    pub cost: ClassCost,
    /// Its RTS, if the RTS crosses the network first.
    pub rts: Option<Rts>,
    /// Part of the delay that does not depend on sharing.
    pub latency: Time,
    /// Source and destination node of the data, for one-sided transfers.
    pub ends: Option<(Node, Node)>,
}

/// The request to send of a message whose data follow the CTS.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rts {
    /// Rank of the sender.
    pub from: Rank,
    /// Rank of the receiver.
    pub to: Rank,
    /// The receive, if it has been posted already.
    pub posted: Option<ReceivePosted>,
}

/// A receive that was posted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReceivePosted {
    /// Time of the posting.
    pub since: Time,
    /// Time of the rank's last poll: an RTS that arrived earlier gets its CTS immediately.
    pub polled: Time,
}

impl ReceivePosted {
    /// Time of the last poll of a rank that has never polled.
    pub const NEVER: Time = Time::from_nanos(-1.0);
}

/// The next event of a message in flight; `None` if there is none up to the limit.
pub type NextProgress = Result<Option<Progress>, SharingError>;

/// An event of a message in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// Its sender may continue: the system stores the rest of the message.
    Held {
        /// Its slot.
        slot: Slot,
        /// Start of the time for which the sender has been held.
        since: Time,
    },
    /// Its sender and its receiver have completed their handshake, so that it can depart with its data.
    Met(Departure),
    /// Its last byte has arrived.
    Arrived(Delivery),
}

/// A message that has arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delivery {
    /// Slot of the message, the same as in its [`Departure`].
    pub slot: Slot,
    /// Time at which it began to leave its sender.
    pub start: Time,
    /// Arrival of its last byte.
    pub arrival: Time,
    /// Time at which its last byte had left the sender.
    pub left: Time,
}

/// Transport of messages that do not affect each other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Undisturbed;

impl Transit for Undisturbed {
    const SHARED: bool = false;

    fn depart(&mut self, _departure: Departure) {}

    fn deliver(&mut self, _limit: Option<Time>) -> NextProgress {
        Ok(None)
    }
}

/// Transport of messages that share the links of a fabric.
pub struct Shared {
    /// Paths of the moving messages, indexed as in `moving`.
    fabric: Fabric,
    routes: Arc<SharedRoutes>,
    /// Loads of the links, if they are recorded.
    loads: Option<Arc<LinkLoads>>,
    /// Time that messages lose to other messages, if it is recorded.
    delays: Option<Box<MessageDelays>>,
    /// Individual paths of messages, in fabrics that choose them per message.
    own_ways: Option<Box<SplitPaths>>,
    traffic: NetworkTraffic,
    /// Messages that have departed and not yet arrived.
    in_flight: Slab<TransitInFlight>,
    /// Number of each moving message, by its index in the model. A message gets this index when it starts to move, because a
    /// model may prefer the lower index. Its number cannot serve as index: numbers follow the order in which the replay
    /// visits ranks.
    moving: Slab<u32>,
    /// Messages whose latency is not over yet.
    coming: BinaryHeap<Reverse<Coming>>,
    now: Time,
    /// Messages that have arrived and have not been delivered to the caller yet; the last entry is the next.
    arrived: Vec<Delivery>,
    /// `true` if the messages in `arrived` had no bytes to move: they arrived as soon as they started.
    are_empty: bool,
}

/// Paths of messages through a fabric.
struct SharedRoutes {
    /// Distinct paths of messages, followed by the paths of one-sided transfers.
    paths: Vec<FlowPath>,
    /// Index of the path of each message, indexed by slot.
    of_slot: Vec<u32>,
    /// Index of the path of one-sided transfers, keyed by source and destination.
    transfers: BTreeMap<(Node, Node), u32>,
    /// Latency that the links add, indexed by path; empty if there is none.
    latencies: Vec<Time>,
}

/// Messages between the same two nodes that take different paths.
struct SplitPaths {
    /// End nodes of each path and number of messages that have chosen a path between them, indexed by path.
    pairs: Vec<([Node; 2], u32)>,
    /// Paths of messages that have chosen one but have not started, keyed by message number.
    chosen: HashMap<u32, FlowPath>,
}

/// A message that has departed.
#[derive(Debug, Clone, Copy)]
struct TransitInFlight {
    slot: Slot,
    start: Time,
    latency: Time,
    /// Time that the remaining bytes take at the full rate.
    work: Time,
    route: u32,
}

/// A message whose latency is not over yet, packed for sorting: the bits of the time at which it is over, then its slot,
/// then its number. The bits of non-negative times sort in the same order as the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Coming(u128);

impl Coming {
    fn new(time: Time, slot: Slot, number: u32) -> Coming {
        Coming(
            u128::from(time.as_nanos().to_bits()) << 64
                | u128::from(slot.0) << 32
                | u128::from(number),
        )
    }

    fn time(self) -> Time {
        Time::from_nanos(f64::from_bits((self.0 >> 64) as u64))
    }

    fn number(self) -> u32 {
        self.0 as u32
    }
}

impl Shared {
    /// Network for the messages of a program on placed ranks.
    ///
    /// # Errors
    /// A node without a place in the topology.
    pub(super) fn new(
        program: &Program,
        placement: &Placement,
        network: &Network,
        rule: Rule,
    ) -> Result<Shared, SharingError> {
        let routes = routes_of_program(program, placement);
        let order = matches!(rule, Rule::QuasiDynamic(..))
            .then(|| RankOrder::by_colour(program, placement));
        let transfers = transfers_of(program, placement);
        Shared::from_routes(routes, transfers, (network, rule), |flows| {
            if let Some(order) = &order {
                order.renumber_nodes(flows, network);
            }
        })
    }

    /// Network for messages of the given numbers of ranks and slots: `sends` returns the slot and receiver of each message
    /// of a rank.
    ///
    /// # Errors
    /// The same as for [`Shared::new`].
    pub(super) fn between<I: Iterator<Item = (Slot, Rank)>>(
        counts: (usize, usize),
        placement: &Placement,
        sends: impl Fn(Rank) -> I,
        by: (&Network, Rule),
    ) -> Result<Shared, SharingError> {
        Shared::from_routes(routes_of(counts, placement, sends), Vec::new(), by, |_| {})
    }

    fn from_routes(
        (mut flows, route_of): (Vec<Flow>, Vec<u32>),
        transfers: Vec<Flow>,
        (network, rule): (&Network, Rule),
        renumber: impl Fn(&mut [Flow]),
    ) -> Result<Shared, SharingError> {
        let messages = flows.len();
        flows.extend(&transfers);
        renumber(&mut flows);
        let mut fabric = Fabric::of_program(&flows, &racks_of(&flows, network), network)?;
        let traffic = NetworkTraffic::new(&fabric, rule);
        let numbers = messages as u32..;
        let paths = std::mem::take(&mut fabric.paths);
        let mut latencies = Vec::new();
        if !fabric.has_own_ways() {
            latencies.extend(paths.iter().map(|path| fabric.latency(path)));
            if latencies.iter().all(|latency| *latency == Time::ZERO) {
                latencies.clear();
            }
        }
        let own_ways = fabric.has_own_ways().then(|| {
            Box::new(SplitPaths {
                pairs: flows.iter().map(|flow| ([flow.src, flow.dst], 0)).collect(),
                chosen: HashMap::new(),
            })
        });
        let routes = SharedRoutes {
            paths,
            latencies,
            of_slot: route_of,
            transfers: transfers
                .iter()
                .map(|flow| (flow.src, flow.dst))
                .zip(numbers)
                .collect(),
        };
        let shared = Shared::empty(fabric, Arc::new(routes), traffic);
        Ok(Shared { own_ways, ..shared })
    }

    /// Records the loads of the links, and the time that messages lose there to other messages.
    pub(super) fn noting_loads(self) -> Shared {
        let delays = Arc::new(LinkDelays::new(&self.fabric));
        Shared {
            loads: Some(Arc::new(LinkLoads::new(&self.fabric))),
            delays: Some(Box::new(MessageDelays::new(delays))),
            ..self
        }
    }

    /// Loads of the links, if they are recorded.
    pub(super) fn loads(&self) -> Option<Arc<LinkLoads>> {
        self.loads.clone()
    }

    /// Time that messages lose at each link, if it is recorded.
    pub(super) fn delays(&self) -> Option<Arc<LinkDelays>> {
        Some(self.delays.as_ref()?.links())
    }

    fn empty(fabric: Fabric, routes: Arc<SharedRoutes>, traffic: NetworkTraffic) -> Shared {
        Shared {
            fabric,
            routes,
            loads: None,
            delays: None,
            own_ways: None,
            traffic,
            in_flight: Slab::default(),
            moving: Slab::default(),
            coming: BinaryHeap::new(),
            now: Time::ZERO,
            arrived: Vec::new(),
            are_empty: false,
        }
    }

    /// Copies the network with other rules and without messages in flight.
    pub(super) fn again(&self, rule: Rule) -> Shared {
        let traffic = NetworkTraffic::new(&self.fabric, rule);
        Shared {
            loads: self.loads(),
            delays: self
                .delays()
                .map(|links| Box::new(MessageDelays::new(links))),
            ..Shared::empty(self.fabric.clone(), Arc::clone(&self.routes), traffic)
        }
    }

    /// Division of the messages among threads that each solve a part of the network, under a model of this reach; `None` if
    /// messages have individual paths or a division is not worthwhile.
    pub(super) fn division(
        &self,
        reach: Reach,
        look_ahead: LookAhead,
        threads: usize,
    ) -> Option<Division> {
        if self.own_ways.is_some() {
            return None;
        }
        let SharedRoutes { paths, of_slot, .. } = &*self.routes;
        let components = components(&self.fabric, paths, reach);
        Division::new(&components, of_slot, look_ahead, threads)
    }

    /// Chooses the path of a message, if the fabric chooses paths per message. Returns `true` if the message still has to
    /// spend the latency of that path.
    fn is_put_off(&mut self, number: u32) -> bool {
        let Some(own_ways) = &mut self.own_ways else {
            return false;
        };
        if own_ways.chosen.contains_key(&number) {
            return false;
        }
        let message = &mut self.in_flight[number];
        let (ends, turn) = &mut own_ways.pairs[message.route as usize];
        let Some(path) = self.fabric.way(*ends, *turn, message.slot.0, |link| {
            self.traffic.flows_over(link)
        }) else {
            return false;
        };
        *turn += 1;
        let latency = self.fabric.latency(&path);
        own_ways.chosen.insert(number, path);
        if latency > Time::ZERO {
            message.latency += latency;
            let coming = Coming::new(self.now + latency, message.slot, number);
            self.coming.push(Reverse(coming));
        }
        latency > Time::ZERO
    }

    /// Removes and returns the individual path that a message has chosen.
    fn own_way(&mut self, number: u32) -> Option<FlowPath> {
        let own_ways = self.own_ways.as_mut()?;
        own_ways.chosen.remove(&number)
    }

    /// Starts the movement of a message and returns its index.
    fn start(&mut self, number: u32, route: u32) -> u32 {
        let index = self.moving.insert(number);
        let own = self.own_way(number);
        let path = own.as_ref().unwrap_or(&self.routes.paths[route as usize]);
        if let Some(loads) = &self.loads {
            loads.add(path, self.in_flight[number].work);
        }
        match self.fabric.paths.get_mut(index as usize) {
            Some(place) => place.clone_from(path),
            None => self.fabric.paths.push(path.clone()),
        }
        index
    }

    fn arrive(&mut self, number: u32) {
        let TransitInFlight {
            slot,
            start,
            latency,
            ..
        } = self.in_flight[number];
        let arrival = self.now;
        self.arrived.push(Delivery {
            slot,
            start,
            arrival,
            left: arrival - latency,
        });
        self.in_flight.give_back(number);
    }

    /// Ends all messages whose last byte passes now; ends are handled before starts.
    fn end_messages(&mut self) {
        while let Some(index) = self.traffic.end_next(&self.fabric, self.now) {
            self.moving.give_back(index);
            let number = self.moving[index];
            if let Some(delays) = &mut self.delays {
                delays.end(index, self.in_flight[number].slot, self.now);
            }
            self.arrive(number);
        }
        self.are_empty = false;
        self.order_arrivals();
    }

    fn start_messages(&mut self) {
        while let Some(Reverse(coming)) = self.coming.peek().copied()
            && coming.time() <= self.now
        {
            self.coming.pop();
            let number = coming.number();
            let TransitInFlight {
                slot, work, route, ..
            } = self.in_flight[number];
            if self.own_ways.is_some() && self.is_put_off(number) {
                continue;
            }
            if work == Time::ZERO {
                self.own_way(number);
                self.arrive(number);
                continue;
            }
            let index = self.start(number, route);
            self.traffic
                .start(&self.fabric, index, self.now, work, slot.0);
        }
        self.are_empty = true;
        self.order_arrivals();
    }

    /// Sorts the arrivals in reverse, because the caller takes them from the end.
    fn order_arrivals(&mut self) {
        self.arrived
            .sort_unstable_by_key(|delivery| Reverse(delivery.slot));
    }
}

/// Properties of a departure that determine its rates.
#[derive(Debug, Clone, Copy)]
struct Leaving {
    slot: Slot,
    start: Time,
    latency: Time,
    /// Time that the remaining bytes take at the full rate.
    work: Time,
}

impl Leaving {
    fn new(departure: &Departure) -> Leaving {
        let Departure {
            slot,
            start,
            cost,
            latency,
            ..
        } = *departure;
        Leaving {
            slot,
            start,
            latency,
            work: (cost.delay - latency).max(Time::ZERO),
        }
    }

    /// Time at which it reaches its first link.
    fn comes(&self) -> Time {
        self.start + self.latency
    }
}

impl Shared {
    fn leave(&mut self, mut leaving: Leaving, route: u32) {
        if let Some(latency) = self.routes.latencies.get(route as usize) {
            leaving.latency += *latency;
        }
        let Leaving {
            slot,
            start,
            latency,
            work,
        } = leaving;
        let number = self.in_flight.insert(TransitInFlight {
            slot,
            start,
            latency,
            work,
            route,
        });
        self.coming
            .push(Reverse(Coming::new(leaving.comes(), slot, number)));
    }

    fn update_rates(&mut self) -> Result<(), SharingError> {
        let (fabric, now) = (&self.fabric, self.now);
        match &mut self.delays {
            None => self.traffic.update_rates(fabric, now, |_| {}),
            Some(delays) => self
                .traffic
                .update_rates(fabric, now, |change| delays.change(fabric, change, now)),
        }
    }

    /// Time of the next event in the network, without further departures.
    pub(crate) fn next_event(&self) -> Option<Time> {
        let start = self.coming.peek().map(|Reverse(coming)| coming.time());
        let (end, step) = (self.traffic.next_end(), self.traffic.next_step());
        start.into_iter().chain(end).chain(step).min()
    }
}

impl Transit for Shared {
    const SHARED: bool = true;

    fn depart(&mut self, departure: Departure) {
        let route = match departure.ends {
            Some(ends) => self.routes.transfers[&ends],
            None => self.routes.of_slot[departure.slot],
        };
        self.leave(Leaving::new(&departure), route);
    }

    fn deliver(&mut self, limit: Option<Time>) -> NextProgress {
        loop {
            if let Some(delivery) = self.arrived.pop() {
                return Ok(Some(Progress::Arrived(delivery)));
            }
            let start = self.coming.peek().map(|Reverse(coming)| coming.time());
            // All messages that start now start together.
            if start.is_none_or(|start| start > self.now) {
                self.update_rates()?;
            }
            let (end, step) = (self.traffic.next_end(), self.traffic.next_step());
            let next = start.into_iter().chain(end).chain(step).min();
            let Some(next) = next.filter(|next| limit.is_none_or(|limit| *next <= limit)) else {
                return Ok(None);
            };
            self.now = next.max(self.now);
            if end.is_some_and(|end| end <= self.now) {
                self.end_messages();
            } else if start.is_some_and(|start| start <= self.now) {
                self.start_messages();
            } else {
                self.traffic.step(&self.fabric);
            }
        }
    }
}
