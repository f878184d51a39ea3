//! One set of rails for several threads.
//!
//! Each virtual finish time is an atomic word. A thread reads all of them, chooses, and replaces the word of the chosen rail
//! if it still has the value that was read. Otherwise the thread repeats the choice. Virtual finish times never decrease,
//! and every score grows with them. When the replacement succeeds, the chosen rail therefore still has the state that was
//! read, and the others are no better than before. The choice is the one that a single scheduler would have made at that
//! instant, and all choices together equal some order of the same calls on [`super::virtual_time::VirtualTime`]. A thread
//! repeats only if another has made progress. Checked with loom:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p flowcast-scheduler --lib --release shared
//! ```

use std::marker::PhantomData;

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    MAX_RAILS, RailId, RailSet, RailsError,
    clock::{ClockArithmetic, Ticks},
    entry::RailEntry,
    rules::{EarliestDelivery, ScoreRule},
    table::{Accounting, RailTable, Rated},
};
use flowcast_network::loggp::LogGp;
use flowcast_units::Bytes;

/// Chooses the rail with the smallest score of the rule `R`; any number of threads may pick at the same time.
#[derive(Debug)]
pub struct SharedVirtualTime<R: ScoreRule = EarliestDelivery> {
    table: RailTable<Ticks>,
    virtual_finish: Vec<Padded>,
    rule: PhantomData<R>,
}

/// A word in a separate cache line, so that rails do not slow each other down.
#[derive(Debug)]
#[repr(align(64))]
struct Padded(AtomicU64);

impl<R: ScoreRule> SharedVirtualTime<R> {
    /// Creates a scheduler for idle rails.
    ///
    /// # Errors
    /// No rail, or more than [`super::MAX_RAILS`].
    pub fn new(rails: &[LogGp]) -> Result<SharedVirtualTime<R>, RailsError> {
        let table = RailTable::new(rails, ())?;
        let virtual_finish = rails.iter().map(|_| Padded(AtomicU64::new(0))).collect();
        Ok(SharedVirtualTime {
            table,
            virtual_finish,
            rule: PhantomData,
        })
    }

    /// The operation of [`super::RailScheduler::pick`], with the accounting of section 4.6's text, without allocation or
    /// lock.
    #[inline]
    pub fn pick(&self, now: Ticks, size: Bytes, usable: RailSet) -> Option<RailId> {
        let asked = self
            .table
            .timing_of_message(now, size, Accounting::FromTheClock);
        let usable = usable.and(self.table.all());
        loop {
            let mut read = [Ticks::ZERO; MAX_RAILS];
            let best = usable
                .map(|rail: RailId| {
                    let virtual_finish = self.virtual_finish(rail);
                    read[rail.index() & (MAX_RAILS - 1)] = virtual_finish;
                    Rated::new::<R>(
                        rail.index(),
                        &RailEntry {
                            virtual_finish,
                            ..self.table.entries()[rail.index()]
                        },
                        asked,
                    )
                })
                .reduce(Rated::or_better)?;
            let (before, until) = (
                read[best.index & (MAX_RAILS - 1)].count(),
                best.until.bounded().count(),
            );
            let word = &self.virtual_finish[best.index].0;
            if word
                .compare_exchange_weak(before, until, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return Some(RailId(best.index as u8));
            }
        }
    }

    /// Time at which `rail` will have sent everything assigned to it.
    pub fn virtual_finish(&self, rail: RailId) -> Ticks {
        Ticks::from_count(self.virtual_finish[rail.index()].0.load(Ordering::Acquire))
    }

