//! Least key of all members: a tournament of keys in groups of four, in which the least key of a group advances.
//!
//! A changed key is compared with three others on each level, all in one cache line and without a branch. A heap moves keys,
//! and depends at each level on the comparison before.

use crate::queues::{KeyQueue, NEVER};

/// The least key of all members.
#[derive(Debug, Clone)]
pub struct Tournament {
    groups: Vec<MatchGroup>,
    /// Index of the first group of each level, from the members up to the single last group.
    levels: Vec<u32>,
    first: u128,
    /// Least key of the last changed part, one and two levels below the top.
    near: u128,
    far: u128,
}

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct MatchGroup([u128; SIZE]);

const SIZE: usize = 4;

impl Tournament {
    /// Creates a tournament for this many members, none of which has a key.
    pub fn new(members: u32) -> Tournament {
        let mut levels = vec![0];
        let mut groups = members.div_ceil(SIZE as u32).max(1);
        let mut all = groups;
        while groups > 1 {
            levels.push(all);
            groups = groups.div_ceil(SIZE as u32);
            all += groups;
        }
        let groups = vec![MatchGroup([NEVER; SIZE]); all as usize];
        Tournament {
            groups,
            levels,
            first: NEVER,
            near: NEVER,
            far: NEVER,
        }
    }
}

impl Tournament {
    /// Least key; [`NEVER`] if there is none.
    #[inline(always)]
    pub fn least(&self) -> u128 {
        self.first
    }
}

impl KeyQueue for Tournament {
    const KNOWS_MORE: bool = false;

    #[inline(always)]
    fn first(&mut self) -> Option<u128> {
        Some(self.first).filter(|key| *key != NEVER)
    }

    #[inline(always)]
    fn set(&mut self, member: u32, key: u128) {
        let (mut place, mut least) = (member as usize, key);
        for level in &self.levels {
            let MatchGroup(keys) = &mut self.groups[*level as usize + place / SIZE];
            let own = place % SIZE;
            if keys[own] == least {
                return;
            }
            // The minimum of the others does not depend on the level below, so that each level adds one comparison.
            let others = keys[own ^ 1].min(keys[own ^ 2]).min(keys[own ^ 3]);
            keys[own] = least;
            (self.far, self.near) = (self.near, least);
            least = least.min(others);
            place /= SIZE;
        }
        self.first = least;
    }

    #[inline(always)]
    fn soon(&self) -> [u128; 4] {
        [self.far, self.near, NEVER, NEVER]
    }

    fn keys(&self) -> &[u128] {
        &[]
    }
}
