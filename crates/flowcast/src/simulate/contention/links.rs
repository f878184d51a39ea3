//! Links and buses: who has one, who waits for one, who takes one from another (Dimemas' rules).
//!
//! A message between nodes needs an out link of its source, then an in link of its destination, then a bus, and keeps
//! what it has while it waits for the next. All queues are first in, first out, with one exception: a message that
//! has an out link but waits for its in link can be robbed of it by a message of the same node whose in link is free
//! (or, where links are half duplex, by one that wants to come in), and stands at the front of the queue then.
//! Messages inside a node have links of their ranks and buses of the node, and are never robbed.

use super::super::placement::Placement;
use super::buses::Buses;
use super::messages::{Message, Messages, NONE};
use super::pool::Pool;
use crate::model::network::Network;
use crate::units::{Node, Rank};

/// Index of the buses between the nodes.
const MACHINE: u32 = 0;

/// All links and buses of a machine.
#[derive(Debug, Clone)]
pub struct Links {
    pools: Vec<Pool>,
    buses: Vec<Buses>,
    /// By node: its pool.
    of_node: Vec<u32>,
    /// By rank: its pool for messages inside its node.
    of_rank: Vec<u32>,
    /// By node: its buses for messages inside it.
    buses_inside: Vec<u32>,
    /// What got all that it asked for, in this order.
    granted: Vec<u32>,
}

impl Links {
    /// All free.
    pub fn new(network: &Network, placement: &Placement, ranks: usize) -> Links {
        let mut links = Links {
            pools: Vec::new(),
            buses: vec![Buses::new(network.machine.buses)],
            of_node: Vec::with_capacity(placement.nodes()),
            of_rank: Vec::with_capacity(ranks),
            buses_inside: Vec::with_capacity(placement.nodes()),
            granted: Vec::new(),
        };
        for node in (0..placement.nodes() as u32).map(Node) {
            let group = &placement.groups()[placement.group_index(node)];
            let pool = links.add_pool(group.in_links, group.out_links);
            links.of_node.push(pool);
            let buses = links.add_buses(group.intra_buses);
            links.buses_inside.push(buses);
        }
        for rank in (0..ranks as u32).map(Rank) {
            let group = placement.group(rank);
            let pool = links.add_pool(group.intra_in_links, group.intra_out_links);
            links.of_rank.push(pool);
        }
        links
    }

    fn add_pool(&mut self, links_in: u32, links_out: u32) -> u32 {
        if links_in == 0 && links_out == 0 {
            return NONE;
        }
        self.pools.push(Pool::new(links_in, links_out));
        self.pools.len() as u32 - 1
    }

    fn add_buses(&mut self, count: u32) -> u32 {
        if count == 0 {
            return NONE;
        }
        self.buses.push(Buses::new(count));
        self.buses.len() as u32 - 1
    }

    /// Sets what a message between ranks on these nodes needs.
    #[inline(always)]
    pub fn route(&self, message: &mut Message, (from, to): (u32, u32)) {
        if from != to {
            message.source = self.of_node[from as usize];
            message.destination = self.of_node[to as usize];
            message.bus = if self.buses[MACHINE as usize].is_limited() { MACHINE } else { NONE };
            return;
        }
        message.inside = true;
        message.bus = self.buses_inside[from as usize];
        // A message of a rank to itself passes no link.
        if message.from != message.to {
            message.source = self.of_rank[message.from as usize];
            message.destination = self.of_rank[message.to as usize];
        }
    }

    /// What has got all that it needs, in order; `taken` counts the calls since something was asked or released.
    #[inline(always)]
    pub fn next_granted(&mut self, taken: &mut usize) -> Option<u32> {
        let next = self.granted.get(*taken).copied();
        *taken += 1;
        if next.is_none() {
            self.granted.clear();
        }
        next
    }

    /// Asks for what a message still lacks: granted, or made to wait.
    #[inline(always)]
    pub fn request(&mut self, messages: &mut Messages, number: u32) {
        let message = &messages[number];
        if message.source != NONE || message.destination != NONE {
            let inside = message.inside;
            let linked = if inside { self.link_ranks(messages, number) } else { self.link_nodes(messages, number) };
            if !linked {
                return;
            }
        }
        let bus = messages[number].bus;
        if bus != NONE && !self.buses[bus as usize].take(messages, number) {
            return;
        }
        self.granted.push(number);
    }

    /// Asks for all buses between the nodes for a collective, which needs no links.
    pub fn request_all(&mut self, messages: &mut Messages, number: u32) {
        let buses = &mut self.buses[MACHINE as usize];
        if !buses.is_limited() || buses.take_all(messages, number) {
            self.granted.push(number);
        }
    }

    /// Gives all buses between the nodes back.
    pub fn release_all(&mut self, messages: &mut Messages) {
        self.buses[MACHINE as usize].release_all(messages, &mut self.granted);
    }

