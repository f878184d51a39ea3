//! Weighted fair queuing (section 4.3.4.3): smallest virtual finish time, which grows by `1/share` with each message.
//!
//! The times `(n+1)/share` are compared by cross products. This needs no division, and equal times compare as equal.

use super::{MAX_RAILS, RailId, RailSet, Shares, Turn};

/// Message counts of the rails.
#[derive(Debug, Clone, Copy)]
pub struct WeightedFairQueuing {
    shares: Shares,
    /// Virtual finish time times share: the number of messages that the rail took, plus one.
    finish: [u64; MAX_RAILS],
}

impl WeightedFairQueuing {
    /// Creates the state before any message.
    pub fn new(shares: Shares) -> WeightedFairQueuing {
        WeightedFairQueuing {
            shares,
            finish: [1; MAX_RAILS],
        }
    }

    fn is_before(&self, rail: RailId, other: RailId) -> bool {
        let cross = |a: RailId, b: RailId| {
            u128::from(self.finish[a.index()]) * u128::from(self.shares.share(b))
        };
        cross(rail, other) < cross(other, rail)
    }
}

impl Turn for WeightedFairQueuing {
    #[inline]
    fn next(&mut self, mut usable: RailSet) -> Option<RailId> {
        let first = usable.next()?;
        let rail = usable.fold(first, |best, rail| {
            if self.is_before(rail, best) {
                rail
            } else {
                best
            }
        });
        self.finish[rail.index()] += 1;
        Some(rail)
    }
}
