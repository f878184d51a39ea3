//! Exit codes: 0 done, 1 a finding, 2 wrong usage or bad input, 3 the environment lacks something.

use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Effects, Style};
use thiserror::Error;

/// The command did its work and found something that a script should stop at. Exit code 1.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct Finding(pub String);

/// Something outside the input is missing: a port, a right, a program. Exit code 3.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct EnvironmentLacks(pub String);

/// As the errors of the command line, which clap prints; none where the standard error is no terminal.
const RED: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);

/// An error with its causes. A cause that the text before it ends with already, as that of an error that shows its
/// source, is not repeated.
fn text_of(error: &anyhow::Error) -> String {
    error.chain().map(|cause| cause.to_string().trim_end().to_owned()).fold(String::new(), |text, cause| {
        match text.is_empty() {
            true => cause,
            false if text.ends_with(&cause) => text,
            false => format!("{text}: {cause}"),
        }
    })
}

/// Room on a disk is the environment's, whatever was to be written.
fn is_full_disk(cause: &(dyn std::error::Error + 'static)) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    cause.downcast_ref::<io::Error>().is_some_and(|error| matches!(error.kind(), StorageFull | QuotaExceeded))
}

/// Prints the error once, with its causes, and gives the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
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

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let cause = || anyhow::Error::new(io::Error::other("found 3, expected 4\n"));
        let twice = cause().context("line 2: found 3, expected 4");
        assert_eq!(text_of(&twice), "line 2: found 3, expected 4");
        assert_eq!(text_of(&cause().context("a.toml")), "a.toml: found 3, expected 4");
        let wrong = flowcast::model::network::Network::from_toml("schema = 7\n", &[]).context("a.toml").unwrap_err();
        assert_eq!(text_of(&wrong).matches("invalid type").count(), 1, "{}", text_of(&wrong));
    }
}
