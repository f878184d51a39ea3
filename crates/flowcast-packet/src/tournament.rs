//! Which of many lanes has the earliest event: a winner tree.
//!
//! Each lane shows the time of its first event only, because what a first-in-first-out link sends leaves in order. A
//! change costs one comparison for each doubling of the lanes. Equal times are ordered by lane.

use super::picos::Picos;

/// Lanes and their first events.
#[derive(Debug, Clone)]
pub(super) struct Tournament {
    /// A full binary tree of times and lanes, root at 1, leaves in the second half.
    winners: Vec<[u64; 2]>,
}

/// Later than every event; one below the largest number, so that one can be added.
const NOTHING: u64 = Picos::NEVER.0 - 1;

impl Tournament {
    /// So many lanes, all without event.
    pub(super) fn new(lanes: usize) -> Tournament {
        Tournament { winners: vec![[NOTHING, 0]; 2 * lanes.next_power_of_two().max(2)] }
    }

    /// The lane's first event is now at this time, [`Picos::NEVER`] if it has none.
    #[inline]
    pub(super) fn set(&mut self, lane: usize, at: Picos) {
        let mut place = self.winners.len() / 2 + lane;
        let mut winner = [at.0.min(NOTHING), lane as u64];
        self.winners[place] = winner;
        while place > 1 {
            let other = self.winners[place ^ 1];
            // Who stands at an odd place has the higher lanes, and loses at equal times. Which wins is as good as random:
            // masks, because a branch would be mispredicted every second time.
            let higher = place as u64 & 1;
            let mask = u64::from(other[0] < winner[0] + higher).wrapping_neg();
            winner = [winner[0] ^ (winner[0] ^ other[0]) & mask, winner[1] ^ (winner[1] ^ other[1]) & mask];
            place >>= 1;
            self.winners[place] = winner;
        }
    }

    /// The earliest event's time and lane; [`Picos::NEVER`] if there is none.
    #[inline]
    pub(super) fn first(&self) -> (Picos, usize) {
        let [at, lane] = self.winners[1];
        (if at == NOTHING { Picos::NEVER } else { Picos(at) }, lane as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_of_all_lanes(changes in prop::collection::vec((0usize..11, 0u64..6), 1..60)) {
            let mut tree = Tournament::new(11);
            let mut lanes = [Picos::NEVER; 11];
            for (lane, at) in changes {
                let at = if at == 5 { Picos::NEVER } else { Picos(at) };
                lanes[lane] = at;
                tree.set(lane, at);
                let least = lanes.iter().copied().zip(0..).min().unwrap();
                prop_assert_eq!(tree.first().0, least.0);
                if least.0 != Picos::NEVER {
                    prop_assert_eq!(tree.first().1, least.1);
                }
            }
        }
    }
}
