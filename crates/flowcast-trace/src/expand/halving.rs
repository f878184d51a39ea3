//! Algorithms on a power of two of ranks: recursive doubling and halving (Rabenseifner, Thakur).
//!
//! With another number of ranks, the first `2(P - 2^k)` are joined in pairs: one of each pair hands its data to the
//! other, which takes part, and gets its result back at the end.

use super::{
    moves::{Effect, MovedBlocks, Part},
    plan::Plan,
    tree::{Branch, CollectiveTree},
};

/// The ranks that take part, numbered `0..size`.
#[derive(Debug, Clone, Copy)]
struct Fold {
    /// A power of two.
    size: u32,
    /// Pairs that were joined.
    pairs: u32,
    /// In the pair of this rank it is the one that takes part; in all others the second.
    kept: u32,
}

/// A rank's place in a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HalvingRole {
    /// It hands its data to this rank.
    Joined(u32),
    /// It takes part under this number; another rank may have handed it data.
    Active(u32, Option<u32>),
}

impl Fold {
    fn new(ranks: u32, kept: u32) -> Fold {
        let size = 1 << ranks.ilog2();
        Fold {
            size,
            pairs: ranks - size,
            kept,
        }
    }

    fn role(self, rank: u32) -> HalvingRole {
        if rank >= 2 * self.pairs {
            return HalvingRole::Active(rank - self.pairs, None);
        }
        let active = self.real(rank / 2);
        if rank == active {
            HalvingRole::Active(rank / 2, Some(rank ^ 1))
        } else {
            HalvingRole::Joined(active)
        }
    }

    fn real(self, number: u32) -> u32 {
        match number {
            number if number >= self.pairs => number + self.pairs,
            number if self.kept / 2 == number && self.kept < 2 * self.pairs => self.kept,
            number => 2 * number + 1,
        }
    }

    /// The first of the real ranks behind a number.
    fn first(self, number: u32) -> u32 {
        if number <= self.pairs {
            2 * number
        } else {
            number + self.pairs
        }
    }
}

/// Blocks of the ranks behind numbers `from..to`.
type Span = (u32, u32);

