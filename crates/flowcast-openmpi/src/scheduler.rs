//! The scheduler of the message path: any scheduler of the library, for any number of threads, on the machine's clock.
//!
//! Earliest delivery, the default, also divides messages, and shares the accounts of its rails with the other processes of
//! the node. All other schedulers have private accounts.
//!
//! Open MPI may send from several threads, and from callbacks during its progress, so any thread may call every scheduler
//! here. Schedulers that depend on the clock choose without a lock; the others use one.
//!
//! Parameters and the clock's zero form an epoch. It is replaced as a whole after parameters were measured, and before the
//! range of the library's clock arithmetic ends (5.3 days). The old epoch is kept, because a thread may still use it. A run
//! has one or two replacements.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicPtr, Ordering},
    },
    time::Instant,
};

use flowcast_network::loggp::LogGp;
use flowcast_scheduler::{
    Accounting, RailId, RailSet, RailsError,
    clock::{ClockArithmetic, ClockSteps, Ticks},
    discipline::{BoxedScheduler, Discipline, SchedulerName},
    rules::{EarliestOverlap, Latency, Overlap, ScoreRule, VftClock},
    shared::SharedVirtualTime,
    shared_split::SharedSplitter,
    split::{Split, SplitRule},
    turns::Shares,
};
use flowcast_units::{Bytes, Time};

use crate::accounts::{self, Accounts};

/// Longest epoch, in nanoseconds: four days, well below the clock's range.
const LONGEST_EPOCH: u64 = 4 * 24 * 3600 * 1_000_000_000;

#[derive(Debug)]
pub(crate) struct ComponentScheduler {
    name: SchedulerName,
    clock: Instant,
    epoch: AtomicPtr<SchedulerEpoch>,
    accounts: Accounts,
}

/// Parameters and the start of their clock.
struct SchedulerEpoch {
    zero: u64,
    costs: Vec<LogGp>,
    picker: Box<dyn Picker>,
}

/// Chooses rails for any thread, at a time in nanoseconds since the start of its epoch.
trait Picker: Send + Sync {
    fn pick(&self, now: u64, size: Bytes, usable: RailSet) -> Option<RailId>;

    /// Divides a message over rails. The default divides none.
    fn split(&self, _size: Bytes, _usable: RailSet) -> Option<Split> {
        None
    }
}

/// Uses the node's accounts, on the clock that its processes share.
impl Picker for SharedSplitter<'static> {
    #[inline]
    fn pick(&self, _: u64, size: Bytes, usable: RailSet) -> Option<RailId> {
        SharedSplitter::pick(self, accounts::now(), size, usable)
    }

    #[inline]
    fn split(&self, size: Bytes, usable: RailSet) -> Option<Split> {
        SharedSplitter::split(self, accounts::now(), size, usable)
    }
}

impl<R: ScoreRule + Send + Sync> Picker for SharedVirtualTime<R> {
    #[inline]
    fn pick(&self, now: u64, size: Bytes, usable: RailSet) -> Option<RailId> {
        SharedVirtualTime::pick(self, Ticks::from_nanos(now), size, usable)
    }
}

/// A single-threaded scheduler behind a lock.
struct Locked<M: ClockArithmetic> {
    scheduler: Mutex<BoxedScheduler<M>>,
    scale: M::Scale,
}

impl<M: ClockArithmetic<Scale: Send + Sync>> Picker for Locked<M> {
    fn pick(&self, now: u64, size: Bytes, usable: RailSet) -> Option<RailId> {
        let now = M::from_time(Time::from_nanos(now as f64), self.scale);
        self.scheduler
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pick(now, size, usable)
    }
}

impl SchedulerEpoch {
    fn new(
        name: SchedulerName,
        costs: &[LogGp],
        accounts: Accounts,
        zero: u64,
    ) -> Result<SchedulerEpoch, RailsError> {
        Ok(SchedulerEpoch {
            zero,
            costs: costs.to_vec(),
            picker: picker(name, costs, accounts)?,
        })
    }
}

fn picker(
    name: SchedulerName,
    costs: &[LogGp],
    accounts: Accounts,
) -> Result<Box<dyn Picker>, RailsError> {
    if name.accounting != Accounting::FromTheClock {
        return locked(name, costs);
    }
    match name.discipline {
        Discipline::VftClock => shared::<VftClock>(costs),
        Discipline::Latency => shared::<Latency>(costs),
        Discipline::Overlap => shared::<Overlap>(costs),
        Discipline::EarliestDelivery => Ok(Box::new(SharedSplitter::new(
            costs,
            SplitRule::inside_mpi(),
            &accounts.free_at,
        )?)),
        Discipline::EarliestOverlap => shared::<EarliestOverlap>(costs),
        _ => locked(name, costs),
    }
}

fn shared<R: ScoreRule + Send + Sync + 'static>(
    costs: &[LogGp],
) -> Result<Box<dyn Picker>, RailsError> {
    Ok(Box::new(SharedVirtualTime::<R>::new(costs)?))
}

fn locked(name: SchedulerName, costs: &[LogGp]) -> Result<Box<dyn Picker>, RailsError> {
    let shares = Shares::by_bandwidth(costs)?;
    Ok(match name.binary_point() {
        Some(scale) => {
            let scheduler = Mutex::new(name.scheduler::<ClockSteps>(costs, shares, scale)?);
            Box::new(Locked { scheduler, scale })
        }
        None => {
            let scheduler = Mutex::new(name.scheduler::<Ticks>(costs, shares, ())?);
            Box::new(Locked {
                scheduler,
                scale: (),
            })
        }
    })
}

