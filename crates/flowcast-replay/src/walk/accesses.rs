//! One-sided communication and files in a replay without contention.
//!
//! For locks and files, the order of requests in time matters. Ranks run as far as they can. When no rank can continue, the
//! earliest request is served, or a message that arrives before it. No earlier request can appear later, because anything
//! else that a rank waits for follows from a later request or arrival. If messages share the network, transfers share it
//! with them.

use super::{RankState, WalkEngine, lanes::later};
use crate::{
    accesses::{AccessEngine, AccessFlight, Accesses, Done, LockRequest},
    costs::ClassCost,
    observer::{Accessed, Observer},
    transit::{Departure, Transit},
};
use flowcast_program::slot::Slot;
use flowcast_units::{Rank, Time};

impl<'a, const W: usize, O: Observer, T: Transit, const RENDEZVOUS: bool, const MANY_ROUTES: bool>
    AccessEngine<'a> for WalkEngine<'a, W, O, T, RENDEZVOUS, MANY_ROUTES>
{
    type State = RankState<'a, W>;

    fn accesses(&mut self) -> (&mut Accesses<'a>, &mut Vec<Rank>) {
        (&mut self.accesses, &mut self.ready)
    }

    fn begin(
        &mut self,
        _rank: Rank,
        state: &mut RankState<'a, W>,
        overhead: Time,
        data: Option<ClassCost>,
    ) -> Option<Accessed> {
        let call = state.time[0];
        let mut start = call;
        if let Some(cost) = data {
            start = later(state.interface_free[0], call);
            state.interface_free = [start + cost.busy; W];
        }
        let came = start + overhead;
        Some(Accessed {
            call,
            start,
            came,
            end: came,
            ..Accessed::default()
        })
    }

    fn transfer(&mut self, transfer: AccessFlight, [from, to]: [Rank; 2]) {
        let AccessFlight {
            rank,
            memory,
            departure,
            ..
        } = transfer;
        let transfers = &mut self.accesses.transfers;
        if T::SHARED && self.placement.node(from) != self.placement.node(to) {
            let slot = Slot(self.program.messages() + transfers.start(transfer));
            return self.transit.depart(Departure { slot, ..departure });
        }
        let done = Done {
            at: departure.start + departure.cost.delay,
            latency: departure.latency,
            conflict: Time::ZERO,
        };
        transfers.finish(rank, memory, done);
    }

    fn ask(&mut self, state: &mut RankState<'a, W>, request: LockRequest) {
        if !state.entered {
            state.entered = true;
            self.accesses.requests.put(request);
        }
    }

    fn end(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        overhead: Time,
        accessed: Accessed,
    ) {
        state.entered = false;
        state.overhead += overhead;
        state.time = [accessed.end; W];
        self.observer.accessed(rank, accessed);
    }
}
