//! Reader of Dimemas traces (`.dim`): one line for each record, grouped by task.
//!
//! The reader does not need or trust the header's byte offsets. Bisection finds the start of a task's records, and each line
//! must then belong to the task of its section. Each thread of a task becomes a rank of the program.

mod accesses;
mod kinds;
mod peers;
mod sections;

use std::{collections::BTreeSet, sync::Arc};

use self::{
    kinds::{NO_COMMUNICATOR, RECEIVE_TYPES, format_of, ignored_kind, parallel_events},
    peers::Peers,
    sections::{Prefix, find_sections, is_record_of},
};
use super::{
    cursor::{Cursor, leading_digits},
    fault::Fault,
    known_lines::{KnownLines, Repeat, Tail},
    scan::{ScanInput, bytes_of, check_members, seconds_as_nanos, shown},
};
use flowcast_program::{
    ReadOptions, TraceError,
    build::{CallRecord, Channel, RankBuilder, RecordFault},
    link::{ProgramParts, link},
    opcodes::Record,
    parallel::for_each_mut,
    program::{
        CollectiveMode, Communicator, MessageClass, Program, RankSource, RecordSources, SendMode,
        SharedBytes,
    },
};
use flowcast_units::{Bytes, CollectiveOp, Rank, Time};

/// Reads a trace.
pub(super) fn read(
    name: &str,
    bytes: SharedBytes,
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let input = ScanInput {
        name,
        text: bytes_of(&bytes),
    };
    let (header, body) = read_header(input)?;
    let (communicators, body) = read_definitions(input, body, header.tasks())?;
    let mut sections = find_sections(input, body, &header)?;
    let peers = Peers::new(input, &header.threads, &sections)?;
    for_each_mut(&mut sections, options.threads, |section| {
        section.read(input, &peers)
    });
    let mut ranks = Vec::with_capacity(sections.len());
    let mut starts = Vec::with_capacity(sections.len());
    for section in sections {
        if let Some(error) = section.error {
            return Err(*error);
        }
        ranks.push(section.builder);
        let number = Rank(section.task);
        starts.push(RankSource {
            file: 0,
            offset: section.start,
            number,
            is_record: is_record_of,
        });
    }
    let source = RecordSources {
        names: vec![name.to_owned()],
        texts: vec![Arc::clone(&bytes)],
        ranks: starts,
    };
    let communicators = peers
        .resolve_members(communicators, &ranks)
        .map_err(|fault| fault.at(name.to_owned(), String::new))?;
    let threads = peers.threads();
    link(
        ProgramParts {
            name: header.name,
            ranks,
            communicators,
            ignored_kind,
            source: Some(source),
            threads,
        },
        options,
    )
}

struct Header {
    name: String,
    /// Number of threads of each task.
    threads: Vec<u32>,
}

impl Header {
    fn tasks(&self) -> u32 {
        self.threads.len() as u32
    }
}

/// Largest number of ranks; a larger number indicates a damaged header. A number above the bytes of the file does so as
/// well, because each rank has a record.
const MOST_RANKS: u64 = 1 << 24;

const HEADER_FORMAT: &str = "#DIMEMAS:\"name\":0|1,offset:tasks(threads,...),communicators,...";

