//! A program as graphs of operations, one graph for each rank, in the sense of LogGOPSim's GOAL.

use std::fmt;

use flowcast_units::{Bytes, Rank, Time};

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operation {
    /// Send `size` to a rank.
    Send {
        /// Receiver.
        to: Rank,
        /// Size.
        size: Bytes,
        /// Tag; `None` matches any.
        tag: Option<u32>,
    },
    /// Receive from a rank, or from any.
    Recv {
        /// Sender; `None` is any.
        from: Option<Rank>,
        /// Size, which decides whether the match releases a rendezvous sender.
        size: Bytes,
        /// Tag; `None` matches any.
        tag: Option<u32>,
    },
    /// A computation of the rank.
    Calc(Time),
}

/// One operation and where it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperationNode {
    /// A send, a receive or a computation.
    pub operation: Operation,
    /// Processor of the rank.
    pub cpu: u8,
    /// Network interface of the rank.
    pub nic: u8,
    /// Line in the text, 0 if unknown.
    pub line: u32,
    /// How many operations it waits for.
    pub dependencies: u32,
    /// Where in the list of dependents those begin that wait for its end: up to where those of the next operation begin.
    pub on_end: u32,
}

/// A rank's operations in text order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// The operations, by the index that dependencies name.
    pub nodes: Vec<OperationNode>,
    /// Those that wait for starts, then those that wait for ends.
    pub(super) dependents: Vec<u32>,
    /// Where those begin that wait for the start of each operation, and the end; empty if there are none, as is usual.
    starts: Vec<u32>,
}

impl Graph {
    /// Operations that may start once `node` has started, in text order.
    pub fn released_by_start(&self, node: u32) -> &[u32] {
        match self.starts.get(node as usize..node as usize + 2) {
            Some(places) => &self.dependents[places[0] as usize..places[1] as usize],
            None => &[],
        }
    }

    /// How many dependencies there are.
    pub fn count_dependencies(&self) -> usize {
        self.dependents.len()
    }

    /// All dependencies, by the operation waited for.
    pub fn dependencies(&self) -> Vec<Dependency> {
        (0..self.nodes.len() as u32)
            .flat_map(|earlier: u32| {
                let starts = self.released_by_start(earlier).iter();
                let ends = self.released_by_end(earlier).iter();
                let starts = starts.map(|later| (After::Start, later));
                starts
                    .chain(ends.map(|later| (After::End, later)))
                    .map(move |(after, later)| Dependency {
                        later: *later,
                        earlier,
                        after,
                    })
            })
            .collect()
    }

    /// Operations that may start once `node` has ended, in text order.
    pub fn released_by_end(&self, node: u32) -> &[u32] {
        let behind = self
            .nodes
            .get(node as usize + 1)
            .map_or(self.dependents.len(), |next| next.on_end as usize);
        &self.dependents[self.nodes[node as usize].on_end as usize..behind]
    }
}

/// A GOAL schedule: the operations of all ranks and what each waits for.
#[derive(Clone, PartialEq, Default)]
pub struct Schedule {
    /// Name of the file.
    pub name: String,
    /// Graph of each rank, by rank.
    pub graphs: Vec<Graph>,
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: usize = self.graphs.iter().map(|graph| graph.nodes.len()).sum();
        write!(
            f,
            "Schedule {{ {}: {} ranks, {nodes} operations }}",
            self.name,
            self.graphs.len()
        )
    }
}

impl Schedule {
    /// Number of ranks, those without operations included.
    pub fn ranks(&self) -> usize {
        self.graphs.len()
    }

    /// Where an operation stands, for messages to people.
    pub fn place(&self, rank: usize, node: u32) -> String {
        match self.graphs[rank].nodes[node as usize].line {
            0 => format!("rank {rank}, operation {}", node + 1),
            line => format!("{}:{line}", self.name),
        }
    }

    /// Processors of the rank that uses most.
    pub fn cpus(&self) -> usize {
        self.nodes()
            .map(|node| usize::from(node.cpu) + 1)
            .max()
            .unwrap_or(1)
    }

