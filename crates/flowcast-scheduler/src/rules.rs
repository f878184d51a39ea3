//! Scores for the comparison of rails: those of sections 4.4.1 to 4.4.5 of the thesis, and our own.
//!
//! With `start = max(VFT, now)` and `t = G(s-1)`:
//!
//! | rule | smallest |
//! |---|---|
//! | [`Gap`] (4.4.1), [`Vft`] (4.4.2) | `VFT` |
//! | [`VftClock`] (4.4.3) | `start` |
//! | [`Latency`] (4.4.4, 4.4.8) | `start + 2o + L` |
//! | [`Overlap`] (4.4.5) | `start + (o - min(max(VFT - now, 0), o)) + o + L` |
//! | [`EarliestDelivery`] | `start + 2o + L + t` |
//! | [`EarliestOverlap`] | as 4.4.5, plus `t` |
//!
//! The chosen rail is then busy for `g + t` more, or for `g` in 4.4.1, which treats all messages as equal. The two cases
//! that 4.4.5 prints before its formula have their conditions swapped; the formula and the pseudo-code are correct.

use super::{clock::ClockArithmetic, entry::RailEntry};

/// A score of a rail for a message of `tail + 1` bytes; the smallest wins.
pub trait ScoreRule: Send + 'static {
    /// The score.
    fn score<M: ClockArithmetic>(rail: &RailEntry<M>, now: M, tail: u64) -> M;

    /// Time for which the message occupies the chosen rail.
    #[inline]
    fn busy<M: ClockArithmetic>(rail: &RailEntry<M>, tail: u64) -> M {
        rail.gap.plus(rail.transfer(tail))
    }
}

/// 4.4.1: smallest VFT; every message counts as one gap.
#[derive(Debug, Clone, Copy)]
pub struct Gap;

impl ScoreRule for Gap {
    #[inline]
    fn score<M: ClockArithmetic>(rail: &RailEntry<M>, _: M, _: u64) -> M {
        rail.virtual_finish
    }
    #[inline]
    fn busy<M: ClockArithmetic>(rail: &RailEntry<M>, _: u64) -> M {
        rail.gap
    }
}

/// 4.4.2: the rail with the smallest virtual finish time (VFT).
#[derive(Debug, Clone, Copy)]
pub struct Vft;

impl ScoreRule for Vft {
    #[inline]
    fn score<M: ClockArithmetic>(rail: &RailEntry<M>, _: M, _: u64) -> M {
        rail.virtual_finish
    }
}

/// 4.4.3: smallest VFT that is not in the past.
#[derive(Debug, Clone, Copy)]
pub struct VftClock;

impl ScoreRule for VftClock {
    #[inline]
    fn score<M: ClockArithmetic>(rail: &RailEntry<M>, now: M, _: u64) -> M {
        rail.start(now)
    }
}

/// 4.4.4: earliest arrival of a message without length.
#[derive(Debug, Clone, Copy)]
pub struct Latency;

impl ScoreRule for Latency {
    #[inline]
    fn score<M: ClockArithmetic>(rail: &RailEntry<M>, now: M, _: u64) -> M {
        rail.start(now).plus(rail.end_to_end)
    }
}

/// 4.4.5: like 4.4.4, but the processor prepares a message while the interface is busy.
#[derive(Debug, Clone, Copy)]
pub struct Overlap;

impl ScoreRule for Overlap {
    #[inline]
    fn score<M: ClockArithmetic>(rail: &RailEntry<M>, now: M, _: u64) -> M {
        // o - min(wait, o) is max(o - wait, 0), and o + L is 2o + L - o.
        let wait = rail.virtual_finish.since(now);
        let left = rail.overhead.since(wait);
        rail.start(now)
            .plus(left)
            .plus(rail.end_to_end.since(rail.overhead))
    }
}

/// Earliest arrival of the whole message. The default.
#[derive(Debug, Clone, Copy)]
pub struct EarliestDelivery;

impl ScoreRule for EarliestDelivery {
    #[inline]
    fn score<M: ClockArithmetic>(rail: &RailEntry<M>, now: M, tail: u64) -> M {
        rail.start(now)
            .plus(rail.end_to_end.plus(rail.transfer(tail)))
    }
}

/// Earliest arrival of the whole message if the processor prepares it while the interface is busy, as in section 4.4.5 of
/// the thesis.
#[derive(Debug, Clone, Copy)]
pub struct EarliestOverlap;

impl ScoreRule for EarliestOverlap {
    #[inline]
    fn score<M: ClockArithmetic>(rail: &RailEntry<M>, now: M, tail: u64) -> M {
        Overlap::score(rail, now, tail).plus(rail.transfer(tail))
    }
}
