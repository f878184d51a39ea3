//! Mapping of ranks to nodes, and the properties of these nodes.

use super::SimulateError;
use flowcast_network::machine::{Machine, Mapping, NodeGroup};
use flowcast_program::program::Program;
use flowcast_units::{Node, Rank};

/// More nodes than any machine has. A larger number is a typing error that would only exhaust the memory.
const MAX_NODES: u64 = 1 << 24;

/// Mapping of ranks to nodes, and the properties of these nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    node_of: Vec<Node>,
    /// Number of ranks at the start of `node_of`; progress streams follow them.
    ranks: usize,
    /// Index of the group of each node.
    group_of: Vec<u32>,
    groups: Vec<NodeGroup>,
    sites: usize,
    /// Number of processors of a node, for each group whose number follows from the mapping.
    follow: Vec<u32>,
    /// Factor of the processor's speed, indexed by rank; empty if all are 1.
    paces: Vec<f64>,
}

/// One of several programs that run at the same time: its tasks, and its own mapping if it has one.
#[derive(Debug, Clone)]
pub struct Application<'a> {
    /// Number of threads, indexed by task.
    pub threads: Vec<u32>,
    /// Mapping of the tasks to nodes; if absent, the machine's.
    pub mapping: Option<&'a Mapping>,
}

impl Placement {
    /// Places `ranks` on a machine. Without `mapping`, the machine's mapping applies; without either, one rank per node.
    ///
    /// # Errors
    /// [`SimulateError::Placement`] if the mapping lists too few ranks or a node that does not exist, or if the machine is
    /// invalid.
    pub fn new(
        machine: &Machine,
        mapping: Option<&Mapping>,
        ranks: usize,
    ) -> Result<Placement, SimulateError> {
        Placement::of_applications(
            machine,
            &[Application {
                threads: vec![1; ranks],
                mapping,
            }],
        )
    }

    /// Places the tasks of a program, with their threads and progress streams.
    ///
    /// # Errors
    /// The same as for [`Placement::new`].
    pub fn of_program(
        machine: &Machine,
        mapping: Option<&Mapping>,
        program: &Program,
    ) -> Result<Placement, SimulateError> {
        let application = Application {
            threads: program.threads_of_tasks(),
            mapping,
        };
        let mut placement = Placement::of_applications(machine, &[application])?;
        let strands: Vec<Node> = program
            .progress_streams()
            .iter()
            .map(|rank| placement.node(*rank))
            .collect();
        placement.node_of.extend(strands);
        Ok(placement)
    }