fn read_header(input: ScanInput<'_>) -> Result<(Header, usize), TraceError> {
    let fault = || input.fault(0, input.shown(0), HEADER_FORMAT);
    let mut cursor = Cursor {
        text: input.text,
        at: "#DIMEMAS:".len(),
    };
    if !cursor.eat(b'"') {
        return Err(fault());
    }
    let name = String::from_utf8_lossy(cursor.until(b'"')).into_owned();
    if !cursor.eat_all(b"\":")
        || cursor.integer().is_none()
        || cursor.eat(b',') && cursor.integer().is_none()
        || !cursor.eat(b':')
    {
        return Err(fault());
    }
    let tasks = cursor
        .integer()
        .filter(|tasks| (1..=1 << 24).contains(tasks))
        .ok_or_else(fault)?;
    if !cursor.eat(b'(') {
        return Err(fault());
    }
    let mut all = Vec::new();
    let mut ranks = 0;
    let most = MOST_RANKS.min(input.text.len() as u64);
    for task in 0..tasks {
        let threads = cursor.integer().ok_or_else(|| {
            input.fault(
                0,
                format!("the thread counts of {task} tasks"),
                format!("the thread counts of {tasks} tasks"),
            )
        })?;
        let known = u32::try_from(threads).ok().filter(|threads| *threads >= 1);
        ranks += u64::from(known.unwrap_or(0));
        let Some(threads) = known.filter(|_| ranks <= most) else {
            let found = format!("{threads} threads in task {task}");
            let expected = format!(
                "at least one thread in each task, at most {most} in all (in a file of this size)"
            );
            return Err(input.fault(0, found, expected));
        };
        all.push(threads);
        if !cursor.eat(if task + 1 == tasks { b')' } else { b',' }) {
            return Err(input.fault(
                0,
                format!("thread counts of more or fewer than {tasks} tasks"),
                HEADER_FORMAT,
            ));
        }
    }
    while cursor.eat(b',') {
        cursor.integer().ok_or_else(fault)?;
    }
    if !cursor.eat_line_end() {
        return Err(fault());
    }
    Ok((Header { name, threads: all }, cursor.at))
}

/// Reads the definitions of communicators (`d:1:`). Files (`d:2:`) and windows (`d:3:`) have no effect on time.
fn read_definitions(
    input: ScanInput<'_>,
    at: usize,
    tasks: u32,
) -> Result<(Vec<Communicator>, usize), TraceError> {
    let mut cursor = Cursor {
        text: input.text,
        at,
    };
    let (mut communicators, mut known) = (Vec::new(), BTreeSet::new());
    while cursor.eat_all(b"d:") {
        let start = cursor.at;
        if !cursor.eat_all(b"1:") {
            cursor.skip_line();
            continue;
        }
        let read = read_communicator(&mut cursor, tasks, &mut known);
        communicators.push(read.map_err(|fault| input.refuse(start, fault))?);
    }
    Ok((communicators, cursor.at))
}

fn read_communicator(
    cursor: &mut Cursor<'_>,
    tasks: u32,
    known: &mut BTreeSet<i32>,
) -> Result<Communicator, Fault> {
    const FORMAT: Fault = Fault::malformed("d:1:communicator:tasks:task:task...");
    let id = cursor
        .integer()
        .and_then(|id| i32::try_from(id).ok())
        .ok_or(FORMAT)?;
    if !known.insert(id) {
        return Err(Fault::value(
            format!("communicator {id} again"),
            "each communicator defined once",
        ));
    }
    let count = cursor.integer_after(b':').ok_or(FORMAT)?;
    let mut members = Vec::new();
    while cursor.eat(b':') {
        let member = cursor.integer().ok_or(FORMAT)?;
        if !(0..i64::from(tasks)).contains(&member) {
            return Err(Fault::value(
                format!("task {member}"),
                format!("a task from 0 to {}", tasks - 1),
            ));
        }
        members.push(Rank(member as u32));
    }
    check_members(i64::from(id), &members, count)?;
    if cursor.eat_line_end() {
        Ok(Communicator { id, members })
    } else {
        Err(FORMAT)
    }
}

/// Records of one thread of a task.
struct DimSection {
    task: u32,
    thread: u32,
    start: usize,
    end: usize,
    builder: RankBuilder,
    error: Option<Box<TraceError>>,
}

impl DimSection {
    fn read(&mut self, input: ScanInput<'_>, peers: &Peers) {
        let text = &input.text[..self.end];
        let prefix = Prefix::new(self.task, self.thread);
        let mut known = KnownLines::default();
        let mut cursor = Cursor {
            text,
            at: self.start,
        };
        while !cursor.finished() {
            let start = cursor.at;
            if self.read_known(&mut cursor, &mut known) || cursor.eat_line_end() {
                continue;
            }
            if let Err(fault) = self.read_line(&mut cursor, &prefix, peers, &mut known) {
                self.error = Some(Box::new(input.refuse(start, fault)));
                return;
            }
        }
        self.builder.finish();
    }

