//! One-sided communication and files, event by event.
//!
//! The rules are those of the replay without limits; in addition, the data of a put or accumulate need the links and the bus
//! of a message to the target, those of a get the ones of a message from there. Requests and answers of locks, and
//! requests to files, need none. The processor of the target takes no part, whoever has it.

use super::Engine;
use crate::{
    accesses::{AccessTransfers, Done, Memory, Requests},
    contention::{
        events::{Event, Kind},
        messages::{Message, MessageMark, Purpose},
        processors::Place,
        ranks::{ContendedRank, RankPhase, Step},
    },
    observer::{Accessed, Observer},
    routes::{Route, RouteNumbers, route},
    transit::Transit,
};
use flowcast_trace::{
    access::{Access, TransferKind},
    opcodes::{self, Op},
    slot::Slot,
};
use flowcast_units::{Bytes, Rank, Time};

/// All accesses that are in flight.
pub(in crate::contention) struct Accesses {
    requests: Requests,
    transfers: AccessTransfers,
    /// Ranks that got what they asked for.
    ready: Vec<Rank>,
    /// By message: when its data were handed to the network.
    handed: Vec<Time>,
}

impl Accesses {
    /// Of so many ranks.
    pub(in crate::contention) fn new(ranks: usize) -> Accesses {
        let (requests, transfers) = (Requests::new(ranks), AccessTransfers::new(ranks));
        Accesses {
            requests,
            transfers,
            ready: Vec::new(),
            handed: Vec::new(),
        }
    }

    fn set_handed(&mut self, number: u32, now: Time) {
        if self.handed.len() <= number as usize {
            self.handed.resize(number as usize + 1, Time::ZERO);
        }
        self.handed[number as usize] = now;
    }
}

