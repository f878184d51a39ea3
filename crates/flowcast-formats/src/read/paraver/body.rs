//! Records of a trace. States and events are stored by task and in compact form, as differences.

use std::collections::BTreeMap;

use super::{
    super::{
        cursor::Cursor,
        fault::Fault,
        scan::{ScanInput, check_members},
    },
    header::ParaverHeader,
};
use flowcast_program::{
    TraceError,
    build::CallRecord,
    key_map::KeyMap,
    packed::Packed,
    paraver_events::{COLLECTIVE, COMMUNICATOR, IS_ROOT, RECV_SIZE, SEND_SIZE, operation_of},
    program::{CollectiveMode, Communicator},
};
use flowcast_units::{Bytes, Rank};

const RUNNING: i64 = 1;

/// Latest time of a record: longer than any trace (292 years), and small enough that the sum of two times does not overflow.
const LATEST: i64 = i64::MAX / 4;

/// Message; times are in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParaverMessage {
    pub from: Rank,
    pub to: Rank,
    pub tag: i32,
    /// Number that distinguishes messages of one channel that overtake each other. [`super::program`] sets it.
    pub lane: u32,
    pub size: u64,
    /// Time at which the sender calls.
    pub send: i64,
    /// Time at which the receiver calls.
    pub receive: i64,
    /// Time at which the receiver has the message.
    pub done: i64,
}

/// Records of one task.
#[derive(Default)]
pub(super) struct ParaverTask {
    /// Intervals in which the task is running.
    pub bursts: Packed,
    /// Events of the task, by number.
    pub events: Packed,
    /// Collective calls, in chronological order.
    pub calls: Vec<(i64, CallRecord)>,
}

/// All records.
#[derive(Default)]
pub(super) struct Body {
    pub tasks: Vec<ParaverTask>,
    pub messages: Vec<ParaverMessage>,
    pub communicators: Vec<Communicator>,
    /// Types and values of events.
    pub events: KeyMap<(i64, i64)>,
    /// Number of each communicator, by application and by its number in the application.
    communicator_ids: BTreeMap<(i64, i64), i32>,
    /// Ignored records, with their counts.
    pub ignored: BTreeMap<String, u64>,
}

/// Reads the records from byte `at` to the end.
pub(super) fn read(
    input: ScanInput<'_>,
    at: usize,
    header: &ParaverHeader,
) -> Result<Body, TraceError> {
    let mut body = Body::default();
    body.tasks
        .resize_with(header.ranks() as usize, ParaverTask::default);
    let mut cursor = Cursor {
        text: input.text,
        at,
    };
    while !cursor.finished() {
        let start = cursor.at;
        if cursor.eat_line_end() {
            continue;
        }
        body.read_line(&mut cursor, header)
            .map_err(|fault| input.refuse(start, fault))?;
    }
    Ok(body)
}

impl Body {
    fn read_line(&mut self, cursor: &mut Cursor<'_>, header: &ParaverHeader) -> Result<(), Fault> {
        match cursor.peek() {
            b'#' => {
                cursor.skip_line();
                return Ok(());
            }
            b'c' => return self.read_communicator(cursor, header),
            b'C' | b'i' | b'I' => {
                self.ignore("definitions of communicators between two groups", 1);
                cursor.skip_line();
                return Ok(());
            }
            _ => {}
        }
        const RECORD: &str =
            "a record: 1 (state), 2 (event), 3 (message), c (communicator) or # (comment)";
        let kind = cursor.integer().ok_or_else(|| Fault::malformed(RECORD))?;
        match kind {
            1 => self.read_state(cursor, header)?,
            2 => self.read_events(cursor, header)?,
            3 => self.read_message(cursor, header)?,
            other => {
                self.ignore(&format!("records of type {other}"), 1);
                cursor.skip_line();
                return Ok(());
            }
        }
        cursor.end_line("the end of the record")
    }

    fn ignore(&mut self, kind: &str, count: u64) {
        *self.ignored.entry(kind.to_owned()).or_default() += count;
    }

