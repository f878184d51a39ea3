//! SimGrid time-independent traces: actions in text, one file for each rank or one for all.
//!
//! Sizes are counts of a datatype. `compute` counts floating-point operations, which are converted to time at a fixed rate.
//! The list file names the parts. Collectives are stored as their ranks see them: total bytes that a rank sends and
//! receives. The cost formula uses the bytes of the root (or of rank 0).

use std::{
    borrow::Cow,
    cell::Cell,
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    fault::Fault,
    parts::{TracePart, content_lines, words_of},
    scan::{ScanInput, bytes_of, parsed, shown},
};
use flowcast_program::{
    ReadOptions, TraceError,
    build::{CallRecord, Channel, EAGER, NON_BLOCKING, RankBuilder, RecordFault},
    link::{ProgramParts, link},
    opcodes::{Record, is_duration},
    program::{CollectiveMode, Communicator, MessageClass, Program, RankSource, RecordSources},
};
use flowcast_units::{Bytes, CollectiveOp, Rank, Time};

const ACTIONS: [&str; 33] = [
    "init",
    "finalize",
    "compute",
    "sleep",
    "send",
    "isend",
    "recv",
    "irecv",
    "wait",
    "test",
    "waitall",
    "sendRecv",
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "alltoall",
    "alltoallv",
    "gather",
    "gatherv",
    "allgather",
    "allgatherv",
    "scatter",
    "scatterv",
    "reducescatter",
    "scan",
    "exscan",
    "comm_size",
    "comm_split",
    "comm_dup",
    "location",
    "sendrecv",
    "reduce_scatter",
];

/// Actions whose arguments have no effect here.
const NO_EFFECT: [&[u8]; 6] = [
    b"test",
    b"finalize",
    b"comm_size",
    b"comm_split",
    b"comm_dup",
    b"location",
];

/// Returns `true` if the text is such a trace: its first line with content is an action.
pub(super) fn recognises(text: &[u8]) -> bool {
    let Some(first) = content_lines(text).next() else {
        return false;
    };
    let mut words = words_of(&text[first]);
    let rank = words
        .next()
        .is_some_and(|word| word.iter().all(u8::is_ascii_digit));
    rank && words.next().is_some_and(is_action)
}

/// Returns `true` if the word is an action, also with the capitals of SimGrid up to 3.19 (`allReduce`).
fn is_action(word: &[u8]) -> bool {
    ACTIONS
        .iter()
        .any(|action| action.as_bytes().eq_ignore_ascii_case(word))
}

/// Reads the trace.
pub(super) fn read(
    name: &str,
    parts: &[TracePart],
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let ranks = count_ranks(parts)?;
    let length: usize = parts.iter().map(|(_, bytes)| bytes_of(bytes).len()).sum();
    if ranks as usize > length {
        return Err(TraceError::damaged(
            name,
            format!(
                "found rank {} in {length} bytes, expected actions of every lower rank",
                ranks - 1
            ),
        ));
    }
    let mut readers: Vec<RankReader> = (0..ranks)
        .map(|rank| RankReader {
            rank: Rank(rank),
            ranks,
            unit: 1,
            ..RankReader::default()
        })
        .collect();
    let mut starts = vec![None; ranks as usize];
    let mut doubtful = None;
    for (file, (name, bytes)) in parts.iter().enumerate() {
        let input = ScanInput {
            name,
            text: bytes_of(bytes),
        };
        let found = read_part(input, file as u32, &mut readers, &mut starts)?;
        doubtful = doubtful.or(found.map(|at| (input, at)));
    }
    if let Some((input, at)) = doubtful.filter(|_| !readers.iter().any(|reader| reader.has_tags)) {
        return Err(input.refuse(at, Fault::malformed(DOUBTFUL)));
    }
    if let Some(missing) = starts.iter().position(Option::is_none) {
        return Err(without_rank(name, missing, &starts));
    }
    let source = RecordSources {
        names: parts.iter().map(|(name, _)| name.clone()).collect(),
        texts: parts.iter().map(|(_, bytes)| Arc::clone(bytes)).collect(),
        ranks: starts.into_iter().flatten().collect(),
    };
    let world = Communicator {
        id: WORLD,
        members: (0..ranks).map(Rank).collect(),
    };
    let parts = ProgramParts {
        name: name.rsplit('/').next().unwrap_or(name).to_owned(),
        ranks: readers.into_iter().map(|reader| reader.builder).collect(),
        communicators: vec![world],
        ignored_kind: |_| "tests of a request (they never wait)".to_owned(),
        source: Some(source),
        threads: Vec::new(),
    };
    link(parts, options)
}

