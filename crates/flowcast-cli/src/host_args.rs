//! `--hosts LIST|FILE` and `--host-blocks`, the same for every command that has them.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use flowcast::{
    collectives::hosts::HostBlocks,
    place::host_list::{self, ListedHost},
};

use crate::terminal::files::read_text;

/// Which nodes there are, and where.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Names of the nodes in their order, as a list or a file of Slurm, Open MPI, MPICH or PBS, with their slots if these are
    /// known: n[001-032,040], n0:16 or n0 slots=16
    #[arg(long, value_name = "LIST|FILE")]
    pub(crate) hosts: Option<String>,
    #[arg(long, value_name = "SWITCH,GROUP[,FIRST]", requires = "hosts", help = blocks_help())]
    pub(crate) host_blocks: Option<HostBlocks>,
}

fn blocks_help() -> String {
    format!(
        "--hosts whose names only count, such as lrdn0001: nodes of each switch, of each group, and the first number \
         [default: {}]",
        HostBlocks::FIRST
    )
}

impl HostArgs {
    /// The hosts that are named; none if none are.
    pub(crate) fn listed(&self) -> Result<Vec<ListedHost>> {
        let hosts = self.hosts.as_deref().map(listed_hosts).transpose()?;
        Ok(hosts.unwrap_or_default())
    }
}

/// The hosts of a list, or of a file with one.
pub(crate) fn listed_hosts(text: &str) -> Result<Vec<ListedHost>> {
    let path = Path::new(text);
    Ok(if path.is_file() {
        host_list::hosts(text, &read_text(path)?)?
    } else {
        host_list::hosts("--hosts", text)?
    })
}

/// The names of hosts.
pub(crate) fn names(hosts: &[ListedHost]) -> Vec<String> {
    hosts.iter().map(|host| host.name.clone()).collect()
}
