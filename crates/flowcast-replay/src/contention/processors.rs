//! Who has a processor: each node runs as many ranks at once as it has processors, the others queue up.
//!
//! A rank that computes, or spends overhead, has a processor; one that waits for a message has none and goes to the
//! back of its node's queue when it is woken. After a computation a rank keeps its processor for the call that
//! follows (it goes to the front of the queue); between two computations it goes to the back. With priorities the queue
//! is ordered by them first. Where no two ranks share a node there is nothing to count: whoever wants a processor gets
//! it in the next round. Where all nodes are parts of one machine, as in a lab, its processors have one queue for the ranks of
//! all nodes. A progress stream has a processor of its own, which stands behind those of the nodes.

use super::{super::placement::Placement, messages::NONE};
use flowcast_units::{Node, Rank};

/// Where in its node's queue a rank goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Before all others that wait.
    Front,
    /// Behind all others that wait.
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
pub(super) struct Processors {
    nodes: Vec<NodeState>,
    node_of: Vec<Node>,
    /// How many ranks there are, before their progress streams.
    ranks: u32,
    /// Whether the first of `nodes` has the processors of all nodes.
    are_shared: bool,
    /// By rank: the next in the queue of its node.
    next: Vec<u32>,
    /// By rank, with priorities only.
    priorities: Vec<i32>,
    /// By node, if no two ranks share one: its rank. Else empty.
    rank_of: Vec<u32>,
    /// By rank, if no two share a node: whether it wants its processor.
    wants: Vec<bool>,
    /// Nodes in whose queue something changed since the last round, the highest first if `sorted`.
    changed: Vec<u32>,
    sorted: bool,
}

impl Processors {
    /// All free; `shared` are the processors of the machine that all nodes are parts of, 0 if they are not.
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
            (0..placement.nodes() as u32)
                .map(|node| {
                    with(
                        placement.groups()[placement.group_index(Node(node))]
                            .cpus
                            .max(1),
                    )
                })
                .collect()
        };
        let node_of: Vec<Node> = (0..streams as u32)
            .map(|rank| placement.node(Rank(rank)))
            .collect();
        let alone = !placement.is_shared() && !are_shared;
        let ranks = placement.ranks() as u32;
        let streams_of_ranks = ranks..streams as u32;
        let mut rank_of = vec![NONE; if alone { placement.nodes() } else { 0 }];
        if alone {
            (0..ranks).for_each(|rank| rank_of[node_of[rank as usize]] = rank);
            rank_of.extend(streams_of_ranks.clone());
        }
        nodes.extend(streams_of_ranks.map(|_| with(1)));
        Processors {
            nodes,
            node_of,
            ranks,
            are_shared,
            next: vec![NONE; streams],
            priorities,
            rank_of,
            wants: vec![false; if alone { streams } else { 0 }],
            changed: Vec::new(),
            sorted: true,
        }
    }

    /// Whether no two ranks share a node.
    #[inline(always)]
    pub(super) fn are_alone(&self) -> bool {
        !self.wants.is_empty()
    }

    #[inline(always)]
    fn note_change(&mut self, node: u32) {
        self.sorted &= self.changed.last().is_none_or(|last| *last >= node);
        self.changed.push(node);
    }

    /// Whether a node has a free processor.
    pub(super) fn has_free(&self, node: u32) -> bool {
        self.are_alone() || self.nodes[node as usize].free > 0
    }

    /// The node of a rank.
    #[inline(always)]
    pub(super) fn node(&self, rank: Rank) -> Node {
        self.node_of[rank]
    }

    /// How many nodes there are, one for each progress stream included.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node whose processors a rank uses; for a progress stream the one that is its own.
    #[inline(always)]
    pub(super) fn home(&self, rank: Rank) -> u32 {
        match rank.0.checked_sub(self.ranks) {
            None if self.are_shared => 0,
            None => self.node_of[rank].0,
            Some(stream) => {
                (self.nodes.len() - (self.node_of.len() - self.ranks as usize)) as u32 + stream
            }
        }
    }

    /// A rank wants a processor.
    #[inline(always)]
    pub(super) fn queue(&mut self, rank: Rank, place: Place) {
        let number = self.home(rank);
        if self.are_alone() {
            self.wants[rank] = true;
            return self.note_change(number);
        }
        let node = &mut self.nodes[number as usize];
        if node.first == NONE {
            self.next[rank] = NONE;
            (node.first, node.last) = (rank.0, rank.0);
            self.note_change(number);
        } else if !self.priorities.is_empty() {
            self.queue_by_priority(rank, place);
        } else if place == Place::Front {
            self.next[rank] = node.first;
            node.first = rank.0;
        } else {
            self.next[rank] = NONE;
            self.next[node.last as usize] = rank.0;
            node.last = rank.0;
        }
    }

    /// Among ranks of its own number at the front or the back.
    fn queue_by_priority(&mut self, rank: Rank, place: Place) {
        let home = self.home(rank) as usize;
        let node = &mut self.nodes[home];
        let own = self.priorities[rank];
        let mut before = NONE;
        let mut at = node.first;
        while at != NONE {
            let number = self.priorities[at as usize];
            if number > own || number == own && place == Place::Front {
                break;
            }
            before = at;
            at = self.next[at as usize];
        }
        self.next[rank] = at;
        match before {
            NONE => node.first = rank.0,
            before => self.next[before as usize] = rank.0,
        }
        if at == NONE {
            node.last = rank.0;
        }
    }

    /// A rank gives its processor back.
    #[inline(always)]
    pub(super) fn release(&mut self, rank: Rank) {
        if self.are_alone() {
            return;
        }
        let number = self.home(rank);
        let node = &mut self.nodes[number as usize];
        node.free += 1;
        if node.first != NONE {
            self.note_change(number);
        }
    }

    /// A rank takes the processor back that it has just given back, unless it is gone.
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

    /// Whether the node of `rank` has a free processor, and no other rank would get one in the next round.
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

    /// The next rank of any node that gets a processor: by node, then in the order of the node's queue.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Rank> {
        if self.changed.is_empty() {
            return None;
        }
        self.next_of_changed()
    }

    fn next_of_changed(&mut self) -> Option<Rank> {
        if !self.sorted {
            // Highest first: nodes are taken from the end.
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
        if node.free == 0 || node.first == NONE {
            return None;
        }
        let rank = Rank(node.first);
        node.first = self.next[rank];
        node.free -= 1;
        Some(rank)
    }
}

fn with(free: u32) -> NodeState {
    NodeState {
        free,
        first: NONE,
        last: NONE,
    }
}
