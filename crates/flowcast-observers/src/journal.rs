//! Events of a replay, recorded for files and timelines.
//!
//! A journal keeps only the requested data ([`JournalContents`]). A message takes 32 bytes, 40 in a program, and 16 more for
//! Paraver. Slices, calls and events are stored as differences of whole nanoseconds in packed blocks. A trace of 10 million
//! messages therefore fits into 1.5 GiB, including the program or schedule. Segments, from which the page's timeline is
//! made, are exact and take some fifty bytes for each message. The slices and calls of a rank do not include the work of the
//! streams of its non-blocking collectives, but the messages of these streams count as the rank's.

pub mod call_tallies;
mod observed;
pub(crate) mod own_calls;

use super::flights::{Flight, FlightColumns, Flights, Source};
use call_tallies::{CallKind, CallTally, OpenCall, Tallies};
use flowcast_program::{
    expand::operation_of,
    packed::{Packed, PackedNumbers},
    paraver_events::{FunctionNumber, MPI_EVENTS},
    program::{MessageClass, Program},
    slot::Slot,
};
use flowcast_replay::{
    loggops::{message::ScheduleMessage, sends::Sends},
    timeline::{Activity, MessageSpan, Segment, Timeline, busiest, merged},
};
use flowcast_units::{Bytes, CollectiveOp, Rank, Time};
use own_calls::OwnCalls;

/// Activity of a rank in an interval of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// Activity and times, in whole nanoseconds.
    pub segment: Segment,
    /// `true` if the rank waits for its own message to leave, `false` if it waits for one to arrive.
    pub is_sender: bool,
}

/// A function of MPI that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    /// A blocking send, `MPI_Send`
    Send,
    /// A non-blocking send, `MPI_Isend`
    Isend,
    /// A blocking receive, `MPI_Recv`
    Recv,
    /// A wait for requests, `MPI_Wait` and its variants
    Wait,
    /// A send and a receive in one, `MPI_Sendrecv`
    Sendrecv,
    /// The start of a persistent send, `MPI_Start` and `MPI_Startall`
    Start,
    /// A collective operation, from its call to its return.
    Collective(CollectiveOp),
    /// A non-blocking collective operation, which a later call waits for.
    NonBlocking(CollectiveOp),
    /// A function by the name in the trace.
    Named(FunctionNumber),
}

/// A call from start to end, in whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// Operation that the rank called.
    pub function: Function,
    /// Time of the call, in whole nanoseconds.
    pub start: Time,
    /// Time of the return; after the start.
    pub end: Time,
}

/// A slice or a call, with times as integers in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WholeSpan<T> {
    /// Start, in nanoseconds.
    pub start: u64,
    /// End, in nanoseconds; after the start.
    pub end: u64,
    /// Activity or call of the rank.
    pub what: T,
}

/// Kind of a rank's slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceKind {
    /// Activity of the slice.
    pub activity: Activity,
    /// `true` if the rank waits for its own message to leave, `false` if it waits for one to arrive.
    pub is_sender: bool,
}

/// An event of the trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Time at which the program passed the event, in whole nanoseconds.
    pub time: Time,
    /// Type of the event, as the trace numbers it.
    pub kind: i64,
    /// Value of the event, as the trace gives it.
    pub value: i64,
}

/// Sender, receiver and times of a message, not rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageTimes {
    /// Sender, receiver, size and tag; times at which the message was sent, its last byte arrived, and the receiver's call
    /// returned.
    pub span: MessageSpan,
    /// Time at which the message began to move.
    pub moved: Time,
    /// Time at which its receive was called.
    pub posted: Time,
}

/// Data kept in addition to the times of messages and the sums of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalContents {
    /// Activities of ranks over time.
    pub slices: bool,
    /// Calls and events, times at which messages began to move, and times at which their receives were posted.
    pub calls: bool,
    /// Order in which ranks received messages.
    pub receipts: bool,
    /// Exact activities of ranks over time, and their calls by kind, for timelines.
    pub timeline: bool,
}

impl JournalContents {
    /// All data that files for other programs need.
    pub const FILES: JournalContents = JournalContents {
        slices: true,
        calls: true,
        receipts: true,
        timeline: false,
    };
    /// Data that timelines need.
    pub const TIMELINE: JournalContents = JournalContents {
        slices: false,
        calls: false,
        receipts: false,
        timeline: true,
    };
}

/// Messages and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallTraffic {
    /// Number of messages, each counted once.
    pub messages: u64,
    /// Sum of their sizes, limited to 2^64 - 1 bytes.
    pub bytes: Bytes,
}

