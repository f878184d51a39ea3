//! LogGOPSim's GOAL. Each operation of a rank requires the one before it in the program; what comes after a wait requires
//! the non-blocking operations that it waits for. The messages of a non-blocking collective are a chain of their own.
//!
//! All chains of a rank are on one processor: in LogGOPSim a dependency between two processors does not carry the time.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use super::steps::{Message, Step, Steps};
use super::{Losses, Tables};
use crate::program::{CollectiveMode, Program};
use crate::schedule::{After, Operation, Schedule};
use flowcast_units::{Bytes, Rank, Time};

const COLLECTIVES: &str = "collectives";
const ROUNDED: &str = "messages of 0 bytes; they are written with 1 byte, which costs the same";

/// Writes a program without collectives but those of ranks with their progress streams.
///
/// # Errors
/// Those of `out`.
pub fn goal(program: &Program, out: &mut dyn Write) -> io::Result<Losses> {
    let tables = Tables::new(program);
    let mut losses = Losses::default();
    ranks_in_braces(program.ranks() as u32, out, |rank, out| {
        let operations = Operations { out, losses: &mut losses, next: 0, rest: 0.0 };
        Writer { tables: &tables, operations, progress: HashMap::new() }.rank(rank)
    })?;
    Ok(losses)
}

/// Writes the steps of each of so many ranks, without collectives.
///
/// # Errors
/// Those of `out`.
pub(crate) fn goal_steps<S: Iterator<Item = Step>>(
    ranks: u32,
    steps: impl Fn(Rank) -> S,
    out: &mut dyn Write,
) -> io::Result<()> {
    ranks_in_braces(ranks, out, |rank, out| {
        let mut operations = Operations { out, losses: &mut Losses::default(), next: 0, rest: 0.0 };
        let mut open = Open::default();
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

/// Operations that follow each other.
struct Chain<'a> {
    steps: Steps<'a>,
    open: Open,
}

impl<'a> Chain<'a> {
    fn new(tables: &'a Tables<'a>, stream: Rank) -> Chain<'a> {
        Chain { steps: Steps::new(tables, stream), open: Open::default() }
    }
}

/// What further operations of a chain may require.
#[derive(Default)]
struct Open {
    /// What the next operation requires.
    before: Vec<u64>,
    /// Non-blocking operations by number.
    receives: BTreeMap<u32, u64>,
    sends: BTreeMap<u32, u64>,
}

/// A rank with its progress streams.
struct Writer<'a> {
    tables: &'a Tables<'a>,
    operations: Operations<'a>,
    progress: HashMap<Rank, Chain<'a>>,
}

impl<'a> Writer<'a> {
    fn rank(&mut self, rank: Rank) -> io::Result<()> {
        let mut chain = Chain::new(self.tables, rank);
        while let Some(step) = chain.steps.next(self.operations.losses) {
            match step {
                Step::Meeting(stream, CollectiveMode::NonBlocking) => self.begin(stream, &chain.open.before)?,
                Step::Meeting(stream, _) => {
                    let ends = self.progress.get_mut(&stream).map(|beside| std::mem::take(&mut beside.open.before));
                    chain.open.before.extend(ends.into_iter().flatten());
                }
                step => self.operations.step(step, &mut chain.open)?,
            }
        }
        Ok(())
    }

    /// Writes an operation of a progress stream up to its end.
    fn begin(&mut self, stream: Rank, before: &[u64]) -> io::Result<()> {
        let mut chain = self.progress.remove(&stream).unwrap_or_else(|| Chain::new(self.tables, stream));
        chain.open.before = before.to_vec();
        let mut has_begun = false;
        while let Some(step) = chain.steps.next(self.operations.losses) {
            match step {
                Step::Meeting(..) if has_begun => break,
                Step::Meeting(..) => has_begun = true,
                step => self.operations.step(step, &mut chain.open)?,
            }
        }
        self.progress.insert(stream, chain);
        Ok(())
    }
}

/// Writes operations with their labels, which are numbered from 1 in each rank.
struct Operations<'a> {
    out: &'a mut dyn Write,
    losses: &'a mut Losses,
    /// The last label.
    next: u64,
    /// Nanoseconds that rounding has left over.
    rest: f64,
}