/// Returns the error of a trace in which a rank has no actions. Often, one file of a trace was mistaken for all of it.
fn without_rank(name: &str, missing: usize, starts: &[Option<RankSource>]) -> TraceError {
    let last = starts.len() - 1;
    let problem = match starts.iter().flatten().count() {
        1 => format!(
            "found only the actions of rank {last}, expected those of all ranks: {NAME_THE_LIST}"
        ),
        _ => format!("found no action of rank {missing}, expected actions of ranks 0 to {last}"),
    };
    TraceError::damaged(name, problem)
}

/// Advice for traces of SimGrid up to 3.19.
const WITHOUT_TAGS: &str = "the form of SimGrid 3.20 or later (`isend DESTINATION TAG COUNT [DATATYPE]`, `wait SOURCE \
    DESTINATION TAG`, `allreduce`): SimGrid up to 3.19 has no tags; simgrid_convert_TI_traces.py, a tool of SimGrid, \
    converts its traces";

/// Advice for traces that may come from SimGrid up to 3.19.
const DOUBTFUL: &str = "PEER TAG COUNT DATATYPE: without a datatype, the line may also come from SimGrid up to 3.19, \
    which has no tags (PEER COUNT DATATYPE), and no other line of the trace has a tag; simgrid_convert_TI_traces.py, a \
    tool of SimGrid, converts such traces";

const NAME_THE_LIST: &str = "name the list of the trace's files, or the folder that holds it";

const WORLD: i32 = 0;

/// Returns the number of ranks: the highest rank at the start of a line, plus one.
fn count_ranks(parts: &[TracePart]) -> Result<u32, TraceError> {
    let mut ranks = 0;
    for (name, bytes) in parts {
        let input = ScanInput {
            name,
            text: bytes_of(bytes),
        };
        // A file with one rank is recognised by its first and last line, so large files are not read twice.
        for range in content_lines(input.text) {
            ranks = ranks.max(rank_of(input, range)? + 1);
            if parts.len() > 1 {
                break;
            }
        }
    }
    Ok(ranks)
}

fn rank_of(input: ScanInput<'_>, line: std::ops::Range<usize>) -> Result<u32, TraceError> {
    let word = words_of(&input.text[line.clone()])
        .next()
        .unwrap_or_default();
    parsed(word)
        .filter(|rank: &u32| *rank < 1 << 24)
        .ok_or_else(|| input.fault(line.start, shown(word), "a rank, then an action"))
}

/// Reads a file. Returns its first message that is also valid in the form without tags.
fn read_part(
    input: ScanInput<'_>,
    file: u32,
    readers: &mut [RankReader],
    starts: &mut [Option<RankSource>],
) -> Result<Option<usize>, TraceError> {
    let mut doubtful = None;
    for range in content_lines(input.text) {
        let rank = rank_of(input, range.clone())?;
        let ranks = readers.len();
        let Some(reader) = readers.get_mut(rank as usize) else {
            return Err(input.fault(
                range.start,
                format!("rank {rank}"),
                format!("a rank below {ranks}, as in the first line of each file"),
            ));
        };
        let start = starts[rank as usize].get_or_insert(RankSource {
            file,
            offset: range.start,
            number: Rank(rank),
            is_record: is_record_of,
        });
        if start.file != file {
            return Err(input.fault(
                range.start,
                format!("rank {rank} again"),
                "all actions of a rank in one file",
            ));
        }
        let line = &input.text[range.clone()];
        if memchr::memchr(b'\r', line).is_some() {
            return Err(input.fault(range.start, shown(line), "lines that end in a line feed"));
        }
        let mut words = words_of(line);
        words.next();
        let action = words.next().unwrap_or_default();
        let arguments = SimgridArguments {
            words: words.collect(),
            read: Cell::new(0),
        };
        reader
            .read(action, &arguments)
            .and_then(|()| arguments.are_all_read(action))
            .map_err(|fault| input.refuse(range.start, fault))?;
        if doubtful.is_none() && reader.is_doubtful {
            doubtful = Some(range.start);
        }
    }
    Ok(doubtful)
}

