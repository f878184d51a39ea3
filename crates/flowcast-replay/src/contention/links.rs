//! Links and buses: holders, queues and preemption (Dimemas' rules).
//!
//! A message between nodes needs an out link of its source, then an in link of its destination, then a bus. It keeps the
//! ones that it has while it waits for the next. All queues are first in, first out, with one exception: a message that has
//! an out link but waits for its in link can be preempted by a message of the same node whose in link is free (or, on
//! half-duplex links, by an incoming message). It then moves to the front of the queue. Messages inside a node use links of
//! their ranks and buses of the node. Messages between sites use links of the sites or of a dedicated connection, and no
//! buses. Neither kind of message is ever preempted.

use super::{
    super::{costs::site_buses, outcome::Waits, placement::Placement, routes::Route},
    buses::BusPool,
    messages::{BusState, ContendedMessage, MessageMark, MessageStore, NONE},
    pool::{IN, OUT, ResourcePool},
};
use crate::prefetch::prefetch_behind;
use flowcast_network::network::Network;
use flowcast_program::program::Program;
use flowcast_units::Rank;

/// All links and buses of a machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Links {
    pools: Vec<ResourcePool>,
    buses: Vec<BusPool>,
    /// Pool of each rank's node, indexed by rank.
    of_node_of_rank: Vec<u32>,
    /// Pool of each rank's task for messages inside its node, indexed by rank.
    of_rank: Vec<u32>,
    /// Pool of each site for messages to and from other sites, indexed by site.
    of_site: Vec<u32>,
    /// Pool of each dedicated connection, indexed by connection.
    of_connection: Vec<u32>,
    /// Buses of each rank's node for messages inside it, indexed by rank; empty if no node has such buses.
    buses_inside: Vec<u32>,
    /// Site of each rank, indexed by rank; empty if there is only one site.
    site_of: Vec<u32>,
    /// Messages and collectives that got everything they requested, in this order.
    granted: Vec<u32>,
    /// Number of waits, by resource.
    pub waits: Waits,
}

impl Links {
    /// All links and buses, free.
    pub(crate) fn new(program: &Program, network: &Network, placement: &Placement) -> Links {
        let sites = placement.sites() as u32;
        let mut links = Links {
            buses: (0..sites)
                .map(|site| BusPool::new(site_buses(network, site)))
                .collect(),
            ..Links::default()
        };
        let of_node: Vec<u32> = placement
            .groups_by_node()
            .map(|group| links.add_pool(group.in_links, group.out_links))
            .collect();
        links.of_node_of_rank = Rank::all(program.streams())
            .map(|rank| of_node[placement.node(rank)])
            .collect();
        links.add_ranks(program, placement);
        links.add_buses_inside(program, placement);
        if sites > 1 {
            links.add_sites(program, network, placement);
        }
        links
    }

    /// Adds the links of ranks. The threads of a task share its links; so do a rank and its progress streams.
    fn add_ranks(&mut self, program: &Program, placement: &Placement) {
        for rank in Rank::all(program.streams()) {
            let group = placement.group(rank);
            let owner = program.owner(rank);
            let pool = match self.of_rank.last() {
                _ if owner != rank => self.of_rank[owner],
                Some(of_task) if program.thread(rank) > 0 => *of_task,
                _ => self.add_pool(group.intra_in_links, group.intra_out_links),
            };
            self.of_rank.push(pool);
        }
    }

    fn add_buses_inside(&mut self, program: &Program, placement: &Placement) {
        if placement
            .groups()
            .iter()
            .all(|group| group.intra_buses == 0)
        {
            return;
        }
        let first = self.buses.len() as u32;
        let of_nodes = placement.groups_by_node();
        self.buses
            .extend(of_nodes.map(|group| BusPool::new(group.intra_buses)));
        let of_rank = Rank::all(program.streams()).map(|rank| first + placement.node(rank).0);
        self.buses_inside = of_rank.collect();
    }

    fn add_sites(&mut self, program: &Program, network: &Network, placement: &Placement) {
        let wide_area = &network.machine.wide_area;
        self.site_of = Rank::all(program.streams())
            .map(|rank| placement.group(rank).site)
            .collect();
        self.of_site = (0..placement.sites())
            .map(|_| self.add_pool(wide_area.in_links, wide_area.out_links))
            .collect();
        self.of_connection = wide_area
            .connections
            .iter()
            .map(|_| self.add_pool(1, 1))
            .collect();
    }

