//! How long a program's communication takes on a network: the replay of its computations, messages and collectives.
//!
//! An [`Engine`] replays a program, a [`loggops::Layout`] a schedule. Each gives an [`Outcome`], when every rank ends and what
//! it spends its time on; whoever wants to know more has an [`Observer`] watch the same replay: a [`Journal`] for timelines,
//! files and the critical path, an [`Explainer`](explain::Explainer) for the causes of communication time, a
//! [`RunTimer`](run_times::RunTimer) for the times of calls and regions, or several of them at once, as a pair.
//!
//! ```
//! use flowcast_model::builtin;
//! use flowcast_replay::{Engine, costs::Rendezvous, journal::{Journal, Keeps}, placement::Placement};
//! use flowcast_trace::{ReadOptions, Trace, read};
//! use flowcast_units::Rounded;
//!
//! // Rank 0 computes for 1 ms and sends 1000 bytes to rank 1, which receives them.
//! let dim = "#DIMEMAS:\"pair\":1,0:2(1,1),1\nd:1:1:2:0:1\n\
//!            1:0:0:0.001\n2:0:0:1:-1:1000:7:1:0\n3:1:0:0:-1:1000:7:1:0\n";
//! let mut beside = |_: &str| Err(std::io::ErrorKind::NotFound.into());
//! let trace = read("pair.dim", std::sync::Arc::new(dim.as_bytes()), &mut beside, ReadOptions::default())?;
//! let Trace::Program(program) = trace else { panic!("a .dim file is a program") };
//!
//! let network = builtin::network("gige-tcp").expect("this network is built in");
//! let placement = Placement::of_program(&network.machine, None, &program)?;
//! let engine = Engine::new(&program, &network, placement, Rendezvous::of(&network, None))?;
//! let mut journal = Journal::new(&program, Keeps::CAUSES);
//! let outcome = engine.observed(&mut journal)?;
//!
//! // 1 ms, the overhead of 6.1 us, the latency of 65.4 us, 999 bytes at 8.49 ns, and the receiver's overhead.
//! assert_eq!(Rounded(outcome.makespan()).to_string(), "1.086 ms");
//! assert_eq!(engine.critical_path(&journal).sentence(), "compute 92 %, latency 6 %");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | messages | programs | schedules |
//! |---|---|---|
//! | do not disturb each other | [`walk`] | [`loggops`], by LogGOPSim's rules |
//! | wait for limited links, buses and processors, by Dimemas' rules | [`contention`] | |
//! | share the network by a model, or cross it packet by packet | [`transit`], beneath either of them | [`loggops::costs`] |
//!
//! [`sweep`] replays one program under many parameters at once, [`sensitivity`] says how its time depends on one of them.

mod accesses;
pub mod contention;
pub mod costs;
pub mod critical_path;
mod deadlock;
mod deadlock_report;
pub mod distribution;
pub mod explain;
pub mod flights;
mod handshakes;
pub mod influence;
pub mod inside;
pub mod journal;
pub mod loggops;
mod matching;
pub mod meetings;
mod named;
pub mod observer;
pub mod outcome;
mod packet_transit;
pub mod placement;
mod polling;
mod prefetch;
pub mod routes;
pub mod run_times;
mod send_queue;
pub mod sensitivity;
pub mod shared_replay;
mod slab;
pub mod sweep;
pub mod time_part;
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
use observer::Observer;
use outcome::Outcome;
use placement::Placement;
use shared_replay::SharedReplay;
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
    /// Messages share the network by a model, with or without limits.
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
            Engine::Contention(Box::new(Contention::new(
                program, network, placement, rendezvous,
            )?))
        } else {
            Engine::Free(Box::new(Replay::new(
                program, network, placement, rendezvous,
            )?))
        })
    }

    /// Messages between nodes that share the network by `model`, once they have the links and buses that the machine limits;
    /// packet by packet they need neither. Processors and what happens inside nodes and between sites stay as in
    /// [`Engine::new`].
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

    /// [`Engine::run`] may use so many threads where that makes it faster; the result does not depend on it.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Engine<'a> {
        match self {
            Engine::Free(replay) => Engine::Free(Box::new(replay.on_threads(threads))),
            other => other,
        }
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
        match self {
            Engine::Free(replay) => replay.run(),
            Engine::Contention(contention) => contention.run(),
            Engine::Shared(shared) => shared.run(),
        }
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
