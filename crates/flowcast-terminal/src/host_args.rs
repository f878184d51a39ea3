//! `--hosts LIST|FILE` and `--host-blocks`, the same for every command that has them.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use flowcast_place::{host_list, job::Job};
use flowcast_tuning::hosts::HostBlocks;

use crate::files::read_text;

/// Nodes and their positions.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// Names of the nodes in order, as a list or a file of Slurm, Open MPI, MPICH or PBS, optionally with slots:
    /// n[001-032,040], n0:16, 'n0 slots=16'
    #[arg(long, value_name = "LIST|FILE")]
    pub hosts: Option<String>,
    #[arg(long, value_name = "SWITCH,GROUP[,FIRST]", requires = "hosts", help = blocks_help())]
    pub host_blocks: Option<HostBlocks>,
}

fn blocks_help() -> String {
    format!(
        "With --hosts whose names are only numbered, such as lrdn0001: nodes per switch, nodes per group, first number \
         [default: {}]",
        HostBlocks::FIRST
    )
}

impl HostArgs {
    /// Job on the given hosts.
    pub fn job(&self) -> Result<Job> {
        job_on(self.hosts.as_deref())
    }
}

/// Job on the hosts of a list, or of a file that contains one.
pub fn job_on(hosts: Option<&str>) -> Result<Job> {
    Ok(match hosts {
        None => Job::default(),
        Some(file) if Path::new(file).is_file() => {
            host_list::hosts(file, &read_text(Path::new(file))?)?
        }
        Some(list) => host_list::hosts("--hosts", list)?,
    })
}