    fn link_nodes(&mut self, messages: &mut Messages, number: u32) -> bool {
        let Message { source, destination, has_out, has_in, .. } = messages[number];
        let mut victim = None;
        if !has_out && source != NONE {
            let pool = &mut self.pools[source as usize];
            if pool.take_out() {
                pool.holding.push(number);
                messages[number].has_out = true;
            } else {
                victim = pool.victim(messages);
                if victim.is_none() {
                    pool.waiting_out.push_back(messages, number);
                    return false;
                }
            }
        }
        if !has_in && !self.link_in(messages, number, destination, victim.is_some()) {
            return false;
        }
        if let Some(victim) = victim {
            self.rob(messages, source, victim, Some(number));
        }
        true
    }

    /// Takes an in link, if need be and possible one that a message of the destination cannot use yet.
    fn link_in(&mut self, messages: &mut Messages, number: u32, destination: u32, robs: bool) -> bool {
        if destination != NONE {
            let pool = &mut self.pools[destination as usize];
            if !pool.take_in() {
                let holder = if pool.half_duplex { pool.victim(messages) } else { None };
                let Some(holder) = holder else {
                    let source = messages[number].source as usize;
                    let queue = match robs {
                        // Without an out link of its own it waits where it could take one.
                        true => &mut self.pools[source].waiting_out,
                        false => &mut pool.waiting_in,
                    };
                    queue.push_back(messages, number);
                    return false;
                };
                // The link that served to go out serves to come in; it stays counted in both directions.
                self.rob(messages, destination, holder, None);
            }
        }
        messages[number].has_in = true;
        true
    }

    /// Takes the out link from a message that waits for its in link.
    fn rob(&mut self, messages: &mut Messages, pool: u32, victim: u32, taker: Option<u32>) {
        let destination = messages[victim].destination as usize;
        self.pools[destination].waiting_in.remove(messages, victim);
        messages[victim].has_out = false;
        let pool = &mut self.pools[pool as usize];
        let place = pool.holding.iter().position(|number| *number == victim).expect("a victim holds a link");
        match taker {
            Some(taker) => {
                pool.holding[place] = taker;
                messages[taker].has_out = true;
            }
            None => {
                pool.holding.remove(place);
            }
        }
        pool.waiting_out.push_front(messages, victim);
    }

    /// Links inside a node. Half duplex, the lower rank's link comes first, so that two ranks cannot hold each other.
    fn link_ranks(&mut self, messages: &mut Messages, number: u32) -> bool {
        let Message { from, to, source, .. } = messages[number];
        let in_first = self.pools[source as usize].half_duplex && from > to;
        (!in_first || self.rank_in(messages, number))
            && self.rank_out(messages, number)
            && self.rank_in(messages, number)
    }

    fn rank_out(&mut self, messages: &mut Messages, number: u32) -> bool {
        let pool = &mut self.pools[messages[number].source as usize];
        if !messages[number].has_out {
            if !pool.take_out() {
                pool.waiting_out.push_back(messages, number);
                return false;
            }
            messages[number].has_out = true;
        }
        true
    }

    fn rank_in(&mut self, messages: &mut Messages, number: u32) -> bool {
        let pool = &mut self.pools[messages[number].destination as usize];
        if !messages[number].has_in {
            if !pool.take_in() {
                pool.waiting_in.push_back(messages, number);
                return false;
            }
            messages[number].has_in = true;
        }
        true
    }

    /// Gives back all that a message has; for each thing the first that waits for it asks again.
    #[inline(always)]
    pub fn release(&mut self, messages: &mut Messages, number: u32) {
        let Message { source, destination, bus, has_out, has_in, inside, .. } = messages[number];
        if has_out {
            self.release_out(messages, number, source, inside);
        }
        if has_in && destination != NONE {
            self.release_in(messages, destination);
        }
        if bus != NONE {
            self.buses[bus as usize].release(messages, &mut self.granted);
        }
    }

    fn release_out(&mut self, messages: &mut Messages, number: u32, source: u32, inside: bool) {
        let pool = &mut self.pools[source as usize];
        pool.free_out += 1;
        if !inside {
            let place = pool.holding.iter().position(|held| *held == number).expect("what has a link is listed");
            pool.holding.remove(place);
        }
        if pool.half_duplex {
            pool.free_in += 1;
            self.retry_in(messages, source);
        }
        self.retry_out(messages, source);
    }

    fn release_in(&mut self, messages: &mut Messages, destination: u32) {
        let pool = &mut self.pools[destination as usize];
        pool.free_in += 1;
        if pool.half_duplex {
            pool.free_out += 1;
            self.retry_out(messages, destination);
        }
        self.retry_in(messages, destination);
    }

    #[inline]
    fn retry_in(&mut self, messages: &mut Messages, pool: u32) {
        if let Some(next) = self.pools[pool as usize].waiting_in.pop_front(messages) {
            self.request(messages, next);
        }
    }

    #[inline]
    fn retry_out(&mut self, messages: &mut Messages, pool: u32) {
        if let Some(next) = self.pools[pool as usize].waiting_out.pop_front(messages) {
            self.request(messages, next);
        }
    }
}
