//! The end over a range of the costs that a selector means: exact, by tangents.

use std::ops::Range;

use flowcast_sensitivity::{Curve, Tangent, trace_curve};
use flowcast_units::Time;

use crate::{
    graph::{Edge, EventGraph, NONE},
    selector::Selector,
};

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

    /// The end over a range of values for the selected costs, found by at most so many passes over the events. `None`
    /// if it turns out not to be convex.
    pub fn curve(
        &self,
        selected: &Selected,
        range: Range<f64>,
        most_passes: usize,
    ) -> Option<Curve> {
        let mut scratch = CurveScratch::default();
        let Ok(curve) = trace_curve(
            range.start,
            range.end,
            most_passes,
            Time::ZERO,
            |values: &[f64]| -> Result<Vec<Tangent>, std::convert::Infallible> {
                Ok(values
                    .iter()
                    .map(|at| self.tangent(selected, *at, &mut scratch))
                    .collect())
            },
        );
        curve
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

    /// The end where the selected costs have a value, and its slope.
    fn tangent(&self, selected: &Selected, at: f64, scratch: &mut CurveScratch) -> Tangent {
        let mut shares = selected.shares.iter().peekable();
        scratch.ends.clear();
        scratch.ends.reserve(self.nodes.len());
        for (index, node) in (0u32..).zip(&self.nodes) {
            let (mut costs, mut slopes) = ([node.cost, node.more], [0.0; 2]);
            while let Some(share) = shares.next_if(|share| share.node == index) {
                let edge = share.edge as usize;
                costs[edge] += share.amount * (at - share.unit);
                slopes[edge] += share.amount;
            }
            let after = |event: u32, edge: usize| {
                let (time, slope) = if index == 0 {
                    (0.0, 0.0)
                } else {
                    scratch.ends[event as usize]
                };
                (time + costs[edge], slope + slopes[edge])
            };
            let mut end = after(node.first, 0);
            if node.second != NONE {
                let second = after(node.second, 1);
                end = if second.0 > end.0 { second } else { end };
            }
            scratch.ends.push(end);
        }
        let ends = self.ends.iter().map(|end| scratch.ends[*end as usize]);
        let (makespan, slope) = ends.fold(
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

/// Times and slopes of all events, kept between passes.
#[derive(Default)]
struct CurveScratch {
    ends: Vec<(f64, f64)>,
}
