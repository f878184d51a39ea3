//! Slack of events: the delay that each event tolerates before the end moves.
//!
//! A pass back over the events gives the latest time at which each may happen: the minimum, over the events that wait for
//! it, of their latest time less the cost in between. The *total slack* of an event is the difference between its latest
//! and its actual time. A single event may be later by its total slack without moving the end. The *free slack* of a
//! message is the time from its arrival until anything waits for it. All messages may use their free slack at the same time
//! without any effect (critical path method; Kelley, Operations Research 9, 1961).

use flowcast_program::slot::Slot;
use flowcast_units::{Bytes, Rank, Time};

use crate::{
    graph::{EventGraph, EventKind, EventNode, NONE},
    parts::MessageRoute,
};

/// Tolerated delay of a message or computation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EventSlack {
    /// Largest delay that does not postpone the end of the program, if nothing else is late.
    pub total: Time,
    /// Largest delay without any effect: on the events that wait for a message, or on the next activity of the rank after a
    /// computation.
    pub free: Time,
}

/// A message and its tolerated delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageSlack {
    /// Number of the message among all messages of the program.
    pub slot: Slot,
    /// Tolerated delay of its arrival.
    pub slack: EventSlack,
    /// Time that it takes from sender to receiver.
    pub flight: Time,
}

/// A rank and its tolerated slowdown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSlack {
    /// Number of the rank among all ranks of the program.
    pub rank: Rank,
    /// Time from the end of this rank to the end of the last rank.
    pub end: Time,
    /// Total time of its computations.
    pub compute: Time,
    /// Smallest total slack of its computations.
    pub least: Time,
    /// Fraction by which each computation of this rank may be longer without moving the end, if no other rank is slower.
    /// Infinite if the rank computes nothing.
    pub slower: f64,
}

/// Tolerance of all messages on one kind of link: between nodes, inside them, or between sites.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LinkSlack {
    /// Number of messages on this kind of link.
    pub messages: u64,
    /// Bytes of all these messages.
    pub bytes: Bytes,
    /// Number of messages that may take twice as long, all of them at the same time, without any effect.
    pub twice: u64,
    /// Bytes of the messages that may take twice as long.
    pub twice_bytes: Bytes,
    /// Number of messages that may take ten times as long, all of them at the same time, without any effect.
    pub tenfold: u64,
}

/// Slack of all events.
pub struct Slacks<'g> {
    graph: &'g EventGraph<'g>,
    /// Latest time of each event that does not move the end, in nanoseconds.
    latest: Vec<f64>,
}

impl<'a> EventGraph<'a> {
    /// Computes the slack of all events in one pass back over them.
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
    /// Returns the slack of messages in the order of their receive events. Messages that are never received are left out.
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
            // An arrival event of its own contains the duration of the message under contention.
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

    /// Returns the rank, the duration and the slack of each computation, in the order of events.
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

    /// Returns the ends of computations in the order of events, and the total slack of each, in nanoseconds.
    fn computed(&self) -> impl Iterator<Item = (usize, &EventNode, f64)> + '_ {
        let nodes = self.graph.nodes.iter().enumerate();
        nodes
            .filter(|(_, node)| node.kind() == EventKind::Compute)
            .map(|(index, node)| {
                let late = self.latest[index] - self.graph.times[index];
                (index, node, late.max(0.0))
            })
    }

    /// Largest delay of each event, in nanoseconds, that delays none of the events that wait for it directly. Indexed by
    /// event; infinite if no event waits for it.
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

    /// Returns the slack of each rank, in rank order. Let `s` be the slack of a computation and `c` the total time that the
    /// rank has computed up to its end. A chain of events that has this computation as its last one of the rank contains no
    /// more of the rank's computation than `c`. So if the rank is slower by the factor `s/c`, it is late there by at most
    /// `s`. The smallest of these ratios is safe.
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
        // A slack within rounding counts as none.
        ranks
            .iter_mut()
            .filter(|rank| rank.slower < 1e-9)
            .for_each(|rank| rank.slower = 0.0);
        ranks
    }

    /// Returns the slack of messages on each kind of link, in the order of [`MessageRoute::ALL`].
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
