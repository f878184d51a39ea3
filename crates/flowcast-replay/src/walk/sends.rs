//! Sends, the interface that takes their messages, and waits for messages to leave it.

use super::{
    Engine, RankState, Step,
    lanes::{LaneClass, Times, later, plus},
    rank_state::Begun,
};
use crate::{
    observer::{Observer, Sent},
    transit::Transit,
};
use flowcast_program::slot::Slot;
use flowcast_units::{Rank, Time};

/// A message that is sent, and what it costs on its route.
#[derive(Clone, Copy)]
pub(super) struct SendCosts<'a, const W: usize> {
    pub class: u32,
    pub slot: Slot,
    pub cost: &'a LaneClass<W>,
}

impl<'a, const W: usize, O: Observer, T: Transit, const RENDEZVOUS: bool, const MANY_ROUTES: bool>
    Engine<'a, W, O, T, RENDEZVOUS, MANY_ROUTES>
{
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        class: u32,
        slot: Slot,
        cost: &'a LaneClass<W>,
    ) -> Step {
        let send = SendCosts { class, slot, cost };
        let (begun, departs) = self.begin_by_interface(rank, state, &send);
        self.depart(rank, &send, begun, &departs);
        if RENDEZVOUS {
            self.handshakes.skip(slot);
        }
        Step::GoOn
    }

    /// A message that waits for no receiver departs.
    #[inline(always)]
    fn depart(&mut self, rank: Rank, send: &SendCosts<'a, W>, begun: Begun, departs: &Times<W>) {
        let SendCosts {
            class, slot, cost, ..
        } = *send;
        if T::SHARED && self.transit.carries(slot, self.is_between_nodes(slot)) {
            self.tell_sent(rank, send, begun, departs[0], Time::NEVER);
            self.transit.depart(self.departure(slot, class, departs[0]));
        } else {
            self.tell_sent(rank, send, begun, departs[0], departs[0] + cost.delay[0]);
            self.fill(slot, |lane| departs[lane] + cost.delay[lane]);
        }
    }

    /// The processor's part of a send whose interface may be busy, and when the message departs from that. Later waits know when
    /// it has left.
    #[inline(always)]
    pub(super) fn begin_by_interface(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        send: &SendCosts<'a, W>,
    ) -> (Begun, Times<W>) {
        let SendCosts { slot, cost, .. } = *send;
        let overhead = &cost.send;
        let (begun, departs) = match cost.queues {
            true => state.begin_queued_send(overhead, &cost.busy),
            false => (state.begin_send(overhead, self.busy(cost)), state.time),
        };
        if cost.is_noted {
            // A rendezvous is waited for by its release.
            let left = if cost.rendezvous {
                [Time::ZERO; W]
            } else {
                plus(&departs, &cost.leaves)
            };
            self.leaving.push(rank, left);
        }
        if RENDEZVOUS || O::WATCHES {
            self.sent.push(rank, Some(slot));
        }
        (begun, departs)
    }

    /// How long the interface rests after a message, if that matters.
    #[inline(always)]
    fn busy(&self, cost: &'a LaneClass<W>) -> Option<&'a Times<W>> {
        self.costs.interfaces.are_busy.then_some(&cost.busy)
    }

    #[inline(always)]
    pub(super) fn tell_sent(
        &mut self,
        rank: Rank,
        SendCosts { class, slot, .. }: &SendCosts<'a, W>,
        begun: Begun,
        departs: Time,
        arrival: Time,
    ) {
        let Begun { call, start, end } = begun;
        let sent = Sent {
            class: *class,
            call,
            start,
            processor: Time::ZERO,
            end,
            departs,
            arrival,
        };
        self.observer.sent(rank, *slot, sent);
    }

    /// A wait for a message to leave the interface.
    #[inline(always)]
    pub(super) fn until_left(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        ago: u32,
    ) -> Step {
        let Some(left) = self.leaving.get(rank, ago) else {
            return Step::GoOn;
        };
        let call = state.time[0];
        for (time, left) in state.time.iter_mut().zip(left) {
            *time = later(*left, *time);
        }
        if RENDEZVOUS {
            state.polled = state.time[0];
        }
        if O::WATCHES
            && let Some(&Some(slot)) = self.sent.get(rank, ago)
        {
            if state.time[0] > call {
                self.observer.left(rank, slot, call, state.time[0]);
            }
            if !RENDEZVOUS {
                self.observer.released(rank, slot);
            }
        }
        Step::GoOn
    }
}
