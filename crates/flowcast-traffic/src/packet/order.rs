//! Packets of a connection that have arrived: all packets before the first missing one, and some beyond it.

use std::collections::VecDeque;

/// Packets that have arrived, by number.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct SegmentOrder {
    next: u32,
    /// `true` for each of the packets `next`, `next + 1`, .. that has arrived. The first entry is always `false`.
    ahead: VecDeque<bool>,
    count_ahead: u32,
}

/// Relation of a packet to those that arrived before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentArrival {
    /// The first packet that was missing.
    InOrder,
    /// A packet beyond a gap.
    Ahead,
    /// A packet that had arrived before.
    Again,
}

impl SegmentOrder {
    /// First packet that is missing.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Number of packets beyond the first gap.
    #[inline]
    pub(super) fn ahead(&self) -> u32 {
        self.count_ahead
    }

    /// Advances by this many packets that arrived in order.
    pub(super) fn shift(&mut self, packets: u32) {
        self.next += packets;
    }

    pub(super) fn has(&self, number: u32) -> bool {
        number < self.next
            || self
                .ahead
                .get((number - self.next) as usize)
                .copied()
                .unwrap_or(false)
    }

    #[inline]
    pub(super) fn insert(&mut self, number: u32) -> SegmentArrival {
        if number == self.next && self.count_ahead == 0 {
            self.next += 1;
            return SegmentArrival::InOrder;
        }
        self.insert_beside_gap(number)
    }

    fn insert_beside_gap(&mut self, number: u32) -> SegmentArrival {
        if self.has(number) {
            return SegmentArrival::Again;
        }
        let place = (number - self.next) as usize;
        if place >= self.ahead.len() {
            self.ahead.resize(place + 1, false);
        }
        self.ahead[place] = true;
        self.count_ahead += 1;
        if place > 0 {
            return SegmentArrival::Ahead;
        }
        while self.ahead.front() == Some(&true) {
            self.ahead.pop_front();
            self.next += 1;
            self.count_ahead -= 1;
        }
        if self.count_ahead == 0 {
            self.ahead.clear();
        }
        SegmentArrival::InOrder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_packet_is_present_after_its_arrival(numbers in prop::collection::vec(0u32..20, 0..60)) {
            let (mut order, mut came) = (SegmentOrder::default(), BTreeSet::new());
            for number in numbers {
                let first_missing = (0..).find(|n| !came.contains(n)).unwrap();
                let expected = match came.insert(number) {
                    false => SegmentArrival::Again,
                    true if number == first_missing => SegmentArrival::InOrder,
                    true => SegmentArrival::Ahead,
                };
                prop_assert_eq!(order.insert(number), expected);
                prop_assert_eq!(order.next(), (0..).find(|n| !came.contains(n)).unwrap());
                prop_assert_eq!(order.ahead(), came.iter().filter(|n| **n > order.next()).count() as u32);
                prop_assert!((0..25).all(|n| order.has(n) == came.contains(&n)));
            }
        }
    }
}
