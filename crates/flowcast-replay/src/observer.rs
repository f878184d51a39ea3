//! The events of a replay. The engine reports them to an observer while it runs.
//!
//! An observer computes every result of a replay beyond its times: the `Journal` for files and timelines, the `Explainer`
//! for the cost of communication, the `RunTimer` for the times of calls and regions. A pair of observers is an observer, and
//! so is an optional observer. One replay therefore serves all of them.

use crate::time_part::TimePart;
use flowcast_program::slot::Slot;
use flowcast_units::{Rank, Time};

/// Passes all methods of an observer to a macro, after that macro's other arguments.
macro_rules! with_methods {
    ($use:ident $($more:tt)*) => {
        $use! { $($more)*
            /// A computation.
            computed(rank: Rank, start: Time, end: Time),
            /// A send call: overhead from `start` to `end`. The last byte arrives at `arrival`, if that time is known
            /// already.
            sent(rank: Rank, slot: Slot, sent: Sent),
            /// A message whose arrival was unknown when it was sent has started to move, or to wait for links and buses, at
            /// `start`. `arrival` is `Time::NEVER` if it is still unknown.
            moved(slot: Slot, start: Time, arrival: Time),
            /// A message starts to move after waiting for links and buses since `asked`.
            queued(slot: Slot, asked: Time),
            /// A non-blocking receive was posted.
            posted(slot: Slot, time: Time),
            /// A rank passed an event of the trace, by index into the program's events.
            marked(rank: Rank, event: u32, time: Time),
            /// A sender waited from `start` to `end` for its receiver, or until its message had left.
            held(rank: Rank, slot: Slot, start: Time, end: Time),
            /// A rank waited from `start` to `end` until an eager message had left its interface.
            left(rank: Rank, slot: Slot, start: Time, end: Time),
            /// A sender that checked whether it may continue has continued, after a wait or without one.
            released(rank: Rank, slot: Slot),
            /// A receive, or a wait for one, returned.
            received(rank: Rank, slot: Slot, received: ReceivedMessage),
            /// One-sided communication or a request to a file ended.
            accessed(rank: Rank, accessed: Accessed),
            /// A rank left a collective operation whose cost a formula gives.
            gathered(rank: Rank, gathered: ObservedCollective),
            /// A rank of a machine with limits has ended. This is after the end of its last call if it still waited for a
            /// processor.
            ended(rank: Rank, time: Time)
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),+)),+) => {
        /// Receives the events of a replay. Ranks are numbered from 0; the streams of their non-blocking collectives follow
        /// them. Messages are numbered by slot. Times count from the start of the program. A method that is not overridden
        /// does nothing and costs nothing.
        pub trait Observer {
            /// `true` if it observes anything. Otherwise engines skip the work that only observers need.
            const WATCHES: bool = true;
            $(
                $(#[$doc])*
                #[inline(always)]
                #[allow(unused_variables)]
                fn $name(&mut self, $($arg: $type),+) {}
            )+
        }
    };
}

with_methods! { declare }

/// A send of one rank.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Index of its message class.
    pub class: u32,
    /// Time of the program's call.
    pub call: Time,
    /// Earliest start of the overhead, later than the call if the interface was busy.
    pub start: Time,
    /// Time that the call then waited for a processor.
    pub processor: Time,
    /// End of the overhead.
    pub end: Time,
    /// Earliest time at which the interface could start with the message. This is after the overhead if the interface was
    /// busy and the send did not wait for it.
    pub departs: Time,
    /// Arrival of the last byte; [`Time::NEVER`] if it is not known yet.
    pub arrival: Time,
}

impl Sent {
    /// Passes the parts of its time to `show`, each with its end, in order.
    pub fn each_part(&self, mut show: impl FnMut(TimePart, Time)) {
        show(TimePart::Bandwidth, self.start);
        show(TimePart::Processor, self.start + self.processor);
        show(TimePart::Overhead, self.end);
    }
}

