//! Virtual-time round robin (Nieh, Vaill, Zhong, USENIX 2001; section 4.3.4.4): the fairness of weighted fair queuing
//! at a cost that does not depend on the number of rails.
//!
//! The rails stand in a queue by decreasing share `S`. After a rail has taken a message, the next rail in the queue takes
//! one under either of two conditions. It has more messages left in its cycle than the rail before it, or its virtual finish
//! time is ahead of the queue's virtual time by less than its own step: `p·T < (t+1)·S`, where it has taken `p` messages of
//! its `S`, and all rails together have taken `t` of `T`. Otherwise the queue starts again from its head, also when all have
//! taken their share. Shares 3, 2, 1 give ABCABA.
//!
//! **Subsets.** The thesis could not use this scheduler (4.4.7), because each destination reaches its own set of rails while
//! the counts belong to the rails, and the queue must not be reordered. Here the counts stay shared and the queue is never
//! reordered. The state of a set is computed from the set: its `T` and `t` are sums over the bytes of one masked word, and
//! the next rail in its queue is a bit scan of its mask. Only the position of its last message is stored, one byte for each
//! of the `2^n` sets. A rail that has taken its share belongs to no set until all rails of the requested set have taken
//! theirs. Only those rails then begin a new cycle. A message to one destination therefore moves the fair position of every
//! other destination that shares the rail. Each set alone is served in exact VTRR order on its own rails after at most one
//! cycle, and an unused rail carries over at most one cycle of credit. A decision takes the same number of word operations
//! for any number of rails.

use super::{MAX_RAILS, RailId, RailSet, Shares, Turn};

/// Rails by decreasing share, and the number of messages of its cycle that each has taken.
#[derive(Debug, Clone)]
pub struct VirtualTimeRoundRobin {
    rail_at: [RailId; MAX_RAILS],
    places_of: [[u16; 256]; 2],
    shares: VtrrLanes,
    taken: VtrrLanes,
    unfinished: u16,
    last: Vec<u8>,
}

const NO_PLACE: u8 = u8::MAX;

impl VirtualTimeRoundRobin {
    /// Starts every rail at the beginning of its cycle. Allocates the memory for the sets: 2^n bytes.
    pub fn new(shares: Shares) -> VirtualTimeRoundRobin {
        let mut rails: Vec<RailId> = shares.all().collect();
        rails.sort_by_key(|rail| (std::cmp::Reverse(shares.share(*rail)), *rail));
        let mut places = [NO_PLACE; MAX_RAILS];
        let mut of_place = VtrrLanes::default();
        for (place, rail) in rails.iter().enumerate() {
            places[rail.index()] = place as u8;
            of_place.set(place as u8, shares.share(*rail));
        }
        VirtualTimeRoundRobin {
            rail_at: std::array::from_fn(|place| rails.get(place).copied().unwrap_or(RailId(0))),
            places_of: std::array::from_fn(|half| {
                std::array::from_fn(|bits| places_of((bits << (8 * half)) as u16, &places))
            }),
            shares: of_place,
            taken: VtrrLanes::default(),
            unfinished: shares.all().bits(),
            last: vec![NO_PLACE; 1 << rails.len()],
        }
    }

    /// Returns the place that takes the next message of the set. Some place of the set must be unfinished.
    fn place(&self, set: u16) -> u8 {
        let unfinished = set & self.unfinished;
        let head = unfinished.trailing_zeros() as u8;
        let last = self.last[usize::from(set)];
        if last == NO_PLACE {
            return head;
        }
        let after = unfinished & u16::MAX.checked_shl(u32::from(last) + 1).unwrap_or(0);
        if after == 0 {
            return head;
        }
        let next = after.trailing_zeros() as u8;
        if self.left(next) > self.left(last) || self.keeps_fair(next, set) {
            next
        } else {
            head
        }
    }

    fn left(&self, place: u8) -> u8 {
        self.shares.get(place) - self.taken.get(place)
    }

    fn keeps_fair(&self, place: u8, set: u16) -> bool {
        let all = self.shares.sum_over(set);
        let taken = self.taken.sum_over(set);
        u32::from(self.taken.get(place)) * all < (taken + 1) * u32::from(self.shares.get(place))
    }
}

impl Turn for VirtualTimeRoundRobin {
    #[inline]
    fn next(&mut self, usable: RailSet) -> Option<RailId> {
        let bits = usable.bits();
        let set =
            self.places_of[0][usize::from(bits & 255)] | self.places_of[1][usize::from(bits >> 8)];
        if set == 0 {
            return None;
        }
        if set & self.unfinished == 0 {
            self.taken.clear(set);
            self.unfinished |= set;
            self.last[usize::from(set)] = NO_PLACE;
        }
        let place = self.place(set);
        self.taken.set(place, self.taken.get(place) + 1);
        if self.left(place) == 0 {
            self.unfinished &= !(1 << place);
        }
        self.last[usize::from(set)] = place;
        Some(self.rail_at[usize::from(place)])
    }
}

fn places_of(bits: u16, places: &[u8; MAX_RAILS]) -> u16 {
    RailSet::from_bits(bits).fold(0, |set, rail| match places[rail.index()] {
        NO_PLACE => set,
        place => set | 1 << place,
    })
}

/// Sixteen bytes that are summed over a set in a few word operations.
#[derive(Debug, Clone, Copy, Default)]
struct VtrrLanes([u64; 2]);

