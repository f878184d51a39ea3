//! Assignment of processors to ranks: each node runs as many ranks at the same time as it has processors; other ranks wait
//! in its queue.
//!
//! A rank that computes, or spends overhead, has a processor. A rank that waits for a message has none, and goes to the back
//! of its node's queue when it is woken. After a computation, a rank keeps its processor for the call that follows (it goes
//! to the front of the queue). Between two computations it goes to the back. With priorities, the queue is first ordered by
//! priority. If no two ranks share a node, nothing has to be counted: a rank that requests a processor gets it in the next
//! round. If all nodes are parts of one machine, as in a lab, its processors have one queue for the ranks of all nodes. A
//! progress stream has a processor of its own, with an index after those of the nodes.

use std::{cmp::Ordering, collections::VecDeque};

use super::{super::placement::Placement, messages::NONE};
use flowcast_units::Rank;

/// Position at which a rank enters its node's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Before all other waiting ranks.
    Front,
    /// Behind all other waiting ranks.
    Back,
}

#[derive(Debug, Clone)]
struct NodeState {
    free: u32,
    /// Ranks that wait for a processor.
    waiting: VecDeque<Rank>,
}

/// The processors of all nodes and the ranks that wait for one.
#[derive(Debug, Clone)]
pub(super) struct Processors {
    nodes: Vec<NodeState>,
    /// Node whose processors a rank uses, indexed by rank; a progress stream has one of its own.
    homes: Vec<u32>,
    /// Priority of each rank, indexed by rank; empty without priorities.
    priorities: Vec<i32>,
    /// Rank of each node, indexed by node, if no two ranks share a node; otherwise empty.
    rank_of: Vec<u32>,
    /// `true` if the rank requests its processor, indexed by rank, if no two ranks share a node; otherwise empty.
    wants: Vec<bool>,
    /// Nodes whose queue has changed since the last round, the highest first if `sorted`.
    changed: Vec<u32>,
    sorted: bool,
}

impl Processors {
    /// All processors, free. `shared` is the number of processors of a machine that contains all nodes, or 0 without such a
    /// machine. These processors then belong to the first node.
    pub(super) fn new(
        placement: &Placement,
        streams: usize,
        priorities: Vec<i32>,
        shared: u32,
    ) -> Processors {
        let are_shared = shared > 0;
        let mut nodes: Vec<NodeState> = if are_shared {
            vec![with(shared)]
        } else {
            placement
                .groups_by_node()
                .map(|group| with(group.cpus.max(1)))
                .collect()
        };
        let (ranks, first_stream) = (placement.ranks(), nodes.len() as u32);
        nodes.extend((ranks..streams).map(|_| with(1)));
        let homes: Vec<u32> = Rank::all(streams)
            .map(|rank| match rank.0.checked_sub(ranks as u32) {
                None if are_shared => 0,
                None => placement.node(rank).0,
                Some(stream) => first_stream + stream,
            })
            .collect();
        let alone = !placement.is_shared() && !are_shared;
        let mut rank_of = vec![NONE; if alone { nodes.len() } else { 0 }];
        if alone {
            let ranks = homes.iter().zip(0..);
            ranks.for_each(|(home, rank)| rank_of[*home as usize] = rank);
        }
        Processors {
            nodes,
            homes,
            priorities,
            rank_of,
            wants: vec![false; if alone { streams } else { 0 }],
            changed: Vec::new(),
            sorted: true,
        }
    }

    /// `true` if no two ranks share a node.
    #[inline(always)]
    pub(super) fn are_alone(&self) -> bool {
        !self.wants.is_empty()
    }

    #[inline(always)]
    fn note_change(&mut self, node: u32) {
        self.sorted &= self.changed.last().is_none_or(|last| *last >= node);
        self.changed.push(node);
    }

    /// `true` if a node has a free processor.
    pub(super) fn has_free(&self, node: u32) -> bool {
        self.are_alone() || self.nodes[node as usize].free > 0
    }

    /// Number of nodes, including one for each progress stream.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Node whose processors a rank uses.
    #[inline(always)]
    pub(super) fn home(&self, rank: Rank) -> u32 {
        self.homes[rank]
    }

    /// Queues a rank for a processor.
    #[inline(always)]
    pub(super) fn queue(&mut self, rank: Rank, place: Place) {
        let number = self.home(rank);
        if self.are_alone() {
            self.wants[rank] = true;
            return self.note_change(number);
        }
        let waiting = &mut self.nodes[number as usize].waiting;
        let at = match self.priorities.get(rank.index()) {
            None if place == Place::Front => 0,
            None => waiting.len(),
            Some(own) => {
                let is_behind = |other: &Rank| match self.priorities[*other].cmp(own) {
                    Ordering::Equal => place == Place::Front,
                    order => order.is_gt(),
                };
                waiting.iter().position(is_behind).unwrap_or(waiting.len())
            }
        };
        waiting.insert(at, rank);
        if waiting.len() == 1 {
            self.note_change(number);
        }
    }

    /// Releases the processor of a rank.
    #[inline(always)]
    pub(super) fn release(&mut self, rank: Rank) {
        if self.are_alone() {
            return;
        }
        let number = self.home(rank);
        let node = &mut self.nodes[number as usize];
        node.free += 1;
        if !node.waiting.is_empty() {
            self.note_change(number);
        }
    }

    /// Returns the processor that a rank has just released to this rank; `false` if no processor is free any more.
    #[inline(always)]
    pub(super) fn keep(&mut self, rank: Rank) -> bool {
        if self.are_alone() {
            return true;
        }
        let home = self.home(rank) as usize;
        let node = &mut self.nodes[home];
        let free = node.free > 0;
        node.free -= u32::from(free);
        free
    }

    /// `true` if the node of `rank` has a free processor, and no other rank would get one in the next round.
    #[inline(always)]
    pub(super) fn nobody_waits(&self, rank: Rank) -> bool {
        self.changed.is_empty()
            && (self.are_alone() || self.nodes[self.home(rank) as usize].free > 0)
    }

    /// The next rank that gets a processor of the node of `rank`.
    #[inline(always)]
    pub(super) fn next_beside(&mut self, rank: Rank) -> Option<Rank> {
        self.take(self.home(rank))
    }

    /// The next rank of any node that gets a processor: in the order of nodes, then of the node's queue.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Rank> {
        if self.changed.is_empty() {
            return None;
        }
        self.next_of_changed()
    }

    fn next_of_changed(&mut self) -> Option<Rank> {
        if !self.sorted {
            // Highest first, because nodes are taken from the end.
            self.changed.sort_unstable_by(|a, b| b.cmp(a));
            self.sorted = true;
        }
        while let Some(node) = self.changed.last() {
            if let Some(rank) = self.take(*node) {
                return Some(rank);
            }
            self.changed.pop();
        }
        None
    }

    #[inline(always)]
    fn take(&mut self, number: u32) -> Option<Rank> {
        if self.are_alone() {
            let rank = Rank(self.rank_of[number as usize]);
            return std::mem::replace(&mut self.wants[rank], false).then_some(rank);
        }
        let node = &mut self.nodes[number as usize];
        if node.free == 0 {
            return None;
        }
        let rank = node.waiting.pop_front()?;
        node.free -= 1;
        Some(rank)
    }
}

fn with(free: u32) -> NodeState {
    NodeState {
        free,
        waiting: VecDeque::new(),
    }
}