impl Plan<'_> {
    /// Up a tree and down again.
    pub(super) fn meet(&mut self, tree: CollectiveTree) {
        let Branch { parent, children } = tree.branch(self.rank, self.ranks);
        for child in children.iter().rev() {
            self.recv(*child, Part::NOTHING);
        }
        if let Some(parent) = parent {
            self.send(parent, Part::NOTHING);
            self.recv(parent, Part::NOTHING);
        }
        for child in children {
            self.send(child, Part::NOTHING);
        }
    }

    pub(super) fn barrier_doubling(&mut self) {
        self.doubling(Part::NOTHING, Part::NOTHING);
    }

    /// The whole vector with partners 1, 2, 4, ... away: `log2 P` steps.
    pub(super) fn allreduce_doubling(&mut self) {
        self.doubling(Part::combine(0, 1), Part::place(0, 1));
    }

    fn doubling(&mut self, exchanged: Part, handed_back: Part) {
        let fold = Fold::new(self.ranks, u32::MAX);
        let (number, joined) = match fold.role(self.rank) {
            HalvingRole::Joined(active) => {
                self.send(active, exchanged);
                return self.recv(active, handed_back);
            }
            HalvingRole::Active(number, joined) => (number, joined),
        };
        if let Some(joined) = joined {
            self.recv(joined, exchanged);
        }
        for mask in powers(fold.size) {
            let other = fold.real(number ^ mask);
            self.exchange(other, exchanged, other, exchanged);
        }
        if let Some(joined) = joined {
            self.send(joined, handed_back);
        }
    }

    /// Rabenseifner: halves are combined, then gathered again; `2 log2 P` steps for twice the vector in all.
    pub(super) fn allreduce_halving(&mut self) {
        let all = self.parts;
        let fold = Fold::new(self.ranks, u32::MAX);
        let (number, joined) = match fold.role(self.rank) {
            HalvingRole::Joined(active) => {
                self.send(active, Part::combine(0, all));
                return self.recv(active, Part::place(0, all));
            }
            HalvingRole::Active(number, joined) => (number, joined),
        };
        if let Some(joined) = joined {
            self.recv(joined, Part::combine(0, all));
        }
        self.halve(fold, number, |(from, to)| Part::combine(from, to - from));
        for mask in powers(fold.size) {
            let (own, others) = (number & !(mask - 1), (number ^ mask) & !(mask - 1));
            let other = fold.real(number ^ mask);
            self.exchange(
                other,
                Part::place(own, mask),
                other,
                Part::place(others, mask),
            );
        }
        if let Some(joined) = joined {
            self.send(joined, Part::place(0, all));
        }
    }

    /// Rabenseifner's reduction: halves are combined, then gathered up a binomial tree.
    pub(super) fn reduce_halving(&mut self) {
        let all = self.parts;
        let fold = Fold::new(self.ranks, self.root);
        let number = match fold.role(self.rank) {
            HalvingRole::Joined(active) => return self.send(active, Part::combine(0, all)),
            HalvingRole::Active(number, joined) => {
                if let Some(joined) = joined {
                    self.recv(joined, Part::combine(0, all));
                }
                number
            }
        };
        self.halve(fold, number, |(from, to)| Part::combine(from, to - from));
        let HalvingRole::Active(root, _) = fold.role(self.root) else {
            return;
        };
        for mask in powers(fold.size) {
            let other = fold.real(number ^ mask);
            if (number ^ root) & mask != 0 {
                return self.send(other, Part::place(number & !(mask - 1), mask));
            }
            self.recv(other, Part::place((number ^ mask) & !(mask - 1), mask));
        }
    }

    /// Each step combines half of what is left with a partner half as far away; `number` ends with its own blocks.
    fn halve(&mut self, fold: Fold, number: u32, part: impl Fn(Span) -> Part) {
        let (mut low, mut high) = (0, fold.size);
        for mask in powers(fold.size).rev() {
            let middle = low + mask;
            let (kept, given) = if number & mask == 0 {
                ((low, middle), (middle, high))
            } else {
                ((middle, high), (low, middle))
            };
            let other = fold.real(number ^ mask);
            self.exchange(other, part(given), other, part(kept));
            (low, high) = kept;
        }
    }

    pub(super) fn reduce_scatter_halving(&mut self) {
        let Some((fold, number, joined)) = self.join_vectors() else {
            return;
        };
        self.halve(fold, number, |(from, to)| {
            Part::combine(fold.first(from), fold.first(to) - fold.first(from))
        });
        if let Some(joined) = joined {
            self.send(joined, Part::place(joined, 1));
        }
    }

    /// Halves with partners 1, 2, 4, ... away; the blocks end at mirrored numbers and are sent home.
    pub(super) fn reduce_scatter_butterfly(&mut self) {
        let Some((fold, number, joined)) = self.join_vectors() else {
            return;
        };
        let span = |(from, to): Span| (fold.first(from), fold.first(to) - fold.first(from));
        let (mut low, mut high) = (0, fold.size);
        for mask in powers(fold.size) {
            let middle = low + (high - low) / 2;
            let (kept, given) = if number & mask == 0 {
                ((low, middle), (middle, high))
            } else {
                ((middle, high), (low, middle))
            };
            let other = fold.real(number ^ mask);
            let combined = |half: Span| Part::combine(span(half).0, span(half).1);
            self.exchange(other, combined(given), other, combined(kept));
            (low, high) = kept;
        }
        if low != number {
            // Mirroring twice is no mirroring: who has this rank's blocks gets its blocks from it.
            let other = fold.real(low);
            let place = |number: u32| {
                Part::place(span((number, number + 1)).0, span((number, number + 1)).1)
            };
            self.exchange(other, place(low), other, place(number));
        }
        if let Some(joined) = joined {
            self.send(joined, Part::place(joined, 1));
        }
    }

    /// Halves with partners 1, 2, 4, ... away, each half every second of the blocks left, so that this rank's own is left at
    /// the end. For a power of two.
    pub(super) fn reduce_scatter_interleaved(&mut self) {
        for mask in powers(self.ranks) {
            let other = self.rank ^ mask;
            let of = |rank: u32| Part {
                blocks: MovedBlocks::Every {
                    step: 2 * mask,
                    first: rank & (2 * mask - 1),
                },
                effect: Effect::Combine,
            };
            self.exchange(other, of(other), other, of(self.rank));
        }
    }

    /// The first of a pair hands its vector to the second and waits for its block.
    fn join_vectors(&mut self) -> Option<(Fold, u32, Option<u32>)> {
        let all = Part::combine(0, self.ranks);
        let fold = Fold::new(self.ranks, u32::MAX);
        match fold.role(self.rank) {
            HalvingRole::Joined(active) => {
                self.send(active, all);
                self.recv(active, Part::place(self.rank, 1));
                None
            }
            HalvingRole::Active(number, joined) => {
                if let Some(joined) = joined {
                    self.recv(joined, all);
                }
                Some((fold, number, joined))
            }
        }
    }

    /// Everything that the partner's side still needs, with partners 1, 2, 4, ... away; for a power of two.
    pub(super) fn reduce_scatter_doubling(&mut self) {
        for mask in powers(self.ranks) {
            let other = self.rank ^ mask;
            let without = |rank: u32| {
                let own = rank & !(mask - 1);
                Part::combine((own + mask) % self.ranks, self.ranks - mask)
            };
            self.exchange(other, without(self.rank), other, without(other));
        }
    }

    /// Twice as many blocks in each step; this rank begins with block `own`. For a power of two.
    pub(super) fn allgather_doubling(&mut self, own: u32) {
        for mask in powers(self.ranks) {
            let other = own ^ mask;
            let real = (self.rank + self.ranks + other - own) % self.ranks;
            let part = |block: u32| Part::place(block & !(mask - 1), mask);
            self.exchange(real, part(own), real, part(other));
        }
    }

    /// Sums over ever larger groups; what comes from lower ranks counts for the result.
    pub(super) fn scan_doubling(&mut self) {
        let part = Part::combine(0, 1);
        let mut mask = 1;
        while mask < self.ranks {
            let other = self.rank ^ mask;
            if other < self.ranks {
                self.exchange(other, part, other, part);
            }
            mask *= 2;
        }
    }
}

/// 1, 2, 4, ... below `size`.
fn powers(size: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..size.ilog2()).map(|bit| 1 << bit)
}
