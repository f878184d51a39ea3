//! A message-passing program as the replay sees it: for each rank a stream of instructions, and the tables they name.

use std::{fmt, ops::Range, sync::Arc};

use super::{
    access::Access,
    opcodes::{self, Op},
    slot::Slot,
};
use flowcast_network::algorithm::Base;
use flowcast_units::{Bytes, CollectiveOp, Rank};

/// Bytes that several owners read, as a memory map.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// How a send behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SendMode {
    /// The transfer waits for the receiver (rendezvous).
    pub synchronous: bool,
    /// The sender goes on without waiting for the transfer.
    pub non_blocking: bool,
    /// The request was made before, and `MPI_Start` or its kin sends.
    pub persistent: bool,
}

/// What all sends of one kind have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageClass {
    /// Size of each message, of its data alone.
    pub size: Bytes,
    /// Tag by which MPI matches messages.
    pub tag: i32,
    /// Communicator, by its number in the trace.
    pub communicator: i32,
    /// Whether the transfers wait for the receiver, and the sender for the transfers.
    pub mode: SendMode,
}

/// When the ranks of a collective call go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CollectiveMode {
    /// When all have come and the operation is done.
    Blocking,
    /// At once; a later wait waits for the end.
    NonBlocking,
    /// Each sends to the root and goes on when its own data is there; the root waits for all.
    RootSynchronous,
}

/// A collective call as one rank makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectiveCall {
    /// Which collective operation is called.
    pub op: CollectiveOp,
    /// Index of the communicator.
    pub communicator: u32,
    /// When the ranks of the call go on.
    pub mode: CollectiveMode,
    /// Whether this rank is the root.
    pub is_root: bool,
    /// The root of a root-synchronous call.
    pub root: Option<Rank>,
    /// Bytes that this rank sends.
    pub send: Bytes,
    /// Bytes that this rank receives.
    pub recv: Bytes,
}

/// A set of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Communicator {
    /// Its number in the trace.
    pub id: i32,
    /// Its ranks, by their number in the communicator.
    pub members: Vec<Rank>,
}

/// A rank's instructions and slots.
#[derive(Clone)]
pub(super) struct RankStream {
    pub words: StreamWords,
    /// The first slot of the rank; the next rank's is the end.
    pub first_slot: Slot,
    /// How many of its last sends the rank may still wait for.
    pub awaited_sends: u32,
}

impl RankStream {
    /// Of instructions that are looked through for waits.
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

/// Records that the replay leaves out, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredRecords {
    /// What they are, in the words of the trace's format.
    pub kind: String,
    /// Number of records of this kind.
    pub count: u64,
}

/// Transfers of one-sided communication: puts, gets and accumulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfers {
    /// How many they are.
    pub count: u64,
    /// Bytes of all together.
    pub bytes: Bytes,
}

impl Transfers {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Transfers) -> Transfers {
        let bytes = Bytes(self.bytes.0.saturating_add(other.bytes.0));
        Transfers {
            count: self.count.saturating_add(other.count),
            bytes,
        }
    }

    /// The same so many times over.
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
        // A kind that says what becomes of it needs no more words.
        let left_out = if self.kind.contains(';') {
            ""
        } else {
            " left out of the replay"
        };
        write!(f, "{} {}{left_out}", self.count, self.kind)
    }
}