    /// Reads `c:application:communicator:tasks:task:...`: the members of a communicator. Fails if it is defined twice.
    fn read_communicator(
        &mut self,
        cursor: &mut Cursor<'_>,
        header: &ParaverHeader,
    ) -> Result<(), Fault> {
        const FORMAT: &str = "c:application:communicator:tasks:task:task...";
        cursor.eat(b'c');
        let [application, own, count] = fields(cursor, FORMAT)?;
        let mut members = Vec::new();
        while cursor.eat(b':') {
            let task = cursor.integer().ok_or_else(|| Fault::malformed(FORMAT))?;
            members.push(rank(header, application, task)?);
        }
        check_members(own, &members, count)?;
        // Each application numbers its communicators separately.
        let id = match header.first_ranks.len() {
            2 => i32::try_from(own)
                .map_err(|_| Fault::value(format!("communicator {own}"), "a 32-bit number"))?,
            _ => self.communicators.len() as i32 + 1,
        };
        if self
            .communicator_ids
            .insert((application, own), id)
            .is_some()
        {
            return Err(Fault::value(
                format!("communicator {own} again"),
                "each communicator defined once",
            ));
        }
        self.communicators.push(Communicator { id, members });
        cursor.end_line(FORMAT)
    }

    fn read_state(&mut self, cursor: &mut Cursor<'_>, header: &ParaverHeader) -> Result<(), Fault> {
        const FORMAT: &str = "1:cpu:application:task:thread:begin:end:state";
        let [_, application, task, thread, begin, end, state] = fields(cursor, FORMAT)?;
        let rank = rank_of_thread(header, application, task, thread)?;
        let (begin, end) = (time(header, begin)?, time(header, end)?);
        if end < begin {
            return Err(Fault::value(
                format!("a state from {begin} ns to {end} ns"),
                "an end after the start",
            ));
        }
        if state != RUNNING {
            return Ok(());
        }
        let bursts = &mut self.tasks[rank.index()].bursts;
        if (begin as u64) < bursts.end() {
            let found =
                format!("a running state at {begin} ns, before the end of the previous one");
            return Err(Fault::value(
                found,
                "states sorted by time, without overlap",
            ));
        }
        bursts.push(begin as u64, end as u64, 0);
        Ok(())
    }

    fn read_events(
        &mut self,
        cursor: &mut Cursor<'_>,
        header: &ParaverHeader,
    ) -> Result<(), Fault> {
        const FORMAT: &str = "2:cpu:application:task:thread:time:type:value[:type:value...]";
        let [_, application, task, thread, at] = fields(cursor, FORMAT)?;
        let rank = rank_of_thread(header, application, task, thread)?;
        let at = time(header, at)?;
        let mut call = CollectiveEvent::default();
        let mut any = false;
        while cursor.peek() == b':' {
            let [kind, value] = fields(cursor, FORMAT)?;
            let number = self.events.number((kind, value));
            let events = &mut self.tasks[rank.index()].events;
            if (at as u64) < events.end() {
                let found = format!("an event at {at} ns, earlier than the previous one");
                return Err(Fault::value(found, "events sorted by time"));
            }
            events.push(at as u64, at as u64, u64::from(number));
            call.note(kind, value);
            any = true;
        }
        if !any {
            return Err(Fault::malformed(FORMAT));
        }
        if call.value != 0 {
            self.note_call(rank, application, at, &call);
        }
        Ok(())
    }

    fn note_call(&mut self, rank: Rank, application: i64, at: i64, call: &CollectiveEvent) {
        if call.is_negative {
            self.ignore(
                "negative sizes of collective calls; they count as 0 bytes",
                1,
            );
        }
        let communicator = call
            .communicator
            .and_then(|own| self.communicator_ids.get(&(application, own)));
        match (operation_of(call.value), communicator) {
            (Some(op), Some(communicator)) => {
                let record = CallRecord {
                    op,
                    communicator: *communicator,
                    mode: CollectiveMode::Blocking,
                    is_root: call.is_root,
                    root: None,
                    send: Bytes(call.send),
                    recv: Bytes(call.recv),
                };
                self.tasks[rank.index()].calls.push((at, record));
            }
            (None, _) => self.ignore("collective calls that are not modelled", 1),
            (_, None) => self.ignore("collective calls without a defined communicator", 1),
        }
    }

