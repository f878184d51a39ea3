//! Programs as graphs of operations, one graph for each rank, as in LogGOPSim's GOAL.

use std::fmt;

use flowcast_units::{Bytes, Rank, Time};

/// Kind of an operation, with its parameters.
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

/// One operation and the place where it runs.
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
    /// Number of operations that it waits for.
    pub dependencies: u32,
    /// Index of the first of its dependents that wait for its end, in the list of dependents. The next operation's index
    /// ends the range.
    pub on_end: u32,
}

/// A rank's operations in text order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// Operations, by the index that dependencies name.
    pub nodes: Vec<OperationNode>,
    /// Operations that wait for starts, followed by those that wait for ends.
    pub(super) dependents: Vec<u32>,
    /// Index of the first dependent that waits for the start of each operation, followed by the end of the last range; empty
    /// if there are none, as is usual.
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

    /// Number of dependencies of all operations of the rank, on starts and on ends.
    pub fn count_dependencies(&self) -> usize {
        self.dependents.len()
    }

    /// All dependencies, ordered by the operation waited for.
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

/// A GOAL schedule: the operations of all ranks and their dependencies.
#[derive(Clone, PartialEq, Default)]
pub struct Schedule {
    /// Name of the file.
    pub name: String,
    /// Graphs, indexed by rank.
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
    /// Number of ranks, including those without operations.
    pub fn ranks(&self) -> usize {
        self.graphs.len()
    }

    /// Place of an operation, for messages to people.
    pub fn place(&self, rank: usize, node: u32) -> String {
        match self.graphs[rank].nodes[node as usize].line {
            0 => format!("rank {rank}, operation {}", node + 1),
            line => format!("{}:{line}", self.name),
        }
    }

    /// Number of processors of the rank that uses the most.
    pub fn cpus(&self) -> usize {
        self.nodes()
            .map(|node| usize::from(node.cpu) + 1)
            .max()
            .unwrap_or(1)
    }

    /// Number of network interfaces of the rank that uses the most.
    pub fn nics(&self) -> usize {
        self.nodes()
            .map(|node| usize::from(node.nic) + 1)
            .max()
            .unwrap_or(1)
    }

    /// Number of each rank's first operation among those of all ranks, followed by the total number of operations.
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

/// Event of another operation that a dependent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// `irequires`: the start of the other operation.
    Start,
    /// `requires`: the end of the other operation.
    End,
}

/// One dependency: `later` may start after the start or end of `earlier`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The operation that waits.
    pub later: u32,
    /// The operation that it waits for.
    pub earlier: u32,
    /// Event of `earlier` that it waits for: start or end.
    pub after: After,
}

/// Creates a graph of operations and dependencies; dependents keep the order of `dependencies`.
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

/// Appends the dependents of each node, by counting sort, and returns the index of the first of each node.
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

/// Creates an operation without dependencies.
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
