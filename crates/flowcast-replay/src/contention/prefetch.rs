//! Asking the memory for what will be needed soon.
//!
//! With many ranks an event's rank, message, links and slot are far away, and waiting for them one after the other takes
//! most of the time. The next events are known, so what they need is asked for while the one before is worked on.

use super::super::record::Observer;
use super::engine::Engine;
use super::messages::Purpose;
use super::pending::{Event, Kind};
use flowcast_trace::words::{self, Op};

/// From so many ranks on, their states do not stay in the nearest caches, and looking ahead pays.
pub const MANY_RANKS: usize = 4096;

/// Asks for the cache line of a value; without effect on any result, and nothing at all where it cannot be done.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // Sound: a prefetch reads nothing that anybody sees, and a reference is a valid address.
    #[allow(unsafe_code)]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// The same for a place of a list, if there is one.
#[inline(always)]
pub fn prefetch_at<T>(values: &[T], index: u32) {
    if let Some(value) = values.get(index as usize) {
        prefetch(value);
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Asks for what the next events will need, in the order in which one thing leads to another.
    #[inline(always)]
    pub(super) fn look_ahead(&self) {
        let ahead = |places: usize| self.pending.ahead(places);
        let now = |places: usize| self.pending.ahead_now(places);
        [ahead(15), now(9)].into_iter().flatten().for_each(|event| self.ask_for(event));
        [ahead(10), now(6)].into_iter().flatten().for_each(|event| self.ask_for_next(event));
        [ahead(5), now(3)].into_iter().flatten().for_each(|event| self.ask_for_partner(event));
    }

    /// The rank or message itself.
    #[inline(always)]
    fn ask_for(&self, event: Event) {
        match event.kind {
            Kind::Turn => {
                let state = &self.ranks[event.index as usize];
                prefetch(&state.words);
                prefetch(&state.blocked);
            }
            _ => prefetch(&self.messages[event.index]),
        }
    }

    /// What it leads to: the instruction and the next slot to receive into, or the links and the slot.
    #[inline(always)]
    fn ask_for_next(&self, event: Event) {
        match event.kind {
            Kind::Turn => {
                let state = &self.ranks[event.index as usize];
                prefetch_at(state.words, state.at);
                prefetch_at(&self.slots.states, state.next_slot);
                self.links.ask_for_node(self.processors.node(event.index));
            }
            _ => {
                let message = &self.messages[event.index];
                self.links.ask_for(message);
                prefetch_at(&self.slots.states, message.slot);
                if message.purpose == Purpose::Deliver {
                    prefetch(&self.ranks[self.slots.receiver(message.slot) as usize].words);
                }
            }
        }
    }

    /// The other end: the receiver's links and the slot that a send fills, or the messages that wait for the links.
    #[inline(always)]
    fn ask_for_partner(&self, event: Event) {
        match event.kind {
            Kind::Turn => {
                let state = &self.ranks[event.index as usize];
                if let Some((Op::Send { slot, .. }, _)) = words::decode(state.words, state.at as usize) {
                    prefetch_at(&self.slots.states, slot);
                    self.links.ask_for_node(self.processors.node(self.slots.receiver(slot)));
                }
            }
            _ => {
                let message = &self.messages[event.index];
                self.links.ask_for_waiting(message, &self.messages);
                if message.purpose == Purpose::Deliver {
                    let state = &self.ranks[self.slots.receiver(message.slot) as usize];
                    prefetch(&state.blocked);
                    prefetch_at(state.words, state.at);
                }
            }
        }
    }
}
