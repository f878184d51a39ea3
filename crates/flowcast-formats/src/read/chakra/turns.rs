//! Order in which a rank begins its communications, which depends on its graph alone.
//!
//! The turn of a collective in its group determines which calls match, and the turn of a message between two ranks
//! determines which send and receive match. A rank's order follows the numbers of the nodes, except that a node comes after
//! its predecessors. Ranks with equal graphs therefore have equal orders, independently of the order of arrivals at run
//! time.

use std::collections::BTreeMap;

use super::node::{ChakraCollective, ChakraMessage, ChakraNode, NodeWork};
use flowcast_program::TraceError;
use flowcast_units::{CollectiveOp, Rank};

/// Communications of a rank that are matched by their turn, as indices of its nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct RankTurns<'a> {
    /// Collectives by the name of the group.
    collectives: BTreeMap<&'a str, Vec<u32>>,
    /// Sends by peer, tag and group.
    sends: BTreeMap<(Rank, i32, &'a str), Vec<u32>>,
    receives: BTreeMap<(Rank, i32, &'a str), Vec<u32>>,
}

impl<'a> RankTurns<'a> {
    /// Orders the communications of a graph.
    pub(super) fn new(nodes: &'a [ChakraNode]) -> RankTurns<'a> {
        let mut turns = RankTurns::default();
        for index in order(nodes) {
            let list = match &nodes[index as usize].work {
                NodeWork::Compute(_) => continue,
                NodeWork::Collective(call) => turns.collectives.entry(&call.group).or_default(),
                NodeWork::Send(message) => turns.sends.entry(channel(message)).or_default(),
                NodeWork::Recv(message) => turns.receives.entry(channel(message)).or_default(),
            };
            list.push(index);
        }
        turns
    }

    /// Returns the pairs of communications in consecutive turns: the earlier and the later one.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let messages = self.sends.values().chain(self.receives.values());
        self.collectives
            .values()
            .chain(messages)
            .flat_map(|list| list.windows(2).map(|pair| (pair[0], pair[1])))
    }
}

fn channel(message: &ChakraMessage) -> (Rank, i32, &str) {
    (message.peer, message.tag, &message.group)
}

/// Returns the nodes ordered by number, but each after its predecessors; cycles are broken.
fn order(nodes: &[ChakraNode]) -> Vec<u32> {
    let mut seen = vec![false; nodes.len()];
    let mut ordered = Vec::with_capacity(nodes.len());
    let mut open: Vec<(u32, usize)> = Vec::new();
    for first in 0..nodes.len() as u32 {
        if !std::mem::replace(&mut seen[first as usize], true) {
            open.push((first, 0));
        }
        while let Some((index, next)) = open.last_mut() {
            let Some(earlier) = nodes[*index as usize].after.get(*next) else {
                ordered.push(*index);
                open.pop();
                continue;
            };
            *next += 1;
            if let Ok(place) = nodes.binary_search_by_key(earlier, |node| node.id)
                && !std::mem::replace(&mut seen[place], true)
            {
                open.push((place as u32, 0));
            }
        }
    }
    ordered
}

/// Graphs of all ranks with the names of their files, for checking that they are consistent.
pub(super) struct GraphComparison<'a> {
    pub names: &'a [String],
    pub ranks: &'a [Vec<ChakraNode>],
    pub turns: &'a [RankTurns<'a>],
}

