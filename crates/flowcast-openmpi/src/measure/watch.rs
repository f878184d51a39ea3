//! What the rails do while the program runs, looked at every few milliseconds: whether they still are what was measured, and
//! whether anything is stuck.
//!
//! The component does not see when its messages leave, but the kernel knows of each connection ([`crate::connections`]). A rail on
//! which a connection has had data in flight for a whole period, with more behind, carries what it can: what the processes of
//! this node had acknowledged on it, and that period, are one observation of the sequential test that stored parameters have to
//! stand ([`StillHolds`]). And what a rail has carried proves what it can carry: who measured it slower was disturbed.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use flowcast_model::{
    loggp::LogGp,
    stats::{
        sample::median_in_place,
        still::{StillHolds, Verdict},
    },
};
use flowcast_scheduler::Rail;
use flowcast_units::TimePerByte;

use super::equal_rails;
use crate::{
    accounts::{self, Accounts},
    connections::{Connections, ConnectionsLook, Path},
    costs,
    state::RailModule,
};

/// Between two looks, in nanoseconds; longer where the program does not wait for messages.
const PERIOD: u64 = 40_000_000;
/// Bytes of an observation at least: the kernel acknowledges up to 64 KiB at once.
const LEAST: u64 = 256 << 10;
/// A rail has proved a rate by two intervals of this length, in nanoseconds, one behind the other.
const PROOF: u64 = 250_000_000;
/// Bytes in each of them at least.
const LEAST_PROOF: u64 = 128 << 10;
/// A median within this factor of what is expected is no change.
const TOLERANCE: f64 = 1.1;
/// Probability that a window of observations gives an alarm where nothing has changed.
const LEVEL: f64 = 0.001;
/// A window ends without a verdict after it.
const LONGEST_WINDOW: u32 = 32;
/// A rail that has changed is what the median of so many observations says.
const RECENT: usize = 8;
/// Looks at a changed rail with something to carry and time to spare, after which it counts as measured again.
const SPARE: u32 = 100;
/// Where parameters in use and found differ by less, they stay.
const WORTH_A_CHANGE: f64 = 0.05;
/// A rail proves that it was measured too slow if it takes less than this part of the time for a byte: acknowledgements come in
/// bunches, and the processes of a node look at different times.
const PROVED: f64 = 0.7;
/// Rails whose slowdowns are within this factor have slowed down together: their receivers have others to listen to.
const TOGETHER: f64 = 1.15;

/// The looks at all rails, by any thread.
#[derive(Debug)]
pub(super) struct Watch {
    next: AtomicU64,
    rails: Mutex<WatchedRails>,
}

#[derive(Debug)]
struct WatchedRails {
    connections: Connections,
    /// Those that were measured, and may be measured again.
    measured: Vec<Watched>,
    /// What the processes of this node have carried over each rail.
    accounts: Accounts,
    stuck: BTreeSet<Path>,
    last: u64,
}

/// What a look changes.
#[derive(Debug, Default)]
pub(super) struct WatchFindings {
    /// The parameters to go on with.
    pub costs: Option<Vec<LogGp>>,
    /// Where nothing moves now.
    pub stuck: Option<BTreeSet<Path>>,
}

#[derive(Debug)]
struct Watched {
    measured: LogGp,
    /// A message takes as many times as long as measured.
    times: f64,
    test: StillHolds,
    /// Of the latest observations, the oldest first: how many times as long as measured.
    recent: [f64; RECENT],
    /// Of the next observation: bytes, and nanoseconds that they took.
    bytes: u64,
    took: f64,
    proof: RateProof,
    /// What the processes of this node had carried at the last look.
    node_total: Option<u64>,
    /// Looks that found it with time to spare, less those that found it full.
    spare: u32,
}

/// What a rail has carried in intervals one behind the other.
#[derive(Debug, Default)]
struct RateProof {
    /// Of the interval that runs.
    since: u64,
    bytes: u64,
    /// Bytes per nanosecond in the interval before.
    before: f64,
}

