//! LogGOPSim's GOAL. A rank's operations require each other in the order of the program; immediate ones are required by
//! what comes behind their wait.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{ACCELERATOR, ACCESSES, Counters, EVENTS, IGNORED, Losses, SYNCHRONOUS, Tables};
use crate::trace::program::{MessageClass, Program};
use crate::trace::schedule::{After, Operation, Schedule};
use crate::trace::words::Op;
use crate::units::{Bytes, Rank, Time};

const COLLECTIVES: &str = "collectives";
const ROUNDED: &str = "messages of 0 bytes; they are written with 1 byte, which costs the same";

/// Writes a program without collectives.
///
/// # Errors
/// Those of `out`.
pub fn goal(program: &Program, out: &mut dyn Write) -> io::Result<Losses> {
    let tables = Tables::new(program);
    let mut losses = Losses::default();
    writeln!(out, "num_ranks {}", program.ranks())?;
    for rank in (0..program.ranks() as u32).map(Rank) {
        writeln!(out, "\nrank {rank} {{")?;
        let mut writer = Writer::new(out, &tables, rank, &mut losses);
        for (_, op) in program.ops(rank) {
            writer.op(op)?;
        }
        writeln!(out, "}}")?;
    }
    Ok(losses)
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    tables: &'a Tables<'a>,
    rank: Rank,
    losses: &'a mut Losses,
    counters: Counters,
    next: u64,
    /// What the next operation requires.
    before: Vec<u64>,
    /// Immediate operations: receives by slot, sends by number.
    receives: HashMap<u32, u64>,
    sends: HashMap<u32, u64>,
    /// Nanoseconds that rounding has left over.
    rest: f64,
}

impl<'a> Writer<'a> {
    fn new(out: &'a mut dyn Write, tables: &'a Tables<'a>, rank: Rank, losses: &'a mut Losses) -> Writer<'a> {
        let (receives, sends) = (HashMap::new(), HashMap::new());
        let counters = Counters::default();
        Writer { out, tables, rank, losses, counters, next: 0, before: Vec::new(), receives, sends, rest: 0.0 }
    }

    fn op(&mut self, op: Op) -> io::Result<()> {
        match op {
            Op::Compute(time) => self.compute(time)?,
            Op::Accelerator(time) => {
                self.losses.count(ACCELERATOR);
                self.compute(time)?;
            }
            Op::Send { class, slot } => self.send(class, slot)?,
            Op::Recv => {
                let text = self.receive();
                self.blocking(&text)?;
            }
            Op::Irecv => {
                let slot = self.counters.received;
                let text = self.receive();
                let label = self.immediate(&text)?;
                self.receives.insert(slot, label);
            }
            Op::WaitRecv(slot) => {
                let label = self.receives.remove(&slot);
                self.before.extend(label);
            }
            Op::WaitSend(ago) => {
                let label = self.sends.remove(&(self.counters.sent - 1 - ago));
                self.before.extend(label);
            }
            Op::Collective { .. } => self.losses.count(COLLECTIVES),
            Op::Event(_) => self.losses.count(EVENTS),
            Op::Access(_) => self.losses.count(ACCESSES),
            Op::Ignored(_) => self.losses.count(IGNORED),
            Op::WaitCollective(_) | Op::Nothing => {}
        }
        Ok(())
    }

    fn compute(&mut self, time: Time) -> io::Result<()> {
        let exact = time.as_nanos() + self.rest;
        let whole = exact.round().max(0.0);
        self.rest = exact - whole;
        if whole > 0.0 { self.blocking(&format!("calc {whole}")) } else { Ok(()) }
    }

    fn size(&mut self, class: &MessageClass) -> u64 {
        if class.size == Bytes(0) {
            self.losses.count(ROUNDED);
        }
        class.size.0.max(1)
    }

    fn send(&mut self, class: u32, slot: u32) -> io::Result<()> {
        let number = self.counters.next_send();
        let (to, class) = (self.tables.program.receiver(slot), self.tables.class(class));
        if class.mode.synchronous {
            self.losses.count(SYNCHRONOUS);
        }
        let text = format!("send {}b to {to} tag {}", self.size(class), self.tables.tag(class));
        if !class.mode.immediate {
            return self.blocking(&text);
        }
        let label = self.immediate(&text)?;
        self.sends.insert(number, label);
        Ok(())
    }

    fn receive(&mut self) -> String {
        let slot = self.counters.next_slot(self.tables.program, self.rank);
        let (from, class) = self.tables.message(slot);
        format!("recv {}b from {from} tag {}", class.size.0.max(1), self.tables.tag(class))
    }

    fn blocking(&mut self, operation: &str) -> io::Result<()> {
        let label = self.write(operation)?;
        self.before = vec![label];
        Ok(())
    }

    fn immediate(&mut self, operation: &str) -> io::Result<u64> {
        // One join instead of many dependencies of each of a row of immediate operations.
        if self.before.len() > 1 {
            self.blocking("calc 0")?;
        }
        self.write(operation)
    }

    fn write(&mut self, operation: &str) -> io::Result<u64> {
        self.next += 1;
        let label = self.next;
        writeln!(self.out, "l{label}: {operation}")?;
        for earlier in &self.before {
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
