//! Event queues for discrete-event simulation.
//!
//! | queue | for | ns an event with 64, 1,024, 16,384 members |
//! |---|---|---|
//! | [`lanes`] | events in the order of insertion, most of them after one of few fixed delays; the next events of a delay are known and can be prefetched | 28, 44, 44 |
//! | [`tournament`] | one event for each member, whose key may change at any time; few members | 31, 49, 65 |
//! | [`ladder`] | the same for many members; several of the next events are known and can be prefetched | 40, 28, 26 |
//! | [`indexed`] | one event for each of some members, which may also be removed | 36, 53, 68 |
//! | `std::collections::BinaryHeap`, for comparison | one event for each member, whose key never changes | 21, 29, 40 |
//!
//! The numbers are the least of 9 rounds of `cargo bench -p flowcast-traffic` on a machine with other work, so only their
//! ratios count. A tournament of two keys to a group, without branches, takes 33, 50 and 74 ns there. The heap of the
//! standard library is the quickest for up to some hundred members and can do least: an engine that changes keys in it
//! leaves stale entries behind, and it shows no event but the first.
//!
//! Where each member has one event, equal times are ordered by what else stands in the key, or by member.

use flowcast_units::Time;

mod event_ring;
pub mod indexed;
pub mod ladder;
pub mod lanes;
pub mod tournament;

#[cfg(test)]
mod tests;

/// The key of no event.
pub const NEVER: u128 = u128::MAX;

/// The low bits of a key that name its member.
pub const MEMBER_BITS: u32 = 30;

/// The time of a key: the bits of its nanoseconds are the upper half of the key, since the bits of times that are not negative
/// have the order of the times.
#[inline(always)]
pub fn time_of(key: u128) -> Time {
    Time::from_nanos(f64::from_bits((key >> 64) as u64))
}

/// The member of a key.
#[inline(always)]
pub fn member_of(key: u128) -> u32 {
    key as u32 & ((1 << MEMBER_BITS) - 1)
}

/// The next event of each member, by key: the least key is the first.
pub trait KeyQueue {
    /// Whether several of the next events are known for certain.
    const KNOWS_MORE: bool;

    /// The earliest event. Its member gets another key before the next is asked for.
    fn first(&mut self) -> Option<u128>;

    /// Gives a member another key, [`NEVER`] if it has no event.
    fn set(&mut self, member: u32, key: u128);

    /// Events that will come soon, the farthest first, [`NEVER`] in place of what is not known.
    fn soon(&self) -> [u128; 4];

    /// What is kept by member, for those who prefetch it; empty if nothing is.
    fn keys(&self) -> &[u128];
}
