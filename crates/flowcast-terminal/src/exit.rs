//! Exit codes. `record` exits with the program's code.

use std::{
    io::{self, Write},
    process::{ExitCode, exit},
};

use anstyle::{AnsiColor, Effects, Style};
use clap::Command;
pub use flowcast_io::EnvironmentLacks;
use flowcast_io::text_of;
use thiserror::Error;

use crate::{
    output::{escaped, exit_on_write_error},
    usage,
    width::{error_width, fitted, output_width, with_spaces},
};

/// Meaning of each exit code, from 0 on.
pub const EXIT_CODES: [&str; 4] = [
    "done",
    "done, with a finding that should stop a script",
    "wrong usage or bad input",
    "the environment lacks something",
];

/// Error with exit code 1: the command completed and found something at which a script should stop.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Finding(pub String);

/// Error for a failed program that the command has run. The exit code is the program's.
#[derive(Debug, Error)]
#[error("{said}")]
pub struct ProgramFailed {
    pub said: String,
    pub code: u8,
}

/// Style of `error:` as in clap. Has no effect if the standard error is not a terminal.
const RED: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);

/// `true` if the system has refused an operation: a full disk, a missing permission, too many open files. A name that leads
/// nowhere, or to something unexpected, is an error of the input.
fn is_refused_by_the_system(cause: &(dyn std::error::Error + 'static)) -> bool {
    use io::ErrorKind::{
        FileTooLarge, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound,
        OutOfMemory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    let Some(error) = cause.downcast_ref::<io::Error>() else {
        return false;
    };
    match error.kind() {
        NotFound | NotADirectory | IsADirectory | InvalidFilename | InvalidInput => false,
        StorageFull | QuotaExceeded | FileTooLarge | OutOfMemory | PermissionDenied
        | ReadOnlyFilesystem => true,
        // An error to which a path was added has no code. Only the system creates errors of this kind.
        kind if kind == io::Error::from_raw_os_error(libc::EMFILE).kind() => true,
        _ => error.raw_os_error().is_some_and(|code| code != libc::ELOOP),
    }
}

/// Shortens an endless error, such as a name that fills a file, to its start and its end.
fn shortened(text: String) -> String {
    const ENDS: usize = 2000;
    let ends = (
        text.char_indices().nth(ENDS),
        text.char_indices().nth_back(ENDS - 1),
    );
    match ends {
        (Some((first, _)), Some((last, _))) if first < last => {
            format!("{} [...] {}", &text[..first], &text[last..])
        }
        _ => text,
    }
}

/// Prints the error once, with its causes, and returns the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if error
        .downcast_ref::<io::Error>()
        .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    {
        return ExitCode::SUCCESS;
    }
    // The exit code is valid even if the error cannot be printed.
    let text = format!("{RED}error:{RED:#} {}", escaped(&shortened(text_of(error))));
    let _ = writeln!(anstream::stderr(), "{}", fitted(&text, error_width()));
    if let Some(failed) = error.downcast_ref::<ProgramFailed>() {
        ExitCode::from(failed.code)
    } else if error.downcast_ref::<Finding>().is_some() {
        ExitCode::from(1)
    } else if error.downcast_ref::<EnvironmentLacks>().is_some()
        || error.chain().any(is_refused_by_the_system)
    {
        ExitCode::from(3)
    } else {
        ExitCode::from(2)
    }
}

/// Ends the process with clap's answer to a command line for `command`: help, or an error.
pub fn end_with_answer(answer: &clap::Error, command: &Command) -> ! {
    if let Some(text) = usage::explained(answer, command) {
        report(&anyhow::Error::msg(text));
        exit(answer.exit_code());
    }
    let text = with_spaces(&answer.render().ansi().to_string());
    if answer.use_stderr() {
        // A failure to write is ignored: the reader has closed the stream.
        let _ = write!(anstream::stderr(), "{}", fitted(&text, error_width()));
    } else {
        let mut out = anstream::stdout();
        exit_on_write_error(
            write!(out, "{}", fitted(&text, output_width())).and_then(|()| out.flush()),
        );
    }
    exit(answer.exit_code())
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_long_error_is_shortened_to_its_start_and_end() {
        for length in [10, 2000, 4000] {
            assert_eq!(shortened("ü".repeat(length)).chars().count(), length);
        }
        let told = shortened(format!("begin{}end", "x".repeat(100_000)));
        assert!(
            told.starts_with("begin") && told.ends_with("end") && told.len() < 4100,
            "{}",
            told.len()
        );
    }

    #[test]
    fn operations_that_the_system_refuses_have_their_own_exit_code() {
        let code = |code: i32| {
            report(
                &Err::<(), _>(io::Error::from_raw_os_error(code))
                    .context("x")
                    .unwrap_err(),
            )
        };
        for refused in [
            libc::ENOSPC,
            libc::EDQUOT,
            libc::EFBIG,
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOMEM,
            libc::EACCES,
            libc::EPERM,
            libc::EROFS,
            libc::EIO,
            libc::ENOTCONN,
        ] {
            assert_eq!(
                code(refused),
                ExitCode::from(3),
                "{}",
                io::Error::from_raw_os_error(refused)
            );
        }
        for named_wrongly in [
            libc::ENOENT,
            libc::ENOTDIR,
            libc::EISDIR,
            libc::ENAMETOOLONG,
            libc::ELOOP,
            libc::EINVAL,
        ] {
            assert_eq!(
                code(named_wrongly),
                ExitCode::from(2),
                "{}",
                io::Error::from_raw_os_error(named_wrongly)
            );
        }
        assert_eq!(
            report(&io::Error::other("found 3, expected 4").into()),
            ExitCode::from(2)
        );
    }
}
