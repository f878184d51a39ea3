//! Algorithms in which data go round the ranks: rings, chains of neighbours, all pairs, Bruck's distances.

use super::{
    moves::{Effect, ExpandedMove, MessagePart, MovedBlocks},
    plan::Plan,
};

impl Plan<'_> {
    /// Rank at this distance ahead.
    fn ahead(&self, distance: u32) -> u32 {
        (self.rank + distance) % self.ranks
    }

    /// Rank at this distance behind, for distances up to the number of ranks.
    fn behind(&self, distance: u32) -> u32 {
        (self.rank + self.ranks - distance) % self.ranks
    }

    fn all_but_root(&self) -> impl Iterator<Item = u32> + use<> {
        let root = self.root;
        (0..self.ranks).filter(move |rank| *rank != root)
    }

    /// Each block goes round once; this rank starts with block `own`. `P - 1` steps.
    pub(super) fn allgather_ring(&mut self, own: u32) {
        let (next, before) = (self.ahead(1), self.behind(1));
        for step in 0..self.ranks - 1 {
            let [sent, received] = [0, 1].map(|behind| {
                MessagePart::place((own + 2 * self.ranks - step - behind) % self.ranks, 1)
            });
            self.exchange(next, sent, before, received);
        }
    }

    /// Each block goes round and collects a contribution at each rank; it ends at the rank with its number.
    pub(super) fn reduce_scatter_ring(&mut self) {
        let (next, before) = (self.ahead(1), self.behind(1));
        for step in 1..self.ranks {
            let [sent, received] = [0, 1].map(|behind| {
                MessagePart::combine((self.rank + 2 * self.ranks - step - behind) % self.ranks, 1)
            });
            self.exchange(next, sent, before, received);
        }
    }

    /// Each rank sends its contributions directly to the ranks that combine them, one after another.
    pub(super) fn reduce_scatter_pairwise(&mut self) {
        for distance in 1..self.ranks {
            let (from, to) = (self.ahead(distance), self.behind(distance));
            self.exchange(
                to,
                MessagePart::combine(to, 1),
                from,
                MessagePart::combine(self.rank, 1),
            );
        }
    }

    /// The vector goes round in phases. In each phase, a piece of each block is combined at every rank. Then whole blocks go
    /// round once more. With several pieces, the receive of the next is posted while this one is combined and forwarded.
    pub(super) fn allreduce_ring(&mut self) {
        let phases = self.parts / self.ranks;
        if phases == 1 {
            self.reduce_scatter_ring();
            return self.allgather_ring(self.rank);
        }
        let (next, before) = (self.ahead(1), self.behind(1));
        for phase in 0..phases {
            // This rank first sends a piece of the block before its own, and combines its own last.
            let pieces: Vec<MessagePart> = (1..=self.ranks)
                .map(|behind| (self.rank + self.ranks - behind) % self.ranks)
                .map(|block| MessagePart::combine(block * phases + phase, 1))
                .collect();
            for (step, pair) in pieces.windows(2).enumerate() {
                self.put(ExpandedMove::Post {
                    from: before,
                    part: pair[1],
                });
                if step > 0 {
                    self.put(ExpandedMove::WaitRecv { ago: 1 });
                }
                self.send(next, pair[0]);
            }
            self.put(ExpandedMove::WaitRecv { ago: 0 });
        }
        for step in 0..self.ranks - 1 {
            let [sent, received] = [0, 1].map(|behind| {
                let block = (self.rank + 2 * self.ranks - step - behind) % self.ranks;
                MessagePart::place(block * phases, phases)
            });
            self.exchange(next, sent, before, received);
        }
    }

    /// Bruck's allgather: in each step, a rank doubles its blocks by those of a rank ahead. `ceil(log2 P)` steps. With
    /// another base `k`, blocks come from `k - 1` ranks in each of `ceil(log_k P)` steps.
    pub(super) fn allgather_bruck(&mut self) {
        let mut have = 1;
        while have < self.ranks {
            let (base, ranks) = (self.base(), self.ranks);
            let distances = (1..base)
                .map_while(move |digit| have.checked_mul(digit))
                .take_while(move |distance| *distance < ranks);
            for distance in distances.clone() {
                let from = self.ahead(distance);
                self.put(ExpandedMove::Post {
                    from,
                    part: MessagePart::place(from, have.min(self.ranks - distance)),
                });
            }
            for distance in distances {
                self.put(ExpandedMove::Start {
                    to: self.behind(distance),
                    part: MessagePart::place(self.rank, have.min(self.ranks - distance)),
                });
            }
            self.put(ExpandedMove::WaitAll);
            have = have.saturating_mul(self.base());
        }
    }

    /// Sparbit (Loch and Koslovski, 2021): distances halve, and each block has its own message. A rank that has the blocks
    /// at even multiples of the distance gets those at odd multiples from the rank at that distance behind. `ceil(log2 P)`
    /// steps.
    pub(super) fn allgather_sparbit(&mut self) {
        let mut distance = self.ranks.next_power_of_two() / 2;
        while distance > 0 {
            let (to, from) = (self.ahead(distance), self.behind(distance));
            let blocks = (self.ranks - distance).div_ceil(2 * distance);
            for block in 0..blocks {
                let sent = self.behind(2 * block * distance);
                self.put(ExpandedMove::Start {
                    to,
                    part: MessagePart::place(sent, 1),
                });
                let received = self.behind((2 * block + 1) * distance);
                self.put(ExpandedMove::Post {
                    from,
                    part: MessagePart::place(received, 1),
                });
            }
            self.put(ExpandedMove::WaitAll);
            distance /= 2;
        }
    }

    /// All blocks are sent at the same time, directly from their ranks.
    pub(super) fn allgather_linear(&mut self) {
        for distance in 1..self.ranks {
            let from = self.ahead(distance);
            self.put(ExpandedMove::Post {
                from,
                part: MessagePart::place(from, 1),
            });
        }
        for distance in 1..self.ranks {
            self.put(ExpandedMove::Start {
                to: self.behind(distance),
                part: MessagePart::place(self.rank, 1),
            });
        }
        self.put(ExpandedMove::WaitAll);
    }

    /// Neighbours on alternating sides swap the blocks that arrived last: two blocks in each step but the first. `P/2`
    /// steps, for even `P`.
    pub(super) fn neighbor_exchange(&mut self) {
        let even = self.rank.is_multiple_of(2);
        let (first, second) = if even {
            (self.ahead(1), self.behind(1))
        } else {
            (self.behind(1), self.ahead(1))
        };
        self.exchange(
            first,
            MessagePart::place(self.rank, 1),
            first,
            MessagePart::place(first, 1),
        );
        let own = self.rank - self.rank % 2;
        let mut arriving = [own, own];
        let mut last = own;
        for step in 1..self.ranks / 2 {
            let turn = step as usize % 2;
            let forward = even == (turn == 0);
            arriving[turn] =
                (arriving[turn] + if forward { 2 } else { self.ranks - 2 }) % self.ranks;
            let other = [first, second][turn];
            self.exchange(
                other,
                MessagePart::place(last, 2),
                other,
                MessagePart::place(arriving[turn], 2),
            );
            last = arriving[turn];
        }
    }

    /// All messages are in flight at the same time, or batches of `width` of them.
    pub(super) fn alltoall_linear(&mut self, width: u32) {
        let mut done = 0;
        while done < self.ranks - 1 {
            let batch = done + 1..(done + 1).saturating_add(width).min(self.ranks);
            done = batch.end - 1;
            for distance in batch.clone() {
                self.post_pair(distance);
            }
            for distance in batch {
                self.start_pair(distance);
            }
            self.put(ExpandedMove::WaitAll);
        }
    }

    /// All messages are sent at the same time, each rank in the same order: the first rank gets all its messages first, the
    /// last rank all of its last.
    pub(super) fn alltoall_in_order(&mut self) {
        let own = self.rank;
        let others: Vec<u32> = (0..self.ranks).filter(|rank| *rank != own).collect();
        others.iter().for_each(|from| {
            self.put(ExpandedMove::Post {
                from: *from,
                part: pair(*from, own),
            })
        });
        others.iter().for_each(|to| {
            self.put(ExpandedMove::Start {
                to: *to,
                part: pair(own, *to),
            })
        });
        self.put(ExpandedMove::WaitAll);
    }

    /// Up to `width` receives and sends are open at the same time; the next one follows when the oldest has completed.
    pub(super) fn alltoall_window(&mut self, width: u32) {
        let width = width.min(self.ranks - 1);
        for distance in 1..=width {
            self.post_pair(distance);
        }
        for distance in 1..=width {
            self.start_pair(distance);
        }
        for distance in width + 1..self.ranks {
            self.put(ExpandedMove::WaitRecv { ago: width - 1 });
            self.post_pair(distance);
            self.put(ExpandedMove::WaitSend { ago: width - 1 });
            self.start_pair(distance);
        }
        self.put(ExpandedMove::WaitAll);
    }

    fn post_pair(&mut self, distance: u32) {
        let from = self.ahead(distance);
        self.put(ExpandedMove::Post {
            from,
            part: pair(from, self.rank),
        });
    }

    fn start_pair(&mut self, distance: u32) {
        let to = self.behind(distance);
        self.put(ExpandedMove::Start {
            to,
            part: pair(self.rank, to),
        });
    }

    /// All pairs swap in the order of their ranks, the lower one first: data received take the place of the data sent.
    pub(super) fn alltoall_pairwise_in_order(&mut self) {
        let own = self.rank;
        for other in (0..self.ranks).filter(|rank| *rank != own) {
            self.exchange(other, pair(own, other), other, pair(other, own));
        }
    }

    /// Each step has one partner to send to and one to receive from.
    pub(super) fn alltoall_pairwise(&mut self) {
        for distance in 1..self.ranks {
            let (to, from) = (self.ahead(distance), self.behind(distance));
            self.exchange(to, pair(self.rank, to), from, pair(from, self.rank));
        }
    }

    /// Bruck's alltoall: for each bit of the distance, sends all blocks that must go that far. `ceil(log2 P)` steps.
    pub(super) fn alltoall_bruck(&mut self) {
        let mut bit = 0;
        while 1 << bit < self.ranks {
            let part = MessagePart {
                blocks: MovedBlocks::DistanceBit(bit),
                effect: Effect::Place,
            };
            let (to, from) = (self.ahead(1 << bit), self.behind(1 << bit));
            self.exchange(to, part, from, part);
            bit += 1;
        }
    }

    /// The root receives from one rank after another.
    pub(super) fn gather_linear(&mut self) {
        if self.rank != self.root {
            return self.send(self.root, MessagePart::place(self.rank, 1));
        }
        for rank in self.all_but_root() {
            self.recv(rank, MessagePart::place(rank, 1));
        }
    }

    /// The root requests data from each rank. The rank sends a first piece and then the rest. The root waits for each first
    /// piece before it requests data from the next rank, and waits for the rests at the end. Each rank has two blocks.
    pub(super) fn gather_in_two_parts(&mut self) {
        let (first, rest) = (
            |rank: u32| MessagePart::place(2 * rank, 1),
            |rank: u32| MessagePart::place(2 * rank + 1, 1),
        );
        if self.rank != self.root {
            self.recv(self.root, MessagePart::NOTHING);
            self.send(self.root, first(self.rank));
            return self.send(self.root, rest(self.rank));
        }
        for rank in self.all_but_root() {
            self.put(ExpandedMove::Post {
                from: rank,
                part: first(rank),
            });
            self.send(rank, MessagePart::NOTHING);
            self.put(ExpandedMove::Post {
                from: rank,
                part: rest(rank),
            });
            self.put(ExpandedMove::WaitRecv { ago: 1 });
        }
        self.put(ExpandedMove::WaitAll);
    }

    /// The root sends to one rank after another.
    pub(super) fn scatter_linear(&mut self) {
        if self.rank != self.root {
            return self.recv(self.root, MessagePart::place(self.rank, 1));
        }
        for to in self.all_but_root() {
            self.send(to, MessagePart::place(to, 1));
        }
    }

    /// The root starts all sends, then waits for them.
    pub(super) fn scatter_immediate(&mut self) {
        if self.rank != self.root {
            return self.recv(self.root, MessagePart::place(self.rank, 1));
        }
        for to in self.all_but_root() {
            self.put(ExpandedMove::Start {
                to,
                part: MessagePart::place(to, 1),
            });
        }
        self.put(ExpandedMove::WaitAll);
    }

    /// Each rank waits for the rank before it and adds its own data.
    pub(super) fn scan_linear(&mut self) {
        if self.rank > 0 {
            self.recv(self.rank - 1, MessagePart::combine(0, 1));
        }
        if self.rank + 1 < self.ranks {
            self.send(self.rank + 1, MessagePart::combine(0, 1));
        }
    }

    /// A token goes round twice.
    pub(super) fn double_ring(&mut self) {
        let (next, before) = (self.ahead(1), self.behind(1));
        for _ in 0..2 {
            if self.rank > 0 {
                self.recv(before, MessagePart::NOTHING);
            }
            self.send(next, MessagePart::NOTHING);
            if self.rank == 0 {
                self.recv(before, MessagePart::NOTHING);
            }
        }
    }

    /// In step `k`, an empty message comes from `2^k` behind and one goes to `2^k` ahead. `ceil(log2 P)` steps.
    pub(super) fn dissemination(&mut self) {
        let mut distance = 1;
        while distance < self.ranks {
            let (to, from) = (self.ahead(distance), self.behind(distance));
            self.exchange(to, MessagePart::NOTHING, from, MessagePart::NOTHING);
            distance *= 2;
        }
    }
}

fn pair(from: u32, to: u32) -> MessagePart {
    MessagePart {
        blocks: MovedBlocks::Pair { from, to },
        effect: Effect::Place,
    }
}
