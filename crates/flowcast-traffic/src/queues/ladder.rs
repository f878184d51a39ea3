//! Which member has the earliest event, for many members: events in buckets by time, of which only the next ones are
//! sorted.
//!
//! A ladder queue (Tang, Goh and Thng, 2005) with one rung. A tournament or a heap knows the next event only; here many
//! of the next ones are known, in order, so what they need can be prefetched long before they come. With many
//! members that is most of what an event costs. What falls into a bucket that was given out already waits in a heap, which
//! is small as long as events cause few others that come nearly at once.
//!
//! Entries are not taken out when a member gets another key: what is not the key of its member any more is passed over.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::queues::{KeyQueue, NEVER, member_of};

/// How many buckets there are, and about how many events one gets.
const BUCKETS: usize = 1024;
const EVENTS: f64 = 32.0;

/// The time of a key in nanoseconds.
#[inline(always)]
fn nanos_of(key: u128) -> f64 {
    crate::queues::time_of(key).as_nanos()
}

/// So few events are sorted without buckets.
const FEW: usize = 64;

/// How many places ahead events are told, the farthest first.
const AHEAD: [usize; 4] = [40, 28, 16, 8];

/// The key of each member, and all keys by time.
pub struct Ladder {
    /// By member: the key of its next event.
    keys: Vec<u128>,
    /// What was given out, sorted, and how far it was read.
    batch: Vec<u128>,
    at: usize,
    /// What belongs into buckets that were given out.
    late: BinaryHeap<Reverse<u128>>,
    buckets: Vec<Vec<u128>>,
    /// The bucket that is given out next.
    next: usize,
    /// The time at which the first bucket begins, and buckets per nanosecond.
    start: f64,
    density: f64,
    /// What comes after the last bucket.
    rest: Vec<u128>,
}

impl Ladder {
    /// So many members, none with an event.
    pub fn new(members: usize) -> Ladder {
        Ladder {
            keys: vec![NEVER; members],
            batch: Vec::new(),
            at: 0,
            late: BinaryHeap::new(),
            buckets: vec![Vec::new(); BUCKETS],
            next: BUCKETS,
            // All times lie behind the last bucket at first.
            start: -1.0,
            density: f64::INFINITY,
            rest: Vec::new(),
        }
    }

    /// The bucket of a key. Later keys never have an earlier one, whatever the rounding.
    #[inline(always)]
    fn place(start: f64, density: f64, key: u128) -> usize {
        ((nanos_of(key) - start) * density) as usize
    }

    #[inline(always)]
    fn holds(&self, key: u128) -> bool {
        self.keys[member_of(key) as usize] == key
    }

    /// Gives the next bucket out; `false` if there is no event left but what is given out.
    #[inline(never)]
    fn extend(&mut self) -> bool {
        self.batch.drain(..self.at);
        self.at = 0;
        loop {
            while self.next < BUCKETS {
                let bucket = &mut self.buckets[self.next];
                self.next += 1;
                if !bucket.is_empty() {
                    bucket.sort_unstable();
                    self.batch.append(bucket);
                    return true;
                }
            }
            if !self.batch.is_empty() || !self.spread() {
                return !self.batch.is_empty();
            }
        }
    }

    /// Puts what came after the last bucket into buckets, as wide as the earliest of it would fill them as wished: some
    /// members may have an event only long after all others.
    fn spread(&mut self) -> bool {
        let Ladder {
            keys,
            buckets,
            rest,
            ..
        } = self;
        rest.retain(|key| keys[member_of(*key) as usize] == *key);
        if rest.len() <= FEW {
            return self.take_earlier_half();
        }
        let part = rest.len() / 8;
        let (earlier, last, _) = rest.select_nth_unstable(part);
        let start = nanos_of(
            earlier
                .iter()
                .copied()
                .min()
                .expect("an eighth of many is some"),
        );
        let width = (nanos_of(*last) - start) / part as f64 * EVENTS;
        let density = if width > 0.0 { 1.0 / width } else { 1.0 };
        rest.retain(
            |key| match buckets.get_mut(Ladder::place(start, density, *key)) {
                Some(bucket) => {
                    bucket.push(*key);
                    false
                }
                None => true,
            },
        );
        (self.start, self.density, self.next) = (start, density, 0);
        true
    }

    /// Gives out the earlier half of what is left, and what comes at the time of the last of it.
    fn take_earlier_half(&mut self) -> bool {
        let rest = &mut self.rest;
        if rest.is_empty() {
            return false;
        }
        rest.sort_unstable();
        let last = nanos_of(rest[(rest.len() - 1) / 2]);
        let end = rest.partition_point(|key| nanos_of(*key) <= last);
        self.batch.extend(rest.drain(..end));
        // Whatever comes later than all this has to wait its turn again.
        (self.start, self.density, self.next) = (last, f64::INFINITY, BUCKETS);
        true
    }
}

impl KeyQueue for Ladder {
    const KNOWS_MORE: bool = true;

    #[inline(always)]
    fn first(&mut self) -> Option<u128> {
        loop {
            if self.next < BUCKETS && self.batch.len() - self.at <= AHEAD[0] {
                self.extend();
            }
            let planned = self.batch.get(self.at).copied().unwrap_or(NEVER);
            let late = self.late.peek().map_or(NEVER, |Reverse(key)| *key);
            let key = if late < planned {
                self.late.pop();
                late
            } else if planned != NEVER {
                self.at += 1;
                planned
            } else if let [only] = self.rest[..]
                && self.next == BUCKETS
            {
                self.rest.clear();
                self.start = nanos_of(only);
                self.density = f64::INFINITY;
                only
            } else if self.extend() {
                continue;
            } else {
                return None;
            };
            if self.holds(key) {
                return Some(key);
            }
        }
    }

    #[inline(always)]
    fn set(&mut self, member: u32, key: u128) {
        let own = &mut self.keys[member as usize];
        if *own == key {
            return;
        }
        *own = key;
        if key == NEVER {
            return;
        }
        let place = Ladder::place(self.start, self.density, key);
        if place < self.next {
            self.late.push(Reverse(key));
        } else {
            self.buckets
                .get_mut(place)
                .unwrap_or(&mut self.rest)
                .push(key);
        }
    }

    #[inline(always)]
    fn soon(&self) -> [u128; 4] {
        AHEAD.map(|places| self.batch.get(self.at + places).copied().unwrap_or(NEVER))
    }

    #[inline(always)]
    fn keys(&self) -> &[u128] {
        &self.keys
    }
}
