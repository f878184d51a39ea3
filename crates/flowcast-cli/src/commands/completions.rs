//! `flowcast completions` and `flowcast man`.
//!
//! The scripts query the command for possible completions, so that these include networks, models and fields.

use std::{
    ffi::OsStr,
    io::{Write, stdout},
    path::{Path, PathBuf},
    process::exit,
};

use anyhow::{Context, Result};
use clap::{Args, Command, error::ErrorKind};
use clap_complete::{
    CompleteEnv, Shell,
    engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter},
    env::Shells,
};
use flowcast::model::{builtin, network_file::field_names, sharing::model::Model};

use super::Cli;
use flowcast::study::grid::SHORT_NAMES;
use flowcast_terminal::{files::Batch, output::exit_on_write_error};

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  mkdir -p ~/.local/share/bash-completion/completions
  flowcast completions bash > ~/.local/share/bash-completion/completions/flowcast")]
pub(crate) struct Completions {
    /// Shell for which the script is printed
    shell: Shell,
}

/// Environment variable by which a script requests completions, with the name of the shell.
const COMPLETE_VARIABLE: &str = "COMPLETE";

impl Completions {
    /// Prints the script.
    pub(crate) fn run(self) -> Result<()> {
        let shells = Shells::builtins();
        let shell = shells
            .completer(&self.shell.to_string())
            .context("found a shell without completions")?;
        Ok(shell.write_registration(
            COMPLETE_VARIABLE,
            "flowcast",
            "flowcast",
            "flowcast",
            &mut stdout(),
        )?)
    }
}

/// Answers a script that requests completions, and ends the process. Does nothing if there is no such request.
pub(crate) fn answer_shell() {
    let words = std::env::args_os();
    let answered = CompleteEnv::with_factory(|| with_values(Cli::described()))
        .var(COMPLETE_VARIABLE)
        .try_complete(words, std::env::current_dir().ok().as_deref());
    match answered {
        Ok(false) => {}
        Ok(true) => {
            exit_on_write_error(stdout().flush());
            exit(0)
        }
        Err(error) if error.kind() == ErrorKind::Io => {
            let _ = error.print();
            exit(3)
        }
        Err(error) => error.exit(),
    }
}

/// Adds the values of arguments to the command.
fn with_values(command: Command) -> Command {
    let command = command.mut_args(|argument| match argument.get_id().as_str() {
        "network" | "networks" => argument.add(ArgValueCompleter::new(networks)),
        "model" | "models" => argument.add(ArgValueCompleter::new(models)),
        "overrides" | "grid" => argument.add(ArgValueCompleter::new(fields)),
        _ => argument,
    });
    command.mut_subcommands(with_values)
}

fn beginning_with(
    names: impl Iterator<Item = String>,
    current: &OsStr,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    names
        .filter(|name| name.starts_with(&*current))
        .map(CompletionCandidate::new)
        .collect()
}

/// Built-in networks, and files.
fn networks(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = beginning_with(
        builtin::NETWORKS.iter().map(|(name, _)| (*name).to_owned()),
        current,
    );
    all.extend(PathCompleter::any().complete(current));
    all
}

fn models(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = Model::ALL
        .iter()
        .map(|model| model.name())
        .chain(["limits"]);
    beginning_with(names.map(str::to_owned), current)
}

/// Fields that have a value, with the equals sign. `*` stands for all places of a list.
fn fields(current: &OsStr) -> Vec<CompletionCandidate> {
    let all = field_names::all();
    let short = SHORT_NAMES.iter().map(|name| format!("{name}="));
    beginning_with(
        all.iter()
            .filter(|name: &&String| {
                let section = format!("{name}.");
                !name.contains("NAME") && !all.iter().any(|other| other.starts_with(&section))
            })
            .map(|name| format!("{}=", place(name)))
            .chain(short),
        current,
    )
}

fn place(name: &str) -> String {
    name.split('.')
        .map(|part| if part == "N" { "*" } else { part })
        .collect::<Vec<_>>()
        .join(".")
}

/// Write the manual pages
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast man ~/.local/share/man && man flowcast-predict
  flowcast man pages && man -M pages flowcast-networks")]
pub(crate) struct Man {
    /// Folder of manual pages; its folder man1 receives one page for each command
    folder: PathBuf,
}

impl Man {
    /// Writes the pages.
    pub(crate) fn run(self) -> Result<()> {
        let section = self.folder.join("man1");
        std::fs::create_dir_all(&section)
            .with_context(|| format!("cannot make {}", section.display()))?;
        let mut command = Cli::described().disable_help_subcommand(true);
        command.build();
        let mut batch = Batch::new();
        write_pages(command, &section, &mut batch)?;
        batch.commit()
    }
}

/// Writes the pages of a command and of its subcommands.
fn write_pages(command: Command, folder: &Path, batch: &mut Batch) -> Result<()> {
    let shown = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .cloned();
    for below in shown {
        write_pages(below, folder, batch)?;
    }
    let page = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = String::from_utf8(text)?;
    // Puts examples under their own heading, each command on one line for copying.
    let text = text.replace(".SH EXTRA\nExample:\n", ".SH EXAMPLES\n.nf\n");
    let text = text.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n");
    batch.write_text(&folder.join(page.get_filename()), &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_networks_models_and_fields_are_completed() {
        let names = |found: Vec<CompletionCandidate>| {
            found
                .iter()
                .map(|one| one.get_value().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(networks(OsStr::new("gige-t"))), ["gige-tcp"]);
        assert_eq!(names(models(OsStr::new("li"))), ["limits"]);
        assert_eq!(names(fields(OsStr::new("nic.l"))), ["nic.latency="]);
        assert_eq!(names(fields(OsStr::new("lat"))), ["latency="]);
        assert_eq!(
            names(fields(OsStr::new("machine.nodes.*.cp"))),
            ["machine.nodes.*.cpus="]
        );
        assert_eq!(names(fields(OsStr::new("origins"))), [""; 0]);
        with_values(Cli::described()).debug_assert();
    }
}