    /// Repeats the effect of the same line, if it is a message record that was read recently.
    #[inline(always)]
    fn read_known(&mut self, cursor: &mut Cursor<'_>, known: &mut KnownLines) -> bool {
        if !matches!(cursor.peek(), b'2' | b'3') || !known.pays() {
            return false;
        }
        let Some((repeat, length)) = known.find(cursor) else {
            return false;
        };
        let done = match repeat {
            Repeat::Send(route) => {
                self.builder.send_again(route, Record::Begins);
                true
            }
            Repeat::Recv(channel) => self.builder.recv(channel, Record::Begins).is_ok(),
            Repeat::Irecv(channel) => self.builder.irecv(channel).is_ok(),
            Repeat::Wait(channel) => self.builder.wait_recv(channel).is_ok(),
        };
        cursor.at += if done { length } else { 0 };
        done
    }

    #[inline]
    fn read_line(
        &mut self,
        cursor: &mut Cursor<'_>,
        prefix: &Prefix,
        peers: &Peers,
        known: &mut KnownLines,
    ) -> Result<(), Fault> {
        let kind = cursor
            .integer()
            .ok_or_else(|| Fault::malformed("a record that begins with its type number"))?;
        if kind == 0 && cursor.eat_all(&prefix.bytes[..prefix.bytes.len() - 1]) {
            self.builder.nothing();
            return cursor.end_line(format_of(0));
        }
        if !prefix.eat(cursor) {
            return Err(self.misplaced(cursor, kind, peers));
        }
        match kind {
            1 => {
                let time = read_seconds(cursor)?;
                self.builder.compute(time);
            }
            2 => {
                let repeat = self.read_send(cursor, peers, &mut known.tails[0])?;
                known.learn(repeat);
            }
            3 => {
                if let Some(repeat) = self.read_recv(cursor, peers, &mut known.tails[1])? {
                    known.learn(repeat);
                }
            }
            10 => self.read_collective(cursor, peers)?,
            30 => self.read_one_sided(cursor, peers)?,
            31 => self.read_file(cursor)?,
            32 => {
                let [ago] = cursor
                    .integers()
                    .ok_or_else(|| Fault::malformed(format_of(32)))?;
                let sent = self.builder.sends();
                let number = u32::try_from(ago)
                    .ok()
                    .and_then(|ago| sent.checked_sub(ago)?.checked_sub(1));
                self.builder
                    .wait_send(number.ok_or(RecordFault::WaitWithoutSend)?, Record::Begins)?;
            }
            20 => {
                const FORMAT: &str = "20:task:thread:type:value";
                let [kind, value] = cursor.integers().ok_or_else(|| Fault::malformed(FORMAT))?;
                self.builder.event(kind, value)?;
                if let Some(parallel) = parallel_events(kind).filter(|_| value != 0) {
                    self.builder.count(parallel);
                }
            }
            11 => {
                let time = read_seconds(cursor)?;
                self.builder.accelerator(time);
            }
            other => {
                self.builder.ignored(
                    u32::try_from(other).map_err(|_| Fault::malformed("a record number"))?,
                );
                cursor.until(b'\n');
            }
        }
        cursor.end_line("the end of the record")
    }

    #[cold]
    fn misplaced(&self, cursor: &Cursor<'_>, kind: i64, peers: &Peers) -> Fault {
        let mut cursor = *cursor;
        match (cursor.integer_after(b':'), cursor.integer_after(b':')) {
            (Some(task), Some(_)) if task != i64::from(self.task) => Fault::value(
                format!("a record of task {task}"),
                format!(
                    "records of task {}: one block for each task, in order from 0",
                    self.task
                ),
            ),
            (Some(_), Some(thread)) if thread != i64::from(self.thread) => {
                let expected = match peers.threads_of(self.task) {
                    1 => "thread 0, the only one of its task".to_owned(),
                    threads => format!(
                        "records of thread {}: one block for each thread, from 0 to {}",
                        self.thread,
                        threads - 1
                    ),
                };
                Fault::value(format!("thread {thread}"), expected)
            }
            _ => Fault::malformed(format_of(kind)),
        }
    }

