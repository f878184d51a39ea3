//! A message-passing program as the replay uses it: a stream of instructions for each rank, and the tables that they refer
//! to.

use std::{fmt, ops::Range, sync::Arc};

use super::{
    access::Access,
    opcodes::{self, Op},
    slot::Slot,
};
use flowcast_network::algorithm::Base;
use flowcast_units::{Bytes, CollectiveOp, Rank};

/// Bytes that several owners share, such as a memory map.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Behaviour of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SendMode {
    /// The transfer waits for the receiver (rendezvous).
    pub synchronous: bool,
    /// The sender continues without waiting for the transfer.
    pub non_blocking: bool,
    /// The request was created earlier, and `MPI_Start` or a similar call starts the send.
    pub persistent: bool,
}

/// Properties that all sends of one kind share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageClass {
    /// Size of each message's data, without headers.
    pub size: Bytes,
    /// Tag by which MPI matches messages.
    pub tag: i32,
    /// Communicator, by its number in the trace.
    pub communicator: i32,
    /// Mode of the sends: it decides whether transfers wait for the receiver, and the sender for transfers.
    pub mode: SendMode,
}

/// Time at which the ranks of a collective call continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CollectiveMode {
    /// After all ranks have arrived and the operation has completed.
    Blocking,
    /// Immediately; a later wait waits for the end.
    NonBlocking,
    /// Each rank sends to the root and continues when its own data has arrived there; the root waits for all.
    RootSynchronous,
}

/// A collective call by one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectiveCall<C = u32> {
    /// Collective operation.
    pub op: CollectiveOp,
    /// Communicator, by its index unless stated otherwise.
    pub communicator: C,
    /// Time at which the ranks of the call continue.
    pub mode: CollectiveMode,
    /// `true` if this rank is the root.
    pub is_root: bool,
    /// Root of a root-synchronous call.
    pub root: Option<Rank>,
    /// Bytes that this rank sends.
    pub send: Bytes,
    /// Bytes that this rank receives.
    pub recv: Bytes,
}

impl<C> CollectiveCall<C> {
    /// `true` for a call that another call waits for.
    pub fn is_non_blocking(&self) -> bool {
        self.mode == CollectiveMode::NonBlocking
    }

    /// Returns the call with another name of its communicator.
    pub(crate) fn over<D>(self, communicator: D) -> CollectiveCall<D> {
        let CollectiveCall {
            op,
            mode,
            is_root,
            root,
            send,
            recv,
            ..
        } = self;
        CollectiveCall {
            op,
            communicator,
            mode,
            is_root,
            root,
            send,
            recv,
        }
    }
}

/// A set of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Communicator {
    /// Number of the communicator in the trace.
    pub id: i32,
    /// Ranks, indexed by their number in the communicator.
    pub members: Vec<Rank>,
}

/// A rank's instructions and slots.
#[derive(Clone)]
pub(super) struct RankStream {
    pub words: StreamWords,
    /// First slot of the rank; its slots end at the first slot of the next rank.
    pub first_slot: Slot,
    /// Number of its last sends that the rank may still wait for.
    pub awaited_sends: u32,
}

impl RankStream {
    /// Creates a stream and searches its instructions for waits.
    pub(crate) fn new(words: Vec<u32>, first_slot: Slot) -> RankStream {
        let awaited_sends = opcodes::iterate(&words)
            .map(|(_, op)| {
                if let Op::WaitSend(ago) = op {
                    ago + 1
                } else {
                    0
                }
            })
            .max()
            .unwrap_or(0);
        RankStream {
            words: StreamWords::Owned(words),
            first_slot,
            awaited_sends,
        }
    }
}

#[derive(Clone)]
pub(super) enum StreamWords {
    Owned(Vec<u32>),
    /// A whole number of words inside `bytes`.
    Mapped {
        bytes: SharedBytes,
        start: usize,
        len: usize,
    },
}

impl StreamWords {
    pub(crate) fn get(&self) -> &[u32] {
        match self {
            StreamWords::Owned(words) => words,
            StreamWords::Mapped { bytes, start, len } => {
                bytemuck::cast_slice(&(**bytes).as_ref()[*start..*start + *len])
            }
        }
    }
}

/// Records of one kind that the replay leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredRecords {
    /// Description in the terms of the trace's format.
    pub kind: String,
    /// Number of records of this kind.
    pub count: u64,
}