impl Operations<'_> {
    fn step(&mut self, step: Step, open: &mut Open) -> io::Result<()> {
        match step {
            Step::Compute(time) => self.compute(time, open)?,
            Step::Send(message) => {
                if message.size == Bytes(0) {
                    self.losses.count(ROUNDED);
                }
                let text = operation("send", "to", message);
                if !message.mode.non_blocking {
                    return self.blocking(&text, open);
                }
                let label = self.non_blocking(&text, open)?;
                open.sends.insert(message.number, label);
            }
            Step::Receive(message) => self.blocking(&operation("recv", "from", message), open)?,
            Step::Post(message) => {
                let label = self.non_blocking(&operation("recv", "from", message), open)?;
                open.receives.insert(message.number, label);
            }
            Step::AwaitReceive(message) => open.before.extend(open.receives.remove(&message.number)),
            Step::AwaitSend(message) => open.before.extend(open.sends.remove(&message.number)),
            Step::AwaitAll => {
                let (receives, sends) = (std::mem::take(&mut open.receives), std::mem::take(&mut open.sends));
                // They require what came before them.
                if receives.len() + sends.len() > 0 {
                    open.before = receives.into_values().chain(sends.into_values()).collect();
                }
            }
            Step::Collective(..) | Step::Meeting(..) => self.losses.count(COLLECTIVES),
        }
        Ok(())
    }

    fn compute(&mut self, time: Time, open: &mut Open) -> io::Result<()> {
        let exact = time.as_nanos() + self.rest;
        let whole = exact.round().max(0.0);
        self.rest = exact - whole;
        if whole > 0.0 { self.blocking(&format!("calc {whole}"), open) } else { Ok(()) }
    }

    fn blocking(&mut self, operation: &str, open: &mut Open) -> io::Result<()> {
        let label = self.write(operation, &open.before)?;
        open.before = vec![label];
        Ok(())
    }

    fn non_blocking(&mut self, operation: &str, open: &mut Open) -> io::Result<u64> {
        // One join instead of many dependencies of each of several non-blocking operations.
        if open.before.len() > 2 {
            self.blocking("calc 0", open)?;
        }
        self.write(operation, &open.before)
    }

    fn write(&mut self, operation: &str, before: &[u64]) -> io::Result<u64> {
        self.next += 1;
        let label = self.next;
        writeln!(self.out, "l{label}: {operation}")?;
        for earlier in before {
            writeln!(self.out, "l{label} requires l{earlier}")?;
        }
        Ok(label)
    }
}

fn operation(word: &str, preposition: &str, message: Message) -> String {
    format!("{word} {}b {preposition} {} tag {}", message.size.0.max(1), message.peer, message.tag)
}

/// Writes a schedule.
///
/// # Errors
/// Those of `out`.
pub fn schedule(schedule: &Schedule, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "num_ranks {}", schedule.ranks())?;
    for (rank, graph) in schedule.graphs.iter().enumerate() {
        writeln!(out, "\nrank {rank} {{")?;
        for (number, node) in graph.nodes.iter().enumerate() {
            let tag = |tag: Option<u32>| tag.map_or("-1".to_owned(), |tag| tag.to_string());
            write!(out, "l{}: ", number + 1)?;
            match node.operation {
                Operation::Calc(time) => write!(out, "calc {}", time.as_nanos())?,
                Operation::Send { to, size, tag: t } => write!(out, "send {}b to {to} tag {}", size.0, tag(t))?,
                Operation::Recv { from, size, tag: t } => {
                    let from = from.map_or("-1".to_owned(), |from| from.to_string());
                    write!(out, "recv {}b from {from} tag {}", size.0, tag(t))?;
                }
            }
            let is_calc = matches!(node.operation, Operation::Calc(_));
            let nic = if is_calc || node.nic == 0 { String::new() } else { format!(" nic {}", node.nic) };
            let cpu = if node.cpu == 0 { String::new() } else { format!(" cpu {}", node.cpu) };
            writeln!(out, "{cpu}{nic}")?;
        }
        for dependency in graph.dependencies() {
            let word = if dependency.after == After::Start { "irequires" } else { "requires" };
            writeln!(out, "l{} {word} l{}", dependency.later + 1, dependency.earlier + 1)?;
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}
