//! One-sided communication and files, event by event.
//!
//! The rules are the same as in the replay without limits. In addition, the data of a put or accumulate need the links and
//! the bus of a message to the target, and the data of a get need those of a message from the target. Requests and answers
//! of locks, and requests to files, need no links. The target's processor takes no part, whichever rank occupies it.

use super::ContentionEngine;
use crate::{
    accesses::{AccessEngine, AccessFlight, Accesses, LockRequest, carry_out},
    contention::{
        events::{Event, EventKind},
        messages::{ContendedMessage, MessageMark, Purpose},
        processors::Place,
        ranks::{RankPhase, Step},
        route_costs::Delay,
    },
    costs::ClassCost,
    observer::{Accessed, Observer},
    routes::route_to_memory,
    transit::{Departure, Transit},
};
use flowcast_program::{
    access::Access,
    opcodes::{self, Op},
    slot::Slot,
};
use flowcast_units::{Rank, Time};

impl<'a, O: Observer, T: Transit> AccessEngine<'a> for ContentionEngine<'a, O, T> {
    type State = ();

    fn accesses(&mut self) -> (&mut Accesses<'a>, &mut Vec<Rank>) {
        (&mut self.accesses, &mut self.ready)
    }

    fn begin(
        &mut self,
        rank: Rank,
        (): &mut (),
        overhead: Time,
        data: Option<ClassCost>,
    ) -> Option<Accessed> {
        let (now, phase) = (self.pending.now(), self.ranks[rank].phase);
        if phase == RankPhase::Begin {
            let overhead = Delay::new(overhead);
            let step = match data {
                Some(cost) => self.begin_send(rank, overhead, cost),
                None => self.begin_call(rank, overhead),
            };
            if step.is_some() {
                return None;
            }
        }
        let state = &mut self.ranks[rank];
        let start = data.map_or(state.call, |_| state.before);
        if phase != RankPhase::Asking {
            state.before = now;
        }
        Some(Accessed {
            call: state.call,
            start,
            came: state.before,
            processor: state.waited,
            end: now,
            ..Accessed::default()
        })
    }

    fn transfer(&mut self, mut transfer: AccessFlight, [from, to]: [Rank; 2]) {
        let departure = &mut transfer.departure;
        let ClassCost { delay, bytes, .. } = departure.cost;
        let (slot, flight) = (departure.slot, delay - bytes);
        departure.latency = flight;
        departure.cost = ClassCost {
            delay: bytes,
            bytes,
            ..ClassCost::default()
        };
        transfer.flight = flight;
        let number = self.accesses.transfers.start(transfer);
        let (route, _) = route_to_memory(self.costs.network(), self.placement, from, to);
        let message = ContendedMessage::new(slot, from, number, Purpose::Transfer);
        self.send_beside(message, to, route, (bytes, flight));
    }

    fn ask(&mut self, (): &mut (), request: LockRequest) {
        let is_there = self.ranks[request.rank].phase == RankPhase::Asking;
        if is_there || matches!(request.access, Access::File { .. }) {
            let requests = &mut self.accesses.requests;
            requests.put(request);
            requests.serve(self.costs.file_system(), &mut self.ready);
        } else {
            self.pending.at(request.time, Event::turn(request.rank));
        }
    }

    fn end(&mut self, rank: Rank, (): &mut (), _overhead: Time, accessed: Accessed) {
        self.observer.accessed(rank, accessed);
    }
}

impl<O: Observer, T: Transit> ContentionEngine<'_, O, T> {
    #[inline(never)]
    pub(crate) fn access(&mut self, rank: Rank, index: u32) -> Step {
        let done = carry_out(self, rank, &mut (), index);
        while let Some(rank) = self.ready.pop() {
            let served = self.accesses.requests.served(rank);
            let (_, end) = served.expect("only requests that were served have answers");
            self.pending.at(end, Event::turn(rank));
        }
        match done {
            Some(()) => Step::Done,
            None if self.ranks[rank].phase == RankPhase::StartUp => Step::Spend,
            None => Step::Asks(RankPhase::Asking),
        }
    }

    /// Continues a rank's access after an event that it waited for.
    pub(crate) fn go_on_with_access(&mut self, rank: Rank) {
        let state = &self.ranks[rank];
        if let Some((Op::Access(index), _)) = opcodes::decode(state.words, state.at as usize)
            && let Step::Done = self.access(rank, index)
        {
            self.advance(rank, Place::Back);
        }
    }

    /// Starts the data of a transfer that has all links that it needs.
    pub(crate) fn begin_one_sided(&mut self, number: u32) {
        let (now, message) = (self.pending.now(), self.messages[number]);
        if T::SHARED && message.is(MessageMark::Steals) {
            return self.transit.depart(Departure {
                slot: Slot(self.program.messages() + number),
                start: now,
                latency: Time::ZERO,
                ..self.accesses.transfers.flights[message.class].departure
            });
        }
        let (bytes, flight) = self.messages.times(number).part;
        self.pending.at(now + bytes, EventKind::Moved.event(number));
        if flight > Time::ZERO {
            self.pending
                .at(now + (bytes + flight), EventKind::Arrived.event(number));
        }
    }

    /// Ends a transfer whose data have arrived. The rank continues if it waits for nothing else.
    pub(crate) fn transferred(&mut self, number: u32) {
        let ContendedMessage {
            class: transfer, ..
        } = self.messages[number];
        self.messages.remove(number);
        let transfers = &mut self.accesses.transfers;
        let start = transfers.flights[transfer].departure.start;
        if let Some(rank) = transfers.end(transfer, start, self.pending.now()) {
            self.go_on_with_access(rank);
        }
    }
}
