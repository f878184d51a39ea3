//! Commands that start a job under a mapping. They use an option of the launcher if the mapping follows one of its rules,
//! and otherwise its mapping file.
//!
//! | mapping | Open MPI | MPICH | Slurm |
//! |---|---|---|---|
//! | one rank on each node in turn | `--map-by node` | `-ppn 1` | `--distribution=cyclic` |
//! | N on each node, then the next | `--map-by ppr:N:node` | `-ppn N` | `--distribution=block` |
//! | N on each node in turn, several times | | `-ppn N` | `--distribution=plane=N` |
//! | other numbers on each node, one node after the other | `--map-by slot`, with slots for each host | `-hosts a:3,b:1` | |
//!
//! The options of Slurm apply if all nodes have the same number of ranks.
//!
//! The options assign ranks to nodes in the launcher's own order of nodes. They can therefore only produce mappings in which
//! the first ranks of the nodes ascend in this order. In Open MPI 4, the node that runs `mpirun` is the first.

use flowcast_table::shell_word;
use flowcast_units::Node;

use super::{job::Job, mapping_file::MappingFormat};

/// Maximum number of nodes whose host names appear in a command.
const MOST_NAMED: usize = 16;

/// Commands that start a job under a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchHint {
    /// The launcher, as the format of the mapping file that it reads.
    pub format: MappingFormat,
    /// Command whose options produce the mapping, if it follows a rule of the launcher.
    pub by_rule: Option<String>,
    /// Command that reads the mapping from a file.
    pub by_file: String,
}

/// Returns the commands for Open MPI 4, Open MPI 5, MPICH and Slurm. `file` is the name of the mapping file, in the
/// launcher's own format.
pub fn hints(job: &Job, file: &str) -> [LaunchHint; 4] {
    let job = Launch::new(job);
    let file = shell_word(file);
    let rankfile = |format, option: &str| LaunchHint {
        format,
        by_rule: job.open_mpi(),
        by_file: format!("{} {option}{file}", job.mpirun()),
    };
    let ranks = job.ranks;
    [
        rankfile(MappingFormat::Rankfile, "--rankfile "),
        rankfile(MappingFormat::PrrteRankfile, "--map-by rankfile:file="),
        LaunchHint {
            format: MappingFormat::HostCounts,
            by_rule: job.mpich(),
            by_file: format!("mpiexec -n {ranks} -f {file}"),
        },
        LaunchHint {
            format: MappingFormat::HostList,
            by_rule: job.slurm(),
            by_file: format!(
                "SLURM_HOSTFILE={file} srun --ntasks={ranks} --distribution=arbitrary"
            ),
        },
    ]
}

/// Rules by which launchers map ranks.
#[derive(Debug, PartialEq, Eq)]
enum LaunchRule {
    /// One rank on each node in turn.
    Cyclic,
    /// This number of ranks on each node. The last node may have fewer.
    PerNode(usize),
    /// This number of ranks on each node in turn.
    Plane(usize),
    /// One node after the other, with different numbers of ranks.
    Blocks,
}

use LaunchRule::*;

/// A job in the terms of launchers.
struct Launch<'a> {
    ranks: usize,
    /// Number of ranks of each node in use, in node order.
    counts: Vec<usize>,
    /// Names of the nodes in use, if all of them have one and a command has room for them.
    hosts: Option<Vec<&'a str>>,
    rule: Option<LaunchRule>,
    any_domains: bool,
}

impl Launch<'_> {
    fn new(job: &Job) -> Launch<'_> {
        let mut used = job.node_of_rank.clone();
        used.sort_unstable();
        let counts = used.chunk_by(|one, next| one == next).map(<[Node]>::len);
        let counts = counts.collect();
        used.dedup();
        let hosts = used
            .iter()
            .map(|node| job.hosts.get(node.index()).map(String::as_str));
        Launch {
            ranks: job.node_of_rank.len(),
            counts,
            hosts: hosts
                .collect::<Option<_>>()
                .filter(|_| used.len() <= MOST_NAMED),
            rule: rule_of(&job.node_of_rank, &used),
            any_domains: !job.domain_of_rank.is_empty(),
        }
    }

    /// Hosts with their numbers of ranks, such as `a:2,b:1`.
    fn host_counts(&self) -> Option<String> {
        let hosts = self.hosts.as_ref()?.iter().zip(&self.counts);
        let words: Vec<String> = hosts
            .map(|(host, count)| format!("{host}:{count}"))
            .collect();
        Some(shell_word(&words.join(",")).into_owned())
    }

    fn mpirun(&self) -> String {
        let hosts = self.host_counts().map(|hosts| format!(" --host {hosts}"));
        format!("mpirun -np {}{}", self.ranks, hosts.unwrap_or_default())
    }

    fn open_mpi(&self) -> Option<String> {
        let policy = match self.rule.as_ref().filter(|_| !self.any_domains)? {
            Cyclic => "node".to_owned(),
            PerNode(ranks) => format!("ppr:{ranks}:node"),
            Blocks if self.hosts.is_some() => "slot".to_owned(),
            Blocks | Plane(_) => return None,
        };
        Some(format!("{} --map-by {policy}", self.mpirun()))
    }

    fn mpich(&self) -> Option<String> {
        let per_node = match self.rule.as_ref()? {
            Cyclic => 1,
            PerNode(ranks) | Plane(ranks) => *ranks,
            Blocks => {
                return Some(format!(
                    "mpiexec -n {} -hosts {}",
                    self.ranks,
                    self.host_counts()?
                ));
            }
        };
        let hosts = self
            .hosts
            .as_ref()
            .map(|hosts| format!(" -hosts {}", shell_word(&hosts.join(","))));
        let hosts = hosts.unwrap_or_default();
        Some(format!("mpiexec -n {}{hosts} -ppn {per_node}", self.ranks))
    }

    /// Command for Slurm. By default, srun decides from the free processors how many ranks a node gets, before it
    /// distributes them. It respects a requested number only if all nodes have the same.
    fn slurm(&self) -> Option<String> {
        let per_node = *self.counts.first()?;
        if self.counts.iter().any(|count| *count != per_node) {
            return None;
        }
        let distribution = match self.rule.as_ref()? {
            Cyclic => "cyclic".to_owned(),
            PerNode(_) => "block".to_owned(),
            Plane(ranks) => format!("plane={ranks}"),
            Blocks => return None,
        };
        let (ranks, nodes) = (self.ranks, self.counts.len());
        Some(format!(
            "srun --nodes={nodes} --ntasks={ranks} --ntasks-per-node={per_node} --distribution={distribution}"
        ))
    }
}