fn is_record_of(line: &[u8], rank: Rank) -> bool {
    words_of(line).next().and_then(parsed) == Some(rank.0)
}

/// Words after the action, and the number of words that have been read.
struct SimgridArguments<'a> {
    words: Vec<&'a [u8]>,
    read: Cell<usize>,
}

impl SimgridArguments<'_> {
    /// Refuses words after the last argument, because they may belong to another line. Actions without effect on time accept
    /// any words.
    fn are_all_read(&self, action: &[u8]) -> Result<(), Fault> {
        let has_no_effect =
            NO_EFFECT.contains(&action) || action == b"init" || action == b"waitall";
        match self.words.get(self.read.get()) {
            Some(word) if !has_no_effect => Err(Fault::value(shown(word), "the end of the line")),
            _ => Ok(()),
        }
    }

    /// Reads a number; traces also write counts as `5e4`.
    fn number(&self, index: usize) -> Option<f64> {
        self.read.set(self.read.get().max(index + 1));
        let value: f64 = parsed(self.words.get(index)?)?;
        value.is_finite().then_some(value)
    }

    /// Reads a whole number of at least 0.
    fn count(&self, index: usize) -> Option<u64> {
        let number = self.number(index)?;
        parsed(self.words[index])
            .filter(|count: &u64| *count <= i64::MAX as u64)
            .or_else(|| {
                let is_whole = number >= 0.0 && number.fract() == 0.0 && number < 9e15;
                is_whole.then_some(number as u64)
            })
    }

    fn tag(&self, index: usize) -> Option<i32> {
        self.number(index)
            .filter(|value| value.fract() == 0.0 && value.abs() < 2e9)
            .map(|value| value as i32)
    }

    /// Returns the sum of `length` counts.
    fn sum(&self, from: usize, length: usize) -> Option<u64> {
        (from..from + length).try_fold(0u64, |sum, index| {
            Some(sum.saturating_add(self.count(index)?))
        })
    }
}

/// Request that a wait can wait for.
enum SimgridRequest {
    Recv { slot: u32 },
    Send { number: u32 },
}

/// Direction of a message (`true` if it is received), its peer and its tag.
type SimgridMessage = (bool, Rank, i32);

/// Requests that have not been waited for, in the order in which they were made.
#[derive(Default)]
struct SimgridRequests {
    all: BTreeMap<u64, SimgridRequest>,
    of_message: BTreeMap<SimgridMessage, VecDeque<u64>>,
    made: u64,
}

impl SimgridRequests {
    fn push(&mut self, message: SimgridMessage, request: SimgridRequest) {
        self.all.insert(self.made, request);
        self.of_message
            .entry(message)
            .or_default()
            .push_back(self.made);
        self.made += 1;
    }

    /// Takes the first request for one of these messages.
    fn take(&mut self, messages: impl Iterator<Item = SimgridMessage>) -> Option<SimgridRequest> {
        let waiting = &self.of_message;
        let firsts =
            messages.filter_map(|message| Some((*waiting.get(&message)?.front()?, message)));
        let (first, message) = firsts.min()?;
        self.of_message.get_mut(&message)?.pop_front();
        self.all.remove(&first)
    }

    fn take_all(&mut self) -> impl Iterator<Item = SimgridRequest> + use<> {
        self.of_message.clear();
        std::mem::take(&mut self.all).into_values()
    }
}

