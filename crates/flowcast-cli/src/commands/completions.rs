//! `flowcast completions` and `flowcast man`.

use std::io::stdout;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast completions bash > ~/.local/share/bash-completion/completions/flowcast")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub(crate) fn run(self) -> Result<()> {
        clap_complete::generate(self.shell, &mut Cli::command(), "flowcast", &mut stdout());
        Ok(())
    }
}

/// Write the manual pages
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast man ~/.local/share/man/man1 && man flowcast-predict")]
pub(crate) struct Man {
    /// Folder that receives one page for each command
    folder: PathBuf,
}

impl Man {
    /// Writes the pages.
    pub(crate) fn run(self) -> Result<()> {
        std::fs::create_dir_all(&self.folder).with_context(|| format!("cannot make {}", self.folder.display()))?;
        clap_mangen::generate_to(Cli::command(), &self.folder)
            .with_context(|| format!("cannot write into {}", self.folder.display()))?;
        Ok(())
    }
}
