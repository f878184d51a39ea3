//! Writer of LogGOPSim's GOAL. Each operation of a rank requires its predecessor in the program. An operation after a wait
//! requires the non-blocking operations that the wait completes. The messages of a non-blocking collective form a chain of
//! their own.
//!
//! All chains of a rank are on one processor, because in LogGOPSim a dependency between two processors does not transfer the
//! time.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
};

use super::{
    Losses, WriterTables,
    steps::{StepFile, StepMessage, StreamStep},
};
use flowcast_program::{
    program::{CollectiveMode, Program},
    schedule::{After, Dependency, Graph, Operation, OperationNode, Schedule, graph, node},
};
use flowcast_units::{Bytes, Rank, Time};

const COLLECTIVES: &str = "collectives";
const ROUNDED: &str = "messages of 0 bytes; they are written with 1 byte, which costs the same";

/// Writes a program. Its only collectives may be those between a rank and its progress streams.
///
/// # Errors
/// The errors of `out`.
pub fn goal(program: &Program, out: &mut dyn Write) -> io::Result<Losses> {
    let tables = WriterTables::new(program);
    let mut losses = Losses::default();
    ranks_in_braces(program.ranks() as u32, out, |rank, out| {
        write_rank(&tables, rank, &mut GoalText(out), &mut losses)
    })?;
    Ok(losses)
}

/// Returns the program as a schedule.
pub fn as_schedule(program: &Program) -> (Schedule, Losses) {
    let tables = WriterTables::new(program);
    let mut losses = Losses::default();
    let graphs: Vec<Graph> = Rank::all(program.ranks())
        .map(|rank| {
            let mut operations = InMemory::default();
            write_rank(&tables, rank, &mut operations, &mut losses).expect("memory can be written");
            graph(operations.nodes, &operations.dependencies)
        })
        .collect();
    (
        Schedule {
            name: program.name.clone(),
            graphs,
        },
        losses,
    )
}

fn write_rank(
    tables: &WriterTables<'_>,
    rank: Rank,
    out: &mut dyn Sink,
    losses: &mut Losses,
) -> io::Result<()> {
    let operations = Operations {
        out,
        losses,
        next: 0,
        rest: 0.0,
    };
    GoalWriter {
        tables,
        operations,
        progress: HashMap::new(),
    }
    .rank(rank)
}

/// Writes the steps of each of `ranks` ranks, without collectives.
///
/// # Errors
/// The errors of `out`.
pub(crate) fn goal_steps<S: Iterator<Item = StreamStep>>(
    ranks: u32,
    steps: impl Fn(Rank) -> S,
    out: &mut dyn Write,
) -> io::Result<()> {
    ranks_in_braces(ranks, out, |rank, out| {
        let mut operations = Operations {
            out: &mut GoalText(out),
            losses: &mut Losses::default(),
            next: 0,
            rest: 0.0,
        };
        let mut open = OpenOperation::default();
        steps(rank).try_for_each(|step| operations.step(step, &mut open))
    })
}

fn ranks_in_braces(
    ranks: u32,
    out: &mut dyn Write,
    mut operations: impl FnMut(Rank, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    writeln!(out, "num_ranks {ranks}")?;
    for rank in (0..ranks).map(Rank) {
        writeln!(out, "\nrank {rank} {{")?;
        operations(rank, out)?;
        writeln!(out, "}}")?;
    }
    Ok(())
}

/// Chain of operations that follow each other.
struct OperationChain<'a> {
    steps: StepFile<'a>,
    open: OpenOperation,
}

impl<'a> OperationChain<'a> {
    fn new(tables: &'a WriterTables<'a>, stream: Rank) -> OperationChain<'a> {
        OperationChain {
            steps: StepFile::new(tables, stream),
            open: OpenOperation::default(),
        }
    }
}

/// Operations that later operations of a chain may require.
#[derive(Default)]
struct OpenOperation {
    /// Requirements of the next operation.
    before: Vec<u64>,
    /// Non-blocking operations by number.
    receives: BTreeMap<u32, u64>,
    sends: BTreeMap<u32, u64>,
}

