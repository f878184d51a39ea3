//! What a message-passing program does: readers, the compiled form, writers and generators.
//!
//! Two forms hold every trace. A [`Program`] has one sequence of instructions for each rank; sends and receives are
//! matched when it is made, so that a replay looks nothing up. A [`schedule::Schedule`] is a graph of operations for
//! each rank, as LogGOPSim's GOAL has it, and matches while it runs because its receives may name any source.
//! [`mod@read`] tells the formats apart by content; a packed text (gzip, zstd) is unpacked first.

pub mod access;
pub mod build;
pub mod compiled;
pub mod convert;
mod error;
pub mod expand;
pub mod generate;
pub mod key_map;
pub mod link;
pub mod otf2;
pub mod packed;
mod parallel;
pub mod program;
pub mod read;
pub mod recorded_times;
pub mod run_times;
pub mod schedule;
pub mod together;
pub mod words;
pub mod write;

pub use error::TraceError;
pub use program::{Program, SharedBytes};
pub use read::read;

/// How to read.
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
    /// Sequences of instructions.
    Program(Program),
    /// Graphs of operations.
    Schedule(schedule::Schedule),
}

/// What is told of a trace of either kind.
#[derive(Debug, Clone, Copy)]
pub enum TraceRef<'a> {
    /// Sequences of instructions.
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
        TraceRef::Schedule { name: &schedule.name, ranks: schedule.ranks() }
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

    /// Number of ranks.
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
            Trace::Schedule(schedule) => &schedule.name,
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        match self {
            Trace::Program(program) => program.ranks(),
            Trace::Schedule(schedule) => schedule.ranks(),
        }
    }

    /// Number of point-to-point messages.
    pub fn messages(&self) -> u64 {
        match self {
            Trace::Program(program) => u64::from(program.messages()),
            Trace::Schedule(schedule) => schedule.messages(),
        }
    }
}
