//! Programs whose collective operations are carried out by messages, as in an MPI library.
//!
//! A replay of the result models the inside of a collective: its messages compete for links like all others, late ranks
//! delay only those that need them, and the placement of the ranks matters. Non-blocking calls run beside their rank
//! (`progress`).
//!
//! The messages of an operation are matched first in, first out, like all others. Their tags are below those of MPI.

pub mod group;
mod halving;
pub mod moves;
pub mod plan;
mod progress;
mod rewrite;
mod rings;
mod tree;
mod trees;

use std::collections::{BTreeMap, HashMap};

pub use rewrite::operation_of;

use super::{
    ReadOptions, TraceError,
    link::{ProgramParts, link},
    program::{CollectiveCall, Program},
};
use flowcast_network::algorithm::{AlgorithmTable, Choice, RuleExtent};
use flowcast_units::{Bytes, CollectiveOp, Rank, TimePerByte};
use group::ExecutionGroup;
use moves::ExpandedMove;
use progress::ProgressStreams;

/// A program without the collectives that could be expanded.
pub struct Expanded {
    /// Program with messages in place of the expanded collectives.
    pub program: Program,
    /// Algorithms that were used, by operation, ranks and size.
    pub uses: Vec<Use>,
    /// Number of executions that keep their formula: non-blocking ones, if requested, and those on a communicator that names
    /// a rank twice.
    pub kept: u64,
}

/// Treatment of non-blocking collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonBlocking {
    /// They run beside their rank.
    Expanded,
    /// They keep their formula.
    Kept,
}

/// An algorithm and its number of uses in one situation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Collective operation that the ranks call; its stages can be other operations.
    pub op: CollectiveOp,
    /// Number of ranks, and the sizes that the rules examined.
    pub extent: RuleExtent,
    /// Algorithm; `None` if there was nothing to send.
    pub choice: Option<Choice>,
    /// Stages of an algorithm that consists of others.
    pub stages: Vec<(CollectiveOp, Choice)>,
    /// Number of executions in this situation, at least 1.
    pub count: u64,
    /// Number of non-blocking ones among them.
    pub non_blocking: u64,
    /// Number of messages of all executions.
    pub messages: u64,
    /// Total size of these messages, in bytes.
    pub bytes: Bytes,
}

/// Expands the collectives of a program by the rules of a table.
///
/// # Errors
/// [`TraceError::Limit`] if the result is too large for the compiled form.
pub fn expand(
    program: &Program,
    table: &AlgorithmTable,
    non_blocking: NonBlocking,
    options: ReadOptions,
) -> Result<Expanded, TraceError> {
    Expansion::new(program, table, non_blocking).carry_out(options)
}

/// Algorithms chosen for the collectives of a program, before the expansion.
pub struct Expansion<'a> {
    program: &'a Program,
    found: Executions,
    uses: Vec<Use>,
}

impl<'a> Expansion<'a> {
    /// Chooses algorithms by the rules of a table.
    pub fn new(
        program: &'a Program,
        table: &AlgorithmTable,
        non_blocking: NonBlocking,
    ) -> Expansion<'a> {
        let found = Executions::new(program, table, non_blocking);
        let uses = found.uses();
        Expansion {
            program,
            found,
            uses,
        }
    }

    /// Number of messages that replace the collectives.
    pub fn messages(&self) -> u64 {
        self.uses
            .iter()
            .fold(0, |sum, used| sum.saturating_add(used.messages))
    }

    /// Returns the program with these messages.
    ///
    /// # Errors
    /// Errors of [`expand`].
    pub fn carry_out(self, options: ReadOptions) -> Result<Expanded, TraceError> {
        let Expansion {
            program,
            found,
            uses,
        } = self;
        let carried_out = found.groups_of.iter().flatten().count() as u64;
        let kept = program.collectives().saturating_sub(carried_out);
        // A program with progress streams has already been expanded: nothing remains to be carried out.
        if found.groups.is_empty() || !program.progress.is_empty() {
            return Ok(Expanded {
                program: program.clone(),
                uses,
                kept,
            });
        }
        let progress = ProgressStreams::new(program, &found);
        let builders = rewrite::rewritten((program, &found, &progress), options.threads)?;
        let parts = ProgramParts {
            name: program.name.clone(),
            ranks: builders,
            communicators: program
                .communicators
                .iter()
                .cloned()
                .chain(progress.communicators())
                .collect(),
            ignored_kind: |number| number.to_string(),
            source: program.source.clone(),
            threads: program.threads.clone(),
        };
        let mut program_again = link(parts, options)?;
        program_again.ignored = program.ignored.clone();
        program_again.assumed = program.assumed.clone();
        program_again.library = program.library;
        program_again.progress = progress.owners;
        Ok(Expanded {
            program: program_again,
            uses,
            kept,
        })
    }
}

