//! Why there is no prediction.

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

/// Why there is no prediction.
#[derive(Debug, Error)]
pub enum Error {
    /// The trace is damaged, or cannot be put into the form that was asked for.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The replay does not come to its end, or program and machine do not fit together.
    #[error(transparent)]
    Replay(#[from] SimulateError),
    /// No sharing model has this name, or it lacks a parameter.
    #[error(transparent)]
    Sharing(#[from] SharingError),
    /// A network that was drawn from the intervals of its parameters is none.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Errors and draws that give no interval.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// Costs that are none.
    #[error("--parameter: {0}")]
    Selector(#[from] SelectorError),
    /// A distribution of delays that is none.
    #[error("--noise: {0}")]
    Noise(#[from] NoiseError),
    /// A program needs a network, and so does a schedule without LogGOPS parameters.
    #[error("no network given: add --network NET (see `flowcast networks`)")]
    NoNetwork,
    /// An option does not go with this trace or this network.
    #[error("{option}: found {found}, expected {expected}")]
    Option {
        /// The option, as the command line calls it.
        option: &'static str,
        /// What was found.
        found: String,
        /// What it needs.
        expected: &'static str,
    },
    /// A time that is no finite number: a parameter of the network, or one that was set, is too large or too small.
    #[error(transparent)]
    NotFinite(#[from] NotFiniteTime),
    /// The ranks of a schedule wait for each other. The schedule was handed over to save memory, so that the ranks cannot
    /// be named: preparing it by reference names them.
    #[error("the schedule does not come to its end: ranks wait for each other")]
    Stopped,
}

impl Error {
    /// An option that does not go with what is there.
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

/// An outcome that can be used; `asked` are the fields that the caller set.
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
