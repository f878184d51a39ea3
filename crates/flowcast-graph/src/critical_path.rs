//! The critical path of a replay: the chain of events that ends when the last rank ends.
//!
//! The walk starts at the last event of the rank that ends last. It goes back along the binding edge, to the event that was
//! waited for longest. Every nanosecond on this path belongs to one [`TimePart`], so the shares add up to the makespan. The
//! network determines the parts of a cost; the rest of the cost belongs to whatever else the event waited for. The time of
//! a replay is a maximum over such chains (max-plus algebra). Hence each share is also a lower bound for the growth of the
//! makespan when the parameter behind it grows.

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
    /// Start of the piece, which is the end of the previous one.
    pub start: Time,
    /// End of the piece, which is the start of the next one.
    pub end: Time,
    /// Activity or cost that the time is spent on.
    pub limit: TimePart,
}

/// Share of one limit in the makespan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Activity or cost that the time is spent on.
    pub limit: TimePart,
    /// Time on the path that is spent on it.
    pub time: Time,
    /// Fraction of the makespan, from 0 to 1.
    pub fraction: f64,
}

/// Counts along the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepCounts {
    /// Number of messages whose latency is on the path.
    pub messages: u64,
    /// Bytes whose transfer time is on the path.
    pub bytes: Bytes,
    /// Number of times that a processor handled a message.
    pub overheads: u64,
    /// Number of times that an interface rested.
    pub gaps: u64,
    /// Number of collective operations whose time is on the path.
    pub collectives: u64,
}

/// The chain of causes behind a makespan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CriticalPath {
    /// Time at which the last rank ended.
    pub makespan: Time,
    /// Pieces from the start to the makespan, without gaps.
    pub steps: Vec<PathStep>,
    /// Counts of messages, bytes, overheads, gaps and collectives on the path.
    pub counts: StepCounts,
}

impl CriticalPath {
    /// Shares of the makespan, largest first. Limits without a share are left out.
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
                    fraction: time.share_of(self.makespan),
                }
            })
            .filter(|share| share.time > Time::ZERO)
            .collect();
        shares.sort_by_key(|share| Reverse(share.time));
        shares
    }

    /// Returns the ranks on the path with their time on it, longest first.
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
