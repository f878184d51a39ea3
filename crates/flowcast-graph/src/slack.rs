//! How late each event may be without moving the end.
//!
//! A pass back over the events gives the latest time at which each may happen: for the events that wait for it, their
//! latest times less the costs in between. The *total slack* of an event is the difference to when it happens: it alone
//! may be so much later, and the end stays. The *free slack* of a message is how long it lies there before anything waits
//! for it: all messages may use theirs at the same time, and nothing changes (critical path method; Kelley, Operations
//! Research 9, 1961).

use flowcast_program::slot::Slot;
use flowcast_units::{Bytes, Rank, Time};

use crate::{
    graph::{EventGraph, EventKind, EventNode, NONE},
    parts::MessageRoute,
};

/// How late a thing may be.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EventSlack {
    /// It alone, without moving the end.
    pub total: Time,
    /// Of a message: without delaying anything that waits for it. Of a computation: without delaying what its rank does next.
    pub free: Time,
}

/// A message and how late it may arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageSlack {
    /// Number of the message among all of the program.
    pub slot: Slot,
    /// How late it may be.
    pub slack: EventSlack,
    /// How long it takes from sender to receiver.
    pub flight: Time,
}

/// A rank, and how much slower it could run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSlack {
    /// Number of the rank among all of the program.
    pub rank: Rank,
    /// How long before the last rank it ends.
    pub end: Time,
    /// How long it computes.
    pub compute: Time,
    /// The least total slack of its computations.
    pub least: Time,
    /// By this part more each of its computations may take, it alone, without moving the end; infinite if it computes nothing.
    pub slower: f64,
}

/// Messages between nodes, inside them and between sites, by what they could bear.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LinkSlack {
    /// How many messages go there, and their bytes.
    pub messages: u64,
    /// Bytes of all these messages.
    pub bytes: Bytes,
    /// Those that may take twice as long, all of them at the same time, without anybody noticing.
    pub twice: u64,
    /// Bytes of those that may take twice as long.
    pub twice_bytes: Bytes,
    /// Those that may take ten times as long, all at the same time.
    pub tenfold: u64,
}

/// How late everything may be.
pub struct Slacks<'g> {
    graph: &'g EventGraph<'g>,
    /// By event.
    latest: Vec<f64>,
}

