//! `--collectives`: whether collectives cost what a formula says or are carried out by messages, and by which.

use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use flowcast::model::algorithm::{AlgorithmTable, Base};
use flowcast::model::network::Network;
use flowcast::trace::expand::{Expanded, Immediate, expand};
use flowcast::trace::{Program, ReadOptions};

use crate::files::read_text;

/// How collective operations are replayed.
#[derive(Debug, Clone, Default, Args)]
pub struct CollectivesArgs {
    /// Collectives by formula (`formula`), or by messages: as `openmpi` or `mpich` does it, as the network file says
    /// (`algorithm`; Open MPI where it does not), or as a table says (`algorithm:FILE`)
    #[arg(long, value_name = "HOW")]
    pub collectives: Option<String>,
}

impl CollectivesArgs {
    /// The program with its collectives as messages, unless they cost what the formula says.
    pub fn apply(&self, program: &Program, network: Option<&Network>) -> Result<Option<Program>> {
        let Some(expanded) = self.expand(program, network)? else { return Ok(None) };
        if expanded.kept > 0 {
            eprintln!(
                "flowcast: note: {} collectives keep their formula: their communicator names a rank twice",
                expanded.kept
            );
        }
        Ok(Some(expanded.program))
    }

    /// The same with what was done.
    pub fn expand(&self, program: &Program, network: Option<&Network>) -> Result<Option<Expanded>> {
        let Some(table) = self.table(network)? else { return Ok(None) };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Some(expand(program, &table, Immediate::Expanded, ReadOptions { threads })?))
    }

    /// The rules; `None` for the formula.
    pub fn table(&self, network: Option<&Network>) -> Result<Option<AlgorithmTable>> {
        let in_network = || network.and_then(|network| network.collectives.algorithms.clone()).unwrap_or_default();
        Ok(match self.collectives.as_deref() {
            None | Some("formula") => None,
            Some("openmpi") => Some(AlgorithmTable::of(Base::OpenMpi)),
            Some("mpich") => Some(AlgorithmTable::of(Base::Mpich)),
            Some("algorithm") => Some(in_network().with_base()),
            Some(other) => Some(read_table(other)?.with_base()),
        })
    }
}

fn read_table(option: &str) -> Result<AlgorithmTable> {
    let file = option.strip_prefix("algorithm:").with_context(|| {
        format!("--collectives: found `{option}`, expected formula, openmpi, mpich, algorithm or algorithm:FILE")
    })?;
    AlgorithmTable::from_toml(&read_text(Path::new(file))?).with_context(|| file.to_owned())
}
