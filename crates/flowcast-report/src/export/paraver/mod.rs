//! Paraver traces: `.prv` (records), `.pcf` (what their numbers mean), `.row` (names of lines).
//!
//! The form is that of Extrae and Dimemas: header with nodes, processors and tasks; one line for each state, event
//! and message, sorted by time; times in nanoseconds, numbers from 1. A rank is a task with one thread. States are
//! Extrae's numbers:
//!
//! | activity | state |
//! |---|---|
//! | compute | 1 Running |
//! | late sender; transfer, at the receiver | 3 Waiting a message |
//! | late receiver; transfer, at a sender that is held | 4 Blocking Send |
//! | collective wait, collective | 13 Group Communication |
//! | overhead | 26 Startup latency |
//!
//! A message's logical times are those of the calls, its physical times those of the first and last byte. Events are
//! those of the trace; where it marks no calls of MPI, the calls of the replay stand in for them, collective ones with
//! their bytes, root and communicator (`details`).

mod details;
mod layout;
mod legend;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    io::{self, Write},
};

use super::{Replayed, nanos, text::Text};
use details::Details;
use flowcast_replay::{
    journal::{Call, Function, MPI_EVENTS, Mark, MessageTimes, Slice},
    timeline::Activity,
};
use flowcast_trace::read::paraver_events::{COLLECTIVE, value_of};
use flowcast_units::Rank;
use layout::{Layout, Place};
pub use legend::{function_name, pcf};

/// When the trace was written, as the header wants it: `dd/mm/yyyy at hh:mm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(pub String);

/// Writes the records.
///
/// # Errors
/// Those of `out`.
pub fn prv(replayed: Replayed<'_>, stamp: &Stamp, out: &mut dyn Write) -> io::Result<()> {
    let layout = Layout::new(replayed);
    layout.write_header(replayed, stamp, out)?;
    let mut lines: Vec<Line<'_>> = replayed
        .ranks()
        .map(|rank| Line::new(replayed, &layout, rank))
        .collect();
    let mut next: BinaryHeap<Reverse<(Next, Rank)>> = lines
        .iter()
        .filter_map(|line: &Line<'_>| line.next().map(|next| Reverse((next, line.rank))))
        .collect();
    let mut text = Text::new(out);
    while let Some(mut least) = next.peek_mut() {
        let Reverse((Next { kind, .. }, rank)) = *least;
        let line = &mut lines[rank];
        line.write(kind, &layout, &mut text)?;
        match line.next() {
            Some(after) => least.0.0 = after,
            None => {
                PeekMut::pop(least);
            }
        }
    }
    text.finish()
}

/// Writes the names of processors, nodes, tasks and threads.
///
/// # Errors
/// Those of `out`.
pub fn row(replayed: Replayed<'_>, out: &mut dyn Write) -> io::Result<()> {
    Layout::new(replayed).write_names(replayed.trace.ranks(), out)
}

/// Kinds of records, in the order in which those of equal time are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    State,
    Call,
    Mark,
    Message,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::State, Kind::Call, Kind::Mark, Kind::Message];
}

/// What a rank writes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    time: u64,
    kind: Kind,
}

/// Records in the order of their times, of which the first is known.
struct Sequence<'a, T> {
    items: Box<dyn Iterator<Item = T> + 'a>,
    first: Option<T>,
}

impl<'a, T> Sequence<'a, T> {
    fn new(items: impl Iterator<Item = T> + 'a) -> Sequence<'a, T> {
        let mut items: Box<dyn Iterator<Item = T> + 'a> = Box::new(items);
        Sequence {
            first: items.next(),
            items,
        }
    }

    fn next(&mut self) -> Option<T> {
        std::mem::replace(&mut self.first, self.items.next())
    }

    fn next_if(&mut self, is_meant: impl Fn(&T) -> bool) -> Option<T> {
        if self.first.as_ref().is_some_and(is_meant) {
            self.next()
        } else {
            None
        }
    }
}

/// The records of one rank that are still to be written.
struct Line<'a> {
    rank: Rank,
    /// Where they stand, as the records say it.
    place: String,
    states: Sequence<'a, Slice>,
    calls: Sequence<'a, CallEvent<'a>>,
    marks: Sequence<'a, Mark>,
    messages: Sequence<'a, MessageTimes>,
    /// By kind: when the next record begins, and above all times if there is none.
    begins: [u64; 4],
}

/// The begin or the end of a call.
struct CallEvent<'a> {
    time: u64,
    kind: i64,
    value: i64,
    details: Option<Details<'a>>,
}

