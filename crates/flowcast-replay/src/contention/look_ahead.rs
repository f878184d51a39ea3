//! Prefetching for the next events.
//!
//! With many ranks, an event's rank, message, links and slot are not in the cache, and waiting for them one after the other
//! takes most of the time. The next events are known, so their data are fetched during the events before them.

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

/// Distances, in events, at which the data of an event are fetched; each stage needs the data of the stage before.
const AHEAD: [usize; 4] = [15, 10, 6, 3];

impl<O: Observer, T: Transit> ContentionEngine<'_, O, T> {
    /// Prefetches the data of the next events.
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

    /// Prefetches the data of the next events after an event without a lane. Such an event is usually the end of a
    /// computation, and other events come in between.
    #[inline(always)]
    fn look_ahead_without_lane(&self) {
        let mut soon = self.pending.soon_without_lane();
        if let Some(event) = soon.next() {
            self.prefetch_next(event);
        }
        soon.for_each(|event| self.prefetch(event));
    }

    /// Prefetches the rank or message itself.
    #[inline(always)]
    fn prefetch(&self, event: Event) {
        if !event.is_turn() {
            self.messages.prefetch(event.index());
        } else if let Some(state) = self.ranks.get(event.index() as usize) {
            prefetch(&state.words);
            prefetch(&state.overhead);
        }
    }

    /// Prefetches the next stage: the instruction and the links of the node, or the links and the slot.
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

    /// Prefetches the slot of a message and the rank that waits for it.
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

    /// Prefetches the data of the other end. For a send: the receiver's links, and the message that already holds the
    /// sender's own link. For a message: the messages that wait for its links, or the instruction of the receiver.
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

    /// Prefetches the slot of a send, the links of its receiver and the message that its sender is already sending, or the
    /// slot of a receive.
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

    /// The rank that would receive into a slot if all ranks received the same number of messages.
    #[inline(always)]
    fn near_receiver(&self, slot: Slot) -> Rank {
        Rank(((u64::from(slot.0) * self.ranks_per_slot) >> 32) as u32)
    }
}

/// Prefetches the instruction of a rank and the words after it.
#[inline(always)]
fn prefetch_instructions(state: &ContendedRank<'_>) {
    prefetch_behind(state.words, state.at as usize);
    prefetch_behind(state.words, state.at as usize + 3);
}
