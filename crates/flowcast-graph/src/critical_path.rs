//! What limits a replay: the chain of events that ends where the last rank ends.
//!
//! The walk begins at the last event of the rank that ends last and goes back along the edge that binds, to the event for which
//! it was waited longest. Every nanosecond on this path belongs to one [`TimePart`], so the shares add up to the makespan: the
//! parts of a cost are what the network says, the rest of it is what its event waited for otherwise. The time of a replay is a
//! maximum over such chains (max-plus algebra), hence each share is also a lower bound of what the makespan grows by when the
//! parameter behind it grows.

mod sentences;
mod walk;

use std::cmp::Reverse;

use flowcast_replay::time_part::TimePart;
use flowcast_units::{Bytes, Rank, Time};

/// A piece of the critical path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathStep {
    /// The rank that works or waits.
    pub rank: Rank,
    /// Its beginning: the end of the step before.
    pub start: Time,
    /// Its end: the beginning of the step behind it.
    pub end: Time,
    /// What it is spent on.
    pub limit: TimePart,
}

/// One limit's part of the makespan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// What the time is spent on.
    pub limit: TimePart,
    /// How much of it.
    pub time: Time,
    /// Of the makespan, from 0 to 1.
    pub fraction: f64,
}

/// What is counted along the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepCounts {
    /// Messages whose latency is on it.
    pub messages: u64,
    /// Bytes whose transfer is on it.
    pub bytes: Bytes,
    /// Times that a processor handled a message.
    pub overheads: u64,
    /// Times that an interface rested.
    pub gaps: u64,
    /// Collective operations whose time is on it.
    pub collectives: u64,
}

/// The chain of causes behind a makespan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CriticalPath {
    /// When the last rank ended.
    pub makespan: Time,
    /// From the beginning to the makespan without gaps.
    pub steps: Vec<PathStep>,
    /// What lies on it.
    pub counts: StepCounts,
}

impl CriticalPath {
    /// What the makespan is spent on, largest share first; limits without a share are left out.
    pub fn shares(&self) -> Vec<Share> {
        let mut shares: Vec<Share> = TimePart::LIMITS
            .into_iter()
            .map(|limit| {
                let time = self
                    .steps
                    .iter()
                    .filter(|step| step.limit == limit)
                    .map(|step| step.end - step.start)
                    .sum();
                Share {
                    limit,
                    time,
                    fraction: fraction(time, self.makespan),
                }
            })
            .filter(|share| share.time > Time::ZERO)
            .collect();
        shares.sort_by_key(|share| Reverse(share.time));
        shares
    }

    /// The ranks on the path with their time on it, longest first.
    pub fn ranks(&self) -> Vec<(Rank, Time)> {
        let mut times = std::collections::BTreeMap::new();
        for step in &self.steps {
            *times.entry(step.rank).or_insert(Time::ZERO) += step.end - step.start;
        }
        let mut times: Vec<(Rank, Time)> = times.into_iter().collect();
        times.sort_by_key(|(rank, time)| (Reverse(*time), *rank));
        times
    }
}

fn fraction(part: Time, whole: Time) -> f64 {
    if whole > Time::ZERO {
        part.as_nanos() / whole.as_nanos()
    } else {
        0.0
    }
}
