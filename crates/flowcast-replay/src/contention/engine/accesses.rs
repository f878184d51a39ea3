//! One-sided communication and files, event by event.
//!
//! The rules are those of the replay without limits; in addition, the data of a put or accumulate need the links and the bus
//! of a message to the target, those of a get the ones of a message from there. Requests and answers of locks, and
//! requests to files, need none. The processor of the target takes no part, whoever has it.

use super::Engine;
use crate::{
    accesses::{AccessFlight, Memory, RequestCosts},
    contention::{
        events::{Event, Kind},
        messages::{Message, MessageMark, Purpose},
        processors::Place,
        ranks::{ContendedRank, RankPhase, Step},
        route_costs::Delay,
    },
    observer::{Accessed, Observer},
    routes::route_to_memory,
    transit::Transit,
};
use flowcast_trace::{
    access::{Access, TransferKind},
    opcodes::{self, Op},
    slot::Slot,
};
use flowcast_units::{Rank, Time};

impl<O: Observer, T: Transit> Engine<'_, O, T> {
    #[inline(never)]
    pub(in crate::contention) fn access(&mut self, rank: Rank, index: u32) -> Step {
        match *self.program.access(index) {
            Access::Transfer {
                kind,
                window,
                target,
                ..
            } => self.transfer_data(rank, index, kind, (window, target)),
            Access::Flush { .. } | Access::Unlock { .. } => self.flush(rank),
            access @ (Access::Lock { .. } | Access::File { .. }) => self.request(rank, access),
        }
    }

    /// The access that a rank stands at.
    fn current_access(&self, rank: Rank) -> (u32, Access) {
        let state = &self.ranks[rank];
        match opcodes::decode(state.words, state.at as usize) {
            Some((Op::Access(index), _)) => (index, *self.program.access(index)),
            _ => unreachable!("a rank that waits for an access stands at it"),
        }
    }

    fn transfer_data(
        &mut self,
        rank: Rank,
        index: u32,
        kind: TransferKind,
        memory: Memory,
    ) -> Step {
        let (_, target) = memory;
        let (_, route) = route_to_memory(self.costs.network(), self.placement, rank, target);
        let cost = self.costs.paths[route].accesses[index as usize];
        if self.ranks[rank].phase == RankPhase::Begin
            && let Some(step) = self.begin_send(rank, self.route_costs[route].send, cost)
        {
            return step;
        }
        let ContendedRank {
            call,
            before: start,
            waited: processor,
            ..
        } = self.ranks[rank];
        let came = self.pending.now();
        let accessed = Accessed {
            access: index,
            call,
            start,
            came,
            processor,
            queued: Time::ZERO,
            latency: Time::ZERO,
            end: came,
        };
        self.observer.accessed(rank, accessed);
        let (from, to) = if kind == TransferKind::Get {
            (target, rank)
        } else {
            (rank, target)
        };
        let (bytes, flight) = (cost.bytes, cost.delay - cost.bytes);
        let transfer = self.accesses.transfers.start(AccessFlight {
            rank,
            memory,
            alone: [bytes, flight],
            latency: flight,
        });
        let mut message = Message::new(Slot(index), from, transfer, Purpose::Transfer);
        let nodes = (self.processors.node(from), self.processors.node(to));
        let (route, _) = route_to_memory(self.costs.network(), self.placement, from, to);
        self.links.route(&mut message, to, nodes, route);
        let number = self.messages.add(message);
        self.messages.set_part(number, (bytes, flight));
        self.messages.set_asked(number, came);
        self.hand_over(number);
        Step::Done
    }

    /// The data of a transfer have all links that they need.
    pub(in crate::contention) fn begin_one_sided(&mut self, number: u32) {
        if T::SHARED && self.messages[number].is(MessageMark::Steals) {
            return self.depart_transfer(number);
        }
        let (now, (bytes, flight)) = (self.pending.now(), self.messages.part(number));
        self.pending.at(now + bytes, Kind::Moved.event(number));
        if flight > Time::ZERO {
            self.pending
                .at(now + (bytes + flight), Kind::Arrived.event(number));
        }
    }

    /// The data of a transfer are there; its rank goes on if it waited for nothing else.
    pub(in crate::contention) fn transferred(&mut self, number: u32) {
        let Message {
            class: transfer, ..
        } = self.messages[number];
        self.messages.remove(number);
        let (start, now) = (self.messages.asked(number), self.pending.now());
        if let Some(rank) = self.accesses.transfers.end(transfer, start, now) {
            self.end_flush(rank);
            self.advance(rank, Place::Back);
        }
    }

    fn flush(&mut self, rank: Rank) -> Step {
        self.ranks[rank].call = self.pending.now();
        if self.end_flush(rank) {
            Step::Done
        } else {
            Step::Wait
        }
    }

    /// Whether the transfers of a rank are done; if so it is told, and gives back the lock that it had.
    fn end_flush(&mut self, rank: Rank) -> bool {
        let (index, access) = self.current_access(rank);
        let (window, target) = match access {
            Access::Flush { window, target } => (window, target),
            Access::Unlock { window, target } => (window, Some(target)),
            _ => unreachable!("a rank waits for transfers in a flush or unlock"),
        };
        let Some(done) = self.accesses.transfers.flush(rank, window, target) else {
            return false;
        };
        let now = self.pending.now();
        let mut accessed = done.awaited(index, self.ranks[rank].call);
        accessed.end = now;
        self.observer.accessed(rank, accessed);
        if let Access::Unlock { window, target } = access {
            let mut granted = Vec::new();
            let memory = (window, target);
            self.accesses.requests.unlock(memory, now, &mut granted);
            self.answer(granted);
        }
        true
    }

    /// A request for a lock or to a file: the overhead of a send and a latency, where it has any.
    fn request(&mut self, rank: Rank, access: Access) -> Step {
        let costs = RequestCosts::new(self.costs, self.placement, rank, access);
        if self.ranks[rank].phase == RankPhase::Begin
            && let Some(step) = self.begin_call(rank, Delay::new(costs.overhead))
        {
            return step;
        }
        let now = self.pending.now();
        self.ranks[rank].before = now;
        if let Access::File { .. } = access {
            self.asked(rank);
            return Step::Asks(RankPhase::Answered);
        }
        self.pending.at(now + costs.way, Event::turn(rank));
        Step::Asks(RankPhase::Asking)
    }

    /// A request has reached those who serve it.
    pub(in crate::contention) fn asked(&mut self, rank: Rank) {
        let (_, access) = self.current_access(rank);
        self.ranks[rank].phase = RankPhase::Waiting;
        let requests = &mut self.accesses.requests;
        requests.put(rank, self.pending.now(), access);
        let mut served = Vec::new();
        requests.serve(self.costs.file_system(), &mut served);
        self.answer(served);
    }

    /// Sends the answers to those whose requests are served.
    fn answer(&mut self, served: Vec<Rank>) {
        for rank in served.into_iter().rev() {
            let (_, access) = self.current_access(rank);
            let RequestCosts { way, .. } =
                RequestCosts::new(self.costs, self.placement, rank, access);
            self.ranks[rank].phase = RankPhase::Answered;
            let served = self.accesses.requests.served(rank);
            let (_, done) = served.expect("only requests that were served have answers");
            self.pending.at(done + way, Event::turn(rank));
        }
    }

    /// A rank has the answer to its request.
    pub(in crate::contention) fn answered(&mut self, rank: Rank) {
        let (index, access) = self.current_access(rank);
        let (begun, _) = self
            .accesses
            .requests
            .take(rank)
            .expect("an answer follows a request that was served");
        let ContendedRank {
            call,
            before: came,
            waited: processor,
            ..
        } = self.ranks[rank];
        let RequestCosts { way, latency, .. } =
            RequestCosts::new(self.costs, self.placement, rank, access);
        let accessed = Accessed {
            access: index,
            call,
            start: call,
            came,
            processor,
            queued: begun - (came + way),
            latency,
            end: self.pending.now(),
        };
        self.observer.accessed(rank, accessed);
        self.advance(rank, Place::Back);
    }
}
