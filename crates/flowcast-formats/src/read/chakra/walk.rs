//! Traversal of the graphs of all ranks, in an order in which each can be executed.
//!
//! A node is ready once its predecessors are finished; the ready node with the lowest number begins first. Communication
//! continues in the background. If no node is ready, the rank waits for a communication that can finish: a send at any time,
//! a receive once its message has been sent, a collective once all members have reached it. Its successors may then begin.
//! All ranks are traversed together, so no rank waits for an operation that another rank has not begun.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    super::recorded::actions::{Action, ActionStep, RankActions},
    ChakraNotes,
    node::{ChakraCollective, ChakraMessage, ChakraNode, NodeWork},
    turns::{GraphComparison, RankTurns},
};
use flowcast_program::{
    TraceError,
    build::{CallRecord, Channel, NON_BLOCKING},
    program::{CollectiveMode, Communicator},
};
use flowcast_units::{Bytes, CollectiveOp, Rank};

/// Traverses the graphs from the files with these names. Returns the ranks' actions and the groups of collectives.
///
/// # Errors
/// Ranks that have different communications in one turn, or a root outside the group.
pub(super) fn walk(
    names: &[String],
    ranks: Vec<Vec<ChakraNode>>,
    notes: &mut ChakraNotes,
) -> Result<(Vec<RankActions>, Vec<Communicator>), TraceError> {
    let turns: Vec<RankTurns<'_>> = ranks.iter().map(|nodes| RankTurns::new(nodes)).collect();
    let comparison = GraphComparison {
        names,
        ranks: &ranks,
        turns: &turns,
    };
    let uneven = "all-to-alls with different sizes; each rank sends its own size";
    notes.leave_out(uneven, comparison.check()?);
    let groups = ChakraGroups::new(&ranks);
    let pairs: Vec<Vec<(u32, u32)>> = turns.iter().map(|turns| turns.pairs().collect()).collect();
    let mut walk = GraphWalk {
        groups,
        ..GraphWalk::default()
    };
    for (nodes, pairs) in ranks.into_iter().zip(pairs) {
        let graph = ChakraGraph::new(nodes, &pairs);
        notes.leave_out("dependencies on missing nodes", graph.unknown);
        walk.ranks.push(graph);
    }
    let mut active: VecDeque<Rank> = (0..walk.ranks.len() as u32).map(Rank).collect();
    while let Some(rank) = active.pop_front() {
        active.extend(walk.advance(rank));
    }
    let mut nodes = walk.ranks.iter().flat_map(|graph| &graph.nodes);
    let is_named_alone = nodes.any(|node| matches!(&node.work, NodeWork::Collective(call) if !call.group.is_empty() && call.group_size.is_none()));
    for graph in &walk.ranks {
        notes.leave_out(
            "nodes that never start; they depend on each other or on messages that are never sent",
            graph.nodes.len() as u64 - graph.begun,
        );
    }
    notes.assume(
        walk.groups.some_lack_a_name(walk.ranks.len()),
        "collectives without a group name belong to the group of all ranks that have such collectives",
    );
    notes.assume(
        is_named_alone,
        "ranks that use the same group name form one group: the trace does not list its members",
    );
    let communicators = walk.groups.communicators();
    let actions = walk.ranks.into_iter().map(|graph| graph.out).collect();
    Ok((actions, communicators))
}

/// Groups of collectives: all ranks that name them.
#[derive(Default)]
struct ChakraGroups {
    numbers: BTreeMap<String, u32>,
    members: Vec<Vec<Rank>>,
    /// Communicator number of the messages of each named group.
    of_messages: BTreeMap<String, i32>,
}

impl ChakraGroups {
    fn new(ranks: &[Vec<ChakraNode>]) -> ChakraGroups {
        let mut groups = ChakraGroups::default();
        for (rank, nodes) in (0..).map(Rank).zip(ranks) {
            for node in nodes {
                match &node.work {
                    NodeWork::Collective(call) => groups.join(&call.group, rank),
                    NodeWork::Send(message) | NodeWork::Recv(message)
                        if !message.group.is_empty() =>
                    {
                        groups.of_messages.entry(message.group.clone()).or_default();
                    }
                    _ => {}
                }
            }
        }
        let first = groups.members.len().max(1) as i32;
        groups
            .of_messages
            .values_mut()
            .zip(first..)
            .for_each(|(number, next)| *number = next);
        groups
    }

    fn join(&mut self, group: &str, rank: Rank) {
        let next = self.members.len() as u32;
        let number = *self.numbers.entry(group.to_owned()).or_insert(next);
        if number == next {
            self.members.push(Vec::new());
        }
        let members = &mut self.members[number as usize];
        if members.last() != Some(&rank) {
            members.push(rank);
        }
    }