impl CallTraffic {
    fn add(&mut self, size: Bytes) {
        self.messages += 1;
        self.bytes = Bytes(self.bytes.0.saturating_add(size.0));
    }
}

#[derive(Debug, Clone, Default)]
struct RankJournal {
    slices: Packed,
    calls: Packed,
    /// The last call, which may still be extended.
    open: Option<OpenCall>,
    /// `true` if the last event names the last call.
    is_named: bool,
    marks: Packed,
    sends: PackedNumbers,
    /// Messages received without a receive of the rank itself: in a schedule all messages, in a program those of the streams
    /// of its non-blocking collectives.
    receipts: PackedNumbers,
    times: [Time; Activity::ALL.len()],
    /// Time up to which `times` is complete.
    reached: Time,
    sent: CallTraffic,
    received: CallTraffic,
}

/// An observer that records the events of a replay.
pub struct ReplayJournal<'a> {
    keeps: JournalContents,
    keeps_calls: bool,
    /// Calls of the program; empty if calls are not kept.
    own: OwnCalls,
    ranks: Vec<RankJournal>,
    flights: Flights<'a>,
    /// Segments, indexed by rank; empty if no timeline is kept.
    segments: Vec<Vec<Segment>>,
    /// Finished calls; empty if no timeline is kept.
    tallies: Tallies,
}

impl<'a> ReplayJournal<'a> {
    /// Creates a journal for the replay of this program. Calls are kept if the trace has no events that mark them.
    pub fn new(program: &'a Program, keeps: JournalContents) -> ReplayJournal<'a> {
        let is_marked = || {
            program
                .events()
                .iter()
                .any(|(kind, _)| MPI_EVENTS.contains(kind))
        };
        let keeps_calls = keeps.calls && !is_marked();
        let own = if keeps_calls || keeps.timeline {
            OwnCalls::new(program)
        } else {
            OwnCalls::default()
        };
        ReplayJournal {
            own,
            keeps_calls,
            ..ReplayJournal::from_source(Source::Program(program), keeps)
        }
    }

    /// Creates a journal for the replay of a schedule with these messages.
    pub fn of_schedule(sends: &'a Sends<'a>, keeps: JournalContents) -> ReplayJournal<'a> {
        ReplayJournal::from_source(Source::Schedule(sends), keeps)
    }

    fn from_source(source: Source<'a>, keeps: JournalContents) -> ReplayJournal<'a> {
        let ranks = if keeps.timeline { source.ranks() } else { 0 };
        let columns = FlightColumns {
            moves: keeps.calls || keeps.timeline,
        };
        ReplayJournal {
            keeps,
            keeps_calls: keeps.calls,
            own: OwnCalls::default(),
            ranks: vec![RankJournal::default(); source.ranks()],
            flights: Flights::new(source, columns),
            segments: Rank::all(ranks)
                .map(|rank| Vec::with_capacity(source.segments(rank)))
                .collect(),
            tallies: Tallies::default(),
        }
    }

    /// Slices of a rank in time order; in the gaps the rank is idle.
    pub fn slices(&self, rank: Rank) -> impl Iterator<Item = Slice> + '_ {
        self.whole_slices(rank)
            .map(|WholeSpan { start, end, what }| Slice {
                segment: Segment {
                    start: whole(start),
                    end: whole(end),
                    activity: what.activity,
                },
                is_sender: what.is_sender,
            })
    }

