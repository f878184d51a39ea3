//! Guard against losses by several rails: they are used only while they are proven to gain over the best single rail.
//!
//! Parameters can be wrong, processors can be the bottleneck, and receivers can suffer from reordered messages. The gain of
//! several rails therefore has to be measured where they run. Work is divided into blocks (a burst, a phase, or a number of
//! messages). Each block runs on one arm: all rails together, or one rail alone. The cost of a block is
//! `ln(took / expected)`, so that blocks of different length are comparable. All rails together are preferred only if
//!
//! `mean(best alone) - mean(together) > z' · sqrt(se²(best alone) + se²(together))`,
//!
//! where `z' = z·(1 + (z² + 1)/4ν)` approximates Student's quantile for ν = n1 + n2 - 2 degrees of freedom: the measured
//! gain has to exceed its own uncertainty. Otherwise the best single rail is preferred. An arm that is not preferred is
//! measured again after intervals that double up to a limit. If its mean is better, but not significantly, its interval
//! does not double. With gaps Δ_k in the logarithm of the cost, n blocks cost at most
//! `Σ_k Δ_k (w + log2 n + n/limit)` more than n blocks on the best arm, where w is the number of first measurements, plus
//! the cost of wrong preferences, which the test by z makes rare.

use super::{MAX_RAILS, RailId, RailSet};
use flowcast_units::Time;

/// Rails on which a block runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// All rails, as chosen by the scheduler.
    Together,
    /// This rail alone, as long as it is usable.
    Alone(RailId),
}

impl Arm {
    /// Returns the rails of this arm out of `usable`.
    pub fn rails(self, usable: RailSet) -> RailSet {
        match self {
            Arm::Together => usable,
            Arm::Alone(rail) => usable.and(RailSet::NONE.with(rail)),
        }
    }

    fn index(self) -> usize {
        match self {
            Arm::Together => 0,
            Arm::Alone(rail) => 1 + rail.index(),
        }
    }
}

/// Parameters of a guard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GuardRule {
    /// Number of blocks on each arm before any decision.
    pub first_measurements: u32,
    /// Number of standard errors that the gain has to exceed; more if there are few blocks.
    pub z: f64,
    /// Number of recent blocks that determine the mean cost of an arm.
    pub memory: u32,
    /// Largest number of blocks after which an arm is measured again.
    pub longest_interval: u64,
}

impl Default for GuardRule {
    /// Defaults: three blocks, two standard errors, 64 blocks, 512 blocks.
    fn default() -> GuardRule {
        GuardRule {
            first_measurements: 3,
            z: 2.0,
            memory: 64,
            longest_interval: 512,
        }
    }
}

/// Number of blocks until an arm that is not preferred is measured again for the first time.
const FIRST_INTERVAL: u64 = 16;

/// Excess of a rail's logarithmic cost over the best single rail (twice its time) above which one first measurement
/// suffices.
const HOPELESS: f64 = std::f64::consts::LN_2;

/// Chooses the arm of each block.
#[derive(Debug, Clone)]
pub struct Guard {
    rule: GuardRule,
    candidates: RailSet,
    arms: [GuardMeasurement; 1 + MAX_RAILS],
    blocks: u64,
}

/// Costs of the blocks of an arm, with fading memory.
#[derive(Debug, Clone, Copy, Default)]
struct GuardMeasurement {
    count: u32,
    weight: f64,
    mean: f64,
    variance: f64,
    last: u64,
    interval: u64,
}

/// Measured gain of all rails together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// The best rail alone.
    pub alone: RailId,
    /// Logarithm of the factor by which all rails together are faster: 0.1 is about a tenth.
    pub gain: f64,
    /// Threshold that the gain has to exceed.
    pub uncertainty: f64,
}

impl Guard {
    /// Creates a guard. `candidates` are the rails that could be the best single rail.
    pub fn new(candidates: RailSet, rule: GuardRule) -> Guard {
        Guard {
            rule,
            candidates,
            arms: [GuardMeasurement::default(); 1 + MAX_RAILS],
            blocks: 0,
        }
    }

