//! Operations along trees.
//!
//! Ranks are counted from the root here: rank `v` of the tree is rank `(root + v) mod P` of the communicator.

use super::{
    moves::{ExpandedMove, MessagePart},
    plan::Plan,
    tree::{Branch, CollectiveTree, binomial_span},
};

impl Plan<'_> {
    /// Sends the vector down a tree, piece by piece. The receive of the next piece is posted while this one is forwarded.
    pub(super) fn down(&mut self, tree: CollectiveTree) {
        let Branch {
            parent,
            mut children,
        } = self.branch(tree);
        if tree == CollectiveTree::Flat {
            // The flat algorithm does not count ranks from the root.
            children.sort_unstable();
        }
        for piece in 0..self.parts {
            if let Some(parent) = parent {
                self.recv_piece(parent, piece, self.parts, 0);
            }
            self.send_piece(&children, |_| MessagePart::place(piece, 1));
        }
    }

    /// Parent and children of this rank in a tree, by their ranks in the communicator.
    fn branch(&self, tree: CollectiveTree) -> Branch {
        let Branch { parent, children } = tree.branch(self.number(), self.ranks);
        Branch {
            parent: parent.map(|parent| self.real(parent)),
            children: children.into_iter().map(|child| self.real(child)).collect(),
        }
    }

    /// Receives piece `piece` of `pieces`, counted from 0 at block `first`, with the receive of the next piece already
    /// posted.
    fn recv_piece(&mut self, from: u32, piece: u32, pieces: u32, first: u32) {
        if pieces == 1 {
            return self.recv(from, MessagePart::place(first + piece, 1));
        }
        let ahead = if piece == 0 {
            0..2
        } else {
            piece + 1..piece + 2
        };
        for piece in ahead.start..ahead.end.min(pieces) {
            self.put(ExpandedMove::Post {
                from,
                part: MessagePart::place(first + piece, 1),
            });
        }
        self.put(ExpandedMove::WaitRecv {
            ago: u32::from(piece + 1 < pieces),
        });
    }

    /// Sends a piece to all children at the same time.
    fn send_piece(&mut self, children: &[u32], part: impl Fn(u32) -> MessagePart) {
        for to in children {
            self.put(ExpandedMove::Start {
                to: *to,
                part: part(*to),
            });
        }
        if !children.is_empty() {
            self.put(ExpandedMove::WaitSends);
        }
    }

    /// Sends the vector up a tree, piece by piece, and combines it on the way.
    ///
    /// Along chains and binary trees, and in pieces, the receive from the next child or of the next piece is posted during
    /// the wait for the one before (Open MPI, coll_base_reduce.c, `reduce_generic`).
    pub(super) fn up(&mut self, tree: CollectiveTree) {
        let Branch {
            parent,
            mut children,
        } = self.branch(tree);
        let is_in_tree_order = !matches!(tree, CollectiveTree::Flat | CollectiveTree::Knomial(_));
        if !is_in_tree_order {
            children.reverse();
        }
        let looks_ahead = is_in_tree_order || self.parts > 1;
        let receives = children.len() as u32 * self.parts;
        let receive = |number: u32| ExpandedMove::Post {
            from: children[number as usize % children.len()],
            part: MessagePart::combine(number / children.len() as u32, 1),
        };
        for piece in 0..self.parts {
            for (place, child) in (0..).zip(&children) {
                let number = piece * children.len() as u32 + place;
                if !looks_ahead || receives == 1 {
                    self.recv(*child, MessagePart::combine(piece, 1));
                    continue;
                }
                if number == 0 {
                    self.put(receive(0));
                }
                let is_last = number + 1 == receives;
                if !is_last {
                    self.put(receive(number + 1));
                }
                self.put(ExpandedMove::WaitRecv {
                    ago: u32::from(!is_last),
                });
            }
            if let Some(parent) = parent {
                self.send(parent, MessagePart::combine(piece, 1));
            }
        }
    }

    /// Combines the vector up a tree that keeps the data in the order of the ranks. The top of the tree then sends the
    /// result to the root.
    pub(super) fn up_in_order(&mut self) {
        let (mut low, mut high) = (0, self.ranks);
        let mut parent = None;
        let own = self.rank;
        while own != high - 1 {
            let middle = low + (high - 1 - low) / 2;
            parent = Some(high - 1);
            (low, high) = if own < middle {
                (low, middle)
            } else {
                (middle, high - 1)
            };
        }
        let middle = low + (high - 1 - low) / 2;
        let part = MessagePart::combine(0, 1);
        for (from, to) in [(low, middle), (middle, high - 1)] {
            if from < to {
                self.recv(to - 1, part);
            }
        }
        let top = self.ranks - 1;
        match parent {
            Some(parent) => self.send(parent, part),
            None if self.root != top => self.send(self.root, MessagePart::place(0, 1)),
            None => {}
        }
        if own == self.root && own != top {
            self.recv(top, MessagePart::place(0, 1));
        }
    }

    /// Sends blocks from the root to their ranks, down the binomial tree. Block numbers begin at `origin`.
    pub(super) fn scatter_binomial(&mut self, origin: u32) {
        let own = self.number();
        let Branch { parent, children } = CollectiveTree::Knomial(2).branch(own, self.ranks);
        if let Some(parent) = parent {
            self.recv(self.real(parent), self.below(own, origin));
        }
        for child in children {
            self.send(self.real(child), self.below(child, origin));
        }
    }

    /// Sends blocks from their ranks to the root, up the binomial tree.
    pub(super) fn gather_binomial(&mut self) {
        let own = self.number();
        let Branch { parent, children } = CollectiveTree::Knomial(2).branch(own, self.ranks);
        for child in children.into_iter().rev() {
            self.recv(self.real(child), self.below(child, self.root));
        }
        if let Some(parent) = parent {
            self.send(self.real(parent), self.below(own, self.root));
        }
    }

    /// Blocks of a rank and of the ranks below it in the binomial tree.
    fn below(&self, rank: u32, origin: u32) -> MessagePart {
        MessagePart::place(
            (origin + rank) % self.ranks,
            binomial_span(rank, self.ranks),
        )
    }

    /// Sends one half of the vector down each side of the binary tree. Then neighbours on the two sides swap halves.
    pub(super) fn split_binary(&mut self) {
        let own = self.number();
        let half = self.parts / 2;
        let Branch { parent, children } = self.branch(CollectiveTree::Binary);
        for piece in 0..half {
            if let Some(parent) = parent {
                self.recv_piece(parent, piece, half, half_of(own, half));
            }
            let root = self.root;
            let ranks = self.ranks;
            self.send_piece(&children, |to| {
                let number = (to + ranks - root) % ranks;
                MessagePart::place(half_of(number, half) + piece, 1)
            });
        }
        self.swap_halves(own, half);
    }

    fn swap_halves(&mut self, own: u32, half: u32) {
        // If the number of ranks is even, the last one has no neighbour on the other side. The root sends to it instead.
        let lonely = self.ranks.is_multiple_of(2).then_some(self.ranks - 1);
        let (first, second) = (MessagePart::place(0, half), MessagePart::place(half, half));
        if own == 0 {
            if let Some(last) = lonely {
                self.send(self.real(last), second);
            }
        } else if Some(own) == lonely {
            self.recv(self.real(0), second);
        } else if own % 2 == 1 {
            let other = self.real(own + 1);
            self.exchange(other, first, other, second);
        } else {
            let other = self.real(own - 1);
            self.exchange(other, second, other, first);
        }
    }
}

/// First piece of the half that this rank forwards.
fn half_of(rank: u32, half: u32) -> u32 {
    if rank % 2 == 1 { 0 } else { half }
}
