//! Next events of members, whose times may change: a 4-ary heap with a table of the index of each member's entry.

use flowcast_units::Time;

const CHILDREN: usize = 4;
const ABSENT: u32 = u32::MAX;

/// The next event of each member that has one, ordered by time and, at equal times, by member.
#[derive(Debug, Clone, Default)]
pub struct IndexedHeap {
    heap: PartialHeap,
    indices: Vec<u32>,
}

/// A heap of the next events of some members. Each member is in at most one such heap, so one table beside the heaps has the
/// indices of all members.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartialHeap(Vec<IndexedEntry>);

/// Bits of the event's time, followed by the member's turn among equal times and by the member. The bits of times that are
/// not negative have the order of the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IndexedEntry(u128);

impl IndexedEntry {
    fn new(time: Time, turn: u32, member: u32) -> IndexedEntry {
        IndexedEntry(
            u128::from(time.as_nanos().to_bits()) << 64
                | u128::from(turn) << 32
                | u128::from(member),
        )
    }

    fn member(self) -> u32 {
        self.0 as u32
    }

    fn time(self) -> Time {
        Time::from_nanos(f64::from_bits((self.0 >> 64) as u64))
    }
}

impl IndexedHeap {
    /// Earliest event and its member, at equal times the lowest member; `None` if no member has an event.
    pub fn first(&self) -> Option<(Time, u32)> {
        self.heap.first()
    }

    /// Sets the time of a member's event, which may be new.
    pub fn set(&mut self, member: u32, time: Time) {
        self.set_in_turn(member, time, 0);
    }

    /// Sets the time of a member's event. Equal times are ordered by turn and, if that is equal too, by member.
    pub fn set_in_turn(&mut self, member: u32, time: Time, turn: u32) {
        let entry = IndexedEntry::new(time, turn, member);
        self.heap.place(&mut self.indices, entry);
    }

    /// `true` if a member has an event.
    pub fn contains(&self, member: u32) -> bool {
        self.indices
            .get(member as usize)
            .is_some_and(|index| *index != ABSENT)
    }

    /// Removes the event of a member, if it has one.
    pub fn remove(&mut self, member: u32) {
        if self.contains(member) {
            self.heap.remove(&mut self.indices, member);
        }
    }

    /// Removes and returns the earliest event and its member.
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        let (time, member) = self.first()?;
        self.remove(member);
        Some((time, member))
    }
}

impl PartialHeap {
    pub(crate) fn first(&self) -> Option<(Time, u32)> {
        self.0.first().map(|entry| (entry.time(), entry.member()))
    }

    pub(crate) fn set(&mut self, indices: &mut Vec<u32>, member: u32, time: Time) {
        self.place(indices, IndexedEntry::new(time, 0, member));
    }

    fn place(&mut self, indices: &mut Vec<u32>, entry: IndexedEntry) {
        let member = entry.member();
        if indices.len() <= member as usize {
            indices.resize(member as usize + 1, ABSENT);
        }
        match indices[member as usize] {
            ABSENT => {
                self.0.push(entry);
                self.rise(indices, self.0.len() - 1, entry);
            }
            index if entry < self.0[index as usize] => self.rise(indices, index as usize, entry),
            index => self.sink(indices, index as usize, entry),
        }
    }

    /// Removes the event of a member that has one.
    pub(crate) fn remove(&mut self, indices: &mut [u32], member: u32) {
        let index = std::mem::replace(&mut indices[member as usize], ABSENT) as usize;
        let last = self.0.pop().expect("the member has an event");
        if let Some(removed) = self.0.get(index).copied() {
            if last < removed {
                self.rise(indices, index, last)
            } else {
                self.sink(indices, index, last)
            }
        }
    }

    /// Moves an entry from an index towards the first entry, up to its place.
    fn rise(&mut self, indices: &mut [u32], mut index: usize, entry: IndexedEntry) {
        while index > 0 {
            let parent = (index - 1) / CHILDREN;
            if self.0[parent] <= entry {
                break;
            }
            self.put(indices, index, self.0[parent]);
            index = parent;
        }
        self.put(indices, index, entry);
    }

    /// Moves an entry from an index away from the first entry, down to its place.
    fn sink(&mut self, indices: &mut [u32], mut index: usize, entry: IndexedEntry) {
        loop {
            let first = index * CHILDREN + 1;
            if first >= self.0.len() {
                break;
            }
            let children = &self.0[first..(first + CHILDREN).min(self.0.len())];
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
            self.put(indices, index, least);
            index = at;
        }
        self.put(indices, index, entry);
    }

    fn put(&mut self, indices: &mut [u32], index: usize, entry: IndexedEntry) {
        self.0[index] = entry;
        indices[entry.member() as usize] = index as u32;
    }
}
