//! Queues that return the oldest entry among those that match, with wildcards on either side.

use std::collections::{HashMap, VecDeque};

/// A peer and a tag, each of which may be a wildcard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchPattern {
    /// Rank at the other end; `None` is any rank.
    pub peer: Option<u32>,
    /// Tag of the message; `None` is any tag.
    pub tag: Option<u32>,
}

impl MatchPattern {
    fn meets(self, other: MatchPattern) -> bool {
        agree(self.peer, other.peer) && agree(self.tag, other.tag)
    }

    fn key(self) -> Option<(u32, u32)> {
        Some((self.peer?, self.tag?))
    }
}

fn agree(a: Option<u32>, b: Option<u32>) -> bool {
    a.is_none() || b.is_none() || a == b
}

/// Entries in the order of insertion; entries without wildcards are found by key.
#[derive(Debug, Clone)]
pub(crate) struct MatchQueue<T> {
    exact: HashMap<(u32, u32), VecDeque<(u64, T)>>,
    wild: VecDeque<(u64, MatchPattern, T)>,
    put: u64,
    len: usize,
}

impl<T> Default for MatchQueue<T> {
    fn default() -> MatchQueue<T> {
        MatchQueue {
            exact: HashMap::new(),
            wild: VecDeque::new(),
            put: 0,
            len: 0,
        }
    }
}

impl<T: Copy> MatchQueue<T> {
    /// Appends an entry.
    pub(crate) fn push(&mut self, pattern: MatchPattern, value: T) {
        match pattern.key() {
            Some(key) => self
                .exact
                .entry(key)
                .or_default()
                .push_back((self.put, value)),
            None => self.wild.push_back((self.put, pattern, value)),
        }
        self.put += 1;
        self.len += 1;
    }

    /// Removes and returns the oldest entry that matches `pattern`.
    pub(crate) fn take(&mut self, pattern: MatchPattern) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let key = match pattern.key() {
            Some(key) => Some(key),
            None => self.first_key(|key| pattern.meets(exact_pattern(key))),
        };
        let exact = key.and_then(|key| Some((key, self.exact.get(&key)?.front()?.0)));
        let wild = self
            .wild
            .iter()
            .position(|(_, entry, _)| entry.meets(pattern));
        let value = match (exact, wild) {
            (Some((_, order)), Some(index)) if self.wild[index].0 < order => {
                self.wild.remove(index)?.2
            }
            (Some((key, _)), _) => self.take_exact(key)?,
            (None, Some(index)) => self.wild.remove(index)?.2,
            (None, None) => return None,
        };
        self.len -= 1;
        Some(value)
    }

    fn take_exact(&mut self, key: (u32, u32)) -> Option<T> {
        let queue = self.exact.get_mut(&key)?;
        let (_, value) = queue.pop_front()?;
        if queue.is_empty() {
            self.exact.remove(&key);
        }
        Some(value)
    }

    /// The key, among those that `fits` accepts, with the oldest entry.
    fn first_key(&self, fits: impl Fn((u32, u32)) -> bool) -> Option<(u32, u32)> {
        let fitting = self.exact.iter().filter(|(key, _)| fits(**key));
        fitting
            .filter_map(|(key, queue)| Some((queue.front()?.0, *key)))
            .min()
            .map(|(_, key)| key)
    }

    /// The oldest entry, with its pattern.
    pub(crate) fn first_entry(&self) -> Option<(MatchPattern, T)> {
        let exact = self.first_key(|_| true).and_then(|key| {
            let (order, value) = self.exact[&key].front()?;
            Some((*order, exact_pattern(key), *value))
        });
        let wild = self
            .wild
            .front()
            .map(|(order, pattern, value)| (*order, *pattern, *value));
        let first = match (exact, wild) {
            (Some(exact), Some(wild)) => Some(if exact.0 < wild.0 { exact } else { wild }),
            (exact, wild) => exact.or(wild),
        };
        first.map(|(_, pattern, value)| (pattern, value))
    }

    /// Value of the oldest entry.
    pub(crate) fn first(&self) -> Option<T> {
        self.first_entry().map(|(_, value)| value)
    }

    /// All values, in the order of insertion.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        let exact = self
            .exact
            .values()
            .flatten()
            .map(|(order, value)| (*order, *value));
        let wild = self.wild.iter().map(|(order, _, value)| (*order, *value));
        let mut all: Vec<(u64, T)> = exact.chain(wild).collect();
        all.sort_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, value)| value)
    }
}

fn exact_pattern((peer, tag): (u32, u32)) -> MatchPattern {
    MatchPattern {
        peer: Some(peer),
        tag: Some(tag),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_pattern() -> impl Strategy<Value = MatchPattern> {
        let side = || prop_oneof![3 => (0u32..3).prop_map(Some), 1 => Just(None)];
        (side(), side()).prop_map(|(peer, tag)| MatchPattern { peer, tag })
    }

    proptest! {
        #[test]
        fn the_queue_gives_the_result_of_a_list_scan(steps in proptest::collection::vec((any::<bool>(), any_pattern()), 0..60)) {
            let mut queue = MatchQueue::default();
            let mut list: Vec<(MatchPattern, usize)> = Vec::new();
            for (index, (put, pattern)) in steps.into_iter().enumerate() {
                if put {
                    queue.push(pattern, index);
                    list.push((pattern, index));
                } else {
                    let found = list.iter().position(|(entry, _)| entry.meets(pattern)).map(|at| list.remove(at).1);
                    prop_assert_eq!(queue.take(pattern), found);
                }
                prop_assert_eq!(queue.iter().collect::<Vec<_>>(), list.iter().map(|(_, value)| *value).collect::<Vec<_>>());
                prop_assert_eq!(queue.first(), list.first().map(|(_, value)| *value));
            }
        }
    }
}
