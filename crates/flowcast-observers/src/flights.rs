//! Times at which the messages of a replay were sent, moved and arrived, as its observers record them.
//!
//! The times are stored in columns of 16 bytes for each message and pair of times. An observer has only the columns that it
//! needs (`Columns`), so a [`Journal`](crate::journal::ReplayJournal) of ten million messages stays small.

use flowcast_program::{
    program::{MessageClass, Program},
    slot::Slot,
};
use flowcast_replay::{
    loggops::{message::ScheduleMessage, sends::Sends},
    observer::{Observer, ReceivedMessage, Sent},
    prefetch::prefetch_behind,
};
use flowcast_units::{Bytes, Rank, Time};

/// The replayed program or schedule. It gives the numbers of ranks and messages their meaning.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Program(&'a Program),
    Schedule(&'a Sends<'a>),
}

impl<'a> Source<'a> {
    /// Number of ranks, without the streams of non-blocking collectives.
    pub(crate) fn ranks(self) -> usize {
        match self {
            Source::Program(program) => program.ranks(),
            Source::Schedule(sends) => sends.ranks(),
        }
    }

    /// Number of ranks and streams of non-blocking collectives.
    pub(crate) fn streams(self) -> usize {
        match self {
            Source::Program(program) => program.streams(),
            Source::Schedule(sends) => sends.ranks(),
        }
    }

    /// Approximate number of segments in the time of a rank or stream. Memory that is reserved and not used costs nothing.
    pub(crate) fn segments(self, stream: Rank) -> usize {
        match self {
            Source::Program(program) => program.words(stream).len(),
            Source::Schedule(_) => 0,
        }
    }

    /// The rank that a stream belongs to.
    pub(crate) fn owner(self, stream: Rank) -> Rank {
        match self {
            Source::Program(program) => program.owner(stream),
            Source::Schedule(_) => stream,
        }
    }

    /// Number of a message among all messages. The replay of a program uses it as the slot; the replay of a schedule uses
    /// the number of the send among all operations.
    pub(crate) fn number(self, slot: Slot) -> usize {
        match self {
            Source::Program(_) => slot.index(),
            Source::Schedule(sends) => sends.number(slot) as usize,
        }
    }

    fn messages(self) -> usize {
        match self {
            Source::Program(program) => program.messages() as usize,
            Source::Schedule(sends) => sends.count(),
        }
    }
}

/// Times of one message; `None` if not known yet.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    /// Sending rank, or the stream of a non-blocking collective.
    pub from: Rank,
    /// Message class of a program.
    pub class: u32,
    /// Time at which the program called the send.
    pub call: Option<Time>,
    /// Time at which the message could have begun to move: when it was ready or, if a rendezvous waited, when its receiver
    /// was ready.
    pub asked: Option<Time>,
    /// Time at which it began to move: later than `asked` if it waited for links or buses.
    pub start: Option<Time>,
    /// Time at which the last byte arrived.
    pub arrival: Option<Time>,
    /// Time at which its receive was posted.
    pub posted: Option<Time>,
    /// Time at which the receiver's call returned.
    pub received: Option<Time>,
}

/// Times that an observer keeps in addition to those that all observers keep (call, asked, arrival, received).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FlightColumns {
    /// Times at which messages began to move and at which their receives were posted.
    pub moves: bool,
}

/// Times of one message, in nanoseconds like all columns.
#[derive(Debug, Clone, Copy)]
struct FlightsTimes {
    call: f64,
    asked: f64,
    arrival: f64,
    received: f64,
}

/// An unknown time in a column.
const NAN: f64 = f64::NAN;

/// A time of a column, if it is known.
fn known(nanos: f64) -> Option<Time> {
    (!nanos.is_nan()).then(|| Time::from_nanos(nanos))
}

/// Times of all messages.
pub(crate) struct Flights<'a> {
    pub source: Source<'a>,
    times: Vec<FlightsTimes>,
    /// Sender and class; empty for schedules, where the number of a message determines both.
    origins: Vec<(Rank, u32)>,
    /// Time at which each message began to move, and time at which its receive was posted.
    moves: Vec<(f64, f64)>,
}

