//! `flowcast mapping`: converts mappings between the formats of files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, builder::RangedI64ValueParser};
use flowcast::{
    model::machine::{Machine, Mapping as Rule, NodeGroup},
    replay::placement::Placement,
    table::Document,
    units::{MOST_RANKS, Node, Rank},
};
use flowcast_place as place;
use flowcast_place::{
    job::Job,
    mapping_file,
    reordered::{ProgramGrid, Reordering},
    target::TargetError,
};

use flowcast_terminal::{
    files::{Output, declare, read_text, write_text},
    host_args::job_on,
    mapping_format::{FileFormat, launch_sentence, launch_table},
    output::Format,
    print_out, say,
};

/// Parser of a number of ranks or nodes.
pub(super) fn node_count() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(MOST_RANKS))
}

/// Write a mapping of ranks in the format of a launcher
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast mapping ranks.map --format openmpi -o rankfile && mpirun --rankfile rankfile ...
  flowcast mapping round-robin --ranks 8 --nodes 4 --format slurm --hosts n1,n2,n3,n4
  flowcast mapping ranks.map --format c --grid 4x2 -o reorder.c
  flowcast mapping rankfile --json")]
pub(crate) struct Mapping {
    /// Rule (fill, round-robin, N-per-node), or file: the node of each rank, an Open MPI rankfile, a list of host:n (MPICH) or
    /// of hosts (Slurm)
    map: String,
    /// Output format [default: c or fortran if the output file ends in .c or .f90, otherwise nodes]
    #[arg(long = "format", value_name = "FORMAT", conflicts_with = "json")]
    to: Option<FileFormat>,
    /// Names of the nodes in order: a list, or a file of Slurm, Open MPI, MPICH or PBS, such as n[001-032,040] or n0:16
    #[arg(long, value_name = "LIST|FILE")]
    hosts: Option<String>,
    /// Number of ranks, for a rule; at most 2^24
    #[arg(long, value_parser = node_count())]
    ranks: Option<u32>,
    /// Number of nodes, for a rule, at most 2^24 [default: number of hosts]
    #[arg(long, value_parser = node_count())]
    nodes: Option<u32>,
    /// Ranks that `fill` puts on a node, at most 2^24; the last node gets the remaining ranks [default: the slots of --hosts,
    /// else one]
    #[arg(long, alias = "slots", value_parser = node_count())]
    ranks_per_node: Option<u32>,
    /// Mapping with which the job is launched, for a program that reorders its ranks (--format c or fortran): a rule or a
    /// file [default: as many processes on each node as MAP puts there, node after node]
    #[arg(long, value_name = "MAP")]
    mapping: Option<String>,
    /// Cartesian grid of the program (--format c or fortran), for a function that creates its communicator; NxM:column-major
    /// if ranks count its first dimension fastest
    #[arg(long, value_name = "NxM")]
    grid: Option<String>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Mapping {
    /// Reads the mapping and writes it.
    pub(crate) fn run(self) -> Result<()> {
        let named_files = [Some(&self.map), self.hosts.as_ref(), self.mapping.as_ref()];
        let inputs = named_files.into_iter().flatten().map(Path::new);
        declare(inputs, Output::each("-o", &self.output))?;
        let mut job = job_on(self.hosts.as_deref())?;
        let mapping = rule_or_file(&self.map, &mut job)?;
        let ranks = self.ranks.map(|ranks| ranks as usize);
        job.node_of_rank = self.nodes_of_ranks(&self.map, &mapping, ranks, &job)?;
        if self.format.json {
            return self.format.print(
                &Document::new("mapping")
                    .field("nodes", &job.node_of_rank)
                    .field("hosts", &job.hosts)
                    .table("launch", launch_table(&job)),
            );
        }
        self.write(&job)
    }

    fn write(&self, job: &Job) -> Result<()> {
        let output = self.output.as_deref();
        let to = self
            .to
            .or_else(|| output.and_then(FileFormat::of_ending))
            .unwrap_or(FileFormat::Nodes);
        let launched = match &self.mapping {
            Some(launched) if to.is_program() => {
                let mut before = job.clone();
                let mapping = rule_or_file(launched, &mut before)?;
                let ranks = Some(job.node_of_rank.len());
                Some(self.nodes_of_ranks(launched, &mapping, ranks, &before)?)
            }
            _ => None,
        };
        let text = to.write(&Reordering {
            job,
            launched: launched.as_deref(),
            grid: self.grid()?.as_ref(),
        })?;
        match &self.output {
            Some(path) => write_text(path, &text)?,
            None => print_out!("{text}"),
        }
        let path = self.output.as_deref().unwrap_or(Path::new("FILE"));
        if let Some(hint) = to.hint(job, &path.display().to_string()) {
            say!("flowcast: {}", launch_sentence(&hint));
        }
        Ok(())
    }

    fn grid(&self) -> Result<Option<ProgramGrid>> {
        let Some(text) = &self.grid else {
            return Ok(None);
        };
        let column_major = text.strip_suffix(":column-major");
        let dims = column_major
            .unwrap_or(text)
            .split('x')
            .map(|dim| dim.trim().parse().ok());
        let dims = dims
            .collect::<Option<_>>()
            .with_context(|| format!("--grid: found `{text}`, expected numbers such as 4x2"))?;
        Ok(Some(ProgramGrid {
            dims,
            is_column_major: column_major.is_some(),
        }))
    }

    /// Node of each rank. A rule needs the numbers of ranks and nodes.
    fn nodes_of_ranks(
        &self,
        name: &str,
        mapping: &Rule,
        ranks: Option<usize>,
        Job { hosts, slots, .. }: &Job,
    ) -> Result<Vec<Node>> {
        let hosts = u32::try_from(hosts.len()).ok().filter(|hosts| *hosts > 0);
        if let (Some(nodes), Some(hosts), Some(_)) = (self.nodes, hosts, &self.hosts)
            && nodes != hosts
        {
            bail!(
                "found {nodes} nodes in --nodes and {hosts} in --hosts, expected the same number"
            );
        }
        let count = self.nodes.or(hosts);
        let (ranks, count) = match (mapping, count) {
            (Rule::List(nodes), _) if ranks.is_some_and(|ranks| ranks != nodes.len()) => {
                let (found, ranks) = (nodes.len(), ranks.unwrap_or_default());
                bail!("{name}: found {found} ranks, expected {ranks}");
            }
            (Rule::List(nodes), None) => return Ok(nodes.iter().copied().map(Node).collect()),
            (Rule::List(nodes), Some(count)) => (nodes.len(), count),
            (_, count) => (
                ranks.context("found a rule without a number of ranks, expected --ranks N")?,
                count.context("found a rule without nodes, expected --nodes N or --hosts")?,
            ),
        };
        let groups = match self.ranks_per_node {
            None if slots.len() == count as usize => slots
                .iter()
                .map(|slots| NodeGroup::new(1, *slots))
                .collect(),
            per_node => vec![NodeGroup::new(count, per_node.unwrap_or(1))],
        };
        let room: u64 = groups
            .iter()
            .map(|group| u64::from(group.count) * u64::from(group.cpus))
            .sum();
        let is_limited = self.ranks_per_node.is_some() || !slots.is_empty();
        ensure!(
            !is_limited || ranks as u64 <= room,
            TargetError::TooFewSlots { ranks, slots: room }
        );
        on_nodes(mapping, ranks, groups)
    }
}

fn rule_or_file(text: &str, job: &mut Job) -> Result<Rule> {
    Ok(match place::rule(text) {
        Some(rule) => rule,
        None => mapping_file::read(text, &read_text(Path::new(text))?, &mut job.hosts)?,
    })
}

/// Node of each rank under a mapping, on a machine with these groups of nodes.
pub(super) fn on_nodes(mapping: &Rule, ranks: usize, nodes: Vec<NodeGroup>) -> Result<Vec<Node>> {
    let machine = Machine {
        nodes,
        ..Machine::default()
    };
    let placement = Placement::new(&machine, Some(mapping), ranks)?;
    Ok((0..ranks as u32)
        .map(|rank| placement.node(Rank(rank)))
        .collect())
}
