//! Sends, the interface that takes their messages, and waits for messages to leave the interface.

use super::{
    RankState, WalkEngine,
    lanes::{LaneClass, Times, later, plus},
    rank_state::StartedSend,
};
use crate::{
    observer::{Observer, Sent},
    transit::Transit,
};
use flowcast_program::slot::Slot;
use flowcast_units::{Rank, Time};

/// A message to send, with its costs on its route.
#[derive(Clone, Copy)]
pub(super) struct SendCosts<'a, const W: usize> {
    pub class: u32,
    pub slot: Slot,
    pub cost: &'a LaneClass<W>,
}

impl<'a, const W: usize, O: Observer, T: Transit, const RENDEZVOUS: bool, const MANY_ROUTES: bool>
    WalkEngine<'a, W, O, T, RENDEZVOUS, MANY_ROUTES>
{
    /// A message to send, with its costs.
    #[inline(always)]
    pub(super) fn send_costs(&self, class: u32, slot: Slot) -> SendCosts<'a, W> {
        let cost = &self.path(slot).classes[class as usize];
        SendCosts { class, slot, cost }
    }

    /// Sends a message that waits for no receiver.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        send: &SendCosts<'a, W>,
    ) {
        let SendCosts { class, slot, cost } = *send;
        let (mut sent, departs) = self.begin_by_interface(rank, state, send);
        if T::SHARED && self.transit.carries(slot, self.is_between_nodes(slot)) {
            self.observer.sent(rank, slot, sent);
            self.transit.depart(self.departure(slot, class, departs[0]));
        } else {
            sent.arrival = departs[0] + cost.delay[0];
            self.observer.sent(rank, slot, sent);
            self.fill(slot, |lane| departs[lane] + cost.delay[lane]);
        }
        if RENDEZVOUS {
            self.handshakes.skip(slot);
        }
    }

    /// Executes the processor's part of a send. Also returns the time at which the message departs, once the interface is
    /// free. If the interface does not queue messages, the processor also waits until then. The time at which the message
    /// has left is recorded for later waits.
    #[inline(always)]
    pub(super) fn begin_by_interface(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        send: &SendCosts<'a, W>,
    ) -> (Sent, Times<W>) {
        let SendCosts { class, slot, cost } = *send;
        let (begun, departs) = match cost.queues {
            true => state.begin_queued_send(&cost.send, &cost.busy),
            false => {
                let busy = self.costs.interfaces.are_busy.then_some(&cost.busy);
                (state.begin_send(&cost.send, busy), state.time)
            }
        };
        if cost.is_noted {
            // A wait for a rendezvous message ends with its release.
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
        let StartedSend { call, start, end } = begun;
        let sent = Sent {
            class,
            call,
            start,
            processor: Time::ZERO,
            end,
            departs: departs[0],
            arrival: Time::NEVER,
        };
        (sent, departs)
    }

    /// Waits for a message to leave the interface.
    #[inline(always)]
    pub(super) fn until_left(&mut self, rank: Rank, state: &mut RankState<'a, W>, ago: u32) {
        let Some(left) = self.leaving.get(rank, ago) else {
            return;
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
    }
}
