//! Writers of programs and generated workloads in the formats of other tools: Dimemas' `.dim`, LogGOPSim's GOAL as text and
//! binary, and SimGrid's time-independent traces.
//!
//! Each format can express less than a program contains. Parts that are omitted or written differently are counted
//! ([`Losses`]).

mod dim;
pub mod generate;
mod goal;
mod goal_binary;
mod prepare;
mod steps;
mod ti;
pub mod write;

use std::collections::BTreeMap;

pub(crate) use dim::dim_steps;
pub use dim::{Dialect, dim};
pub(crate) use goal::goal_steps;
pub use goal::{as_schedule, goal, schedule};
pub use goal_binary::goal_binary;
pub use prepare::{is_plain_world, with_blocking_collectives};
pub(crate) use steps::{StepMessage, StreamStep};
pub(crate) use ti::ti_steps;
pub use ti::{needs_messages, ti_rank};

use flowcast_program::{
    key_map::KeyMap,
    program::{CollectiveCall, Communicator, MessageClass, Program},
    slot::Slot,
};
use flowcast_units::Rank;

/// Numbers of features that a format cannot express, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<&'static str, u64>);

impl Losses {
    fn count(&mut self, kind: &'static str) {
        self.add(kind, 1);
    }

    fn add(&mut self, kind: &'static str, count: u64) {
        if count > 0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    /// Adds the counts of other losses, by kind, and returns the sum.
    pub fn and(mut self, others: Losses) -> Losses {
        others
            .0
            .into_iter()
            .for_each(|(kind, count)| self.add(kind, count));
        self
    }

    /// Returns the kinds with their counts.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }
}

/// Tables for the writers of a program.
pub struct WriterTables<'a> {
    program: &'a Program,
    /// Sender and class of the message of each slot.
    sources: Vec<(Rank, u32)>,
    /// Number of each combination of communicator and tag in the program's messages.
    tags: KeyMap<(i32, i32)>,
    /// `true` if tags are written unchanged.
    keeps_tags: bool,
    /// Calls of each execution of a collective, with their ranks.
    executions: Vec<Vec<(Rank, u32)>>,
}

impl<'a> WriterTables<'a> {
    /// Builds the tables from the whole program.
    pub fn new(program: &'a Program) -> WriterTables<'a> {
        let mut executions = vec![Vec::new(); program.instances().len()];
        for (rank, call, instance) in program.collective_ops() {
            executions[instance as usize].push((rank, call));
        }
        let mut tags = KeyMap::default();
        for class in program.classes() {
            tags.number((class.communicator, class.tag));
        }
        let first = program.classes().first().map(|class| class.communicator);
        let keeps_tags = program
            .classes()
            .iter()
            .all(|class| Some(class.communicator) == first && class.tag >= 0);
        WriterTables {
            program,
            sources: program.sources(),
            tags,
            keeps_tags,
            executions,
        }
    }

    /// Returns a tag for formats without communicators. Two messages have equal tags if tag and communicator are equal.
    fn tag(&self, class: &MessageClass) -> u32 {
        if self.keeps_tags {
            class.tag.unsigned_abs()
        } else {
            self.tags.get(&(class.communicator, class.tag)).unwrap_or(0)
        }
    }

    fn class(&self, number: u32) -> &'a MessageClass {
        &self.program.classes()[number as usize]
    }

    /// Returns the sender and the class of a message.
    fn message(&self, slot: Slot) -> (Rank, &'a MessageClass) {
        let (sender, class) = self.sources[slot.index()];
        (sender, self.class(class))
    }

    fn call(&self, number: u32) -> &'a CollectiveCall {
        &self.program.calls()[number as usize]
    }

    /// Returns `true` if a call synchronises the threads of a rank and is not an MPI collective.
    fn is_of_threads(&self, call: u32) -> bool {
        let communicator = &self.program.communicators()[self.call(call).communicator as usize];
        is_of_threads(self.program, communicator)
    }

    /// Returns the root of an execution.
    fn root(&self, instance: u32) -> Option<Rank> {
        self.executions[instance as usize]
            .iter()
            .find(|(_, call)| self.call(*call).is_root)
            .map(|(rank, _)| *rank)
    }
}

/// Returns `true` if the collectives of a communicator synchronise the threads of a rank.
fn is_of_threads(program: &Program, communicator: &Communicator) -> bool {
    program.is_inside_a_task(communicator)
        && communicator
            .members
            .iter()
            .all(|member| member.index() < program.ranks())
}

const RMA_AND_IO: &str = "one-sided operations and requests to files";
const EVENTS: &str = "events";
const THREADS: &str = "waits of a thread for another thread of its rank";
const ACCELERATOR: &str = "computations of accelerators; they are written as ordinary computations";
const SYNCHRONOUS: &str =
    "synchronous sends; in this format, the size decides whether a send is synchronous";
const BARRIER_BYTES: &str = "barriers that carry bytes; they are written without bytes";
const ROOT_SYNCHRONOUS: &str =
    "root-synchronous collectives; they are written as ordinary collectives";