    fn some_lack_a_name(&self, ranks: usize) -> bool {
        self.numbers
            .get("")
            .is_some_and(|number| self.members[*number as usize].len() < ranks)
    }

    fn communicators(self) -> Vec<Communicator> {
        self.members
            .into_iter()
            .zip(0..)
            .map(|(members, id)| Communicator { id, members })
            .collect()
    }
}

/// Counter that a communication waits for: messages sent to a rank on a channel, or ranks that have reached a group's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WaitCondition {
    Sent(Rank, Channel),
    Came(u32, u32),
}

#[derive(Default)]
struct GraphWalk {
    ranks: Vec<ChakraGraph>,
    groups: ChakraGroups,
    counts: BTreeMap<WaitCondition, u32>,
    waiting: BTreeMap<(WaitCondition, u32), Vec<(Rank, u32)>>,
}

#[derive(Default)]
struct ChakraGraph {
    nodes: Vec<ChakraNode>,
    /// Number of unfinished predecessors of each node.
    open: Vec<u32>,
    dependents: Vec<Vec<u32>>,
    /// Communication in the next turn, for each communication that has one.
    following: Vec<Option<u32>>,
    ready: BTreeSet<u32>,
    /// Communications that are done but have not been waited for.
    done: VecDeque<u32>,
    /// Action with which each communication began.
    begun_with: Vec<Option<Action>>,
    posted: BTreeMap<Channel, u32>,
    came: BTreeMap<u32, u32>,
    begun: u64,
    unknown: u64,
    out: RankActions,
}

impl ChakraGraph {
    fn new(nodes: Vec<ChakraNode>, pairs: &[(u32, u32)]) -> ChakraGraph {
        let mut dependents = vec![Vec::new(); nodes.len()];
        let mut open = vec![0; nodes.len()];
        let mut unknown = 0;
        for (index, node) in nodes.iter().enumerate() {
            for earlier in &node.after {
                match nodes.binary_search_by_key(earlier, |node| node.id) {
                    Ok(earlier) => {
                        dependents[earlier].push(index as u32);
                        open[index] += 1;
                    }
                    Err(_) => unknown += 1,
                }
            }
        }
        let mut following = vec![None; nodes.len()];
        for (earlier, later) in pairs {
            following[*earlier as usize] = Some(*later);
            open[*later as usize] += 1;
        }
        let ready = (0..nodes.len() as u32)
            .filter(|index| open[*index as usize] == 0)
            .collect();
        ChakraGraph {
            begun_with: vec![None; nodes.len()],
            nodes,
            open,
            dependents,
            following,
            ready,
            unknown,
            ..ChakraGraph::default()
        }
    }

    fn push(&mut self, action: Action) {
        let item = self.out.steps.len() as u32;
        self.out.steps.push(ActionStep {
            item,
            thread: 0,
            time: 0,
            action,
        });
    }

    /// Begins a communication.
    fn begin(&mut self, index: u32, action: Action) {
        self.push(action);
        self.begun_with[index as usize] = Some(action);
        if let Some(following) = self.following[index as usize].take() {
            self.release(following);
        }
    }

    fn release_dependents(&mut self, index: u32) {
        for dependent in std::mem::take(&mut self.dependents[index as usize]) {
            self.release(dependent);
        }
    }

    /// Notes that a predecessor of a node is done.
    fn release(&mut self, index: u32) {
        self.open[index as usize] -= 1;
        if self.open[index as usize] == 0 {
            self.ready.insert(index);
        }
    }

    /// Waits for a communication. If it has just begun, it becomes a blocking one.
    fn wait(&mut self, index: u32) {
        use Action::*;
        let Some(action) = self.begun_with[index as usize].take() else {
            return;
        };
        let last = self.out.steps.last();
        let is_last = last.is_some_and(|step| step.action == action);
        match action {
            Irecv(post) if is_last => {
                self.out.steps.pop();
                self.push(Recv(post));
            }
            Collective(number) if is_last => {
                self.out.collectives[number as usize].record.mode = CollectiveMode::Blocking;
            }
            Irecv(post) => self.push(WaitRecv(post)),
            Send(send) => self.push(WaitSend(send)),
            Collective(number) => self.push(WaitCollective(number)),
            _ => {}
        }
        self.release_dependents(index);
    }
}

impl GraphWalk {
    /// Executes everything that a rank can execute. Returns the ranks that can continue as a result.
    fn advance(&mut self, rank: Rank) -> Vec<Rank> {
        let mut woken = Vec::new();
        loop {
            let graph = &mut self.ranks[rank.index()];
            if let Some(index) = graph.ready.pop_first() {
                graph.begun += 1;
                woken.extend(self.begin(rank, index));
            } else if let Some(index) = graph.done.pop_front() {
                graph.wait(index);
            } else {
                return woken;
            }
        }
    }