impl<'a> Flights<'a> {
    /// Creates the columns for a replay that has not begun.
    pub(crate) fn new(source: Source<'a>, columns: FlightColumns) -> Flights<'a> {
        let rows = |is_kept: bool| if is_kept { source.messages() } else { 0 };
        Flights {
            source,
            times: vec![
                FlightsTimes {
                    call: NAN,
                    asked: NAN,
                    arrival: NAN,
                    received: NAN
                };
                source.messages()
            ],
            origins: vec![(Rank(0), 0); rows(matches!(source, Source::Program(_)))],
            moves: vec![(NAN, NAN); rows(columns.moves)],
        }
    }

    /// Known times of a message.
    pub(crate) fn flight(&self, slot: Slot) -> Flight {
        let number = self.source.number(slot);
        let FlightsTimes {
            call,
            asked,
            arrival,
            received,
        } = self.times[number];
        let (from, class) = match self.source {
            Source::Program(_) => self.origins[number],
            Source::Schedule(sends) => (sends.sender(slot), 0),
        };
        let (start, posted) = self.moves.get(number).copied().unwrap_or((NAN, NAN));
        Flight {
            from,
            class,
            call: known(call),
            asked: known(asked),
            start: known(start),
            arrival: known(arrival),
            posted: known(posted),
            received: known(received),
        }
    }

    /// Slots of messages in the given order. When a slot is taken, the times of the next message are prefetched.
    pub(crate) fn prefetched<'b>(
        &'b self,
        mut slots: impl Iterator<Item = Slot> + 'b,
    ) -> impl Iterator<Item = Slot> + 'b {
        let mut next = slots.next();
        std::iter::from_fn(move || {
            let slot = next?;
            next = slots.next();
            if let Some(next) = next {
                let number = self.source.number(next);
                prefetch_behind(&self.times, number);
                prefetch_behind(&self.origins, number);
                prefetch_behind(&self.moves, number);
            }
            Some(slot)
        })
    }

    /// Receiving rank or stream, size and tag of a message that `from` has sent.
    pub(crate) fn message(&self, from: Rank, slot: Slot) -> ScheduleMessage {
        match self.source {
            Source::Program(program) => {
                let class = program.class(self.origins[slot].1);
                ScheduleMessage {
                    to: program.receiver(slot),
                    size: class.size,
                    tag: class.tag,
                }
            }
            Source::Schedule(sends) => sends.sent(from, slot),
        }
    }

    /// The class of a program's message that was sent.
    pub(crate) fn class(&self, slot: Slot) -> Option<&'a MessageClass> {
        let Source::Program(program) = self.source else {
            return None;
        };
        Some(program.class(self.origins[slot].1))
    }

    /// The size of a message that was sent.
    pub(crate) fn size(&self, slot: Slot) -> Bytes {
        self.class(slot).map_or_else(
            || self.message(self.flight(slot).from, slot).size,
            |class| class.size,
        )
    }

    /// `true` if the message was sent.
    pub(crate) fn is_sent(&self, slot: Slot) -> bool {
        !self.times[self.source.number(slot)].call.is_nan()
    }

    /// Time at which the message could have begun to move.
    pub(crate) fn request_time(&self, slot: Slot) -> Option<Time> {
        known(self.times[self.source.number(slot)].asked)
    }

    /// `true` if its receive was posted by a call of its own; `false` without the column of moves.
    pub(crate) fn is_posted(&self, slot: Slot) -> bool {
        self.moves
            .get(self.source.number(slot))
            .is_some_and(|(_, posted)| !posted.is_nan())
    }

    /// Arrival times of the messages that have arrived.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = Time> + '_ {
        self.times
            .iter()
            .map(|times| times.arrival)
            .filter(|arrival| arrival.is_finite())
            .map(Time::from_nanos)
    }
}

impl Observer for Flights<'_> {
    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        let class = sent.class;
        let [call, departs, arrival] = [sent.call, sent.departs, sent.arrival].map(Time::as_nanos);
        let number = self.source.number(slot);
        let times = &mut self.times[number];
        *times = FlightsTimes {
            call,
            asked: departs,
            arrival,
            received: times.received,
        };
        self.origins
            .get_mut(number)
            .into_iter()
            .for_each(|origin| *origin = (rank, class));
        self.moves
            .get_mut(number)
            .into_iter()
            .for_each(|(began, _)| *began = departs);
    }

    fn moved(&mut self, slot: Slot, start: Time, arrival: Time) {
        let number = self.source.number(slot);
        let times = &mut self.times[number];
        (times.asked, times.arrival) = (start.as_nanos(), arrival.as_nanos());
        self.moves
            .get_mut(number)
            .into_iter()
            .for_each(|(began, _)| *began = start.as_nanos());
    }

    fn queued(&mut self, slot: Slot, asked: Time) {
        self.times[self.source.number(slot)].asked = asked.as_nanos();
    }

    fn posted(&mut self, slot: Slot, time: Time) {
        let time = time.as_nanos();
        let number = self.source.number(slot);
        self.moves
            .get_mut(number)
            .into_iter()
            .for_each(|(_, posted)| *posted = time);
        // In a schedule, the receive may be posted after the message was taken from the network.
        let received = &mut self.times[number].received;
        if time > *received {
            *received = time;
        }
    }

    fn received(&mut self, _rank: Rank, slot: Slot, received: ReceivedMessage) {
        let number = self.source.number(slot);
        self.times[number].received = received.end.as_nanos();
        let unposted = self
            .moves
            .get_mut(number)
            .filter(|(_, posted)| posted.is_nan());
        unposted
            .into_iter()
            .for_each(|(_, posted)| *posted = received.call.as_nanos());
    }
}
