//! The `flowcast` command.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod carrying;
mod collectives;
mod commands;
mod core_pairs;
mod costs_table;
mod embedded;
mod host_args;
mod launcher;
mod mapping_format;
mod mpi_launcher;
mod mpi_session;
mod network_args;
mod predictors;
mod rank_files;
mod recording;
mod repeating;
mod replay_files;
mod round_trips;
mod shares;
mod shm_ends;
mod tcp_session;
mod terminal;
mod token;
mod trace_args;

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use crate::terminal::{exit, input_maps, interrupt, output};

#[global_allocator]
static ALLOCATOR: flowcast_io::memory::HugePages = flowcast_io::memory::HugePages;

fn main() -> ExitCode {
    interrupt::survive_file_limits();
    commands::completions::answer_shell();
    match commands::Cli::of(std::env::args_os())
        .run()
        .and_then(|()| input_maps::verify())
    {
        Ok(()) => {
            output::taken(stdout().flush());
            ExitCode::SUCCESS
        }
        Err(error) => exit::report(&error),
    }
}
