//! Functions in C and Fortran that give the processes of a running job the ranks of a mapping.
//!
//! If a job cannot be launched under a mapping, it is launched by a rule, and its processes change their ranks.
//! `MPI_Comm_split` with the new rank as key makes a communicator in which the j-th process of each node has the j-th rank
//! that the mapping puts there. With [domains](Job::domain_of_rank), the ranks of a node are taken socket by socket, in the
//! order in which launchers fill its cores.
//!
//! ```
//! use flowcast_place::{job::Job, reordered::new_ranks};
//! use flowcast::units::{Node, Rank};
//!
//! let job = Job { node_of_rank: [0, 1, 1, 0].map(Node).to_vec(), ..Job::default() };
//! // Launched two on each node: the second process of node 0 becomes rank 3.
//! assert_eq!(new_ranks(&job, &[0, 0, 1, 1].map(Node))?, [0, 3, 1, 2].map(Rank));
//! # Ok::<(), flowcast_place::reordered::ReorderError>(())
//! ```

mod c;
mod fortran;

use std::collections::BTreeMap;

use thiserror::Error;

use flowcast_units::{Node, Rank};

use super::{
    job::Job,
    launch::hints,
    mapping_file::{MappingError, MappingFormat, check_hosts},
};

/// Maximum number of lines of the comment on the launched processes.
const MOST_LINES: usize = 32;
/// Number of entries on a line of the table.
const NUMBERS_ON_A_LINE: usize = 16;

/// Error for ranks that cannot be reordered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReorderError {
    /// The job has another number of processes on a node than the mapping has ranks.
    #[error(
        "found {launched} launched processes on node {node}, expected {mapped} as in the mapping"
    )]
    Processes {
        /// The first node with different numbers.
        node: Node,
        /// Number of launched processes on the node.
        launched: usize,
        /// Number of ranks that the mapping puts on the node.
        mapped: usize,
    },
    /// A host name that could be interpreted as something else.
    #[error(transparent)]
    Host(#[from] MappingError),
    /// A grid whose number of cells differs from the number of ranks.
    #[error("found a grid of {cells} cells, expected {ranks}, one for each rank")]
    Cells {
        /// Number of cells: the product of the dimensions.
        cells: u64,
        /// Number of ranks of the mapping.
        ranks: usize,
    },
}

/// A language of MPI programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReorderLanguage {
    /// C, from C99 on.
    C,
    /// Fortran 95 with the module `mpi`.
    Fortran,
}

/// Layout of a program's ranks on a Cartesian grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramGrid {
    /// Number of cells in each dimension.
    pub dims: Vec<u32>,
    /// `true` if the first dimension varies fastest. `MPI_Cart_create` varies the last one fastest.
    pub is_column_major: bool,
}

/// Input of a function that reorders ranks.
#[derive(Debug, Clone, Copy)]
pub struct Reordering<'a> {
    /// The job with the requested node of each rank.
    pub job: &'a Job,
    /// Node of each process as launched. If absent, node after node, with the numbers of processes that the mapping
    /// requires.
    pub launched: Option<&'a [Node]>,
    /// Grid of the Cartesian communicator, if a function for it is requested.
    pub grid: Option<&'a ProgramGrid>,
}

