//! Events in the order of time and, at equal times, in the order of insertion.
//!
//! Most events follow after one of few fixed delays (the start-up of a message, the transfer of a size), and events with the
//! same delay become due in the order of insertion. Each such delay is therefore a *lane*, a plain queue of which only the
//! head is in a heap, and that heap has no more entries than there are delays. Events that are due immediately bypass the
//! heaps: any event in the heaps that is due now was inserted before.

use std::cmp::Ordering;

use super::event_ring::EventRing;
use flowcast_units::Time;

/// One of the fixed delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane(u16);

/// No lane: the event itself is in the heap.
const DIRECT: u16 = u16::MAX;

/// No lane either: the event was due immediately.
const AT_ONCE: u16 = u16::MAX - 1;

impl Default for Lane {
    fn default() -> Lane {
        Lane::NONE
    }
}

impl Lane {
    /// No lane, for events that are inserted into the heap directly.
    pub const NONE: Lane = Lane(DIRECT);
}

/// Largest number of lanes. With more, there would be hardly fewer heads than events.
const MOST_LANES: usize = 1 << 12;

#[derive(Debug, Clone, Copy, Default)]
struct LaneEntry<E> {
    /// Bits of the due time. For times that are not negative, they have the order of the times.
    due: u64,
    /// Number of the insertion, followed by the lane in the low bits.
    order: u64,
    event: E,
}

impl<E> LaneEntry<E> {
    #[inline(always)]
    fn event(self) -> E {
        self.event
    }

    #[inline(always)]
    fn lane(&self) -> u16 {
        self.order as u16
    }

    #[inline(always)]
    fn is_before(&self, other: &LaneEntry<E>) -> bool {
        match self.due.cmp(&other.due) {
            Ordering::Less => true,
            Ordering::Equal => self.order < other.order,
            Ordering::Greater => false,
        }
    }
}

#[derive(Debug, Clone)]
struct LaneEntries<E> {
    delay: Time,
    /// `true` if an entry of this lane is in the heap.
    active: bool,
    /// Other entries of this lane, in order.
    behind: EventRing<LaneEntry<E>>,
}

impl<E> LaneEntries<E> {
    fn new(delay: Time) -> LaneEntries<E> {
        LaneEntries {
            delay,
            active: false,
            behind: EventRing::new(),
        }
    }
}

/// Number of children of a place in the heap.
const WIDTH: usize = 4;

/// Heap of entries with the earliest at its front.
#[derive(Debug, Clone)]
struct Heap<E>(Vec<LaneEntry<E>>);

impl<E: Copy> Heap<E> {
    #[inline]
    fn insert(&mut self, due: u64, order: u64, event: E) {
        let entry = LaneEntry { due, order, event };
        let mut at = self.0.len();
        self.0.push(entry);
        while at > 0 {
            let parent = (at - 1) / WIDTH;
            if !entry.is_before(&self.0[parent]) {
                break;
            }
            self.0[at] = self.0[parent];
            at = parent;
        }
        self.0[at] = entry;
    }

    /// Puts an entry in place of the first.
    #[inline(always)]
    fn replace_first(&mut self, entry: LaneEntry<E>) {
        let heap = &mut self.0[..];
        let mut at = 0;
        loop {
            let first = WIDTH * at + 1;
            if first >= heap.len() {
                break;
            }
            let mut child = first;
            for other in first + 1..heap.len().min(first + WIDTH) {
                if heap[other].is_before(&heap[child]) {
                    child = other;
                }
            }
            if !heap[child].is_before(&entry) {
                break;
            }
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = entry;
    }

    #[inline(always)]
    fn remove_first(&mut self) {
        let last = self.0.pop().expect("the heap has a first entry");
        if !self.0.is_empty() {
            self.replace_first(last);
        }
    }
}

#[inline(always)]
fn time_of_bits(due: u64) -> Time {
    Time::from_nanos(f64::from_bits(due))
}

/// Future events, each of them due now or later.
#[derive(Debug, Clone)]
pub struct LaneQueue<E> {
    now: Time,
    sequence: u64,
    at_once: EventRing<E>,
    /// Events without a lane.
    others: Heap<E>,
    /// Heads of the lanes.
    heads: Heap<E>,
    lanes: Vec<LaneEntries<E>>,
    /// Lane of the last event.
    last_lane: u16,
}

impl<E> Default for LaneQueue<E> {
    fn default() -> LaneQueue<E> {
        LaneQueue {
            now: Time::ZERO,
            sequence: 0,
            at_once: EventRing::new(),
            others: Heap(Vec::new()),
            heads: Heap(Vec::new()),
            lanes: Vec::new(),
            last_lane: 0,
        }
    }
}

impl<E: Copy + Default> LaneQueue<E> {
    /// Events that come soon after the last event. They are in the same lane, or are due immediately like the last event, at
    /// the distances `places` after the next one. `None` if the last event had no lane: then only the next event without a
    /// lane is known, and the one after it is among [`LaneQueue::soon_without_lane`].
    #[inline(always)]
    pub fn soon(&self, places: [usize; 4]) -> Option<[Option<E>; 4]> {
        let [a, b, c, d] = places;
        if self.last_lane == AT_ONCE {
            let queue = &self.at_once;
            return Some([queue.get(a), queue.get(b), queue.get(c), queue.get(d)]);
        }
        let queue = &self.lanes.get(usize::from(self.last_lane))?.behind;
        Some([
            queue.get(a).map(LaneEntry::event),
            queue.get(b).map(LaneEntry::event),
            queue.get(c).map(LaneEntry::event),
            queue.get(d).map(LaneEntry::event),
        ])
    }