    /// Places several programs on a machine, each with its own mapping. The threads of a task run on one node. Each thread
    /// is a rank, in the order of programs, tasks and threads.
    ///
    /// # Errors
    /// The same as for [`Placement::new`].
    pub fn of_applications(
        machine: &Machine,
        applications: &[Application],
    ) -> Result<Placement, SimulateError> {
        // A default number of nodes is the number of tasks of the largest program.
        let ranks = applications
            .iter()
            .map(|application| application.threads.len())
            .max()
            .unwrap_or(0);
        let groups = machine.groups();
        let nodes: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
        if nodes > MAX_NODES {
            let problem =
                format!("machine.nodes: found {nodes} nodes, expected at most {MAX_NODES}");
            return Err(SimulateError::Placement(problem));
        }
        let mut group_of = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            // A count of 0 stands for this default.
            let count = if group.count == 0 {
                ranks
            } else {
                group.count as usize
            };
            group_of.extend(std::iter::repeat_n(index as u32, count));
        }
        let sites = machine.further_sites.len() + 1;
        if let Some(index) = groups.iter().position(|group| group.site as usize >= sites) {
            let problem = format!(
                "found site {}, expected a site below {sites}, as in machine.further_sites",
                groups[index].site
            );
            return Err(SimulateError::Placement(format!(
                "machine.nodes.{index}.site: {problem}"
            )));
        }
        let mut node_of = Vec::new();
        for (index, application) in applications.iter().enumerate() {
            let own = index
                .checked_sub(1)
                .and_then(|further| machine.further_mappings.get(further));
            let mapping = application
                .mapping
                .or(own)
                .or(machine.mapping.as_ref())
                .unwrap_or(&Mapping::RoundRobin);
            let tasks = nodes_of_ranks(mapping, application.threads.len(), &group_of, &groups)?;
            for (node, threads) in tasks.into_iter().zip(&application.threads) {
                node_of.extend(std::iter::repeat_n(node, *threads as usize));
            }
        }
        let mut placement = Placement {
            ranks: node_of.len(),
            node_of,
            group_of,
            groups,
            sites,
            follow: Vec::new(),
            paces: Vec::new(),
        };
        placement.set_processors();
        Ok(placement)
    }

    /// Sets the number of processors of groups that do not specify it: the largest number of ranks on one of their nodes.
    fn set_processors(&mut self) {
        let mut most = vec![0; self.groups.len()];
        for (node, ranks) in self.ranks_of_nodes().into_iter().enumerate() {
            let group = self.group_of[node] as usize;
            most[group] = ranks.max(most[group]);
        }
        for (group, ranks) in self
            .groups
            .iter_mut()
            .zip(most)
            .filter(|(group, _)| group.cpus == 0)
        {
            group.cpus = ranks.max(1);
            self.follow.push(group.cpus);
        }
    }

    fn ranks_of_nodes(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.nodes()];
        self.node_of[..self.ranks]
            .iter()
            .for_each(|node| ranks[*node] += 1);
        ranks
    }

    /// Largest number of processors that a node got from the mapping because the network does not specify it; 0 if the
    /// network always does.
    pub fn processors_by_mapping(&self) -> u32 {
        self.follow.iter().copied().max().unwrap_or(0)
    }

    /// Multiplies the speed of this rank's computations by `factor`; further factors multiply.
    #[must_use]
    pub fn paced(mut self, rank: Rank, factor: f64) -> Placement {
        self.paces.resize(self.node_of.len(), 1.0);
        self.paces[rank] *= factor;
        self
    }

    /// Speed factor of a rank's processor.
    pub(super) fn pace(&self, rank: Rank) -> f64 {
        self.paces.get(rank.index()).copied().unwrap_or(1.0)
    }

    /// Removes the limits of links between nodes.
    #[must_use]
    pub(super) fn without_links(mut self) -> Placement {
        self.groups
            .iter_mut()
            .for_each(|group| (group.in_links, group.out_links) = (0, 0));
        self
    }

    /// Places the ranks in the same way on a machine with the same groups of nodes but other values.
    #[must_use]
    pub fn on(&self, machine: &Machine) -> Placement {
        let mut placement = self.clone();
        for (own, other) in placement.groups.iter_mut().zip(&machine.nodes) {
            *own = NodeGroup {
                cpus: own.cpus,
                ..*other
            };
        }
        placement
    }

    /// Number of ranks, without progress streams.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Number of sites of the machine.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// Number of nodes of each site, indexed by site.
    pub(crate) fn nodes_of_sites(&self) -> Vec<u32> {
        let mut nodes = vec![0; self.sites];
        self.groups_by_node()
            .for_each(|group| nodes[group.site as usize] += 1);
        nodes
    }

    /// Node of a rank.
    pub fn node(&self, rank: Rank) -> Node {
        self.node_of[rank]
    }

    /// Index of the group of a node.
    pub fn group_index(&self, node: Node) -> usize {
        self.group_of[node] as usize
    }

    /// Groups of equal nodes, indexed as by [`Placement::group_index`].
    pub fn groups(&self) -> &[NodeGroup] {
        &self.groups
    }

    /// Properties of a rank's node.
    pub fn group(&self, rank: Rank) -> &NodeGroup {
        &self.groups[self.group_index(self.node(rank))]
    }

    /// Properties of each node of the machine, in the order of nodes.
    pub(crate) fn groups_by_node(&self) -> impl Iterator<Item = &NodeGroup> {
        let indices = self.group_of.iter();
        indices.map(|index| &self.groups[*index as usize])
    }

    /// Number of nodes of the machine.
    pub fn nodes(&self) -> usize {
        self.group_of.len()
    }

    /// `true` if every rank runs on the same node of the same group as in `other`; the properties of the groups may differ.
    pub fn places_like(&self, other: &Placement) -> bool {
        self.node_of == other.node_of
            && self.group_of == other.group_of
            && self.groups.len() == other.groups.len()
    }

    /// `true` if two ranks share a node anywhere.
    pub fn is_shared(&self) -> bool {
        let mut used = vec![false; self.nodes()];
        self.node_of[..self.ranks]
            .iter()
            .any(|node| std::mem::replace(&mut used[*node], true))
    }

    /// Number of nodes with more ranks than processors, which take turns on a real machine.
    pub(crate) fn oversubscribed(&self) -> usize {
        self.ranks_of_nodes()
            .iter()
            .zip(self.groups_by_node())
            .filter(|(ranks, group)| **ranks > group.cpus.max(1))
            .count()
    }
}

