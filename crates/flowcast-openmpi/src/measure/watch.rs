//! Detects at run time whether a rail's speed has changed since it was measured, and whether a connection is stuck.
//!
//! The component does not see when its messages leave, but the kernel keeps statistics of each connection
//! ([`crate::connections`]). A rail is full when large messages keep one of its connections busy for a whole period. The
//! bytes acknowledged for all processes of this node in such periods show how much slower the rail is than expected.
//! Receivers that serve several senders slow it down too, at times for seconds, but affect all rails equally. The criterion
//! is therefore the slowdown relative to the fastest rail over a long time.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use flowcast_network::loggp::LogGp;
use flowcast_scheduler::Rail;
use flowcast_units::TimePerByte;

use super::equal_rails;
use crate::{
    accounts::{self, Accounts},
    connections::{ConnectionsLook, PeerPath, TcpConnections},
    costs,
    state::RailModule,
};

/// Time between two looks, in nanoseconds. It is longer if the program does not wait for messages.
const PERIOD: u64 = 40_000_000;
/// Time constant of the weight of observations, in nanoseconds.
const MEMORY: f64 = 8e9;
/// Time constant of the return of a rail's estimate to the measured parameters, in nanoseconds, while the rail is less busy
/// than others.
const RECOVERY: f64 = 2e9;
/// Fraction of the busiest rail's time with data in flight below which a rail counts as less busy.
const LESS_BUSY: f64 = 0.75;
/// Time of expected behaviour that is added to the observations, in nanoseconds. A rail has changed if it is slower even
/// with this addition.
const BENEFIT_OF_DOUBT: f64 = 3e9;
/// Time of expected behaviour that is added to estimate the size of the slowdown, in nanoseconds. It avoids a division by
/// zero.
const LEAST_EXPECTED: f64 = 2e7;
/// Slowdown relative to the fastest rail up to which a rail counts as unchanged.
const CHANGED: f64 = 1.2;
/// Relative difference below which the parameters in use stay.
const WORTH_A_CHANGE: f64 = 0.05;

/// Watcher of all rails, which any thread may call.
#[derive(Debug)]
pub(super) struct RailWatch {
    next: AtomicU64,
    rails: Mutex<WatchedRails>,
}

#[derive(Debug)]
struct WatchedRails {
    connections: TcpConnections,
    /// Rails that were measured and may be measured again.
    measured: Vec<Watched>,
    /// Bytes that the processes of this node have carried over each rail.
    accounts: Accounts,
    stuck: BTreeSet<PeerPath>,
    last: u64,
}

/// Changes found by a look.
#[derive(Debug, Default)]
pub(super) struct WatchFindings {
    /// New parameters, if they changed.
    pub costs: Option<Vec<LogGp>>,
    /// Paths on which nothing moves now, if the set changed.
    pub stuck: Option<BTreeSet<PeerPath>>,
}

/// A rail, and its observations while it was full; times in nanoseconds.
#[derive(Debug)]
struct Watched {
    measured: LogGp,
    /// Slowdown relative to the measured parameters and to the other rails.
    slowdown: f64,
    /// Time for which the rail was full since the last change of `slowdown`.
    took: f64,
    /// Expected time for the bytes that the rail carried meanwhile, at its current `slowdown`.
    expected: f64,
    /// Bytes carried by the processes of this node until the last look.
    node_total: Option<u64>,
}

impl RailWatch {
    pub(super) fn new(rails: &[RailModule], accounts: Accounts) -> RailWatch {
        let names: Vec<&str> = rails.iter().map(|rail| rail.name.as_str()).collect();
        let rails = WatchedRails {
            connections: TcpConnections::new(&names),
            measured: Vec::new(),
            accounts,
            stuck: BTreeSet::new(),
            last: 0,
        };
        RailWatch {
            next: AtomicU64::new(0),
            rails: Mutex::new(rails),
        }
    }

    /// Compares the rails with these parameters from now on.
    pub(super) fn measure_again(&self, measured: &[LogGp]) {
        let mut known = self
            .rails
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known.measured = measured.iter().map(|cost| Watched::new(*cost)).collect();
    }

