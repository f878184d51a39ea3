//! Communication time of a program on a network: the replay of its computations, messages and collectives.
//!
//! A [`ReplayEngine`] replays a program, a [`loggops::Layout`] replays a schedule. Both return an
//! [`Outcome`](outcome::Outcome): the end of every rank and the parts of its time. For more detail, an
//! [`Observer`](observer::Observer) watches the same replay: a `ReplayJournal` for timelines and files, an `Explainer` for
//! the causes of communication time, a `RunTimer` for the times of calls and regions, or several of them, combined in pairs.
//!
//! ```
//! use flowcast_network::builtin;
//! use flowcast_observers::journal::{JournalContents, ReplayJournal};
//! use flowcast_replay::{ReplayEngine, costs::Rendezvous, placement::Placement};
//! use flowcast_formats::read;
//! use flowcast_program::{ReadOptions, Trace};
//! use flowcast_units::{Rank, Rounded};
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
//! let engine = ReplayEngine::new(&program, &network, placement, Rendezvous::from_network(&network, None))?;
//! let mut journal = ReplayJournal::new(&program, JournalContents::TIMELINE);
//! let outcome = engine.observed(&mut journal)?;
//!
//! // 1 ms, the overhead of 6.1 us, the latency of 65.4 us, 999 bytes at 8.49 ns, and the receiver's overhead.
//! assert_eq!(Rounded(outcome.makespan()).to_string(), "1.086 ms");
//! assert_eq!(journal.segments(Rank(0)).len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | messages | programs | schedules |
//! |---|---|---|
//! | are independent of each other | [`walk`] | [`loggops`], by LogGOPSim's rules |
//! | wait for limited links, buses and processors, by Dimemas' rules | [`contention`] | |
//! | share the network by a model, or cross it packet by packet | [`transit`], used by both engines | [`loggops::costs`] |
//! | use several networks at the same time | [`rails_transit`], used by [`walk`] | |
//!
//! [`sweep`] replays one program under many parameters in one pass.

mod accesses;
pub mod contention;
pub mod costs;
mod deadlock;
mod deadlock_report;
mod engine;
mod handshakes;
mod last_sends;
pub mod loggops;
mod matching;
pub mod meetings;
mod named;
pub mod observer;
pub mod outcome;
mod packet_transit;
pub mod placement;
mod polling;
pub mod prefetch;
pub mod rails_transit;
mod rank_order;
pub mod routes;
mod slab;
pub mod sweep;
pub mod time_part;
pub mod timeline;
pub mod transit;
pub mod walk;

pub use engine::ReplayEngine;
use thiserror::Error;

/// Errors that stop the replay of a trace.
#[derive(Debug, Error, PartialEq)]
pub enum SimulateError {
    /// Ranks wait for each other.
    #[error("deadlock, {waiting} ranks wait: {story}")]
    Deadlock {
        /// Number of waiting ranks.
        waiting: usize,
        /// The waiting ranks, each with its place and what it waits for.
        story: String,
    },
    /// A message without a receive, or a receive without a message.
    #[error("{place}: found {found}, expected {expected}")]
    Unmatched {
        /// Place in the trace.
        place: String,
        /// Content of that place.
        found: String,
        /// Description of the missing part, such as `a receive with its source and tag`.
        expected: String,
    },
    /// The sharing model has no solution.
    #[error(transparent)]
    Sharing(#[from] flowcast_network::sharing::SharingError),
    /// The machine and the program do not fit together.
    #[error("{0}")]
    Placement(String),
    /// Several networks that cannot carry one program together.
    #[error("--rail: {0}")]
    Rails(String),
}
