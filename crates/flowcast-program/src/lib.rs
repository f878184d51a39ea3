//! Message-passing programs: their form in memory, the compiled form, and collectives as messages.
//!
//! Two types represent a trace as it runs. A [`Program`] has a sequence of instructions for each rank. Its sends and
//! receives are matched when it is built, so that a replay need not search for them. A [`schedule::Schedule`] has a graph of
//! operations for each rank, as in LogGOPSim's GOAL. It is matched while it runs, because its receives may name any source.
//! A [`Folded`] program is a sequence of programs and loops over them. `flowcast-formats` reads and writes all of them.

pub mod access;
pub mod aggregate;
pub mod blocking;
pub mod build;
pub mod compiled;
mod error;
pub mod expand;
pub mod fold;
pub mod folded;
pub mod key_map;
pub mod link;
pub mod opcodes;
pub mod packed;
pub mod parallel;
pub mod paraver_events;
pub mod program;
pub mod recorded_times;
pub mod run_times;
pub mod schedule;
pub mod slot;
pub mod together;

pub use error::TraceError;
pub use folded::Folded;
use program::IgnoredRecords;
pub use program::{Program, SharedBytes};
use std::borrow::Cow;

/// Options of trace readers: the number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Number of threads that parse; it has no effect on the result.
    pub threads: usize,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { threads: 1 }
    }
}

/// Trace of any kind. Few traces exist at the same time, so the different sizes of the variants do not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone)]
pub enum Trace {
    /// A program: a sequence of instructions for each rank.
    Program(Program),
    /// A program with loops, each stored once.
    Folded(Folded),
    /// A GOAL schedule: a graph of operations for each rank.
    Schedule(schedule::Schedule),
}

/// Name and tables of a trace of either kind, without its instructions.
#[derive(Debug, Clone, Copy)]
pub enum TraceRef<'a> {
    /// A program: a sequence of instructions for each rank.
    Program(&'a Program),
    /// Graphs of operations, which may already have been dropped.
    Schedule {
        /// Name of the file.
        name: &'a str,
        /// Number of ranks.
        ranks: usize,
    },
}

impl<'a> From<&'a schedule::Schedule> for TraceRef<'a> {
    fn from(schedule: &'a schedule::Schedule) -> TraceRef<'a> {
        TraceRef::Schedule {
            name: &schedule.name,
            ranks: schedule.ranks(),
        }
    }
}

impl<'a> TraceRef<'a> {
    /// Name of the file.
    pub fn name(self) -> &'a str {
        match self {
            TraceRef::Program(program) => &program.name,
            TraceRef::Schedule { name, .. } => name,
        }
    }

    /// Number of ranks, without their progress streams.
    pub fn ranks(self) -> usize {
        match self {
            TraceRef::Program(program) => program.ranks(),
            TraceRef::Schedule { ranks, .. } => ranks,
        }
    }

    /// Communicators that collectives name; a schedule has none.
    pub fn communicators(self) -> &'a [program::Communicator] {
        match self {
            TraceRef::Program(program) => program.communicators(),
            TraceRef::Schedule { .. } => &[],
        }
    }

    /// Types and values of the trace's own events; a schedule has none.
    pub fn events(self) -> &'a [(i64, i64)] {
        match self {
            TraceRef::Program(program) => program.events(),
            TraceRef::Schedule { .. } => &[],
        }
    }
}

impl Trace {
    /// Name of the file.
    pub fn name(&self) -> &str {
        match self {
            Trace::Program(program) => &program.name,
            Trace::Folded(folded) => &folded.first().name,
            Trace::Schedule(schedule) => &schedule.name,
        }
    }

    /// Number of ranks, without their progress streams.
    pub fn ranks(&self) -> usize {
        match self {
            Trace::Program(program) => program.ranks(),
            Trace::Folded(folded) => folded.first().ranks(),
            Trace::Schedule(schedule) => schedule.ranks(),
        }
    }

    /// Returns the same trace without loops.
    ///
    /// # Errors
    /// Errors of [`Folded::unfold`].
    pub fn unfolded(&self) -> Result<Cow<'_, Trace>, TraceError> {
        match self {
            Trace::Folded(folded) => folded.unfold().map(Trace::Program).map(Cow::Owned),
            other => Ok(Cow::Borrowed(other)),
        }
    }

    /// Records that the reader found and the replay leaves out.
    pub fn ignored(&self) -> Cow<'_, [IgnoredRecords]> {
        match self {
            Trace::Program(program) => Cow::Borrowed(program.ignored()),
            Trace::Folded(folded) => Cow::Owned(folded.ignored()),
            Trace::Schedule(_) => Cow::Borrowed(&[]),
        }
    }

    /// Number of point-to-point messages.
    pub fn messages(&self) -> u64 {
        match self {
            Trace::Program(program) => u64::from(program.messages()),
            Trace::Folded(folded) => folded.messages(),
            Trace::Schedule(schedule) => schedule.messages(),
        }
    }

    /// Number of collectives, each counted once regardless of the number of ranks; a schedule has none.
    pub fn collectives(&self) -> u64 {
        match self {
            Trace::Program(program) => program.collectives(),
            Trace::Folded(folded) => folded.collectives(),
            Trace::Schedule(_) => 0,
        }
    }
}
