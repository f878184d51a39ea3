//! Writer of Dimemas' `.dim`. Flowcast's own records ([`Dialect::Own`]) preserve everything that a replay uses: waits for
//! sends (32), one-sided operations (30) and files (31). Dimemas refuses a trace with these records.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use super::{
    Losses, RMA_AND_IO, THREADS, WriterTables, is_of_threads,
    steps::{StepMessage, StreamStep},
};
use flowcast_program::{
    access::{Access, FileKind, LockKind, TransferKind},
    opcodes::{self, Op},
    program::{CollectiveCall, CollectiveMode, MessageClass, Program},
    slot::Slot,
};
use flowcast_units::{CollectiveOp, Rank, Time};

/// Set of records that the writer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Flowcast's own records as well, if something would be lost without them.
    Own,
    /// Only records that Dimemas supports.
    Dimemas,
}

const WAITS: &str = "waits for sends";
const OURS: &str = "records that only Flowcast reads; Dimemas needs a trace made with --strict";

/// Writes a program without progress streams.
///
/// ```
/// use flowcast_program::Trace;
/// use flowcast_formats::convert::generate::{ProgramShape, Workload};
/// use flowcast_units::{Bytes, Time};
///
/// let shape = ProgramShape {
///     workload: Workload::Shift,
///     ranks: 4,
///     iterations: 1,
///     size: Bytes(8),
///     compute: Time::from_micros(1.0),
///     jitter: 0.0,
///     seed: 1,
///     period: 0,
/// };
/// let Trace::Program(program) = shape.trace()? else { panic!("it has no loop") };
/// let mut text = Vec::new();
/// let losses = flowcast_formats::convert::dim(&program, flowcast_formats::convert::Dialect::Own, &mut text).unwrap();
/// assert!(text.starts_with(b"#DIMEMAS:\"shift\":1,"));
/// // Waits for sends are records of our own.
/// assert_eq!(losses.kinds().count(), 1);
/// # Ok::<(), flowcast_program::TraceError>(())
/// ```
///
/// # Errors
/// The errors of `out`.
pub fn dim(program: &Program, dialect: Dialect, out: &mut dyn Write) -> io::Result<Losses> {
    let tables = WriterTables::new(program);
    let numbers = DimNumbers::new(program);
    let frame = DimFrame {
        name: &program.name,
        threads: program.threads_of_tasks(),
        definitions: numbers.definitions(program),
    };
    frame.write(out, |rank, out| {
        let writer = DimWriter {
            tables: &tables,
            numbers: &numbers,
            dialect,
            rank,
            next_slot: program.first_slot(rank),
            losses: Losses::default(),
        };
        writer.write(out)
    })
}

/// Writes the steps of each of `ranks` ranks, without collectives.
///
/// # Errors
/// The errors of `out`.
pub(crate) fn dim_steps<S: Iterator<Item = StreamStep>>(
    name: &str,
    ranks: u32,
    steps: impl Fn(Rank) -> S,
    out: &mut dyn Write,
) -> io::Result<()> {
    let members: String = (0..ranks).map(|rank| format!(":{rank}")).collect();
    let definitions = format!("d:1:1:{ranks}{members}\n");
    let frame = DimFrame {
        name,
        threads: vec![1; ranks as usize],
        definitions,
    };
    frame
        .write(out, |rank, out| write_steps(steps(rank), rank, out))
        .map(drop)
}

/// Parts of a file around the records of the tasks.
struct DimFrame<'a> {
    name: &'a str,
    /// Number of threads of each task.
    threads: Vec<u32>,
    /// Definitions of communicators, each on a line.
    definitions: String,
}

