//! When everything happens: replay of traces, and the stepping of concurrent flows.

mod collectives;
pub mod concurrent;
pub mod contention;
pub mod costs;
pub mod critical_path;
mod deadlock;
pub mod fluid;
pub mod loggops;
mod matching;
pub mod outcome;
pub mod packet;
pub mod placement;
pub mod record;
pub mod replay;
mod standstill;
pub mod timeline;

use thiserror::Error;

use crate::model::network::Network;
use crate::trace::program::Program;
use contention::Contention;
use costs::Rendezvous;
use critical_path::CriticalPath;
use outcome::Outcome;
use placement::Placement;
use record::Recorder;
use replay::Replay;

/// Why a trace cannot be replayed to its end.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SimulateError {
    /// Ranks wait for each other.
    #[error("deadlock, {waiting} ranks wait: {story}")]
    Deadlock {
        /// How many.
        waiting: usize,
        /// Who waits where for what.
        story: String,
    },
    /// A message without receive, or a receive without message.
    #[error("{place}: found {found}, expected {expected}")]
    Unmatched {
        /// Where.
        place: String,
        /// What stands there.
        found: String,
        /// What is missing.
        expected: String,
    },
    /// The machine and the program do not fit together.
    #[error("{0}")]
    Placement(String),
}

/// The replay of a program: event by event if links, buses or processors are limited, else by the walk without events.
pub enum Engine<'a> {
    /// Something is limited.
    Contention(Contention<'a>),
    /// Nothing is.
    Free(Replay<'a>),
}

impl<'a> Engine<'a> {
    /// Chooses, and computes the costs of all messages.
    ///
    /// # Errors
    /// [`SimulateError::Placement`] if program and machine do not fit together.
    pub fn new(
        program: &'a Program,
        network: &Network,
        placement: Placement,
        rendezvous: Rendezvous,
    ) -> Result<Engine<'a>, SimulateError> {
        Ok(if contention::is_needed(network, &placement) {
            Engine::Contention(Contention::new(program, network, placement, rendezvous)?)
        } else {
            Engine::Free(Replay::new(program, network, placement, rendezvous)?)
        })
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`].
    pub fn run(&self) -> Result<Outcome, SimulateError> {
        match self {
            Engine::Contention(contention) => contention.run(),
            Engine::Free(replay) => replay.run(),
        }
    }

    /// Runs and keeps what happened.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn record(&self) -> Result<(Outcome, Recorder), SimulateError> {
        match self {
            Engine::Contention(contention) => contention.record(),
            Engine::Free(replay) => replay.record(),
        }
    }

    /// Which chain of causes made the replay that was recorded take as long as it did.
    pub fn critical_path(&self, recorder: &Recorder) -> CriticalPath {
        match self {
            Engine::Contention(contention) => contention.free().critical_path(recorder),
            Engine::Free(replay) => replay.critical_path(recorder),
        }
    }
}
