//! What happens in a replay under limits, in the order of time.

use flowcast_traffic::queues::lanes::LaneQueue;
use flowcast_units::Rank;

/// The events to come.
pub(super) type Pending = LaneQueue<Event>;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EventKind {
    /// A rank has the processor and goes on, by rank.
    Turn,
    /// A rank has the processor and does something again that was done with its last turn, by rank.
    IdleTurn,
    /// The interface is free for a message that waited for it, by message.
    Departs,
    /// The last byte of a message has left the links, by message.
    Moved,
    /// A message has arrived, by message.
    Arrived,
    /// A collective is done, by the message that stands for it.
    Gathered,
}

/// What happens to whom: whom in the lower 32 bits, how many idle turns there are in the next 24, and above them the kind.
///
/// All of it is one number because what is written in parts and read as a whole waits for the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Event(u64);

const IDLE_TURNS_SHIFT: u32 = 32;
const KIND_SHIFT: u32 = 56;

impl EventKind {
    /// Of this kind, to whom it counts.
    #[inline(always)]
    pub(super) fn event(self, index: u32) -> Event {
        Event((self as u64) << KIND_SHIFT | u64::from(index))
    }
}

impl Event {
    /// A rank has the processor and goes on.
    #[inline(always)]
    pub(super) fn turn(rank: Rank) -> Event {
        EventKind::Turn.event(rank.0)
    }

    /// The same after so many idle turns; 0 is none.
    #[inline(always)]
    pub(super) fn turn_after(idle: u32, rank: Rank) -> Event {
        match idle {
            0 => Event::turn(rank),
            _ => Event(EventKind::IdleTurn.event(rank.0).0 | u64::from(idle) << IDLE_TURNS_SHIFT),
        }
    }

    /// What comes after an idle turn.
    #[inline(always)]
    pub(super) fn after_idle_turn(self) -> Event {
        let rank = Rank(self.index());
        Event::turn_after((self.0 >> IDLE_TURNS_SHIFT) as u32 % (1 << 24) - 1, rank)
    }

    /// Whether a rank goes on, now or after idle turns.
    #[inline(always)]
    pub(super) fn is_turn(self) -> bool {
        self.0 < (EventKind::Departs as u64) << KIND_SHIFT
    }

    /// What happens.
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

    /// To whom, as the kind says.
    #[inline(always)]
    pub(super) fn index(self) -> u32 {
        self.0 as u32
    }
}