#[derive(Default)]
struct RankReader {
    rank: Rank,
    ranks: u32,
    /// Bytes of the default datatype, for actions that name none.
    unit: u64,
    /// `true` once a message has shown that the trace has tags.
    has_tags: bool,
    /// `true` once a message has been found that is also valid in the form without tags.
    is_doubtful: bool,
    requests: SimgridRequests,
    builder: RankBuilder,
}

impl RankReader {
    fn read(&mut self, action: &[u8], arguments: &SimgridArguments<'_>) -> Result<(), Fault> {
        match action {
            b"compute" | b"sleep" => {
                let (format, scale) = if action == b"compute" {
                    ("compute FLOPS", NANOS_PER_FLOP)
                } else {
                    ("sleep SECONDS", 1e9)
                };
                let nanos = arguments
                    .number(0)
                    .map(|amount| amount * scale)
                    .filter(|nanos| is_duration(*nanos));
                self.builder
                    .compute(Time::from_nanos(nanos.ok_or(Fault::malformed(format))?));
            }
            b"send" | b"isend" => self.read_send(action == b"isend", arguments)?,
            b"recv" | b"irecv" => self.read_recv(action == b"irecv", arguments)?,
            b"wait" => self.read_wait(arguments)?,
            b"waitall" => self.wait_all()?,
            b"sendRecv" | b"sendrecv" => self.read_sendrecv(arguments)?,
            b"test" => self.builder.ignored(0),
            b"init" => {
                self.unit = if arguments.words.is_empty() { 1 } else { 8 };
                self.builder.nothing();
            }
            action if NO_EFFECT.contains(&action) => self.builder.nothing(),
            _ => self.read_collective(action, arguments)?,
        }
        Ok(())
    }

    /// Returns the bytes of one element of the datatype at `index`, or of the default datatype.
    fn unit(&self, arguments: &SimgridArguments<'_>, index: usize) -> Result<u64, Fault> {
        if index >= arguments.words.len() {
            return Ok(self.unit);
        }
        arguments
            .count(index)
            .and_then(datatype_bytes)
            .ok_or(Fault::malformed(
                "a datatype id from 0 to 50, or 57, as the last word",
            ))
    }

    fn peer(&self, arguments: &SimgridArguments<'_>, index: usize) -> Result<Rank, Fault> {
        let rank = arguments
            .count(index)
            .and_then(|rank| u32::try_from(rank).ok())
            .filter(|rank| *rank < self.ranks);
        let expected = match self.ranks {
            1 => format!(
                "a peer among the ranks of this file, which contains only rank 0: {NAME_THE_LIST}"
            )
            .into(),
            _ => Cow::Borrowed(
                "an action with a rank of the trace as its peer (any source, -1, cannot be matched)",
            ),
        };
        rank.map(Rank).ok_or(Fault::expected(expected))
    }

    /// Checks whether a message has the form of SimGrid up to 3.19, `send DESTINATION COUNT [DATATYPE]`. In that form, the
    /// names of non-blocking calls begin with a capital.
    fn note_form(
        &mut self,
        non_blocking: bool,
        arguments: &SimgridArguments<'_>,
    ) -> Result<(), Fault> {
        match arguments.words.len() {
            2 => return Err(Fault::malformed(WITHOUT_TAGS)),
            3 if arguments.count(2).and_then(datatype_bytes).is_some() => {
                if arguments.tag(1).is_none() && arguments.count(1).is_some() {
                    return Err(Fault::malformed(WITHOUT_TAGS));
                }
                // A count of 0 would mean a message without data. Few tags exceed the limit that every MPI supports.
                let number = arguments.count(1).unwrap_or(0);
                self.is_doubtful |= number > 0;
                self.has_tags |= non_blocking && number < 1 << 15;
            }
            _ => self.has_tags = true,
        }
        Ok(())
    }

