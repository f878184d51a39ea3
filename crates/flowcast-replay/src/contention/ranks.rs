//! State of a rank, and the result of a turn.

use flowcast_program::slot::Slot;
use flowcast_traffic::queues::lanes::Lane;
use flowcast_units::Time;

/// Progress of a rank within its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub(super) enum RankPhase {
    /// It has not started.
    #[default]
    Begin,
    /// It needs processor time until `until`, then it continues.
    StartUp,
    /// It has spent its start-up.
    Started,
    /// It waits for other ranks, without a processor.
    Waiting,
    /// It needs processor time until `until`, then it has finished.
    Finish,
    /// It has spent the time of [`RankPhase::Finish`]; the instruction is complete.
    Finishing,
    /// There is no further instruction.
    Ended,
    /// It computes on an accelerator, without a processor. The phases that follow are also without a processor.
    Accelerated,
    /// It waits for memory or a file.
    Asking,
    /// A message that it waits for leaves its interface.
    Leaving,
}

impl RankPhase {
    /// The phase after the rank has spent the processor time that it needs.
    #[inline(always)]
    pub(super) fn spent(self) -> Option<RankPhase> {
        match self {
            RankPhase::StartUp => Some(RankPhase::Started),
            RankPhase::Finish => Some(RankPhase::Finishing),
            _ => None,
        }
    }
}

/// Result of a turn.
pub(super) enum Step {
    /// The instruction is complete.
    Done,
    /// The instruction is complete and takes no turn: the next one follows in the same turn.
    Skip,
    /// The instruction is complete. The processor is free for another rank, but the rank also executes its next instruction
    /// immediately.
    GoOn,
    /// The rank needs processor time first.
    Spend,
    /// The rank waits for other ranks.
    Wait,
    /// The rank waits in this phase, without a processor, for an event of its own.
    Asks(RankPhase),
}

/// State of one rank, in two cache lines; most turns need only the first.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(128))]
pub(super) struct ContendedRank<'a> {
    /// Words of its instructions.
    pub words: &'a [u32],
    /// Position of the current instruction; `next` is the position of the next one.
    pub at: u32,
    pub next: u32,
    /// Slot of the next receive to post.
    pub next_slot: Slot,
    pub lane: Lane,
    pub phase: RankPhase,
    /// Time of the program's call; `before` is the end of the call's start-up.
    pub call: Time,
    pub before: Time,
    /// End of the start-up, or of the time on a message that has arrived.
    pub until: Time,
    /// Start of the wait for a processor.
    pub queued: Time,
    /// Time that its call has waited for a processor and for the switch to it.
    pub waited: Time,
    pub overhead: Time,
    pub compute: Time,
    pub end: Time,
    /// Earliest time at which the sending interface may start the next message.
    pub interface_free: Time,
    /// Time at which the interface is free for the message that the rank sends.
    pub departs: Time,
    /// Duration of the start-up, if turns are scheduled.
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
