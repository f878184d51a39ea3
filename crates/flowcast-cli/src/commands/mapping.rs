//! `flowcast mapping`: from any file that says where ranks run to any other.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use flowcast::{
    model::machine::{Machine, Mapping as Rule, NodeGroup},
    place::mapping_file::{self, MappingFormat},
    replay::placement::Placement,
    table::Document,
    units::{Node, Rank},
};

use crate::terminal::{
    files::{Output, declare, read_text, write_text},
    output::{Format, print_out},
};

/// Say where ranks run, in the format that another program reads
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast mapping ranks.map --format rankfile -o rankfile && mpirun --rankfile rankfile ...
  flowcast mapping round-robin --ranks 8 --nodes 4 --format slurm --hosts n1,n2,n3,n4
  flowcast mapping rankfile --json")]
pub(crate) struct Mapping {
    /// A rule (fill, round-robin, N-per-node), or a file: the node of each rank, an Open MPI rankfile, MPICH's host:n,
    /// Slurm's host list
    map: String,
    /// Format to write; the nodes by number if absent
    #[arg(long = "format", value_name = "FORMAT", conflicts_with = "json")]
    to: Option<FileFormat>,
    /// Names of the nodes, in node order: a list with commas, or a file with a name on each line
    #[arg(long, value_name = "HOSTS")]
    hosts: Option<String>,
    /// Ranks, for a rule
    #[arg(long)]
    ranks: Option<usize>,
    /// Nodes, for a rule; as many as there are hosts if absent
    #[arg(long)]
    nodes: Option<u32>,
    /// Ranks that `fill` puts on a node
    #[arg(long, default_value_t = 1)]
    slots: u32,
    /// File to write; standard output if absent
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// Formats, by the programs that read them.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum FileFormat {
    /// The node of each rank, one on a line
    Nodes,
    /// Open MPI's rankfile
    #[value(alias = "openmpi")]
    Rankfile,
    /// MPICH's host:n
    #[value(alias = "host-counts")]
    Mpich,
    /// Slurm's host list for arbitrary distribution
    #[value(alias = "host-list")]
    Slurm,
}

impl From<FileFormat> for MappingFormat {
    fn from(format: FileFormat) -> MappingFormat {
        match format {
            FileFormat::Nodes => MappingFormat::Nodes,
            FileFormat::Rankfile => MappingFormat::Rankfile,
            FileFormat::Mpich => MappingFormat::HostCounts,
            FileFormat::Slurm => MappingFormat::HostList,
        }
    }
}

impl Mapping {
    /// Reads and writes.
    pub(crate) fn run(self) -> Result<()> {
        let inputs = std::iter::once(self.map.as_str())
            .chain(self.hosts.as_deref())
            .map(Path::new);
        let outputs = self.output.iter().map(|path| Output::new("-o", path));
        declare(inputs, outputs)?;
        let given = self
            .hosts
            .as_deref()
            .map(host_names)
            .transpose()?
            .unwrap_or_default();
        let file = match mapping_file::rule(&self.map) {
            Some(mapping) => mapping_file::MappingFile {
                mapping,
                hosts: given,
            },
            None => mapping_file::read(&self.map, &read_text(Path::new(&self.map))?, &given)?,
        };
        let nodes = self.nodes_of(&file)?;
        let to = self.to.unwrap_or(FileFormat::Nodes).into();
        let text = || mapping_file::write(to, &nodes, &file.hosts);
        if let Some(path) = &self.output {
            return write_text(path, &text()?);
        }
        if !self.format.json {
            print_out!("{}", text()?);
            return Ok(());
        }
        self.format.print(
            &Document::new("mapping")
                .field("nodes", &nodes)
                .field("hosts", &file.hosts),
        )
    }

    /// The node of each rank. A rule needs to know how many ranks and nodes there are.
    fn nodes_of(&self, file: &mapping_file::MappingFile) -> Result<Vec<Node>> {
        if let Rule::List(nodes) = &file.mapping {
            if self.ranks.is_some_and(|ranks| ranks != nodes.len()) {
                bail!(
                    "{}: found {} ranks, expected {}",
                    self.map,
                    nodes.len(),
                    self.ranks.unwrap_or_default()
                );
            }
            return Ok(nodes.iter().map(|node| Node(*node)).collect());
        }
        let ranks = self
            .ranks
            .context("found a rule, expected --ranks N with it")?;
        let hosts = u32::try_from(file.hosts.len())
            .ok()
            .filter(|hosts| *hosts > 0);
        let count = self
            .nodes
            .or(hosts)
            .context("found a rule, expected --nodes N or --hosts with it")?;
        on_equal_nodes(
            &file.mapping,
            ranks,
            NodeGroup {
                count,
                cpus: self.slots,
                ..NodeGroup::default()
            },
        )
    }
}

/// The node of each rank on the nodes of a group.
pub(super) fn on_equal_nodes(mapping: &Rule, ranks: usize, group: NodeGroup) -> Result<Vec<Node>> {
    let machine = Machine {
        nodes: vec![group],
        ..Machine::default()
    };
    let placement = Placement::new(&machine, Some(mapping), ranks)?;
    Ok((0..ranks as u32)
        .map(|rank| placement.node(Rank(rank)))
        .collect())
}

fn host_names(text: &str) -> Result<Vec<String>> {
    let path = Path::new(text);
    let names = if path.is_file() {
        read_text(path)?
    } else {
        text.replace(',', "\n")
    };
    Ok(names
        .lines()
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect())
}
