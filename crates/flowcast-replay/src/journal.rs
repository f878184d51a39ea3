//! What a replay did, packed, for those who write it to files: stretches, calls, events and messages.
//!
//! The [`Recorder`](super::record::Recorder) keeps the causes of everything and takes a few hundred bytes for each
//! message. A journal keeps no causes, and of a message 32 bytes, 40 if it is a program's and 16 more for Paraver; the rest
//! as differences of whole nanoseconds in packed blocks, and only what the files that are to be written need ([`Keeps`]).
//! So a trace of 10 million messages fits into 1.5 GiB, program or schedule included. What the strands of a rank do beside
//! it is not shown, but for their messages, which are the rank's.

use super::loggops::sends::{Message, Sends};
use super::record::{Accessed, Gathered, Observer, Received, Sent};
use super::timeline::{Activity, MessageSpan, Segment};
use flowcast_trace::packed::{Packed, PackedNumbers};
use flowcast_trace::program::Program;
use flowcast_trace::words::Op;
use flowcast_units::{Bytes, CollectiveOp, Rank, Time};

/// A stretch of a rank's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// The stretch, in whole nanoseconds.
    pub segment: Segment,
    /// Whether the rank waits for a message of its own to leave, not for one to come.
    pub sends: bool,
}

/// A function of MPI that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    /// `MPI_Send`
    Send,
    /// `MPI_Isend`
    Isend,
    /// `MPI_Recv`
    Recv,
    /// `MPI_Wait`
    Wait,
    /// A collective operation.
    Collective(CollectiveOp),
}

/// A call from begin to end, in whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// What was called.
    pub function: Function,
    /// When.
    pub start: Time,
    /// When it returned; after the start.
    pub end: Time,
}

/// An event of the trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// When the program passed it, in whole nanoseconds.
    pub time: Time,
    /// Its type.
    pub kind: i64,
    /// Its value.
    pub value: i64,
}

/// A message's times, not rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Passage {
    /// Ends, size, tag; when it was sent, when it was there, when the receiver's call returned.
    pub span: MessageSpan,
    /// When it began to move.
    pub moved: Time,
    /// When its receive was called.
    pub posted: Time,
}

/// What is kept beside the times of messages and the sums of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeps {
    /// What ranks did when.
    pub stretches: bool,
    /// Calls and events, when messages began to move and when they were asked for.
    pub calls: bool,
    /// In which order ranks received.
    pub receipts: bool,
}

impl Keeps {
    /// Everything.
    pub const ALL: Keeps = Keeps { stretches: true, calls: true, receipts: true };
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    /// Not a number until it is sent.
    call: f64,
    asked: f64,
    arrival: f64,
    received: f64,
}

const NOWHERE: Flight = Flight { call: f64::NAN, asked: f64::NAN, arrival: f64::NAN, received: f64::NAN };

/// A message of a program: its sender and its class.
#[derive(Debug, Clone, Copy, Default)]
struct Origin {
    from: u32,
    class: u32,
}

/// What only calls need of a message.
#[derive(Debug, Clone, Copy)]
struct Move {
    start: f64,
    posted: f64,
}

const NEVER: Move = Move { start: f64::NAN, posted: f64::NAN };

/// Messages and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// How many.
    pub messages: u64,
    /// Their sizes.
    pub bytes: Bytes,
}

impl Traffic {
    fn add(&mut self, size: Bytes) {
        self.messages += 1;
        self.bytes = Bytes(self.bytes.0.saturating_add(size.0));
    }
}

#[derive(Debug, Clone, Default)]
struct RankJournal {
    stretches: Packed,
    calls: Packed,
    /// The last call, which may still grow.
    open: Option<(Function, f64, f64)>,
    marks: Packed,
    sends: PackedNumbers,
    /// The messages that it received beside those for its own receives: of a schedule all, of a program those of
    /// its strands.
    receipts: PackedNumbers,
    times: [f64; Activity::ALL.len()],
    sent: Traffic,
    received: Traffic,
}

/// What was replayed.
enum Source<'a> {
    Program(&'a Program),
    Schedule(&'a Sends<'a>),
}

/// Keeps what the exporters need.
pub struct Journal<'a> {
    source: Source<'a>,
    keeps: Keeps,
    /// The operation of each execution of a collective; empty if calls are not kept.
    ops: Vec<CollectiveOp>,
    keeps_calls: bool,
    ranks: Vec<RankJournal>,
    flights: Vec<Flight>,
    /// Empty for schedules, where the numbers of messages say it.
    origins: Vec<Origin>,
    /// Empty if calls are not kept.
    moves: Vec<Move>,
}

/// Types of the events by which tracers of MPI mark its calls: point to point, collective, other, one-sided, files.
pub const MPI_EVENTS: std::ops::RangeInclusive<i64> = 50_000_001..=50_000_005;