/// Writer of a rank with its progress streams.
struct GoalWriter<'a> {
    tables: &'a WriterTables<'a>,
    operations: Operations<'a>,
    progress: HashMap<Rank, OperationChain<'a>>,
}

impl<'a> GoalWriter<'a> {
    fn rank(&mut self, rank: Rank) -> io::Result<()> {
        let mut chain = OperationChain::new(self.tables, rank);
        while let Some(step) = chain.steps.next(self.operations.losses) {
            match step {
                StreamStep::Meeting(stream, CollectiveMode::NonBlocking) => {
                    self.begin(stream, &chain.open.before)?
                }
                StreamStep::Meeting(stream, _) => {
                    let ends = self
                        .progress
                        .get_mut(&stream)
                        .map(|beside| std::mem::take(&mut beside.open.before));
                    chain.open.before.extend(ends.into_iter().flatten());
                }
                step => self.operations.step(step, &mut chain.open)?,
            }
        }
        Ok(())
    }

    /// Writes one operation of a progress stream, from its start to its end.
    fn begin(&mut self, stream: Rank, before: &[u64]) -> io::Result<()> {
        let mut chain = self
            .progress
            .remove(&stream)
            .unwrap_or_else(|| OperationChain::new(self.tables, stream));
        chain.open.before = before.to_vec();
        let mut has_begun = false;
        while let Some(step) = chain.steps.next(self.operations.losses) {
            match step {
                StreamStep::Meeting(..) if has_begun => break,
                StreamStep::Meeting(..) => has_begun = true,
                step => self.operations.step(step, &mut chain.open)?,
            }
        }
        self.progress.insert(stream, chain);
        Ok(())
    }
}

/// Destination of a rank's operations.
trait Sink {
    /// Takes the next operation, with its label and the labels that it requires.
    fn take(&mut self, label: u64, operation: Operation, before: &[u64]) -> io::Result<()>;
}

/// Sink that writes text.
struct GoalText<'a>(&'a mut dyn Write);

impl Sink for GoalText<'_> {
    fn take(&mut self, label: u64, operation: Operation, before: &[u64]) -> io::Result<()> {
        write!(self.0, "l{label}: ")?;
        write_operation(operation, self.0)?;
        writeln!(self.0)?;
        before
            .iter()
            .try_for_each(|earlier| writeln!(self.0, "l{label} requires l{earlier}"))
    }
}

/// Sink that collects the parts of a graph.
#[derive(Default)]
struct InMemory {
    nodes: Vec<OperationNode>,
    dependencies: Vec<Dependency>,
}

impl Sink for InMemory {
    fn take(&mut self, label: u64, operation: Operation, before: &[u64]) -> io::Result<()> {
        self.nodes.push(node(operation, 0));
        self.dependencies
            .extend(before.iter().map(|earlier| Dependency {
                later: index(label),
                earlier: index(*earlier),
                after: After::End,
            }));
        Ok(())
    }
}

fn index(label: u64) -> u32 {
    (label - 1) as u32
}

/// Writer of a rank's operations to a sink. Their labels are numbered from 1.
struct Operations<'a> {
    out: &'a mut dyn Sink,
    losses: &'a mut Losses,
    /// Label of the last operation, 0 before the first.
    next: u64,
    /// Rounding remainder, in nanoseconds.
    rest: f64,
}

