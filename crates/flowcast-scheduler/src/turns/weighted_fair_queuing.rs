//! Weighted fair queuing (section 4.3.4.3): smallest virtual finish time, `1/share` more for each message.
//!
//! `n+1` messages over a share are compared by cross products, so nothing is divided and equal times are equal.

use super::{MAX_RAILS, RailId, RailSet, Shares, Turn};

/// A count of messages for each rail.
#[derive(Debug, Clone, Copy)]
pub struct WeightedFairQueuing {
    shares: Shares,
    /// Virtual finish time times share: one more than the messages that the rail took.
    finish: [u64; MAX_RAILS],
}

impl WeightedFairQueuing {
    /// No rail took a message yet.
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
