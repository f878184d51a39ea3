//! Lower bound of the makespan, for sets that are too large to be searched.
//!
//! A rail that takes the messages `M` delivers its last one no earlier than `free + Σ_M busy - g + 2o + L`, with
//! `busy = g + G(s-1)`. A makespan `T` therefore satisfies, for any weights `w_r >= 0`,
//!
//! `Σ_m min_r w_r·busy_mr <= Σ_r w_r · max(0, T - free_r - (2o + L - g)_r)`,
//!
//! the dual of the fractional relaxation. The weights `1/busy_r(s)` of the occurring sizes are tried; for two rails the best
//! weights are among them. The messages that arrive from a time on give a bound of the same form, with all rails free at
//! that time. No message is faster than alone on its best rail.

use super::{
    MAX_RAILS, RailsError,
    rail::check_count,
    schedule::{RailMessage, check_order},
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time};

/// Largest number of sizes that give weights, and of arrivals that are tried as starts.
const SAMPLES: usize = 32;

/// Returns a makespan that no schedule can beat.
///
/// # Errors
/// No rail, too many, or messages that are not in order of arrival.
pub fn lower_bound(rails: &[LogGp], messages: &[RailMessage]) -> Result<Time, RailsError> {
    check_count(rails.len())?;
    check_order(messages)?;
    let alone = messages
        .iter()
        .map(|message| earliest(rails, &[Time::ZERO; MAX_RAILS], message));
    let alone = alone.fold(Time::ZERO, Time::max);
    let weights = weights(rails, messages);
    Ok(sampled(messages.len())
        .map(|first: usize| {
            let arrival = messages[first].arrival;
            let bounds = weights
                .iter()
                .map(move |weight| weight.bound(rails, &messages[first..], arrival));
            bounds.fold(Time::ZERO, Time::max)
        })
        .fold(alone, Time::max))
}

/// Delivery time of a message on the rail that delivers it first, with rails busy until `free`.
pub(super) fn earliest(rails: &[LogGp], free: &[Time; MAX_RAILS], message: &RailMessage) -> Time {
    rails
        .iter()
        .zip(free)
        .map(|(rail, free)| message.arrival.max(*free) + rail.one_way(message.size))
        .min()
        .unwrap_or(Time::ZERO)
}

/// Weights of the rails in the relaxation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights([f64; MAX_RAILS]);

impl Weights {
    /// Weighted time that a message needs, in nanoseconds: `min_r w_r·busy_r`.
    pub(crate) fn demand(&self, rails: &[LogGp], size: Bytes) -> f64 {
        rails
            .iter()
            .zip(&self.0)
            .map(|(rail, weight): (&LogGp, &f64)| rail.spacing(size).as_nanos() * weight)
            .fold(f64::INFINITY, f64::min)
    }

    /// Weighted time of the rails until `end`, each from `free` on, in nanoseconds.
    pub(crate) fn supply(&self, rails: &[LogGp], free: &[Time; MAX_RAILS], end: Time) -> f64 {
        rails
            .iter()
            .zip(&self.0)
            .zip(free)
            .map(|((rail, weight), free): ((&LogGp, &f64), &Time)| {
                (end - *free - tail(rail)).as_nanos().max(0.0) * weight
            })
            .sum()
    }

    /// Smallest end at which the supply meets the demand, as if all messages were ready at `arrival`.
    fn bound(&self, rails: &[LogGp], messages: &[RailMessage], arrival: Time) -> Time {
        let demand: f64 = messages
            .iter()
            .map(|message| self.demand(rails, message.size))
            .sum();
        let mut opens: Vec<(Time, f64)> = rails
            .iter()
            .zip(&self.0)
            .map(|(rail, weight)| (arrival + tail(rail), *weight))
            .collect();
        opens.sort_by_key(|(open, _)| *open);
        let (mut slope, mut offset, mut end) = (0.0, 0.0, Time::ZERO);
        for (index, (open, weight)) in opens.iter().enumerate() {
            slope += weight;
            offset += weight * open.as_nanos();
            end = Time::from_nanos((demand + offset) / slope);
            if opens.get(index + 1).is_none_or(|(next, _)| end <= *next) {
                break;
            }
        }
        end
    }
}

/// Time from the end of a message's slot on the rail to its delivery: `2o + L - g`.
fn tail(rail: &LogGp) -> Time {
    rail.overhead * 2.0 + rail.latency - rail.gap
}

/// Weights for a sample of the occurring sizes, and equal weights.
pub(super) fn weights(rails: &[LogGp], messages: &[RailMessage]) -> Vec<Weights> {
    let mut sizes: Vec<Bytes> = messages.iter().map(|message| message.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let equal = Weights(std::array::from_fn(|rail| {
        if rail < rails.len() { 1.0 } else { 0.0 }
    }));
    sampled(sizes.len())
        .map(|index| {
            Weights(std::array::from_fn(|rail| {
                rails.get(rail).map_or(0.0, |rail: &LogGp| {
                    1.0 / rail.spacing(sizes[index]).as_nanos().max(1e-6)
                })
            }))
        })
        .chain([equal])
        .collect()
}

/// Up to [`SAMPLES`] indices spread over `0..count`, including both ends.
fn sampled(count: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(SAMPLES);
    (0..taken).map(move |sample| {
        if taken == 1 {
            0
        } else {
            sample * (count - 1) / (taken - 1)
        }
    })
}
