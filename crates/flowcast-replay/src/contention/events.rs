//! What happens in a replay under limits, in the order of time.

use flowcast_network::queues::lanes::LaneQueue;
use flowcast_units::Rank;

/// The events to come.
pub(super) type Pending = LaneQueue<Event>;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A rank has the processor and goes on, by rank.
    Turn,
    /// The interface is free for a message that waited for it, by message.
    Departs,
    /// The last byte of a message has left the links, by message.
    Moved,
    /// A message has arrived, by message.
    Arrived,
    /// A collective is done, by the message that stands for it.
    Gathered,
}

/// What happens to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// Kind of event, which says what `index` counts.
    pub kind: Kind,
    /// To whom, as the kind says.
    pub index: u32,
}

impl Kind {
    /// Of this kind, to whom it counts.
    #[inline(always)]
    pub(super) fn event(self, index: u32) -> Event {
        Event { kind: self, index }
    }
}

impl Event {
    /// A rank has the processor and goes on.
    #[inline(always)]
    pub(super) fn turn(rank: Rank) -> Event {
        Kind::Turn.event(rank.0)
    }
}
