//! Exact curve of the makespan over a range of the selected costs, found by tangents.

use std::ops::Range;

use flowcast_sensitivity::{Curve, Tangent, trace_curve};
use flowcast_units::Time;

use crate::{
    graph::{Edge, EventGraph, EventKind, EventNode, NONE},
    selector::Selector,
};

/// Tolerance for start-ups, in nanoseconds. Each start-up is truncated to whole nanoseconds, so it may not lie exactly on
/// the line through two others.
const START_UP_ROUNDING: f64 = 2.0;

/// A cost that follows a parameter: `amount` units, each of `unit` nanoseconds in the replay.
#[derive(Debug, Clone, Copy)]
struct CurveShare {
    node: u32,
    edge: Edge,
    amount: f64,
    unit: f64,
}

/// New value of selected costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum To {
    /// This value: nanoseconds, nanoseconds per byte, or a factor.
    Value(f64),
    /// A multiple of their present value.
    Factor(f64),
}

/// The costs that match a selector.
#[derive(Debug, Clone)]
pub struct Selected {
    /// Shares in the order of events.
    shares: Vec<CurveShare>,
}

impl Selected {
    /// Returns `true` if no cost is selected.
    pub fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// Returns the common value of all selected costs: nanoseconds, nanoseconds per byte, or a factor. `None` if they
    /// differ.
    pub fn base(&self) -> Option<f64> {
        let first = self.shares.first()?.unit;
        self.shares
            .iter()
            .all(|share| (share.unit - first).abs() <= 1e-9 * first.abs().max(1.0))
            .then_some(first)
    }
}