/// Transfers of one-sided communication: puts, gets and accumulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfers {
    /// Number of transfers; sums above the largest `u64` are cut to it.
    pub count: u64,
    /// Total size, in bytes.
    pub bytes: Bytes,
}

impl Transfers {
    /// Returns the sum of both.
    #[must_use]
    pub fn and(self, other: Transfers) -> Transfers {
        let bytes = Bytes(self.bytes.0.saturating_add(other.bytes.0));
        Transfers {
            count: self.count.saturating_add(other.count),
            bytes,
        }
    }

    /// Returns the transfers multiplied by `times`.
    #[must_use]
    pub fn times(self, times: u64) -> Transfers {
        Transfers {
            count: self.count.saturating_mul(times),
            bytes: Bytes(self.bytes.0.saturating_mul(times)),
        }
    }
}

impl fmt::Display for IgnoredRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A kind whose text says how it is treated needs no more words.
        let left_out = if self.kind.contains(';') {
            ""
        } else {
            " left out of the replay"
        };
        write!(f, "{} {}{left_out}", self.count, self.kind)
    }
}

/// A whole program with matched sends and receives.
///
/// ```
/// use flowcast_program::Trace;
/// use flowcast_formats::convert::generate::{ProgramShape, Workload};
/// use flowcast_program::opcodes::Op;
/// use flowcast_units::{Bytes, Rank, Time};
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
/// assert_eq!((program.messages(), program.bytes()), (4, Bytes(32)));
/// let (record, op) = program.ops(Rank(0)).next().unwrap();
/// assert_eq!((record, op), (1, Op::Compute(Time::from_micros(1.0))));
/// # Ok::<(), flowcast_program::TraceError>(())
/// ```
#[derive(Clone, Default)]
pub struct Program {
    /// Name of the traced application.
    pub name: String,
    pub(super) streams: Vec<RankStream>,
    pub(super) slots: u32,
    pub(super) classes: Vec<MessageClass>,
    pub(super) calls: Vec<CollectiveCall>,
    pub(super) communicators: Vec<Communicator>,
    /// Index of the communicator of each execution of a collective.
    pub(super) instances: Vec<u32>,
    /// `true` if any rank sends to itself.
    pub(super) self_messages: bool,
    pub(super) events: Vec<(i64, i64)>,
    pub(super) accesses: Vec<Access>,
    pub(super) bytes: Bytes,
    /// Records that the reader found and a replay leaves out.
    pub ignored: Vec<IgnoredRecords>,
    /// Assumptions of the reader, as sentences.
    pub assumed: Vec<String>,
    pub(super) source: Option<RecordSources>,
    /// Task and thread of each rank; empty if each task has one thread.
    pub(super) threads: Vec<(u32, u32)>,
    /// Rank of each progress stream, in the order of the streams.
    pub(super) progress: Vec<Rank>,
    /// The MPI library that the trace names.
    pub library: Option<Base>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Program {{ {}: {} ranks, {} messages }}",
            self.name,
            self.ranks(),
            self.slots
        )
    }
}

impl Program {
    /// MPI library with which the program was recorded; `None` unless it is one whose collectives are known.
    pub fn library(&self) -> Option<Base> {
        self.library
    }

    /// Number of ranks, without their progress streams.
    pub fn ranks(&self) -> usize {
        self.streams.len() - self.progress.len()
    }

    /// Number of streams of instructions: those of the ranks, followed by the progress streams. A progress stream runs
    /// beside its rank, on the same node but on none of its processors. Wherever instructions are executed, it has a number
    /// like a rank.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the rank that a stream belongs to.
    #[inline]
    pub fn owner(&self, stream: Rank) -> Rank {
        stream
            .index()
            .checked_sub(self.ranks())
            .map_or(stream, |number| self.progress[number])
    }

    /// Ranks of the progress streams, in the order of the streams.
    pub fn progress_streams(&self) -> &[Rank] {
        &self.progress
    }

    /// Instructions of a rank.
    pub fn words(&self, rank: Rank) -> &[u32] {
        self.streams[rank.index()].words.get()
    }

