//! Which flow ends next, while ends move: a heap of four children whose entries know their places.

use crate::units::Time;

const CHILDREN: usize = 4;
const NOWHERE: u32 = u32::MAX;

/// Ends by time, equal ones by flow.
#[derive(Debug, Clone, Default)]
pub(super) struct EndQueue {
    heap: Vec<(Time, u32)>,
    /// By flow.
    places: Vec<u32>,
}

impl EndQueue {
    /// The first.
    pub fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().copied()
    }

    /// A flow ends at another time than before, or has an end now.
    pub fn set(&mut self, flow: u32, end: Time) {
        if self.places.len() <= flow as usize {
            self.places.resize(flow as usize + 1, NOWHERE);
        }
        let place = match self.places[flow as usize] {
            NOWHERE => {
                self.heap.push((end, flow));
                self.heap.len() - 1
            }
            place => {
                self.heap[place as usize].0 = end;
                place as usize
            }
        };
        let place = self.rise(place);
        self.sink(place);
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        let first = *self.heap.first()?;
        self.places[first.1 as usize] = NOWHERE;
        let last = self.heap.pop().expect("there is a first");
        if !self.heap.is_empty() {
            self.heap[0] = last;
            self.sink(0);
        }
        Some(first)
    }

    fn rise(&mut self, mut place: usize) -> usize {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
        place
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let first = place * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else { break };
            if entry <= self.heap[least] {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Time, u32)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32;
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
                if flow % 3 == 0 {
                    let (_, first) = queue.pop().unwrap();
                    prop_assert!(twin.remove(&first).is_some());
                }
            }
        }
    }
}