    /// Slices of a rank in time order, as integers in nanoseconds.
    pub fn whole_slices(&self, rank: Rank) -> impl Iterator<Item = WholeSpan<SliceKind>> + '_ {
        let spans = self.ranks[rank]
            .slices
            .spans()
            .filter(|(start, end, _)| end > start);
        spans.map(|(start, end, code)| WholeSpan {
            start,
            end,
            what: SliceKind {
                activity: Activity::ALL[code as usize >> 1],
                is_sender: code & 1 == 1,
            },
        })
    }

    /// Calls of a rank in time order; none if the trace's own events mark them.
    pub fn calls(&self, rank: Rank) -> impl Iterator<Item = Call> + '_ {
        self.whole_calls(rank)
            .map(|WholeSpan { start, end, what }| Call {
                function: what,
                start: whole(start),
                end: whole(end),
            })
    }

    /// Calls of a rank in time order, as integers in nanoseconds.
    pub fn whole_calls(&self, rank: Rank) -> impl Iterator<Item = WholeSpan<Function>> + '_ {
        let journal = &self.ranks[rank];
        let open = journal
            .open
            .filter(|open| self.keeps_calls && open.end > open.start);
        let open = open.and_then(
            |OpenCall {
                 kind, start, end, ..
             }| {
                Some((nanos(start), nanos(end), kind.function()?.code()))
                    .filter(|(start, end, _)| end > start)
            },
        );
        let spans = journal.calls.spans().chain(open);
        spans.map(|(start, end, code)| WholeSpan {
            start,
            end,
            what: Function::of_code(code),
        })
    }

    /// Events of the trace that a rank passed, in time order.
    pub fn marks(&self, rank: Rank) -> impl Iterator<Item = Mark> + '_ {
        self.ranks[rank].marks.spans().map(|(time, _, event)| {
            let Source::Program(program) = self.flights.source else {
                unreachable!("a schedule has no events")
            };
            let (kind, value) = program.events()[event as usize];
            Mark {
                time: whole(time),
                kind,
                value,
            }
        })
    }

    /// Messages that a rank sent, in the order of its sends, each with its number.
    pub fn sent(&self, rank: Rank) -> impl Iterator<Item = (u32, MessageTimes)> + '_ {
        let slots = self.ranks[rank].sends.iter().map(Slot);
        self.flights
            .prefetched(slots)
            .map(|slot| self.message_times(slot))
    }

    /// Messages for which a rank posted receives, in the order of posting, each with its number.
    pub fn received(&self, rank: Rank) -> impl Iterator<Item = (u32, MessageTimes)> + '_ {
        let receipts = self.ranks[rank].receipts.iter().map(Slot);
        self.slots(rank)
            .filter(|slot| self.flights.is_sent(*slot))
            .chain(receipts)
            .map(|slot| self.message_times(slot))
    }

    /// Messages and bytes that a rank sent.
    pub fn traffic_sent(&self, rank: Rank) -> CallTraffic {
        self.ranks[rank].sent
    }

    /// Messages and bytes that were sent to a rank.
    pub fn traffic_received(&self, rank: Rank) -> CallTraffic {
        self.ranks[rank].received
    }

    /// Arrival time of the last message; later than the ends of all ranks if no rank waited for it.
    pub fn last_arrival(&self) -> Time {
        self.flights.arrivals().max().unwrap_or_default()
    }

    /// Time that a rank spent in each activity, in the order of [`Activity::ALL`].
    pub fn times(&self, rank: Rank) -> [Time; Activity::ALL.len()] {
        self.ranks[rank].times
    }

    /// Known times of a message, by its slot.
    pub fn flight(&self, slot: Slot) -> Flight {
        self.flights.flight(slot)
    }

    /// Activities of all ranks over time, and their messages; without the ranks' segments if no timeline is kept.
    pub fn timeline(&self) -> Timeline {
        let ranks = || Rank::all(self.ranks.len());
        let messages = ranks()
            .flat_map(|rank| self.sent(rank).map(|(_, times)| times.span))
            .collect();
        Timeline {
            ranks: ranks().map(|rank| self.segments(rank)).collect(),
            messages,
        }
    }

    /// Activities of a rank over time; empty if no timeline is kept.
    pub fn segments(&self, rank: Rank) -> Vec<Segment> {
        let overlaps = matches!(self.flights.source, Source::Schedule(sends) if sends.cpus() > 1);
        let segments = self
            .segments
            .get(rank.index())
            .into_iter()
            .flatten()
            .copied();
        if overlaps {
            busiest(segments)
        } else {
            merged(segments)
        }
    }

    /// Calls `visit` for each message that was sent, in the order in which the times are stored.
    pub fn each_message(&self, mut visit: impl FnMut(Slot, MessageSpan)) {
        if let Source::Schedule(_) = self.flights.source {
            let sends = self
                .ranks
                .iter()
                .flat_map(|rank| rank.sends.iter())
                .map(Slot);
            return sends.for_each(|slot| visit(slot, self.message_times(slot).1.span));
        }
        for to in Rank::all(self.flights.source.streams()) {
            for slot in self.slots(to).filter(|slot| self.flights.is_sent(*slot)) {
                let flight = self.flights.flight(slot);
                let Some(MessageClass { size, tag, .. }) = self.flights.class(slot).copied() else {
                    continue;
                };
                visit(
                    slot,
                    self.times_of(&flight, ScheduleMessage { to, size, tag })
                        .span,
                );
            }
        }
    }

    /// The call that sent a message.
    pub fn send_kind(&self, slot: Slot) -> CallKind {
        let Some(class) = self.flights.class(slot) else {
            return CallKind::Function(Function::Send);
        };
        kind_within(class, self.own.send(slot, class))
    }

    /// All calls by kind, except those of progress streams; empty if no timeline is kept.
    pub fn call_tallies(&self) -> Vec<(CallKind, CallTally)> {
        let mut tallies = self.tallies.clone();
        self.ranks
            .iter()
            .filter_map(|rank| rank.open)
            .for_each(|open| tallies.add(open));
        tallies.into_kinds()
    }

    /// Kind of a call for a message, other than the call that sends it.
    fn kind_for(&self, slot: Slot, function: Function) -> CallKind {
        self.flights
            .class(slot)
            .map_or(CallKind::Function(function), |class| {
                kind_within(class, function)
            })
    }

    /// Messages that a program's rank receives.
    fn slots(&self, rank: Rank) -> impl Iterator<Item = Slot> + use<> {
        let slots = match self.flights.source {
            Source::Program(program) => program.slots(rank),
            Source::Schedule(_) => Slot(0)..Slot(0),
        };
        (slots.start.0..slots.end.0).map(Slot)
    }

    /// Number and times of a message.
    fn message_times(&self, slot: Slot) -> (u32, MessageTimes) {
        let flight = self.flights.flight(slot);
        let times = self.times_of(&flight, self.flights.message(flight.from, slot));
        (self.flights.source.number(slot) as u32, times)
    }

    fn times_of(
        &self,
        flight: &Flight,
        ScheduleMessage { to, size, tag }: ScheduleMessage,
    ) -> MessageTimes {
        let Flight {
            from,
            call,
            start,
            arrival,
            posted,
            received,
            ..
        } = *flight;
        let source = self.flights.source;
        let arrival = arrival.unwrap_or_default();
        let span = MessageSpan {
            src: source.owner(from),
            dst: source.owner(to),
            size,
            tag,
            sent: call.unwrap_or_default(),
            arrived: arrival,
            received: received.unwrap_or(arrival),
        };
        MessageTimes {
            span,
            moved: start.unwrap_or(span.sent),
            posted: posted.unwrap_or(arrival),
        }
    }
}

