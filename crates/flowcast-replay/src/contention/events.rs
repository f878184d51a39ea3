//! Events of a replay with limits, in the order of time.

use flowcast_traffic::queues::lanes::LaneQueue;
use flowcast_units::Rank;

/// Queue of the pending events, in the order of time.
pub(super) type Pending = LaneQueue<Event>;

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EventKind {
    /// A rank has the processor and continues; the index is the rank.
    Turn,
    /// A rank has the processor for a turn whose work was done in its last turn; the index is the rank.
    IdleTurn,
    /// The interface is free for a message that waited for it; the index is the message.
    Departs,
    /// The last byte of a message has left the links; the index is the message.
    Moved,
    /// A message has arrived; the index is the message.
    Arrived,
    /// A collective has ended; the index is the message that represents it.
    Gathered,
}

/// An event: the index of the rank or message in the lower 32 bits, the number of idle turns in the next 24 bits, and the
/// kind above them.
///
/// A single number avoids a stall: a read of a whole value right after writes to its parts has to wait for these writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Event(u64);

const IDLE_TURNS_SHIFT: u32 = 32;
const KIND_SHIFT: u32 = 56;

impl EventKind {
    /// An event of this kind for a rank or message.
    #[inline(always)]
    pub(super) fn event(self, index: u32) -> Event {
        Event((self as u64) << KIND_SHIFT | u64::from(index))
    }
}

impl Event {
    /// A rank has the processor and continues.
    #[inline(always)]
    pub(super) fn turn(rank: Rank) -> Event {
        EventKind::Turn.event(rank.0)
    }

    /// A rank has the processor and continues after `idle` idle turns; 0 is none.
    #[inline(always)]
    pub(super) fn turn_after(idle: u32, rank: Rank) -> Event {
        match idle {
            0 => Event::turn(rank),
            _ => Event(EventKind::IdleTurn.event(rank.0).0 | u64::from(idle) << IDLE_TURNS_SHIFT),
        }
    }

    /// The event that follows an idle turn.
    #[inline(always)]
    pub(super) fn after_idle_turn(self) -> Event {
        let rank = Rank(self.index());
        Event::turn_after((self.0 >> IDLE_TURNS_SHIFT) as u32 % (1 << 24) - 1, rank)
    }

    /// `true` if a rank continues, now or after idle turns.
    #[inline(always)]
    pub(super) fn is_turn(self) -> bool {
        self.0 < (EventKind::Departs as u64) << KIND_SHIFT
    }

    /// Kind of the event.
    #[inline(always)]
    pub(super) fn kind(self) -> EventKind {
        match self.0 >> KIND_SHIFT {
            0 => EventKind::Turn,
            1 => EventKind::IdleTurn,
            2 => EventKind::Departs,
            3 => EventKind::Moved,
            4 => EventKind::Arrived,
            _ => EventKind::Gathered,
        }
    }

    /// Index of the rank or message; the kind determines which.
    #[inline(always)]
    pub(super) fn index(self) -> u32 {
        self.0 as u32
    }
}
