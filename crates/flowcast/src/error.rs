//! Reasons why there is no prediction.

use flowcast_graph::{noise::NoiseError, selector::SelectorError};
use flowcast_network::{
    network::{Network, NetworkError},
    sharing::SharingError,
};
use flowcast_program::TraceError;
use flowcast_replay::{
    SimulateError,
    outcome::{NotFiniteTime, Outcome, finite_times},
};
use flowcast_statistics::StatsError;
use thiserror::Error;

/// Reason why there is no prediction.
#[derive(Debug, Error)]
pub enum Error {
    /// The trace is damaged, or cannot be converted to the requested form.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The replay does not finish, or program and machine do not fit together.
    #[error(transparent)]
    Replay(#[from] SimulateError),
    /// The sharing model is unknown, or lacks a parameter.
    #[error(transparent)]
    Sharing(#[from] SharingError),
    /// A network that was drawn from the intervals of its parameters is invalid.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Errors and draws do not give an interval.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// Invalid selection of costs.
    #[error("--parameter: {0}")]
    Selector(#[from] SelectorError),
    /// Invalid distribution of delays.
    #[error("--noise: {0}")]
    Noise(#[from] NoiseError),
    /// No network is given for a program, or for a schedule without LogGOPS parameters.
    #[error("no network given: add --network NET (see `flowcast networks`)")]
    NoNetwork,
    /// An option does not fit the trace or the network.
    #[error("{option}: found {found}, expected {expected}")]
    Option {
        /// Name of the option on the command line.
        option: &'static str,
        /// Value or kind of input found, as text for the message.
        found: String,
        /// Value or kind of input expected, as text for the message.
        expected: &'static str,
    },
    /// A time is not a finite number: a parameter of the network, or one that was set, is too large or too small.
    #[error(transparent)]
    NotFinite(#[from] NotFiniteTime),
    /// The ranks of a schedule wait for each other. The ranks cannot be named, because the schedule was consumed to save
    /// memory. Preparing it by reference names them.
    #[error("the schedule does not finish: ranks wait for each other")]
    Stopped,
}

impl Error {
    /// Creates the error for an option that does not fit.
    pub(crate) fn option(
        option: &'static str,
        found: impl Into<String>,
        expected: &'static str,
    ) -> Error {
        Error::Option {
            option,
            found: found.into(),
            expected,
        }
    }
}

/// Checks that all times of an outcome are finite. `asked` are the fields that the caller set.
pub(crate) fn finite(
    outcome: Outcome,
    network: Option<&Network>,
    asked: &[String],
) -> Result<Outcome, Error> {
    finite_times(outcome.ranks.iter().map(|rank| rank.end), || {
        let network = network.map_or("the parameters".to_owned(), |network| {
            format!("the network {}", network.name)
        });
        if asked.is_empty() {
            network
        } else {
            format!("{network}, {}", asked.join(", "))
        }
    })?;
    Ok(outcome)
}