impl Reordering<'_> {
    /// Returns a file that compiles, with the functions `reorder_ranks` and, with a grid, `reorder_grid`. Its comment
    /// describes the required launch of the job.
    ///
    /// # Errors
    /// A node with different numbers of processes and mapped ranks, a grid whose number of cells differs from the number of
    /// ranks, and a host name that could be interpreted as something else.
    pub fn write(&self, language: ReorderLanguage) -> Result<String, ReorderError> {
        check_hosts(self.job)?;
        let mut launched = self.launched.unwrap_or(&self.job.node_of_rank).to_vec();
        if self.launched.is_none() {
            launched.sort_unstable();
        }
        let source = ReorderSource {
            comment: self.comment(&launched),
            new_ranks: new_ranks(self.job, &launched)?,
            dims: self.dims()?,
        };
        Ok(match language {
            ReorderLanguage::C => c::write(&source),
            ReorderLanguage::Fortran => fortran::write(&source),
        })
    }

    /// Returns the dimensions in the order of `MPI_Cart_create`.
    fn dims(&self) -> Result<Option<Vec<u32>>, ReorderError> {
        let Some(grid) = self.grid else {
            return Ok(None);
        };
        let ranks = self.job.node_of_rank.len();
        let cells = grid
            .dims
            .iter()
            .fold(1, |cells: u64, dim| cells.saturating_mul((*dim).into()));
        if cells != ranks as u64 {
            return Err(ReorderError::Cells { cells, ranks });
        }
        let mut dims = grid.dims.clone();
        if grid.is_column_major {
            dims.reverse();
        }
        Ok(Some(dims))
    }

    fn comment(&self, launched: &[Node]) -> Vec<String> {
        let mut lines = vec![
            "Gives each process the rank that a mapping of flowcast puts on its node.".to_owned(),
            "Use the new communicator wherever the program had MPI_COMM_WORLD.".to_owned(),
            String::new(),
            "Launch the job with these processes on its nodes, in this order:".to_owned(),
        ];
        lines.extend(self.processes(launched));
        let job = Job {
            node_of_rank: launched.to_vec(),
            ..self.job.clone()
        };
        let commands: Vec<String> = hints(&job, "FILE")
            .into_iter()
            .filter(|hint| hint.format != MappingFormat::PrrteRankfile)
            .filter_map(|hint| hint.by_rule)
            .collect();
        if !commands.is_empty() {
            lines.extend([
                String::new(),
                "Commands for this launch. Run Open MPI 4's command on the first node, or outside the nodes:".to_owned(),
            ]);
            lines.extend(commands.iter().map(|command| format!("  {command}")));
        }
        if self.grid.is_some_and(|grid| grid.is_column_major) {
            lines.push(String::new());
            lines.push("The dimensions of the grid are reversed: the first one varies fastest in the program,".into());
            lines.push("the last one in MPI.".into());
        }
        lines
    }

    /// Returns a line for each interval of world ranks on one node, up to [`MOST_LINES`].
    fn processes(&self, launched: &[Node]) -> Vec<String> {
        let mut first = 0;
        let mut lines = Vec::new();
        for run in launched.chunk_by(|one, next| one == next) {
            if lines.len() == MOST_LINES {
                lines.push(format!("  and so on to process {}", launched.len() - 1));
                break;
            }
            let last = first + run.len() - 1;
            let node = match self.job.hosts.get(run[0].index()) {
                Some(host) => host.clone(),
                None => format!("node {}", run[0]),
            };
            lines.push(match run.len() {
                1 => format!("  {node}: process {first}"),
                _ => format!("  {node}: processes {first} to {last}"),
            });
            first += run.len();
        }
        lines
    }
}

/// Returns the new rank of each process of a job, indexed by its rank as launched.
///
/// # Errors
/// The first node with another number of processes than ranks.
pub fn new_ranks(job: &Job, launched: &[Node]) -> Result<Vec<Rank>, ReorderError> {
    let nodes = &job.node_of_rank[..];
    let mut ranks: Vec<usize> = (0..nodes.len()).collect();
    // The sort is stable, so without domains the ranks of a node stay in order.
    ranks.sort_by_key(|rank| (nodes[*rank], job.domain_of_rank.get(*rank)));
    let mut processes: Vec<usize> = (0..launched.len()).collect();
    processes.sort_by_key(|process| launched[*process]);
    let mut counts: BTreeMap<Node, [usize; 2]> = BTreeMap::new();
    for (kind, nodes) in [launched, nodes].into_iter().enumerate() {
        nodes
            .iter()
            .for_each(|node| counts.entry(*node).or_default()[kind] += 1);
    }
    if let Some((node, [launched, mapped])) =
        counts.into_iter().find(|(_, [one, other])| one != other)
    {
        return Err(ReorderError::Processes {
            node,
            launched,
            mapped,
        });
    }
    let mut new_ranks = vec![Rank(0); ranks.len()];
    for (process, rank) in processes.into_iter().zip(ranks) {
        new_ranks[process] = Rank(u32::try_from(rank).expect("a mapping has at most 2^24 ranks"));
    }
    Ok(new_ranks)
}

/// Content of the functions, for both languages.
struct ReorderSource {
    comment: Vec<String>,
    new_ranks: Vec<Rank>,
    /// Dimensions of the Cartesian communicator, if one is requested.
    dims: Option<Vec<u32>>,
}

