//! Messages split over rails with accounts shared by several threads, or by several processes in shared memory.
//!
//! An account is the instant at which its rail will have sent everything assigned to it, in nanoseconds of a clock that all
//! participants read. To divide a message, a thread reads the accounts, divides by the closed form of [`super::split`], and
//! adds each piece to its rail. Two threads that divide at the same instant may both treat the same rail as free. No
//! assignment is lost from an account.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    RailId, RailSet, RailsError,
    clock::{ClockArithmetic, Ticks},
    split::{Divider, Split, SplitRule},
    table::RailTable,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::Bytes;

/// Earliest delivery that divides messages, with shared accounts.
#[derive(Debug)]
pub struct SharedSplitter<'a> {
    table: RailTable<Ticks>,
    divider: Divider,
    accounts: &'a [AtomicU64],
}

impl<'a> SharedSplitter<'a> {
    /// Creates a splitter for rails of these costs; `accounts` has one word for each, initially zero.
    ///
    /// # Errors
    /// No rail, or more than [`super::MAX_RAILS`].
    ///
    /// # Panics
    /// Fewer accounts than rails.
    pub fn new(
        rails: &[LogGp],
        rule: SplitRule,
        accounts: &'a [AtomicU64],
    ) -> Result<SharedSplitter<'a>, RailsError> {
        let table = RailTable::new(rails, ())?;
        Ok(SharedSplitter {
            table,
            divider: Divider::new(rails, rule),
            accounts: &accounts[..rails.len()],
        })
    }

    /// Divides a message that is ready at `now`, in nanoseconds, over rails of `usable`, and accounts for its pieces. A
    /// message that does not gain from division stays whole. Returns `None` if no rail is usable.
    #[inline]
    pub fn split(&self, now: u64, size: Bytes, usable: RailSet) -> Option<Split> {
        let split = self
            .divider
            .plan(&self.table_at(now), Ticks::ZERO, size, usable)?;
        for (rail, piece) in split.pieces() {
            self.give(rail, now, piece);
        }
        Some(split)
    }

    /// Chooses a rail for the whole message, and accounts for it: the rail with the largest bandwidth, unless another one
    /// delivers the message earlier by more than the least gain.
    #[inline]
    pub fn pick(&self, now: u64, size: Bytes, usable: RailSet) -> Option<RailId> {
        let (_, rail) = self
            .divider
            .alone(&self.table_at(now), Ticks::ZERO, size, usable)?;
        self.give(rail, now, size);
        Some(rail)
    }

    /// Table of the rails with their accounts at `now`, which becomes the zero of its clock.
    #[inline]
    fn table_at(&self, now: u64) -> RailTable<Ticks> {
        let mut table = self.table.clone();
        for rail in table.all() {
            let until = self.accounts[rail.index()].load(Ordering::Relaxed);
            table.set_virtual_finish(rail, Ticks::from_nanos(until.saturating_sub(now)));
        }
        table
    }

    /// Accounts for a piece.
    #[inline]
    pub fn give(&self, rail: RailId, now: u64, size: Bytes) {
        let entry = &self.table.entries()[rail.index()];
        let busy = entry
            .gap
            .plus(entry.transfer(self.table.tail(size)))
            .nanos();
        // Never fails: the closure always returns a value.
        let _ = self.accounts[rail.index()].fetch_update(
            Ordering::Relaxed,
            Ordering::Relaxed,
            |until| Some(until.max(now).saturating_add(busy)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{RailScheduler, split::Splitter},
        *,
    };
    use flowcast_units::{Time, TimePerByte};
    use proptest::prelude::*;

    fn rails(numbers: &[(u32, u32)]) -> Vec<LogGp> {
        numbers
            .iter()
            .map(|(gap, latency)| LogGp {
                gap: Time::from_nanos(f64::from(*gap)),
                latency: Time::from_nanos(f64::from(*latency)),
                overhead: Time::from_nanos(10.0),
                // Whole nanoseconds, the unit of the accounts.
                gap_per_byte: TimePerByte::from_nanos(f64::from(gap % 100 + 1)),
            })
            .collect()
    }

    fn accounts() -> Vec<AtomicU64> {
        (0..16).map(|_| AtomicU64::new(0)).collect()
    }

    proptest! {
        #[test]
        fn the_shared_splitter_divides_like_the_splitter_of_one_thread(
            numbers in prop::collection::vec((1u32..5000, 0u32..90_000), 1..=16),
            messages in prop::collection::vec((0u64..500_000, 1u64..100_000, any::<u16>()), 0..60),
        ) {
            let (rails, accounts) = (rails(&numbers), accounts());
            let rule = SplitRule::inside_mpi();
            let shared = SharedSplitter::new(&rails, rule, &accounts).unwrap();
            let mut single = Splitter::new(&rails, rule).unwrap();
            let mut now = 0;
            for (pause, size, usable) in messages {
                now += pause;
                let usable = RailSet::from_bits(usable);
                let pieces = |split: Option<Split>| split.map(|split| split.pieces().collect::<Vec<_>>());
                let expected = pieces(single.split(Ticks::from_nanos(now), Bytes(size), usable));
                prop_assert_eq!(pieces(shared.split(now, Bytes(size), usable)), expected);
                let picked = single.pick(Ticks::from_nanos(now), Bytes(size), usable);
                prop_assert_eq!(shared.pick(now, Bytes(size), usable), picked);
            }
        }
    }

    #[test]
    fn four_threads_account_for_every_piece() {
        let (rails, accounts) = (rails(&[(100, 0), (100, 0), (300, 50)]), accounts());
        let shared = SharedSplitter::new(&rails, SplitRule::inside_mpi(), &accounts).unwrap();
        let (given, pieces) = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let all: Vec<_> = (0..2000)
                            .filter_map(|_| shared.split(0, Bytes(30_001), RailSet::ALL))
                            .flat_map(|split| split.pieces())
                            .collect();
                        (
                            all.iter().map(|(_, piece)| piece.0).sum::<u64>(),
                            all.len() as u64,
                        )
                    })
                })
                .collect();
            threads.into_iter().fold((0, 0), |(bytes, pieces), thread| {
                let (more, count) = thread.join().unwrap();
                (bytes + more, pieces + count)
            })
        });
        assert_eq!(given, 8000 * 30_001);
        // The third rail's g is three times as long; all have a G of 1 ns.
        let booked: u64 = accounts
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .sum();
        assert!((given..given + 300 * pieces).contains(&booked), "{booked}");
    }
}