    fn add_pool(&mut self, links_in: u32, links_out: u32) -> u32 {
        if links_in == 0 && links_out == 0 {
            return NONE;
        }
        self.pools.push(ResourcePool::new(links_in, links_out));
        self.pools.len() as u32 - 1
    }

    /// Prefetches the links of a message.
    #[inline(always)]
    pub(super) fn prefetch(&self, message: &ContendedMessage) {
        prefetch_behind(&self.pools, message.source as usize);
        prefetch_behind(&self.pools, message.destination as usize);
    }

    /// Prefetches the links of a rank's node.
    #[inline(always)]
    pub(super) fn prefetch_node_of(&self, rank: Rank) {
        if let Some(pool) = self.of_node_of_rank.get(rank.index()) {
            prefetch_behind(&self.pools, *pool as usize);
        }
    }

    /// Prefetches the message that holds the out link of a rank's node and may have to give it up.
    #[inline(always)]
    pub(super) fn prefetch_holder(&self, rank: Rank, messages: &MessageStore) {
        if let Some(pool) = self.of_node_of_rank.get(rank.index())
            && let Some(pool) = self.pools.get(*pool as usize)
        {
            messages.prefetch(pool.first_holder());
        }
    }

    /// Prefetches the in links of the message that is next to get the out link of another message.
    #[inline(always)]
    pub(super) fn prefetch_links_of_waiting(
        &self,
        message: &ContendedMessage,
        messages: &MessageStore,
    ) {
        if let Some(pool) = self.pools.get(message.source as usize)
            && let Some(next) = pool.waiting[OUT].first()
        {
            prefetch_behind(&self.pools, messages[next].destination as usize);
        }
    }

    /// Prefetches the messages that wait for the links of another message.
    #[inline(always)]
    pub(super) fn prefetch_waiting(&self, message: &ContendedMessage, messages: &MessageStore) {
        if let Some(pool) = self.pools.get(message.source as usize) {
            messages.prefetch(pool.waiting[OUT].first_or_none());
        }
        if let Some(pool) = self.pools.get(message.destination as usize) {
            messages.prefetch(pool.waiting[IN].first_or_none());
        }
    }

    /// Site of a rank.
    #[inline(always)]
    fn site(&self, rank: Rank) -> u32 {
        self.site_of.get(rank.index()).copied().unwrap_or(0)
    }

    /// Sets the links and buses that a message to a rank needs.
    #[inline(always)]
    pub(super) fn route(&self, message: &mut ContendedMessage, to: Rank, route: Route) {
        let from = message.from;
        match route {
            Route::Between => {
                message.source = self.of_node_of_rank[from];
                message.destination = self.of_node_of_rank[to];
                let site = self.site(from);
                if self.buses[site as usize].is_limited() {
                    message.bus = BusState(site as u16 + 2);
                }
                message.mark(MessageMark::Steals);
            }
            Route::Inside => self.route_inside(message, to),
            Route::ToSite(site) => {
                message.source = self.of_site[self.site(from) as usize];
                message.destination = self.of_site[site];
                self.put_in_order(message, self.site(from) > site as u32);
            }
            Route::By(connection) => {
                message.source = self.of_connection[connection];
                message.destination = message.source;
                message.mark(MessageMark::Connected);
            }
        }
    }

    fn route_inside(&self, message: &mut ContendedMessage, to: Rank) {
        message.mark(MessageMark::Inside);
        if !self.buses_inside.is_empty() {
            message.bus = BusState::INSIDE;
        }
        let (source, destination) = (self.of_rank[message.from], self.of_rank[to]);
        // A message of a task to itself uses no link.
        if message.from != to && (source != destination || source == NONE) {
            message.source = source;
            message.destination = destination;
            self.put_in_order(message, message.from > to);
        }
    }

    /// If a link is half duplex, the message requests the link of the lower rank or site first, so that two opposite
    /// messages cannot deadlock.
    fn put_in_order(&self, message: &mut ContendedMessage, from_higher: bool) {
        let half_duplex = |pool: u32| pool != NONE && self.pools[pool as usize].half_duplex;
        if from_higher && (half_duplex(message.source) || half_duplex(message.destination)) {
            message.mark(MessageMark::InFirst);
        }
    }

