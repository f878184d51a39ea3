//! A chain of simulated annealing.

use flowcast_units::Node;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::placement::{Instance, Link, Placement};

/// Tries for each rank in the first annealing.
const FIRST_SWEEPS: u64 = 60;

/// Tries between changes of the temperature.
const BATCH: u64 = 256;

/// One of so many tries goes to any slot.
const ANYWHERE: u32 = 64;

/// One search on one thread.
pub(super) struct Chain<'a, L> {
    instance: &'a Instance<'a, L>,
    random: Pcg64Mcg,
    placement: Placement,
    best: Placement,
    /// Tries of the present annealing, and how many of them are done.
    cycle: u64,
    done: u64,
    hot: f64,
    cold: f64,
}

impl<'a, L: Link> Chain<'a, L> {
    pub(super) fn new(instance: &'a Instance<'a, L>, seed: u64) -> Chain<'a, L> {
        let random = Pcg64Mcg::seed_from_u64(seed);
        let slots = (0..instance.ranks() as u32).collect();
        let placement = Placement::new(instance, slots);
        let mut chain = Chain {
            instance,
            random,
            best: placement.clone(),
            placement,
            cycle: FIRST_SWEEPS * instance.movable_ranks() as u64,
            done: 0,
            hot: 0.0,
            cold: 0.0,
        };
        if instance.movable_ranks() > 0 {
            chain.calibrate();
        }
        chain
    }

    pub(super) fn best_hops(&self) -> i64 {
        self.best.hops
    }

    pub(super) fn best_nodes(&self) -> Vec<Node> {
        self.best.node_of_rank.iter().copied().map(Node).collect()
    }

    /// Sets the temperatures by what moves cost.
    fn calibrate(&mut self) {
        let mut costs = Vec::new();
        for _ in 0..2000 {
            if let Some((rank, slot)) = self.proposal() {
                let change = self.placement.change(self.instance, rank, slot);
                costs.extend((change != 0).then_some(change.abs()));
            }
        }
        costs.sort_unstable();
        if let (Some(least), Some(middle)) =
            (costs.get(costs.len() / 20), costs.get(costs.len() / 2))
        {
            self.hot = *middle as f64;
            self.cold = *least as f64 * 0.1;
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
            let node = near[self.below(near.len())] as usize;
            let slots = instance.first_slot[node]..instance.first_slot[node + 1];
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

    /// Tries so many moves.
    pub(super) fn advance(&mut self, tries: u64) {
        let mut left = tries;
        while left > 0 {
            let batch = BATCH.min(left).min(self.cycle - self.done);
            let part = self.done as f64 / self.cycle as f64;
            let temperature = self.hot * (self.cold / self.hot).powf(part);
            for _ in 0..batch {
                self.step(temperature);
            }
            self.done += batch;
            left -= batch;
            if self.done == self.cycle {
                self.keep_best();
                self.done = 0;
                self.cycle = self.cycle * 3 / 2;
            }
        }
        self.keep_best();
    }

    fn keep_best(&mut self) {
        if self.placement.hops < self.best.hops {
            self.best.clone_from(&self.placement);
        }
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