/// A receive or wait.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedMessage {
    /// Time of the program's call.
    pub call: Time,
    /// Time that the call waited for a processor before it looked for the message.
    pub processor: Time,
    /// End of the processor time before the message.
    pub before: Time,
    /// Start of the processor time on the message.
    pub taken: Time,
    /// Return of the call.
    pub end: Time,
}

/// One-sided communication or a request to a file, as seen by its rank.
#[derive(Debug, Clone, Copy, Default)]
pub struct Accessed {
    /// Index into the accesses.
    pub access: u32,
    /// Time of the program's call.
    pub call: Time,
    /// Start of the overhead, later than the call if the interface was busy.
    pub start: Time,
    /// End of the overhead.
    pub came: Time,
    /// Time that it waited for a processor in between.
    pub processor: Time,
    /// Time that it then waited for other ranks: for a lock, for the file system, for links, or because other messages used
    /// a part of the bandwidth.
    pub queued: Time,
    /// Part of the remaining time that does not depend on the bandwidth.
    pub latency: Time,
    /// Time at which the rank continued.
    pub end: Time,
}

impl Accessed {
    /// Passes the parts of its time to `show`, each with its end, in order.
    pub fn each_part(&self, mut show: impl FnMut(TimePart, Time)) {
        show(TimePart::Bandwidth, self.start);
        show(TimePart::Processor, self.start + self.processor);
        show(TimePart::Overhead, self.came);
        let begun = self.came + self.queued;
        show(TimePart::Contention, begun);
        show(TimePart::Latency, (begun + self.latency).min(self.end));
        show(TimePart::Bandwidth, self.end);
    }
}

/// A collective as seen by one rank.
#[derive(Debug, Clone, Copy)]
pub struct ObservedCollective {
    /// Index of the execution among all executions of collectives in the program.
    pub instance: u32,
    /// Time of the rank's call.
    pub call: Time,
    /// Time that its start-up waited for a processor.
    pub processor: Time,
    /// End of the rank's start-up.
    pub came: Time,
    /// Arrival of the rank that determined the end.
    pub last: Time,
    /// Rank that determined the end: the last to arrive, or the one whose data reached the root last.
    pub last_rank: Rank,
    /// Time at which the rank continued.
    pub end: Time,
}

impl ObservedCollective {
    /// Passes the parts of its time to `show`, each with its end, in order.
    pub fn each_part(&self, mut show: impl FnMut(TimePart, Time)) {
        show(TimePart::Processor, self.call + self.processor);
        show(TimePart::Overhead, self.came);
        let last = self.last.clamp(self.came, self.end.max(self.came));
        show(TimePart::CollectiveWait, last);
        show(TimePart::Collective, self.end);
    }
}

/// An observer that observes nothing, for callers that only need the outcome.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const WATCHES: bool = false;
}

/// The methods of an observer that passes everything on to other observers, one after the other.
macro_rules! hand_on {
    ($self:ident to $($others:expr),+) => {
        with_methods! { hand_on $self, [$($others),+], }
    };
    ($self:ident, $others:tt, $($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),+)),+) => {
        $(#[inline(always)]
        fn $name(&mut $self, $($arg: $type),+) {
            hand_on! { $others.$name($($arg),+) }
        })+
    };
    ([$($others:expr),+].$name:ident $args:tt) => {
        $(for other in $others { other.$name $args; })+
    };
}

pub(crate) mod by_pointer;

/// Both observe, the first one before the second.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const WATCHES: bool = A::WATCHES || B::WATCHES;
    hand_on!(self to [&mut self.0], [&mut self.1]);
}

/// Observes if there is an observer.
impl<O: Observer> Observer for Option<O> {
    const WATCHES: bool = O::WATCHES;
    hand_on!(self to self.iter_mut());
}

impl<O: Observer> Observer for &mut O {
    const WATCHES: bool = O::WATCHES;
    hand_on!(self to [&mut **self]);
}
