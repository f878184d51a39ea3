//! Event queues for discrete-event simulation.
//!
//! | queue | for | ns an event with 64, 1,024, 16,384 members |
//! |---|---|---|
//! | [`lanes`] | events in the order of insertion, most of them after one of few fixed delays; the next events of a delay are known and can be prefetched | 28, 44, 44 |
//! | [`tournament`] | one event for each member, whose key may change at any time; few members | 31, 49, 65 |
//! | [`ladder`] | one event for each of many members; several of the next events are known and can be prefetched | 40, 28, 26 |
//! | [`indexed`] | one event for each of some members, which may also be removed | 36, 53, 68 |
//! | `std::collections::BinaryHeap`, for comparison | one event for each member, whose key never changes | 21, 29, 40 |
//!
//! The numbers are the minima of 9 rounds of `cargo bench -p flowcast-traffic` on a machine with other work, so only their
//! ratios are meaningful. A tournament with groups of two keys, without branches, takes 33, 50 and 74 ns there. The heap of
//! the standard library is the fastest for up to some hundred members and has the fewest functions: an engine that changes
//! keys in it leaves stale entries behind, and only its first event is visible.
//!
//! If each member has one event, equal times are ordered by the rest of the key, or by member.

use flowcast_units::Time;

mod event_ring;
pub mod indexed;
pub mod ladder;
pub mod lanes;
pub mod tournament;

#[cfg(test)]
mod tests;

/// Key that stands for no event.
pub const NEVER: u128 = u128::MAX;

/// Number of low bits of a key that name its member.
pub const MEMBER_BITS: u32 = 30;

/// Time of a key. The upper half of the key has the bits of its nanoseconds, because the bits of times that are not negative
/// have the order of the times.
#[inline(always)]
pub fn time_of(key: u128) -> Time {
    Time::from_nanos(f64::from_bits((key >> 64) as u64))
}

/// Member of a key.
#[inline(always)]
pub fn member_of(key: u128) -> u32 {
    key as u32 & ((1 << MEMBER_BITS) - 1)
}

/// A queue of the next event of each member, by key: the least key is the first.
pub trait KeyQueue {
    /// `true` if several of the next events are known for certain.
    const KNOWS_MORE: bool;

    /// Returns the earliest event. Its member must get another key before the next call.
    fn first(&mut self) -> Option<u128>;

    /// Sets the key of a member; [`NEVER`] if it has no event.
    fn set(&mut self, member: u32, key: u128);

    /// Events that will come soon, the farthest first; [`NEVER`] in place of unknown ones.
    fn soon(&self) -> [u128; 4];

    /// Keys indexed by member, for callers that prefetch them; empty if the queue keeps none.
    fn keys(&self) -> &[u128];
}
