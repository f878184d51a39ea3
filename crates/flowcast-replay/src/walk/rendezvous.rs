//! Rendezvous messages.
//!
//! A transfer starts when the receive has been posted and the sender's overhead has ended. If the transit carries RTS and
//! CTS ([`Transit::HANDSHAKES`]), the message departs with its RTS. Otherwise RTS and CTS are free, or the network's message
//! rule includes their cost.

use super::{
    RankState, WalkEngine,
    lanes::{Times, later, plus},
    sends::SendCosts,
    slots::{Known, Slots},
};
use crate::{
    observer::Observer,
    slab::Slab,
    transit::{Departure, ReceivePosted, Rts, Transit},
};
use flowcast_program::{program::Program, slot::Slot};
use flowcast_units::{Rank, Time};
use std::array::from_fn;

/// Shared state of senders and receivers.
pub(crate) struct Handshakes<'a, const W: usize> {
    /// Time at which the receiver became ready, or the send that waits for it, indexed by slot.
    pub posted: Slots<W>,
    /// Time of each receiver's last poll before it became ready, indexed by slot; empty unless the transit carries RTS and
    /// CTS.
    polled: Vec<Time>,
    /// Times from which senders may continue, indexed by slot.
    pub released: Slots<W>,
    /// `true` if the sender ever waits for its release, indexed by slot; if empty, every sender may.
    awaited: &'a [bool],
    /// Sends whose receiver is not ready.
    pending: Slab<PendingSend<W>>,
}

/// A rendezvous send whose receiver is not ready.
struct PendingSend<const W: usize> {
    ready: Times<W>,
    class: u32,
}

impl<'a, const W: usize> Handshakes<'a, W> {
    /// State for the messages of a program, if any of them waits for its receiver.
    pub(crate) fn new<T: Transit>(
        program: &Program,
        has_rendezvous: bool,
        awaited: &'a [bool],
    ) -> Self {
        let slots = if has_rendezvous {
            program.messages()
        } else {
            0
        };
        let polls = if T::HANDSHAKES { slots as usize } else { 0 };
        Handshakes {
            posted: Slots::new(Slot(0)..Slot(slots)),
            polled: vec![Time::ZERO; polls],
            released: Slots::new(Slot(0)..Slot(slots)),
            awaited,
            pending: Slab::default(),
        }
    }

    /// Records that the sender of a message does not wait for its receiver.
    #[inline(always)]
    pub(crate) fn skip(&mut self, slot: Slot) {
        self.posted.close(slot);
        self.released.close(slot);
    }

    /// Records that a receiver is ready for the message of a slot; `polled` is present if the transit carries RTS and CTS.
    /// Returns the send that was waiting for the receiver and may start.
    #[inline(always)]
    pub(crate) fn post(
        &mut self,
        slot: Slot,
        time: &Times<W>,
        polled: Option<Time>,
        transit: &mut impl Transit,
    ) -> Option<u32> {
        match self.posted.look(slot) {
            Known::Time(_) => {}
            Known::Nothing => {
                self.posted.fill(slot, |lane| time[lane]);
                if let Some(polled) = polled {
                    self.polled[slot] = polled;
                }
            }
            Known::Awaited(send) => {
                self.posted.close(slot);
                let Some(polled) = polled else {
                    return Some(send);
                };
                let since = time[0];
                transit.receive_posted(slot, ReceivePosted { since, polled });
            }
        }
        None
    }

    /// Returns the RTS of a message. If its receive has not been posted, the send waits for it.
    pub(crate) fn request(&mut self, program: &Program, from: Rank, slot: Slot, send: u32) -> Rts {
        let mut posted = None;
        if let Known::Time(number) = self.posted.look(slot) {
            let since = self.posted.take(slot, number)(0);
            let polled = self.polled[slot];
            posted = Some(ReceivePosted { since, polled });
        } else {
            self.posted.wait(slot, send);
        }
        let to = program.receiver(slot);
        Rts { from, to, posted }
    }

    /// `true` if the sender of a message may not continue yet.
    pub(crate) fn holds(&self, slot: Slot) -> bool {
        !matches!(self.released.look(slot), Known::Time(_))
    }
}