    fn begin(&mut self, rank: Rank, index: u32) -> Vec<Rank> {
        let work = self.ranks[rank.index()].nodes[index as usize].work.clone();
        match work {
            NodeWork::Compute(nanos) => {
                let graph = &mut self.ranks[rank.index()];
                if nanos > 0 {
                    graph.push(Action::Compute(nanos));
                }
                graph.release_dependents(index);
                Vec::new()
            }
            NodeWork::Send(message) => self.send(rank, index, &message),
            NodeWork::Recv(message) => {
                self.recv(rank, index, &message);
                Vec::new()
            }
            NodeWork::Collective(call) => self.collective(rank, index, &call),
        }
    }

    fn channel(&self, message: &ChakraMessage) -> Channel {
        let number = self.groups.of_messages.get(&message.group);
        Channel {
            peer: message.peer,
            tag: message.tag,
            communicator: number.copied().unwrap_or(0),
        }
    }

    fn send(&mut self, rank: Rank, index: u32, message: &ChakraMessage) -> Vec<Rank> {
        let channel = self.channel(message);
        let graph = &mut self.ranks[rank.index()];
        let bytes = Bytes(message.bytes.unwrap_or(0));
        let send = graph.out.add_send(channel, bytes, NON_BLOCKING);
        graph.begin(index, Action::Send(send));
        graph.done.push_back(index);
        let seen = Channel {
            peer: rank,
            ..channel
        };
        self.count(WaitCondition::Sent(message.peer, seen))
    }

    fn recv(&mut self, rank: Rank, index: u32, message: &ChakraMessage) {
        let channel = self.channel(message);
        let graph = &mut self.ranks[rank.index()];
        let post = graph.out.add_post(Some(channel), None);
        graph.begin(index, Action::Irecv(post));
        let nth = graph.posted.entry(channel).or_default();
        *nth += 1;
        let nth = *nth;
        self.wait_for(WaitCondition::Sent(rank, channel), nth, (rank, index));
    }

    fn collective(&mut self, rank: Rank, index: u32, call: &ChakraCollective) -> Vec<Rank> {
        let number = self.groups.numbers.get(&call.group).copied().unwrap_or(0);
        let members = &self.groups.members[number as usize];
        let size = members.len() as u64;
        let is_root = call.root.or(members.first().copied()) == Some(rank);
        let (send, recv) = volume(call.op, call.bytes, size, is_root);
        let record = CallRecord {
            op: call.op,
            communicator: number as i32,
            mode: CollectiveMode::NonBlocking,
            is_root,
            root: None,
            send,
            recv,
        };
        let graph = &mut self.ranks[rank.index()];
        let call = graph.out.add_collective(record);
        graph.begin(index, Action::Collective(call));
        let turn = graph.came.entry(number).or_default();
        *turn += 1;
        let thing = WaitCondition::Came(number, *turn);
        self.wait_for(thing, size as u32, (rank, index));
        self.count(thing)
    }

    fn wait_for(&mut self, thing: WaitCondition, count: u32, who: (Rank, u32)) {
        if self.counts.get(&thing).copied().unwrap_or(0) >= count {
            self.ranks[who.0.index()].done.push_back(who.1);
        } else {
            self.waiting.entry((thing, count)).or_default().push(who);
        }
    }

    fn count(&mut self, thing: WaitCondition) -> Vec<Rank> {
        let count = self.counts.entry(thing).or_default();
        *count += 1;
        let woken = self.waiting.remove(&(thing, *count)).unwrap_or_default();
        for (rank, index) in &woken {
            self.ranks[rank.index()].done.push_back(*index);
        }
        woken.into_iter().map(|(rank, _)| rank).collect()
    }
}

/// Returns the bytes that a rank sends and receives; the size of a node is the contribution of a rank.
fn volume(op: CollectiveOp, bytes: u64, ranks: u64, is_root: bool) -> (Bytes, Bytes) {
    use CollectiveOp::*;
    let all = bytes.saturating_mul(ranks);
    let share = bytes / ranks.max(1);
    let (send, recv) = match op {
        Allgather => (bytes, all),
        Gather => (bytes, if is_root { all } else { 0 }),
        Scatter => (if is_root { bytes } else { 0 }, share),
        ReduceScatterBlock => (bytes, share),
        Barrier => (0, 0),
        _ => (bytes, bytes),
    };
    (Bytes(send), Bytes(recv))
}
