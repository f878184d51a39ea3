//! Who has a processor: each node runs as many ranks at once as it has processors, the others queue up.
//!
//! A rank that computes, or spends overhead, has a processor; one that waits for a message has none and goes to the
//! back of its node's queue when it is woken. After a computation a rank keeps its processor for the call that
//! follows (it goes to the front of the queue); between two computations it goes to the back.

use super::super::placement::Placement;
use super::messages::NONE;
use crate::units::{Node, Rank};

/// Where in its node's queue a rank goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before all others.
    Front,
    /// Behind all others.
    Back,
}

#[derive(Debug, Clone, Copy)]
struct NodeState {
    free: u32,
    first: u32,
    last: u32,
}

/// The processors of all nodes and the ranks that wait for one.
#[derive(Debug, Clone)]
pub struct Processors {
    nodes: Vec<NodeState>,
    node_of: Vec<u32>,
    /// By rank: the next in the queue of its node.
    next: Vec<u32>,
    /// Nodes in whose queue something changed since the last round.
    changed: Vec<u32>,
}

impl Processors {
    /// All free.
    pub fn new(placement: &Placement, ranks: usize) -> Processors {
        let node = |node| {
            let group = &placement.groups()[placement.group_index(Node(node))];
            NodeState { free: group.cpus.max(1), first: NONE, last: NONE }
        };
        Processors {
            nodes: (0..placement.nodes() as u32).map(node).collect(),
            node_of: (0..ranks as u32).map(|rank| placement.node(Rank(rank)).0).collect(),
            next: vec![NONE; ranks],
            changed: Vec::new(),
        }
    }

    /// The node of a rank.
    #[inline(always)]
    pub fn node(&self, rank: u32) -> u32 {
        self.node_of[rank as usize]
    }

    /// A rank wants a processor.
    #[inline(always)]
    pub fn queue(&mut self, rank: u32, place: Place) {
        let number = self.node_of[rank as usize];
        let node = &mut self.nodes[number as usize];
        if node.first == NONE {
            self.changed.push(number);
            self.next[rank as usize] = NONE;
            (node.first, node.last) = (rank, rank);
        } else if place == Place::Front {
            self.next[rank as usize] = node.first;
            node.first = rank;
        } else {
            self.next[rank as usize] = NONE;
            self.next[node.last as usize] = rank;
            node.last = rank;
        }
    }

    /// A rank gives its processor back.
    #[inline(always)]
    pub fn release(&mut self, rank: u32) {
        let number = self.node_of[rank as usize];
        let node = &mut self.nodes[number as usize];
        node.free += 1;
        if node.first != NONE {
            self.changed.push(number);
        }
    }

    /// A rank takes the processor back that it has just given back, unless it is gone.
    #[inline(always)]
    pub fn keep(&mut self, rank: u32) -> bool {
        let node = &mut self.nodes[self.node_of[rank as usize] as usize];
        let free = node.free > 0;
        node.free -= u32::from(free);
        free
    }

    /// Whether the node of `rank` has a free processor, and no other rank would get one in the next round.
    #[inline(always)]
    pub fn nobody_waits(&self, rank: u32) -> bool {
        self.changed.is_empty() && self.nodes[self.node_of[rank as usize] as usize].free > 0
    }

    /// The next rank that gets a processor of the node of `rank`.
    #[inline(always)]
    pub fn next_beside(&mut self, rank: u32) -> Option<u32> {
        self.take(self.node_of[rank as usize])
    }

    /// The next rank of any node that gets a processor: by node, then in the order of the node's queue.
    #[inline(always)]
    pub fn next(&mut self) -> Option<u32> {
        if self.changed.is_empty() {
            return None;
        }
        self.next_of_changed()
    }

    fn next_of_changed(&mut self) -> Option<u32> {
        if !self.changed.is_sorted_by(|a, b| a > b) {
            // Highest first: nodes are taken from the end.
            self.changed.sort_unstable_by(|a, b| b.cmp(a));
            self.changed.dedup();
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
    fn take(&mut self, number: u32) -> Option<u32> {
        let node = &mut self.nodes[number as usize];
        if node.free == 0 || node.first == NONE {
            return None;
        }
        let rank = node.first;
        node.first = self.next[rank as usize];
        node.free -= 1;
        Some(rank)
    }
}