    /// Chooses the arm of the next block.
    pub fn choose(&mut self) -> Arm {
        self.blocks += 1;
        if let Some(arm) = self.first_measurement() {
            return arm;
        }
        let preferred = self.preferred();
        let Some(arm) = self.every().find(|arm: &Arm| {
            let measured = &self.arms[arm.index()];
            *arm != preferred && self.blocks - measured.last >= measured.interval
        }) else {
            return preferred;
        };
        let best = self.arms[preferred.index()].mean;
        let measured = &mut self.arms[arm.index()];
        // An arm that looks better is only unproven. Trying it again soon has no known cost.
        if measured.mean >= best {
            measured.interval = (measured.interval * 2).min(self.rule.longest_interval);
        }
        measured.last = self.blocks;
        arm
    }

    /// Returns `true` after the first measurements. Until then blocks may run on bad arms.
    pub fn has_measured_all(&self) -> bool {
        self.first_measurement().is_none()
    }

    /// Reports that a block on `arm` took `took`; the best single rail was expected to need `expected` for it.
    pub fn observe(&mut self, arm: Arm, took: Time, expected: Time) {
        let cost = (took.as_nanos().max(1.0) / expected.as_nanos().max(1.0)).ln();
        let measured = &mut self.arms[arm.index()];
        measured.add(cost, f64::from(self.rule.memory));
        measured.last = self.blocks;
        measured.interval = measured.interval.max(FIRST_INTERVAL);
    }

    /// Measured gain, or `None` before the first measurements.
    pub fn gain(&self) -> Option<Gain> {
        let alone = self.best_alone()?;
        let [one, all] = [Arm::Alone(alone), Arm::Together].map(|arm| &self.arms[arm.index()]);
        if one.count.min(all.count) < self.rule.first_measurements.max(2) {
            return None;
        }
        let uncertainty =
            self.quantile(one, all) * (one.squared_error() + all.squared_error()).sqrt();
        Some(Gain {
            alone,
            gain: one.mean - all.mean,
            uncertainty,
        })
    }

    /// Student's quantile, to first order in the inverse of the degrees of freedom: few blocks prove little.
    fn quantile(&self, one: &GuardMeasurement, all: &GuardMeasurement) -> f64 {
        let z = self.rule.z;
        z * (1.0 + (z * z + 1.0) / (4.0 * (one.weight + all.weight - 2.0).max(1.0)))
    }

    /// Arm that the guard would choose if no measurement were due.
    pub(crate) fn preferred(&self) -> Arm {
        match (self.gain(), self.best_alone()) {
            (Some(known), _) if known.gain > known.uncertainty => Arm::Together,
            (_, Some(alone)) => Arm::Alone(alone),
            (_, None) => Arm::Together,
        }
    }

    /// Returns the arm with the fewest first measurements, or `None` if all arms have enough. A rail that took more than
    /// twice as long as the best single rail needs only one.
    fn first_measurement(&self) -> Option<Arm> {
        let best = self
            .candidates
            .map(|rail| self.arms[Arm::Alone(rail).index()])
            .filter(|arm| arm.count > 0);
        let hopeless = best.map(|arm| arm.mean).fold(f64::INFINITY, f64::min) + HOPELESS;
        self.every()
            .filter(|arm: &Arm| {
                let GuardMeasurement { count, mean, .. } = self.arms[arm.index()];
                let known = *arm != Arm::Together && count > 0 && mean > hopeless;
                count < self.rule.first_measurements && !known
            })
            .min_by_key(|arm| self.arms[arm.index()].count)
    }

    fn best_alone(&self) -> Option<RailId> {
        let mean = |rail: RailId| self.arms[Arm::Alone(rail).index()].mean;
        self.candidates.min_by(|a, b| mean(*a).total_cmp(&mean(*b)))
    }

    fn every(&self) -> impl Iterator<Item = Arm> + use<> {
        std::iter::once(Arm::Together).chain(self.candidates.map(Arm::Alone))
    }
}

