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

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::iter::Peekable;

use super::{Replayed, nanos};
use details::Details;
use flowcast_replay::journal::{Call, Function, MPI_EVENTS, Mark, MessageTimes, Slice};
use flowcast_replay::timeline::Activity;
use flowcast_units::{CollectiveOp, Rank};
use layout::Layout;
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
    let mut lines: Vec<Line<'_>> = replayed.ranks().map(|rank| Line::new(replayed, rank)).collect();
    let mut next = BinaryHeap::with_capacity(4 * lines.len());
    for (rank, line) in lines.iter_mut().enumerate() {
        next.extend(Kind::ALL.iter().filter_map(|kind| Some(Reverse((line.next(*kind)?, *kind, rank)))));
    }
    while let Some(Reverse((_, kind, rank))) = next.pop() {
        lines[rank].write(kind, &layout, out)?;
        if let Some(time) = lines[rank].next(kind) {
            next.push(Reverse((time, kind, rank)));
        }
    }
    Ok(())
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

type Sequence<'a, T> = Peekable<Box<dyn Iterator<Item = T> + 'a>>;

/// The records of one rank that are still to be written.
struct Line<'a> {
    rank: Rank,
    states: Sequence<'a, Slice>,
    calls: Sequence<'a, CallEvent<'a>>,
    marks: Sequence<'a, Mark>,
    messages: Sequence<'a, (u32, MessageTimes)>,
}

/// The begin or the end of a call.
struct CallEvent<'a> {
    time: u64,
    kind: i64,
    value: i64,
    details: Option<Details<'a>>,
}

fn sequence<'a, T>(items: impl Iterator<Item = T> + 'a) -> Sequence<'a, T> {
    (Box::new(items) as Box<dyn Iterator<Item = T> + 'a>).peekable()
}

impl<'a> Line<'a> {
    fn new(replayed: Replayed<'a>, rank: Rank) -> Line<'a> {
        let journal = replayed.journal;
        let mut details = details::of_rank(replayed, rank);
        let events = move |call: Call| {
            let is_collective = matches!(call.function, Function::Collective(_));
            call_events(call, if is_collective { details.next() } else { None })
        };
        Line {
            rank,
            states: sequence(journal.slices(rank)),
            calls: sequence(journal.calls(rank).flat_map(events)),
            marks: sequence(journal.marks(rank)),
            messages: sequence(journal.sent(rank)),
        }
    }

    /// When the next record of a kind begins.
    fn next(&mut self, kind: Kind) -> Option<u64> {
        match kind {
            Kind::State => self.states.peek().map(|slice| nanos(slice.segment.start)),
            Kind::Call => self.calls.peek().map(|event| event.time),
            Kind::Mark => self.marks.peek().map(|mark| nanos(mark.time)),
            Kind::Message => self.messages.peek().map(|(_, times)| nanos(times.span.sent)),
        }
    }

    fn write(&mut self, kind: Kind, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
        let place = layout.place(self.rank);
        match kind {
            Kind::State => {
                let Some(slice @ Slice { segment, .. }) = self.states.next() else { return Ok(()) };
                let state = state(slice);
                writeln!(out, "1:{place}:{}:{}:{state}", nanos(segment.start), nanos(segment.end))
            }
            Kind::Call => {
                let Some(CallEvent { time, kind, value, details }) = self.calls.next() else { return Ok(()) };
                write!(out, "2:{place}:{time}:{kind}:{value}")?;
                if let Some(details) = details { writeln!(out, "{details}") } else { writeln!(out) }
            }
            Kind::Mark => {
                let Some(Mark { time, kind, value }) = self.marks.next() else { return Ok(()) };
                write!(out, "2:{place}:{}:{kind}:{value}", nanos(time))?;
                // What stands beside a call tells about it as long as it stands on the same line.
                let beside = |next: &Mark| nanos(next.time) == nanos(time) && !MPI_EVENTS.contains(&next.kind);
                while let Some(Mark { kind, value, .. }) = self.marks.next_if(beside) {
                    write!(out, ":{kind}:{value}")?;
                }
                writeln!(out)
            }
            Kind::Message => {
                let Some((_, MessageTimes { span, moved, posted })) = self.messages.next() else { return Ok(()) };
                let there = layout.place(span.dst);
                let times = [span.sent, moved, posted, span.arrived].map(nanos);
                let [logical_send, physical_send, logical_receive, physical_receive] = times;
                write!(out, "3:{place}:{logical_send}:{physical_send}:{there}:{logical_receive}:{physical_receive}")?;
                writeln!(out, ":{}:{}", span.size.0, span.tag)
            }
        }
    }
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
    let begin = CallEvent { time: nanos(call.start), kind, value, details };
    [begin, CallEvent { time: nanos(call.end), kind, value: 0, details: None }]
}

const POINT_TO_POINT: i64 = 50_000_001;
const COLLECTIVE: i64 = 50_000_002;

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
        Function::Collective(op) => op,
    };
    let value = match op {
        CollectiveOp::Bcast => 7,
        CollectiveOp::Barrier => 8,
        CollectiveOp::Reduce => 9,
        CollectiveOp::Allreduce => 10,
        CollectiveOp::Alltoall => 11,
        CollectiveOp::Alltoallv => 12,
        CollectiveOp::Gather => 13,
        CollectiveOp::Gatherv => 14,
        CollectiveOp::Scatter => 15,
        CollectiveOp::Scatterv => 16,
        CollectiveOp::Allgather => 17,
        CollectiveOp::Allgatherv => 18,
        CollectiveOp::Scan => 30,
        CollectiveOp::ReduceScatter => 80,
        CollectiveOp::ReduceScatterBlock => 168,
        CollectiveOp::Alltoallw => 170,
    };
    (COLLECTIVE, value, op.name())
}
