//! Writers of the text formats, for steps as they come.

use std::io::{self, Write};

use super::generate::{Shape, Step};
use flowcast_units::{Bytes, Rank, Time};

/// Writes a Dimemas trace.
///
/// The header tells the byte offset of each task's records, so the steps are made twice: once to count, once to write.
///
/// # Errors
/// Those of `out`.
pub fn dim(shape: Shape, out: &mut dyn Write) -> io::Result<()> {
    let ranks = (0..shape.ranks).map(Rank);
    let mut lengths = Vec::with_capacity(shape.ranks as usize);
    for rank in ranks.clone() {
        let mut count = Count(0);
        dim_rank(shape, rank, &mut count)?;
        lengths.push(count.0);
    }
    let ones = vec!["1"; shape.ranks as usize].join(",");
    let members: String = ranks.clone().map(|rank| format!(":{rank}")).collect();
    let definitions = format!("d:1:1:{}{members}\n", shape.ranks);
    let header = |end: u64| format!("#DIMEMAS:\"{}\":1,{end:020}:{}({ones}),1\n", shape.workload.name(), shape.ranks);
    let body = (header(0).len() + definitions.len()) as u64;
    let end = body + lengths.iter().sum::<u64>();
    write!(out, "{}{definitions}", header(end))?;
    for rank in ranks.clone() {
        dim_rank(shape, rank, out)?;
    }
    let mut offset = body;
    for (rank, length) in ranks.zip(lengths) {
        writeln!(out, "s:{rank}:{offset}")?;
        offset += length;
    }
    Ok(())
}

/// Bytes that a writer would write.
pub(super) struct Count(pub(super) u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn dim_rank(shape: Shape, rank: Rank, out: &mut dyn Write) -> io::Result<()> {
    let Bytes(size) = shape.size;
    let mut pending = Vec::new();
    // The original tool leaves out a task whose first record is not a computation.
    let mut computes = false;
    for step in shape.steps(rank) {
        if !computes && !matches!(step, Step::Compute(_)) {
            writeln!(out, "1:{rank}:0:0.000000000")?;
        }
        computes = true;
        match step {
            Step::Compute(time) => writeln!(out, "1:{rank}:0:{}", DimSeconds(time))?,
            Step::Send(to, tag) => writeln!(out, "2:{rank}:0:{to}:-1:{size}:{tag}:1:0")?,
            Step::Isend(to, tag) => writeln!(out, "2:{rank}:0:{to}:-1:{size}:{tag}:1:2")?,
            Step::Recv(from, tag) => writeln!(out, "3:{rank}:0:{from}:-1:{size}:{tag}:1:0")?,
            Step::Irecv(from, tag) => {
                writeln!(out, "3:{rank}:0:{from}:-1:{size}:{tag}:1:1")?;
                pending.push((from, tag));
            }
            Step::WaitAll => {
                for (from, tag) in pending.drain(..) {
                    writeln!(out, "3:{rank}:0:{from}:-1:{size}:{tag}:1:2")?;
                }
            }
        }
    }
    Ok(())
}

/// Seconds with nine decimals, from whole nanoseconds.
struct DimSeconds(Time);

impl std::fmt::Display for DimSeconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanos = self.0.as_nanos() as u64;
        write!(f, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

/// Writes a GOAL schedule. Labels are numbered from 1 in each rank.
///
/// # Errors
/// Those of `out`.
pub fn goal(shape: Shape, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "num_ranks {}", shape.ranks)?;
    for rank in (0..shape.ranks).map(Rank) {
        writeln!(out, "\nrank {rank} {{")?;
        let mut writer = GoalRank { out, next: 1, done: Vec::new(), open: Vec::new() };
        for step in shape.steps(rank) {
            writer.step(step, shape.size)?;
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}

struct GoalRank<'a> {
    out: &'a mut dyn Write,
    next: u64,
    /// What the next operation requires.
    done: Vec<u64>,
    /// Immediate operations that nobody has waited for.
    open: Vec<u64>,
}

impl GoalRank<'_> {
    fn step(&mut self, step: Step, Bytes(size): Bytes) -> io::Result<()> {
        match step {
            Step::Compute(time) => self.blocking(&format!("calc {}", time.as_nanos())),
            Step::Send(to, tag) => self.blocking(&format!("send {size}b to {to} tag {tag}")),
            Step::Recv(from, tag) => self.blocking(&format!("recv {size}b from {from} tag {tag}")),
            Step::Isend(to, tag) => self.immediate(&format!("send {size}b to {to} tag {tag}")),
            Step::Irecv(from, tag) => self.immediate(&format!("recv {size}b from {from} tag {tag}")),
            Step::WaitAll => {
                if !self.open.is_empty() {
                    self.done = std::mem::take(&mut self.open);
                }
                Ok(())
            }
        }
    }

    fn blocking(&mut self, operation: &str) -> io::Result<()> {
        let label = self.write(operation)?;
        self.done = vec![label];
        Ok(())
    }

    fn immediate(&mut self, operation: &str) -> io::Result<()> {
        let label = self.write(operation)?;
        self.open.push(label);
        Ok(())
    }

    fn write(&mut self, operation: &str) -> io::Result<u64> {
        let label = self.next;
        self.next += 1;
        writeln!(self.out, "l{label}: {operation}")?;
        for earlier in &self.done {
            writeln!(self.out, "l{label} requires l{earlier}")?;
        }
        Ok(label)
    }
}

/// Writes one rank of a SimGrid time-independent trace; computations count operations of a host of 1 Gflop/s.
///
/// # Errors
/// Those of `out`.
pub fn simgrid_rank(shape: Shape, rank: Rank, out: &mut dyn Write) -> io::Result<()> {
    let Bytes(size) = shape.size;
    writeln!(out, "{rank} init")?;
    for step in shape.steps(rank) {
        match step {
            Step::Compute(time) => writeln!(out, "{rank} compute {}", time.as_nanos())?,
            Step::Send(to, tag) => writeln!(out, "{rank} send {to} {tag} {size}")?,
            Step::Recv(from, tag) => writeln!(out, "{rank} recv {from} {tag} {size}")?,
            Step::Isend(to, tag) => writeln!(out, "{rank} isend {to} {tag} {size}")?,
            Step::Irecv(from, tag) => writeln!(out, "{rank} irecv {from} {tag} {size}")?,
            Step::WaitAll => writeln!(out, "{rank} waitall")?,
        }
    }
    writeln!(out, "{rank} finalize")
}