    #[inline]
    fn read_send(
        &mut self,
        cursor: &mut Cursor<'_>,
        peers: &Peers,
        tail: &mut Tail,
    ) -> Result<Repeat, Fault> {
        let message = DimMessage::read(
            cursor,
            "2:task:thread:destination:thread:size:tag:communicator:sync",
            peers,
            tail,
        )?;
        let mut mode = match message.last {
            0..=3 => SendMode {
                synchronous: message.last & 1 != 0,
                non_blocking: message.last & 2 != 0,
                persistent: false,
            },
            other => return Err(Fault::value(format!("synchronism {other}"), "0 to 3")),
        };
        let Channel {
            peer,
            tag,
            communicator,
        } = peers.receiver(self.task, &message);
        // Threads of one task wait for each other, as in Dimemas.
        mode.synchronous |=
            peers.task(peer) == self.task && peer != peers.rank(self.task, self.thread);
        let class = MessageClass {
            size: message.size,
            tag,
            communicator,
            mode,
        };
        Ok(Repeat::Send(self.builder.send(
            peer,
            class,
            Record::Begins,
        )?))
    }

    #[inline]
    fn read_recv(
        &mut self,
        cursor: &mut Cursor<'_>,
        peers: &Peers,
        tail: &mut Tail,
    ) -> Result<Option<Repeat>, Fault> {
        let message = DimMessage::read(
            cursor,
            "3:task:thread:source:thread:size:tag:communicator:type",
            peers,
            tail,
        )?;
        match message.last {
            0..=2 => {}
            other if (3..1000).contains(&other) => {
                self.builder.ignored(RECEIVE_TYPES + other as u32);
                return Ok(None);
            }
            other => return Err(Fault::value(format!("receive type {other}"), "0, 1 or 2")),
        }
        let channel = self.builder.channel(peers.sender(self.task, &message));
        self.builder.has_room(channel, message.size);
        Ok(Some(match message.last {
            0 => {
                self.builder.recv(channel, Record::Begins)?;
                Repeat::Recv(channel)
            }
            1 => {
                self.builder.irecv(channel)?;
                Repeat::Irecv(channel)
            }
            _ => {
                self.builder.wait_recv(channel)?;
                Repeat::Wait(channel)
            }
        }))
    }

    fn root_rank(&self, root: i64, thread: i64, peers: &Peers) -> Result<Rank, Fault> {
        let tasks = peers.tasks();
        let task = u32::try_from(root).ok().filter(|root| *root < tasks);
        let found = task.map(|task| {
            let thread = u32::try_from(thread)
                .ok()
                .filter(|thread| *thread < peers.threads_of(task));
            peers.rank(task, thread.unwrap_or(0))
        });
        found.ok_or_else(|| {
            Fault::value(
                format!("root task {root}"),
                format!("a task from 0 to {}", tasks - 1),
            )
        })
    }

    fn read_collective(&mut self, cursor: &mut Cursor<'_>, peers: &Peers) -> Result<(), Fault> {
        const FORMAT: &str =
            "10:task:thread:operation:communicator:root:thread:send bytes:receive bytes[:sync]";
        let [op, communicator, root, root_thread, send, recv] =
            cursor.integers().ok_or_else(|| Fault::malformed(FORMAT))?;
        let sync = if cursor.eat(b':') {
            cursor.integer().ok_or_else(|| Fault::malformed(FORMAT))?
        } else {
            1
        };
        let known = usize::try_from(op)
            .ok()
            .and_then(|op| CollectiveOp::ALL.get(op % 16))
            .filter(|_| op < 32);
        let operation = *known.ok_or_else(|| {
            Fault::value(format!("operation {op}"), "a collective operation, 0 to 31")
        })?;
        if communicator <= 0 {
            self.builder.ignored(NO_COMMUNICATOR);
            return Ok(());
        }
        let mode = match sync {
            0 => CollectiveMode::NonBlocking,
            1 if op >= 16 => CollectiveMode::NonBlocking,
            1 => CollectiveMode::Blocking,
            2 => return Ok(self.builder.wait_collective()?),
            3 => CollectiveMode::RootSynchronous,
            other => return Err(Fault::value(format!("synchronism {other}"), "0 to 3")),
        };
        // The field contains the root's task for a reduction, and with root synchronism; otherwise, it states whether this
        // task is the root.
        let names_task = sync == 3 || operation == CollectiveOp::Reduce;
        let is_root = if names_task {
            root == i64::from(self.task)
        } else {
            root == 1
        };
        let root_task = if sync == 3 {
            Some(self.root_rank(root, root_thread, peers)?)
        } else {
            None
        };
        let call = CallRecord {
            op: operation,
            communicator: small(communicator, "a communicator")?,
            mode,
            is_root,
            root: root_task,
            send: size(send)?,
            recv: size(recv)?,
        };
        Ok(self.builder.collective(call)?)
    }
}