    fn buses_of(&mut self, message: &ContendedMessage) -> &mut BusPool {
        let index = match message.bus {
            BusState::INSIDE => self.buses_inside[message.from] as usize,
            BusState(site) => usize::from(site) - 2,
        };
        &mut self.buses[index]
    }

    /// Next message or collective that has everything it needs, in order. `taken` counts the calls since the last request or
    /// release.
    #[inline(always)]
    pub(super) fn next_granted(&mut self, taken: &mut usize) -> Option<u32> {
        let next = self.granted.get(*taken).copied();
        *taken += 1;
        if next.is_none() {
            self.granted.clear();
        }
        next
    }

    /// Requests the links and the bus that a message still needs. Returns `true` if it has all of them now; otherwise it
    /// waits.
    #[inline(always)]
    pub(super) fn request(&mut self, messages: &mut MessageStore, number: u32) -> bool {
        let message = &messages[number];
        if message.source != NONE || message.destination != NONE {
            let linked = match message.is(MessageMark::Steals) {
                true => self.link_at_once(messages, number) || self.link_nodes(messages, number),
                false => self.link_plainly(messages, number),
            };
            if !linked {
                self.count_wait(&messages[number]);
                return false;
            }
        }
        messages[number].bus == BusState::NONE || self.take_bus(messages, number)
    }

    fn take_bus(&mut self, messages: &mut MessageStore, number: u32) -> bool {
        let message = messages[number];
        let taken = self.buses_of(&message).take(messages, number);
        match message.bus {
            _ if taken => {}
            BusState::INSIDE => self.waits.intra_buses += 1,
            _ => self.waits.buses += 1,
        }
        taken
    }

    /// Takes both links of a message that has none, if both are free, as they usually are.
    #[inline(always)]
    fn link_at_once(&mut self, messages: &mut MessageStore, number: u32) -> bool {
        let message = &mut messages[number];
        let (source, destination) = (message.source as usize, message.destination as usize);
        let is_free = !message.is(MessageMark::HasOut)
            && !message.is(MessageMark::HasIn)
            && self
                .pools
                .get(source)
                .is_some_and(|pool| pool.free[OUT] > 0 && !pool.half_duplex)
            && self
                .pools
                .get(destination)
                .is_some_and(|pool| pool.free[IN] > 0 && !pool.half_duplex);
        if is_free {
            message.mark(MessageMark::HasOut);
            message.mark(MessageMark::HasIn);
            self.pools[destination].free[IN] -= 1;
            let pool = &mut self.pools[source];
            pool.free[OUT] -= 1;
            pool.hold(number);
        }
        is_free
    }

    fn count_wait(&mut self, message: &ContendedMessage) {
        let waits = &mut self.waits;
        *match message {
            message if message.is(MessageMark::Steals) => &mut waits.links,
            message if message.is(MessageMark::Inside) => &mut waits.intra_links,
            message if message.is(MessageMark::Connected) => &mut waits.connections,
            _ => &mut waits.wide_area_links,
        } += 1;
    }

    /// Requests all buses of a site for a collective, which needs no links.
    pub(super) fn request_all(&mut self, messages: &mut MessageStore, number: u32, site: u32) {
        messages[number].bus = BusState(site as u16 + 2);
        let buses = &mut self.buses[site as usize];
        if !buses.is_limited() || buses.take_all(messages, number) {
            self.granted.push(number);
        } else {
            self.waits.buses += 1;
        }
    }

    /// Releases all buses of a site.
    pub(super) fn release_all(&mut self, messages: &mut MessageStore, site: u32) {
        self.buses[site as usize].release_all(messages, &mut self.granted);
    }

    fn link_nodes(&mut self, messages: &mut MessageStore, number: u32) -> bool {
        let message = messages[number];
        let ContendedMessage {
            source,
            destination,
            ..
        } = message;
        let mut victim = None;
        if !message.is(MessageMark::HasOut) && source != NONE {
            let pool = &mut self.pools[source as usize];
            if pool.take(OUT) {
                pool.hold(number);
                messages[number].mark(MessageMark::HasOut);
            } else {
                victim = pool.victim(messages);
                if victim.is_none() {
                    pool.waiting[OUT].push_back(messages, number);
                    return false;
                }
            }
        }
        if !message.is(MessageMark::HasIn)
            && !self.link_in(messages, number, destination, victim.is_some())
        {
            return false;
        }
        if let Some(victim) = victim {
            self.preempt(messages, source, victim, Some(number));
        }
        true
    }