    /// Network interfaces of the rank that uses most.
    pub fn nics(&self) -> usize {
        self.nodes()
            .map(|node| usize::from(node.nic) + 1)
            .max()
            .unwrap_or(1)
    }

    /// The number of each rank's first operation among those of all ranks, and behind them how many there are.
    pub fn bases(&self) -> Vec<u32> {
        let lengths = self.graphs.iter().map(|graph| graph.nodes.len() as u32);
        let ends = lengths.scan(0u32, |sum, length| {
            *sum = sum.wrapping_add(length);
            Some(*sum)
        });
        std::iter::once(0).chain(ends).collect()
    }

    /// Number of sends, each of which is one message.
    pub fn messages(&self) -> u64 {
        self.nodes()
            .filter(|node| matches!(node.operation, Operation::Send { .. }))
            .count() as u64
    }

    /// Bytes of all sends.
    pub fn bytes(&self) -> Bytes {
        Bytes(
            self.nodes()
                .map(|node| {
                    if let Operation::Send { size, .. } = node.operation {
                        size.0
                    } else {
                        0
                    }
                })
                .fold(0, u64::saturating_add),
        )
    }

    fn nodes(&self) -> impl Iterator<Item = &OperationNode> {
        self.graphs.iter().flat_map(|graph| &graph.nodes)
    }
}

/// Whether a dependent waits for the start or the end of another operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// `irequires`: on the start of the other operation.
    Start,
    /// `requires`: on the end of the other operation.
    End,
}

/// One dependency: `later` may start after the start or end of `earlier`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The operation that waits.
    pub later: u32,
    /// The operation that it waits for.
    pub earlier: u32,
    /// Whether it waits for the start or for the end of `earlier`.
    pub after: After,
}

/// Makes a graph of operations and dependencies; dependents keep the order of `dependencies`.
///
/// ```
/// use flowcast_program::schedule::{After, Dependency, Operation, graph, node};
/// use flowcast_units::Time;
///
/// let calculation = || node(Operation::Calc(Time::from_nanos(5.0)), 1);
/// let later = Dependency { later: 1, earlier: 0, after: After::End };
/// let graph = graph(vec![calculation(), calculation()], &[later]);
/// assert_eq!(graph.released_by_end(0), [1]);
/// assert_eq!(graph.nodes[1].dependencies, 1);
/// ```
pub fn graph(mut nodes: Vec<OperationNode>, dependencies: &[Dependency]) -> Graph {
    for dependency in dependencies {
        nodes[dependency.later as usize].dependencies += 1;
    }
    let mut dependents = Vec::with_capacity(dependencies.len());
    let mut starts = Vec::new();
    if dependencies
        .iter()
        .any(|dependency| dependency.after == After::Start)
    {
        starts = ranges(nodes.len(), dependencies, After::Start, &mut dependents);
        starts.push(dependents.len() as u32);
    }
    let ends = ranges(nodes.len(), dependencies, After::End, &mut dependents);
    nodes
        .iter_mut()
        .zip(ends)
        .for_each(|(node, on_end)| node.on_end = on_end);
    Graph {
        nodes,
        dependents,
        starts,
    }
}

/// Appends the dependents of each node, by counting sort, and gives where they begin.
fn ranges(
    nodes: usize,
    dependencies: &[Dependency],
    after: After,
    dependents: &mut Vec<u32>,
) -> Vec<u32> {
    let chosen = dependencies
        .iter()
        .filter(|dependency| dependency.after == after);
    let mut next = vec![0; nodes + 1];
    for dependency in chosen.clone() {
        next[dependency.earlier as usize + 1] += 1;
    }
    next[0] = dependents.len() as u32;
    for node in 0..nodes {
        next[node + 1] += next[node];
    }
    let found = next[..nodes].to_vec();
    dependents.resize(next[nodes] as usize, 0);
    for dependency in chosen {
        let at = &mut next[dependency.earlier as usize];
        dependents[*at as usize] = dependency.later;
        *at += 1;
    }
    found
}

/// An operation without dependencies so far.
pub fn node(operation: Operation, line: u32) -> OperationNode {
    OperationNode {
        operation,
        cpu: 0,
        nic: 0,
        line,
        dependencies: 0,
        on_end: 0,
    }
}
