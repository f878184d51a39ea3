//! `--token`: secret by which both ends of a connection authenticate each other.

use std::{env, fs::File, io::Read, path::Path, process::Command};

use anyhow::{Context, Result};
use clap::Args;
use flowcast_rails::token::{TOKEN, Token};

use crate::files::read_text;

const VARIABLE: &str = "FLOWCAST_TOKEN";

/// Variable with the names of the variables that Open MPI passes to processes on other hosts. Slurm and MPICH pass all.
const OPEN_MPI_PASSES: &str = "OMPI_MCA_mca_base_env_list";

/// Secret that both ends of a connection share.
#[derive(Debug, Clone, Args)]
pub struct TokenArgs {
    /// Shared secret of both ends: 32 hexadecimal digits, or a file that contains them; digits on the command line are
    /// visible to all users of this machine [default: $FLOWCAST_TOKEN]
    #[arg(long, value_name = "TOKEN|FILE")]
    token: Option<String>,
}

impl TokenArgs {
    /// The given token, if any.
    pub fn given(&self) -> Result<Option<Token>> {
        let Some(text) = self.token.clone().or_else(|| env::var(VARIABLE).ok()) else {
            return Ok(None);
        };
        let text = if Path::new(&text).is_file() {
            read_text(Path::new(&text))?
        } else {
            text
        };
        let token = text.trim().parse().context(if self.token.is_some() {
            "--token"
        } else {
            VARIABLE
        })?;
        Ok(Some(token))
    }

    /// Passes the token to the processes of a launcher: by its file, if one was given, otherwise by the environment. Command
    /// lines are visible to all users.
    pub fn hand_over(&self, command: &mut Command, token: Token) {
        match self
            .token
            .as_deref()
            .filter(|text| Path::new(text).is_file())
        {
            Some(file) => drop(command.args(["--token", file])),
            None => {
                let others =
                    env::var(OPEN_MPI_PASSES).map_or(String::new(), |others| format!("{others};"));
                command
                    .env(VARIABLE, token.to_string())
                    .env(OPEN_MPI_PASSES, format!("{others}{VARIABLE}"));
            }
        }
    }

    /// The given token, or a new one.
    pub fn given_or_new(&self) -> Result<Token> {
        self.given()?.map_or_else(new, Ok)
    }
}

/// Creates a random token that cannot be guessed.
pub fn new() -> Result<Token> {
    const SOURCE: &str = "/dev/urandom";
    let mut bytes = [0; TOKEN];
    let read = File::open(SOURCE).and_then(|mut source| source.read_exact(&mut bytes));
    read.with_context(|| format!("cannot read {SOURCE}"))?;
    Ok(Token::new(bytes))
}
