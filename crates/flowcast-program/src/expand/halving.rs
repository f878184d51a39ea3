//! Algorithms for a number of ranks that is a power of a base: recursive doubling and halving (Rabenseifner, Thakur).
//!
//! If the number of ranks is not such a power, the first ranks form groups as large as the base. One rank of each group
//! takes part in the algorithm. The others send it their data and get their results back at the end. With base 2, the groups
//! are pairs.

use super::{
    moves::{Effect, ExpandedMove, MessagePart, MovedBlocks},
    plan::{Joining, Plan},
    tree::{Branch, CollectiveTree},
};

/// Ranks that take part, numbered `0..size`.
#[derive(Debug, Clone, Copy)]
struct Fold {
    base: u32,
    /// Number of ranks that take part: a power of the base.
    size: u32,
    /// Number of steps of an exchange: `size` is the base to this power.
    steps: u32,
    /// Number of ranks that do not take part.
    joined: u32,
    /// Rank that takes part whatever its place in its group; `u32::MAX` if there is none.
    kept: u32,
    /// Place of the rank that takes part in each other group.
    active: GroupEnd,
}

/// An end of a group of neighbouring ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupEnd {
    First,
    Last,
}

/// Role of a rank in a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HalvingRole {
    /// The rank hands its data to this rank.
    Joined(u32),
    /// The rank takes part under this number.
    Active(u32),
}

impl Fold {
    fn new(ranks: u32, base: u32, kept: u32) -> Fold {
        let base = base.clamp(2, ranks.max(2));
        let steps = ranks.ilog(base);
        let size = base.pow(steps);
        Fold {
            base,
            size,
            steps,
            joined: ranks - size,
            kept,
            active: GroupEnd::Last,
        }
    }

    fn role(self, rank: u32) -> HalvingRole {
        let number = match rank.checked_sub(self.first(self.groups())) {
            None => rank / self.base,
            Some(behind) => self.groups() + behind.saturating_sub(self.joined % (self.base - 1)),
        };
        let active = self.real(number);
        if rank == active {
            HalvingRole::Active(number)
        } else {
            HalvingRole::Joined(active)
        }
    }

    /// Number of groups as large as the base. The group after them may be smaller, and those after it have one rank each.
    fn groups(self) -> u32 {
        self.joined / (self.base - 1)
    }

    fn real(self, number: u32) -> u32 {
        let behind = self.first(number + 1);
        if (self.first(number)..behind).contains(&self.kept) {
            return self.kept;
        }
        match self.active {
            GroupEnd::First => self.first(number),
            GroupEnd::Last => behind - 1,
        }
    }

    /// First real rank of the group with this number.
    fn first(self, number: u32) -> u32 {
        if number <= self.groups() {
            self.base * number
        } else {
            number + self.joined
        }
    }

    /// Ranks that hand their data to the one that takes part under this number.
    fn joined(self, number: u32) -> impl Iterator<Item = u32> {
        let active = self.real(number);
        (self.first(number)..self.first(number + 1)).filter(move |rank| *rank != active)
    }

    /// Returns `number` with its digit at position `step` (in base `base`) replaced by the same digit of `other`.
    fn with_digit_of(self, number: u32, other: u32, step: u32) -> u32 {
        let place = self.base.pow(step);
        number - number / place % self.base * place + other / place % self.base * place
    }

    /// Numbers that differ from `number` only in the digit of this step.
    fn partners(self, number: u32, step: u32) -> impl Iterator<Item = u32> {
        let place = self.base.pow(step);
        let without = self.with_digit_of(number, 0, step);
        (0..self.base)
            .map(move |digit| without + digit * place)
            .filter(move |partner| *partner != number)
    }

    /// Part that remains for a number after `steps` steps of halving, with the nearest partner first. Each digit selects a
    /// part.
    fn window(self, number: u32, steps: u32) -> Span {
        let (mut from, mut count, mut rest) = (0, self.size, number);
        for _ in 0..steps {
            count /= self.base;
            from += rest % self.base * count;
            rest /= self.base;
        }
        Span { from, count }
    }

    /// Ranks of the groups with these numbers.
    fn real_ranks(self, numbers: Span) -> Span {
        let from = self.first(numbers.from);
        Span {
            from,
            count: self.first(numbers.from + numbers.count) - from,
        }
    }

