//! `flowcast mpi-rank`: a rank that carries patterns for another process of this program.

use std::io;

use anyhow::Result;
use clap::Args;
use flowcast_measure::mpi::{MpiError, serve};

use flowcast_terminal::{exit::EnvironmentLacks, provenance};

/// Carry patterns by MPI
///
/// Started by `measure conflicts` and `validate pattern` under a launcher.
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:\n  echo [[0,1,4000000,0]] | mpirun -np 2 flowcast mpi-rank"
)]
pub(crate) struct MpiRank;

impl MpiRank {
    /// Executes orders until there are no more.
    pub(crate) fn run(self) -> Result<()> {
        let served = serve(
            &provenance::host(),
            &mut io::stdin().lock(),
            &mut io::stdout().lock(),
        );
        served.map_err(|error| match error {
            MpiError::Order(_) | MpiError::TooLong(_) => error.into(),
            _ => EnvironmentLacks(error.to_string()).into(),
        })
    }
}
