//! Slopes of the makespan with respect to all costs, from one pass back over the events.
//!
//! The end is a maximum over sums of costs. Its slope with respect to a cost is therefore the number of times that this
//! cost occurs on the chain of events that ends last (reverse accumulation; Griewank and Walther, Evaluating Derivatives,
//! chapter 3). If two chains tie, each gets half: the result then lies between the slopes to both sides.

use std::collections::BTreeMap;

use flowcast_replay::time_part::TimePart;
use flowcast_units::{CollectiveOp, Rank, Time};

use crate::{
    graph::{Edge, EventGraph, NONE},
    parts::CostPart,
    selector::{MessageRoute, Selector},
};

/// Slope of the end with respect to a quantity, and the present cost of the whole quantity.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Slope {
    /// Nanoseconds by which the end moves for each further unit: for each nanosecond of a time, for each nanosecond per
    /// byte, for a factor that is larger by 1.
    pub per_unit: f64,
    /// Time by which the end would be earlier without this quantity, as long as the same chain ends last.
    pub now: Time,
}

impl Slope {
    fn add(&mut self, part: &CostPart, weight: f64) {
        self.per_unit += weight * part.amount;
        self.now += Time::from_nanos(weight * part.nanos());
    }
}

/// Slopes of the messages between two ranks or on one kind of link.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MessageSlopes {
    /// Slope with respect to the latency: the number of messages on the critical path.
    pub latency: Slope,
    /// Slope with respect to the time per byte.
    pub per_byte: Slope,
}

/// Slopes of the end with respect to all quantities.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventGradient {
    /// Time at which the last rank ends: the sum of the present costs of all quantities and of [`EventGradient::other`].
    pub makespan: Time,
    /// Slope of each rank's computations, indexed by rank.
    pub compute: Vec<Slope>,
    /// Slope of the time that each rank's processor spends on messages, indexed by rank.
    pub overhead: Vec<Slope>,
    /// Slope of the gap of each rank's interface, indexed by rank.
    pub gap: Vec<Slope>,
    /// Slopes of messages, for each sender and receiver.
    pub pairs: BTreeMap<(Rank, Rank), MessageSlopes>,
    /// Slopes of messages, for each kind of link.
    pub links: BTreeMap<MessageRoute, MessageSlopes>,
    /// Slopes of collectives that are computed by a formula.
    pub collectives: BTreeMap<CollectiveOp, Slope>,
    /// Present costs of all messages that belong to a collective, for each operation.
    pub within: BTreeMap<CollectiveOp, Time>,
    /// Slope of computations, for each value of the trace's event of user functions.
    pub functions: BTreeMap<i64, Slope>,
    /// Time that no quantity explains: waiting for links, buses, processors, and other messages on a shared network.
    pub other: Time,
}

impl EventGraph<'_> {
    /// Returns the slopes with respect to all costs.
    pub fn gradient(&self) -> EventGradient {
        let ranks = self.ends.len();
        let none = vec![Slope::default(); ranks];
        let mut gradient = EventGradient {
            makespan: self.makespan(),
            compute: none.clone(),
            overhead: none.clone(),
            gap: none,
            ..EventGradient::default()
        };
        let mut explained = Time::ZERO;
        self.each_weight(|part, weight| {
            explained += Time::from_nanos(weight * part.nanos());
            gradient.add(self, part, weight);
        });
        gradient.other = gradient.makespan - explained;
        gradient
    }

    /// Returns the slope of the end with respect to the costs that match a selector, in nanoseconds per unit.
    pub fn slope(&self, selector: &Selector) -> f64 {
        let mut slope = 0.0;
        self.each_weight(|part, weight| {
            if selector.takes(self, part) {
                slope += weight * part.amount;
            }
        });
        slope
    }

    /// Goes back from the end and shows each part of a cost with its weight: the fraction of the end that depends on it.
    fn each_weight(&self, mut show: impl FnMut(&CostPart, f64)) {
        let rounding = self.rounding();
        let mut weights = vec![0.0; self.nodes.len()];
        let makespan = self.makespan().as_nanos();
        let last: Vec<u32> = self
            .ends
            .iter()
            .copied()
            .filter(|end| makespan - self.times[*end as usize] <= rounding)
            .collect();
        last.iter()
            .for_each(|end| weights[*end as usize] += 1.0 / last.len() as f64);
        for index in (1..self.nodes.len()).rev() {
            let weight = weights[index];
            if weight == 0.0 {
                continue;
            }
            let node = &self.nodes[index];
            let decides = |edge: Edge| {
                node.edge(edge).is_some_and(|(event, cost)| {
                    self.times[index] - (self.times[event as usize] + cost) <= rounding
                })
            };
            let both = node.second != NONE && decides(Edge::First) && decides(Edge::Second);
            let weight = if both { weight / 2.0 } else { weight };
            for edge in [Edge::First, Edge::Second]
                .into_iter()
                .filter(|edge| decides(*edge))
            {
                let Some((event, _)) = node.edge(edge) else {
                    continue;
                };
                weights[event as usize] += weight;
                self.parts(node, edge, |part| show(&part, weight));
            }
        }
    }
}

impl EventGradient {
    fn add(&mut self, graph: &EventGraph<'_>, part: &CostPart, weight: f64) {
        let rank = graph.owner(part.rank).index();
        match part.quantity {
            TimePart::Compute => {
                self.compute[rank].add(part, weight);
                self.functions
                    .entry(graph.function(part))
                    .or_default()
                    .add(part, weight);
            }
            TimePart::Overhead => self.overhead[rank].add(part, weight),
            TimePart::Gap => self.gap[rank].add(part, weight),
            TimePart::Collective => {
                self.collectives
                    .entry(graph.ops[part.item as usize])
                    .or_default()
                    .add(part, weight);
            }
            _ => {
                let message = graph.message(part.slot());
                let of_pair = self.pairs.entry((message.from, message.to)).or_default();
                let of_link = self.links.entry(message.link).or_default();
                for slopes in [of_pair, of_link] {
                    let of = if part.quantity == TimePart::Latency {
                        &mut slopes.latency
                    } else {
                        &mut slopes.per_byte
                    };
                    of.add(part, weight);
                }
            }
        }
        let is_message = !matches!(part.quantity, TimePart::Compute | TimePart::Collective);
        if let Some(op) = is_message
            .then(|| graph.message(part.slot()).collective)
            .flatten()
        {
            *self.within.entry(op).or_default() += Time::from_nanos(weight * part.nanos());
        }
    }
}