    /// Instructions of a rank, decoded, each with the number of its record.
    pub fn ops(&self, rank: Rank) -> impl Iterator<Item = (u32, Op)> + '_ {
        opcodes::iterate(self.words(rank))
    }

    /// Calls of collectives by all streams: the stream, the call and the execution, the last two by their indices.
    /// `for_each` visits them faster than a loop.
    pub fn collective_ops(&self) -> impl Iterator<Item = (Rank, u32, u32)> + '_ {
        Rank::all(self.streams()).flat_map(|rank| {
            self.ops(rank).filter_map(move |(_, op)| match op {
                Op::Collective { call, instance } => Some((rank, call, instance)),
                _ => None,
            })
        })
    }

    /// First slot of a rank.
    pub fn first_slot(&self, rank: Rank) -> Slot {
        self.streams[rank.index()].first_slot
    }

    /// Slots that a rank or progress stream receives into.
    pub fn slots(&self, rank: Rank) -> Range<Slot> {
        let behind = self
            .streams
            .get(rank.index() + 1)
            .map_or(Slot(self.slots), |next| next.first_slot);
        self.first_slot(rank)..behind
    }

    /// Number of receives that a rank posts.
    pub(super) fn posts(&self, rank: Rank) -> u32 {
        let slots = self.slots(rank);
        slots.end - slots.start
    }

    /// Returns the rank or progress stream that receives into a slot.
    pub fn receiver(&self, slot: Slot) -> Rank {
        // The guess assumes that all streams receive equally many messages, which is mostly right.
        let guess =
            (u64::from(slot.0) * self.streams.len() as u64 / u64::from(self.slots.max(1))) as usize;
        if let Some([stream, next]) = self.streams.get(guess..guess + 2)
            && (stream.first_slot..next.first_slot).contains(&slot)
        {
            return Rank(guess as u32);
        }
        let after = self
            .streams
            .partition_point(|stream| stream.first_slot <= slot);
        Rank(after as u32 - 1)
    }

    /// Sender and class of the message that fills each slot, indexed by slot.
    pub fn sources(&self) -> Vec<(Rank, u32)> {
        let mut sources = vec![(Rank(0), 0); self.slots as usize];
        for rank in Rank::all(self.streams()) {
            for (_, op) in self.ops(rank) {
                if let Op::Send { class, slot } = op {
                    sources[slot.index()] = (rank, class);
                }
            }
        }
        sources
    }

    /// Number of point-to-point messages.
    pub fn messages(&self) -> u32 {
        self.slots
    }

    /// `true` if any rank sends to itself.
    pub fn has_self_messages(&self) -> bool {
        self.self_messages
    }

    /// `true` if any rank waits for one of its sends.
    pub fn awaits_sends(&self) -> bool {
        self.streams.iter().any(|stream| stream.awaited_sends > 0)
    }

    /// Number of its last sends that a rank may still wait for; 0 if it waits for none.
    pub fn awaited_sends(&self, rank: Rank) -> u32 {
        self.streams[rank.index()].awaited_sends
    }

    /// Bytes of all messages.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Message classes, by the index that sends name.
    pub fn classes(&self) -> &[MessageClass] {
        &self.classes
    }

    /// One of [`Program::classes`].
    #[inline(always)]
    pub fn class(&self, number: u32) -> &MessageClass {
        &self.classes()[number as usize]
    }

    /// Distinct collective calls, by the index that instructions name.
    pub fn calls(&self) -> &[CollectiveCall] {
        &self.calls
    }

    /// One of [`Program::calls`].
    #[inline(always)]
    pub fn call(&self, number: u32) -> &CollectiveCall {
        &self.calls()[number as usize]
    }

    /// Communicators, by the index that calls name.
    pub fn communicators(&self) -> &[Communicator] {
        &self.communicators
    }

    /// One of [`Program::communicators`].
    #[inline(always)]
    pub fn communicator(&self, number: u32) -> &Communicator {
        &self.communicators()[number as usize]
    }

    /// Index of the communicator of each execution of a collective.
    pub fn instances(&self) -> &[u32] {
        &self.instances
    }

    /// Index of the communicator of an execution of a collective.
    #[inline(always)]
    pub fn communicator_of(&self, instance: u32) -> u32 {
        self.instances()[instance as usize]
    }

    /// Number of collectives, each counted once regardless of the number of ranks. Collectives among the threads and streams
    /// of one task do not count.
    pub fn collectives(&self) -> u64 {
        let of_ranks: Vec<bool> = self
            .communicators
            .iter()
            .map(|known| !self.is_inside_a_task(known))
            .collect();
        self.instances
            .iter()
            .filter(|communicator| of_ranks[**communicator as usize])
            .count() as u64
    }

    /// `true` if a communicator is not one of MPI's. Its collectives synchronise the threads of one task, or a rank and its
    /// progress stream. They take no time.
    pub fn is_inside_a_task(&self, communicator: &Communicator) -> bool {
        let tasks = &mut communicator.members.iter().map(|member| self.task(*member));
        let first = tasks.next();
        communicator.members.len() > 1 && tasks.all(|task| Some(task) == first)
    }

    /// Types and values of the trace's events.
    pub fn events(&self) -> &[(i64, i64)] {
        &self.events
    }

    /// One-sided and file operations.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// One of [`Program::accesses`].
    #[inline(always)]
    pub fn access(&self, number: u32) -> &Access {
        &self.accesses()[number as usize]
    }

    /// Total of the one-sided transfers of all ranks.
    pub fn transfers(&self) -> Transfers {
        let mut all = Transfers::default();
        for rank in (0..self.streams() as u32)
            .map(Rank)
            .filter(|_| !self.accesses.is_empty())
        {
            for (_, op) in self.ops(rank) {
                if let Op::Access(access) = op
                    && let Access::Transfer { size, .. } = self.accesses[access as usize]
                {
                    all = all.and(Transfers {
                        count: 1,
                        bytes: size,
                    });
                }
            }
        }
        all
    }

    /// Records that the reader found and the replay leaves out.
    pub fn ignored(&self) -> &[IgnoredRecords] {
        &self.ignored
    }

    /// Assumptions of the reader that the trace does not contain, one sentence each.
    pub fn assumed(&self) -> &[String] {
        &self.assumed
    }

    /// Number of the task that a rank is a thread of.
    pub fn task(&self, rank: Rank) -> u32 {
        let rank = self.owner(rank);
        self.threads
            .get(rank.index())
            .map_or(rank.0, |(task, _)| *task)
    }

    /// Number of a rank among the threads of its task.
    pub fn thread(&self, rank: Rank) -> u32 {
        self.threads
            .get(self.owner(rank).index())
            .map_or(0, |(_, thread)| *thread)
    }

    /// `true` if any task has several threads.
    pub fn has_threads(&self) -> bool {
        self.threads.iter().any(|(_, thread)| *thread > 0)
    }

    /// Number of threads, indexed by task.
    pub fn threads_of_tasks(&self) -> Vec<u32> {
        if self.threads.is_empty() {
            return vec![1; self.ranks()];
        }
        self.threads
            .chunk_by(|a, b| a.0 == b.0)
            .map(|task| task.len() as u32)
            .collect()
    }

    /// Size of the instructions in the compiled form, in bytes.
    pub fn compiled_bytes(&self) -> usize {
        self.streams
            .iter()
            .map(|stream| stream.words.get().len() * 4)
            .sum()
    }

    /// Place of a record, for messages to people: `file:line` if the text is available.
    pub fn place(&self, rank: Rank, record: u32) -> String {
        if rank.index() >= self.ranks() {
            return format!("rank {}, in a non-blocking collective", self.owner(rank));
        }
        match self
            .source
            .as_ref()
            .and_then(|source| source.line(rank, record))
        {
            Some(place) => place,
            None => format!("rank {rank}, record {record}"),
        }
    }
}