impl<'a> Journal<'a> {
    /// For the replay of this program. Calls are kept if its trace has no events that mark them.
    pub fn new(program: &'a Program, keeps: Keeps) -> Journal<'a> {
        let is_marked = || program.events().iter().any(|(kind, _)| MPI_EVENTS.contains(kind));
        let keeps_calls = keeps.calls && !is_marked();
        let messages = program.messages() as usize;
        Journal {
            ops: if keeps_calls { ops_of_instances(program) } else { Vec::new() },
            keeps_calls,
            origins: vec![Origin::default(); messages],
            ..Journal::of(Source::Program(program), (program.ranks(), messages), keeps)
        }
    }

    /// For the replay of a schedule with these messages.
    pub fn of_schedule(sends: &'a Sends<'a>, keeps: Keeps) -> Journal<'a> {
        Journal::of(Source::Schedule(sends), (sends.ranks(), sends.count()), keeps)
    }

    fn of(source: Source<'a>, (ranks, messages): (usize, usize), keeps: Keeps) -> Journal<'a> {
        Journal {
            source,
            keeps,
            ops: Vec::new(),
            keeps_calls: keeps.calls,
            ranks: vec![RankJournal::default(); ranks],
            flights: vec![NOWHERE; messages],
            origins: Vec::new(),
            moves: if keeps.calls { vec![NEVER; messages] } else { Vec::new() },
        }
    }

    /// A rank's stretches in time order; gaps are idle.
    pub fn stretches(&self, rank: Rank) -> impl Iterator<Item = Stretch> + '_ {
        self.ranks[rank.index()].stretches.spans().map(|(start, end, code)| {
            let activity = Activity::ALL[code as usize >> 1];
            Stretch { segment: Segment { start: whole(start), end: whole(end), activity }, sends: code & 1 == 1 }
        })
    }