/// Returns the rule that a mapping follows on the nodes in use.
fn rule_of(nodes: &[Node], used: &[Node]) -> Option<LaunchRule> {
    let width = nodes.chunk_by(|one, next| one == next).next()?.len();
    let in_turn = used
        .iter()
        .flat_map(|node| std::iter::repeat_n(*node, width));
    if in_turn
        .cycle()
        .zip(nodes)
        .all(|(expected, node)| expected == *node)
    {
        let is_once = width * used.len() >= nodes.len();
        return Some(match width {
            1 if used.len() > 1 => Cyclic,
            _ if is_once => PerNode(width),
            _ => Plane(width),
        });
    }
    nodes.is_sorted().then_some(Blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints_of(nodes: &[u32], hosts: &[&str]) -> [LaunchHint; 4] {
        let job = Job {
            node_of_rank: nodes.iter().copied().map(Node).collect(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..Job::default()
        };
        hints(&job, "FILE")
    }

    /// Options after the number of ranks in the commands of Open MPI, MPICH and Slurm.
    fn rules(nodes: &[u32], hosts: &[&str]) -> [String; 3] {
        let [open_mpi, prrte, mpich, slurm] = hints_of(nodes, hosts);
        assert_eq!(open_mpi.by_rule, prrte.by_rule);
        let ranks = nodes.len();
        [
            (open_mpi, format!("mpirun -np {ranks} ")),
            (mpich, format!("mpiexec -n {ranks} ")),
            (slurm, "srun ".to_owned()),
        ]
        .map(|(hint, start)| {
            let rule = hint
                .by_rule
                .as_deref()
                .map(|rule| rule.strip_prefix(&*start).unwrap());
            rule.unwrap_or("none").to_owned()
        })
    }

    #[test]
    fn a_mapping_that_follows_a_rule_needs_only_options_of_the_launcher() {
        let cyclic = "--nodes=2 --ntasks=4 --ntasks-per-node=2 --distribution=cyclic";
        assert_eq!(
            rules(&[0, 1, 0, 1], &[]),
            ["--map-by node", "-ppn 1", cyclic]
        );
        assert_eq!(
            rules(&[0, 0, 1, 1], &["a", "b"]),
            [
                "--host a:2,b:2 --map-by ppr:2:node",
                "-hosts a,b -ppn 2",
                "--nodes=2 --ntasks=4 --ntasks-per-node=2 --distribution=block"
            ]
        );
        assert_eq!(
            rules(&[0, 0, 1], &[]),
            ["--map-by ppr:2:node", "-ppn 2", "none"]
        );
        assert_eq!(
            rules(&[0, 0, 1, 1, 0, 0, 1, 1], &[]),
            [
                "none",
                "-ppn 2",
                "--nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=plane=2"
            ]
        );
        assert_eq!(
            rules(&[0, 1, 1, 2], &["a", "b", "c"]),
            [
                "--host a:1,b:2,c:1 --map-by slot",
                "-hosts a:1,b:2,c:1",
                "none"
            ]
        );
        assert_eq!(rules(&[0, 0], &[])[0], "--map-by ppr:2:node");
    }

    #[test]
    fn other_mappings_need_a_file() {
        for nodes in [&[1, 0][..], &[0, 1, 1, 0], &[0, 1, 1, 2], &[0, 0, 1, 0, 0]] {
            assert_eq!(rules(nodes, &[]), ["none"; 3], "{nodes:?}");
        }
        let by_file = hints_of(&[1, 0, 1], &["a", "b"]).map(|hint| hint.by_file);
        assert_eq!(
            by_file,
            [
                "mpirun -np 3 --host a:1,b:2 --rankfile FILE",
                "mpirun -np 3 --host a:1,b:2 --map-by rankfile:file=FILE",
                "mpiexec -n 3 -f FILE",
                "SLURM_HOSTFILE=FILE srun --ntasks=3 --distribution=arbitrary"
            ]
        );
    }

    #[test]
    fn nodes_without_ranks_are_left_out() {
        let mpirun = &rules(&[1, 3, 1, 3], &["a", "b", "c", "d"])[0];
        assert_eq!(mpirun, "--host b:2,d:2 --map-by node");
    }

    #[test]
    fn no_option_of_open_mpi_assigns_ranks_to_sockets() {
        let job = Job {
            node_of_rank: vec![Node(0); 2],
            domain_of_rank: vec![1, 0],
            ..Job::default()
        };
        assert_eq!(hints(&job, "FILE")[0].by_rule, None);
    }
}
