//! `flowcast completions` and `flowcast man`.

use std::io::stdout;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::files::Batch;

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
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        let mut batch = Batch::new();
        write_pages(command, &self.folder, &mut batch)?;
        batch.commit()
    }
}

/// The pages of a command and of those below it.
fn write_pages(command: Command, folder: &Path, batch: &mut Batch) -> Result<()> {
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set()).cloned();
    shown.into_iter().try_for_each(|below| write_pages(below, folder, batch))?;
    let page = clap_mangen::Man::new(command);
    batch.write(&folder.join(page.get_filename()), |out| Ok(page.render(out)?))
}
