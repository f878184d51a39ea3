//! Which of many lanes has the earliest event: a winner tree.
//!
//! Each lane shows the time of its first event only, because what a first-in-first-out link sends leaves in order. A
//! change costs one comparison for each doubling of the lanes. Equal times are ordered by lane.

use super::picos::Picos;

/// Lanes and their first events.
#[derive(Debug, Clone)]
pub(super) struct Tournament {
    /// A full binary tree, root at 1, leaves in the second half: time in the upper half of each key, lane in the lower.
    keys: Vec<u128>,
}

impl Tournament {
    /// So many lanes, all without event.
    pub(super) fn new(lanes: usize) -> Tournament {
        Tournament { keys: vec![u128::MAX; 2 * lanes.next_power_of_two().max(2)] }
    }

    /// The lane's first event is now at this time, [`Picos::NEVER`] if it has none.
    #[inline]
    pub(super) fn set(&mut self, lane: usize, at: Picos) {
        let mut place = self.keys.len() / 2 + lane;
        let mut winner = u128::from(at.0) << 64 | lane as u128;
        self.keys[place] = winner;
        while place > 1 {
            winner = winner.min(self.keys[place ^ 1]);
            place >>= 1;
            self.keys[place] = winner;
        }
    }

    /// The earliest event's time and lane.
    #[inline]
    pub(super) fn first(&self) -> (Picos, usize) {
        (Picos((self.keys[1] >> 64) as u64), self.keys[1] as u64 as usize)
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
