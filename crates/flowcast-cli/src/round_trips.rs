//! Whose fault it is that round trips could not be measured.

use anyhow::anyhow;
use flowcast_measure::prtt::PrttError;
use flowcast_terminal::exit::EnvironmentLacks;

/// A failed connection is the environment's fault, a wrong plan the user's.
pub(crate) fn explained(error: PrttError) -> anyhow::Error {
    match error {
        PrttError::Transport(_) | PrttError::Stranger(_) | PrttError::Clock(_) => {
            EnvironmentLacks(error.to_string()).into()
        }
        _ => anyhow!(error),
    }
}