    fn read_message(
        &mut self,
        cursor: &mut Cursor<'_>,
        header: &ParaverHeader,
    ) -> Result<(), Fault> {
        const FORMAT: &str = "3:cpu:application:task:thread:logical send:physical send:cpu:application:task:thread:logical receive:physical receive:size:tag";
        let numbers: [i64; 14] = fields(cursor, FORMAT)?;
        let [
            _,
            from_app,
            from,
            from_thread,
            send,
            _,
            _,
            to_app,
            to,
            to_thread,
            receive,
            arrival,
            size,
            tag,
        ] = numbers;
        let from = rank_of_thread(header, from_app, from, from_thread)?;
        let to = rank_of_thread(header, to_app, to, to_thread)?;
        let [send, receive, arrival] = [
            time(header, send)?,
            time(header, receive)?,
            time(header, arrival)?,
        ];
        let tag = i32::try_from(tag)
            .map_err(|_| Fault::value(format!("tag {tag}"), "a 32-bit number"))?;
        let size = u64::try_from(size)
            .map_err(|_| Fault::value(format!("size {size}"), "a size of at least 0 bytes"))?;
        let done = send.max(receive).max(arrival);
        self.messages.push(ParaverMessage {
            from,
            to,
            tag,
            lane: 0,
            size,
            send,
            receive,
            done,
        });
        if self.messages.len() >= u32::MAX as usize {
            return Err(Fault::value("2^32 messages", "fewer"));
        }
        Ok(())
    }
}

/// Collective call, as described by its event and the accompanying details.
#[derive(Default)]
struct CollectiveEvent {
    value: i64,
    send: u64,
    recv: u64,
    is_root: bool,
    /// `true` if a size is negative.
    is_negative: bool,
    communicator: Option<i64>,
}

impl CollectiveEvent {
    fn note(&mut self, kind: i64, value: i64) {
        self.is_negative |= value < 0 && [SEND_SIZE, RECV_SIZE].contains(&kind);
        match kind {
            COLLECTIVE => self.value = value,
            SEND_SIZE => self.send = u64::try_from(value).unwrap_or(0),
            RECV_SIZE => self.recv = u64::try_from(value).unwrap_or(0),
            IS_ROOT => self.is_root = value == 1,
            COMMUNICATOR => self.communicator = Some(value),
            _ => {}
        }
    }
}

fn rank(header: &ParaverHeader, application: i64, task: i64) -> Result<Rank, Fault> {
    header.rank(application, task).ok_or_else(|| {
        let found = format!("task {task} of application {application}");
        Fault::value(
            found,
            "a task and an application of the header, both numbered from 1",
        )
    })
}

fn rank_of_thread(
    header: &ParaverHeader,
    application: i64,
    task: i64,
    thread: i64,
) -> Result<Rank, Fault> {
    if thread != 1 {
        return Err(Fault::value(
            format!("thread {thread}"),
            "thread 1, the only one of its task",
        ));
    }
    rank(header, application, task)
}

fn time(header: &ParaverHeader, units: i64) -> Result<i64, Fault> {
    units
        .checked_mul(header.unit)
        .filter(|nanos| (0..=LATEST).contains(nanos))
        .ok_or_else(|| Fault::value(format!("time {units}"), "a time from 0 to 73 years"))
}

/// Reads numbers, each preceded by a colon.
#[inline]
fn fields<const N: usize>(
    cursor: &mut Cursor<'_>,
    format: &'static str,
) -> Result<[i64; N], Fault> {
    let numbers = if cursor.eat(b':') {
        cursor.integers()
    } else {
        None
    };
    numbers.ok_or_else(|| Fault::malformed(format))
}
