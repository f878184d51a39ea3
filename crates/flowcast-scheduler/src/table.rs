//! State of a scheduler's rails, in the arithmetic of the message path.

use super::{
    MAX_RAILS, RailId, RailSet, RailsError, clock::ClockArithmetic, entry::RailEntry,
    rail::check_count, rules::ScoreRule,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::Bytes;

/// Instant from which an assigned message occupies its rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounting {
    /// From `max(VFT, now)` on: the text of section 4.6.
    FromTheClock,
    /// From `VFT` on, even if that lies in the past: the pseudo-code of section 4.4.
    AsPrinted,
}

/// All rails of a scheduler.
#[derive(Debug, Clone)]
pub(crate) struct RailTable<M: ClockArithmetic> {
    entries: [RailEntry<M>; MAX_RAILS],
    count: usize,
    longest_tail: u64,
}

impl<M: ClockArithmetic> RailTable<M> {
    /// Creates a table of idle rails.
    ///
    /// # Errors
    /// No rail, or more than [`MAX_RAILS`].
    pub(crate) fn new(rails: &[LogGp], scale: M::Scale) -> Result<RailTable<M>, RailsError> {
        check_count(rails.len())?;
        let entries = std::array::from_fn(|index: usize| {
            RailEntry::new(&rails[index.min(rails.len() - 1)], scale)
        });
        Ok(RailTable {
            longest_tail: longest_tail(&entries),
            entries,
            count: rails.len(),
        })
    }

    /// Entries of the rails.
    #[inline]
    pub(crate) fn entries(&self) -> &[RailEntry<M>] {
        &self.entries[..self.count]
    }

    /// Set of all rails.
    #[inline]
    pub(crate) fn all(&self) -> RailSet {
        RailSet::first(self.count)
    }

    /// Size minus one, limited to the range that the arithmetic can multiply.
    #[inline]
    pub(crate) fn tail(&self, size: Bytes) -> u64 {
        size.0.saturating_sub(1).min(self.longest_tail)
    }

    /// Assigns a message to the usable rail with the smallest score, the first of equals.
    #[inline]
    pub(crate) fn take<R: ScoreRule>(
        &mut self,
        asked: MessageTiming<M>,
        usable: RailSet,
    ) -> Option<RailId> {
        let candidates = usable.and(self.all());
        let best = if candidates == self.all() {
            self.best_of_all::<R>(asked)
        } else {
            self.best_in::<R>(asked, candidates)?
        };
        self.entries[best.index & (MAX_RAILS - 1)].virtual_finish = best.until.bounded();
        Some(RailId(best.index as u8))
    }

    /// Finds the best of all rails. For a few rails the next virtual finish time is carried along, because a lookup would
    /// wait for the choice. For many rails the lookup is shorter than carrying it along.
    #[inline]
    fn best_of_all<R: ScoreRule>(&self, asked: MessageTiming<M>) -> Rated<M> {
        let rated = |index, entry| Rated::new::<R>(index, entry, asked);
        match self.entries() {
            [a] => return rated(0, a),
            [a, b] => return rated(0, a).or_better(rated(1, b)),
            [a, b, c] => return rated(0, a).or_better(rated(1, b)).or_better(rated(2, c)),
            [a, b, c, d] => {
                return rated(0, a)
                    .or_better(rated(1, b))
                    .or_better(rated(2, c).or_better(rated(3, d)));
            }
            _ => {}
        }
        let best = best_of(self.entries(), |index, entry: &RailEntry<M>| Rated {
            until: M::ZERO,
            ..Rated::new::<R>(index, entry, asked)
        });
        Rated::new::<R>(
            best.index,
            &self.entries[best.index & (MAX_RAILS - 1)],
            asked,
        )
    }

    #[inline]
    fn best_in<R: ScoreRule>(
        &self,
        asked: MessageTiming<M>,
        mut candidates: RailSet,
    ) -> Option<Rated<M>> {
        let rated =
            |rail: RailId| Rated::new::<R>(rail.index(), &self.entries[rail.index()], asked);
        let first = rated(candidates.next()?);
        Some(candidates.fold(first, |best, rail| best.or_better(rated(rail))))
    }

    /// Computes the properties of a message that the rules need.
    #[inline]
    pub(crate) fn timing_of_message(
        &self,
        now: M,
        size: Bytes,
        accounting: Accounting,
    ) -> MessageTiming<M> {
        let now = now.bounded();
        let busy_from = match accounting {
            Accounting::FromTheClock => now,
            Accounting::AsPrinted => M::ZERO,
        };
        MessageTiming {
            now,
            busy_from,
            tail: self.tail(size),
        }
    }

