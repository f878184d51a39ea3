//! When everything happens: replay of traces, and the stepping of concurrent flows.
//!
//! | what | of patterns | of programs and schedules |
//! |---|---|---|
//! | nothing is shared | | `replay`; schedules by LogGOPSim's rules: `loggops` |
//! | links, buses and processors are limited, by Dimemas' rules | | `contention` |
//! | rates from event to event | `fluid` over `under_way` | `transit` over `under_way` |
//! | queues that follow | `transient` | `transit` over `moving` |
//! | packets | `packet`, all known before | `packet_transit` over `packet::live` |
//!
//! `concurrent` chooses for patterns, [`Engine`] for programs; `traffic` is what `transit` has of rates and queues in common.

mod accesses;
mod collectives;
pub mod contention;
pub mod costs;
pub mod critical_path;
mod deadlock;
pub mod explain;
pub mod flights;
pub mod influence;
pub mod journal;
pub mod loggops;
mod matching;
pub mod outcome;
mod packet_transit;
pub mod placement;
pub mod record;
pub mod routes;
pub mod run_times;
mod standstill;
pub mod sweep;
pub mod timeline;
pub mod transit;
pub mod walk;

use thiserror::Error;

use contention::Contention;
use costs::Rendezvous;
use critical_path::CriticalPath;
use flowcast_model::network::Network;
use flowcast_model::sharing::model::Model;
use flowcast_trace::program::Program;
use journal::Journal;
use outcome::Outcome;
use placement::Placement;
use record::{Observer, Unobserved};
use transit::SharedReplay;
use walk::Replay;

/// Why a trace cannot be replayed to its end.
#[derive(Debug, Error, PartialEq)]
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
    /// The sharing model has no answer.
    #[error(transparent)]
    Sharing(#[from] flowcast_model::sharing::SharingError),
    /// The machine and the program do not fit together.
    #[error("{0}")]
    Placement(String),
}

/// The replay of a program, by the engine that what messages do to each other calls for.
pub enum Engine<'a> {
    /// Links, buses or processors are limited: event by event, by Dimemas' rules.
    Contention(Box<Contention<'a>>),
    /// Messages share the network by a model.
    Shared(Box<SharedReplay<'a>>),
    /// Messages do not disturb each other: a walk without events.
    Free(Box<Replay<'a>>),
}

impl<'a> Engine<'a> {
    /// Chooses by what the machine limits, and computes the costs of all messages.
    ///
    /// # Errors
    /// [`SimulateError::Placement`] if program and machine do not fit together.
    pub fn new(
        program: &'a Program,
        network: &Network,
        placement: Placement,
        rendezvous: Rendezvous,
    ) -> Result<Engine<'a>, SimulateError> {
        let limited = contention::is_needed(network, &placement);
        Ok(if limited {
            Engine::Contention(Box::new(Contention::new(program, network, placement, rendezvous)?))
        } else {
            Engine::Free(Box::new(Replay::new(program, network, placement, rendezvous)?))
        })
    }

    /// Messages that share the network by `model`, whatever the machine limits otherwise.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn sharing(
        program: &'a Program,
        network: &Network,
        placement: Placement,
        rendezvous: Rendezvous,
        model: Model,
    ) -> Result<Engine<'a>, SimulateError> {
        let shared = SharedReplay::new(program, network, placement, rendezvous, model)?;
        Ok(Engine::Shared(Box::new(shared)))
    }

    /// With random times of hosts, where messages go packet by packet; other engines stay what they are.
    #[must_use]
    pub fn disturbed(self, seed: u64) -> Engine<'a> {
        match self {
            Engine::Shared(shared) => Engine::Shared(Box::new(shared.disturbed(seed))),
            other => other,
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`]; [`SimulateError::Sharing`] if a sharing model has no answer.
    pub fn run(&self) -> Result<Outcome, SimulateError> {
        self.observed(&mut Unobserved)
    }

    /// Runs and notifies an observer, or a pair of them, of what happens.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn observed<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        match self {
            Engine::Contention(contention) => contention.observed(observer),
            Engine::Shared(shared) => shared.observed(observer),
            Engine::Free(replay) => replay.observed(observer),
        }
    }

    /// The same program without contention, for its costs.
    pub fn free(&self) -> &Replay<'a> {
        match self {
            Engine::Contention(contention) => contention.free(),
            Engine::Shared(shared) => shared.free(),
            Engine::Free(replay) => replay,
        }
    }

    /// The chain of causes behind the makespan of the replay that `journal` observed; empty if it kept no causes.
    pub fn critical_path(&self, journal: &Journal<'_>) -> CriticalPath {
        self.free().critical_path(journal)
    }
}