    fn read_send(
        &mut self,
        non_blocking: bool,
        arguments: &SimgridArguments<'_>,
    ) -> Result<(), Fault> {
        const FORMAT: Fault = Fault::malformed("send DESTINATION TAG COUNT [DATATYPE]");
        let peer = self.peer(arguments, 0)?;
        self.note_form(non_blocking, arguments)?;
        let (Some(tag), Some(count)) = (arguments.tag(1), arguments.count(2)) else {
            return Err(FORMAT);
        };
        let size = Bytes(count.saturating_mul(self.unit(arguments, 3)?));
        let number = self.builder.sends();
        let class = MessageClass {
            size,
            tag,
            communicator: WORLD,
            mode: if non_blocking { NON_BLOCKING } else { EAGER },
        };
        self.builder.send(peer, class, Record::Begins)?;
        if non_blocking {
            self.requests
                .push((false, peer, tag), SimgridRequest::Send { number });
        }
        Ok(())
    }

    fn read_recv(
        &mut self,
        non_blocking: bool,
        arguments: &SimgridArguments<'_>,
    ) -> Result<(), Fault> {
        let peer = self.peer(arguments, 0)?;
        self.note_form(non_blocking, arguments)?;
        let (Some(tag), Some(_)) = (arguments.tag(1), arguments.number(2)) else {
            return Err(Fault::malformed("recv SOURCE TAG COUNT [DATATYPE]"));
        };
        self.unit(arguments, 3)?;
        let channel = self.builder.channel(Channel {
            peer,
            tag,
            communicator: WORLD,
        });
        if non_blocking {
            let slot = self.builder.irecv_waited_by_slot(channel)?;
            self.requests
                .push((true, peer, tag), SimgridRequest::Recv { slot });
        } else {
            self.builder.recv(channel, Record::Begins)?;
        }
        Ok(())
    }

    /// Reads `wait SOURCE DESTINATION TAG`: a wait for a receive if this rank is the destination, otherwise for a send.
    fn read_wait(&mut self, arguments: &SimgridArguments<'_>) -> Result<(), Fault> {
        if arguments.words.is_empty() {
            return Err(Fault::malformed(WITHOUT_TAGS));
        }
        self.has_tags = true;
        let (source, destination) = (self.peer(arguments, 0)?, self.peer(arguments, 1)?);
        let wanted = arguments
            .tag(2)
            .ok_or(Fault::malformed("wait SOURCE DESTINATION TAG"))?;
        let own = self.rank;
        let received = (destination == own).then_some((true, source, wanted));
        let sent = (source == own).then_some((false, destination, wanted));
        match self.requests.take(received.into_iter().chain(sent)) {
            Some(request) => self.wait_for(&request, Record::Begins),
            None if destination == own => Err(RecordFault::WaitWithoutReceive.into()),
            None => Err(RecordFault::WaitWithoutSend.into()),
        }
    }

    fn wait_for(&mut self, request: &SimgridRequest, record: Record) -> Result<(), Fault> {
        match *request {
            SimgridRequest::Recv { slot } => self.builder.wait_slot(slot, record),
            SimgridRequest::Send { number } => self.builder.wait_send(number, record)?,
        }
        Ok(())
    }

    fn wait_all(&mut self) -> Result<(), Fault> {
        let mut record = Record::Begins;
        for request in self.requests.take_all() {
            self.wait_for(&request, record)?;
            record = Record::Continues;
        }
        if record == Record::Begins {
            self.builder.nothing();
        }
        Ok(())
    }

    fn read_sendrecv(&mut self, arguments: &SimgridArguments<'_>) -> Result<(), Fault> {
        const FORMAT: Fault =
            Fault::malformed("sendRecv COUNT DESTINATION COUNT SOURCE [DATATYPE DATATYPE]");
        let (to, from) = (self.peer(arguments, 1)?, self.peer(arguments, 3)?);
        let count = arguments.count(0).ok_or(FORMAT)?;
        arguments.count(2).ok_or(FORMAT)?;
        let size = Bytes(count.saturating_mul(self.unit(arguments, 4)?));
        self.unit(arguments, 5)?;
        let number = self.builder.sends();
        let class = MessageClass {
            size,
            tag: SENDRECV_TAG,
            communicator: WORLD,
            mode: NON_BLOCKING,
        };
        self.builder.send(to, class, Record::Begins)?;
        let channel = self.builder.channel(Channel {
            peer: from,
            tag: SENDRECV_TAG,
            communicator: WORLD,
        });
        self.builder.recv(channel, Record::Continues)?;
        Ok(self.builder.wait_send(number, Record::Continues)?)
    }