    /// Looks at all rails if it is time to, unless another thread does so. `in_use` are the parameters in use.
    #[inline]
    pub(super) fn look(&self, rails: &[RailModule], in_use: &[LogGp]) -> Option<WatchFindings> {
        // Called whenever the library makes progress, which dominates in programs that test for messages.
        if accounts::roughly_now() < self.next.load(Ordering::Relaxed) {
            None
        } else {
            self.look_now(accounts::now(), rails, in_use)
        }
    }

    #[cold]
    fn look_now(&self, now: u64, rails: &[RailModule], in_use: &[LogGp]) -> Option<WatchFindings> {
        let mut known = self.rails.try_lock().ok()?;
        // Another thread may have looked since the clock was read.
        if now <= known.last {
            return None;
        }
        self.next.store(now + PERIOD, Ordering::Relaxed);
        known.last = now;
        let look = known.connections.look(now);
        known.observe(&look);
        let stuck = (look.stuck != known.stuck).then(|| {
            known.stuck.clone_from(&look.stuck);
            look.stuck
        });
        Some(WatchFindings {
            costs: known.changed_costs(rails, in_use),
            stuck,
        })
    }
}

impl WatchedRails {
    fn observe(&mut self, look: &ConnectionsLook) {
        let Some(period) = look.period else { return };
        let busiest = look.rails.iter().map(|rail| rail.busy).fold(0.0, f64::max);
        for (index, activity) in look.rails.iter().enumerate() {
            // After a long pause the process does not know when its bytes were acknowledged.
            let is_recent = period <= 2 * PERIOD;
            let own = if is_recent { activity.acknowledged } else { 0 };
            let of_node = self.accounts.acknowledged[index].fetch_add(own, Ordering::Relaxed) + own;
            let Some(watched) = self.measured.get_mut(index) else {
                continue;
            };
            let bytes = watched.of_node(of_node).max(activity.acknowledged);
            if activity.is_full {
                watched.was_full(bytes, period as f64);
            } else if activity.busy < LESS_BUSY * busiest {
                watched.add_idle_period(period as f64);
            }
        }
        compare(&mut self.measured);
    }

    fn changed_costs(&self, rails: &[RailModule], in_use: &[LogGp]) -> Option<Vec<LogGp>> {
        let mut found: Vec<Rail> = rails
            .iter()
            .zip(&self.measured)
            .map(|(rail, watched)| costs::rail(&rail.name, watched.cost()))
            .collect();
        equal_rails::even_out(&mut found);
        let change = found.iter().zip(in_use).any(|(new, old): (&Rail, &LogGp)| {
            let ratio = new.cost.gap_per_byte.as_nanos() / old.gap_per_byte.as_nanos();
            !(1.0 - WORTH_A_CHANGE..=1.0 + WORTH_A_CHANGE).contains(&ratio)
        });
        change.then(|| found.into_iter().map(|rail| rail.cost).collect())
    }
}

/// Finds the rails that have become slower than the fastest. If there are some, all observations start anew.
fn compare(rails: &mut [Watched]) {
    let unchanged = CHANGED * least(rails.iter().map(|rail| rail.slower(BENEFIT_OF_DOUBT)));
    let has_changed = |rail: &Watched| rail.slower(BENEFIT_OF_DOUBT) > unchanged;
    if !rails.iter().any(has_changed) {
        return;
    }
    let fastest = least(rails.iter().map(|rail| rail.slower(LEAST_EXPECTED)));
    for rail in rails.iter_mut() {
        if has_changed(rail) {
            rail.slowdown *= rail.slower(LEAST_EXPECTED) / fastest;
        }
        (rail.took, rail.expected) = (0.0, 0.0);
    }
    let fastest = least(rails.iter().map(|rail| rail.slowdown));
    rails.iter_mut().for_each(|rail| rail.slowdown /= fastest);
}

fn least(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(f64::INFINITY, f64::min)
}

impl Watched {
    fn new(measured: LogGp) -> Watched {
        Watched {
            measured,
            slowdown: 1.0,
            took: 0.0,
            expected: 0.0,
            node_total: None,
        }
    }

    /// Returns the bytes of all processes of this node since the last look.
    fn of_node(&mut self, total: u64) -> u64 {
        let before = self.node_total.replace(total);
        before.map_or(0, |before| total.saturating_sub(before))
    }

