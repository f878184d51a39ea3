//! The events of a replay, of which its engine notifies an observer while it runs.
//!
//! Everything that can be said of a replay beyond its times is the work of an observer: the
//! `Journal` for files and timelines, the
//! `Explainer` for the cost of communication, the
//! `RunTimer` for the times of calls and regions. A pair of observers is an observer, and so
//! is one that may be missing, so that one replay is enough for all of them.

use crate::time_part::TimePart;
use flowcast_program::slot::Slot;
use flowcast_units::{Rank, Time};

/// Hands all methods of an observer to a macro, behind what else it is given.
macro_rules! with_methods {
    ($use:ident $($more:tt)*) => {
        $use! { $($more)*
            /// A computation.
            computed(rank: Rank, start: Time, end: Time),
            /// A send call: overhead from `start` to `end`; the last byte arrives at `arrival` unless that is not known yet.
            sent(rank: Rank, slot: Slot, sent: Sent),
            /// A rendezvous message that waited for its receiver since `asked` has begun to move and will arrive.
            moved(slot: Slot, start: Time, arrival: Time),
            /// A message that has begun to move had waited for links and buses since `asked`.
            queued(slot: Slot, asked: Time),
            /// A non-blocking receive was posted.
            posted(slot: Slot, time: Time),
            /// A rank passed an event of the trace, by index into the program's events.
            marked(rank: Rank, event: u32, time: Time),
            /// A sender waited for its receiver from `start` to `end`, or until its message had left.
            held(rank: Rank, slot: Slot, start: Time, end: Time),
            /// A rank waited from `start` to `end` until a message that goes at once had left its interface.
            left(rank: Rank, slot: Slot, start: Time, end: Time),
            /// A sender that asked whether it may go on has gone on, whether it waited for that or not.
            released(rank: Rank, slot: Slot),
            /// A receive or a wait for one returned.
            received(rank: Rank, slot: Slot, received: ReceivedMessage),
            /// One-sided communication or a request to a file ended.
            accessed(rank: Rank, accessed: Accessed),
            /// A rank left a collective operation that costs what a formula says.
            gathered(rank: Rank, gathered: Gathered),
            /// A rank of a machine with limits has ended: later than the end of its last call if it still waited for a processor.
            ended(rank: Rank, time: Time)
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),+)),+) => {
        /// Is notified of everything that takes time. Ranks are numbered from 0, the streams of their non-blocking collectives
        /// behind them; messages by their slot; times count from the start. A method that is not overridden does
        /// nothing and costs nothing.
        pub trait Observer {
            /// Whether it observes anything; if not, engines leave out what only observers need.
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
    /// When the program called.
    pub call: Time,
    /// When the overhead could begin (later than the call if the interface was busy).
    pub start: Time,
    /// How long the call waited for a processor from then on.
    pub processor: Time,
    /// When the overhead ended.
    pub end: Time,
    /// When the interface could begin with the message: later than that if it was busy and the send did not wait for it.
    pub departs: Time,
    /// When the last byte arrives; [`Time::NEVER`] while that is not known.
    pub arrival: Time,
}

impl Sent {
    /// Shows what its time is spent on, each with its end, in order.
    pub fn each_part(&self, mut show: impl FnMut(TimePart, Time)) {
        show(TimePart::Bandwidth, self.start);
        show(TimePart::Processor, self.start + self.processor);
        show(TimePart::Overhead, self.end);
    }
}

/// A receive or wait.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedMessage {
    /// When the program called.
    pub call: Time,
    /// How long the call waited for a processor before it looked for the message.
    pub processor: Time,
    /// When the processor time before the message ended.
    pub before: Time,
    /// When the processor time on the message began.
    pub taken: Time,
    /// When the call returned.
    pub end: Time,
}

/// One-sided communication or a request to a file, as its rank sees it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Accessed {
    /// Index into the accesses.
    pub access: u32,
    /// When the program called.
    pub call: Time,
    /// When the overhead began (later than the call if the interface was busy).
    pub start: Time,
    /// When the overhead ended.
    pub came: Time,
    /// How long it waited for a processor in between.
    pub processor: Time,
    /// How long it then waited for others: for a lock, for a place at the file system, for links, or since others had a
    /// part of the bandwidth.
    pub queued: Time,
    /// How much of the rest no bandwidth would shorten.
    pub latency: Time,
    /// When the rank went on.
    pub end: Time,
}

impl Accessed {
    /// Shows what its time is spent on, each with its end, in order.
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

/// A collective as one rank sees it.
#[derive(Debug, Clone, Copy)]
pub struct Gathered {
    /// Index of the execution among all of the program.
    pub instance: u32,
    /// When the rank called.
    pub call: Time,
    /// How long its start-up waited for a processor.
    pub processor: Time,
    /// When the rank's start-up was over.
    pub came: Time,
    /// When the rank came that decided the end.
    pub last: Time,
    /// That rank: the last to come, or the one whose data was last at the root.
    pub last_rank: Rank,
    /// When the rank went on.
    pub end: Time,
}

impl Gathered {
    /// Shows what its time is spent on, each with its end, in order.
    pub fn each_part(&self, mut show: impl FnMut(TimePart, Time)) {
        show(TimePart::Processor, self.call + self.processor);
        show(TimePart::Overhead, self.came);
        let last = self.last.clamp(self.came, self.end.max(self.came));
        show(TimePart::CollectiveWait, last);
        show(TimePart::Collective, self.end);
    }
}

/// An observer that observes nothing, where the outcome is enough.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const WATCHES: bool = false;
}

/// The methods of an observer that hands everything on to others, one after the other.
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

/// Both observe, the first before the second.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const WATCHES: bool = A::WATCHES || B::WATCHES;
    hand_on!(self to [&mut self.0], [&mut self.1]);
}

/// Observes if it is there.
impl<O: Observer> Observer for Option<O> {
    const WATCHES: bool = O::WATCHES;
    hand_on!(self to self.iter_mut());
}

impl<O: Observer> Observer for &mut O {
    const WATCHES: bool = O::WATCHES;
    hand_on!(self to [&mut **self]);
}
