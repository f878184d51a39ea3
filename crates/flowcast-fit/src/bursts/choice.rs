//! Choice of the next round trips: those that narrow the intervals of L, o, g and G most for their cost (optimal design,
//! chosen one after the other, between the criteria A and D; Atkinson, Donev and Tobias, "Optimum Experimental Designs,
//! with SAS", 2007).
//!
//! The value of a round trip is its reduction of the sum of `ln(v + p²)` over the four parameters, divided by its share of
//! the budget. Here v is the variance relative to the squared parameter, and p the requested precision. Therefore, a
//! parameter with sufficient precision causes no more round trips, and a parameter that no round trip can determine does not
//! use up the budget of the others. A round trip that loses a packet gives no information, so bursts are short on networks
//! with losses.

use std::iter;

use flowcast_statistics::{linear_fit::add_outer, linear_system::inverse_of_symmetric};
use flowcast_units::{Bytes, Time};

use super::{BurstFit, VISIBLE, clean, columns};
use crate::{
    prtt::{PrttPoint, prtt},
    samples::PrttSamples,
};

/// Margin above [`VISIBLE`], so that no burst is measured that may turn out to be useless.
const CLEARLY: f64 = 1.1;
/// Largest number of expected losses in a burst.
const MOST_LOSSES: f64 = 0.15;
/// Assumed standard deviation of the cost of a burst beyond its messages, relative to the standard deviation of a round
/// trip. It applies before any measurement.
const PRIOR: f64 = 3.0;

/// Possible measurements and their budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// Sizes of messages, in ascending order.
    pub sizes: Vec<Bytes>,
    /// Maximum number of messages in a burst.
    pub most_messages: u32,
    /// Maximum number of bytes in a burst.
    pub in_flight: Bytes,
    /// Maximum number of messages of the whole measurement, including answers.
    pub messages: u32,
    /// Maximum time of the whole measurement.
    pub time: Time,
    /// Sufficient precision: half the width of an interval relative to its parameter.
    pub precision: f64,
}

impl Room {
    /// Lengths of bursts of a size. There are only a few, so that each is measured often. If messages follow each other
    /// faster than their jitter, the first few of a burst hold up the following ones. The cost of a burst beyond its
    /// messages is then only constant from eight messages on.
    pub fn bursts(&self, size: Bytes) -> impl Iterator<Item = u32> {
        let most = u64::from(self.most_messages).min(self.in_flight.0 / size.0.max(1));
        let (first, times) = if most >= 32 { (8, 4) } else { (2, 2) };
        iter::successors(Some(first), move |n| Some(n * times))
            .take_while(move |n| u64::from(*n) <= most)
    }
}

/// Returns the `count` most useful round trips. Each must be measured twice, because a single round trip does not show its
/// spread.
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
    /// Share of the budget that the round trip takes.
    cost: f64,
    /// Probability that no packet is lost.
    clean: f64,
}

fn candidates(fit: &BurstFit, room: &Room) -> Vec<BurstCandidate> {
    // Slightly more than observed: no loss so far does not exclude losses.
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

/// Information of samples about A, G, g, the c of each size, and o.
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

    /// Returns the remaining uncertainty of L, o, g and G. `None` if one of them is completely unknown.
    fn spread(&self, fit: &BurstFit, room: &Room) -> Option<f64> {
        let inverse = inverse_of_symmetric(&self.matrix)?;
        let of_overhead = 1.0 / self.of_overhead;
        let variances = [
            inverse[0][0] + 4.0 * of_overhead,
            of_overhead,
            inverse[2][2],
            inverse[1][1],
        ];
        // Half the width of an interval is about two standard errors.
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