impl GuardMeasurement {
    fn add(&mut self, cost: f64, memory: f64) {
        self.count = self.count.saturating_add(1);
        self.weight = (self.weight + 1.0).min(memory.max(2.0));
        let step = 1.0 / self.weight;
        let before = cost - self.mean;
        self.mean += step * before;
        self.variance = (1.0 - step) * (self.variance + step * before * before);
    }

    /// Squared standard error. The divisor is the number of blocks minus one, because few blocks underestimate the variance.
    fn squared_error(&self) -> f64 {
        self.variance / (self.weight - 1.0).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    const RAILS: RailSet = RailSet::first(2);

    /// Runs blocks on the guard's arms with these costs and a noise of ± `noise`. Returns the guard and the mean cost of a
    /// block, without the noise.
    fn play(costs: [f64; 3], noise: f64, blocks: usize) -> (Guard, f64) {
        let mut guard = Guard::new(RAILS, GuardRule::default());
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let mut total = 0.0;
        for _ in 0..blocks {
            let arm = guard.choose();
            let true_cost = costs[arm.index()];
            let took = true_cost * (1.0 + noise * (2.0 * random.random::<f64>() - 1.0));
            guard.observe(
                arm,
                Time::from_micros(100.0 * took),
                Time::from_micros(100.0),
            );
            total += true_cost;
        }
        (guard, total / blocks as f64)
    }

    #[test]
    fn rails_that_hinder_each_other_are_not_used_together() {
        let (guard, cost) = play([1.3, 1.0, 1.6], 0.3, 20_000);
        assert_eq!(guard.preferred(), Arm::Alone(RailId(0)));
        assert!(cost < 1.005, "{cost}: at most half a percent for measuring");
    }

    #[test]
    fn a_gain_is_taken_once_it_exceeds_its_uncertainty() {
        let (guard, cost) = play([0.9, 1.0, 1.2], 0.3, 20_000);
        assert_eq!(guard.preferred(), Arm::Together);
        assert!(cost < 0.905, "{cost}");
    }

    #[test]
    fn without_a_gain_only_the_best_rail_is_used() {
        let (guard, cost) = play([1.0, 1.0, 1.5], 0.2, 20_000);
        let known = guard.gain().unwrap();
        assert!(
            known.gain.abs() < 0.1 && known.uncertainty > 0.0,
            "{known:?}"
        );
        assert!(cost < 1.005, "{cost}");
    }

    #[test]
    fn the_regret_of_measuring_grows_far_slower_than_the_work() {
        let regret = |blocks: usize| (play([1.5, 1.0, 2.0], 0.1, blocks).1 - 1.0) * blocks as f64;
        // 3 first measurements and log2 n more of each arm, and one in 512.
        for blocks in [100, 1000, 10_000] {
            let bound = 1.5 * (3.0 + (blocks as f64).log2() + blocks as f64 / 512.0);
            assert!(regret(blocks) <= bound, "{} {bound}", regret(blocks));
        }
    }

    #[test]
    fn a_rail_ten_times_slower_is_measured_once_at_first() {
        let mut guard = Guard::new(RAILS, GuardRule::default());
        let mut arms = Vec::new();
        while !guard.has_measured_all() {
            let arm = guard.choose();
            arms.push(arm.index());
            guard.observe(
                arm,
                Time::from_micros([0.9, 1.0, 10.0][arm.index()]),
                Time::from_micros(1.0),
            );
        }
        assert_eq!(arms, [0, 1, 2, 0, 1, 0, 1]);
    }

    #[test]
    fn a_changed_world_is_noticed() {
        let (mut guard, _) = play([0.6, 1.0, 1.5], 0.05, 3000);
        assert_eq!(guard.preferred(), Arm::Together);
        for _ in 0..300 {
            let arm = guard.choose();
            let cost = [1.4, 1.0, 1.5][arm.index()];
            guard.observe(
                arm,
                Time::from_micros(100.0 * cost),
                Time::from_micros(100.0),
            );
        }
        assert_eq!(guard.preferred(), Arm::Alone(RailId(0)));
    }
}
