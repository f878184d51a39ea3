//! Detects at run time whether a rail's speed has changed since it was measured, and whether a connection is stuck.
//!
//! The component does not see when its messages leave, but the kernel keeps counts of each connection ([`crate::connections`]). A
//! rail is full when large messages keep one of its connections busy for a whole period. The bytes that all processes of this node
//! had acknowledged in such periods say how much slower the rail is than expected. Receivers that listen to several senders slow it
//! down too, at times for seconds, but all rails alike: so what counts is how much slower a rail is than the fastest, over a long
//! time.

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

/// Nanoseconds between two looks; longer where the program does not wait for messages.
const PERIOD: u64 = 40_000_000;
/// Time constant with which observations lose weight, in nanoseconds.
const MEMORY: f64 = 8e9;
/// Time constant with which a rail that is less busy than others is taken for what it was measured again.
const RECOVERY: f64 = 2e9;
/// A rail is less busy than another if it has data in flight for less than this part of the time.
const LESS_BUSY: f64 = 0.75;
/// A rail has changed if it is slower even with so many nanoseconds as expected beside what was observed.
const BENEFIT_OF_DOUBT: f64 = 3e9;
/// The same for how much slower it is, so that nothing is divided by zero.
const LEAST_EXPECTED: f64 = 2e7;
/// A rail that is slower than the fastest by less than this factor has not changed.
const CHANGED: f64 = 1.2;
/// Where parameters in use and found differ by less, they stay.
const WORTH_A_CHANGE: f64 = 0.05;

/// The looks at all rails, by any thread.
#[derive(Debug)]
pub(super) struct RailWatch {
    next: AtomicU64,
    rails: Mutex<WatchedRails>,
}

#[derive(Debug)]
struct WatchedRails {
    connections: TcpConnections,
    /// Those that were measured, and may be measured again.
    measured: Vec<Watched>,
    /// What the processes of this node have carried over each rail.
    accounts: Accounts,
    stuck: BTreeSet<PeerPath>,
    last: u64,
}

/// What a look changes.
#[derive(Debug, Default)]
pub(super) struct WatchFindings {
    /// The parameters to go on with.
    pub costs: Option<Vec<LogGp>>,
    /// Where nothing moves now.
    pub stuck: Option<BTreeSet<PeerPath>>,
}

/// A rail, and what was observed while it was full; times in nanoseconds.
#[derive(Debug)]
struct Watched {
    measured: LogGp,
    /// How many times as long as measured it takes, beside the others.
    slowdown: f64,
    /// How long it was full since that last changed.
    took: f64,
    /// How long the bytes that it carried then were expected to take.
    expected: f64,
    /// What the processes of this node had carried at the last look.
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

    /// From here on the rails are held to these parameters.
    pub(super) fn measure_again(&self, measured: &[LogGp]) {
        let mut known = self
            .rails
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known.measured = measured.iter().map(|cost| Watched::new(*cost)).collect();
    }

    /// Looks at all rails if it is time to, unless another thread does. `in_use` are the parameters in use.
    #[inline]
    pub(super) fn look(&self, rails: &[RailModule], in_use: &[LogGp]) -> Option<WatchFindings> {
        // Called whenever the library makes progress, which programs that test for messages do most of the time.
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
            // Who has not looked for long does not know when its bytes came.
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
                watched.had_time_to_spare(period as f64);
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

/// Finds the rails that have become slower beside the fastest, and begins to observe all anew if there are some.
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

    /// What has come since the last look, of all processes of this node.
    fn of_node(&mut self, total: u64) -> u64 {
        let before = self.node_total.replace(total);
        before.map_or(0, |before| total.saturating_sub(before))
    }

    /// It carried so many bytes of large messages in so many nanoseconds; `g` is a small part of what these take.
    fn was_full(&mut self, bytes: u64, took: f64) {
        let kept = (-took / MEMORY).exp();
        let a_byte = self.measured.gap_per_byte.as_nanos() * self.slowdown;
        self.took = self.took * kept + took;
        self.expected = self.expected * kept + bytes as f64 * a_byte;
    }

    /// If the rail is still slow, its reduced share keeps it as busy as the others; if it has idle time, it may have recovered.
    fn had_time_to_spare(&mut self, period: f64) {
        self.slowdown = 1.0 + (self.slowdown - 1.0) * (-period / RECOVERY).exp();
    }

    /// How many times as long as expected it takes, had it been as expected for `benefit` nanoseconds more.
    fn slower(&self, benefit: f64) -> f64 {
        (self.took + benefit) / (self.expected + benefit)
    }

    /// `g` and `G` as many times as long as measured.
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

    /// So many looks at two rails that are full and `times` as slow as measured; how slow they are taken for.
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
    fn a_rail_that_becomes_slower_than_the_others_is_found_out_and_so_is_its_return() {
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
    fn a_slow_rail_with_time_to_spare_is_what_it_was_measured_in_the_end() {
        let mut rails = [watched(), watched()];
        assert!(full(&mut rails, 100, [1.0, 5.0])[1] > 4.0);
        (0..200).for_each(|_| rails[1].had_time_to_spare(PERIOD as f64));
        assert!(rails[1].slowdown < 1.1, "{rails:?}");
    }

    #[test]
    fn rails_that_slow_down_together_keep_their_shares() {
        let mut rails = [watched(), watched()];
        assert_eq!(full(&mut rails, 1000, [1.9, 2.0]), [1.0, 1.0]);
        compare(&mut []);
    }

    #[test]
    fn a_rail_that_was_measured_too_slow_is_taken_beside_the_others() {
        let mut rails = [watched(), watched()];
        let [fast, slow] = full(&mut rails, 1000, [0.5, 1.0]);
        assert!(fast == 1.0 && (slow / 2.0 - 1.0).abs() < 0.2, "{slow}");
    }
}