impl<'a> EventGraph<'a> {
    /// One pass back over all events.
    pub fn slacks(&'a self) -> Slacks<'a> {
        let makespan = self.makespan().as_nanos();
        let mut latest = vec![f64::INFINITY; self.nodes.len()];
        self.ends
            .iter()
            .for_each(|end| latest[*end as usize] = makespan);
        for index in (1..self.nodes.len()).rev() {
            let (node, own) = (&self.nodes[index], latest[index]);
            let first = &mut latest[node.first as usize];
            *first = first.min(own - node.cost);
            if node.second != NONE {
                let second = &mut latest[node.second as usize];
                *second = second.min(own - node.more);
            }
        }
        Slacks {
            graph: self,
            latest,
        }
    }
}

impl Slacks<'_> {
    /// By message, in the order of the events that receive them; those that nobody receives are left out.
    pub fn messages(&self) -> impl Iterator<Item = MessageSlack> + '_ {
        let graph = self.graph;
        let received = graph
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.kind() == EventKind::Receive);
        received.map(move |(index, node)| {
            let (slot, from) = (node.slot(), &graph.nodes[node.second as usize]);
            let sent = graph.times[node.second as usize];
            let arrives = sent + node.more;
            // An event of its own tells how long the message took under contention.
            let flight = if from.kind() == EventKind::Arrive {
                from.cost
            } else {
                self.alone(slot)
            };
            let slack = EventSlack {
                total: Time::from_nanos((self.latest[index] - arrives).max(0.0)),
                free: Time::from_nanos((graph.times[index] - arrives).max(0.0)),
            };
            MessageSlack {
                slot,
                slack,
                flight: Time::from_nanos(flight),
            }
        })
    }

    fn alone(&self, slot: Slot) -> f64 {
        self.graph.costs(slot).delay
    }

    /// By computation, in the order of events: its rank, how long it takes and how late it may end.
    pub fn computations(&self) -> impl Iterator<Item = (Rank, Time, EventSlack)> + '_ {
        let next = self.next_of_ranks();
        self.computed().map(move |(index, node, total)| {
            let slack = EventSlack {
                total: Time::from_nanos(total),
                free: Time::from_nanos(next[index].min(total)),
            };
            (
                self.graph.owner(node.rank()),
                Time::from_nanos(node.cost),
                slack,
            )
        })
    }

    /// The ends of computations in the order of events, and how late each alone may be.
    fn computed(&self) -> impl Iterator<Item = (usize, &EventNode, f64)> + '_ {
        let nodes = self.graph.nodes.iter().enumerate();
        nodes
            .filter(|(_, node)| node.kind() == EventKind::Compute)
            .map(|(index, node)| {
                let late = self.latest[index] - self.graph.times[index];
                (index, node, late.max(0.0))
            })
    }

    /// By event: how long it may be late before what waits for it next is late.
    fn next_of_ranks(&self) -> Vec<f64> {
        let graph = self.graph;
        let mut next = vec![f64::INFINITY; graph.nodes.len()];
        for (index, node) in graph.nodes.iter().enumerate().skip(1) {
            let at = graph.times[index];
            let mut room = |event: u32, cost: f64| {
                let known = &mut next[event as usize];
                *known = known.min((at - graph.times[event as usize] - cost).max(0.0));
            };
            room(node.first, node.cost);
            if node.second != NONE {
                room(node.second, node.more);
            }
        }
        next
    }

    /// By rank. A chain of events passes no more of a rank's computation than what the rank has done up to its last one on
    /// the chain, so that a rank that is slower by `s/c`, where `s` is the slack of a computation and `c` all that the rank
    /// has computed up to there, is late there by `s` at most; the least of these ratios is safe.
    pub fn ranks(&self) -> Vec<RankSlack> {
        let graph = self.graph;
        let makespan = graph.makespan();
        let mut ranks: Vec<RankSlack> = (0..graph.ends.len())
            .map(|rank| {
                let end = makespan - Time::from_nanos(graph.times[graph.ends[rank] as usize]);
                RankSlack {
                    rank: Rank(rank as u32),
                    end,
                    compute: Time::ZERO,
                    least: end,
                    slower: f64::INFINITY,
                }
            })
            .collect();
        for (_, node, total) in self.computed() {
            let rank = &mut ranks[graph.owner(node.rank())];
            let slack = Time::from_nanos(total);
            rank.compute += Time::from_nanos(node.cost);
            rank.least = rank.least.min(slack);
            rank.slower = rank.slower.min(slack.as_nanos() / rank.compute.as_nanos());
        }
        // What is left of a slack by rounding is none.
        ranks
            .iter_mut()
            .filter(|rank| rank.slower < 1e-9)
            .for_each(|rank| rank.slower = 0.0);
        ranks
    }

    /// By kind of link, in the order of [`MessageRoute::ALL`].
    pub fn links(&self) -> [LinkSlack; MessageRoute::ALL.len()] {
        let mut links = [LinkSlack::default(); MessageRoute::ALL.len()];
        for MessageSlack {
            slot,
            slack,
            flight,
        } in self.messages()
        {
            let message = self.graph.message(slot);
            let of = &mut links[message.link as usize];
            of.messages += 1;
            of.bytes.0 = of.bytes.0.saturating_add(message.size.0);
            if slack.free >= flight {
                of.twice += 1;
                of.twice_bytes.0 = of.twice_bytes.0.saturating_add(message.size.0);
            }
            of.tenfold += u64::from(slack.free >= flight * 9.0);
        }
        links
    }
}