/// A whole program, sends and receives matched.
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
    /// Whether any rank sends to itself.
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
    /// The rank of each progress stream, in the order of their streams.
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
    /// The MPI library that the program was recorded under, if it is one whose collectives are known.
    pub fn library(&self) -> Option<Base> {
        self.library
    }

    /// Number of ranks, without their progress streams.
    pub fn ranks(&self) -> usize {
        self.streams.len() - self.progress.len()
    }

    /// Number of streams of instructions: those of the ranks, and behind them the progress streams. One runs beside its
    /// rank, on its node but on no processor of it, and is numbered like a rank wherever instructions are carried out.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The rank that a stream belongs to.
    #[inline]
    pub fn owner(&self, stream: Rank) -> Rank {
        stream
            .index()
            .checked_sub(self.ranks())
            .map_or(stream, |number| self.progress[number])
    }

    /// The ranks of the progress streams, in the order of their streams.
    pub fn progress_streams(&self) -> &[Rank] {
        &self.progress
    }

    /// The instructions of a rank.
    pub fn words(&self, rank: Rank) -> &[u32] {
        self.streams[rank.index()].words.get()
    }

    /// The instructions of a rank, decoded, with the number of the record of each.
    pub fn ops(&self, rank: Rank) -> impl Iterator<Item = (u32, Op)> + '_ {
        opcodes::iterate(self.words(rank))
    }

    /// The first slot of each rank.
    pub fn first_slot(&self, rank: Rank) -> Slot {
        self.streams[rank.index()].first_slot
    }

    /// The slots that a rank, or progress stream, receives into.
    pub fn slots(&self, rank: Rank) -> Range<Slot> {
        let behind = self
            .streams
            .get(rank.index() + 1)
            .map_or(Slot(self.slots), |next| next.first_slot);
        self.first_slot(rank)..behind
    }

    /// How many receives a rank posts.
    pub(super) fn posts(&self, rank: Rank) -> u32 {
        let slots = self.slots(rank);
        slots.end - slots.start
    }

    /// Which rank, or progress stream, receives into a slot.
    pub fn receiver(&self, slot: Slot) -> Rank {
        // Mostly where it would be if all received as much.
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

    /// By slot: the sender and the class of the message that fills it.
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

    /// Whether any rank sends to itself.
    pub fn has_self_messages(&self) -> bool {
        self.self_messages
    }

    /// Whether any rank waits for one of its sends.
    pub fn awaits_sends(&self) -> bool {
        self.streams.iter().any(|stream| stream.awaited_sends > 0)
    }

    /// How many of its last sends a rank may still wait for; 0 where it waits for none.
    pub fn awaited_sends(&self, rank: Rank) -> u32 {
        self.streams[rank.index()].awaited_sends
    }

    /// Bytes of all messages.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// The message classes, by the index that sends name.
    pub fn classes(&self) -> &[MessageClass] {
        &self.classes
    }

    /// One of [`Program::classes`].
    #[inline(always)]
    pub fn class(&self, number: u32) -> &MessageClass {
        &self.classes()[number as usize]
    }

    /// The collective calls that differ, by the index that instructions name.
    pub fn calls(&self) -> &[CollectiveCall] {
        &self.calls
    }

    /// One of [`Program::calls`].
    #[inline(always)]
    pub fn call(&self, number: u32) -> &CollectiveCall {
        &self.calls()[number as usize]
    }

    /// The communicators, by the index that calls name.
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

    /// The communicator of an execution of a collective.
    #[inline(always)]
    pub fn communicator_of(&self, instance: u32) -> u32 {
        self.instances()[instance as usize]
    }

    /// Number of collectives, each counted once however many ranks take part; where streams of one rank meet is none.
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

    /// Whether a communicator is no communicator of MPI: in its collectives threads of one task wait for one another, or a
    /// rank and its progress stream, which costs nothing.
    pub fn is_inside_a_task(&self, communicator: &Communicator) -> bool {
        let tasks = &mut communicator.members.iter().map(|member| self.task(*member));
        let first = tasks.next();
        communicator.members.len() > 1 && tasks.all(|task| Some(task) == first)
    }

    /// Types and values of the trace's events.
    pub fn events(&self) -> &[(i64, i64)] {
        &self.events
    }

    /// One-sided communication and files.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// One of [`Program::accesses`].
    #[inline(always)]
    pub fn access(&self, number: u32) -> &Access {
        &self.accesses()[number as usize]
    }

    /// The transfers of one-sided communication of all ranks.
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

    /// What the reader found and the replay leaves out.
    pub fn ignored(&self) -> &[IgnoredRecords] {
        &self.ignored
    }

    /// What the reader assumed beyond the trace, a sentence each.
    pub fn assumed(&self) -> &[String] {
        &self.assumed
    }

    /// The task that a rank is a thread of.
    pub fn task(&self, rank: Rank) -> u32 {
        let rank = self.owner(rank);
        self.threads
            .get(rank.index())
            .map_or(rank.0, |(task, _)| *task)
    }

    /// Which thread of its task a rank is.
    pub fn thread(&self, rank: Rank) -> u32 {
        self.threads
            .get(self.owner(rank).index())
            .map_or(0, |(_, thread)| *thread)
    }

    /// Whether any task has several threads.
    pub fn has_threads(&self) -> bool {
        self.threads.iter().any(|(_, thread)| *thread > 0)
    }

    /// By task: how many threads it has.
    pub fn threads_of_tasks(&self) -> Vec<u32> {
        if self.threads.is_empty() {
            return vec![1; self.ranks()];
        }
        self.threads
            .chunk_by(|a, b| a.0 == b.0)
            .map(|task| task.len() as u32)
            .collect()
    }

    /// Bytes that the compiled form takes.
    pub fn compiled_bytes(&self) -> usize {
        self.streams
            .iter()
            .map(|stream| stream.words.get().len() * 4)
            .sum()
    }

    /// Where a record stands, for messages to people: `file:line` if the text is at hand.
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

/// Where the records of each rank stand in the text they were read from.
#[derive(Clone, Default)]
pub struct RecordSources {
    /// Names of the files.
    pub names: Vec<String>,
    /// The text of each file.
    pub texts: Vec<SharedBytes>,
    /// Per rank: the file, the offset of its records and whether a line is a record of the rank.
    pub ranks: Vec<RankSource>,
}

/// Where one rank's records begin.
#[derive(Debug, Clone, Copy)]
pub struct RankSource {
    /// Index of the file.
    pub file: u32,
    /// Byte offset of the first line to look at.
    pub offset: usize,
    /// The rank's number in that file: that of its task.
    pub number: Rank,
    /// Whether a line holds a record of the rank of this number.
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