fn nodes_of_ranks(
    mapping: &Mapping,
    ranks: usize,
    group_of: &[u32],
    groups: &[NodeGroup],
) -> Result<Vec<Node>, SimulateError> {
    let nodes = group_of.len();
    let found: Vec<u64> = match mapping {
        Mapping::RoundRobin => (0..ranks as u64)
            .map(|rank| rank % nodes.max(1) as u64)
            .collect(),
        Mapping::PerNode(each) => (0..ranks as u64)
            .map(|rank| rank / u64::from((*each).max(1)))
            .collect(),
        Mapping::Fill => {
            let cpus = |node: usize| groups[group_of[node] as usize].cpus.max(1) as usize;
            let filled = (0..nodes).flat_map(|node| std::iter::repeat_n(node as u64, cpus(node)));
            // Once all nodes are full, the remaining ranks run on the last one, as in Dimemas.
            filled
                .chain(std::iter::repeat(nodes.saturating_sub(1) as u64))
                .take(ranks)
                .collect()
        }
        // A list may serve several programs: the first part of a longer list applies.
        Mapping::List(list) => list
            .iter()
            .take(ranks)
            .map(|node| u64::from(*node))
            .collect(),
    };
    if found.len() != ranks {
        let problem = format!(
            "mapping: found nodes for {} ranks, expected {ranks}, as in the trace",
            found.len()
        );
        return Err(SimulateError::Placement(problem));
    }
    if let Some(rank) = found.iter().position(|node| *node >= nodes as u64) {
        let node = found[rank];
        let problem = format!(
            "mapping: found node {node} for rank {rank}, expected a node below {nodes}, as in the network"
        );
        return Err(SimulateError::Placement(problem));
    }
    Ok(found.into_iter().map(|node| Node(node as u32)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(counts: &[(u32, u32)]) -> Machine {
        Machine {
            nodes: counts
                .iter()
                .map(|(count, cpus)| NodeGroup::new(*count, *cpus))
                .collect(),
            ..Machine::default()
        }
    }

    fn nodes(machine: &Machine, mapping: Mapping, ranks: usize) -> Vec<u32> {
        let placement = Placement::new(machine, Some(&mapping), ranks).unwrap();
        (0..ranks as u32)
            .map(|rank| placement.node(Rank(rank)).0)
            .collect()
    }

    #[test]
    fn mappings_place_ranks_as_their_names_say() {
        let machine = machine(&[(2, 2), (1, 1)]);
        assert_eq!(nodes(&machine, Mapping::Fill, 7), [0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(nodes(&machine, Mapping::RoundRobin, 5), [0, 1, 2, 0, 1]);
        assert_eq!(nodes(&machine, Mapping::PerNode(2), 5), [0, 0, 1, 1, 2]);
        assert_eq!(
            nodes(&machine, Mapping::List(vec![2, 2, 0, 1]), 3),
            [2, 2, 0]
        );
    }

    #[test]
    fn places_that_do_not_exist_are_refused() {
        let machine = machine(&[(2, 1)]);
        for mapping in [
            Mapping::PerNode(1),
            Mapping::List(vec![0, 1, 2]),
            Mapping::List(vec![0]),
        ] {
            assert!(
                Placement::new(&machine, Some(&mapping), 3).is_err(),
                "{mapping:?}"
            );
        }
    }
}