/// Common fields of sends and receives.
struct DimMessage {
    peer: u32,
    /// Thread of the peer. If it is negative, the thread that handles the message's channel is the peer.
    thread: i64,
    tag: i32,
    communicator: i32,
    size: Bytes,
    last: i64,
}

impl DimMessage {
    #[inline(always)]
    fn read(
        cursor: &mut Cursor<'_>,
        format: &'static str,
        peers: &Peers,
        tail: &mut Tail,
    ) -> Result<DimMessage, Fault> {
        let peer = cursor.integer().ok_or_else(|| Fault::malformed(format))?;
        let fields = tail.read(cursor).ok_or_else(|| Fault::malformed(format))?;
        let [thread, bytes, tag, communicator, last] = fields;
        let tasks = peers.tasks();
        if !(0..i64::from(tasks)).contains(&peer) {
            return Err(Fault::value(
                format!("task {peer}"),
                format!("a task from 0 to {}", tasks - 1),
            ));
        }
        if thread >= i64::from(peers.threads_of(peer as u32)) {
            let expected = match peers.threads_of(peer as u32) {
                1 => "-1 or 0, because each task has one thread".to_owned(),
                threads => format!("-1, or a thread of task {peer} from 0 to {}", threads - 1),
            };
            return Err(Fault::value(format!("thread {thread}"), expected));
        }
        let tag = small(tag, "a tag")?;
        let communicator = small(communicator, "a communicator")?;
        Ok(DimMessage {
            peer: peer as u32,
            thread,
            tag,
            communicator,
            size: size(bytes)?,
            last,
        })
    }
}

/// Reads seconds. They usually have nine decimals, and are then read as whole nanoseconds.
#[inline(always)]
fn read_seconds(cursor: &mut Cursor<'_>) -> Result<Time, Fault> {
    let start = cursor.at;
    if cursor.peek() != b'-'
        && let Some(seconds @ 0..1_000_000) = cursor.integer()
        && cursor.eat(b'.')
        && let Some([first @ .., last @ b'0'..=b'9']) = cursor.text[cursor.at..].first_chunk::<9>()
        && let (fraction, 8) = leading_digits(u64::from_le_bytes(*first))
        && matches!(
            cursor.text.get(cursor.at + 9),
            None | Some(b'\n' | b'\r' | b' ')
        )
    {
        let fraction = fraction * 10 + u64::from(last - b'0');
        cursor.at += 9;
        return Ok(Time::from_nanos(
            (seconds as u64 * 1_000_000_000 + fraction) as f64,
        ));
    }
    cursor.at = start;
    let text = cursor.until(b':').trim_ascii_end();
    match seconds_as_nanos(text) {
        Some(nanos) => Ok(Time::from_nanos(nanos)),
        None => Err(Fault::value(shown(text), "a time in seconds, at least 0")),
    }
}

#[inline]
fn size(bytes: i64) -> Result<Bytes, Fault> {
    u64::try_from(bytes)
        .map(Bytes)
        .map_err(|_| Fault::value(format!("size {bytes}"), "a size of at least 0 bytes"))
}

#[inline]
fn small(value: i64, what: &str) -> Result<i32, Fault> {
    i32::try_from(value).map_err(|_| Fault::value(format!("{what} of {value}"), "a 32-bit number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_burst_lasts_for_the_seconds_in_its_field(
            text in prop_oneof![
                "-?0{0,3}[0-9]{0,7}\\.[0-9]{7,11}[ \t\r]{0,2}",
                "[+ -]{0,2}[0-9]{0,24}(\\.[0-9]{0,10})?([eE][+-]?[0-9]{1,3})?",
                "[0-9.eE+ -]{0,16}",
            ],
        ) {
            let line = format!("{text}\n1:0:0:0.000000001\n");
            let mut cursor = Cursor { text: line.as_bytes(), at: 0 };
            let read = read_seconds(&mut cursor).ok().filter(|_| cursor.eat_line_end());
            prop_assert_eq!(read, seconds_as_nanos(text.as_bytes()).map(Time::from_nanos));
        }
    }
}
