//! What both sides know about each message.

use crate::trace::program::Program;
use crate::trace::words::Op;
use crate::units::Rank;

/// What is known about a message by both sides: which rank receives it, and how far they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub receiver: u32,
    pub state: u32,
}

/// States of a slot. Any other is the number of a message, plus [`state::PENDING`], that waits for its receiver.
pub(super) mod state {
    pub const EMPTY: u32 = 0;
    /// The receiver is ready.
    pub const POSTED: u32 = 1;
    /// The receiver waits.
    pub const AWAITED: u32 = 2;
    /// The message is there.
    pub const ARRIVED: u32 = 3;
    pub const PENDING: u32 = 4;
}

/// Whether a sender that waits for its receiver may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Release {
    NotYet,
    Awaited,
    Released,
}

/// The slots of all messages.
pub(super) struct Slots {
    pub all: Vec<Slot>,
    /// By slot, with rendezvous only.
    pub releases: Vec<Release>,
    /// With rendezvous only: the slots of the sends that ranks have made, rank behind rank.
    sends: Vec<u32>,
    /// By rank: where its sends begin, and where the next one goes.
    made: Vec<(u32, u32)>,
}

impl Slots {
    /// Nothing sent, nothing posted.
    pub fn new(program: &Program, has_rendezvous: bool) -> Slots {
        let messages = program.messages();
        let mut all = Vec::with_capacity(messages as usize);
        let ranks = program.ranks() as u32;
        for rank in 0..ranks {
            let end = if rank + 1 < ranks { program.first_slot(Rank(rank + 1)) } else { messages };
            all.resize(end as usize, Slot { receiver: rank, state: state::EMPTY });
        }
        let (releases, sends) = match has_rendezvous {
            true => (vec![Release::NotYet; messages as usize], vec![0; messages as usize]),
            false => (Vec::new(), Vec::new()),
        };
        let made = if has_rendezvous { places_of_sends(program) } else { Vec::new() };
        Slots { all, releases, sends, made }
    }

    /// Notes the slot of a send.
    pub fn note_send(&mut self, rank: u32, slot: u32) {
        let (_, next) = &mut self.made[rank as usize];
        self.sends[*next as usize] = slot;
        *next += 1;
    }

    /// Whether any sender waits for its receiver.
    #[inline(always)]
    pub fn has_rendezvous(&self) -> bool {
        !self.made.is_empty()
    }

    /// The slot of the send of a rank that was this many sends ago.
    pub fn sent(&self, rank: u32, ago: u32) -> Option<u32> {
        let (first, next) = *self.made.get(rank as usize)?;
        let index = next.checked_sub(ago + 1).filter(|index| *index >= first)?;
        Some(self.sends[index as usize])
    }
}

fn places_of_sends(program: &Program) -> Vec<(u32, u32)> {
    let mut first = 0;
    let place = |rank| {
        let place = first;
        first += program.ops(Rank(rank)).filter(|(_, op)| matches!(op, Op::Send { .. })).count() as u32;
        (place, place)
    };
    (0..program.ranks() as u32).map(place).collect()
}
