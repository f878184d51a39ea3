//! Simulated annealing: ranks are exchanged, each towards one of its partners.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::links::Metric;
use super::placement::{Instance, Placement};

/// Tries between changes of the temperature.
const BATCH: u64 = 256;

/// One of so many tries goes to any slot.
const ANYWHERE: u32 = 64;

/// Proposals by whose costs temperatures are set.
const SAMPLES: usize = 2000;

/// Temperatures of an annealing, in units of hops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Temperatures {
    pub hot: f64,
    pub cold: f64,
}

impl Temperatures {
    fn at(self, part: f64) -> f64 {
        self.hot * (self.cold / self.hot).powf(part)
    }
}

/// A placement that is annealed.
pub(super) struct Annealer<'a, M: Metric> {
    pub instance: &'a Instance<'a, M>,
    pub placement: Placement,
    random: Pcg64Mcg,
}

impl<'a, M: Metric> Annealer<'a, M> {
    pub(super) fn new(
        instance: &'a Instance<'a, M>,
        placement: Placement,
        seed: u64,
    ) -> Annealer<'a, M> {
        Annealer {
            instance,
            placement,
            random: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    /// What moves cost: the middle, and nearly the least.
    pub(super) fn costs_of_moves(&mut self) -> Temperatures {
        let mut costs = Vec::with_capacity(SAMPLES);
        let samples = if self.instance.movable.is_empty() {
            0
        } else {
            SAMPLES
        };
        for _ in 0..samples {
            if let Some((rank, slot)) = self.proposal() {
                let change = self.placement.change(self.instance, rank, slot);
                costs.extend((change != 0).then_some(change.abs()));
            }
        }
        costs.sort_unstable();
        let at = |part: usize| {
            costs
                .get(costs.len() / part)
                .map_or(1.0, |cost| *cost as f64)
        };
        Temperatures {
            hot: at(2),
            cold: at(20),
        }
    }

    /// Tries so many moves, those numbered `done..done + tries` of an annealing of `all`.
    pub(super) fn anneal(&mut self, temperatures: Temperatures, all: u64, done: u64, tries: u64) {
        let mut at = done;
        while at < done + tries {
            let batch = BATCH.min(done + tries - at);
            let temperature = temperatures.at(at as f64 / all as f64);
            for _ in 0..batch {
                self.step(temperature);
            }
            at += batch;
        }
    }

    /// A rank and a slot for it near one of its partners.
    #[inline]
    fn proposal(&mut self) -> Option<(u32, u32)> {
        let instance = self.instance;
        let rank = instance.movable[self.below(instance.movable.len())];
        let partners = instance.partners(rank);
        let draw = self.random.random::<u32>();
        let slot = if draw % ANYWHERE == 0 {
            self.below(instance.node_of_slot.len()) as u32
        } else {
            let partner = partners[self.below(partners.len())].rank;
            let near = instance.near(self.placement.node_of_rank[partner as usize]);
            // The nearer, the likelier.
            let place = self.below(near.len()) * self.below(near.len()) / near.len();
            let slots = instance.slots_of(near[place]);
            slots.start + self.below(slots.len()) as u32
        };
        let from = self.placement.node_of_rank[rank as usize];
        (instance.node_of_slot[slot as usize] != from).then_some((rank, slot))
    }

    #[inline]
    fn below(&mut self, count: usize) -> usize {
        let draw = self.random.random::<u32>();
        ((u64::from(draw) * count as u64) >> 32) as usize
    }

    #[inline]
    fn step(&mut self, temperature: f64) {
        let Some((rank, slot)) = self.proposal() else {
            return;
        };
        let change = self.placement.change(self.instance, rank, slot);
        let accepts = change <= 0 || {
            let draw: f64 = self.random.random();
            (change as f64) < -temperature * draw.ln()
        };
        if accepts {
            self.placement.exchange(self.instance, rank, slot, change);
        }
    }
}
