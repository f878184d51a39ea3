//! One-sided communication and files in a replay without contention.
//!
//! | operation | the rank | its data |
//! |---|---|---|
//! | put, get, accumulate | spends the overhead of a send, goes on | are done after latency and `size/bandwidth`, as a message's; the target's processor takes no part |
//! | flush | waits until its transfers to the target are done | |
//! | lock | spends the overhead, then a latency for the request, waits for others' locks, a latency for the answer | |
//! | unlock | as flush; the lock is free then | |
//! | fence | as flush, then a barrier of all ranks of the window | |
//! | file | waits for one of the places at the file system, then `latency + size/bandwidth` | |
//!
//! For locks and files the order of requests in time counts. Ranks run as far as they can; when none can, the earliest
//! request is served, or the message that arrives before it. No earlier one can come after it, because whatever else a
//! rank waits for follows from a later request or arrival. Where messages share the network, transfers share it with them.

use super::{Engine, RankState, Step, rank_state::Begun};
use crate::{
    accesses::{AccessFlight, Done, RequestCosts},
    observer::{Accessed, Observer},
    routes::route_to_memory,
    transit::{Departure, Transit},
};
use flowcast_trace::{
    access::{Access, TransferKind},
    slot::Slot,
};
use flowcast_units::{Bytes, Rank, Time};

impl<'a, const W: usize, O: Observer, T: Transit, const RENDEZVOUS: bool, const MANY_ROUTES: bool>
    Engine<'a, W, O, T, RENDEZVOUS, MANY_ROUTES>
{
    pub(super) fn access(&mut self, rank: Rank, state: &mut RankState<'a, W>, index: u32) -> Step {
        match *self.program.access(index) {
            Access::Transfer {
                kind,
                window,
                target,
                size,
            } => {
                self.transfer_data(rank, state, (index, kind, size), (window, target));
                Step::GoOn
            }
            Access::Flush { window, target } => self.flush(rank, state, index, window, target),
            Access::Unlock { window, target } => {
                let step = self.flush(rank, state, index, window, Some(target));
                if let Step::GoOn = step {
                    self.accesses
                        .requests
                        .unlock((window, target), state.time[0], &mut self.ready);
                }
                step
            }
            access @ (Access::Lock { .. } | Access::File { .. }) => {
                self.request(rank, state, index, access)
            }
        }
    }

    fn transfer_data(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        (index, kind, size): (u32, TransferKind, Bytes),
        (window, target): (i32, Rank),
    ) {
        // Accesses are walked on one network only.
        let costs = self.costs.networks[0];
        let (_, route) = route_to_memory(costs.network(), self.placement, rank, target);
        let path = &costs.paths[route];
        let cost = path.accesses[index as usize];
        let Begun {
            call,
            start,
            end: came,
        } = state.begin_send(&[path.send_overhead; W], Some(&[cost.busy; W]));
        let memory = (window, target);
        let (own, other) = (self.placement.node(rank), self.placement.node(target));
        if T::SHARED && own != other {
            let number = self.accesses.transfers.start(AccessFlight {
                rank,
                memory,
                alone: [cost.delay, Time::ZERO],
                latency: path.latency,
            });
            let slot = Slot(self.program.messages() + number);
            let ends = if kind == TransferKind::Get {
                (other, own)
            } else {
                (own, other)
            };
            self.transit.depart(Departure {
                slot,
                start: came,
                size,
                cost,
                rts: None,
                latency: path.latency,
                ends: Some(ends),
            });
        } else {
            let done = Done {
                at: came + cost.delay,
                latency: path.latency,
                conflict: Time::ZERO,
            };
            self.accesses.transfers.finish(rank, memory, done);
        }
        let nothing = Accessed {
            access: index,
            call,
            start,
            came,
            processor: Time::ZERO,
            queued: Time::ZERO,
            latency: Time::ZERO,
            end: came,
        };
        self.observer.accessed(rank, nothing);
    }

    fn flush(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        index: u32,
        window: i32,
        target: Option<Rank>,
    ) -> Step {
        let Some(done) = self.accesses.transfers.flush(rank, window, target) else {
            return Step::Wait;
        };
        let accessed = done.awaited(index, state.time[0]);
        state.time = [accessed.end; W];
        self.observer.accessed(rank, accessed);
        Step::GoOn
    }

    /// Asks for a lock or a file: the first call queues the request, a later one takes the answer.
    fn request(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        index: u32,
        access: Access,
    ) -> Step {
        let costs = RequestCosts::new(self.costs.networks[0], self.placement, rank, access);
        let call = state.time[0];
        let came = call + costs.overhead;
        let asked = came + costs.way;
        let served = self.accesses.requests.take(rank);
        if served.is_none() && !state.entered {
            self.accesses.requests.put(rank, asked, access);
        }
        state.entered = served.is_none();
        let Some((begun, done)) = served else {
            return Step::Wait;
        };
        let end = done + costs.way;
        state.overhead += costs.overhead;
        state.time = [end; W];
        let accessed = Accessed {
            access: index,
            call,
            start: call,
            came,
            processor: Time::ZERO,
            queued: begun - asked,
            latency: costs.latency,
            end,
        };
        self.observer.accessed(rank, accessed);
        Step::GoOn
    }
}
