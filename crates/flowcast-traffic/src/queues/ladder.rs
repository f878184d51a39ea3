//! Earliest event of many members: events are in buckets by time, of which only the next ones are sorted.
//!
//! A ladder queue (Tang, Goh and Thng, 2005) with one rung. A tournament or a heap knows only the next event. Here many of
//! the next events are known, in order, so the data that they need can be prefetched long before they come. With many
//! members, access to these data is most of the cost of an event. An event that falls into a bucket that was already read
//! waits in a heap, which is small as long as events cause few others at almost the same time.
//!
//! Entries are not removed when a member gets another key: an entry that is no longer the key of its member is skipped.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::queues::{KeyQueue, NEVER, member_of};

/// Number of buckets, and approximate number of events in each.
const BUCKETS: usize = 1024;
const EVENTS: f64 = 32.0;

/// The time of a key in nanoseconds.
#[inline(always)]
fn nanos_of(key: u128) -> f64 {
    crate::queues::time_of(key).as_nanos()
}

/// Largest number of events that are sorted without buckets.
const FEW: usize = 64;

/// Distances of the events that are reported as coming soon, in places, the farthest first.
const AHEAD: [usize; 4] = [40, 28, 16, 8];

/// Key of each member, and all keys by time.
pub struct Ladder {
    /// Key of each member's next event, indexed by member.
    keys: Vec<u128>,
    /// Sorted events of the buckets already read, and the place of the next one.
    batch: Vec<u128>,
    at: usize,
    /// Events that belong to buckets already read.
    late: BinaryHeap<Reverse<u128>>,
    buckets: Vec<Vec<u128>>,
    /// Bucket that is read next.
    next: usize,
    /// Start of the first bucket, in nanoseconds, and buckets per nanosecond.
    start: f64,
    density: f64,
    /// Events after the last bucket.
    rest: Vec<u128>,
}

impl Ladder {
    /// Creates a queue for this many members, none of which has an event.
    pub fn new(members: usize) -> Ladder {
        Ladder {
            keys: vec![NEVER; members],
            batch: Vec::new(),
            at: 0,
            late: BinaryHeap::new(),
            buckets: vec![Vec::new(); BUCKETS],
            next: BUCKETS,
            // At first, all times are after the last bucket.
            start: -1.0,
            density: f64::INFINITY,
            rest: Vec::new(),
        }
    }

    /// Bucket of a key. Later keys never have an earlier bucket, in spite of rounding.
    #[inline(always)]
    fn place(start: f64, density: f64, key: u128) -> usize {
        ((nanos_of(key) - start) * density) as usize
    }

    #[inline(always)]
    fn holds(&self, key: u128) -> bool {
        self.keys[member_of(key) as usize] == key
    }

    /// Moves the next bucket to the batch. Returns `false` if no event remains outside of `late`.
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

    /// Distributes the events after the last bucket over the buckets. Their width is such that the earliest of these events
    /// fill them as intended: some members may have an event only long after all others.
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

    /// Moves the earlier half of the remaining events to the batch, with all events at the same time as the last of that
    /// half.
    fn take_earlier_half(&mut self) -> bool {
        let rest = &mut self.rest;
        if rest.is_empty() {
            return false;
        }
        rest.sort_unstable();
        let last = nanos_of(rest[(rest.len() - 1) / 2]);
        let end = rest.partition_point(|key| nanos_of(*key) <= last);
        self.batch.extend(rest.drain(..end));
        // All later events have to wait their turn again.
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