    fn read_collective(
        &mut self,
        action: &[u8],
        arguments: &SimgridArguments<'_>,
    ) -> Result<(), Fault> {
        let (call, flops) = match action {
            b"barrier" => (self.call(CollectiveOp::Barrier, Rank(0), 0, 0), 0.0),
            b"bcast" => {
                let count = arguments
                    .count(0)
                    .ok_or(Fault::malformed("bcast COUNT [ROOT [DATATYPE]]"))?;
                let bytes = count.saturating_mul(self.unit(arguments, 2)?);
                let root = self.root(arguments, 1)?;
                (self.call(CollectiveOp::Bcast, root, bytes, bytes), 0.0)
            }
            b"reduce" | b"allreduce" | b"scan" | b"exscan" | b"reducescatter"
            | b"reduce_scatter" => self.reduction(action, arguments)?,
            _ => (self.exchange(action, arguments)?, 0.0),
        };
        self.builder.collective(call)?;
        if flops > 0.0 {
            self.builder
                .compute_further(Time::from_nanos(flops * NANOS_PER_FLOP));
        }
        Ok(())
    }

    fn call(&self, op: CollectiveOp, root: Rank, send: u64, recv: u64) -> CallRecord {
        CallRecord {
            op,
            is_root: root == self.rank,
            send: Bytes(send),
            recv: Bytes(recv),
            ..CallRecord::barrier(WORLD, CollectiveMode::Blocking)
        }
    }

    /// Returns a collective that computes, and the number of its floating-point operations.
    fn reduction(
        &self,
        action: &[u8],
        arguments: &SimgridArguments<'_>,
    ) -> Result<(CallRecord, f64), Fault> {
        use CollectiveOp::*;
        let (n, is_scatter) = (
            self.ranks as usize,
            action.starts_with(b"reduce") && action.len() > 6,
        );
        let (count, flops, format) = if is_scatter {
            (
                arguments.sum(0, n),
                arguments.number(n),
                "reducescatter COUNTS FLOPS [DATATYPE]",
            )
        } else {
            (
                arguments.count(0),
                arguments.number(1),
                "a reduction: COUNT FLOPS [ROOT (reduce only)] [DATATYPE]",
            )
        };
        let (Some(count), Some(flops)) = (count, flops) else {
            return Err(Fault::malformed(format));
        };
        let (op, root, unit) = match action {
            b"reduce" => (Reduce, self.root(arguments, 2)?, 3),
            b"allreduce" => (Allreduce, Rank(0), 2),
            b"scan" | b"exscan" => (Scan, Rank(0), 2),
            _ => (ReduceScatter, Rank(0), n + 1),
        };
        let unit = self.unit(arguments, unit)?;
        if !is_duration(flops * NANOS_PER_FLOP) {
            return Err(Fault::malformed(format));
        }
        let own = if is_scatter {
            arguments.count(self.rank.index()).unwrap_or(0)
        } else {
            count
        };
        let [send, recv] = [count, own].map(|count| count.saturating_mul(unit));
        Ok((self.call(op, root, send, recv), flops))
    }

