//! LogGOPSim's GOAL. A rank's operations require each other in the order of the program; immediate ones are required by
//! what comes behind their wait. So are immediate collectives, whose messages are a chain of their own beside the rank's.
//!
//! All chains of a rank are on one processor: in LogGOPSim a dependency between two processors does not carry the time.

use std::collections::HashMap;
use std::io::{self, Write};

use super::steps::{Message, Step, Steps};
use super::{Losses, Tables};
use crate::program::{CollectiveMode, Program};
use crate::schedule::{After, Operation, Schedule};
use flowcast_units::{Bytes, Rank, Time};

const COLLECTIVES: &str = "collectives";
const ROUNDED: &str = "messages of 0 bytes; they are written with 1 byte, which costs the same";

/// Writes a program without collectives but those of ranks with their strands.
///
/// # Errors
/// Those of `out`.
pub fn goal(program: &Program, out: &mut dyn Write) -> io::Result<Losses> {
    let tables = Tables::new(program);
    let mut losses = Losses::default();
    writeln!(out, "num_ranks {}", program.ranks())?;
    for rank in (0..program.ranks() as u32).map(Rank) {
        writeln!(out, "\nrank {rank} {{")?;
        let strands = HashMap::new();
        let mut writer = Writer { out, tables: &tables, losses: &mut losses, strands, next: 0, rest: 0.0 };
        writer.rank(rank)?;
        writeln!(out, "}}")?;
    }
    Ok(losses)
}

/// Operations that follow each other.
struct Chain<'a> {
    steps: Steps<'a>,
    /// What the next operation requires.
    before: Vec<u64>,
    /// Immediate operations by number.
    receives: HashMap<u32, u64>,
    sends: HashMap<u32, u64>,
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    tables: &'a Tables<'a>,
    losses: &'a mut Losses,
    strands: HashMap<Rank, Chain<'a>>,
    next: u64,
    /// Nanoseconds that rounding has left over.
    rest: f64,
}

impl<'a> Chain<'a> {
    fn new(tables: &'a Tables<'a>, stream: Rank) -> Chain<'a> {
        let (receives, sends) = (HashMap::new(), HashMap::new());
        Chain { steps: Steps::new(tables, stream), before: Vec::new(), receives, sends }
    }
}

impl<'a> Writer<'a> {
    fn rank(&mut self, rank: Rank) -> io::Result<()> {
        let mut chain = Chain::new(self.tables, rank);
        while let Some(step) = chain.steps.next(self.losses) {
            match step {
                Step::Meeting(strand, CollectiveMode::Immediate) => self.begin(strand, &chain.before)?,
                Step::Meeting(strand, _) => {
                    let ends = self.strands.get_mut(&strand).map(|strand| std::mem::take(&mut strand.before));
                    chain.before.extend(ends.into_iter().flatten());
                }
                step => self.step(step, &mut chain)?,
            }
        }
        Ok(())
    }

    /// Writes an operation of a strand up to its end.
    fn begin(&mut self, strand: Rank, before: &[u64]) -> io::Result<()> {
        let mut chain = self.strands.remove(&strand).unwrap_or_else(|| Chain::new(self.tables, strand));
        chain.before = before.to_vec();
        let mut has_begun = false;
        while let Some(step) = chain.steps.next(self.losses) {
            match step {
                Step::Meeting(..) if has_begun => break,
                Step::Meeting(..) => has_begun = true,
                step => self.step(step, &mut chain)?,
            }
        }
        self.strands.insert(strand, chain);
        Ok(())
    }

    fn step(&mut self, step: Step<'a>, chain: &mut Chain<'a>) -> io::Result<()> {
        match step {
            Step::Compute(time) => self.compute(time, chain)?,
            Step::Send(message) => {
                let text = format!("send {}b to {} tag {}", self.size(message), message.peer, self.tag(message));
                if !message.class.mode.immediate {
                    return self.blocking(&text, chain);
                }
                let label = self.immediate(&text, chain)?;
                chain.sends.insert(message.number, label);
            }
            Step::Receive(message) => self.blocking(&self.receive(message), chain)?,
            Step::Post(message) => {
                let label = self.immediate(&self.receive(message), chain)?;
                chain.receives.insert(message.number, label);
            }
            Step::AwaitReceive(message) => chain.before.extend(chain.receives.remove(&message.number)),
            Step::AwaitSend(message) => chain.before.extend(chain.sends.remove(&message.number)),
            Step::Collective(..) | Step::Meeting(..) => self.losses.count(COLLECTIVES),
        }
        Ok(())
    }

    fn compute(&mut self, time: Time, chain: &mut Chain<'a>) -> io::Result<()> {
        let exact = time.as_nanos() + self.rest;
        let whole = exact.round().max(0.0);
        self.rest = exact - whole;
        if whole > 0.0 { self.blocking(&format!("calc {whole}"), chain) } else { Ok(()) }
    }

    fn size(&mut self, message: Message<'_>) -> u64 {
        if message.class.size == Bytes(0) {
            self.losses.count(ROUNDED);
        }
        message.class.size.0.max(1)
    }

    fn tag(&self, message: Message<'_>) -> u32 {
        self.tables.tag(message.class)
    }

    fn receive(&self, message: Message<'_>) -> String {
        format!("recv {}b from {} tag {}", message.class.size.0.max(1), message.peer, self.tag(message))
    }

    fn blocking(&mut self, operation: &str, chain: &mut Chain<'a>) -> io::Result<()> {
        let label = self.write(operation, &chain.before)?;
        chain.before = vec![label];
        Ok(())
    }

    fn immediate(&mut self, operation: &str, chain: &mut Chain<'a>) -> io::Result<u64> {
        // One join instead of many dependencies of each of a row of immediate operations.
        if chain.before.len() > 1 {
            self.blocking("calc 0", chain)?;
        }
        self.write(operation, &chain.before)
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
