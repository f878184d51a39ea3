//! The next round trips: those that narrow the intervals of L, o, g and G most for what they cost (optimal design, chosen
//! one after the other, between the criteria A and D; Atkinson, Donev and Tobias, "Optimum Experimental Designs, with SAS", 2007).
//!
//! A round trip is worth by how much it lessens the sum of `ln(v + p²)` over the four parameters, divided by the part of the
//! budget that it takes; v is the variance as a share of the squared parameter, p the wanted precision. So a parameter that is
//! known well enough asks for no more, and one that nothing can show does not take the others' part. A round trip that loses a
//! packet says nothing, so that bursts are short where packets get lost.

use std::iter;

use flowcast_statistics::{linear_fit::add_outer, linear_system::inverse_of_symmetric};
use flowcast_units::{Bytes, Time};

use super::{BurstFit, VISIBLE, clean, columns};
use crate::{
    prtt::{PrttPoint, prtt},
    samples::PrttSamples,
};

/// Margin above [`VISIBLE`], so that no burst is measured that may not count.
const CLEARLY: f64 = 1.1;
/// A burst with more expected losses is not tried.
const MOST_LOSSES: f64 = 0.15;
/// Standard deviation of what a burst costs beyond its messages, before it is measured, over that of a round trip.
const PRIOR: f64 = 3.0;

/// What may be measured and what it may cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// Sizes of messages, ascending.
    pub sizes: Vec<Bytes>,
    /// Most messages in a burst.
    pub most_messages: u32,
    /// Most bytes of a burst.
    pub in_flight: Bytes,
    /// Messages of the whole measurement, answers included.
    pub messages: u32,
    /// Time of the whole measurement.
    pub time: Time,
    /// Half an interval that is narrow enough, as a share of its parameter.
    pub precision: f64,
}

impl Room {
    /// Lengths of bursts of a size, few of them, so that each is measured often. Where messages follow each other faster than
    /// their jitter, the first few of a burst hold up those behind them, and what a burst costs beyond its messages is the same
    /// only from eight on.
    pub fn bursts(&self, size: Bytes) -> impl Iterator<Item = u32> {
        let most = u64::from(self.most_messages).min(self.in_flight.0 / size.0.max(1));
        let (first, times) = if most >= 32 { (8, 4) } else { (2, 2) };
        iter::successors(Some(first), move |n| Some(n * times))
            .take_while(move |n| u64::from(*n) <= most)
    }
}

/// The most useful round trips, `count` of them, each to be taken twice: one alone says nothing of its spread.
pub fn next_points(
    fit: &BurstFit,
    samples: &PrttSamples,
    room: &Room,
    count: usize,
) -> Vec<PrttPoint> {
    let candidates = candidates(fit, room);
    let sizes: Vec<Bytes> = room.sizes.clone();
    let mut known = information(fit, samples, &sizes);
    let mut chosen = Vec::new();
    for _ in 0..count {
        let Some(before) = known.spread(fit, room) else {
            break;
        };
        let worth = candidates.iter().map(|candidate: &BurstCandidate| {
            let mut more = known.clone();
            more.add(fit, candidate.point, &sizes, 2.0 * candidate.clean);
            let after = more.spread(fit, room).unwrap_or(before);
            ((before - after) / candidate.cost, candidate)
        });
        let best = worth.max_by(|one, other| one.0.total_cmp(&other.0));
        let Some((_, best)) = best else { break };
        known.add(fit, best.point, &sizes, 2.0 * best.clean);
        chosen.push(best.point);
    }
    chosen
}

struct BurstCandidate {
    point: PrttPoint,
    /// Part of the budget that it takes.
    cost: f64,
    /// Probability that no packet gets lost.
    clean: f64,
}

fn candidates(fit: &BurstFit, room: &Room) -> Vec<BurstCandidate> {
    // A little more than was seen: none so far does not mean none at all.
    let loss = (fit.outliers as f64 + 0.1) / (fit.packets + 1.0);
    let points = room.sizes.iter().flat_map(|size| {
        let lengths = iter::once(1).chain(room.bursts(*size));
        lengths.map(|n| PrttPoint::new(n, Time::ZERO, *size))
    });
    let allowed = points.filter(|point| {
        let visible =
            fit.parameters.spacing(point.size) > fit.parameters.overhead * (VISIBLE * CLEARLY);
        (point.messages == 1 || visible)
            && (loss * clean::packets(*point) <= MOST_LOSSES || point.size == room.sizes[0])
    });
    allowed
        .map(|point: PrttPoint| BurstCandidate {
            point,
            cost: f64::from(point.messages + 1) / f64::from(room.messages)
                + prtt(&fit.parameters, point).as_nanos() / room.time.as_nanos(),
            clean: (1.0 - loss).powf(clean::packets(point)),
        })
        .collect()
}

/// What samples say about A, G, g, the c of each size, and o.
#[derive(Clone)]
struct Information {
    matrix: Vec<Vec<f64>>,
    of_overhead: f64,
}

fn information(fit: &BurstFit, samples: &PrttSamples, sizes: &[Bytes]) -> Information {
    let count = 3 + sizes.len();
    let mut matrix = vec![vec![0.0; count]; count];
    let prior = 1.0 / (PRIOR.powi(2) * fit.variances[1].max(1.0));
    (3..count).for_each(|at| matrix[at][at] = prior);
    let mut known = Information {
        matrix,
        of_overhead: 0.0,
    };
    for (point, times) in samples.points() {
        let shows = point.messages == 1 || fit.sizes.contains(&point.size);
        if shows && sizes.contains(&point.size) {
            known.add(fit, point, sizes, times.len() as f64);
        }
    }
    known
}

impl Information {
    fn add(&mut self, fit: &BurstFit, point: PrttPoint, sizes: &[Bytes], times: f64) {
        let variance = fit.variances[usize::from(point.messages > 1)].max(1.0);
        add_outer(
            &mut self.matrix,
            &columns(point.messages, point.size, sizes),
            times / variance,
        );
        if point.messages == 1 && point.size == sizes[0] {
            self.of_overhead += times / fit.variances[2].max(1.0);
        }
    }

    /// What is open about L, o, g and G; none where one of them is open altogether.
    fn spread(&self, fit: &BurstFit, room: &Room) -> Option<f64> {
        let inverse = inverse_of_symmetric(&self.matrix)?;
        let of_overhead = 1.0 / self.of_overhead;
        let variances = [
            inverse[0][0] + 4.0 * of_overhead,
            of_overhead,
            inverse[2][2],
            inverse[1][1],
        ];
        // Half an interval is about two standard errors.
        let enough = (room.precision / 2.0).powi(2);
        Some(
            variances
                .into_iter()
                .zip(fit.parameters.as_nanos())
                .map(|(variance, value)| (variance / value.max(1e-3).powi(2) + enough).ln())
                .sum(),
        )
    }
}