/// Positions of each rank's records in the text from which they were read.
#[derive(Clone, Default)]
pub struct RecordSources {
    /// Names of the files.
    pub names: Vec<String>,
    /// The text of each file.
    pub texts: Vec<SharedBytes>,
    /// File, offset of the records and test for the rank's records, indexed by rank.
    pub ranks: Vec<RankSource>,
}

/// Start of one rank's records.
#[derive(Debug, Clone, Copy)]
pub struct RankSource {
    /// Index of the file.
    pub file: u32,
    /// Byte offset of the first line to examine.
    pub offset: usize,
    /// Number by which the file names the rank: the number of its task.
    pub number: Rank,
    /// Returns `true` if a line holds a record of the rank with this number.
    pub is_record: fn(line: &[u8], number: Rank) -> bool,
}

impl RecordSources {
    /// `file:line` of a rank's record, counted from 1.
    pub fn line(&self, rank: Rank, record: u32) -> Option<String> {
        let start = self.ranks.get(rank.index())?;
        let text = (*self.texts[start.file as usize]).as_ref();
        let before = memchr::memchr_iter(b'\n', &text[..start.offset]).count();
        let mut seen = 0;
        for (index, line) in text[start.offset..]
            .split(|byte| *byte == b'\n')
            .enumerate()
        {
            seen += u32::from((start.is_record)(line, start.number));
            if seen == record {
                return Some(format!(
                    "{}:{}",
                    self.names[start.file as usize],
                    before + index + 1
                ));
            }
        }
        None
    }
}
