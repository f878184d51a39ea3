//! What the next events will need is prefetched.
//!
//! With many ranks an event's rank, message, links and slot are far away, and waiting for them one after the other takes
//! most of the time. The next events are known, so what they need is fetched while the one before is worked on.

use super::{
    super::{observer::Observer, transit::Transit},
    engine::Engine,
    events::{Event, Kind},
    messages::Purpose,
};
use crate::prefetch::{prefetch, prefetch_at};
use flowcast_trace::opcodes::{self, Op};
use flowcast_units::Rank;

impl<O: Observer, T: Transit> Engine<'_, O, T> {
    /// Prefetches what the next events will need, in the order in which one thing leads to another.
    #[inline(always)]
    pub(super) fn look_ahead(&self) {
        let ahead = |places: usize| self.pending.ahead(places);
        let now = |places: usize| self.pending.ahead_now(places);
        [ahead(15), now(9)]
            .into_iter()
            .flatten()
            .for_each(|event| self.prefetch(event));
        [ahead(10), now(6)]
            .into_iter()
            .flatten()
            .for_each(|event| self.prefetch_next(event));
        [ahead(5), now(3)]
            .into_iter()
            .flatten()
            .for_each(|event| self.prefetch_partner(event));
    }

    /// The rank or message itself.
    #[inline(always)]
    fn prefetch(&self, event: Event) {
        match event.kind {
            Kind::Turn => {
                let state = &self.ranks[event.index as usize];
                prefetch(&state.words);
                prefetch(&state.overhead);
            }
            _ => prefetch(&self.messages[event.index]),
        }
    }

    /// What it leads to: the instruction and the next slot to receive into, or the links and the slot.
    #[inline(always)]
    fn prefetch_next(&self, event: Event) {
        match event.kind {
            Kind::Turn => {
                let state = &self.ranks[event.index as usize];
                prefetch_at(state.words, state.at);
                prefetch_at(&self.slots.states, state.next_slot.0);
                self.links
                    .prefetch_node(self.processors.node(Rank(event.index)));
            }
            _ => {
                let message = &self.messages[event.index];
                self.links.prefetch(message);
                prefetch_at(&self.slots.states, message.slot.0);
                if message.purpose == Purpose::Deliver {
                    prefetch(&self.ranks[self.slots.receiver(message.slot)].words);
                }
            }
        }
    }

    /// The other end: the receiver's links and the slot that a send fills, or the messages that wait for the links.
    #[inline(always)]
    fn prefetch_partner(&self, event: Event) {
        match event.kind {
            Kind::Turn => {
                let state = &self.ranks[event.index as usize];
                if let Some((Op::Send { slot, .. }, _)) =
                    opcodes::decode(state.words, state.at as usize)
                {
                    prefetch_at(&self.slots.states, slot.0);
                    self.links
                        .prefetch_node(self.processors.node(self.slots.receiver(slot)));
                }
            }
            _ => {
                let message = &self.messages[event.index];
                self.links.prefetch_waiting(message, &self.messages);
                if message.purpose == Purpose::Deliver {
                    let state = &self.ranks[self.slots.receiver(message.slot)];
                    prefetch(&state.overhead);
                    prefetch_at(state.words, state.at);
                }
            }
        }
    }
}