    /// Records that the rail carried `bytes` bytes of large messages in `took` nanoseconds. `g` is neglected: it is a small
    /// part of their time.
    fn was_full(&mut self, bytes: u64, took: f64) {
        let kept = (-took / MEMORY).exp();
        let a_byte = self.measured.gap_per_byte.as_nanos() * self.slowdown;
        self.took = self.took * kept + took;
        self.expected = self.expected * kept + bytes as f64 * a_byte;
    }

    /// Records a period in which the rail was less busy than others. A rail that is still slow stays as busy as the others
    /// with its reduced share; a rail with idle time may have recovered.
    fn add_idle_period(&mut self, period: f64) {
        self.slowdown = 1.0 + (self.slowdown - 1.0) * (-period / RECOVERY).exp();
    }

    /// Slowdown relative to the expected time, as if the rail had behaved as expected for `benefit` nanoseconds more.
    fn slower(&self, benefit: f64) -> f64 {
        (self.took + benefit) / (self.expected + benefit)
    }

    /// Current parameters: the measured `g` and `G`, multiplied by the slowdown.
    fn cost(&self) -> LogGp {
        LogGp {
            gap: self.measured.gap * self.slowdown,
            gap_per_byte: TimePerByte::from_nanos(
                self.measured.gap_per_byte.as_nanos() * self.slowdown,
            ),
            ..self.measured
        }
    }
}

#[cfg(test)]
mod tests {
    use flowcast_units::Time;

    use super::*;

    fn watched() -> Watched {
        Watched::new(LogGp {
            gap: Time::from_micros(20.0),
            gap_per_byte: TimePerByte::from_nanos(20.0),
            ..LogGp::default()
        })
    }

    /// Looks `looks` times at two full rails that are `times` as slow as measured. Returns their estimated slowdowns.
    fn full(rails: &mut [Watched; 2], looks: u32, times: [f64; 2]) -> [f64; 2] {
        for _ in 0..looks {
            for (rail, times) in rails.iter_mut().zip(times) {
                let bytes = PERIOD as f64 / (20.0 * times);
                rail.was_full(bytes as u64, PERIOD as f64);
            }
            compare(rails);
        }
        rails.each_ref().map(|rail| rail.slowdown)
    }

    #[test]
    fn a_rail_that_becomes_slower_is_detected_and_so_is_its_recovery() {
        let mut rails = [watched(), watched()];
        assert_eq!(full(&mut rails, 1000, [1.0, 1.15]), [1.0, 1.0], "no change");
        // Four seconds.
        let [fast, slow] = full(&mut rails, 100, [1.0, 5.0]);
        assert!(fast == 1.0 && (slow / 5.0 - 1.0).abs() < 0.2, "{slow}");
        let cost = rails[1].cost();
        assert!((cost.gap.as_micros() / 20.0 / slow - 1.0).abs() < 1e-9);
        assert!((cost.gap_per_byte.as_nanos() / 20.0 / slow - 1.0).abs() < 1e-9);
        let [fast, again] = full(&mut rails, 1000, [1.0, 5.0]);
        assert!(fast == 1.0 && (again / slow - 1.0).abs() < 0.2, "{again}");
        let [fast, slow] = full(&mut rails, 200, [1.0, 1.0]);
        assert!(fast == 1.0 && (1.0..1.2).contains(&slow), "{slow}");
    }

    #[test]
    fn an_idle_slow_rail_returns_to_its_measured_parameters() {
        let mut rails = [watched(), watched()];
        assert!(full(&mut rails, 100, [1.0, 5.0])[1] > 4.0);
        (0..200).for_each(|_| rails[1].add_idle_period(PERIOD as f64));
        assert!(rails[1].slowdown < 1.1, "{rails:?}");
    }

    #[test]
    fn rails_that_slow_down_together_keep_their_shares() {
        let mut rails = [watched(), watched()];
        assert_eq!(full(&mut rails, 1000, [1.9, 2.0]), [1.0, 1.0]);
        compare(&mut []);
    }

    #[test]
    fn a_rail_that_was_measured_too_slow_is_used_beside_the_others() {
        let mut rails = [watched(), watched()];
        let [fast, slow] = full(&mut rails, 1000, [0.5, 1.0]);
        assert!(fast == 1.0 && (slow / 2.0 - 1.0).abs() < 0.2, "{slow}");
    }
}
