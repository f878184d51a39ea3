//! The slope of the end with respect to every cost at once: one pass back over the events.
//!
//! The end is the latest of sums of costs, so that its slope with respect to a cost is how often that cost occurs on the
//! chain of events that ends last (reverse accumulation; Griewank and Walther, Evaluating Derivatives, chapter 3). Where
//! two chains tie, each has half: what then stands here lies between the slopes to both sides.

use std::collections::BTreeMap;

use flowcast_replay::time_part::TimePart;
use flowcast_units::{CollectiveOp, Rank, Time};

use crate::{
    graph::{Edge, EventGraph, NONE},
    parts::CostPart,
    selector::{MessageRoute, Selector},
};

/// What a unit of a quantity costs, and what all of it costs now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Slope {
    /// How many nanoseconds later the end is for each further unit: for each nanosecond of a time, for each nanosecond per
    /// byte, for a factor that is larger by 1.
    pub per_unit: f64,
    /// By how much earlier the end is without any of it, as long as the same chain ends last.
    pub now: Time,
}

impl Slope {
    fn add(&mut self, part: &CostPart, weight: f64) {
        self.per_unit += weight * part.amount;
        self.now += Time::from_nanos(weight * part.nanos());
    }
}

/// Slopes of the messages between two ranks or on a kind of link.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MessageSlopes {
    /// With respect to the latency: messages on the critical path.
    pub latency: Slope,
    /// Of the time per byte.
    pub per_byte: Slope,
}

/// The slopes of the end with respect to everything.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventGradient {
    /// When the last rank ends: the sum of what all quantities cost now and of [`EventGradient::other`].
    pub makespan: Time,
    /// By rank: of its computations.
    pub compute: Vec<Slope>,
    /// By rank: of the processor's time on messages.
    pub overhead: Vec<Slope>,
    /// By rank: of the rest of its interface.
    pub gap: Vec<Slope>,
    /// By sender and receiver.
    pub pairs: BTreeMap<(Rank, Rank), MessageSlopes>,
    /// By kind of link.
    pub links: BTreeMap<MessageRoute, MessageSlopes>,
    /// Of collectives by formula.
    pub collectives: BTreeMap<CollectiveOp, Slope>,
    /// Of the messages of collectives: what all of their costs are now.
    pub within: BTreeMap<CollectiveOp, Time>,
    /// By the value of the trace's event of user functions: of its computations.
    pub functions: BTreeMap<i64, Slope>,
    /// What no quantity explains: waiting for links, buses, processors, and other messages on a shared network.
    pub other: Time,
}

impl EventGraph<'_> {
    /// The slopes with respect to all costs.
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

    /// The slope of the end with respect to the costs that a selector means, in nanoseconds for each unit.
    pub fn slope(&self, selector: &Selector) -> f64 {
        let mut slope = 0.0;
        self.each_weight(|part, weight| {
            if selector.takes(self, part) {
                slope += weight * part.amount;
            }
        });
        slope
    }

    /// Goes back from the end, and shows each part of a cost with how much of the end depends on it.
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
