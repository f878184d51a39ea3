//! Walk back over the events, from the last one to the start.

use flowcast_replay::time_part::TimePart;
use flowcast_units::{Bytes, Rank, Time};

use super::{CriticalPath, PathStep};
use crate::graph::{Edge, EventGraph, EventKind, EventNode, NONE, ReplayedInput};

/// Part of an edge's cost: limit, rank and duration in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct EdgePart {
    limit: TimePart,
    rank: Rank,
    nanos: f64,
}

impl EventGraph<'_> {
    /// Returns the chain of events behind the makespan.
    pub fn critical_path(&self) -> CriticalPath {
        let makespan = self.makespan();
        let last = self
            .ends
            .iter()
            .position(|end| self.times[*end as usize] == makespan.as_nanos())
            .unwrap_or(0);
        let mut walk = PathWalk {
            graph: self,
            rounding: self.rounding(),
            rank: Rank(last as u32),
            at: makespan,
            counted: NONE,
            parts: Vec::new(),
            path: CriticalPath {
                makespan,
                ..CriticalPath::default()
            },
        };
        let mut event = self.ends.get(last).copied().unwrap_or(0);
        while event != 0 && walk.at > Time::ZERO {
            event = walk.pass(event);
        }
        walk.spend(TimePart::Other, walk.rank, Time::ZERO);
        if let Some(first) = walk.path.steps.last_mut() {
            first.start = Time::ZERO;
        }
        walk.path.steps.reverse();
        walk.path
    }

    /// Cause of the waiting time of an event that its costs do not explain.
    fn waited(&self, node: &EventNode) -> TimePart {
        match node.kind() {
            EventKind::Spent => TimePart::ALL[node.item as usize],
            EventKind::Send | EventKind::Receive | EventKind::MoveAtReceive => TimePart::Processor,
            EventKind::Arrive | EventKind::Release | EventKind::Move | EventKind::Depart => {
                TimePart::Contention
            }
            EventKind::Compute | EventKind::Meet | EventKind::Collective => TimePart::Other,
        }
    }

    /// Returns `true` if an edge is the flight of a message.
    fn flies(&self, node: &EventNode, edge: Edge) -> bool {
        match (node.kind(), edge) {
            (EventKind::Arrive, Edge::First) => true,
            (EventKind::Receive, Edge::Second) => {
                self.nodes[node.second as usize].kind() != EventKind::Arrive
            }
            _ => false,
        }
    }

    /// Returns the edge that an event waited for. If both edges tie, this is the first.
    fn binding(&self, node: &EventNode, rounding: f64) -> Edge {
        let [first, second] = [Edge::First, Edge::Second].map(|edge| {
            node.edge(edge).map_or(f64::NEG_INFINITY, |(event, cost)| {
                self.times[event as usize] + cost
            })
        });
        if second - first > rounding {
            Edge::Second
        } else {
            Edge::First
        }
    }
}

struct PathWalk<'g, 'a> {
    graph: &'g EventGraph<'a>,
    /// Differences of times below this value are rounding, in nanoseconds.
    rounding: f64,
    rank: Rank,
    at: Time,
    /// The execution of a collective that was counted last.
    counted: u32,
    parts: Vec<EdgePart>,
    path: CriticalPath,
}

impl PathWalk<'_, '_> {
    /// Moves back to `start` and assigns the time in between to `limit`, unless that time is only rounding.
    fn spend(&mut self, limit: TimePart, rank: Rank, start: Time) {
        let start = start.max(Time::ZERO);
        if (self.at - start).as_nanos() > self.rounding {
            self.path.steps.push(PathStep {
                rank,
                start,
                end: self.at,
                limit,
            });
            self.at = start;
            self.path.counts.overheads += u64::from(limit == TimePart::Overhead);
        }
    }

    /// Goes from an event to the one that it waited for.
    fn pass(&mut self, event: u32) -> u32 {
        let graph = self.graph;
        let node = &graph.nodes[event as usize];
        let edge = graph.binding(node, self.rounding);
        let before = node.edge(edge).map_or(0, |(before, _)| before);
        let limit = graph.waited(node);
        let is_of_rank = match node.kind() {
            EventKind::Spent => limit != TimePart::Contention,
            kind => matches!(
                kind,
                EventKind::Compute
                    | EventKind::Send
                    | EventKind::Depart
                    | EventKind::Receive
                    | EventKind::Release
            ),
        };
        if is_of_rank {
            self.rank = graph.owner(node.rank());
        }
        self.split(node, edge);
        self.count(node, edge);
        let mut time = graph.times[event as usize];
        let parts = std::mem::take(&mut self.parts);
        for (index, part) in parts.iter().enumerate().rev() {
            time -= part.nanos;
            // The first part takes the remainder that rounding leaves.
            if index == 0 {
                time = graph.times[before as usize];
            }
            self.spend(part.limit, part.rank, Time::from_nanos(time));
        }
        self.parts = parts;
        before
    }

    /// Splits an edge's cost into its parts and the rest. The rest is the time spent on waiting before the later event was
    /// handled.
    fn split(&mut self, node: &EventNode, edge: Edge) {
        let (graph, rank) = (self.graph, self.rank);
        let parts = &mut self.parts;
        parts.clear();
        let mut add = |limit, rank, nanos| {
            if nanos != 0.0 {
                parts.push(EdgePart { limit, rank, nanos });
            }
        };
        if graph.flies(node, edge) {
            add(
                TimePart::Latency,
                rank,
                graph.costs(node.slot()).far.as_nanos(),
            );
        }
        graph.parts(node, edge, |part| match part.handles {
            true => add(TimePart::Overhead, graph.owner(part.rank), part.nanos()),
            false => add(part.quantity, rank, part.nanos()),
        });
        let cost = node.edge(edge).map_or(0.0, |(_, cost)| cost);
        let mut rest = cost - parts.iter().map(|part| part.nanos).sum::<f64>();
        if rest > self.rounding {
            let place = parts
                .iter()
                .rposition(|part| part.limit != TimePart::Overhead)
                .map_or(0, |last| last + 1);
            let limit = graph.waited(node);
            parts.insert(
                place,
                EdgePart {
                    limit,
                    rank,
                    nanos: rest,
                },
            );
        } else if rest < -self.rounding {
            // The message took less time than it would have taken alone.
            for part in parts.iter_mut().rev().filter(|part| part.nanos > 0.0) {
                let less = part.nanos.min(-rest);
                part.nanos -= less;
                rest += less;
            }
        }
    }

    fn count(&mut self, node: &EventNode, edge: Edge) {
        let graph = self.graph;
        let counts = &mut self.path.counts;
        let sent = match (node.kind(), edge) {
            (EventKind::Collective, _) if node.cost > 0.0 && node.item != self.counted => {
                self.counted = node.item;
                counts.collectives += 1;
                None
            }
            (EventKind::Send | EventKind::Depart | EventKind::Arrive, Edge::Second) => {
                counts.gaps += 1;
                Some(graph.nodes[node.second as usize].slot())
            }
            (EventKind::Release, Edge::Second)
                if node.more > 0.0 && matches!(graph.source, ReplayedInput::Program(_)) =>
            {
                Some(node.slot())
            }
            _ if graph.flies(node, edge) => {
                counts.messages += 1;
                Some(node.slot())
            }
            _ => None,
        };
        let Bytes(bytes) = sent.map_or(Bytes(0), |slot| graph.message(slot).size);
        counts.bytes = Bytes(counts.bytes.0.saturating_add(bytes));
    }
}
