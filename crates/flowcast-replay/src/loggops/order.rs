//! What an engine asks of the queue of its ranks' events, of which there are two: [`super::tournament`] for few ranks,
//! [`super::agenda`] for many.

/// The key of no event.
pub const NEVER: u128 = u128::MAX;

/// The next event of each rank, by key.
pub trait Order {
    /// Whether several of the next events are known for certain.
    const KNOWS_MORE: bool;

    /// The earliest event. Its rank gets another key before the next is asked for.
    fn first(&mut self) -> Option<u128>;

    /// Gives a rank another key.
    fn set(&mut self, rank: u32, key: u128);

    /// Events that will come soon, the farthest first, [`NEVER`] in place of what is not known.
    fn soon(&self) -> [u128; 4];

    /// Asks the memory for what is kept of a rank.
    fn prefetch(&self, rank: u32);
}