    /// Ranks of the groups whose numbers differ from `number` only in digits below a step.
    fn ranks_behind(self, number: u32, step: u32) -> Span {
        let count = self.base.pow(step);
        self.real_ranks(Span {
            from: number - number % count,
            count,
        })
    }
}

/// Neighbouring blocks or numbers.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: u32,
    count: u32,
}

impl Span {
    fn placed(self) -> MessagePart {
        MessagePart::place(self.from, self.count)
    }

    fn combined(self) -> MessagePart {
        MessagePart::combine(self.from, self.count)
    }
}

/// A rank that takes part in a fold.
#[derive(Debug, Clone, Copy)]
struct Member {
    fold: Fold,
    number: u32,
}

impl Plan<'_> {
    /// Sends empty messages up a tree and down again.
    pub(super) fn meet(&mut self, tree: CollectiveTree) {
        let Branch { parent, children } = tree.branch(self.rank, self.ranks);
        for child in children.iter().rev() {
            self.recv(*child, MessagePart::NOTHING);
        }
        if let Some(parent) = parent {
            self.send(parent, MessagePart::NOTHING);
            self.recv(parent, MessagePart::NOTHING);
        }
        for child in children {
            self.send(child, MessagePart::NOTHING);
        }
    }

    pub(super) fn barrier_doubling(&mut self) {
        self.doubling(MessagePart::NOTHING, MessagePart::NOTHING);
    }

    /// Exchanges the whole vector with partners at distances 1, 2, 4, ...: `log2 P` steps. With another base `k`, there are
    /// `k - 1` partners in each of `log_k P` steps.
    pub(super) fn allreduce_doubling(&mut self) {
        self.doubling(MessagePart::combine(0, 1), MessagePart::place(0, 1));
    }

    fn doubling(&mut self, exchanged: MessagePart, handed_back: MessagePart) {
        let Some(member) = self.join(|_| exchanged, handed_back) else {
            return;
        };
        for step in 0..member.fold.steps {
            self.meet_partners(member, step, |_| exchanged, |_| exchanged);
        }
        self.hand_back(member, |_| handed_back);
    }

    /// Rabenseifner's allreduce: combines halves, then gathers them. In `2 log2 P` steps, each rank sends about twice the
    /// vector in total. The nearest partner gets the largest part.
    pub(super) fn allreduce_halving(&mut self, joining: Joining) {
        let whole = MessagePart::place(0, self.parts);
        let member = match self.join_for_halving(joining, u32::MAX) {
            Ok(member) => member,
            Err(active) => return self.recv(active, whole),
        };
        self.halve(member);
        for step in (0..member.fold.steps).rev() {
            self.gather_from_partners(member, step, |number| {
                member.fold.window(number, step + 1).placed()
            });
        }
        self.hand_back(member, |_| whole);
    }

    /// Rabenseifner's reduction: combines halves, then gathers them up a binomial tree, the smallest parts first.
    pub(super) fn reduce_halving(&mut self, joining: Joining) {
        let Ok(member) = self.join_for_halving(joining, self.root) else {
            return;
        };
        let Member { fold, number } = member;
        self.halve(member);
        let HalvingRole::Active(root) = fold.role(self.root) else {
            return;
        };
        for step in (0..fold.steps).rev() {
            let parent = fold.with_digit_of(number, root, step);
            if parent != number {
                return self.send(fold.real(parent), fold.window(number, step + 1).placed());
            }
            for child in fold.partners(number, step) {
                self.recv(fold.real(child), fold.window(child, step + 1).placed());
            }
        }
    }

    /// Sends the vectors of ranks that do not take part to the ranks that do. `kept` is a rank that must take part.
    ///
    /// # Errors
    /// The rank that takes part in place of this one.
    fn join_for_halving(&mut self, joining: Joining, kept: u32) -> Result<Member, u32> {
        let whole = MessagePart::combine(0, self.parts);
        let half = self.parts / 2;
        let (left, right) = (
            MessagePart::combine(0, half),
            MessagePart::combine(half, half),
        );
        let combined = MessagePart::place(half, half);
        let fold = match joining {
            Joining::Vectors => Fold::new(self.ranks, self.base(), kept),
            Joining::Halves => Fold {
                active: GroupEnd::First,
                ..Fold::new(self.ranks, 2, kept)
            },
        };
        match (fold.role(self.rank), joining) {
            (HalvingRole::Joined(active), Joining::Vectors) => {
                self.send(active, whole);
                Err(active)
            }
            (HalvingRole::Joined(active), Joining::Halves) => {
                self.exchange(active, left, active, right);
                self.send(active, combined);
                Err(active)
            }
            (HalvingRole::Active(number), _) => {
                for joined in fold.joined(number) {
                    if joining == Joining::Vectors {
                        self.recv(joined, whole);
                        continue;
                    }
                    self.exchange(joined, right, joined, left);
                    self.recv(joined, combined);
                }
                Ok(Member { fold, number })
            }
        }
    }

    /// In each step, the ranks combine their remaining part with partners further away. Each of them keeps an equal share of
    /// it.
    fn halve(&mut self, member: Member) {
        for step in 0..member.fold.steps {
            self.leave_to_partners(member, step, |number| {
                member.fold.window(number, step + 1).combined()
            });
        }
    }

    /// Receives each partner's part, and sends this rank's part to each partner.
    fn gather_from_partners(
        &mut self,
        member: Member,
        step: u32,
        part: impl Fn(u32) -> MessagePart,
    ) {
        let own = part(member.number);
        self.meet_partners(member, step, |_| own, part);
    }

    /// Sends each partner the part with which the partner continues. Receives from all partners the part with which this
    /// rank continues, and combines it.
    fn leave_to_partners(&mut self, member: Member, step: u32, part: impl Fn(u32) -> MessagePart) {
        let own = part(member.number);
        self.meet_partners(member, step, part, |_| own);
    }

    /// Exchanges messages with all partners of a step.
    fn meet_partners(
        &mut self,
        member: Member,
        step: u32,
        sent: impl Fn(u32) -> MessagePart,
        received: impl Fn(u32) -> MessagePart,
    ) {
        let Member { fold, number } = member;
        for partner in fold.partners(number, step) {
            self.put(ExpandedMove::Post {
                from: fold.real(partner),
                part: received(partner),
            });
        }
        for partner in fold.partners(number, step) {
            self.put(ExpandedMove::Start {
                to: fold.real(partner),
                part: sent(partner),
            });
        }
        self.put(ExpandedMove::WaitAll);
    }

    /// Sends the data of ranks that do not take part to the ranks that do. Returns `None` for a rank that does not take
    /// part; its steps also contain the receive of the result.
    fn join(
        &mut self,
        handed: impl Fn(u32) -> MessagePart,
        handed_back: MessagePart,
    ) -> Option<Member> {
        let fold = Fold::new(self.ranks, self.base(), u32::MAX);
        match fold.role(self.rank) {
            HalvingRole::Joined(active) => {
                self.send(active, handed(self.rank));
                self.recv(active, handed_back);
                None
            }
            HalvingRole::Active(number) => {
                for joined in fold.joined(number) {
                    self.recv(joined, handed(joined));
                }
                Some(Member { fold, number })
            }
        }
    }

    /// Sends the results to the ranks that do not take part.
    fn hand_back(&mut self, member: Member, part: impl Fn(u32) -> MessagePart) {
        for joined in member.fold.joined(member.number) {
            self.send(joined, part(joined));
        }
    }

    /// Gathers all blocks: each step exchanges the blocks of ever larger sets of groups.
    pub(super) fn allgather_exchange(&mut self) {
        let all = MessagePart::place(0, self.ranks);
        let Some(member) = self.join(|rank| MessagePart::place(rank, 1), all) else {
            return;
        };
        for step in 0..member.fold.steps {
            self.gather_from_partners(member, step, |number| {
                member.fold.ranks_behind(number, step).placed()
            });
        }
        self.hand_back(member, |_| all);
    }

    /// Each step combines half of the remaining blocks with a partner at half the distance; this rank ends with its own
    /// blocks.
    pub(super) fn reduce_scatter_halving(&mut self) {
        let Some(member) = self.join_vectors() else {
            return;
        };
        for step in (0..member.fold.steps).rev() {
            self.leave_to_partners(member, step, |number| {
                member.fold.ranks_behind(number, step).combined()
            });
        }
        self.hand_back(member, |joined| MessagePart::place(joined, 1));
    }

    /// Exchanges halves with partners at distances 1, 2, 4, ...; the blocks end at mirrored numbers and are then sent to
    /// their ranks.
    pub(super) fn reduce_scatter_butterfly(&mut self) {
        let Some(member) = self.join_vectors() else {
            return;
        };
        let Member { fold, number } = member;
        for step in 0..fold.steps {
            self.leave_to_partners(member, step, |number| {
                fold.real_ranks(fold.window(number, step + 1)).combined()
            });
        }
        let Span { from: last, .. } = fold.window(number, fold.steps);
        if last != number {
            // Mirroring is its own inverse: the rank that has this rank's blocks gets its own from here.
            let other = fold.real(last);
            let [sent, received] =
                [last, number].map(|number| fold.ranks_behind(number, 0).placed());
            self.exchange(other, sent, other, received);
        }
        self.hand_back(member, |joined| MessagePart::place(joined, 1));
    }

    /// Exchanges halves with partners at distances 1, 2, 4, ... Each half has every second of the remaining blocks, so this
    /// rank's own block remains at the end. Requires a power of two.
    pub(super) fn reduce_scatter_interleaved(&mut self) {
        for mask in powers(self.ranks) {
            let other = self.rank ^ mask;
            let [sent, received] = [other, self.rank].map(|rank| MessagePart {
                blocks: MovedBlocks::Every {
                    step: 2 * mask,
                    first: rank & (2 * mask - 1),
                },
                effect: Effect::Combine,
            });
            self.exchange(other, sent, other, received);
        }
    }

    /// Sends the vectors of ranks that do not take part to the ranks that do. Returns `None` for a rank that does not take
    /// part; its steps also contain the receive of its block.
    fn join_vectors(&mut self) -> Option<Member> {
        let own = MessagePart::place(self.rank, 1);
        let all = MessagePart::combine(0, self.ranks);
        self.join(|_| all, own)
    }

    /// Exchanges all blocks that the partner's side still needs, with partners at distances 1, 2, 4, ... Requires a power of
    /// two.
    pub(super) fn reduce_scatter_doubling(&mut self) {
        for mask in powers(self.ranks) {
            let other = self.rank ^ mask;
            let [sent, received] = [self.rank, other].map(|rank| {
                let own = rank & !(mask - 1);
                MessagePart::combine((own + mask) % self.ranks, self.ranks - mask)
            });
            self.exchange(other, sent, other, received);
        }
    }

    /// Doubles the blocks in each step; this rank starts with block `own`.
    ///
    /// If the number of ranks is not a power of two, the last half of a step may be incomplete. Ranks of the other half
    /// without a partner in it then get its blocks from those with a partner, by recursive halving.
    pub(super) fn allgather_doubling(&mut self, own: u32) {
        let ranks = self.ranks;
        let real = |plan: &Plan<'_>, number: u32| (plan.rank + ranks + number - own) % ranks;
        let masks = (0..u32::BITS)
            .map(|bit| 1u32 << bit)
            .take_while(|mask| *mask < ranks);
        for mask in masks {
            let begin = |number: u32| number & !(mask - 1);
            let blocks =
                |number| MessagePart::place(begin(number), mask.min(ranks - begin(number)));
            let other = own ^ mask;
            if other < ranks {
                let to = real(self, other);
                self.exchange(to, blocks(own), to, blocks(other));
            }
            if begin(other) >= ranks || begin(other) + mask <= ranks {
                continue;
            }
            let have = ranks - begin(other);
            for step in powers(mask).rev() {
                let (other_half, low) = (own ^ step, own & !(2 * step - 1));
                let (has, other_has) = (own < low + have, other_half < low + have);
                let peer = real(self, other_half);
                if has && !other_has && other_half > own {
                    self.send(peer, blocks(other));
                } else if other_has && !has && other_half < own {
                    self.recv(peer, blocks(other));
                }
            }
        }
    }

    /// Combines data over increasingly large groups. Only data from lower ranks enter the result.
    pub(super) fn scan_doubling(&mut self) {
        let part = MessagePart::combine(0, 1);
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