impl<'a> Line<'a> {
    fn new(replayed: Replayed<'a>, layout: &Layout, rank: Rank) -> Line<'a> {
        let journal = replayed.journal;
        let mut details = details::of_rank(replayed, rank);
        let mut line = Line {
            rank,
            place: layout.place(rank).to_string(),
            states: Sequence::new(journal.slices(rank)),
            calls: Sequence::new(journal.calls(rank).flat_map(move |call| {
                let is_collective = matches!(call.function, Function::Collective(_));
                call_events(call, if is_collective { details.next() } else { None })
            })),
            marks: Sequence::new(journal.marks(rank)),
            messages: Sequence::new(journal.sent(rank).map(|(_, times)| times)),
            begins: [u64::MAX; 4],
        };
        Kind::ALL.into_iter().for_each(|kind| line.look(kind));
        line
    }

    /// What comes next of all kinds.
    fn next(&self) -> Option<Next> {
        let kinds = Kind::ALL.into_iter().zip(self.begins);
        let next = kinds.map(|(kind, time)| Next { time, kind }).min()?;
        (next.time < u64::MAX).then_some(next)
    }

    /// Notes when the next record of a kind begins.
    fn look(&mut self, kind: Kind) {
        let time = match kind {
            Kind::State => self
                .states
                .first
                .as_ref()
                .map(|slice| nanos(slice.segment.start)),
            Kind::Call => self.calls.first.as_ref().map(|event| event.time),
            Kind::Mark => self.marks.first.as_ref().map(|mark| nanos(mark.time)),
            Kind::Message => self
                .messages
                .first
                .as_ref()
                .map(|times| nanos(times.span.sent)),
        };
        self.begins[kind as usize] = time.unwrap_or(u64::MAX);
    }

    /// Writes the next record of a kind.
    fn write(&mut self, kind: Kind, layout: &Layout, text: &mut Text<'_>) -> io::Result<()> {
        match kind {
            Kind::State => self.write_state(text),
            Kind::Call => self.write_call(text),
            Kind::Mark => self.write_marks(text),
            Kind::Message => self.write_message(layout, text),
        }
        self.look(kind);
        text.end_line()
    }

    fn write_state(&mut self, text: &mut Text<'_>) {
        let Some(slice @ Slice { segment, .. }) = self.states.next() else {
            return;
        };
        text.put("1:").put(&self.place);
        for number in [
            nanos(segment.start),
            nanos(segment.end),
            u64::from(state(slice)),
        ] {
            text.sign(b':').number(number);
        }
    }

    fn write_call(&mut self, text: &mut Text<'_>) {
        let Some(CallEvent {
            time,
            kind,
            value,
            details,
        }) = self.calls.next()
        else {
            return;
        };
        self.begin_event(time, text);
        write_event(kind, value, text);
        if let Some(details) = details {
            text.put(&details.to_string());
        }
    }

    /// Marks of the same time stand on one line: what stands beside a call tells about it as long as it does.
    fn write_marks(&mut self, text: &mut Text<'_>) {
        let Some(Mark { time, kind, value }) = self.marks.next() else {
            return;
        };
        self.begin_event(nanos(time), text);
        write_event(kind, value, text);
        let beside =
            |next: &Mark| nanos(next.time) == nanos(time) && !MPI_EVENTS.contains(&next.kind);
        while let Some(Mark { kind, value, .. }) = self.marks.next_if(beside) {
            write_event(kind, value, text);
        }
    }

    fn begin_event(&self, time: u64, text: &mut Text<'_>) {
        text.put("2:").put(&self.place).sign(b':').number(time);
    }

    fn write_message(&mut self, layout: &Layout, text: &mut Text<'_>) {
        let Some(MessageTimes {
            span,
            moved,
            posted,
        }) = self.messages.next()
        else {
            return;
        };
        let Place { cpu, task } = layout.place(span.dst);
        text.put("3:").put(&self.place);
        for number in [nanos(span.sent), nanos(moved), cpu] {
            text.sign(b':').number(number);
        }
        text.put(":1:").number(u64::from(task)).put(":1");
        for number in [nanos(posted), nanos(span.arrived), span.size.0] {
            text.sign(b':').number(number);
        }
        text.sign(b':').signed(i64::from(span.tag));
    }
}

fn write_event(kind: i64, value: i64, text: &mut Text<'_>) {
    text.sign(b':').signed(kind).sign(b':').signed(value);
}

/// The number of a slice's state.
fn state(slice: Slice) -> u32 {
    match slice.segment.activity {
        Activity::Compute => 1,
        Activity::Transfer if slice.is_sender => 4,
        Activity::LateSender | Activity::Transfer => 3,
        Activity::LateReceiver => 4,
        Activity::ProcessorWait => 9,
        Activity::CollectiveWait | Activity::Collective => 13,
        Activity::Overhead | Activity::InterfaceWait => 26,
    }
}

fn call_events(call: Call, details: Option<Details<'_>>) -> [CallEvent<'_>; 2] {
    let (kind, value, _) = event_of(call.function);
    let begin = CallEvent {
        time: nanos(call.start),
        kind,
        value,
        details,
    };
    [
        begin,
        CallEvent {
            time: nanos(call.end),
            kind,
            value: 0,
            details: None,
        },
    ]
}

const POINT_TO_POINT: i64 = 50_000_001;

/// The name of a function without `MPI_`.
pub fn mpi_name(function: Function) -> &'static str {
    event_of(function).2
}

/// Type, value and name of the event that marks a call, as Extrae numbers them.
fn event_of(function: Function) -> (i64, i64, &'static str) {
    let op = match function {
        Function::Send => return (POINT_TO_POINT, 1, "Send"),
        Function::Recv => return (POINT_TO_POINT, 2, "Recv"),
        Function::Isend => return (POINT_TO_POINT, 3, "Isend"),
        Function::Wait => return (POINT_TO_POINT, 5, "Wait"),
        Function::Sendrecv => return (POINT_TO_POINT, 41, "Sendrecv"),
        // Extrae's numbers of these are not read anywhere: they are events of what they do.
        Function::Start => return (POINT_TO_POINT, 3, "Start"),
        Function::NonBlocking(op) => {
            return (COLLECTIVE, value_of(op), op.non_blocking_name());
        }
        Function::Collective(op) => op,
    };
    (COLLECTIVE, value_of(op), op.name())
}
