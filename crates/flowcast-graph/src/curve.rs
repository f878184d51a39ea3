//! The end over a range of the costs that a selector means: exact, by tangents.

use std::ops::Range;

use flowcast_sensitivity::{Curve, Tangent, trace_curve};
use flowcast_units::Time;

use crate::{
    graph::{Edge, EventGraph, EventKind, EventNode, NONE},
    selector::Selector,
};

/// Nanoseconds by which a start-up, cut to whole ones, may lie beside a line through two others.
const START_UP_ROUNDING: f64 = 2.0;

/// A cost that follows a parameter: `amount` units of it, `unit` nanoseconds each in the replay.
#[derive(Debug, Clone, Copy)]
struct CurveShare {
    node: u32,
    edge: Edge,
    amount: f64,
    unit: f64,
}

/// What selected costs become.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum To {
    /// This value: nanoseconds, nanoseconds per byte, or a factor.
    Value(f64),
    /// So many times what they are.
    Factor(f64),
}

/// The costs that a selector means.
#[derive(Debug, Clone)]
pub struct Selected {
    /// In the order of events.
    shares: Vec<CurveShare>,
}

impl Selected {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// The value that all of them have: nanoseconds, nanoseconds per byte, or a factor; none if they differ.
    pub fn base(&self) -> Option<f64> {
        let first = self.shares.first()?.unit;
        self.shares
            .iter()
            .all(|share| (share.unit - first).abs() <= 1e-9 * first.abs().max(1.0))
            .then_some(first)
    }
}

impl EventGraph<'_> {
    /// The costs that a selector means; computations and collectives have the value 1, as often as they last.
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

    /// The costs that follow a parameter, which has the first value in this replay and the second in another of the same program.
    /// `None` if events of the two wait for different ones.
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

    /// Whether the costs with this value of the selected ones are those of another replay of the same program.
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

    /// By how much an end may lie beside the curve of selected costs, because collectives that do not block start after whole
    /// nanoseconds: each execution has one start-up on the way to the end.
    pub fn start_up_rounding(&self, selected: &Selected) -> Time {
        let spent =
            |share: &&CurveShare| self.nodes[share.node as usize].kind() == EventKind::Spent;
        let start_ups = selected.shares.iter().filter(spent).count();
        Time::from_nanos(START_UP_ROUNDING * start_ups.min(self.ops.len()) as f64)
    }

    /// Each event with the costs of its edges, and their slopes, where the selected costs have a value.
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

    /// The end over a range of values for the selected costs, found by at most so many passes over the events. `None`
    /// if it turns out not to be convex.
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

    /// The same events where selected costs are other ones; what each costs is changed once, by the first that selects it
    /// and those behind it as well.
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

    /// The end where the selected costs have a value, and its slope; `ends` keeps times and slopes of all events between passes.
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
                // Nothing stands before the first event.
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

/// An event with other costs.
struct EventWith<'s> {
    node: &'s EventNode,
    /// Nanoseconds of its edges.
    costs: [f64; 2],
    slopes: [f64; 2],
}
