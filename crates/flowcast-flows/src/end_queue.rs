//! Which flow ends next, while ends move: a heap of four children whose entries know their indices.

use flowcast_units::Time;

const CHILDREN: usize = 4;
const ABSENT: u32 = u32::MAX;

/// Ends by time, equal ones by flow.
#[derive(Debug, Clone, Default)]
pub struct EndQueue {
    heap: Vec<Entry>,
    /// By flow.
    indices: Vec<u32>,
}

/// The bits of a time that is not negative have its order; behind them stands the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(end: Time, flow: u32) -> Entry {
        Entry(u128::from(end.as_nanos().to_bits()) << 32 | u128::from(flow))
    }

    fn flow(self) -> u32 {
        self.0 as u32
    }

    fn end(self) -> Time {
        Time::from_nanos(f64::from_bits((self.0 >> 32) as u64))
    }
}

impl EndQueue {
    /// The first.
    pub fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().map(|entry| (entry.end(), entry.flow()))
    }

    /// A flow ends at another time than before, or has an end now.
    pub fn set(&mut self, flow: u32, end: Time) {
        if self.indices.len() <= flow as usize {
            self.indices.resize(flow as usize + 1, ABSENT);
        }
        let entry = Entry::new(end, flow);
        match self.indices[flow as usize] {
            ABSENT => {
                self.heap.push(entry);
                self.rise(self.heap.len() - 1, entry);
            }
            index if entry < self.heap[index as usize] => self.rise(index as usize, entry),
            index => self.sink(index as usize, entry),
        }
    }

    /// Whether a flow has an end.
    pub fn contains(&self, flow: u32) -> bool {
        self.indices.get(flow as usize).is_some_and(|index| *index != ABSENT)
    }

    /// A flow has no end any more.
    pub fn remove(&mut self, flow: u32) {
        if !self.contains(flow) {
            return;
        }
        let index = std::mem::replace(&mut self.indices[flow as usize], ABSENT) as usize;
        let last = self.heap.pop().expect("the flow is there");
        if let Some(removed) = self.heap.get(index).copied() {
            if last < removed { self.rise(index, last) } else { self.sink(index, last) }
        }
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        let (end, flow) = self.first()?;
        self.remove(flow);
        Some((end, flow))
    }

    /// Puts an entry at a index or above.
    fn rise(&mut self, mut index: usize, entry: Entry) {
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
    fn sink(&mut self, mut index: usize, entry: Entry) {
        loop {
            let first = index * CHILDREN + 1;
            if first >= self.heap.len() {
                break;
            }
            let children = &self.heap[first..(first + CHILDREN).min(self.heap.len())];
            let (mut least, mut at) = (children[0], first);
            for (child, other) in children.iter().enumerate().skip(1) {
                (least, at) = if *other < least { (*other, first + child) } else { (least, at) };
            }
            if entry <= least {
                break;
            }
            self.put(index, least);
            index = at;
        }
        self.put(index, entry);
    }

    fn put(&mut self, index: usize, entry: Entry) {
        self.heap[index] = entry;
        self.indices[entry.flow() as usize] = index as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn ends_come_in_the_order_of_a_sorted_map(steps in proptest::collection::vec((0u32..20, 0u32..50), 1..200)) {
            let (mut queue, mut twin) = (EndQueue::default(), BTreeMap::new());
            for (flow, end) in steps {
                let end = Time::from_nanos(f64::from(end));
                queue.set(flow, end);
                twin.insert(flow, end);
                prop_assert_eq!(queue.first(), twin.iter().map(|(flow, end)| (*end, *flow)).min());
                if flow % 5 == 1 {
                    queue.remove(flow + 1);
                    twin.remove(&(flow + 1));
                }
                prop_assert_eq!(queue.contains(flow + 1), twin.contains_key(&(flow + 1)));
                if flow % 3 == 0 {
                    let (_, first) = queue.pop().unwrap();
                    prop_assert!(twin.remove(&first).is_some());
                }
            }
        }
    }
}
