//! The `flowcast` command.

#![deny(unsafe_code)]

mod answers;
mod carrying;
mod collectives;
mod commands;
mod embedded;
mod exit;
mod files;
mod growing;
mod input_maps;
mod interrupt;
mod launcher;
mod mpi_launcher;
mod mpi_session;
mod network_args;
mod output;
mod predictors;
mod progress;
mod provenance;
mod quantities;
mod rank_files;
mod recording;
mod repeating;
mod replay_args;
mod replay_files;
mod replay_view;
mod tables;
mod tcp_session;
mod token;
mod trace_args;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    commands::completions::answer_shell();
    match commands::Cli::parse().run().and_then(|()| input_maps::verify()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}
