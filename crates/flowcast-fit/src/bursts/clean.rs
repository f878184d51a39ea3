//! Filter for round trips with delays outside of the model: lost packets and interrupted processors.
//!
//! A sample is left out if its sender was busy for far longer than in the other samples of its point, or if it exceeds the
//! fastest sample of its point by [`FAR`] times the spread. In longer bursts, all samples may have met a loss. They are
//! left out if they take 1.5 times as long as the short bursts predict.

use std::collections::BTreeMap;

use flowcast_statistics::sample::median_in_place;
use flowcast_units::Bytes;

use super::{BurstGroup, Cleaned, is_burst, mean_of};
use crate::{
    prtt::PrttPoint,
    samples::{PrttSamples, nanos},
};

/// Multiple of the spread from which a sample counts as far away.
const FAR: f64 = 10.0;
/// Maximum number of messages of a short burst.
const SHORT: u32 = 8;
/// Ratio of the standard deviation to the median absolute deviation of a normal distribution.
const DEVIATIONS: f64 = 1.4826;
/// Shortest time after which TCP on Linux retransmits a lost packet, in nanoseconds.
const RETRANSMISSION: f64 = 2e8;
/// Bytes of a TCP segment over Ethernet.
const SEGMENT: u64 = 1448;

/// Number of packets of a round trip, for its messages and the answer.
pub(super) fn packets(point: PrttPoint) -> f64 {
    f64::from(point.messages + 1) * point.size.0.div_ceil(SEGMENT).max(1) as f64
}

/// Returns the samples without delays, by point. `None` if none remain to determine the spread.
pub(super) fn clean(samples: &PrttSamples) -> Option<Cleaned> {
    let points = samples
        .points()
        .filter(|(point, _)| point.messages == 1 || is_burst(*point));
    let alone = points.clone().filter(|(point, _)| point.messages == 1);
    let of_busy = robust_deviation(alone.map(|(point, _)| nanos(samples.busy(point))))?;
    let spread = robust_deviation(points.clone().map(|(_, times)| nanos(times)))?;
    let mut slowest: BTreeMap<Bytes, (f64, f64, u32)> = BTreeMap::new();
    let mut plain = Plain::default();
    let mut groups = Vec::new();
    let (mut outliers, mut all) = (0, 0.0);
    // Points are sorted by n, so short bursts precede long ones.
    for (point, times) in points {
        let times = nanos(times);
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let expected = slowest.get(&point.size).filter(|_| point.messages > SHORT);
        let bound = expected.map_or(f64::INFINITY, |(base, spacing, n)| {
            let times = f64::from(point.messages) / f64::from(*n);
            // The longer burst multiplies an error in the spacing of the short burst.
            base + spacing * 1.5 * f64::from(point.messages - n) + FAR * spread * times
        });
        let bound = bound.min(fastest + FAR * spread).min(plain.bound(point));
        let busy = nanos(samples.busy(point));
        let own = busy.iter().copied().fold(f64::INFINITY, f64::min)
            + FAR * of_busy * f64::from(point.messages).sqrt();
        let kept: Vec<usize> = (0..times.len())
            .filter(|at| times[*at] <= bound && busy.get(*at).is_none_or(|busy| *busy <= own))
            .collect();
        all += packets(point) * times.len() as f64;
        outliers += times.len() - kept.len();
        let times: Vec<f64> = kept.iter().map(|at| times[*at]).collect();
        // A single long burst does not show if it was disturbed.
        let Some(mean) = mean_of(&times).filter(|_| point.messages <= SHORT || times.len() > 1)
        else {
            continue;
        };
        if point.messages == 1 {
            plain.remember(point, mean);
        }
        if point.messages <= SHORT {
            remember(&mut slowest, point, mean);
        }
        groups.push(BurstGroup {
            n: point.messages,
            size: point.size,
            kept,
            times,
            mean,
        });
    }
    Some(Cleaned {
        groups,
        outliers,
        packets: all,
    })
}

/// The smallest and the second smallest plain round trip, each with its size in bytes and its mean time in nanoseconds.
#[derive(Default)]
struct Plain(Vec<(f64, f64)>);

impl Plain {
    fn remember(&mut self, point: PrttPoint, mean: f64) {
        if self.0.len() < 2 {
            self.0.push((point.size.0 as f64, mean));
        }
    }

    /// Upper bound for the round trips of a point. It allows for 1.5 times the expected growth with the size, for the
    /// messages of a short burst travelling one after the other, and for most of a retransmission timeout.
    fn bound(&self, point: PrttPoint) -> f64 {
        let [(small, first), (large, second)] = self.0[..] else {
            return f64::INFINITY;
        };
        if point.messages > SHORT {
            return f64::INFINITY;
        }
        let slope = ((second - first) / (large - small)).max(0.0);
        let plain = second.max(first + 1.5 * slope * (point.size.0 as f64 - small));
        plain * f64::from(point.messages + 1) / 2.0 + 0.75 * RETRANSMISSION
    }
}

/// Stores the mean of a short burst and its spacing from the previous shorter burst.
fn remember(known: &mut BTreeMap<Bytes, (f64, f64, u32)>, point: PrttPoint, mean: f64) {
    let spacing = match known.get(&point.size) {
        Some((before, _, n)) => ((mean - before) / f64::from(point.messages - n)).max(0.0),
        // A message takes at most the time of its round trip.
        None => mean,
    };
    known.insert(point.size, (mean, spacing, point.messages));
}

/// Returns the sender's times of the kept round trips.
pub(super) fn busy_times(samples: &PrttSamples, group: &BurstGroup) -> Vec<f64> {
    let busy = samples.busy(group.point());
    group
        .kept
        .iter()
        .filter_map(|at| Some(busy.get(*at)?.as_nanos()))
        .collect()
}

/// Robust standard deviation, pooled over all points, and at least the resolution of a clock.
fn robust_deviation(points: impl Iterator<Item = Vec<f64>>) -> Option<f64> {
    let mut deviations = Vec::new();
    for mut times in points {
        let middle = if times.is_empty() {
            continue;
        } else {
            median_in_place(&mut times)
        };
        // The middle sample is its own median and adds no information.
        if times.len() > 2 {
            deviations.extend(times.iter().map(|time| (time - middle).abs()));
        }
    }
    (!deviations.is_empty()).then(|| (DEVIATIONS * median_in_place(&mut deviations)).max(50.0))
}
