//! Paraver traces: `.prv` (records), `.pcf` (meaning of the numbers), `.row` (names of lines).
//!
//! This is the format of Extrae and Dimemas: a header with nodes, processors and tasks; one line for each state, event and
//! message, sorted by time; times in nanoseconds, numbers from 1. A rank is a task with one thread. States are Extrae's
//! numbers:
//!
//! | activity | state |
//! |---|---|
//! | compute | 1 Running |
//! | late sender; transfer, at the receiver | 3 Waiting a message |
//! | late receiver; transfer, at a sender that is held | 4 Blocking Send |
//! | collective wait, collective | 13 Group Communication |
//! | overhead | 26 Startup latency |
//!
//! A message's logical times are those of the calls, its physical times those of the first and last byte. Events are those
//! of the trace. If the trace does not mark calls of MPI, the calls of the replay replace them, collective calls with their
//! bytes, root and communicator (`details`).

mod details;
mod layout;
mod legend;

use std::io::{self, Write};

use super::{
    Replayed, nanos,
    text::{ExportText, ShortText},
};
use details::Details;
use flowcast_observers::journal::{Function, Mark, MessageTimes, SliceKind, WholeSpan};
use flowcast_program::paraver_events::{self, COLLECTIVE, MPI_EVENTS, POINT_TO_POINT, value_of};
use flowcast_replay::timeline::Activity;
use flowcast_traffic::queues::{KeyQueue, NEVER, member_of, tournament::Tournament};
use flowcast_units::Rank;
use layout::ProcessorLayout;
pub use legend::pcf;

/// Time at which the trace was written, in the header's format: `dd/mm/yyyy at hh:mm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(pub String);

/// Writes the records.
///
/// # Errors
/// Errors of `out`, and a replay of 2^61 nanoseconds or 2^63 bytes.
pub fn prv(replayed: Replayed<'_>, stamp: &Stamp, out: &mut dyn Write) -> io::Result<()> {
    replayed.outcome.in_nanos()?;
    let layout = ProcessorLayout::new(replayed);
    layout.write_header(replayed, stamp, out)?;
    let places = layout.places();
    let mut lines: Vec<_> = replayed
        .ranks()
        .map(|rank| rank_records(replayed, rank))
        .collect();
    let mut order = Tournament::new(lines.len() as u32);
    for (rank, line) in (0..).zip(&lines) {
        order.set(rank, line.key(rank));
    }
    let mut text = ExportText::new(out);
    while let Some(key) = order.first() {
        let rank = member_of(key);
        let line = &mut lines[rank as usize];
        line.write(key_kind(key), rank, &places, &mut text);
        text.end_line()?;
        order.set(rank, line.key(rank));
    }
    text.finish()
}

/// Writes the names of processors, nodes, tasks and threads.
///
/// # Errors
/// Errors of `out`.
pub fn row(replayed: Replayed<'_>, out: &mut dyn Write) -> io::Result<()> {
    ProcessorLayout::new(replayed).write_names(replayed.trace.ranks(), out)
}

/// Kinds of records, in the order in which records of equal time are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordKind {
    State,
    Call,
    Mark,
    Message,
}

impl RecordKind {
    const ALL: [RecordKind; 4] = [
        RecordKind::State,
        RecordKind::Call,
        RecordKind::Mark,
        RecordKind::Message,
    ];
}

/// Position of a record's kind in its key: below the time and above the rank.
const KIND_SHIFT: u32 = 32;

/// Returns the kind of a key.
fn key_kind(key: u128) -> RecordKind {
    RecordKind::ALL[(key >> KIND_SHIFT) as usize % RecordKind::ALL.len()]
}

/// Records in the order of their times. The first is read ahead.
struct Sequence<I: Iterator> {
    items: I,
    first: Option<I::Item>,
}

impl<I: Iterator> Sequence<I> {
    fn new(mut items: I) -> Sequence<I> {
        Sequence {
            first: items.next(),
            items,
        }
    }

    fn next(&mut self) -> Option<I::Item> {
        std::mem::replace(&mut self.first, self.items.next())
    }

    fn next_if(&mut self, is_meant: impl Fn(&I::Item) -> bool) -> Option<I::Item> {
        if self.first.as_ref().is_some_and(is_meant) {
            self.next()
        } else {
            None
        }
    }
}

/// Remaining records of one rank.
struct RankRecords<S: Iterator, C: Iterator, M: Iterator, T: Iterator, D> {
    states: Sequence<S>,
    calls: Sequence<C>,
    /// `true` if the start of the first call is written.
    is_inside: bool,
    /// Details of the remaining collective calls.
    details: D,
    marks: Sequence<M>,
    messages: Sequence<T>,
    /// Start of the next record, indexed by kind; above all times if there is none.
    begins: [u64; 4],
}

fn rank_records<'a>(
    replayed: Replayed<'a>,
    rank: Rank,
) -> RankRecords<
    impl Iterator<Item = WholeSpan<SliceKind>>,
    impl Iterator<Item = WholeSpan<Function>>,
    impl Iterator<Item = Mark>,
    impl Iterator<Item = MessageTimes>,
    impl Iterator<Item = Details<'a>>,
> {
    let journal = replayed.journal;
    let mut records = RankRecords {
        states: Sequence::new(journal.whole_slices(rank)),
        calls: Sequence::new(journal.whole_calls(rank)),
        is_inside: false,
        details: details::of_rank(replayed, rank),
        marks: Sequence::new(journal.marks(rank)),
        messages: Sequence::new(journal.sent(rank).map(|(_, times)| times)),
        begins: [u64::MAX; 4],
    };
    RecordKind::ALL
        .into_iter()
        .for_each(|kind| records.look(kind));
    records
}

