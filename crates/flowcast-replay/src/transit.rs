//! How messages get from sender to receiver in a replay: undisturbed, or sharing the network with the others.
//!
//! A message is a flow: it departs when its sender's processor is through with it, spends its latency undisturbed,
//! and then moves at the rate that a sharing model leaves it among all that are in flight (RR-5910 section 5.3,
//! Algorithm 1 of Zhu et al.; `traffic`). With max-min fairness this is what SimGrid's SMPI computes. The ranks follow the walk
//! ([`crate::walk`]), or Dimemas' rules ([`crate::contention`]) where processors, links or buses are limited.

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

/// How messages get from node to node.
pub(crate) trait Transit {
    /// Whether messages disturb each other; otherwise nothing below is ever called.
    const SHARED: bool;

    /// Whether its results may depend on the order in which ranks are followed that could be followed at once.
    const IS_ORDERED: bool = Self::SHARED;

    /// Whether it brings the sender and the receiver of a rendezvous together. Then such a message departs with its RTS, and the
    /// transit is notified when ranks wait and when they go on.
    const HANDSHAKES: bool = false;

    /// Whether RTS and CTS cross the network as well, and the data follow them by themselves, or at least whether messages need
    /// no links and have spent their latency when they arrive.
    const CONTROL_FRAMES: bool = false;

    /// Whether it carries the message of a slot.
    #[inline(always)]
    fn carries(&self, _slot: Slot, is_between_nodes: bool) -> bool {
        is_between_nodes
    }

    /// A message, or its RTS, leaves its sender.
    fn depart(&mut self, departure: Departure);

    /// The receive of a message is posted whose RTS was sent before.
    fn receive_posted(&mut self, _slot: Slot, _posted: ReceivePosted) {}

    /// A rank waits since this time, or is done: it polls and replies.
    fn wait(&mut self, _rank: Rank, _since: Time) {}

    /// A rank goes on and does not poll until it waits again.
    fn go_on(&mut self, _rank: Rank) {}

    /// What happens next to a message, once no rank can go on without that; nothing that happens after `limit`.
    ///
    /// # Errors
    /// Those of the sharing model.
    fn deliver(&mut self, limit: Option<Time>) -> Result<Option<Progress>, SharingError>;

    /// What else has happened by now; asked after [`Transit::deliver`] where nobody sees the order.
    fn deliver_more(&mut self) -> Option<Progress> {
        None
    }
}

/// A message that leaves its sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departure {
    /// Its slot; from the number of messages on, a one-sided transfer.
    pub slot: Slot,
    /// When its sender's processor was through with it.
    pub start: Time,
    /// Size of the data that it carries.
    pub size: Bytes,
    /// What it would cost alone.
    pub cost: ClassCost,
    /// Its RTS, where that crosses the network first.
    pub rts: Option<Rts>,
    /// The part of the delay that is not shared.
    pub latency: Time,
    /// Of a one-sided transfer: from where to where its data go.
    pub ends: Option<(Node, Node)>,
}

/// The request to send of a message whose data follow the CTS.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rts {
    /// The rank that sends the message.
    pub from: Rank,
    /// The rank that receives the message.
    pub to: Rank,
    /// The receive, if it is posted already.
    pub posted: Option<ReceivePosted>,
}

/// A receive that was posted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReceivePosted {
    /// When it was posted.
    pub since: Time,
    /// When the rank had last polled: an RTS that arrived before gets its CTS at once.
    pub polled: Time,
}

impl ReceivePosted {
    /// When a rank had last polled that never did.
    pub const NEVER: Time = Time::from_nanos(-1.0);
}

/// What happens to a message in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// Its sender may go on: the system holds the rest of it.
    Held {
        /// Its slot.
        slot: Slot,
        /// Since when the sender has been held.
        since: Time,
    },
    /// Its sender and its receiver have seen each other, so that it may depart with its data.
    Met(Departure),
    /// Its last byte has arrived.
    Arrived(Delivery),
}

/// A message that has arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delivery {
    /// Slot of the message, that of its [`Departure`].
    pub slot: Slot,
    /// When it began to leave its sender.
    pub start: Time,
    /// When its last byte arrived.
    pub arrival: Time,
    /// When its last byte had left the sender.
    pub left: Time,
}

/// Messages do not disturb each other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Undisturbed;

impl Transit for Undisturbed {
    const SHARED: bool = false;

    fn depart(&mut self, _departure: Departure) {}

    fn deliver(&mut self, _limit: Option<Time>) -> Result<Option<Progress>, SharingError> {
        Ok(None)
    }
}

