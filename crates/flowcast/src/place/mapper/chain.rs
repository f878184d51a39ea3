//! A chain of annealings, which may be stopped at any time: each begins with the best placement, some barely warm and some hot, and
//! each round of them is longer than the one before.

use super::{
    super::links::Metric,
    anneal::{Annealer, Temperatures},
    placement::{Instance, Placement},
};

/// Tries for each rank in the first annealings.
const FIRST_SWEEPS: u64 = 100;

/// The temperatures at which annealings begin, in units of what a move costs.
const HEATS: [f64; 3] = [0.02, 0.3, 0.08];

/// The same of so few ranks that they may all change their places.
const FEW: usize = 300;
const HEATS_OF_FEW: [f64; 3] = [1.0, 0.3, 0.1];

/// The temperature at which they end.
const COLD: f64 = 0.02;

/// One search on one thread.
pub(super) struct Chain<'a, M: Metric> {
    annealer: Annealer<'a, M>,
    best: Placement,
    costs: Temperatures,
    /// Annealings that are over.
    annealings: usize,
    /// Tries of the present one that are done.
    done: u64,
}

impl<'a, M: Metric> Chain<'a, M> {
    pub(super) fn new(
        instance: &'a Instance<'a, M>,
        placement: Placement,
        seed: u64,
    ) -> Chain<'a, M> {
        let mut annealer = Annealer::new(instance, placement, seed);
        Chain {
            best: annealer.placement.clone(),
            costs: annealer.costs_of_moves(),
            annealer,
            // So that two chains do not do the same.
            annealings: (seed % HEATS.len() as u64) as usize,
            done: 0,
        }
    }

    pub(super) fn best(&self) -> &Placement {
        &self.best
    }

    /// Begins its next annealing with this placement, if it is better.
    pub(super) fn learn(&mut self, placement: &Placement) {
        if placement.hops < self.best.hops {
            self.best.clone_from(placement);
        }
    }

    /// Tries so many moves.
    pub(super) fn advance(&mut self, tries: u64) {
        let mut left = tries;
        let is_few = self.annealer.instance.movable.len() <= FEW;
        let heats = if is_few { HEATS_OF_FEW } else { HEATS };
        while left > 0 {
            let (round, heat) = (self.annealings / HEATS.len(), self.annealings % HEATS.len());
            let temperatures = Temperatures {
                hot: self.costs.hot * heats[heat],
                cold: self.costs.cold * COLD,
            };
            let ranks = self.annealer.instance.movable.len() as u64;
            let all = (FIRST_SWEEPS * ranks) << round.min(40);
            let part = left.min(all - self.done);
            self.annealer.anneal(temperatures, all, self.done, part);
            self.done += part;
            left -= part;
            if self.done == all {
                self.keep_best();
                self.annealer.placement.clone_from(&self.best);
                self.annealings += 1;
                self.done = 0;
            }
        }
        self.keep_best();
    }

    fn keep_best(&mut self) {
        if self.annealer.placement.hops < self.best.hops {
            self.best.clone_from(&self.annealer.placement);
        }
    }
}
