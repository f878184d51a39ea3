//! Nodes on which ranks may run: their slots, names and positions.

use std::{path::Path, str::FromStr};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    model::network::Network,
    units::{MOST_RANKS, Node},
};
use flowcast_place::{host_list, job::Job, positions::positions};
use flowcast_tuning::{allocations::Allocations, hosts::host_places};

use crate::commands::mapping::node_count;
use flowcast_terminal::{files::read_text, host_args::HostArgs};

/// Nodes of the job.
#[derive(Debug, Args)]
pub(super) struct NodeArgs {
    /// Number of nodes, at most 2^24 [default: number in --hosts or --allocations]; the search uses only the first of them,
    /// as many as there are ranks and at least 4096
    #[arg(long, value_parser = node_count())]
    nodes: Option<u32>,
    /// Ranks that fit on each node, such as 16; 2x8 for two sockets of eight; 16,16,8 for nodes of different sizes
    #[arg(long, alias = "slots", value_name = "RANKS")]
    ranks_per_node: Option<SlotList>,
    #[command(flatten)]
    hosts: HostArgs,
    /// Positions of the nodes in the topology: a list such as 0-15,32,40-47, a file with one, or a table
    /// system,run,nodes,rank,node,group,switch of one run
    #[arg(long, value_name = "LIST|FILE")]
    allocations: Option<String>,
}

/// Number of ranks that fit on nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotList {
    /// One number for all nodes, or one for each.
    of_nodes: Vec<u32>,
    /// Sockets or other domains of each node, over which its slots are divided evenly.
    domains: u32,
}

impl FromStr for SlotList {
    type Err = String;

    fn from_str(text: &str) -> Result<SlotList, String> {
        SlotList::parsed(text).ok_or_else(|| {
            format!("found `{text}`, expected ranks per node such as 16, 2x8 or 16,16,8, each at least 1")
        })
    }
}

impl SlotList {
    fn parsed(text: &str) -> Option<SlotList> {
        if let Some((domains, slots)) = text.split_once('x') {
            let domains = slots_of(domains)?;
            return Some(SlotList {
                of_nodes: vec![domains.checked_mul(slots_of(slots)?)?],
                domains,
            });
        }
        Some(SlotList {
            of_nodes: text.split(',').map(slots_of).collect::<Option<_>>()?,
            domains: 1,
        })
    }
}

fn slots_of(text: &str) -> Option<u32> {
    let number = text.trim().parse().ok();
    number.filter(|number| (1..=MOST_RANKS).contains(number))
}

impl NodeArgs {
    /// Files among the arguments.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let named = [&self.hosts.hosts, &self.allocations].into_iter().flatten();
        named.map(Path::new).filter(|path| path.is_file())
    }

    /// The nodes. If no slots are given, each node has room for an equal share of the ranks.
    pub(super) fn job(&self, network: &Network, ranks: usize) -> Result<Job> {
        let mut job = self.hosts.job()?;
        job.positions = self.positions(network, &job.hosts)?;
        let nodes = self.count(job.hosts.len(), job.positions.len())?;
        if let Some(list) = &self.ranks_per_node {
            job.domains = list.domains;
            job.slots = match list.of_nodes[..] {
                [slots] => vec![slots; nodes],
                ref slots if slots.len() == nodes => slots.to_vec(),
                ref slots => bail!(
                    "--ranks-per-node: found {} numbers, expected one, or one for each of {nodes} nodes",
                    slots.len()
                ),
            };
        } else if job.slots.is_empty() {
            job.slots = vec![ranks.div_ceil(nodes) as u32; nodes];
        }
        let most = network.topology.as_ref().map(|topology| topology.nodes());
        if let Some(most) = most.transpose()?.flatten() {
            let highest = job.positions.iter().map(|node| u64::from(node.0) + 1).max();
            let needed = highest.unwrap_or(nodes as u64);
            ensure!(
                needed <= most,
                "found {needed} nodes, expected at most {most}, the number in the topology"
            );
        }
        Ok(job)
    }

    fn count(&self, names: usize, positions: usize) -> Result<usize> {
        let known = [
            ("--nodes", self.nodes.unwrap_or(0) as usize),
            ("--hosts", names),
            ("--allocations", positions),
        ];
        let mut known = known.into_iter().filter(|(_, count)| *count > 0);
        let Some((option, nodes)) = known.next() else {
            bail!("found no number of nodes, expected --nodes, --hosts or --allocations");
        };
        if let Some((other, count)) = known.find(|(_, count)| *count != nodes) {
            bail!(
                "found {nodes} nodes in {option} and {count} in {other}, expected the same number"
            );
        }
        Ok(nodes)
    }

    fn positions(&self, network: &Network, names: &[String]) -> Result<Vec<Node>> {
        let blocks = self.hosts.host_blocks.as_ref();
        let Some(topology) = &network.topology else {
            ensure!(
                self.allocations.is_none() && blocks.is_none(),
                "--allocations, --host-blocks: found the network {} without a topology, expected one with [topology]",
                network.name
            );
            return Ok(Vec::new());
        };
        let Some(allocations) = &self.allocations else {
            if names.is_empty() {
                return Ok(Vec::new());
            }
            // Nodes whose names have no place are in the order of the list.
            return match host_places(names, blocks) {
                Ok(places) => Ok(positions(topology, &places).context("--hosts")?),
                Err(error) if blocks.is_some() => Err(error).context("--hosts"),
                Err(_) => Ok(Vec::new()),
            };
        };
        let path = Path::new(allocations);
        let (name, text) = match path.is_file() {
            true => (allocations.as_str(), read_text(path)?),
            false => ("--allocations", allocations.clone()),
        };
        if !text.contains("group") {
            return Ok(host_list::positions(name, &text)?);
        }
        let places = Allocations::from_csv(&text).and_then(|of_jobs| of_jobs.only_job());
        places
            .map_err(anyhow::Error::from)
            .and_then(|places| Ok(positions(topology, &places)?))
            .with_context(|| format!("--allocations {allocations}"))
    }
}
