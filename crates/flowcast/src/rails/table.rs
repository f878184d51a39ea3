//! What a scheduler knows of its rails, in the arithmetic of the message path.

use super::moment::Moment;
use super::rail::check_count;
use super::{MAX_RAILS, RailId, RailSet, RailsError};
use crate::model::loggp::LogGp;

/// One rail: its virtual finish time and its costs.
#[derive(Debug, Clone, Copy)]
pub struct Entry<I: Moment> {
    /// When it will have sent all that it was given.
    pub virtual_finish: I,
    /// `2o + L`, the one sum that most rules need (section 4.4.7).
    pub end_to_end: I,
    /// `o`.
    pub overhead: I,
    /// `g`.
    pub gap: I,
    /// `G`.
    pub per_byte: I::PerByte,
}

impl<I: Moment> Entry<I> {
    /// A rail with nothing to send.
    pub fn new(cost: &LogGp, scale: I::Scale) -> Entry<I> {
        Entry {
            virtual_finish: I::ZERO,
            end_to_end: I::of(cost.overhead * 2.0 + cost.latency, scale).bounded(),
            overhead: I::of(cost.overhead, scale).bounded(),
            gap: I::of(cost.gap, scale).bounded(),
            per_byte: I::per_byte(cost.gap_per_byte, scale),
        }
    }

    /// `G·(s-1)`, where `tail` is `s-1`.
    #[inline]
    pub fn transfer(&self, tail: u64) -> I {
        I::transfer(self.per_byte, tail)
    }

    /// The earliest instant at which it can start a message that is ready at `now`.
    #[inline]
    pub fn start(&self, now: I) -> I {
        self.virtual_finish.later(now)
    }
}

/// From when a rail is busy with a message that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounting {
    /// From `max(VFT, now)` on: the text of section 4.6.
    FromTheClock,
    /// From `VFT` on, even if that lies in the past: the pseudo-code of section 4.4.
    AsPrinted,
}

/// All rails of a scheduler.
#[derive(Debug, Clone)]
pub struct RailTable<I: Moment> {
    entries: [Entry<I>; MAX_RAILS],
    count: usize,
}

impl<I: Moment> RailTable<I> {
    /// Rails with nothing to send.
    ///
    /// # Errors
    /// No rail, or more than [`MAX_RAILS`].
    pub fn new(rails: &[LogGp], scale: I::Scale) -> Result<RailTable<I>, RailsError> {
        check_count(rails.len())?;
        let entry = |index: usize| Entry::new(&rails[index.min(rails.len() - 1)], scale);
        Ok(RailTable { entries: std::array::from_fn(entry), count: rails.len() })
    }

    /// The rails.
    #[inline]
    pub fn entries(&self) -> &[Entry<I>] {
        &self.entries[..self.count]
    }

    /// Every rail.
    #[inline]
    pub fn all(&self) -> RailSet {
        RailSet::first(self.count)
    }

    /// The usable rail with the smallest score, the first of equals.
    #[inline]
    pub fn smallest(&self, usable: RailSet, score: impl Fn(&Entry<I>) -> I) -> Option<RailId> {
        let mut candidates = usable.and(self.all());
        if candidates == self.all() {
            return Some(smallest_of(self.entries(), score));
        }
        let mut chosen = candidates.next()?;
        let mut best = score(&self.entries[chosen.index()]);
        for rail in candidates {
            let own = score(&self.entries[rail.index()]);
            if own.is_before(best) {
                (best, chosen) = (own, rail);
            }
        }
        Some(chosen)
    }

    /// Gives `rail` something to send for `busy`.
    #[inline]
    pub fn account(&mut self, rail: RailId, now: I, busy: I, accounting: Accounting) {
        let entry = &mut self.entries[rail.index()];
        let start = match accounting {
            Accounting::FromTheClock => entry.start(now),
            Accounting::AsPrinted => entry.virtual_finish,
        };
        entry.virtual_finish = start.plus(busy).bounded();
    }

    /// Replaces the costs of a rail; what it has to send stays.
    pub fn set_cost(&mut self, rail: RailId, cost: &LogGp, scale: I::Scale) {
        let entry = &mut self.entries[rail.index()];
        *entry = Entry { virtual_finish: entry.virtual_finish, ..Entry::new(cost, scale) };
    }

    /// Moves the clock's zero forward.
    pub fn restart_clock(&mut self, elapsed: I) {
        for entry in &mut self.entries {
            entry.virtual_finish = entry.virtual_finish.since(elapsed);
        }
    }
}

/// Without a branch on the scores, which no predictor could guess.
#[inline]
fn smallest_of<I: Moment>(entries: &[Entry<I>], score: impl Fn(&Entry<I>) -> I) -> RailId {
    let mut chosen = 0;
    let mut best = score(&entries[0]);
    for (index, entry) in entries.iter().enumerate().skip(1) {
        let own = score(entry);
        let smaller = own.is_before(best);
        best = if smaller { own } else { best };
        chosen = if smaller { index } else { chosen };
    }
    RailId(chosen as u8)
}