impl<'a, S, C, M, T, D> RankRecords<S, C, M, T, D>
where
    S: Iterator<Item = WholeSpan<SliceKind>>,
    C: Iterator<Item = WholeSpan<Function>>,
    M: Iterator<Item = Mark>,
    T: Iterator<Item = MessageTimes>,
    D: Iterator<Item = Details<'a>>,
{
    /// Time and kind of the next record, and the rank. The smallest key of all ranks is the next record.
    #[inline(always)]
    fn key(&self, rank: u32) -> u128 {
        let (mut kind, mut time) = (0, self.begins[0]);
        for other in 1..RecordKind::ALL.len() {
            if self.begins[other] < time {
                (kind, time) = (other, self.begins[other]);
            }
        }
        if time == u64::MAX {
            return NEVER;
        }
        u128::from(time) << 64 | (kind as u128) << KIND_SHIFT | u128::from(rank)
    }

    /// Updates the start of the next record of a kind.
    #[inline(always)]
    fn look(&mut self, kind: RecordKind) {
        use RecordKind::*;
        let time = match kind {
            State => self.states.first.as_ref().map(|state| state.start),
            Call if self.is_inside => self.calls.first.as_ref().map(|call| call.end),
            Call => self.calls.first.as_ref().map(|call| call.start),
            Mark => self.marks.first.as_ref().map(|mark| nanos(mark.time)),
            Message => self
                .messages
                .first
                .as_ref()
                .map(|times| nanos(times.span.sent)),
        };
        self.begins[kind as usize] = time.unwrap_or(u64::MAX);
    }

    /// Writes the next record of a kind.
    #[inline(always)]
    fn write(
        &mut self,
        kind: RecordKind,
        rank: u32,
        places: &[ShortText],
        text: &mut ExportText<'_>,
    ) {
        use RecordKind::*;
        let place = &places[rank as usize];
        match kind {
            State => self.write_state(place, text),
            Call => self.write_call(place, text),
            Mark => self.write_marks(place, text),
            Message => self.write_message(place, places, text),
        }
        self.look(kind);
    }

    #[inline(always)]
    fn write_state(&mut self, place: &ShortText, text: &mut ExportText<'_>) {
        let Some(WholeSpan { start, end, what }) = self.states.next() else {
            return;
        };
        text.short_beginning_with(b'1', place)
            .number_and(start, b':')
            .number_and(end, b':')
            .number(u64::from(state(what)));
    }

    #[inline(always)]
    fn write_call(&mut self, place: &ShortText, text: &mut ExportText<'_>) {
        let Some(WholeSpan {
            start,
            end,
            what: function,
        }) = self.calls.first
        else {
            return;
        };
        let (kind, value) = event_of(function);
        self.is_inside = !self.is_inside;
        if !self.is_inside {
            self.calls.next();
            begin_event(end, place, text);
            return write_event(kind, 0, text);
        }
        begin_event(start, place, text);
        write_event(kind, value, text);
        if matches!(function, Function::Collective(_))
            && let Some(details) = self.details.next()
        {
            text.put(&details.to_string());
        }
    }

    /// Writes marks of the same time on one line. A mark of a call begins a new line: marks on its line describe the call
    /// for its whole duration.
    #[inline(never)]
    fn write_marks(&mut self, place: &ShortText, text: &mut ExportText<'_>) {
        let Some(Mark { time, kind, value }) = self.marks.next() else {
            return;
        };
        begin_event(nanos(time), place, text);
        write_event(kind, value, text);
        while let Some(Mark { kind, value, .. }) = self
            .marks
            .next_if(|next| nanos(next.time) == nanos(time) && !MPI_EVENTS.contains(&next.kind))
        {
            write_event(kind, value, text);
        }
    }

    #[inline(always)]
    fn write_message(
        &mut self,
        place: &ShortText,
        places: &[ShortText],
        text: &mut ExportText<'_>,
    ) {
        let Some(MessageTimes {
            span,
            moved,
            posted,
        }) = self.messages.next()
        else {
            return;
        };
        text.short_beginning_with(b'3', place)
            .number_and(nanos(span.sent), b':')
            .number(nanos(moved))
            .short_behind_first(&places[span.dst])
            .number_and(nanos(posted), b':')
            .number_and(nanos(span.arrived), b':')
            .number_and(span.size.0, b':')
            .signed(i64::from(span.tag));
    }
}

#[inline(always)]
fn begin_event(time: u64, place: &ShortText, text: &mut ExportText<'_>) {
    text.short_beginning_with(b'2', place).number(time);
}

#[inline(always)]
fn write_event(kind: i64, value: i64, text: &mut ExportText<'_>) {
    text.sign(b':').signed(kind).sign(b':').signed(value);
}

/// Returns the state number of a slice.
fn state(slice: SliceKind) -> u32 {
    use Activity::*;
    match slice.activity {
        Compute => 1,
        Transfer if slice.is_sender => 4,
        LateSender | Transfer => 3,
        LateReceiver => 4,
        ProcessorWait => 9,
        CollectiveWait | Collective => 13,
        Overhead | InterfaceWait => 26,
    }
}

/// Type and value of the event that marks a call, in Extrae's numbering.
fn event_of(function: Function) -> (i64, i64) {
    use Function::*;
    match function {
        Send => (POINT_TO_POINT, 1),
        Recv => (POINT_TO_POINT, 2),
        // No reader uses Extrae's number of a start, so it becomes an event of the started operation.
        Isend | Start => (POINT_TO_POINT, 3),
        Wait => (POINT_TO_POINT, 5),
        Sendrecv => (POINT_TO_POINT, 41),
        Collective(op) | NonBlocking(op) => (COLLECTIVE, value_of(op)),
        Named(function) => paraver_events::event_of(function),
    }
}
