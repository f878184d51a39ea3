//! The state of a rank, and what a turn of it leads to.

use flowcast_program::slot::Slot;
use flowcast_traffic::queues::lanes::Lane;
use flowcast_units::Time;

/// How far a rank is with its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub(super) enum RankPhase {
    /// It has not begun.
    #[default]
    Begin,
    /// It wants processor time until the moment in `until`, then goes on.
    StartUp,
    /// It has spent its start-up.
    Started,
    /// It waits for others, without a processor.
    Waiting,
    /// It wants processor time until the moment in `until`, then is done.
    Finish,
    /// It is done but for that time.
    Finishing,
    /// There is no further instruction.
    Ended,
    /// It computes on an accelerator, without a processor; so it is in the phases that follow.
    Accelerated,
    /// It waits for memory or a file.
    Asking,
    /// A message that it waits for leaves its interface.
    Leaving,
}

impl RankPhase {
    /// The phase once the rank has spent the processor time that it wants.
    #[inline(always)]
    pub(super) fn spent(self) -> Option<RankPhase> {
        match self {
            RankPhase::StartUp => Some(RankPhase::Started),
            RankPhase::Finish => Some(RankPhase::Finishing),
            _ => None,
        }
    }
}

/// What follows from a turn.
pub(super) enum Step {
    /// The instruction is done.
    Done,
    /// The instruction is done and takes no turn: the next follows in the same.
    Skip,
    /// The instruction is done; the rank keeps its processor for the next, before anybody else gets one.
    GoOn,
    /// The rank needs processor time first.
    Spend,
    /// The rank waits for others.
    Wait,
    /// The rank waits in this phase, without a processor, for an event of its own.
    Asks(RankPhase),
}

/// One rank, in two cache lines, the first of which is all that most turns need.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(128))]
pub(super) struct ContendedRank<'a> {
    /// The words of its instructions.
    pub words: &'a [u32],
    /// The instruction, and the one behind it.
    pub at: u32,
    pub next: u32,
    /// The slot of the next receive to post.
    pub next_slot: Slot,
    pub lane: Lane,
    pub phase: RankPhase,
    /// When the program called, and when it had spent the start-up of the call.
    pub call: Time,
    pub before: Time,
    /// When the start-up, or the time on a message that has come, ends.
    pub until: Time,
    /// When it began to wait for a processor.
    pub queued: Time,
    /// How long its call has waited for a processor and for the switch to it.
    pub waited: Time,
    pub overhead: Time,
    pub compute: Time,
    pub end: Time,
    /// When the sending interface may start the next message.
    pub interface_free: Time,
    /// When the interface is free for the message that it sends.
    pub departs: Time,
    /// How long the start-up takes, where turns are scheduled.
    pub spend: Time,
}

impl<'a> ContendedRank<'a> {
    pub(super) fn new(words: &'a [u32], next_slot: Slot) -> ContendedRank<'a> {
        ContendedRank {
            words,
            next_slot,
            ..ContendedRank::default()
        }
    }
}