    /// A rank's calls in time order; none if the trace's own events mark them.
    pub fn calls(&self, rank: Rank) -> impl Iterator<Item = Call> + '_ {
        let journal = &self.ranks[rank.index()];
        let open = journal.open.map(|(function, start, end)| (nanos(start), nanos(end), function.code()));
        let spans = journal.calls.spans().chain(open.filter(|(start, end, _)| end > start));
        spans.map(|(start, end, code)| Call { function: Function::of_code(code), start: whole(start), end: whole(end) })
    }

    /// The events of the trace that a rank passed, in time order.
    pub fn marks(&self, rank: Rank) -> impl Iterator<Item = Mark> + '_ {
        self.ranks[rank.index()].marks.spans().map(|(time, _, event)| {
            let Source::Program(program) = self.source else { unreachable!("a schedule has no events") };
            let (kind, value) = program.events()[event as usize];
            Mark { time: whole(time), kind, value }
        })
    }

    /// The messages that a rank sent, in the order of its sends, each with its number.
    pub fn sent(&self, rank: Rank) -> impl Iterator<Item = (u32, Passage)> + '_ {
        self.ranks[rank.index()].sends.iter().map(move |slot| self.passage(slot, rank.0))
    }

    /// The messages for which a rank posted receives, in the order of posting, each with its number.
    pub fn received(&self, rank: Rank) -> impl Iterator<Item = (u32, Passage)> + '_ {
        let receipts = self.ranks[rank.index()].receipts.iter();
        let sent = move |slot: &u32| !self.flights[*slot as usize].call.is_nan();
        let all = self.slots(rank).filter(sent).chain(receipts);
        all.map(move |slot| self.passage(slot, self.sender(slot)))
    }

    /// What a rank sent.
    pub fn traffic_sent(&self, rank: Rank) -> Traffic {
        self.ranks[rank.index()].sent
    }

    /// What was sent to a rank.
    pub fn traffic_received(&self, rank: Rank) -> Traffic {
        self.ranks[rank.index()].received
    }

    /// The messages that a program has a rank receive.
    fn slots(&self, rank: Rank) -> std::ops::Range<u32> {
        let Source::Program(program) = self.source else { return 0..0 };
        let next = Rank(rank.0 + 1);
        let end = if next.index() < program.streams() { program.first_slot(next) } else { self.flights.len() as u32 };
        program.first_slot(rank)..end
    }

    /// When the last message was there; later than all ranks' ends if nobody waited for it.
    pub fn last_arrival(&self) -> Time {
        let arrivals = self.flights.iter().map(|flight| flight.arrival).filter(|arrival| arrival.is_finite());
        Time::from_nanos(arrivals.fold(0.0, f64::max))
    }

    /// How long a rank did each thing, in the order of [`Activity::ALL`].
    pub fn times(&self, rank: Rank) -> [Time; Activity::ALL.len()] {
        self.ranks[rank.index()].times.map(Time::from_nanos)
    }

    /// The number of a message and its times; `from` is the rank that sends it.
    fn passage(&self, slot: u32, from: u32) -> (u32, Passage) {
        let number = self.number(slot);
        let Flight { call, arrival, received, .. } = self.flights[number as usize];
        let Move { start, posted } = self.moves.get(number as usize).copied().unwrap_or(NEVER);
        let (dst, size, tag) = self.ends(from, slot);
        let or = |time: f64, otherwise: f64| Time::from_nanos(if time.is_nan() { otherwise } else { time });
        let span = MessageSpan {
            src: Rank(from),
            dst,
            size,
            tag,
            sent: Time::from_nanos(call),
            arrived: Time::from_nanos(arrival),
            received: or(received, arrival),
        };
        (number, Passage { span, moved: or(start, call), posted: or(posted, arrival) })
    }

    /// Receiver, size and tag of a message that has been sent.
    fn ends(&self, from: u32, slot: u32) -> (Rank, Bytes, i32) {
        match self.source {
            Source::Program(program) => {
                let class = &program.classes()[self.origins[slot as usize].class as usize];
                (program.owner(program.receiver(slot)), class.size, class.tag)
            }
            Source::Schedule(sends) => {
                let Message { to, size, tag } = sends.sent(Rank(from), slot);
                (to, size, tag)
            }
        }
    }

    /// The rank that sent a message.
    fn sender(&self, slot: u32) -> u32 {
        match self.source {
            Source::Program(_) => self.owner(self.origins[slot as usize].from),
            Source::Schedule(sends) => sends.sender(slot).0,
        }
    }

    /// The rank that a stream belongs to.
    fn owner(&self, stream: u32) -> u32 {
        match self.source {
            Source::Program(program) => program.owner(Rank(stream)).0,
            Source::Schedule(_) => stream,
        }
    }

    /// The number of a message among all: what the replay of a program calls it by, and of a schedule the operation.
    fn number(&self, slot: u32) -> u32 {
        match self.source {
            Source::Program(_) => slot,
            Source::Schedule(sends) => sends.number(slot),
        }
    }

    fn flight(&mut self, slot: u32) -> &mut Flight {
        let number = self.number(slot);
        &mut self.flights[number as usize]
    }

    /// What calls need of a message, if they are kept.
    fn movement(&mut self, slot: u32) -> Option<&mut Move> {
        let number = self.number(slot);
        self.moves.get_mut(number as usize)
    }

    fn stretch(&mut self, rank: u32, (start, end): (f64, f64), activity: Activity, sends: Side) {
        if end > start
            && let Some(journal) = self.ranks.get_mut(rank as usize)
        {
            journal.times[activity as usize] += end - start;
            if self.keeps.stretches {
                let code = (activity as u64) << 1 | u64::from(sends == Side::Sender);
                journal.stretches.push((nanos(start), nanos(end)), code);
            }
        }
    }

    fn call(&mut self, rank: u32, function: Function, start: f64, end: f64) {
        if !self.keeps_calls || end <= start {
            return;
        }
        let Some(journal) = self.ranks.get_mut(rank as usize) else { return };
        if let Some((before, start, end)) = journal.open.replace((function, start, end)) {
            journal.calls.push((nanos(start), nanos(end)), before.code());
        }
    }

    /// A sender was held: inside its send if that is the call that just ended, else in a wait.
    fn held_call(&mut self, rank: u32, start: f64, end: f64) {
        if !self.keeps_calls {
            return;
        }
        match self.ranks.get_mut(rank as usize).and_then(|journal| journal.open.as_mut()) {
            Some((Function::Send, _, ended)) if *ended == start => *ended = end,
            _ => self.call(rank, Function::Wait, start, end),
        }
    }
}

/// Who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

impl Function {
    fn code(self) -> u64 {
        match self {
            Function::Send => 0,
            Function::Isend => 1,
            Function::Recv => 2,
            Function::Wait => 3,
            Function::Collective(op) => 4 + op as u64,
        }
    }

    fn of_code(code: u64) -> Function {
        match code {
            0 => Function::Send,
            1 => Function::Isend,
            2 => Function::Recv,
            3 => Function::Wait,
            op => Function::Collective(CollectiveOp::ALL[op as usize - 4]),
        }
    }
}

/// The operation of each execution of a collective.
pub(super) fn ops_of_instances(program: &Program) -> Vec<CollectiveOp> {
    let mut ops = vec![CollectiveOp::Barrier; program.instances().len()];
    if ops.is_empty() {
        return ops;
    }
    for rank in (0..program.ranks() as u32).map(Rank) {
        for (_, op) in program.ops(rank) {
            if let Op::Collective { call, instance } = op {
                ops[instance as usize] = program.calls()[call as usize].op;
            }
        }
    }
    ops
}