impl GraphComparison<'_> {
    /// Checks that the ranks have the same communication in each turn. Returns the number of all-to-alls whose members
    /// contribute different sizes.
    ///
    /// # Errors
    /// Two ranks that have different communications in one turn.
    pub(super) fn check(&self) -> Result<u64, TraceError> {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        let mut members: BTreeMap<&str, usize> = BTreeMap::new();
        for group in self.turns.iter().flat_map(|turns| turns.collectives.keys()) {
            *members.entry(group).or_default() += 1;
        }
        let mut uneven = 0;
        for (rank, turns) in self.turns.iter().enumerate() {
            for (group, own) in &turns.collectives {
                let other = *first.entry(group).or_insert(rank);
                let others = &self.turns[other].collectives[group];
                for node in own {
                    self.root(rank, *node)?;
                    self.group_size(rank, *node, members[group])?;
                }
                for (own, other_node) in own.iter().zip(others) {
                    uneven += u64::from(self.collective((rank, *own), (other, *other_node))?);
                }
            }
            self.messages(rank)?;
        }
        Ok(uneven)
    }

    fn node(&self, (rank, index): (usize, u32)) -> &ChakraNode {
        &self.ranks[rank][index as usize]
    }

    /// Checks that the group of a call has as many members as the call states.
    fn group_size(&self, rank: usize, index: u32, members: usize) -> Result<(), TraceError> {
        let node = self.node((rank, index));
        match &node.work {
            NodeWork::Collective(ChakraCollective {
                group,
                group_size: Some(size),
                ..
            }) if *size != members => {
                let found = format!("a group of {size} ranks in node {}", node.id);
                let expected = format!(
                    "{members}, the number of ranks that name group `{group}`: \
                     different groups need different names or lists of ranks (pg_ranks)"
                );
                Err(self.fault(rank, found, expected))
            }
            _ => Ok(()),
        }
    }

    fn fault(&self, rank: usize, found: String, expected: impl Into<String>) -> TraceError {
        let (place, expected) = (self.names[rank].clone(), expected.into());
        TraceError::At {
            place,
            found,
            expected,
        }
    }

    /// Checks that the root of a call, if it names one, belongs to the group.
    fn root(&self, rank: usize, index: u32) -> Result<(), TraceError> {
        let node = self.node((rank, index));
        let NodeWork::Collective(ChakraCollective {
            root: Some(root),
            group,
            ..
        }) = &node.work
        else {
            return Ok(());
        };
        let of_root = self.turns.get(root.index());
        if of_root.is_some_and(|turns| turns.collectives.contains_key(&group[..])) {
            return Ok(());
        }
        let found = format!("root {root} in node {}", node.id);
        Err(self.fault(rank, found, "a rank that has collectives of the same group"))
    }

    /// Compares two calls in the same turn. Returns `true` if they differ in a way that is valid for an all-to-all.
    fn collective(&self, own: (usize, u32), other: (usize, u32)) -> Result<bool, TraceError> {
        let (NodeWork::Collective(call), NodeWork::Collective(expected)) =
            (&self.node(own).work, &self.node(other).work)
        else {
            return Ok(false);
        };
        let is_same_size = call.bytes == expected.bytes
            || call.op == CollectiveOp::Barrier
            || is_from_root(call.op) && call.bytes.min(expected.bytes) == 0;
        let is_uneven = call.op == CollectiveOp::Alltoall && !is_same_size;
        let is_same = call.op == expected.op && call.root == expected.root;
        if is_same && (is_same_size || is_uneven) {
            return Ok(is_uneven);
        }
        let group = match &call.group[..] {
            "" => "the collectives of the group without a name".to_owned(),
            name => format!("the collectives of group `{name}`"),
        };
        Err(self.disagreement(own, other, &[described(call), described(expected)], &group))
    }

    /// Compares the messages that a rank receives with the messages that their senders send.
    fn messages(&self, rank: usize) -> Result<(), TraceError> {
        for ((from, tag, group), receives) in &self.turns[rank].receives {
            let channel = (Rank(rank as u32), *tag, *group);
            let sends = self
                .turns
                .get(from.index())
                .and_then(|turns| turns.sends.get(&channel));
            for (own, other) in receives.iter().zip(sends.into_iter().flatten()) {
                let (own, other) = ((rank, *own), (from.index(), *other));
                let [received, sent] = [own, other].map(|node| size(self.node(node)));
                if let (Some(received), Some(sent)) = (received, sent)
                    && received != sent
                {
                    let words = [format!("{received} bytes"), format!("{sent} bytes")];
                    return Err(self.disagreement(own, other, &words, "their messages"));
                }
            }
        }
        Ok(())
    }

    fn disagreement(
        &self,
        own: (usize, u32),
        other: (usize, u32),
        [found, expected]: &[String; 2],
        of_what: &str,
    ) -> TraceError {
        let (node, other_node) = (self.node(own).id, self.node(other).id);
        let place = format!("node {other_node} of {}", self.names[other.0]);
        let expected =
            format!("{expected} as in {place}, which has the same position among {of_what}");
        self.fault(own.0, format!("{found} in node {node}"), expected)
    }
}

/// Returns `true` if only the root must know the size.
fn is_from_root(op: CollectiveOp) -> bool {
    matches!(op, CollectiveOp::Bcast | CollectiveOp::Scatter)
}

fn size(node: &ChakraNode) -> Option<u64> {
    match &node.work {
        NodeWork::Send(message) | NodeWork::Recv(message) => message.bytes,
        _ => None,
    }
}

fn described(call: &ChakraCollective) -> String {
    let root = call.root.map(|root| format!(" with root {root}"));
    format!(
        "{} of {} bytes{}",
        call.op,
        call.bytes,
        root.unwrap_or_default()
    )
}