impl EventGraph<'_> {
    /// Returns the costs that match a selector. Computations and collectives have the value 1, and their duration as the
    /// amount.
    pub fn selected(&self, selector: &Selector) -> Selected {
        let mut shares = Vec::new();
        self.each_part(|node, edge, part| {
            if part.amount != 0.0 && selector.takes(self, &part) {
                shares.push(CurveShare {
                    node,
                    edge,
                    amount: part.amount,
                    unit: part.unit,
                });
            }
        });
        Selected { shares }
    }

    /// Returns the costs that follow a parameter. The parameter has the first value in this replay and the second in the
    /// other replay of the same program. `None` if events of the two replays wait for different events.
    pub fn following(&self, other: &EventGraph<'_>, values: [f64; 2]) -> Option<Selected> {
        let mut shares = Vec::new();
        let events = (0u32..).zip(self.nodes.iter().zip(&other.nodes));
        for (node, (own, others)) in events {
            if !own.is_like(others) {
                return None;
            }
            let edges = [
                (Edge::First, others.cost - own.cost),
                (Edge::Second, others.more - own.more),
            ];
            let changed = edges.into_iter().filter(|(_, change)| *change != 0.0);
            shares.extend(changed.map(|(edge, change)| CurveShare {
                node,
                edge,
                amount: change / (values[1] - values[0]),
                unit: values[0],
            }));
        }
        (self.nodes.len() == other.nodes.len()).then_some(Selected { shares })
    }

    /// Returns `true` if this graph has the same costs as another replay of the same program once the selected costs have
    /// this value.
    pub fn is_with(&self, selected: &Selected, value: f64, other: &EventGraph<'_>) -> bool {
        let rounding = self.rounding();
        let mut events = self.with(selected, value).zip(&other.nodes);
        self.nodes.len() == other.nodes.len()
            && events.all(|(event, others)| {
                let [first, second] = event.costs;
                let room = match others.kind() {
                    EventKind::Spent => rounding + START_UP_ROUNDING,
                    _ => rounding,
                };
                event.node.is_like(others)
                    && (first - others.cost).abs() <= room
                    && (second - others.more).abs() <= room
            })
    }

    /// Largest distance between the end and the curve of the selected costs that rounding explains. Start-ups of
    /// non-blocking collectives are rounded to whole nanoseconds, and each execution adds at most one of them to the chain
    /// that ends last.
    pub fn start_up_rounding(&self, selected: &Selected) -> Time {
        let spent =
            |share: &&CurveShare| self.nodes[share.node as usize].kind() == EventKind::Spent;
        let start_ups = selected.shares.iter().filter(spent).count();
        Time::from_nanos(START_UP_ROUNDING * start_ups.min(self.ops.len()) as f64)
    }

    /// Each event with the costs of its edges and their slopes, for a given value of the selected costs.
    fn with<'s>(
        &'s self,
        selected: &'s Selected,
        value: f64,
    ) -> impl Iterator<Item = EventWith<'s>> {
        let mut shares = selected.shares.iter().peekable();
        (0u32..).zip(&self.nodes).map(move |(index, node)| {
            let (mut costs, mut slopes) = ([node.cost, node.more], [0.0; 2]);
            while let Some(share) = shares.next_if(|share| share.node == index) {
                let edge = share.edge as usize;
                costs[edge] += share.amount * (value - share.unit);
                slopes[edge] += share.amount;
            }
            EventWith {
                node,
                costs,
                slopes,
            }
        })
    }

    /// Returns the end over a range of values for the selected costs, found in at most `most_passes` passes over the
    /// events. `None` if the curve turns out not to be convex.
    pub fn curve(
        &self,
        selected: &Selected,
        range: Range<f64>,
        most_passes: usize,
    ) -> Option<Curve> {
        let mut ends = Vec::new();
        trace_curve(range.start, range.end, most_passes, |at| {
            self.tangent(selected, at, &mut ends)
        })
    }

    /// Returns the same events with changed costs. If several changes select the same cost, each adds its difference to the
    /// original value.
    #[must_use]
    pub fn changed(mut self, changes: &[(Selected, To)]) -> Self {
        for share in changes
            .iter()
            .flat_map(|(selected, to)| selected.shares.iter().map(move |share| (share, *to)))
        {
            let (
                CurveShare {
                    node,
                    edge,
                    amount,
                    unit,
                },
                to,
            ) = share;
            let node = &mut self.nodes[*node as usize];
            let cost = match edge {
                Edge::First => &mut node.cost,
                Edge::Second => &mut node.more,
            };
            *cost += match to {
                To::Value(value) => amount * (value - unit),
                To::Factor(factor) => amount * unit * (factor - 1.0),
            };
        }
        for index in 1..self.nodes.len() {
            self.times[index] = self.nodes[index].time(&self.times);
        }
        self
    }

    /// Returns the end and its slope for a value of the selected costs. `ends` keeps times and slopes of all events between
    /// passes.
    fn tangent(&self, selected: &Selected, at: f64, ends: &mut Vec<(f64, f64)>) -> Tangent {
        ends.clear();
        ends.reserve(self.nodes.len());
        for event in self.with(selected, at) {
            let EventWith {
                node,
                costs,
                slopes,
            } = event;
            let after = |event: u32, edge: usize| {
                // No event precedes the first one.
                let (time, slope) = ends.get(event as usize).copied().unwrap_or_default();
                (time + costs[edge], slope + slopes[edge])
            };
            let mut end = after(node.first, 0);
            if node.second != NONE {
                let second = after(node.second, 1);
                end = if second.0 > end.0 { second } else { end };
            }
            ends.push(end);
        }
        let last = self.ends.iter().map(|end| ends[*end as usize]);
        let (makespan, slope) = last.fold(
            (0.0, 0.0),
            |last, end| if end.0 > last.0 { end } else { last },
        );
        Tangent {
            at,
            makespan: Time::from_nanos(makespan),
            slope,
        }
    }
}

/// An event with changed costs.
struct EventWith<'s> {
    node: &'s EventNode,
    /// Costs of its edges, in nanoseconds.
    costs: [f64; 2],
    slopes: [f64; 2],
}
