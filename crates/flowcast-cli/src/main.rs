//! The `flowcast` command.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod carrying;
mod commands;
mod core_pairs;
mod embedded;
mod mpi_launcher;
mod mpi_session;
mod recording;
mod round_trips;
mod shm_ends;
mod tcp_session;

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use flowcast_terminal::{exit, input_maps, interrupt, output};

#[global_allocator]
static ALLOCATOR: flowcast_io::memory::HugePages = flowcast_io::memory::HugePages;

fn main() -> ExitCode {
    interrupt::survive_file_limits();
    commands::completions::answer_shell();
    match commands::Cli::from_words(std::env::args_os())
        .run()
        .and_then(|()| input_maps::verify())
    {
        Ok(()) => {
            output::exit_on_write_error(stdout().flush());
            ExitCode::SUCCESS
        }
        Err(error) => exit::report(&error),
    }
}
