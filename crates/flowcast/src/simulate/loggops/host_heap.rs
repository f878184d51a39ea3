//! Which rank has the earliest event: a heap of ranks with four children to a place, each rank in it once.
//!
//! Most events change the key of the rank on top and of at most one other. A rank that stays the earliest stays on top
//! for the price of looking at four children.

/// All ranks by the key of their next event; a rank without one has [`NEVER`].
pub struct HostHeap {
    places: Vec<Place>,
    /// Where each rank stands.
    place_of: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    key: u128,
    rank: u32,
}

/// The key of no event.
pub const NEVER: u128 = u128::MAX;

const CHILDREN: usize = 4;

impl HostHeap {
    /// So many ranks, none with an event.
    pub fn new(ranks: u32) -> HostHeap {
        let place = |rank| Place { key: NEVER, rank };
        HostHeap { places: (0..ranks).map(place).collect(), place_of: (0..ranks).collect() }
    }

    /// The earliest event and its rank.
    #[inline(always)]
    pub fn first(&self) -> Option<(u128, u32)> {
        self.places.first().filter(|place| place.key != NEVER).map(|place| (place.key, place.rank))
    }

    /// Gives a rank another key.
    #[inline(always)]
    pub fn set(&mut self, rank: u32, key: u128) {
        let at = self.place_of[rank as usize] as usize;
        let before = self.places[at].key;
        if key > before {
            self.sink(at, Place { key, rank });
        } else if key < before {
            self.rise(at, Place { key, rank });
        }
    }

    #[inline(always)]
    fn put(&mut self, at: usize, place: Place) {
        self.places[at] = place;
        self.place_of[place.rank as usize] = at as u32;
    }

    #[inline(always)]
    fn rise(&mut self, mut at: usize, place: Place) {
        while at > 0 {
            let above = (at - 1) / CHILDREN;
            let parent = self.places[above];
            if parent.key <= place.key {
                break;
            }
            self.put(at, parent);
            at = above;
        }
        self.put(at, place);
    }

    #[inline(always)]
    fn sink(&mut self, mut at: usize, place: Place) {
        loop {
            let first = at * CHILDREN + 1;
            let Some((least, child)) = self.least(first) else { break };
            if child.key >= place.key {
                break;
            }
            self.put(at, child);
            at = least;
        }
        self.put(at, place);
    }

    /// The child with the least key among those from `first` on.
    #[inline(always)]
    fn least(&self, first: usize) -> Option<(usize, Place)> {
        let children = self.places.get(first..)?;
        let children = &children[..children.len().min(CHILDREN)];
        let mut least = 0;
        for index in 1..children.len() {
            if children[index].key < children[least].key {
                least = index;
            }
        }
        children.get(least).map(|child| (first + least, *child))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_of_all(ranks in 1u32..40, changes in proptest::collection::vec((0u32..40, 0u128..50), 0..200)) {
            let mut heap = HostHeap::new(ranks);
            let mut keys = vec![NEVER; ranks as usize];
            for (rank, key) in changes {
                let key = if key == 0 { NEVER } else { key };
                heap.set(rank % ranks, key);
                keys[(rank % ranks) as usize] = key;
                let least = *keys.iter().min().unwrap();
                match heap.first() {
                    Some((key, rank)) => prop_assert_eq!((key, keys[rank as usize]), (least, least)),
                    None => prop_assert_eq!(least, NEVER),
                }
            }
        }
    }
}