impl<O: Observer, T: Transit> Engine<'_, O, T> {
    #[inline(never)]
    pub(in crate::contention) fn access(&mut self, rank: Rank, index: u32) -> Step {
        match *self.program.access(index) {
            Access::Transfer { kind, target, .. } => self.transfer_data(rank, index, kind, target),
            Access::Flush { window, target } => self.flush(rank, (window, target)),
            Access::Unlock { window, target } => self.flush(rank, (window, Some(target))),
            Access::Lock { target, .. } => self.lock(rank, target),
            access @ Access::File { .. } => self.file(rank, access),
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

    /// The route of data from a rank to a target, and its number.
    fn route_to(&self, rank: Rank, target: Rank) -> (Route, usize) {
        let (from, to) = (self.processors.node(rank), self.processors.node(target));
        let route = route(
            self.costs.network(),
            self.placement,
            (from, to),
            (0, Bytes(0)),
        );
        (
            route,
            RouteNumbers::new(self.placement).number(self.placement.group_index(from), route),
        )
    }

    fn transfer_data(&mut self, rank: Rank, index: u32, kind: TransferKind, target: Rank) -> Step {
        let (_, route) = self.route_to(rank, target);
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
        let mut message = Message::new(Slot(index), from, rank.0, Purpose::Transfer);
        let nodes = (self.processors.node(from), self.processors.node(to));
        self.links
            .route(&mut message, to, nodes, self.route_to(from, to).0);
        let number = self.messages.add(message);
        self.messages
            .set_part(number, (cost.bytes, cost.delay - cost.bytes));
        self.accesses.set_handed(number, came);
        self.accesses.transfers.start(rank, self.memory(index));
        self.hand_over(number);
        Step::Done
    }

    fn memory(&self, index: u32) -> Memory {
        match *self.program.access(index) {
            Access::Transfer { window, target, .. } => (window, target),
            _ => unreachable!("only transfers move data"),
        }
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
            slot: Slot(index),
            class,
            ..
        } = self.messages[number];
        let rank = Rank(class);
        let (bytes, flight) = self.messages.part(number);
        self.messages.remove(number);
        let at = self.pending.now();
        let conflict =
            (at - self.accesses.handed[number as usize] - bytes - flight).max(Time::ZERO);
        let done = Done {
            at,
            latency: flight,
            conflict,
        };
        if self.accesses.transfers.end(rank, self.memory(index), done) {
            let window = match self.current_access(rank).1 {
                Access::Flush { window, target } => (window, target),
                Access::Unlock { window, target } => (window, Some(target)),
                _ => unreachable!("a rank waits for transfers in a flush or unlock"),
            };
            self.end_flush(rank, window);
            self.advance(rank, Place::Back);
        }
    }

    fn flush(&mut self, rank: Rank, window: (i32, Option<Rank>)) -> Step {
        self.ranks[rank].call = self.pending.now();
        if self.end_flush(rank, window) {
            Step::Done
        } else {
            Step::Wait
        }
    }

    /// Whether the transfers of a rank are done; if so it is told, and gives back the lock that it had.
    fn end_flush(&mut self, rank: Rank, (window, target): (i32, Option<Rank>)) -> bool {
        let Some(done) = self.accesses.transfers.flush(rank, window, target) else {
            return false;
        };
        let (index, access) = self.current_access(rank);
        let now = self.pending.now();
        let mut accessed = done.awaited(index, self.ranks[rank].call);
        accessed.end = now;
        self.observer.accessed(rank, accessed);
        if let Access::Unlock { window, target } = access {
            let accesses = &mut self.accesses;
            accesses
                .requests
                .unlock((window, target), now, &mut accesses.ready);
            self.answer();
        }
        true
    }

    /// A lock: the overhead of a send, and a latency for the request.
    fn lock(&mut self, rank: Rank, target: Rank) -> Step {
        let (_, route) = self.route_to(rank, target);
        let overhead = self.route_costs[route].send;
        if self.ranks[rank].phase == RankPhase::Begin
            && let Some(step) = self.begin_call(rank, overhead)
        {
            return step;
        }
        let now = self.pending.now();
        self.ranks[rank].before = now;
        let asked = now + self.costs.paths[route].latency;
        self.pending.at(asked, Event::turn(rank));
        Step::Asks(RankPhase::Asking)
    }

    /// A request for a lock has reached the target.
    pub(in crate::contention) fn asked(&mut self, rank: Rank) {
        let (_, access) = self.current_access(rank);
        self.ranks[rank].phase = RankPhase::Waiting;
        self.accesses.requests.put(rank, self.pending.now(), access);
        let accesses = &mut self.accesses;
        accesses
            .requests
            .serve(self.costs.file_system(), &mut accesses.ready);
        self.answer();
    }

    /// Sends the answers to those whose requests for locks were granted.
    fn answer(&mut self) {
        while let Some(rank) = self.accesses.ready.pop() {
            let (_, access) = self.current_access(rank);
            let target = access.target().expect("only locks are granted");
            let (_, route) = self.route_to(rank, target);
            self.ranks[rank].phase = RankPhase::Answered;
            let answered = self.pending.now() + self.costs.paths[route].latency;
            self.pending.at(answered, Event::turn(rank));
        }
    }

    /// A request to a file: the rank waits for a place, then for the file system.
    fn file(&mut self, rank: Rank, access: Access) -> Step {
        let now = self.pending.now();
        let state = &mut self.ranks[rank];
        (state.call, state.before, state.waited) = (now, now, Time::ZERO);
        let accesses = &mut self.accesses;
        accesses.requests.put(rank, now, access);
        accesses
            .requests
            .serve(self.costs.file_system(), &mut accesses.ready);
        accesses.ready.clear();
        let (_, end) = accesses
            .requests
            .served(rank)
            .expect("files find out at once when they are served");
        self.pending.at(end, Event::turn(rank));
        Step::Asks(RankPhase::Answered)
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
        let (there, latency) = match access.target() {
            Some(target) => {
                let path = &self.costs.paths[self.route_to(rank, target).1];
                (path.latency, path.latency * 2.0)
            }
            None => (Time::ZERO, self.costs.file_system().latency),
        };
        let (queued, end) = (begun - (came + there), self.pending.now());
        self.observer.accessed(
            rank,
            Accessed {
                access: index,
                call,
                start: call,
                came,
                processor,
                queued,
                latency,
                end,
            },
        );
        self.advance(rank, Place::Back);
    }
}