impl Watch {
    pub(super) fn new(rails: &[RailModule], accounts: Accounts) -> Watch {
        let names: Vec<&str> = rails.iter().map(|rail| rail.name.as_str()).collect();
        let rails = WatchedRails {
            connections: Connections::new(&names),
            measured: Vec::new(),
            accounts,
            stuck: BTreeSet::new(),
            last: 0,
        };
        Watch {
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
        let now = accounts::now();
        if now < self.next.load(Ordering::Relaxed) {
            None
        } else {
            self.look_now(now, rails, in_use)
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
        known.observe(now, rails, &look);
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
    fn observe(&mut self, now: u64, rails: &[RailModule], look: &ConnectionsLook) {
        let Some(period) = look.period else { return };
        for (index, activity) in look.rails.iter().enumerate() {
            // Who has not looked for long does not know when its bytes came.
            let is_recent = period <= 2 * PERIOD;
            let own = if is_recent { activity.acknowledged } else { 0 };
            let of_node = self.accounts.acknowledged[index].fetch_add(own, Ordering::Relaxed) + own;
            let Some(watched) = self.measured.get_mut(index) else {
                continue;
            };
            let since = watched.of_node(of_node);
            let length = rails[index].counters.read().mean_length();
            if let Some(a_byte) = watched.proof.prove(now, is_recent, since) {
                watched.can_carry(a_byte, length);
            }
            if activity.is_full {
                let bytes = since.max(activity.acknowledged);
                watched.was_full(bytes, period as f64, length);
            } else if activity.acknowledged > 0 {
                watched.had_time_to_spare();
            }
        }
    }

    fn changed_costs(&self, rails: &[RailModule], in_use: &[LogGp]) -> Option<Vec<LogGp>> {
        let least = self.measured.iter().map(|watched| watched.times);
        let least = least.fold(f64::INFINITY, f64::min);
        let mut found: Vec<Rail> = rails
            .iter()
            .zip(&self.measured)
            .map(|(rail, watched)| costs::rail(&rail.name, watched.cost_beside(least)))
            .collect();
        equal_rails::even_out(&mut found);
        let change = found.iter().zip(in_use).any(|(new, old): (&Rail, &LogGp)| {
            let ratio = new.cost.gap_per_byte.as_nanos() / old.gap_per_byte.as_nanos();
            !(1.0 - WORTH_A_CHANGE..=1.0 + WORTH_A_CHANGE).contains(&ratio)
        });
        change.then(|| found.into_iter().map(|rail| rail.cost).collect())
    }
}

impl RateProof {
    /// Bytes that came until `now`; nanoseconds for each in the better of the last two intervals, when one ends.
    fn prove(&mut self, now: u64, is_recent: bool, bytes: u64) -> Option<f64> {
        if !is_recent {
            *self = RateProof {
                since: now,
                ..RateProof::default()
            };
            return None;
        }
        self.bytes += bytes;
        let took = now.saturating_sub(self.since);
        if took < PROOF {
            return None;
        }
        let rate = self.bytes as f64 / took as f64;
        let proved = rate.min(self.before);
        *self = RateProof {
            since: now,
            bytes: 0,
            before: rate,
        };
        (proved * PROOF as f64 >= LEAST_PROOF as f64).then(|| 1.0 / proved)
    }
}

impl Watched {
    fn new(measured: LogGp) -> Watched {
        Watched {
            measured,
            times: 1.0,
            test: StillHolds::within(TOLERANCE, LEVEL),
            recent: [1.0; RECENT],
            bytes: 0,
            took: 0.0,
            proof: RateProof::default(),
            node_total: None,
            spare: 0,
        }
    }

    /// What has come since the last look, of all processes of this node.
    fn of_node(&mut self, total: u64) -> u64 {
        let before = self.node_total.replace(total);
        before.map_or(0, |before| total.saturating_sub(before))
    }

    /// It has carried bytes at so many nanoseconds each: it was measured slower only because something disturbed that.
    fn can_carry(&mut self, a_byte: f64, length: f64) {
        let believed = (self.measured.gap.as_nanos() / length
            + self.measured.gap_per_byte.as_nanos())
            * self.times;
        let ratio = a_byte / believed;
        if ratio < PROVED {
            let measured = times_as_long(&self.measured, self.times * ratio);
            let (proof, node_total) = (std::mem::take(&mut self.proof), self.node_total);
            *self = Watched {
                proof,
                node_total,
                ..Watched::new(measured)
            };
        }
    }

    /// As it is beside a rail that takes `least` times as long as measured.
    fn cost_beside(&self, least: f64) -> LogGp {
        let slower = self.times / least;
        times_as_long(&self.measured, if slower < TOGETHER { 1.0 } else { slower })
    }

    /// It carried so many bytes in so many nanoseconds, with more behind; `length` of a message in the mean: which are under way
    /// nobody knows.
    fn was_full(&mut self, bytes: u64, took: f64, length: f64) {
        self.spare = self.spare.saturating_sub(1);
        self.bytes += bytes;
        self.took += took;
        if self.bytes >= LEAST {
            let a_byte =
                self.measured.gap.as_nanos() / length + self.measured.gap_per_byte.as_nanos();
            self.observe(self.took / (self.bytes as f64 * a_byte));
            (self.bytes, self.took) = (0, 0.0);
        }
    }

    fn observe(&mut self, times: f64) {
        self.recent.rotate_left(1);
        self.recent[RECENT - 1] = times;
        self.test.count_in(times / self.times);
        let verdict = self.test.end_window(LONGEST_WINDOW);
        if let Some(Verdict::Above | Verdict::Below) = verdict {
            self.times = median_in_place(&mut self.recent.clone());
        }
    }

    /// A share by what was found keeps a rail busy that still is so slow; one that is not may be what it was measured.
    fn had_time_to_spare(&mut self) {
        self.spare += 1;
        if self.spare == SPARE {
            *self = Watched::new(self.measured);
        }
    }
}

/// `g` and `G` so many times as long.
fn times_as_long(cost: &LogGp, times: f64) -> LogGp {
    LogGp {
        gap: cost.gap * times,
        gap_per_byte: TimePerByte::from_nanos(cost.gap_per_byte.as_nanos() * times),
        ..*cost
    }
}

#[cfg(test)]
mod tests {
    use flowcast_units::Time;

    use super::*;

    /// Observations of a rail that is as many times slower, until it is taken for other than it was.
    fn until_changed(rail: &mut Watched, times: f64) -> Option<u32> {
        let before = rail.times;
        (1..100).find(|at| {
            // A tenth of noise; 40 ns for a byte.
            let noise = 1.0 + 0.1 * f64::from(at % 3) - 0.1;
            rail.was_full(LEAST, LEAST as f64 * 40.0 * times * noise, 1000.0);
            rail.times != before
        })
    }

    fn watched() -> Watched {
        // 20 us for each message of 1000 bytes are as much as their bytes.
        Watched::new(LogGp {
            gap: Time::from_micros(20.0),
            gap_per_byte: TimePerByte::from_nanos(20.0),
            ..LogGp::default()
        })
    }

    #[test]
    fn a_rail_that_changes_is_found_out_and_so_is_its_return() {
        let mut rail = watched();
        assert_eq!(until_changed(&mut rail, 1.1), None, "within the tolerance");
        let within = until_changed(&mut rail, 5.0).unwrap();
        assert!(within <= LONGEST_WINDOW + 14, "{within}");
        assert!(
            (rail.times / 5.0 - 1.0).abs() < 0.1,
            "what came before the change has no part in it: {}",
            rail.times
        );
        let cost = rail.cost_beside(1.0);
        assert!(
            (cost.gap.as_micros() / rail.times - 20.0).abs() < 1e-9,
            "{cost:?}"
        );
        assert!(
            (cost.gap_per_byte.as_nanos() / rail.times - 20.0).abs() < 1e-9,
            "{cost:?}"
        );
        assert_eq!(until_changed(&mut rail, 5.0), None);
        assert!(
            until_changed(&mut rail, 1.0).is_some() && (rail.times - 1.0).abs() < 0.1,
            "{}",
            rail.times
        );
    }

    #[test]
    fn rails_that_slow_down_together_keep_their_shares() {
        let mut rail = watched();
        rail.times = 2.0;
        assert_eq!(rail.cost_beside(1.9), rail.measured);
        let beside_another = rail.cost_beside(1.0).gap_per_byte.as_nanos();
        assert!((beside_another / rail.measured.gap_per_byte.as_nanos() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_changed_rail_with_time_to_spare_is_tried_again() {
        let mut rail = watched();
        until_changed(&mut rail, 5.0).unwrap();
        (1..SPARE).for_each(|_| rail.had_time_to_spare());
        assert!(rail.times > 4.0);
        rail.had_time_to_spare();
        assert_eq!((rail.times, rail.spare), (1.0, 0));
    }

    #[test]
    fn a_rail_that_carried_more_than_was_measured_was_measured_wrongly() {
        let mut rail = watched();
        // 40 ns for each byte are believed, messages of 1000 bytes; 20 are seen.
        let (mut now, mut proofs) = (0, Vec::new());
        for _ in 0..24 {
            now += PERIOD;
            proofs.extend(rail.proof.prove(now, true, PERIOD / 20));
        }
        assert!(proofs.len() >= 2, "{proofs:?}");
        assert!(
            proofs
                .iter()
                .all(|a_byte| (a_byte / 20.0 - 1.0).abs() < 0.01),
            "{proofs:?}"
        );
        rail.can_carry(30.0, 1000.0);
        assert_eq!(
            rail.measured,
            watched().measured,
            "bunches of acknowledgements"
        );
        rail.can_carry(20.0, 1000.0);
        assert!(
            (rail.measured.gap.as_micros() - 10.0).abs() < 1e-9,
            "{rail:?}"
        );
        assert!((rail.measured.gap_per_byte.as_nanos() - 10.0).abs() < 1e-9);
        assert_eq!(
            rail.proof.prove(now + 9 * PERIOD, false, 1 << 30),
            None,
            "nobody knows when"
        );
    }
}
