//! Messages between nodes over a network that they share ([`Transit`]), here under Dimemas' rules.
//!
//! With rates, a message departs once it has its links and its bus, and only its bytes take time in the network. When the
//! last byte has passed, the links, the bus and a held sender are free, and the message arrives after its latency. If all
//! messages have the same latency, the result is the same as in the walk, which spends the latency first: all flows are
//! shifted by the latency.
//!
//! With packets, messages need no links and no bus of the machine: they queue at interfaces and switches. RTS and CTS cross
//! the network, and a rank answers them while it waits in a call. A held sender continues when its system holds the rest of
//! its message (`sharing.packet.send_buffer`), or without such a buffer when the last byte has arrived. The walk lets it
//! continue one latency earlier, but that time is not known early enough here.
//!
//! Events in the network up to the next event of the replay happen before that event.

use super::ContentionEngine;
use crate::{
    contention::{events::EventKind, messages::ContendedMessage},
    observer::Observer,
    routes::Route,
    transit::{Delivery, Departure, Progress, ReceivePosted, Rts, Transit},
};
use flowcast_network::sharing::SharingError;
use flowcast_program::{program::Program, slot::Slot};
use flowcast_units::{Rank, Time};

/// State of messages that share the network; empty if they do not.
pub(crate) struct InTransit {
    /// Number of each slot's message, indexed by slot.
    numbers: Vec<u32>,
    /// Time at which each rank last left a call in which it polled, indexed by rank; empty unless the transit carries RTS
    /// and CTS ([`Transit::HANDSHAKES`]).
    pub polled: Vec<Time>,
}

impl InTransit {
    /// State for the messages of a program.
    pub(crate) fn new<T: Transit>(program: &Program) -> InTransit {
        let slots = program.messages() as usize;
        InTransit {
            numbers: vec![0; rows(T::SHARED, slots)],
            polled: vec![ReceivePosted::NEVER; rows(T::HANDSHAKES, program.streams())],
        }
    }
}

fn rows(is_kept: bool, count: usize) -> usize {
    if is_kept { count } else { 0 }
}

impl<O: Observer, T: Transit> ContentionEngine<'_, O, T> {
    /// Advances the network to its next event before the next event of the replay. Returns `true` if there is one.
    pub(crate) fn carry(&mut self) -> Result<bool, SharingError> {
        // Events that are due now come first: they may send more messages that start now.
        let (now, next) = (self.pending.now(), self.pending.next_time());
        if next == Some(now) {
            return Ok(false);
        }
        let Some(progress) = self.transit.deliver(next)? else {
            return Ok(false);
        };
        // The packet level rounds its times.
        let within = |time: Time| time.min(next.unwrap_or(Time::NEVER)).max(now);
        match progress {
            Progress::Held { slot, since } => {
                self.pending.advance(within(since));
                self.let_go(slot);
            }
            Progress::Met(Departure { slot, start, .. }) => {
                self.pending.advance(within(start));
                self.meet(self.in_transit.numbers[slot]);
            }
            Progress::Arrived(delivery) => {
                self.pending.advance(within(delivery.arrival));
                self.delivered(delivery);
            }
        }
        Ok(true)
    }

    /// Sends a message that has all links that it needs into the network.
    pub(crate) fn depart(&mut self, number: u32, rts: Option<Rts>) {
        let (now, ContendedMessage { slot, class, .. }) =
            (self.pending.now(), self.messages[number]);
        let route = self.route_number(slot);
        let size = self.program.class(class).size;
        let mut cost = self.costs.paths[route].classes[class as usize];
        cost.delay = cost.bytes;
        if let Some(perturbation) = self.perturbation.as_mut().filter(|_| !T::CONTROL_FRAMES) {
            cost.delay = cost.delay
                * perturbation
                    .transfer(now, route, Route::Between, size)
                    .on_links;
        }
        self.in_transit.numbers[slot] = number;
        self.transit.depart(Departure {
            slot,
            start: now,
            size,
            cost,
            rts,
            latency: Time::ZERO,
            ends: None,
        });
    }

    /// Handles a message whose last byte has passed the links, or, at the packet level, has arrived.
    fn delivered(&mut self, delivery: Delivery) {
        let Delivery {
            slot,
            start,
            arrival,
            ..
        } = delivery;
        if let Some(number) = slot.0.checked_sub(self.program.messages()) {
            let (_, flight) = self.messages.times(number).part;
            return self.pass_on(number, flight);
        }
        let number = self.in_transit.numbers[slot];
        let route = self.route_number(slot);
        let latency = if T::CONTROL_FRAMES {
            Time::ZERO
        } else {
            let path = &self.costs.paths[route];
            path.latency + path.classes[self.messages[number].class as usize].added_latency
        };
        if O::WATCHES {
            self.observer.moved(slot, start, arrival + latency);
            let asked = self.messages.times(number).asked;
            if !T::CONTROL_FRAMES && asked < start {
                self.observer.queued(slot, asked);
            }
        }
        if T::CONTROL_FRAMES {
            self.let_go(slot);
        }
        self.pass_on(number, latency);
    }

    /// Releases the links of a message, whose last byte arrives at the receiver after this latency.
    fn pass_on(&mut self, number: u32, latency: Time) {
        if T::CONTROL_FRAMES {
            return self.arrived(number);
        }
        if latency > Time::ZERO {
            self.pending.at(
                self.pending.now() + latency,
                EventKind::Arrived.event(number),
            );
        }
        self.moved(number);
    }

    /// Lets the sender of a message continue if it waited for its receiver. Nothing waits for the data of an access.
    fn let_go(&mut self, slot: Slot) {
        let is_message = slot.0 < self.program.messages();
        if self.has_rendezvous && is_message && self.handshakes.holds(slot) {
            self.release_sender(self.in_transit.numbers[slot]);
        }
    }

    /// Starts a rendezvous message with its RTS.
    pub(crate) fn depart_with_rts(&mut self, number: u32) {
        let ContendedMessage { slot, from, .. } = self.messages[number];
        if O::WATCHES {
            self.messages.times(number).asked = self.pending.now();
        }
        let rts = self.handshakes.request(self.program, from, slot, number);
        self.depart(number, Some(rts));
    }

    /// Lets a rank that waits in a call, or has ended, answer RTS and CTS.
    #[inline(always)]
    pub(crate) fn enter_call(&mut self, rank: Rank) {
        if T::HANDSHAKES {
            self.transit.wait(rank, self.pending.now());
        }
    }

    /// Ends the answers of a rank until it waits again.
    #[inline(always)]
    pub(crate) fn stop_polling(&mut self, rank: Rank) {
        if T::HANDSHAKES {
            self.transit.go_on(rank);
        }
    }

    /// Records that a rank leaves a call in which it polled, at `end`.
    #[inline(always)]
    pub(crate) fn leave_call(&mut self, rank: Rank, end: Time) {
        if T::HANDSHAKES {
            self.in_transit.polled[rank] = end;
            self.stop_polling(rank);
        }
    }
}
