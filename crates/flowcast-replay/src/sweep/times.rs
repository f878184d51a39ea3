//! Times of all lanes side by side, and the blocks that hold those of messages under way.

use std::ops::{Index, IndexMut};

/// One time in nanoseconds for each lane.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Times<const W: usize>(pub [f64; W]);

impl<const W: usize> Times<W> {
    /// The same in all lanes.
    pub const fn all(nanos: f64) -> Times<W> {
        Times([nanos; W])
    }

    /// Lane by lane.
    pub fn from_lanes(lane: impl FnMut(usize) -> f64) -> Times<W> {
        Times(std::array::from_fn(lane))
    }
}

/// The later of two times that are numbers, as the replay writes it.
#[inline(always)]
pub fn later(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Blocks of times that are taken and given back, the last one given back first: few are out at any time, so that they
/// stay in the cache.
#[derive(Debug, Default)]
pub struct Pool<const W: usize> {
    blocks: Vec<Times<W>>,
    free: Vec<u32>,
}

impl<const W: usize> Pool<W> {
    /// A block that nobody uses; its content is arbitrary.
    #[inline(always)]
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| self.grow())
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        self.blocks.push(Times::all(0.0));
        self.blocks.len() as u32 - 1
    }

    /// The block is used no more.
    #[inline(always)]
    pub fn give_back(&mut self, block: u32) {
        self.free.push(block);
    }

    /// How many blocks were out at once at most.
    #[cfg(test)]
    pub fn most_out(&self) -> usize {
        self.blocks.len()
    }
}

impl<const W: usize> Index<u32> for Pool<W> {
    type Output = Times<W>;

    #[inline(always)]
    fn index(&self, block: u32) -> &Times<W> {
        &self.blocks[block as usize]
    }
}

impl<const W: usize> IndexMut<u32> for Pool<W> {
    #[inline(always)]
    fn index_mut(&mut self, block: u32) -> &mut Times<W> {
        &mut self.blocks[block as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_came_back_are_taken_before_new_ones() {
        let mut pool = Pool::<8>::default();
        let (first, second) = (pool.take(), pool.take());
        pool[second] = Times::all(3.0);
        pool.give_back(first);
        assert_eq!(pool.take(), first);
        assert_eq!(pool[second].0, [3.0; 8]);
        assert_eq!(pool.most_out(), 2);
    }
}