    /// Next event without a lane, followed by the candidates for the one after it.
    #[inline(always)]
    pub fn soon_without_lane(&self) -> impl Iterator<Item = E> + '_ {
        self.others
            .0
            .iter()
            .take(1 + WIDTH)
            .map(|entry| entry.event)
    }

    /// Current time: the time of the last event taken, or a later time to which the queue was advanced.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Opens a lane for each of these delays, unless there are too many for lanes to be faster.
    pub fn open_lanes(&mut self, mut delays: Vec<Time>) {
        delays.sort_unstable();
        delays.dedup();
        if delays.len() <= MOST_LANES {
            self.lanes = delays.into_iter().map(LaneEntries::new).collect();
        }
    }

    /// Lane for a delay.
    pub fn lane(&self, delay: Time) -> Lane {
        let found = self.lanes.binary_search_by(|lane| lane.delay.cmp(&delay));
        Lane(found.map_or(DIRECT, |index| index as u16))
    }

    /// Inserts an event that is due at `time`, which is the current time plus the delay of the lane.
    #[inline(always)]
    pub fn put(&mut self, Lane(lane): Lane, time: Time, event: E) {
        debug_assert!(time >= self.now);
        if time == self.now {
            return self.push_due_now(event);
        }
        self.sequence += 1;
        // Each arm makes its own entry, which goes to its place without being stored in memory in between.
        let (due, order) = (
            time.as_nanos().to_bits(),
            self.sequence << 16 | u64::from(lane),
        );
        match self.lanes.get_mut(usize::from(lane)) {
            Some(queue) if queue.active => queue.behind.push_back(LaneEntry { due, order, event }),
            Some(queue) => {
                queue.active = true;
                self.heads.insert(due, order, event);
            }
            None => self.others.insert(due, order, event),
        }
    }

    /// Inserts an event that is due now.
    #[inline(always)]
    pub fn push_due_now(&mut self, event: E) {
        self.at_once.push_back(event);
    }

    /// Inserts an event that is due at `time`, which is not before now.
    #[inline]
    pub fn at(&mut self, time: Time, event: E) {
        self.put(Lane::NONE, time, event);
    }

    /// `true` if no event is due now.
    #[inline(always)]
    pub fn nothing_is_due(&self) -> bool {
        let later = |heap: &Heap<E>| {
            heap.0
                .first()
                .is_none_or(|entry| entry.due != self.now.as_nanos().to_bits())
        };
        self.at_once.is_empty() && later(&self.heads) && later(&self.others)
    }

    /// Time of the next event.
    pub fn next_time(&self) -> Option<Time> {
        if !self.at_once.is_empty() {
            return Some(self.now);
        }
        let due = |heap: &Heap<E>| heap.0.first().map(|entry| entry.due);
        due(&self.heads)
            .into_iter()
            .chain(due(&self.others))
            .min()
            .map(time_of_bits)
    }

    /// Advances to the time of an event elsewhere: not before now, and not after the next event.
    pub fn advance(&mut self, time: Time) {
        debug_assert!(time >= self.now && self.next_time().is_none_or(|next| next >= time));
        self.now = time;
    }

    /// Takes the next event and advances to its time.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<E> {
        let first = match (self.heads.0.first(), self.others.0.first()) {
            (Some(head), Some(other)) => Some(if head.is_before(other) { head } else { other }),
            (head, other) => head.or(other),
        };
        let due = first.map(|entry| entry.due);
        if due != Some(self.now.as_nanos().to_bits())
            && let Some(event) = self.at_once.pop_front()
        {
            self.last_lane = AT_ONCE;
            return Some(event);
        }
        let entry = *first?;
        let LaneEntry { due, event, .. } = entry;
        let lane = entry.lane();
        self.now = time_of_bits(due);
        self.last_lane = lane;
        if lane == DIRECT {
            self.others.remove_first();
            return Some(event);
        }
        let queue = &mut self.lanes[usize::from(lane)];
        match queue.behind.pop_front() {
            Some(following) => self.heads.replace_first(following),
            None => {
                queue.active = false;
                self.heads.remove_first();
            }
        }
        Some(event)
    }
}