/// Spreads each bit to a byte of ones.
static SPREAD: [u64; 256] = spread();

const fn spread() -> [u64; 256] {
    let mut table = [0; 256];
    let mut bits = 0;
    while bits < 256 {
        let mut lane = 0;
        while lane < 8 {
            if bits >> lane & 1 == 1 {
                table[bits] |= 255 << (8 * lane);
            }
            lane += 1;
        }
        bits += 1;
    }
    table
}

impl VtrrLanes {
    fn get(&self, lane: u8) -> u8 {
        (self.0[usize::from(lane >> 3)] >> (8 * (lane & 7))) as u8
    }

    fn set(&mut self, lane: u8, value: u8) {
        let word = &mut self.0[usize::from(lane >> 3)];
        let shift = 8 * (lane & 7);
        *word = *word & !(255 << shift) | u64::from(value) << shift;
    }

    fn clear(&mut self, set: u16) {
        self.0[0] &= !SPREAD[usize::from(set & 255)];
        self.0[1] &= !SPREAD[usize::from(set >> 8)];
    }

    fn sum_over(&self, set: u16) -> u32 {
        let low = sum_of_bytes(self.0[0] & SPREAD[usize::from(set & 255)]);
        low + sum_of_bytes(self.0[1] & SPREAD[usize::from(set >> 8)])
    }
}

fn sum_of_bytes(word: u64) -> u32 {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    const ONES: u64 = 0x0001_0001_0001_0001;
    ((word & EVEN) + (word >> 8 & EVEN))
        .wrapping_mul(ONES)
        .wrapping_shr(48) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Direct implementation of the paper's text, one rail after the other, without words and sets.
    struct Evident {
        order: Vec<usize>,
        shares: Vec<u32>,
        taken: Vec<u32>,
        at: usize,
    }

    impl Evident {
        fn new(shares: &[u32]) -> Evident {
            let mut order: Vec<usize> = (0..shares.len()).collect();
            order.sort_by_key(|rail| std::cmp::Reverse(shares[*rail]));
            Evident {
                order,
                shares: shares.to_vec(),
                taken: vec![0; shares.len()],
                at: usize::MAX,
            }
        }

        fn next(&mut self) -> usize {
            let total: u32 = self.shares.iter().sum();
            if self.taken == self.shares {
                self.taken.fill(0);
                self.at = usize::MAX;
            }
            let left = |rail: usize| self.shares[rail] - self.taken[rail];
            let follows = |at: usize| {
                let (own, before) = (*self.order.get(at + 1)?, self.order[at]);
                let all: u32 = self.taken.iter().sum();
                let fair = self.taken[own] * total < (all + 1) * self.shares[own];
                (left(own) > left(before) || fair).then_some(at + 1)
            };
            self.at = if self.at == usize::MAX {
                0
            } else {
                follows(self.at).unwrap_or(0)
            };
            self.taken[self.order[self.at]] += 1;
            self.order[self.at]
        }
    }

    fn vtrr(shares: &[u32]) -> VirtualTimeRoundRobin {
        VirtualTimeRoundRobin::new(Shares::new(shares).unwrap())
    }

    proptest! {
        #[test]
        fn words_and_bit_scans_give_the_order_of_the_paper(shares in prop::collection::vec(1u32..=255, 1..=16)) {
            let (mut fast, mut evident) = (vtrr(&shares), Evident::new(&shares));
            for _ in 0..2 * shares.iter().sum::<u32>() {
                prop_assert_eq!(fast.next(RailSet::ALL).unwrap().index(), evident.next());
            }
        }

        #[test]
        fn a_single_set_is_served_in_the_order_of_its_rails(
            shares in prop::collection::vec(1u32..=20, 2..=16),
            bits in 1u16..,
            before in prop::collection::vec(any::<u16>(), 0..200),
        ) {
            let all = RailSet::first(shares.len());
            let set = RailSet::from_bits(bits).and(all);
            prop_assume!(!set.is_empty());
            let mut fast = vtrr(&shares);
            for other in before {
                fast.next(RailSet::from_bits(other));
            }
            let own: Vec<u32> = set.map(|rail| shares[rail.index()]).collect();
            let cycle: u32 = own.iter().sum();
            while fast.place_sum(set) < cycle {
                fast.next(set);
            }
            let rails: Vec<RailId> = set.collect();
            let mut evident = Evident::new(&own);
            for _ in 0..2 * cycle {
                prop_assert_eq!(fast.next(set).unwrap(), rails[evident.next()]);
            }
        }

        #[test]
        fn a_message_to_one_destination_counts_for_all_that_share_the_rail(shares in prop::collection::vec(2u32..=50, 2..=8)) {
            let only_first = RailSet::first(1);
            let mut shared = vtrr(&shares);
            for _ in 1..shares[0] {
                shared.next(only_first);
            }
            let cycle: u32 = shares.iter().sum();
            let left = cycle - (shares[0] - 1);
            let firsts = (0..left).filter(|_| shared.next(RailSet::ALL) == Some(RailId(0))).count();
            prop_assert_eq!(firsts, 1, "the first rail has one message of its cycle left");
        }
    }

    impl VirtualTimeRoundRobin {
        fn place_sum(&self, set: RailSet) -> u32 {
            let places = RailSet::from_bits(self.places_of[0][usize::from(set.bits() & 255)])
                .bits()
                | self.places_of[1][usize::from(set.bits() >> 8)];
            self.taken.sum_over(places)
        }
    }
}