    /// Returns a collective that only moves data; sender and receiver each have a datatype.
    fn exchange(
        &self,
        action: &[u8],
        arguments: &SimgridArguments<'_>,
    ) -> Result<CallRecord, Fault> {
        use CollectiveOp::*;
        let n = self.ranks as usize;
        // Counts sent and received, and the positions of the root, if there is one, and of the datatypes.
        let (op, send, recv, root, types, format) = match action {
            b"alltoall" | b"allgather" => (
                if action == b"alltoall" {
                    Alltoall
                } else {
                    Allgather
                },
                arguments.count(0),
                arguments.count(1),
                None,
                2,
                "alltoall|allgather SEND RECEIVE [DATATYPE DATATYPE]",
            ),
            b"gather" | b"scatter" => (
                if action == b"gather" { Gather } else { Scatter },
                arguments.count(0),
                arguments.count(1),
                Some(2),
                3,
                "gather|scatter SEND RECEIVE [ROOT [DATATYPE DATATYPE]]",
            ),
            b"alltoallv" => (
                Alltoallv,
                arguments.sum(1, n),
                arguments.sum(n + 2, n),
                None,
                2 * n + 2,
                "alltoallv SEND-BUFFER SEND-COUNTS RECEIVE-BUFFER RECEIVE-COUNTS [DATATYPE DATATYPE]",
            ),
            b"gatherv" | b"allgatherv" => {
                let has_root = action == b"gatherv";
                (
                    if has_root { Gatherv } else { Allgatherv },
                    arguments.count(0),
                    arguments.sum(1, n),
                    has_root.then_some(n + 1),
                    n + 1 + usize::from(has_root),
                    "gatherv|allgatherv SEND RECEIVE-COUNTS [ROOT (gatherv only)] [DATATYPE DATATYPE]",
                )
            }
            b"scatterv" => (
                Scatterv,
                arguments.sum(0, n),
                arguments.count(n),
                Some(n + 1),
                n + 2,
                "scatterv SEND-COUNTS RECEIVE [ROOT [DATATYPE DATATYPE]]",
            ),
            _ if is_action(action) => return Err(Fault::malformed(WITHOUT_TAGS)),
            _ => {
                return Err(Fault::malformed(
                    "an action of the time-independent trace, such as compute, send, irecv, waitall or bcast",
                ));
            }
        };
        let (Some(send), Some(recv)) = (send, recv) else {
            return Err(Fault::malformed(format));
        };
        let root = root.map_or(Ok(Rank(0)), |index| self.root(arguments, index))?;
        let send = send.saturating_mul(self.unit(arguments, types)?);
        let recv = recv.saturating_mul(self.unit(arguments, types + 1)?);
        let (ranks, if_root) = (u64::from(self.ranks), u64::from(root == self.rank));
        // Number of ranks that the sent and the received counts apply to.
        let (sends, receives) = match op {
            Alltoall => (ranks, ranks),
            Allgather => (1, ranks),
            Gather => (1, ranks * if_root),
            Gatherv => (1, if_root),
            Scatter => (ranks * if_root, 1),
            Scatterv => (if_root, 1),
            _ => (1, 1),
        };
        Ok(self.call(
            op,
            root,
            send.saturating_mul(sends),
            recv.saturating_mul(receives),
        ))
    }

    /// Returns the root at `index`, or 0 if it is missing.
    fn root(&self, arguments: &SimgridArguments<'_>, index: usize) -> Result<Rank, Fault> {
        if index < arguments.words.len() {
            self.peer(arguments, index)
        } else {
            Ok(Rank(0))
        }
    }
}

/// Tag of a combined send and receive, for which the traces have none; no other message has this tag.
const SENDRECV_TAG: i32 = i32::MIN;

/// Nanoseconds per operation on a host of 1 Gflop/s, as the recording uses.
const NANOS_PER_FLOP: f64 = 1.0;

/// Returns the bytes of a predefined datatype, in SimGrid's numbering.
fn datatype_bytes(id: u64) -> Option<u64> {
    const BYTES: [u64; 51] = [
        8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8,
        8, 8, 16, 16, 8, 8, 32, 8, 16, 4, 4, 8, 16, 8, 16, 32, 1, 2, 4, 8, 16, 8,
    ];
    if id == 57 {
        Some(1)
    } else {
        BYTES.get(usize::try_from(id).ok()?).copied()
    }
}