/// Executions of a program's collectives, with the algorithm and stages of each.
struct Executions {
    /// Distinct groups: executions of a group have the same algorithm and stages.
    groups: Vec<ExecutionGroup>,
    /// Index of each execution's group; `None` if it keeps its formula.
    groups_of: Vec<Option<u32>>,
    /// Members of each communicator, sorted, each with its place.
    places: Vec<Vec<(Rank, u32)>>,
    /// Time that a rank needs to combine data, per byte.
    reduction: TimePerByte,
}

impl Executions {
    fn new(program: &Program, table: &AlgorithmTable, non_blocking: NonBlocking) -> Executions {
        let places = program.communicators.iter().map(|known| {
            let mut places: Vec<(Rank, u32)> = known.members.iter().copied().zip(0..).collect();
            places.sort_unstable();
            places
        });
        let mut found = Executions {
            groups: Vec::new(),
            groups_of: vec![None; program.instances.len()],
            places: places.collect(),
            reduction: table.reduction,
        };
        found.fill(program, table, non_blocking);
        found
    }

    /// Executions with the same calls share a group and are carried out in the same way.
    fn fill(&mut self, program: &Program, table: &AlgorithmTable, non_blocking: NonBlocking) {
        let mut known: HashMap<&[u32], u32> = HashMap::new();
        let (starts, calls) = self.calls(program);
        for (instance, own) in starts
            .windows(2)
            .map(|ends| &calls[ends[0]..ends[1]])
            .enumerate()
        {
            let communicator = &program.communicators[program.instances[instance] as usize];
            if own.is_empty() || own.contains(&NO_CALL) || program.is_inside_a_task(communicator) {
                continue;
            }
            let members = own.iter().map(|call| program.calls[*call as usize]);
            let is_non_blocking = members.clone().any(|call| call.is_non_blocking());
            if is_non_blocking && non_blocking == NonBlocking::Kept {
                continue;
            }
            let groups = &mut self.groups;
            let group = *known.entry(own).or_insert_with(|| {
                let members: Vec<CollectiveCall> = members.collect();
                groups.push(ExecutionGroup::new(&members, table));
                groups.len() as u32 - 1
            });
            self.groups_of[instance] = Some(group);
        }
    }

    /// Returns the start of each execution in the list of calls, and the calls of its members in the order of the
    /// communicator.
    fn calls(&self, program: &Program) -> (Vec<usize>, Vec<u32>) {
        let mut starts = Vec::with_capacity(program.instances.len() + 1);
        let mut end = 0;
        starts.push(0);
        for communicator in &program.instances {
            end += self.places[*communicator as usize].len();
            starts.push(end);
        }
        let mut calls = vec![NO_CALL; end];
        program.collective_ops().for_each(|(rank, call, instance)| {
            if let Some(place) = self.place(program.calls[call as usize].communicator, rank) {
                calls[starts[instance as usize] + place as usize] = call;
            }
        });
        (starts, calls)
    }

    /// Place of a rank in a communicator, if it is a member.
    fn place(&self, communicator: u32, rank: Rank) -> Option<u32> {
        let places = &self.places[communicator as usize];
        places
            .binary_search_by_key(&rank, |(member, _)| *member)
            .ok()
            .map(|at| places[at].1)
    }

    fn uses(&self) -> Vec<Use> {
        let mut counts = vec![0; self.groups.len()];
        self.groups_of
            .iter()
            .flatten()
            .for_each(|group| counts[*group as usize] += 1);
        let mut uses: BTreeMap<_, Use> = BTreeMap::new();
        for (group, count) in self.groups.iter().zip(counts) {
            let (messages, bytes) = traffic(group);
            let stages: Vec<_> = group
                .stages
                .iter()
                .map(|stage| (stage.task.op, stage.task.choice))
                .collect();
            let RuleExtent {
                ranks,
                bytes: size,
                total,
            } = group.extent;
            let choice = (!stages.is_empty()).then_some(group.choice);
            let key = (group.op, ranks, size, total, choice, stages.clone());
            let known = uses.entry(key).or_insert(Use {
                op: group.op,
                extent: group.extent,
                choice,
                stages: if stages.len() > 1 { stages } else { Vec::new() },
                count: 0,
                non_blocking: 0,
                messages: 0,
                bytes: Bytes(0),
            });
            known.count += count;
            known.non_blocking += if group.is_non_blocking { count } else { 0 };
            known.messages = known
                .messages
                .saturating_add(messages.saturating_mul(count));
            known.bytes.0 = known.bytes.0.saturating_add(bytes.saturating_mul(count));
        }
        uses.into_values().collect()
    }
}

/// Value for a member that does not make the call.
const NO_CALL: u32 = u32::MAX;

/// Number of messages of one execution, and their total bytes.
fn traffic(group: &ExecutionGroup) -> (u64, u64) {
    let (mut messages, mut bytes) = (0, 0u64);
    for stage in &group.stages {
        for rank in 0..stage.task.ranks {
            stage.task.moves(rank, &stage.layout, &mut |step| {
                if let ExpandedMove::Send { part, .. } | ExpandedMove::Start { part, .. } = step {
                    messages += 1;
                    bytes = bytes.saturating_add(stage.layout.bytes(part.blocks));
                }
            });
        }
    }
    (messages, bytes)
}