    /// Moves the clock's zero forward by `elapsed`.
    pub fn restart_clock(&mut self, elapsed: Ticks) {
        for rail in self.table.all() {
            let left = self.virtual_finish(rail).since(elapsed);
            self.virtual_finish[rail.index()]
                .0
                .store(left.count(), Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{
        super::{RailScheduler, virtual_time::VirtualTime},
        *,
    };
    use flowcast_units::{Time, TimePerByte};
    use proptest::prelude::*;

    fn rails(numbers: &[(u32, u32)]) -> Vec<LogGp> {
        numbers
            .iter()
            .map(|(gap, latency): &(u32, u32)| LogGp {
                gap: Time::from_nanos(f64::from(*gap)),
                latency: Time::from_nanos(f64::from(*latency)),
                overhead: Time::from_nanos(10.0),
                gap_per_byte: TimePerByte::from_nanos(f64::from(*gap) / 100.0),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_shared_scheduler_chooses_like_the_scheduler_of_one_thread(
            numbers in prop::collection::vec((1u32..5000, 0u32..90_000), 1..=16),
            messages in prop::collection::vec((0u64..5000, 0u64..100_000, any::<u16>()), 0..60),
        ) {
            let rails = rails(&numbers);
            let shared = SharedVirtualTime::<EarliestDelivery>::new(&rails).unwrap();
            let mut single =
                VirtualTime::<EarliestDelivery, Ticks>::new(&rails, Accounting::FromTheClock, ()).unwrap();
            let mut now = 0;
            for (pause, size, usable) in messages {
                now += pause;
                let usable = RailSet::from_bits(usable);
                let expected = single.pick(Ticks::from_nanos(now), Bytes(size), usable);
                prop_assert_eq!(shared.pick(Ticks::from_nanos(now), Bytes(size), usable), expected);
            }
            for rail in RailSet::first(rails.len()) {
                prop_assert_eq!(shared.virtual_finish(rail), single.virtual_finish(rail));
            }
        }
    }

    #[test]
    fn four_threads_account_for_every_message() {
        let shared =
            SharedVirtualTime::<EarliestDelivery>::new(&rails(&[(100, 0), (100, 0), (300, 50)]))
                .unwrap();
        let picks: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..5000)
                            .filter_map(|_| shared.pick(Ticks::ZERO, Bytes(1), RailSet::ALL))
                            .count() as u64
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        let sent = |rail: u8, gap: u64| {
            shared.virtual_finish(RailId(rail)).count() / Ticks::from_nanos(gap).count()
        };
        assert_eq!(picks, 20_000);
        assert_eq!(sent(0, 100) + sent(1, 100) + sent(2, 300), picks);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::{
        super::{RailScheduler, virtual_time::VirtualTime},
        *,
    };
    use flowcast_units::{Time, TimePerByte};
    use loom::{sync::Arc, thread};

    const SIZES: [u64; 3] = [1, 900, 40];

    fn rails() -> Vec<LogGp> {
        let rail = |gap: f64, per_byte: f64, latency: f64| LogGp {
            gap: Time::from_nanos(gap),
            gap_per_byte: TimePerByte::from_nanos(per_byte),
            overhead: Time::ZERO,
            latency: Time::from_nanos(latency),
        };
        vec![rail(100.0, 1.0, 0.0), rail(130.0, 2.0, 150.0)]
    }

    fn one_after_the_other(order: &[usize]) -> ([Option<RailId>; 3], [Ticks; 2]) {
        let mut single =
            VirtualTime::<EarliestDelivery, Ticks>::new(&rails(), Accounting::FromTheClock, ())
                .unwrap();
        let mut choices = [None; 3];
        for message in order {
            choices[*message] = single.pick(Ticks::ZERO, Bytes(SIZES[*message]), RailSet::ALL);
        }
        (
            choices,
            [0, 1].map(|rail| single.virtual_finish(RailId(rail))),
        )
    }

    /// Thread one sends messages 0 and 1, thread two message 2.
    #[test]
    fn every_interleaving_equals_an_order_of_the_calls() {
        let orders = [[0, 1, 2], [0, 2, 1], [2, 0, 1]].map(|order| one_after_the_other(&order));
        loom::model(move || {
            let shared = Arc::new(SharedVirtualTime::<EarliestDelivery>::new(&rails()).unwrap());
            let pick = |shared: &SharedVirtualTime, message: usize| {
                shared.pick(Ticks::ZERO, Bytes(SIZES[message]), RailSet::ALL)
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || pick(&shared, 2))
            };
            let (first, second) = (pick(&shared, 0), pick(&shared, 1));
            let third = other.join().unwrap();
            let finish = [0, 1].map(|rail| shared.virtual_finish(RailId(rail)));
            assert!(
                orders.contains(&([first, second, third], finish)),
                "{first:?} {second:?} {third:?} {finish:?}"
            );
        });
    }
}