impl DimFrame<'_> {
    /// Writes the header, the definitions, the records and a table with the position of each task's records. The header
    /// contains the position of this table, so the records are generated twice: once to count their bytes, once to write
    /// them.
    fn write(
        &self,
        out: &mut dyn Write,
        records: impl Fn(Rank, &mut dyn Write) -> io::Result<Losses>,
    ) -> io::Result<Losses> {
        let ranks = (0..self.threads.iter().sum()).map(Rank);
        let mut lengths = Vec::with_capacity(ranks.len());
        for rank in ranks.clone() {
            let mut count = DimCount(0);
            records(rank, &mut count)?;
            lengths.push(count.0);
        }
        let mut offset = (self.header(0).len() + self.definitions.len()) as u64;
        write!(
            out,
            "{}{}",
            self.header(offset + lengths.iter().sum::<u64>()),
            self.definitions
        )?;
        let mut losses = Losses::default();
        for rank in ranks {
            losses = losses.and(records(rank, out)?);
        }
        let mut lengths = lengths.into_iter();
        for (task, threads) in self.threads.iter().enumerate() {
            write!(out, "s:{task}")?;
            for length in lengths.by_ref().take(*threads as usize) {
                write!(out, ":{offset}")?;
                offset += length;
            }
            writeln!(out)?;
        }
        Ok(losses)
    }

    fn header(&self, end: u64) -> String {
        let threads: Vec<String> = self.threads.iter().map(u32::to_string).collect();
        let name: String = self
            .name
            .chars()
            .filter(|c| *c != '"' && !c.is_control())
            .collect();
        let (tasks, threads) = (threads.len(), threads.join(","));
        let communicators = self.definitions.lines().count();
        format!("#DIMEMAS:\"{name}\":1,{end:020}:{tasks}({threads}),{communicators}\n")
    }
}

/// Writer that only counts bytes.
struct DimCount(u64);

impl Write for DimCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_steps(
    steps: impl Iterator<Item = StreamStep>,
    rank: Rank,
    out: &mut dyn Write,
) -> io::Result<Losses> {
    use StreamStep::*;
    let mut posted = Vec::new();
    for (number, step) in steps.enumerate() {
        // Dimemas ignores a thread whose first record is not a computation.
        if number == 0 && !matches!(step, Compute(_)) {
            writeln!(out, "1:{rank}:0:{}", Seconds(Time::ZERO))?;
        }
        let mut record = |kind: u8, message: StepMessage, last: u8| {
            let StepMessage {
                peer, size, tag, ..
            } = message;
            writeln!(out, "{kind}:{rank}:0:{peer}:-1:{}:{tag}:1:{last}", size.0)
        };
        match step {
            Send(message) => record(2, message, 2 * u8::from(message.mode.non_blocking))?,
            Receive(message) => record(3, message, 0)?,
            Post(message) => {
                record(3, message, 1)?;
                posted.push(message);
            }
            AwaitAll => posted
                .drain(..)
                .try_for_each(|message| record(3, message, 2))?,
            AwaitReceive(message) => record(3, message, 2)?,
            Compute(time) => writeln!(out, "1:{rank}:0:{}", Seconds(time))?,
            AwaitSend(_) | Collective(..) | Meeting(..) => {}
        }
    }
    Ok(Losses::default())
}

/// New numbers of communicators, because Dimemas accepts only numbers above 0.
struct DimNumbers(BTreeMap<i32, usize>);

impl DimNumbers {
    fn new(program: &Program) -> DimNumbers {
        let mut numbers = BTreeMap::new();
        let defined = program
            .communicators()
            .iter()
            .map(|communicator| communicator.id);
        let windows = program
            .accesses()
            .iter()
            .filter_map(|access| match *access {
                Access::Transfer { window, .. } | Access::Flush { window, .. } => Some(window),
                Access::Lock { window, .. } | Access::Unlock { window, .. } => Some(window),
                Access::File { .. } => None,
            });
        for id in defined
            .chain(program.classes().iter().map(|class| class.communicator))
            .chain(windows)
        {
            let next = numbers.len() + 1;
            numbers.entry(id).or_insert(next);
        }
        DimNumbers(numbers)
    }

    fn number(&self, id: i32) -> usize {
        self.0.get(&id).copied().unwrap_or(0)
    }

    fn definitions(&self, program: &Program) -> String {
        program
            .communicators()
            .iter()
            .filter(|known| !is_of_threads(program, known))
            .map(|communicator| {
                let members: String = communicator
                    .members
                    .iter()
                    .map(|member| format!(":{}", program.task(*member)))
                    .collect();
                format!(
                    "d:1:{}:{}{members}\n",
                    self.number(communicator.id),
                    communicator.members.len()
                )
            })
            .collect()
    }
}

struct DimWriter<'a> {
    tables: &'a WriterTables<'a>,
    numbers: &'a DimNumbers,
    dialect: Dialect,
    rank: Rank,
    /// Slot of the next receive.
    next_slot: Slot,
    losses: Losses,
}