pub(super) fn joined(numbers: &[impl ToString], between: &str) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    words.join(between)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODES: [Node; 6] = [Node(2), Node(0), Node(2), Node(0), Node(0), Node(2)];

    fn job(nodes: &[Node], domains: &[u32]) -> Job {
        Job {
            node_of_rank: nodes.to_vec(),
            domain_of_rank: domains.to_vec(),
            ..Job::default()
        }
    }

    fn written(reordering: Reordering, language: ReorderLanguage) -> String {
        reordering.write(language).unwrap()
    }

    fn on_grid(grid: &ProgramGrid, language: ReorderLanguage) -> Result<String, ReorderError> {
        let reordering = Reordering {
            job: &job(&NODES, &[]),
            launched: None,
            grid: Some(grid),
        };
        reordering.write(language)
    }

    #[test]
    fn the_source_contains_the_table_and_the_launch_commands() {
        let reordering = Reordering {
            job: &job(&NODES, &[]),
            launched: None,
            grid: None,
        };
        let c = written(reordering, ReorderLanguage::C);
        for part in [
            " *   node 0: processes 0 to 2\n *   node 2: processes 3 to 5\n",
            " *   mpirun -np 6 --map-by ppr:3:node\n",
            "new_rank[6] = {\n    1, 3, 4, 0, 2, 5\n};",
        ] {
            assert!(c.contains(part), "{c}");
        }
        assert!(!c.contains("reorder_grid"), "{c}");
        let fortran = written(reordering, ReorderLanguage::Fortran);
        assert!(
            fortran.contains("data new_rank(0:5) / &\n    1,3,4,0,2,5/"),
            "{fortran}"
        );
    }

    #[test]
    fn ranks_of_a_node_fill_one_socket_after_the_other() {
        let ranks = new_ranks(&job(&[Node(0); 4], &[1, 0, 1, 0]), &[Node(0); 4]);
        assert_eq!(ranks.unwrap(), [1, 3, 0, 2].map(Rank));
    }

    #[test]
    fn a_grid_has_a_cell_for_each_rank_and_its_last_dimension_varies_fastest() {
        let mut grid = ProgramGrid {
            dims: vec![3, 2],
            is_column_major: true,
        };
        let c = on_grid(&grid, ReorderLanguage::C).unwrap();
        assert!(c.contains("dims[2] = {2, 3}"), "{c}");
        grid.dims.push(2);
        let error = on_grid(&grid, ReorderLanguage::C).unwrap_err();
        assert_eq!(
            error,
            ReorderError::Cells {
                cells: 12,
                ranks: 6
            }
        );
    }

    #[test]
    fn a_job_with_other_processes_on_a_node_is_refused() {
        let error = new_ranks(&job(&NODES, &[]), &[0, 0, 0, 0, 2, 2].map(Node)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "found 4 launched processes on node 0, expected 3 as in the mapping"
        );
    }

    #[test]
    fn lines_of_the_table_have_sixteen_numbers_and_fit_into_fortran() {
        let nodes: Vec<Node> = (0..100_000u32)
            .map(|rank| Node(rank * 7919 % 1000))
            .collect();
        let reordering = Reordering {
            job: &job(&nodes, &[]),
            launched: None,
            grid: None,
        };
        let fortran = written(reordering, ReorderLanguage::Fortran);
        assert!(fortran.lines().all(|line| line.len() <= 132));
        let numbers = fortran.lines().filter(|line| line.ends_with('/'));
        assert_eq!(
            numbers.map(|line| line.split(',').count()).sum::<usize>(),
            100_000
        );
        let c = written(reordering, ReorderLanguage::C);
        assert!(
            c.lines().count() < 100_000 / 16 + 100,
            "{}",
            c.lines().count()
        );
    }

    proptest! {
        #[test]
        fn each_rank_ends_on_the_node_that_the_mapping_gives_it(
            pairs in prop::collection::vec((0u32..5, any::<u32>()), 1..40),
        ) {
            let nodes: Vec<Node> = pairs.iter().map(|(node, _)| Node(*node)).collect();
            let mut shuffled = pairs.clone();
            shuffled.sort_by_key(|(_, order)| *order);
            let launched: Vec<Node> = shuffled.iter().map(|(node, _)| Node(*node)).collect();
            let new = new_ranks(&job(&nodes, &[]), &launched).unwrap();
            let mut seen: Vec<Rank> = new.clone();
            seen.sort_unstable();
            prop_assert!(seen.iter().enumerate().all(|(place, rank)| rank.index() == place));
            for (process, rank) in new.iter().enumerate() {
                prop_assert_eq!(nodes[rank.index()], launched[process]);
            }
        }
    }
}
