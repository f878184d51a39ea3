//! A chain of annealings that may be stopped at any time. Each annealing starts with the best placement, at a low or a high
//! temperature. Each round of annealings is longer than the previous one. A move exchanges a rank with the content of a
//! slot near one of its partners.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{
    super::links::Metric,
    placement::{Instance, SlotPlacement},
};

/// Number of tries for each rank in the first annealings.
const FIRST_SWEEPS: u64 = 100;

/// Temperatures at which annealings start, in units of the cost of a move.
const HEATS: [f64; 3] = [0.02, 0.3, 0.08];

/// Largest number of communicating ranks for which `HEATS_OF_FEW` replaces `HEATS`. At these temperatures, all ranks may
/// move.
const FEW: usize = 300;
const HEATS_OF_FEW: [f64; 3] = [1.0, 0.3, 0.1];

/// Temperature at which annealings end, in units of the cost of a cheap move.
const COLD: f64 = 0.02;

/// Number of tries between changes of the temperature.
const BATCH: u64 = 256;

/// One try in this number goes to an arbitrary slot.
const ANYWHERE: u32 = 64;

/// Number of proposals whose costs determine the temperatures.
const SAMPLES: usize = 2000;

/// Temperatures at the start and the end of an annealing, in units of hops.
#[derive(Debug, Clone, Copy)]
struct Temperatures {
    hot: f64,
    cold: f64,
}

impl Temperatures {
    fn at(self, part: f64) -> f64 {
        self.hot * (self.cold / self.hot).powf(part)
    }
}

/// One search on one thread.
pub(super) struct SearchChain<'a, M: Metric> {
    instance: &'a Instance<'a, M>,
    placement: SlotPlacement,
    best: SlotPlacement,
    random: Pcg64Mcg,
    costs: Temperatures,
    /// Number of completed annealings.
    annealings: usize,
    /// Number of completed tries of the present annealing.
    done: u64,
}

impl<'a, M: Metric> SearchChain<'a, M> {
    pub(super) fn new(
        instance: &'a Instance<'a, M>,
        placement: SlotPlacement,
        seed: u64,
    ) -> SearchChain<'a, M> {
        let mut chain = SearchChain {
            instance,
            best: placement.clone(),
            placement,
            random: Pcg64Mcg::seed_from_u64(seed),
            costs: Temperatures {
                hot: 1.0,
                cold: 1.0,
            },
            // Different starts keep two chains from repeating each other.
            annealings: (seed % HEATS.len() as u64) as usize,
            done: 0,
        };
        chain.costs = chain.costs_of_moves();
        chain
    }

    pub(super) fn best(&self) -> &SlotPlacement {
        &self.best
    }

    /// Adopts a placement for the next annealing if it is better than the best so far.
    pub(super) fn learn(&mut self, placement: &SlotPlacement) {
        if placement.hops < self.best.hops {
            self.best.clone_from(placement);
        }
    }

    /// Tries `tries` moves and updates the best placement. The next call continues an annealing that is not complete.
    pub(super) fn advance(&mut self, tries: u64) {
        let mut left = tries;
        let is_few = self.instance.movable.len() <= FEW;
        let heats = if is_few { HEATS_OF_FEW } else { HEATS };
        while left > 0 {
            let (round, heat) = (self.annealings / HEATS.len(), self.annealings % HEATS.len());
            let temperatures = Temperatures {
                hot: self.costs.hot * heats[heat],
                cold: self.costs.cold * COLD,
            };
            let ranks = self.instance.movable.len() as u64;
            let all = (FIRST_SWEEPS * ranks) << round.min(40);
            let part = left.min(all - self.done);
            self.anneal(temperatures, all, self.done, part);
            self.done += part;
            left -= part;
            if self.done == all {
                self.keep_best();
                self.placement.clone_from(&self.best);
                self.annealings += 1;
                self.done = 0;
            }
        }
        self.keep_best();
    }

    fn keep_best(&mut self) {
        if self.placement.hops < self.best.hops {
            self.best.clone_from(&self.placement);
        }
    }

    /// Returns typical costs of moves: the median, and the 5 % quantile.
    fn costs_of_moves(&mut self) -> Temperatures {
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
        let [hot, cold] = [2, 20].map(|part| {
            costs
                .get(costs.len() / part)
                .map_or(1.0, |cost| *cost as f64)
        });
        Temperatures { hot, cold }
    }

    /// Tries `tries` moves: those numbered `done..done + tries` of an annealing with `all` moves.
    fn anneal(&mut self, temperatures: Temperatures, all: u64, done: u64, tries: u64) {
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

    /// Proposes a rank and a slot for it, usually near one of its partners. `None` if the rank is already on that node.
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
            // Nearer nodes are more likely.
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