    /// Occupies `rail` for `busy`.
    #[inline]
    pub(crate) fn account(&mut self, rail: RailId, now: M, busy: M, accounting: Accounting) {
        let entry = &mut self.entries[rail.index()];
        let start = match accounting {
            Accounting::FromTheClock => entry.start(now),
            Accounting::AsPrinted => entry.virtual_finish,
        };
        entry.virtual_finish = start.plus(busy).bounded();
    }

    /// Assigns a message that is ready at `now` to `rail`.
    pub(crate) fn give(&mut self, rail: RailId, now: M, size: Bytes) {
        let entry = &self.entries[rail.index()];
        let busy = entry.gap.plus(entry.transfer(self.tail(size)));
        self.account(rail, now, busy, Accounting::FromTheClock);
    }

    /// Replaces the costs of a rail; its load remains.
    pub(crate) fn set_cost(&mut self, rail: RailId, cost: &LogGp, scale: M::Scale) {
        let entry = &mut self.entries[rail.index()];
        *entry = RailEntry {
            virtual_finish: entry.virtual_finish,
            ..RailEntry::new(cost, scale)
        };
        self.longest_tail = longest_tail(&self.entries);
    }

    /// Corrects the time at which a rail will have sent everything assigned to it.
    pub(crate) fn set_virtual_finish(&mut self, rail: RailId, until: M) {
        self.entries[rail.index()].virtual_finish = until.bounded();
    }

    /// Moves the clock's zero forward.
    pub(crate) fn restart_clock(&mut self, elapsed: M) {
        for entry in &mut self.entries {
            entry.virtual_finish = entry.virtual_finish.since(elapsed);
        }
    }
}

fn longest_tail<M: ClockArithmetic>(entries: &[RailEntry<M>]) -> u64 {
    entries
        .iter()
        .map(|entry| M::longest_tail(entry.per_byte))
        .min()
        .unwrap_or(0)
}

/// Properties of a message for the rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageTiming<M: ClockArithmetic> {
    now: M,
    /// The message occupies a rail from this time or from the rail's virtual finish time, whichever is later.
    busy_from: M,
    tail: u64,
}

/// A rail, its score, and its virtual finish time if it is chosen.
#[derive(Clone, Copy)]
pub(super) struct Rated<M: ClockArithmetic> {
    pub index: usize,
    score: M,
    pub until: M,
}

impl<M: ClockArithmetic> Rated<M> {
    #[inline]
    pub(crate) fn new<R: ScoreRule>(
        index: usize,
        entry: &RailEntry<M>,
        asked: MessageTiming<M>,
    ) -> Rated<M> {
        let until = entry
            .virtual_finish
            .later(asked.busy_from)
            .plus(R::busy(entry, asked.tail));
        Rated {
            index,
            score: R::score(entry, asked.now, asked.tail),
            until,
        }
    }

    /// Returns the better of two, field by field and without a branch: no predictor could guess which rail wins.
    #[inline]
    pub(crate) fn or_better(self, later: Rated<M>) -> Rated<M> {
        let better = later.score.is_before(self.score);
        Rated {
            index: if better { later.index } else { self.index },
            score: if better { later.score } else { self.score },
            until: if better { later.until } else { self.until },
        }
    }
}

/// Compares four by four, and two by two within the four, so that few comparisons depend on each other; the first wins ties.
#[inline]
fn best_of<M: ClockArithmetic>(
    entries: &[RailEntry<M>],
    rated: impl Fn(usize, &RailEntry<M>) -> Rated<M>,
) -> Rated<M> {
    let (fours, rest) = entries.as_chunks::<4>();
    let best_of_four = |first: usize, [a, b, c, d]: &[RailEntry<M>; 4]| {
        let (low, high) = (
            rated(first, a).or_better(rated(first + 1, b)),
            rated(first + 2, c).or_better(rated(first + 3, d)),
        );
        low.or_better(high)
    };
    let (mut best, fours, rest) = match (fours, rest) {
        ([head, fours @ ..], rest) => (best_of_four(0, head), fours, rest),
        (_, rest) => (rated(0, &rest[0]), &[] as &[_], &rest[1..]),
    };
    let mut index = entries.len() - 4 * fours.len() - rest.len();
    for four in fours {
        best = best.or_better(best_of_four(index, four));
        index += 4;
    }
    for entry in rest {
        best = best.or_better(rated(index, entry));
        index += 1;
    }
    best
}