impl ComponentScheduler {
    /// Creates a scheduler for idle rails.
    ///
    /// # Errors
    /// No rail, or too many.
    pub(crate) fn new(
        name: SchedulerName,
        costs: &[LogGp],
        accounts: Accounts,
    ) -> Result<ComponentScheduler, RailsError> {
        let epoch = Box::into_raw(Box::new(SchedulerEpoch::new(name, costs, accounts, 0)?));
        Ok(ComponentScheduler {
            name,
            clock: Instant::now(),
            epoch: AtomicPtr::new(epoch),
            accounts,
        })
    }

    /// Chooses the rail of a message that is ready now and may take any of `usable`.
    #[inline]
    pub(crate) fn pick(&self, size: Bytes, usable: RailSet) -> Option<RailId> {
        let now = self.clock.elapsed().as_nanos() as u64;
        let epoch = self.epoch();
        let since = now.saturating_sub(epoch.zero);
        if since > LONGEST_EPOCH {
            return self.begin_again().pick(0, size, usable);
        }
        epoch.picker.pick(since, size, usable)
    }

    /// Returns `true` if the scheduler divides messages.
    #[inline]
    pub(crate) fn divides(&self) -> bool {
        self.name == SchedulerName::new(Discipline::EarliestDelivery)
    }

    /// Divides a message that is ready now over rails of `usable`, and accounts for it. Returns `None` if the scheduler does
    /// not divide messages.
    #[inline]
    pub(crate) fn split(&self, size: Bytes, usable: RailSet) -> Option<Split> {
        self.epoch().picker.split(size, usable)
    }

    /// Accounts for a message whose rail is not our choice. Turn-based schedulers do not depend on load.
    #[inline]
    pub(crate) fn account(&self, rail: RailId, size: Bytes) {
        if self.minds_load() {
            self.pick(size, RailSet::NONE.with(rail));
        }
    }

    pub(crate) fn costs(&self) -> &[LogGp] {
        &self.epoch().costs
    }

    /// Replaces the parameters. Rails count as idle, except for those whose accounts the node keeps.
    ///
    /// # Errors
    /// No rail, or too many.
    pub(crate) fn set_costs(&self, costs: &[LogGp]) -> Result<(), RailsError> {
        let now = self.clock.elapsed().as_nanos() as u64;
        let epoch = SchedulerEpoch::new(self.name, costs, self.accounts, now)?;
        let epoch = Box::into_raw(Box::new(epoch));
        self.epoch.store(epoch, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn epoch(&self) -> &SchedulerEpoch {
        // SAFETY: never null, never freed.
        unsafe { &*self.epoch.load(Ordering::Acquire) }
    }

    #[cold]
    fn begin_again(&self) -> &dyn Picker {
        // The parameters formed a valid scheduler before, so they do so again.
        let _ = self.set_costs(&self.epoch().costs.clone());
        &*self.epoch().picker
    }

    #[inline]
    fn minds_load(&self) -> bool {
        use Discipline::{
            RoundRobin, VirtualTimeRoundRobin, WeightedFairQueuing, WeightedRoundRobin,
        };
        !matches!(
            self.name.discipline,
            RoundRobin | WeightedRoundRobin | WeightedFairQueuing | VirtualTimeRoundRobin
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::TimePerByte;

    fn scheduler(name: SchedulerName) -> ComponentScheduler {
        ComponentScheduler::new(name, &rails(), accounts::own()).unwrap()
    }

    fn rails() -> Vec<LogGp> {
        let rail = |per_byte: f64| LogGp {
            latency: Time::from_micros(20.0),
            overhead: Time::from_micros(2.0),
            gap: Time::from_micros(3.0),
            gap_per_byte: TimePerByte::from_nanos(per_byte),
        };
        vec![rail(8.0), rail(80.0)]
    }

    #[test]
    fn every_scheduler_serves_several_threads() {
        for name in SchedulerName::every() {
            let scheduler = scheduler(name);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for size in 0..300 {
                            assert!(
                                scheduler
                                    .pick(Bytes(size), RailSet::ALL)
                                    .is_some_and(|rail| rail.0 < 2),
                                "{name}"
                            );
                            scheduler.account(RailId(1), Bytes(size));
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn traffic_without_a_choice_counts() {
        let scheduler = scheduler(SchedulerName::new(Discipline::EarliestDelivery));
        assert_eq!(scheduler.pick(Bytes(1000), RailSet::ALL), Some(RailId(0)));
        // A second of traffic on the fast rail: 125 MB at 8 ns.
        scheduler.account(RailId(0), Bytes(125_000_000));
        assert_eq!(scheduler.pick(Bytes(1000), RailSet::ALL), Some(RailId(1)));
    }

    #[test]
    fn traffic_without_a_choice_does_not_disturb_turns() {
        let scheduler = scheduler(SchedulerName::new(Discipline::RoundRobin));
        let picks: Vec<u8> = (0..4)
            .map(|_| {
                scheduler.account(RailId(0), Bytes(9));
                scheduler.pick(Bytes(9), RailSet::ALL).unwrap().0
            })
            .collect();
        assert_eq!(picks, [0, 1, 0, 1]);
    }
}
