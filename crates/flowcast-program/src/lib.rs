//! What a message-passing program does: its form in memory, the compiled form, and collectives as messages.
//!
//! Two types hold a trace as it runs. A [`Program`] has a sequence of instructions for each rank; its sends and receives are
//! matched when it is built, so that a replay need not search for them. A [`schedule::Schedule`] has a graph of operations
//! for each rank, as LogGOPSim's GOAL does; it is matched while it runs, because its receives may name any source.
//! A [`Folded`] program is a sequence of programs and loops over them. `flowcast-formats` reads and writes them.

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

/// How a trace is read: on how many threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Threads that parse; the result does not depend on it.
    pub threads: usize,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { threads: 1 }
    }
}

/// Any trace. There are few of them at a time, so the difference in size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone)]
pub enum Trace {
    /// A program: a sequence of instructions for each rank.
    Program(Program),
    /// A program with loops, each held once.
    Folded(Folded),
    /// A GOAL schedule: a graph of operations for each rank.
    Schedule(schedule::Schedule),
}

/// Name and tables of a trace of either kind, without its instructions.
#[derive(Debug, Clone, Copy)]
pub enum TraceRef<'a> {
    /// A program: a sequence of instructions for each rank.
    Program(&'a Program),
    /// Graphs of operations, which may have been given up meanwhile.
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

    /// The same without loops.
    ///
    /// # Errors
    /// As [`Folded::unfold`].
    pub fn unfolded(&self) -> Result<Cow<'_, Trace>, TraceError> {
        match self {
            Trace::Folded(folded) => folded.unfold().map(Trace::Program).map(Cow::Owned),
            other => Ok(Cow::Borrowed(other)),
        }
    }

    /// What the reader found and the replay leaves out.
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

    /// Number of collectives, each counted once however many ranks take part; a schedule has none.
    pub fn collectives(&self) -> u64 {
        match self {
            Trace::Program(program) => program.collectives(),
            Trace::Folded(folded) => folded.collectives(),
            Trace::Schedule(_) => 0,
        }
    }
}