impl Function {
    /// Name of the function without `MPI_`.
    pub fn name(self) -> &'static str {
        match self {
            Function::Send => "Send",
            Function::Isend => "Isend",
            Function::Recv => "Recv",
            Function::Wait => "Wait",
            Function::Sendrecv => "Sendrecv",
            Function::Start => "Start",
            Function::Collective(op) => op.name(),
            Function::NonBlocking(op) => op.non_blocking_name(),
            Function::Named(function) => function.name(),
        }
    }

    pub(crate) fn code(self) -> u64 {
        match self {
            Function::Send => 0,
            Function::Isend => 1,
            Function::Recv => 2,
            Function::Wait => 3,
            Function::Sendrecv => 4,
            Function::Start => 5,
            Function::Collective(op) => 6 + op as u64,
            Function::NonBlocking(op) => (6 + CollectiveOp::ALL.len() + op as usize) as u64,
            Function::Named(function) => NAMED + u64::from(function.get()),
        }
    }

    pub(crate) fn of_code(code: u64) -> Function {
        match code {
            0 => Function::Send,
            1 => Function::Isend,
            2 => Function::Recv,
            3 => Function::Wait,
            4 => Function::Sendrecv,
            5 => Function::Start,
            named if named > NAMED => {
                FunctionNumber::new((named - NAMED) as u16).map_or(Function::Wait, Function::Named)
            }
            op => match CollectiveOp::ALL.get(op as usize - 6) {
                Some(op) => Function::Collective(*op),
                None => Function::NonBlocking(
                    CollectiveOp::ALL[op as usize - 6 - CollectiveOp::ALL.len()],
                ),
            },
        }
    }
}

/// Codes of named functions are above this one, after those of all other functions.
pub(crate) const NAMED: u64 = 5 + 2 * CollectiveOp::ALL.len() as u64;

/// Kind of a call for a message: within the operation that the message's class carries out, if there is one.
fn kind_within(class: &MessageClass, function: Function) -> CallKind {
    operation_of(class).map_or(CallKind::Function(function), |op| {
        CallKind::Within(op, function)
    })
}

/// Rounds to whole nanoseconds; a half is rounded up.
#[inline]
pub fn nanos(time: Time) -> u64 {
    let nanos = time.as_nanos();
    // The same result as `round`, without a call of the C library: the difference is exact.
    let whole = nanos as u64;
    whole.saturating_add(u64::from(nanos - whole as f64 >= 0.5))
}

fn whole(nanos: u64) -> Time {
    Time::from_nanos(nanos as f64)
}
