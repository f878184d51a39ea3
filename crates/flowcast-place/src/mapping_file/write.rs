//! Writers of mapping files.

use std::{collections::BTreeMap, fmt::Write as _};

use flowcast_units::Node;

use super::{
    super::{host_list::is_host, job::Job},
    MappingError,
};

/// Formats for the node of each rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingFormat {
    /// One node number on each line.
    Nodes,
    /// Open MPI's rankfile, a line for each rank.
    Rankfile,
    /// The rankfile of Open MPI 5 and its runtime PRRTE: the same lines, but passed by `--map-by`.
    PrrteRankfile,
    /// MPICH's `host:n`: n consecutive ranks on this host.
    HostCounts,
    /// Slurm's host file for arbitrary distribution.
    HostList,
}

use MappingFormat::*;

impl MappingFormat {
    /// All formats, in the order of tables.
    pub const ALL: [MappingFormat; 5] = [Nodes, Rankfile, PrrteRankfile, HostCounts, HostList];
}

/// Checks that no name of a host could be interpreted as something else.
pub(crate) fn check_hosts(job: &Job) -> Result<(), MappingError> {
    match job.hosts.iter().find(|name| !is_host(name)) {
        Some(name) => Err(MappingError::Name(name.clone())),
        None => Ok(()),
    }
}

/// Writes the node of each rank. A rankfile without hosts names nodes by number. Its slots count the ranks on each node or,
/// if the job has domains, on each domain (`slot=1:0`). The other formats have no domains.
///
/// # Errors
/// A node without a name in a format that needs one, and a name that could be interpreted as something else.
pub fn write(form: MappingFormat, job: &Job) -> Result<String, MappingError> {
    check_hosts(job)?;
    let nodes = job.node_of_rank.iter();
    let mut text = String::new();
    let mut line =
        |line: std::fmt::Arguments| writeln!(text, "{line}").expect("a string takes all text");
    match form {
        Nodes => nodes.for_each(|node| line(format_args!("{node}"))),
        Rankfile | PrrteRankfile => {
            for (rank, (node, slot)) in nodes.zip(slots(job)).enumerate() {
                match job.hosts[..] {
                    [] => line(format_args!("rank {rank}=+n{node} slot={slot}")),
                    _ => line(format_args!(
                        "rank {rank}={} slot={slot}",
                        host(job, *node)?
                    )),
                }
            }
        }
        HostCounts => {
            for run in job.node_of_rank.chunk_by(|one, next| one == next) {
                line(format_args!("{}:{}", host(job, run[0])?, run.len()));
            }
        }
        HostList => {
            for node in nodes {
                line(format_args!("{}", host(job, *node)?));
            }
        }
    }
    Ok(text)
}

fn host(job: &Job, node: Node) -> Result<&String, MappingError> {
    let name = job.hosts.get(node.index());
    name.ok_or(MappingError::Nameless(node))
}

/// Returns the slot of each rank in a rankfile: a core of its node, or a core of its domain.
fn slots(job: &Job) -> Vec<String> {
    let mut taken: BTreeMap<(Node, Option<u32>), u32> = BTreeMap::new();
    let mut slots = Vec::with_capacity(job.node_of_rank.len());
    for (rank, node) in job.node_of_rank.iter().enumerate() {
        let domain = job.domain_of_rank.get(rank).copied();
        let core = taken.entry((*node, domain)).or_default();
        slots.push(match domain {
            Some(domain) => format!("{domain}:{core}"),
            None => core.to_string(),
        });
        *core += 1;
    }
    slots
}

#[cfg(test)]
mod tests {
    use flowcast_network::machine::Mapping;
    use proptest::prelude::*;

    use super::{super::read, *};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn job(hosts: &[String]) -> Job {
        Job {
            hosts: hosts.to_vec(),
            node_of_rank: [1, 0, 0, 1].map(Node).to_vec(),
            ..Job::default()
        }
    }

    #[test]
    fn each_format_is_written_as_its_reader_expects() {
        let hosts = names(&["a", "b"]);
        let written = |form, hosts| write(form, &job(hosts)).unwrap();
        assert_eq!(written(MappingFormat::Nodes, &[]), "1\n0\n0\n1\n");
        let rankfile = written(MappingFormat::Rankfile, &hosts);
        assert_eq!(
            rankfile,
            "rank 0=b slot=0\nrank 1=a slot=0\nrank 2=a slot=1\nrank 3=b slot=1\n"
        );
        assert_eq!(written(MappingFormat::PrrteRankfile, &hosts), rankfile);
        assert!(written(MappingFormat::Rankfile, &[]).starts_with("rank 0=+n1 slot=0\n"));
        assert_eq!(
            written(MappingFormat::HostCounts, &hosts),
            "b:1\na:2\nb:1\n"
        );
        assert_eq!(written(MappingFormat::HostList, &hosts), "b\na\na\nb\n");
        let nameless = write(MappingFormat::HostList, &job(&hosts[..1])).unwrap_err();
        assert_eq!(nameless, MappingError::Nameless(Node(1)));
        for name in ["", "a b", "12", "a:1", "rank", "fill"] {
            assert_eq!(
                write(MappingFormat::HostList, &job(&names(&[name]))),
                Err(MappingError::Name(name.into()))
            );
        }
    }

    #[test]
    fn ranks_assigned_to_sockets_fill_the_cores_of_each_socket_in_order() {
        let job = Job {
            node_of_rank: [0, 0, 0, 1, 0].map(Node).to_vec(),
            domain_of_rank: vec![1, 0, 1, 1, 0],
            ..Job::default()
        };
        assert_eq!(
            write(MappingFormat::Rankfile, &job).unwrap(),
            "rank 0=+n0 slot=1:0\nrank 1=+n0 slot=0:0\nrank 2=+n0 slot=1:1\nrank 3=+n1 slot=1:0\nrank 4=+n0 slot=0:1\n"
        );
    }

    proptest! {
        #[test]
        fn every_format_reads_back_equal(
            ranks in prop::collection::vec((0u32..6, 0u32..3), 1..40),
            ordered in any::<bool>(),
        ) {
            let hosts = names(&["n0", "login.x", "n-2", "n_3", "4n", "h5"]);
            let numbers: Vec<u32> = ranks.iter().map(|(node, _)| *node).collect();
            let job = Job {
                node_of_rank: numbers.iter().copied().map(Node).collect(),
                domain_of_rank: ranks.iter().filter(|_| ordered).map(|(_, domain)| *domain).collect(),
                ..job(&hosts)
            };
            for form in MappingFormat::ALL {
                let text = write(form, &job).unwrap();
                let read = read("m", &text, &mut hosts.clone());
                prop_assert_eq!(read, Ok(Mapping::List(numbers.clone())), "{}", text);
            }
        }
    }
}