/// Messages share the links of a fabric.
pub struct Shared {
    /// The paths of the messages that move, by index.
    fabric: Fabric,
    routes: Arc<SharedRoutes>,
    /// What links have carried, if anybody asks.
    loads: Option<Arc<LinkLoads>>,
    /// What messages lose to others, if anybody asks.
    delays: Option<Box<MessageDelays>>,
    /// Where messages have ways of their own.
    own_ways: Option<Box<OwnWays>>,
    traffic: NetworkTraffic,
    /// Messages that have departed.
    in_flight: Slab<TransitInFlight>,
    /// The numbers of those that move. They get their indices in the order in which they start, since a model may prefer
    /// the lower index, and the order in which messages depart is that in which ranks were followed.
    moving: Slab<u32>,
    /// Messages whose latency is not over.
    coming: BinaryHeap<Reverse<Coming>>,
    now: Time,
    /// Messages that have arrived and were not yet asked for; the last is the next.
    arrived: Vec<Delivery>,
    /// Whether they have arrived as soon as they started.
    are_empty: bool,
}

/// The ways that messages take through a fabric.
struct SharedRoutes {
    /// The paths that there are.
    paths: Vec<FlowPath>,
    /// By slot: the path.
    of_slot: Vec<u32>,
    /// By ends: the path of one-sided transfers.
    transfers: BTreeMap<(Node, Node), u32>,
    /// By path: what its links add to the latency; empty if nothing.
    latencies: Vec<Time>,
}

/// Messages that go between the same nodes on different ways.
struct OwnWays {
    /// By path: its ends, and how many messages have gone between them.
    pairs: Vec<([Node; 2], u32)>,
    /// The ways that messages have chosen that have not started, by their numbers.
    chosen: HashMap<u32, FlowPath>,
}

/// A message that has departed.
#[derive(Debug, Clone, Copy)]
struct TransitInFlight {
    slot: Slot,
    start: Time,
    latency: Time,
    /// Time that the rest takes at the whole rate.
    work: Time,
    route: u32,
}

/// A message whose latency is not over: the bits of the time when it is, which order as times do that are not negative, then
/// its slot, then its number.
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
    /// For the messages of a program on placed ranks.
    ///
    /// # Errors
    /// A topology that has no place for a node.
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

    /// For what so many ranks send, in so many slots: `sends` gives slot and receiver of each message of a rank.
    ///
    /// # Errors
    /// As [`Shared::new`].
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
            Box::new(OwnWays {
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

    /// Notes what links carry, and what messages lose there to others.
    pub(super) fn noting_loads(self) -> Shared {
        let delays = Arc::new(LinkDelays::new(&self.fabric));
        Shared {
            loads: Some(Arc::new(LinkLoads::new(&self.fabric))),
            delays: Some(Box::new(MessageDelays::new(delays))),
            ..self
        }
    }

    /// What links carry, if that is noted.
    pub(super) fn loads(&self) -> Option<Arc<LinkLoads>> {
        self.loads.clone()
    }

    /// What messages lose at which link, if that is noted.
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

    /// The same network with other rules, through which nothing moves yet.
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

    /// How the messages are dealt to threads that each solve a part of the network, under a model of this reach.
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

    /// Chooses the way of a message that has one of its own; whether the message has yet to spend the latency of that.
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

    /// The way of its own that a message has chosen.
    fn own_way(&mut self, number: u32) -> Option<FlowPath> {
        let own_ways = self.own_ways.as_mut()?;
        own_ways.chosen.remove(&number)
    }

    /// The index of a message that starts to move.
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

    /// Ends all messages whose last byte passes now; ends come before starts.
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

    /// The caller takes from the end.
    fn order_arrivals(&mut self) {
        self.arrived
            .sort_unstable_by_key(|delivery| Reverse(delivery.slot));
    }
}

/// What rates make of a departure.
#[derive(Debug, Clone, Copy)]
struct Leaving {
    slot: Slot,
    start: Time,
    latency: Time,
    /// Time that the rest takes at the whole rate.
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

    /// When it reaches its first link.
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

    /// When something happens next by itself.
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

    fn deliver(&mut self, limit: Option<Time>) -> Result<Option<Progress>, SharingError> {
        loop {
            if let Some(delivery) = self.arrived.pop() {
                return Ok(Some(Progress::Arrived(delivery)));
            }
            let start = self.coming.peek().map(|Reverse(coming)| coming.time());
            // Whatever starts now starts together.
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
