//! `flowcast explain`: what stands behind a prediction.

mod collectives;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Say what stands behind a prediction
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast explain collectives is.dim --collectives mpich")]
pub struct Explain {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Collectives(collectives::Collectives),
}

impl Explain {
    /// Explains and prints.
    pub fn run(self) -> Result<()> {
        match self.what {
            What::Collectives(command) => command.run(),
        }
    }
}
