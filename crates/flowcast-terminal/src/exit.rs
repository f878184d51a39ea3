//! Exit codes: 0 done, 1 a finding, 2 wrong usage or bad input, 3 the environment lacks something.

use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Effects, Style};
pub use flowcast_files::EnvironmentLacks;
use flowcast_files::text_of;
use thiserror::Error;

/// The command did its work and found something that a script should stop at. Exit code 1.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Finding(pub String);

/// As the errors of the command line, which clap prints; none where the standard error is no terminal.
const RED: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);

/// Room on a disk is the environment's, whatever was to be written.
fn is_full_disk(cause: &(dyn std::error::Error + 'static)) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    cause.downcast_ref::<io::Error>().is_some_and(|error| matches!(error.kind(), StorageFull | QuotaExceeded))
}

/// Prints the error once, with its causes, and gives the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    anstream::eprintln!("{RED}flowcast:{RED:#} {}", text_of(error));
    if error.downcast_ref::<Finding>().is_some() {
        ExitCode::from(1)
    } else if error.downcast_ref::<EnvironmentLacks>().is_some() || error.chain().any(is_full_disk) {
        ExitCode::from(3)
    } else {
        ExitCode::from(2)
    }
}
