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
    accesses::{AccessTransfers, Done, Memory, Requests},
    costs::{ClassCost, Costs, PathCosts},
    observer::{Accessed, Observer},
    routes::{RouteNumbers, route},
    slab::Slab,
    transit::{Delivery, Departure, Transit},
};
use flowcast_trace::{
    access::{Access, TransferKind},
    slot::Slot,
};
use flowcast_units::{Bytes, Rank, Time};

/// All accesses that are in flight.
#[derive(Default)]
pub(super) struct Accesses {
    pub requests: Requests,
    transfers: AccessTransfers,
    /// Transfers that share the network, by number.
    flights: Slab<AccessFlight>,
}

/// A transfer that shares the network.
#[derive(Debug, Clone, Copy)]
struct AccessFlight {
    rank: Rank,
    memory: Memory,
    cost: ClassCost,
    latency: Time,
}

impl Accesses {
    /// Of so many ranks.
    pub(super) fn new(ranks: usize) -> Accesses {
        Accesses {
            requests: Requests::new(ranks),
            transfers: AccessTransfers::new(ranks),
            ..Accesses::default()
        }
    }
}

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
            access @ Access::Lock { target, .. } => self.lock(rank, state, index, access, target),
            access @ Access::File { .. } => self.file(rank, state, index, access),
        }
    }

    /// Accesses are walked on one network only.
    fn network(&self) -> &'a Costs {
        self.costs.networks[0]
    }

    fn path_to(&self, rank: Rank, target: Rank) -> &'a PathCosts {
        let (from, to) = (self.placement.node(rank), self.placement.node(target));
        // One-sided communication has no tag by which a dedicated connection could be chosen, and no size yet.
        let route = route(
            self.network().network(),
            self.placement,
            (from, to),
            (0, Bytes(0)),
        );
        &self.network().paths
            [RouteNumbers::new(self.placement).number(self.placement.group_index(from), route)]
    }

    fn transfer_data(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        (index, kind, size): (u32, TransferKind, Bytes),
        (window, target): (i32, Rank),
    ) {
        let path = self.path_to(rank, target);
        let cost = path.accesses[index as usize];
        let Begun {
            call,
            start,
            end: came,
        } = state.begin_send(&[path.send_overhead; W], Some(&[cost.busy; W]));
        let memory = (window, target);
        let (own, other) = (self.placement.node(rank), self.placement.node(target));
        if T::SHARED && own != other {
            self.accesses.transfers.start(rank, memory);
            let number = self.accesses.flights.insert(AccessFlight {
                rank,
                memory,
                cost,
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
            self.accesses.transfers.start(rank, memory);
            let done = Done {
                at: came + cost.delay,
                latency: path.latency,
                conflict: Time::ZERO,
            };
            self.accesses.transfers.end(rank, memory, done);
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

    /// A transfer that shared the network is done.
    pub(super) fn transferred(&mut self, number: u32, delivery: Delivery) {
        let AccessFlight {
            rank,
            memory,
            cost,
            latency,
        } = self.accesses.flights[number];
        self.accesses.flights.give_back(number);
        let Delivery { start, arrival, .. } = delivery;
        let done = Done {
            at: arrival,
            latency,
            conflict: (arrival - start - cost.delay).max(Time::ZERO),
        };
        if self.accesses.transfers.end(rank, memory, done) {
            self.ready.push(rank);
        }
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

    fn lock(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        index: u32,
        access: Access,
        target: Rank,
    ) -> Step {
        let path = self.path_to(rank, target);
        let (call, came) = (state.time[0], state.time[0] + path.send_overhead);
        let asked = came + path.latency;
        let Some((granted, _)) = self.ask(rank, state, asked, access) else {
            return Step::Wait;
        };
        let end = granted + path.latency;
        state.overhead += path.send_overhead;
        state.time = [end; W];
        let latency = path.latency * 2.0;
        let accessed = Accessed {
            access: index,
            call,
            start: call,
            came,
            processor: Time::ZERO,
            queued: granted - asked,
            latency,
            end,
        };
        self.observer.accessed(rank, accessed);
        Step::GoOn
    }

    fn file(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        index: u32,
        access: Access,
    ) -> Step {
        let call = state.time[0];
        let Some((begun, end)) = self.ask(rank, state, call, access) else {
            return Step::Wait;
        };
        state.time = [end; W];
        let latency = self.network().file_system().latency;
        let accessed = Accessed {
            access: index,
            call,
            start: call,
            came: call,
            processor: Time::ZERO,
            queued: begun - call,
            latency,
            end,
        };
        self.observer.accessed(rank, accessed);
        Step::GoOn
    }

    /// When a request is carried out; the first time it is put to the others.
    fn ask(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        time: Time,
        access: Access,
    ) -> Option<(Time, Time)> {
        let served = self.accesses.requests.take(rank);
        if served.is_none() && !state.entered {
            self.accesses.requests.put(rank, time, access);
        }
        state.entered = served.is_none();
        served
    }
}
