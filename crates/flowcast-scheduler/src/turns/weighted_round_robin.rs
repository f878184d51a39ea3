//! Weighted round robin: each rail in turn takes as many consecutive messages as its share (section 4.3.4.2). Shares 3, 2, 1
//! give AAABBC.

use super::{RailId, RailSet, Shares, Turn};

/// State of weighted round robin: the current rail and the number of messages that it still takes.
#[derive(Debug, Clone, Copy)]
pub struct WeightedRoundRobin {
    shares: Shares,
    rail: RailId,
    left: u8,
}

impl WeightedRoundRobin {
    /// Begins with a full row of the first rail.
    pub fn new(shares: Shares) -> WeightedRoundRobin {
        WeightedRoundRobin {
            shares,
            rail: RailId(0),
            left: shares.share(RailId(0)),
        }
    }
}

impl Turn for WeightedRoundRobin {
    #[inline]
    fn next(&mut self, usable: RailSet) -> Option<RailId> {
        if self.left == 0 || !usable.contains(self.rail) {
            let after = RailSet::from_bits(
                usable.bits()
                    & u16::MAX
                        .checked_shl(u32::from(self.rail.0) + 1)
                        .unwrap_or(0),
            );
            self.rail = after.lowest().or(usable.lowest())?;
            self.left = self.shares.share(self.rail);
        }
        self.left -= 1;
        Some(self.rail)
    }
}
