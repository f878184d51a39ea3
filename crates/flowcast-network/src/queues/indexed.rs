//! Which member's event comes next, while events move: a 4-ary heap whose entries know their indices.

use flowcast_units::Time;

const CHILDREN: usize = 4;
const ABSENT: u32 = u32::MAX;

/// The next event of each member that has one, by time, equal times by member.
#[derive(Debug, Clone, Default)]
pub struct IndexedHeap {
    heap: Vec<IndexedEntry>,
    /// By member.
    indices: Vec<u32>,
}

/// The bits of a time that is not negative have its order; behind them stands the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IndexedEntry(u128);

impl IndexedEntry {
    fn new(time: Time, member: u32) -> IndexedEntry {
        IndexedEntry(u128::from(time.as_nanos().to_bits()) << 32 | u128::from(member))
    }

    fn member(self) -> u32 {
        self.0 as u32
    }

    fn time(self) -> Time {
        Time::from_nanos(f64::from_bits((self.0 >> 32) as u64))
    }
}

impl IndexedHeap {
    /// The earliest event and its member, of equal times the lowest member; none if no member has an event.
    pub fn first(&self) -> Option<(Time, u32)> {
        self.heap
            .first()
            .map(|entry| (entry.time(), entry.member()))
    }

    /// The event of a member comes at another time than before, or the member has one now.
    pub fn set(&mut self, member: u32, time: Time) {
        if self.indices.len() <= member as usize {
            self.indices.resize(member as usize + 1, ABSENT);
        }
        let entry = IndexedEntry::new(time, member);
        match self.indices[member as usize] {
            ABSENT => {
                self.heap.push(entry);
                self.rise(self.heap.len() - 1, entry);
            }
            index if entry < self.heap[index as usize] => self.rise(index as usize, entry),
            index => self.sink(index as usize, entry),
        }
    }

    /// Whether a member has an event.
    pub fn contains(&self, member: u32) -> bool {
        self.indices
            .get(member as usize)
            .is_some_and(|index| *index != ABSENT)
    }

    /// A member has no event any more.
    pub fn remove(&mut self, member: u32) {
        if !self.contains(member) {
            return;
        }
        let index = std::mem::replace(&mut self.indices[member as usize], ABSENT) as usize;
        let last = self.heap.pop().expect("the member has an event");
        if let Some(removed) = self.heap.get(index).copied() {
            if last < removed {
                self.rise(index, last)
            } else {
                self.sink(index, last)
            }
        }
    }

    /// Takes out the earliest event; its member has none afterwards.
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        let (time, member) = self.first()?;
        self.remove(member);
        Some((time, member))
    }

    /// Puts an entry at a index or above.
    fn rise(&mut self, mut index: usize, entry: IndexedEntry) {
        while index > 0 {
            let parent = (index - 1) / CHILDREN;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(index, self.heap[parent]);
            index = parent;
        }
        self.put(index, entry);
    }

    /// Puts an entry at a index or below.
    fn sink(&mut self, mut index: usize, entry: IndexedEntry) {
        loop {
            let first = index * CHILDREN + 1;
            if first >= self.heap.len() {
                break;
            }
            let children = &self.heap[first..(first + CHILDREN).min(self.heap.len())];
            let (mut least, mut at) = (children[0], first);
            for (child, other) in children.iter().enumerate().skip(1) {
                (least, at) = if *other < least {
                    (*other, first + child)
                } else {
                    (least, at)
                };
            }
            if entry <= least {
                break;
            }
            self.put(index, least);
            index = at;
        }
        self.put(index, entry);
    }

    fn put(&mut self, index: usize, entry: IndexedEntry) {
        self.heap[index] = entry;
        self.indices[entry.member() as usize] = index as u32;
    }
}