impl DimWriter<'_> {
    fn write(mut self, out: &mut dyn Write) -> io::Result<Losses> {
        let words = self.tables.program.words(self.rank);
        let own = self.place(self.rank);
        let mut at = 0;
        // Dimemas ignores a thread whose first record is not a computation.
        if !matches!(opcodes::decode(words, at), Some((Op::Compute(_), _))) {
            writeln!(out, "1:{own}:0.000000000")?;
        }
        while let Some((op, next)) = opcodes::decode(words, at) {
            at = self.record(op, next, &own, out)?;
        }
        Ok(self.losses)
    }

    /// Returns the task and thread of a rank.
    fn place(&self, rank: Rank) -> String {
        format!(
            "{}:{}",
            self.tables.program.task(rank),
            self.tables.program.thread(rank)
        )
    }

    /// Returns the task and thread of a peer; the thread is -1 if each task has only one.
    fn peer(&self, rank: Rank) -> String {
        let program = self.tables.program;
        if program.has_threads() {
            self.place(rank)
        } else {
            format!("{rank}:-1")
        }
    }

    /// Writes the instruction `op`, which ends at `next`. Returns the position of the following one.
    fn record(&mut self, op: Op, next: usize, own: &str, out: &mut dyn Write) -> io::Result<usize> {
        use Op::*;
        match op {
            Nothing => return self.nothing(next, own, out),
            Compute(time) => writeln!(out, "1:{own}:{}", Seconds(time))?,
            Accelerator(time) => writeln!(out, "11:{own}:{}", Seconds(time))?,
            Send { class, slot } => {
                let to = self.peer(self.tables.program.receiver(slot));
                let class = self.tables.class(class);
                let sync = u8::from(class.mode.synchronous) + 2 * u8::from(class.mode.non_blocking);
                writeln!(out, "2:{own}:{to}:{}:{sync}", self.message(class))?;
            }
            Recv | Irecv => {
                let (from, class) = self.tables.message(self.next_slot);
                self.next_slot += 1;
                writeln!(
                    out,
                    "3:{own}:{}:{}:{}",
                    self.peer(from),
                    self.message(class),
                    u8::from(op == Irecv)
                )?;
            }
            WaitRecv(slot) => {
                let (from, class) = self
                    .tables
                    .message(self.tables.program.first_slot(self.rank) + slot);
                writeln!(out, "3:{own}:{}:{}:2", self.peer(from), self.message(class))?;
            }
            WaitSend(ago) => match self.dialect {
                Dialect::Own => {
                    self.losses.count(OURS);
                    writeln!(out, "32:{own}:{ago}")?;
                }
                Dialect::Dimemas => self.losses.count(WAITS),
            },
            Collective { call, .. } if self.tables.is_of_threads(call) => {
                self.losses.count(THREADS);
                writeln!(out, "0:{own}")?;
            }
            Collective { call, instance } => self.collective(call, instance, own, out)?,
            WaitCollective(instance) => self.wait_collective(instance, own, out)?,
            Event(event) => {
                let (kind, value) = self.tables.program.events()[event as usize];
                writeln!(out, "20:{own}:{kind}:{value}")?;
            }
            Access(access) => return self.access(access, next, own, out),
            // The reader has already reported it.
            Ignored(_) => {}
        }
        Ok(next)
    }

    fn message(&self, class: &MessageClass) -> String {
        format!(
            "{}:{}:{}",
            class.size.0,
            class.tag,
            self.numbers.number(class.communicator)
        )
    }

    fn communicator(&self, call: &CollectiveCall) -> usize {
        self.numbers
            .number(self.tables.program.communicators()[call.communicator as usize].id)
    }

    fn collective(
        &mut self,
        number: u32,
        instance: u32,
        own: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let call = self.tables.call(number);
        let sync = match call.mode {
            CollectiveMode::Blocking => 1,
            CollectiveMode::NonBlocking => 0,
            CollectiveMode::RootSynchronous => 3,
        };
        let program = self.tables.program;
        let named = call.root.or_else(|| self.tables.root(instance));
        let root = match (call.mode, call.op) {
            (CollectiveMode::RootSynchronous, _) | (_, CollectiveOp::Reduce) => named
                .map_or("-1:0".to_owned(), |root| {
                    format!("{}:{}", program.task(root), program.thread(root))
                }),
            _ => format!("{}:0", u8::from(call.is_root)),
        };
        let (op, communicator) = (call.op as u8, self.communicator(call));
        writeln!(
            out,
            "10:{own}:{op}:{communicator}:{root}:{}:{}:{sync}",
            call.send.0, call.recv.0
        )
    }

    fn wait_collective(&self, instance: u32, own: &str, out: &mut dyn Write) -> io::Result<()> {
        let calls = &self.tables.executions[instance as usize];
        let made = calls
            .iter()
            .find(|(rank, _)| *rank == self.rank)
            .map(|(_, call)| self.tables.call(*call));
        let Some(call) = made else { return Ok(()) };
        writeln!(
            out,
            "10:{own}:{}:{}:0:0:0:0:2",
            call.op as u8,
            self.communicator(call)
        )
    }

    /// Returns the next instruction if it belongs to the same record.
    fn further(&self, at: usize) -> Option<(Op, usize)> {
        let words = self.tables.program.words(self.rank);
        opcodes::decode(words, at).filter(|_| opcodes::continues(words, at))
    }

    /// Writes a record without effect, or a collective opening or closing of a file.
    fn nothing(&mut self, next: usize, own: &str, out: &mut dyn Write) -> io::Result<usize> {
        if let Some((Op::Collective { call, .. }, behind)) = self.further(next)
            && let Some((Op::Access(access), last)) = self.further(behind)
            && let Access::File { kind, file, size } =
                self.tables.program.accesses()[access as usize]
        {
            match self.dialect {
                Dialect::Own => {
                    self.losses.count(OURS);
                    let communicator = self.communicator(self.tables.call(call));
                    writeln!(
                        out,
                        "31:{own}:{}:{file}:{communicator}:{}",
                        file_operation(kind),
                        size.0
                    )?;
                }
                Dialect::Dimemas => self.losses.count(RMA_AND_IO),
            }
            return Ok(last);
        }
        writeln!(out, "0:{own}")?;
        Ok(next)
    }

    fn access(
        &mut self,
        number: u32,
        next: usize,
        own: &str,
        out: &mut dyn Write,
    ) -> io::Result<usize> {
        let access = self.tables.program.accesses()[number as usize];
        // All ranks of the window meet after a fence.
        let fence = match (access, self.further(next)) {
            (Access::Flush { target: None, .. }, Some((Op::Collective { .. }, behind))) => {
                Some(behind)
            }
            _ => None,
        };
        if self.dialect == Dialect::Dimemas {
            self.losses.count(RMA_AND_IO);
            return Ok(fence.unwrap_or(next));
        }
        let line = match access {
            Access::File { kind, file, size } => {
                format!("31:{own}:{}:{file}:0:{}", file_operation(kind), size.0)
            }
            other => self.one_sided(other, own, fence.is_some()),
        };
        self.losses.count(OURS);
        writeln!(out, "{line}")?;
        Ok(fence.unwrap_or(next))
    }

    /// Number of the rank in the trace.
    fn task(&self, rank: Rank) -> i64 {
        i64::from(self.tables.program.task(rank))
    }

    fn one_sided(&self, access: Access, own: &str, is_fence: bool) -> String {
        use Access::*;
        let (operation, window, target, bytes) = match access {
            Transfer {
                kind,
                window,
                target,
                size,
            } => {
                let operation = match kind {
                    TransferKind::Put => 0,
                    TransferKind::Get => 1,
                    TransferKind::Accumulate => 2,
                };
                (operation, window, self.task(target), size.0)
            }
            Flush { window, .. } if is_fence => (3, window, 0, 0),
            Flush { window, target } => (7, window, target.map_or(-1, |rank| self.task(rank)), 0),
            Lock {
                window,
                target,
                kind,
            } => {
                let operation = if kind == LockKind::Shared { 4 } else { 5 };
                (operation, window, self.task(target), 0)
            }
            Unlock { window, target } => (6, window, self.task(target), 0),
            File { .. } => (7, 0, -1, 0),
        };
        format!(
            "30:{own}:{operation}:{}:{target}:{bytes}",
            self.numbers.number(window)
        )
    }
}

const fn file_operation(kind: FileKind) -> u8 {
    match kind {
        FileKind::Open => 0,
        FileKind::Close => 1,
        FileKind::Read => 2,
        FileKind::Write => 3,
    }
}

/// Time in seconds. Whole nanoseconds get nine decimals; other times get all their digits.
struct Seconds(Time);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanos = self.0.as_nanos();
        if nanos.fract() == 0.0 && nanos < 9e15 {
            let whole = nanos as u64;
            write!(f, "{}.{:09}", whole / 1_000_000_000, whole % 1_000_000_000)
        } else {
            write!(f, "{}", nanos / 1e9)
        }
    }
}
