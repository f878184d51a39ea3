//! What the next events will need is prefetched.
//!
//! With many ranks an event's rank, message, links and slot are far away, and waiting for them one after the other takes
//! most of the time. The next events are known, so what they need is fetched while the one before is worked on.

use super::{
    super::{observer::Observer, transit::Transit},
    engine::ContentionEngine,
    events::{Event, EventKind},
    messages::{ContendedMessage, Purpose},
    ranks::ContendedRank,
};
use crate::prefetch::{prefetch, prefetch_behind};
use flowcast_program::{opcodes, slot::Slot};
use flowcast_units::Rank;

/// How many events before its own what an event needs is fetched, one thing after what leads to it.
const AHEAD: [usize; 4] = [15, 10, 6, 3];

impl<O: Observer, T: Transit> ContentionEngine<'_, O, T> {
    /// Prefetches what the next events will need.
    #[inline(always)]
    pub(super) fn look_ahead(&self) {
        let Some([first, second, third, fourth]) = self.pending.soon(AHEAD) else {
            return self.look_ahead_without_lane();
        };
        if let Some(event) = first {
            self.prefetch(event);
        }
        if let Some(event) = second {
            self.prefetch_next(event);
        }
        if let Some(event) = third {
            self.prefetch_partner(event);
        }
        if let Some(event) = fourth
            && event.kind() == EventKind::Moved
        {
            let message = &self.messages[event.index()];
            self.links
                .prefetch_links_of_waiting(message, &self.messages);
        }
    }

    /// The same behind an event without a lane, mostly the end of a computation, between which others come.
    #[inline(always)]
    fn look_ahead_without_lane(&self) {
        let mut soon = self.pending.soon_without_lane();
        if let Some(event) = soon.next() {
            self.prefetch_next(event);
        }
        soon.for_each(|event| self.prefetch(event));
    }

    /// The rank or message itself.
    #[inline(always)]
    fn prefetch(&self, event: Event) {
        if !event.is_turn() {
            self.messages.prefetch(event.index());
        } else if let Some(state) = self.ranks.get(event.index() as usize) {
            prefetch(&state.words);
            prefetch(&state.overhead);
        }
    }

    /// What it leads to: the instruction and the links of the node, or the links and the slot.
    #[inline(always)]
    fn prefetch_next(&self, event: Event) {
        if event.is_turn() {
            prefetch_instructions(&self.ranks[event.index() as usize]);
            return self.links.prefetch_node_of(Rank(event.index()));
        }
        let message = &self.messages[event.index()];
        if event.kind() != EventKind::Arrived {
            self.links.prefetch(message);
        }
        if event.kind() != EventKind::Moved || !self.has_flights {
            self.prefetch_receiver(message);
        }
    }

    /// The slot of a message, and who waits for it.
    #[inline(always)]
    fn prefetch_receiver(&self, message: &ContendedMessage) {
        if message.purpose == Purpose::Deliver {
            self.arrivals.prefetch(message.slot);
            let receiver = self.near_receiver(message.slot);
            if let Some(state) = self.ranks.get(receiver.index()) {
                prefetch(&state.words);
                prefetch(&state.overhead);
            }
        }
    }

    /// The other end: the receiver's links of a send and the message before it at its own, the messages that wait for the
    /// links, or the instruction of the receiver.
    #[inline(always)]
    fn prefetch_partner(&self, event: Event) {
        if event.is_turn() {
            return self.prefetch_partner_of(Rank(event.index()));
        }
        let message = &self.messages[event.index()];
        if event.kind() != EventKind::Arrived {
            return self.links.prefetch_waiting(message, &self.messages);
        }
        let receiver = self.near_receiver(message.slot);
        if let Some(state) = self.ranks.get(receiver.index()) {
            prefetch_instructions(state);
        }
    }

    /// The slot of a send, the links of its receiver and the message that its sender sends already, or the slot of a receive.
    #[inline(always)]
    fn prefetch_partner_of(&self, rank: Rank) {
        let state = &self.ranks[rank];
        match opcodes::sends_to(state.words, state.at as usize) {
            Some(slot) => {
                self.arrivals.prefetch(slot);
                self.links.prefetch_node_of(self.near_receiver(slot));
                self.links.prefetch_holder(rank, &self.messages);
            }
            None => self.arrivals.prefetch(state.next_slot),
        }
    }

    /// The rank that would receive into a slot if all ranks received as much.
    #[inline(always)]
    fn near_receiver(&self, slot: Slot) -> Rank {
        Rank(((u64::from(slot.0) * self.ranks_per_slot) >> 32) as u32)
    }
}

/// The instruction of a rank, and what begins behind it.
#[inline(always)]
fn prefetch_instructions(state: &ContendedRank<'_>) {
    prefetch_behind(state.words, state.at as usize);
    prefetch_behind(state.words, state.at as usize + 3);
}