impl Operations<'_> {
    fn step(&mut self, step: StreamStep, open: &mut OpenOperation) -> io::Result<()> {
        use StreamStep::*;
        match step {
            Compute(time) => self.compute(time, open)?,
            Send(message) => {
                if message.size == Bytes(0) {
                    self.losses.count(ROUNDED);
                }
                if !message.mode.non_blocking {
                    return self.blocking(send(message), open);
                }
                let label = self.non_blocking(send(message), open)?;
                open.sends.insert(message.number, label);
            }
            Receive(message) => self.blocking(receive(message), open)?,
            Post(message) => {
                let label = self.non_blocking(receive(message), open)?;
                open.receives.insert(message.number, label);
            }
            AwaitReceive(message) => open.before.extend(open.receives.remove(&message.number)),
            AwaitSend(message) => open.before.extend(open.sends.remove(&message.number)),
            AwaitAll => {
                let (receives, sends) = (
                    std::mem::take(&mut open.receives),
                    std::mem::take(&mut open.sends),
                );
                // They require the operations before them.
                if receives.len() + sends.len() > 0 {
                    open.before = receives.into_values().chain(sends.into_values()).collect();
                }
            }
            Collective(..) | Meeting(..) => self.losses.count(COLLECTIVES),
        }
        Ok(())
    }

    fn compute(&mut self, time: Time, open: &mut OpenOperation) -> io::Result<()> {
        let exact = time.as_nanos() + self.rest;
        let whole = exact.round().max(0.0);
        self.rest = exact - whole;
        if whole > 0.0 {
            self.blocking(Operation::Calc(Time::from_nanos(whole)), open)
        } else {
            Ok(())
        }
    }

    fn blocking(&mut self, operation: Operation, open: &mut OpenOperation) -> io::Result<()> {
        let label = self.write(operation, &open.before)?;
        open.before = vec![label];
        Ok(())
    }

    fn non_blocking(&mut self, operation: Operation, open: &mut OpenOperation) -> io::Result<u64> {
        // A single join replaces many dependencies of each of several non-blocking operations.
        if open.before.len() > 2 {
            self.blocking(Operation::Calc(Time::ZERO), open)?;
        }
        self.write(operation, &open.before)
    }

    fn write(&mut self, operation: Operation, before: &[u64]) -> io::Result<u64> {
        self.next += 1;
        self.out.take(self.next, operation, before)?;
        Ok(self.next)
    }
}

fn send(message: StepMessage) -> Operation {
    Operation::Send {
        to: message.peer,
        size: Bytes(message.size.0.max(1)),
        tag: Some(message.tag),
    }
}

fn receive(message: StepMessage) -> Operation {
    Operation::Recv {
        from: Some(message.peer),
        size: Bytes(message.size.0.max(1)),
        tag: Some(message.tag),
    }
}

fn write_operation(operation: Operation, out: &mut dyn Write) -> io::Result<()> {
    match operation {
        Operation::Calc(time) => write!(out, "calc {}", time.as_nanos()),
        Operation::Send { to, size, tag } => {
            write!(out, "send {}b to {to} tag {}", size.0, or_any(tag))
        }
        Operation::Recv { from, size, tag } => {
            let (from, tag) = (or_any(from), or_any(tag));
            write!(out, "recv {}b from {from} tag {tag}", size.0)
        }
    }
}

/// Returns the text of a rank or tag; -1 means any.
fn or_any(value: Option<impl ToString>) -> String {
    value.map_or("-1".to_owned(), |value| value.to_string())
}

/// Writes a schedule.
///
/// # Errors
/// The errors of `out`.
pub fn schedule(schedule: &Schedule, out: &mut dyn Write) -> io::Result<()> {
    ranks_in_braces(schedule.ranks() as u32, out, |rank, out| {
        let graph = &schedule.graphs[rank.index()];
        for (number, node) in (1usize..).zip(&graph.nodes) {
            write!(out, "l{number}: ")?;
            write_operation(node.operation, out)?;
            if node.cpu > 0 {
                write!(out, " cpu {}", node.cpu)?;
            }
            if node.nic > 0 && !matches!(node.operation, Operation::Calc(_)) {
                write!(out, " nic {}", node.nic)?;
            }
            writeln!(out)?;
        }
        for dependency in graph.dependencies() {
            let word = if dependency.after == After::Start {
                "irequires"
            } else {
                "requires"
            };
            writeln!(
                out,
                "l{} {word} l{}",
                dependency.later + 1,
                dependency.earlier + 1
            )?;
        }
        Ok(())
    })
}