    /// Takes an in link. If the links are half duplex and none is free, it preempts an outgoing message of the destination
    /// that still waits for its own in link.
    fn link_in(
        &mut self,
        messages: &mut MessageStore,
        number: u32,
        destination: u32,
        preempts: bool,
    ) -> bool {
        if destination != NONE {
            let pool = &mut self.pools[destination as usize];
            if !pool.take(IN) {
                let holder = if pool.half_duplex {
                    pool.victim(messages)
                } else {
                    None
                };
                let Some(holder) = holder else {
                    let source = messages[number].source as usize;
                    let queue = match preempts {
                        // Without an out link of its own, it waits in the queue of the link that it could preempt.
                        true => &mut self.pools[source].waiting[OUT],
                        false => &mut pool.waiting[IN],
                    };
                    queue.push_back(messages, number);
                    return false;
                };
                // The link that was used outwards is now used inwards; it stays counted in both directions.
                self.preempt(messages, destination, holder, None);
            }
        }
        messages[number].mark(MessageMark::HasIn);
        true
    }

    /// Takes the out link from a message that waits for its in link.
    fn preempt(&mut self, messages: &mut MessageStore, pool: u32, victim: u32, taker: Option<u32>) {
        let destination = messages[victim].destination as usize;
        self.pools[destination].waiting[IN].remove(messages, victim);
        messages[victim].unmark(MessageMark::HasOut);
        let pool = &mut self.pools[pool as usize];
        match taker {
            Some(taker) => {
                pool.hand_on(victim, taker);
                messages[taker].mark(MessageMark::HasOut);
            }
            None => pool.let_go(victim),
        }
        pool.waiting[OUT].push_front(messages, victim);
    }

    /// Takes links without preemption.
    fn link_plainly(&mut self, messages: &mut MessageStore, number: u32) -> bool {
        let in_first = messages[number].is(MessageMark::InFirst);
        (!in_first || self.link_one_way(messages, number, IN))
            && self.link_one_way(messages, number, OUT)
            && self.link_one_way(messages, number, IN)
    }

    fn link_one_way(&mut self, messages: &mut MessageStore, number: u32, way: usize) -> bool {
        let message = &mut messages[number];
        let (pool, mark) = match way {
            OUT => (message.source, MessageMark::HasOut),
            _ => (message.destination, MessageMark::HasIn),
        };
        if !message.is(mark) && pool != NONE {
            let pool = &mut self.pools[pool as usize];
            if !pool.take(way) {
                pool.waiting[way].push_back(messages, number);
                return false;
            }
            message.mark(mark);
        }
        true
    }

    /// Releases the links and the bus of a message. The first message in the queue of each then requests it again.
    #[inline(always)]
    pub(super) fn release(&mut self, messages: &mut MessageStore, number: u32) {
        let message = messages[number];
        if message.is(MessageMark::HasOut) {
            if message.is(MessageMark::Steals) {
                self.pools[message.source as usize].let_go(number);
            }
            self.release_link(messages, message.source, OUT);
        }
        if message.is(MessageMark::HasIn) && message.destination != NONE {
            self.release_link(messages, message.destination, IN);
        }
        if message.bus != BusState::NONE {
            let mut granted = std::mem::take(&mut self.granted);
            self.buses_of(&message).release(messages, &mut granted);
            self.granted = granted;
        }
    }

    fn release_link(&mut self, messages: &mut MessageStore, number: u32, way: usize) {
        let pool = &mut self.pools[number as usize];
        pool.free[way] += 1;
        if pool.half_duplex {
            pool.free[1 - way] += 1;
            self.retry(messages, number, 1 - way);
        }
        self.retry(messages, number, way);
    }

    /// Lets the first message that waits for a link request it again.
    #[inline]
    fn retry(&mut self, messages: &mut MessageStore, pool: u32, way: usize) {
        if let Some(next) = self.pools[pool as usize].waiting[way].pop_front(messages)
            && self.request(messages, next)
        {
            self.granted.push(next);
        }
    }
}
