//! Classification of errors of round trips: an error of the user or of the environment.

use anyhow::anyhow;
use flowcast_measure::prtt::PrttError;
use flowcast_terminal::exit::EnvironmentLacks;

/// Failed connections are an error of the environment, invalid plans an error of the user.
pub(crate) fn explained(error: impl Into<PrttError>) -> anyhow::Error {
    match error.into() {
        error @ (PrttError::Transport(_) | PrttError::Stranger(_) | PrttError::Clock(_)) => {
            EnvironmentLacks(error.to_string()).into()
        }
        error => anyhow!(error),
    }
}