impl<'a, const W: usize, O: Observer, T: Transit, const RENDEZVOUS: bool, const MANY_ROUTES: bool>
    WalkEngine<'a, W, O, T, RENDEZVOUS, MANY_ROUTES>
{
    /// Executes a blocking receive.
    pub(super) fn post_and_receive(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
    ) -> Option<()> {
        let slot = state.next_slot;
        if !state.entered {
            state.entered = true;
            self.post(
                slot,
                &plus(&state.time, &self.path(slot).recv_before),
                state.polled,
            );
        }
        self.receive(rank, state, slot)?;
        state.entered = false;
        state.next_slot += 1;
        Some(())
    }

    /// Records that a receiver is ready for the message of a slot. If the sender waits for it, the transfer starts.
    pub(super) fn post(&mut self, slot: Slot, time: &Times<W>, polled: Time) {
        let polled = (T::HANDSHAKES && self.is_between_nodes(slot)).then_some(polled);
        if let Some(number) = self.handshakes.post(slot, time, polled, self.transit) {
            let PendingSend { ready, class } = self.handshakes.pending[number];
            self.handshakes.pending.give_back(number);
            self.transfer(slot, class, &ready, time);
        }
    }

    /// Starts a rendezvous transfer and records its arrival for the receiver and its release for the sender.
    fn transfer(&mut self, slot: Slot, class: u32, ready: &Times<W>, posted: &Times<W>) {
        let cost = &self.path(slot).classes[class as usize];
        let start: Times<W> = from_fn(|lane| later(ready[lane], posted[lane]));
        if T::SHARED && self.is_between_nodes(slot) {
            return self.meet(self.departure(slot, class, start[0]));
        }
        self.observer
            .moved(slot, start[0], start[0] + cost.delay[0]);
        self.fill(slot, |lane| start[lane] + cost.delay[lane]);
        self.release(slot, &plus(&start, &cost.held));
    }

    /// Starts the data of a message whose sender and receiver are ready.
    pub(super) fn meet(&mut self, departure: Departure) {
        let Departure {
            slot, start, cost, ..
        } = departure;
        self.transit.depart(departure);
        // A sender that is not held by the transfer itself does not wait for its end.
        if cost.held == Time::ZERO {
            self.release(slot, &[start; W]);
        }
    }

    /// Lets the sender of a rendezvous message continue from this time.
    fn release(&mut self, slot: Slot, time: &Times<W>) {
        let Handshakes {
            released, awaited, ..
        } = &mut self.handshakes;
        let waits = if awaited.get(slot.index()).is_none_or(|awaited| *awaited) {
            released.fill(slot, |lane| time[lane])
        } else {
            released.close(slot)
        };
        self.ready.extend(waits.map(Rank));
    }

    /// Lets the sender of a message continue if the message holds it.
    pub(super) fn let_go(&mut self, slot: Slot, time: Time) {
        if RENDEZVOUS && slot.0 < self.program.messages() && self.handshakes.holds(slot) {
            self.release(slot, &[time; W]);
        }
    }

    pub(super) fn send_rendezvous(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        send: &SendCosts<'a, W>,
    ) -> Option<()> {
        if !state.entered {
            self.start_rendezvous(rank, state, send);
            if self.program.class(send.class).mode.non_blocking {
                return Some(());
            }
            state.entered = true;
        }
        self.until_released(rank, state, send.slot)?;
        state.entered = false;
        Some(())
    }

    fn start_rendezvous(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        send: &SendCosts<'a, W>,
    ) {
        let SendCosts { class, slot, .. } = *send;
        let (sent, ready) = self.begin_by_interface(rank, state, send);
        self.observer.sent(rank, slot, sent);
        if T::HANDSHAKES && self.is_between_nodes(slot) {
            self.send_rts(rank, slot, class, ready[0]);
        } else if let Known::Time(number) = self.handshakes.posted.look(slot) {
            let posted = from_fn(self.handshakes.posted.take(slot, number));
            self.transfer(slot, class, &ready, &posted);
        } else {
            let number = self.handshakes.pending.insert(PendingSend { ready, class });
            self.handshakes.posted.wait(slot, number);
        }
    }

    /// Starts a rendezvous message with its RTS.
    fn send_rts(&mut self, rank: Rank, slot: Slot, class: u32, ready: Time) {
        let rts = self.handshakes.request(self.program, rank, slot, rank.0);
        self.transit.depart(Departure {
            rts: Some(rts),
            ..self.departure(slot, class, ready)
        });
    }

    /// Waits until the sender of a slot may continue.
    fn until_released(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        slot: Slot,
    ) -> Option<()> {
        let Known::Time(number) = self.handshakes.released.look(slot) else {
            self.handshakes.released.wait(slot, rank.0);
            return None;
        };
        let release = self.handshakes.released.take(slot, number);
        let call = state.time[0];
        state.time = from_fn(|lane| later(release(lane), state.time[lane]));
        if state.time[0] > call {
            self.observer.held(rank, slot, call, state.time[0]);
        }
        self.observer.released(rank, slot);
        state.polled = state.time[0];
        Some(())
    }

    pub(super) fn wait_send(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        ago: u32,
    ) -> Option<()> {
        if let Some(&Some(slot)) = self.sent.get(rank, ago) {
            self.until_released(rank, state, slot)?;
        }
        self.until_left(rank, state, ago);
        Some(())
    }
}
