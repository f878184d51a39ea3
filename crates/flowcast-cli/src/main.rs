//! The `flowcast` command.

#![deny(unsafe_code)]

mod carrying;
mod collectives;
mod commands;
mod embedded;
mod exit;
mod files;
mod growing;
mod launcher;
mod mpi_launcher;
mod mpi_session;
mod network_args;
mod output;
mod predictors;
mod provenance;
mod rank_files;
mod recording;
mod repeating;
mod replay_files;
mod replay_view;
mod tables;
mod tcp_session;
mod trace_args;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}