fn nanos(time: f64) -> u64 {
    time.round() as u64
}

fn whole(nanos: u64) -> Time {
    Time::from_nanos(nanos as f64)
}

impl Observer for Journal<'_> {
    fn computed(&mut self, rank: u32, start: f64, end: f64) {
        self.stretch(rank, (start, end), Activity::Compute, Side::Receiver);
    }

    fn sent(&mut self, rank: u32, slot: u32, sent: Sent) {
        let Sent { class, call, start, end, arrival } = sent;
        self.stretch(rank, (call, start), Activity::Overhead, Side::Sender);
        self.stretch(rank, (start, end), Activity::Overhead, Side::Sender);
        let immediate = match self.source {
            Source::Program(program) => {
                self.origins[slot as usize] = Origin { from: rank, class };
                program.classes()[class as usize].mode.immediate
            }
            Source::Schedule(_) => false,
        };
        let owner = self.owner(rank);
        let (dst, size, _) = self.ends(owner, slot);
        let journal = &mut self.ranks[owner as usize];
        journal.sends.push(slot);
        journal.sent.add(size);
        self.ranks[dst.index()].received.add(size);
        let flight = self.flight(slot);
        *flight = Flight { call, asked: end, arrival, received: flight.received };
        if let Some(movement) = self.movement(slot) {
            movement.start = end;
        }
        self.call(rank, if immediate { Function::Isend } else { Function::Send }, call, end);
    }

    fn moved(&mut self, slot: u32, start: f64, arrival: f64) {
        let flight = self.flight(slot);
        flight.asked = start;
        flight.arrival = arrival;
        if let Some(movement) = self.movement(slot) {
            movement.start = start;
        }
    }

    fn queued(&mut self, slot: u32, asked: f64) {
        self.flight(slot).asked = asked;
    }

    fn posted(&mut self, slot: u32, time: f64) {
        if let Some(movement) = self.movement(slot) {
            movement.posted = time;
        }
        // In a schedule a receive may come after the message has been taken from the network.
        let flight = self.flight(slot);
        if time > flight.received {
            flight.received = time;
        }
    }

    fn marked(&mut self, rank: u32, event: u32, time: f64) {
        if self.keeps.calls {
            self.ranks[rank as usize].marks.push((nanos(time), nanos(time)), u64::from(event));
        }
    }

    fn held(&mut self, rank: u32, slot: u32, start: f64, end: f64) {
        let begun = self.flight(slot).asked.clamp(start, end);
        self.stretch(rank, (start, begun), Activity::LateReceiver, Side::Sender);
        self.stretch(rank, (begun, end), Activity::Transfer, Side::Sender);
        self.held_call(rank, start, end);
    }

    fn received(&mut self, rank: u32, slot: u32, received: Received) {
        let Received { call, before, taken, end } = received;
        self.stretch(rank, (call, before), Activity::Overhead, Side::Receiver);
        let owner = self.owner(rank);
        if self.keeps.receipts && (owner != rank || matches!(self.source, Source::Schedule(_))) {
            self.ranks[owner as usize].receipts.push(slot);
        }
        let sent = self.flight(slot).asked.clamp(before, taken.max(before));
        self.stretch(rank, (before, sent), Activity::LateSender, Side::Receiver);
        self.stretch(rank, (sent, taken), Activity::Transfer, Side::Receiver);
        self.stretch(rank, (taken, end), Activity::Overhead, Side::Receiver);
        self.flight(slot).received = end;
        let mut function = Function::Wait;
        if let Some(movement) = self.movement(slot)
            && movement.posted.is_nan()
        {
            function = Function::Recv;
            movement.posted = call;
        }
        self.call(rank, function, call, end);
    }

    fn accessed(&mut self, rank: u32, accessed: Accessed) {
        let Accessed { call, came, end, .. } = accessed;
        self.stretch(rank, (call, came), Activity::Overhead, Side::Sender);
        self.stretch(rank, (came, end), Activity::Transfer, Side::Receiver);
    }

    fn gathered(&mut self, rank: u32, gathered: Gathered) {
        let Gathered { instance, call, came, last, end, .. } = gathered;
        let last = last.clamp(came, end);
        self.stretch(rank, (call, came), Activity::Overhead, Side::Receiver);
        self.stretch(rank, (came, last), Activity::CollectiveWait, Side::Receiver);
        self.stretch(rank, (last, end), Activity::Collective, Side::Receiver);
        if self.keeps_calls {
            self.call(rank, Function::Collective(self.ops[instance as usize]), call, end);
        }
    }
}
