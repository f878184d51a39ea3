//! What both sides know about each message.

use flowcast_trace::{program::Program, slot::Slot};
use flowcast_units::Rank;

/// How far the two sides of a message are. A byte for each message, so that many of them stay at hand.
pub(super) mod state {
    pub(crate) const EMPTY: u8 = 0;
    /// The receiver is ready.
    pub(crate) const POSTED: u8 = 1;
    /// The receiver waits.
    pub(crate) const AWAITED: u8 = 2;
    /// The message is there.
    pub(crate) const ARRIVED: u8 = 3;
    /// The message waits for its receiver.
    pub(crate) const PENDING: u8 = 4;
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
    pub states: Vec<u8>,
    /// By rank: its first slot; one more at the end.
    firsts: Vec<Slot>,
    /// Ranks for each slot on average, in parts of 2^32.
    ranks_per_slot: u64,
    /// By slot, with rendezvous only: the message that waits for its receiver.
    waiting: Vec<u32>,
    /// By slot, with rendezvous only.
    pub releases: Vec<Release>,
}

impl Slots {
    /// Nothing sent, nothing posted.
    pub(super) fn new(program: &Program, has_rendezvous: bool) -> Slots {
        let messages = program.messages();
        let ranks = program.streams() as u32;
        let mut firsts: Vec<Slot> = (0..ranks)
            .map(Rank)
            .map(|rank| program.first_slot(rank))
            .collect();
        firsts.push(Slot(messages));
        // Rounded up, so that the first slots of a rank are not taken for the last ones of the rank before.
        let ranks_per_slot = (u64::from(ranks) << 32).div_ceil(u64::from(messages.max(1)));
        let states = vec![state::EMPTY; messages as usize];
        let rows = |is_kept: bool| if is_kept { messages as usize } else { 0 };
        let waiting = vec![0; rows(has_rendezvous)];
        let releases = vec![Release::NotYet; rows(has_rendezvous)];
        Slots {
            states,
            firsts,
            ranks_per_slot,
            waiting,
            releases,
        }
    }

    /// The first slot that a rank receives into.
    #[inline(always)]
    pub(super) fn first(&self, rank: Rank) -> Slot {
        self.firsts[rank]
    }

    /// The rank that would receive into a slot if all ranks received as much.
    #[inline(always)]
    pub(super) fn near_receiver(&self, slot: Slot) -> Rank {
        Rank(((u64::from(slot.0) * self.ranks_per_slot) >> 32) as u32)
    }

    /// Which rank receives into a slot: looked for where it would be if all ranks received as much.
    #[inline(always)]
    pub(super) fn receiver(&self, slot: Slot) -> Rank {
        let guess = self.near_receiver(slot).index();
        for rank in [guess, guess + 1] {
            if let Some([first, end]) = self.firsts.get(rank..rank + 2)
                && (*first..*end).contains(&slot)
            {
                return Rank(rank as u32);
            }
        }
        Rank(self.firsts.partition_point(|first| *first <= slot) as u32 - 1)
    }

    /// A message waits for its receiver.
    pub(super) fn wait(&mut self, slot: Slot, message: u32) {
        self.states[slot] = state::PENDING;
        self.waiting[slot] = message;
    }

    /// The message that waits for its receiver.
    pub(super) fn waiting(&self, slot: Slot) -> u32 {
        self.waiting[slot]
    }

    /// Whether any sender waits for its receiver.
    #[inline(always)]
    pub(super) fn has_rendezvous(&self) -> bool {
        !self.releases.is_empty()
    }
}
