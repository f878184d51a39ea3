//! One-sided communication and files, event by event.
//!
//! The rules are those of the replay without limits; in addition, the data of a put or accumulate need the links and the bus
//! of a message to the target, those of a get the ones of a message from there. Requests and answers of locks, and
//! requests to files, need none. The processor of the target takes no part, whoever has it.

use super::super::accesses::{Done, Requests, Transfers};
use super::super::observer::{Accessed, Observer};
use super::super::routes::{Route, WayNumbers, route};
use super::super::transit::Transit;
use super::engine::Engine;
use super::events::{Event, Kind};
use super::messages::{Mark, Message, Purpose};
use super::processors::Place;
use super::ranks::{Phase, RankState, Step};
use flowcast_trace::access::{Access, TransferKind};
use flowcast_trace::opcodes::{self, Op};
use flowcast_units::{Bytes, Node, Rank};

/// All accesses that are in flight.
pub(super) struct Accesses {
    requests: Requests,
    transfers: Transfers,
    /// Ranks that got what they asked for.
    ready: Vec<u32>,
    /// By message: when its data were handed to the network.
    handed: Vec<f64>,
}

impl Accesses {
    /// Of so many ranks.
    pub(super) fn new(ranks: usize) -> Accesses {
        let (requests, transfers) = (Requests::new(ranks), Transfers::new(ranks));
        Accesses { requests, transfers, ready: Vec::new(), handed: Vec::new() }
    }

    fn set_handed(&mut self, number: u32, now: f64) {
        if self.handed.len() <= number as usize {
            self.handed.resize(number as usize + 1, 0.0);
        }
        self.handed[number as usize] = now;
    }
}

impl<O: Observer, T: Transit> Engine<'_, O, T> {
    #[inline(never)]
    pub(super) fn access(&mut self, rank: u32, index: u32) -> Step {
        match self.program.accesses()[index as usize] {
            Access::Transfer { kind, target, .. } => self.transfer_data(rank, index, kind, target),
            Access::Flush { window, target } => self.flush(rank, (window, target)),
            Access::Unlock { window, target } => self.flush(rank, (window, Some(target))),
            Access::Lock { target, .. } => self.lock(rank, target),
            access @ Access::File { .. } => self.file(rank, access),
        }
    }

    /// The access that a rank stands at.
    fn current_access(&self, rank: u32) -> (u32, Access) {
        let state = &self.ranks[rank as usize];
        match opcodes::decode(state.words, state.at as usize) {
            Some((Op::Access(index), _)) => (index, self.program.accesses()[index as usize]),
            _ => unreachable!("a rank that waits for an access stands at it"),
        }
    }

    /// The way of data from a rank to a target, and its number.
    fn way_to(&self, rank: u32, target: Rank) -> (Route, usize) {
        let (from, to) = (Node(self.processors.node(rank)), Node(self.processors.node(target.0)));
        let route = route(self.costs.network(), self.placement, (from, to), (0, Bytes(0)));
        (route, WayNumbers::new(self.placement).number(self.placement.group_index(from), route))
    }

    fn transfer_data(&mut self, rank: u32, index: u32, kind: TransferKind, target: Rank) -> Step {
        let (_, way) = self.way_to(rank, target);
        let cost = self.costs.paths[way].accesses[index as usize];
        if self.ranks[rank as usize].phase == Phase::Begin
            && let Some(step) = self.begin_send(rank, self.ways[way].send, cost.busy)
        {
            return step;
        }
        let RankState { call, before: start, waited: processor, .. } = self.ranks[rank as usize];
        let came = self.pending.now();
        let accessed = Accessed { access: index, call, start, came, processor, queued: 0.0, latency: 0.0, end: came };
        self.observer.accessed(rank, accessed);
        let (from, to) = if kind == TransferKind::Get { (target.0, rank) } else { (rank, target.0) };
        let mut message = Message::new(index, from, rank, Purpose::Transfer);
        let nodes = (self.processors.node(from), self.processors.node(to));
        self.links.route(&mut message, to, nodes, self.way_to(from, Rank(to)).0);
        let number = self.messages.add(message);
        self.messages.set_part(number, (cost.bytes, cost.delay - cost.bytes));
        self.accesses.set_handed(number, came);
        self.accesses.transfers.start(rank, self.memory(index));
        self.hand_over(number);
        Step::Done
    }

    fn memory(&self, index: u32) -> (i32, u32) {
        match self.program.accesses()[index as usize] {
            Access::Transfer { window, target, .. } => (window, target.0),
            _ => unreachable!("only transfers move data"),
        }
    }

    /// The data of a transfer have all links that they need.
    pub(super) fn begin_one_sided(&mut self, number: u32) {
        if T::SHARED && self.messages[number].is(Mark::Steals) {
            return self.depart_transfer(number);
        }
        let (now, (bytes, flight)) = (self.pending.now(), self.messages.part(number));
        self.pending.at(now + bytes, Event { kind: Kind::Moved, index: number });
        if flight > 0.0 {
            self.pending.at(now + (bytes + flight), Event { kind: Kind::Arrived, index: number });
        }
    }

    /// The data of a transfer are there; its rank goes on if it waited for nothing else.
    pub(super) fn transferred(&mut self, number: u32) {
        let Message { slot: index, class: rank, .. } = self.messages[number];
        let (bytes, flight) = self.messages.part(number);
        self.messages.remove(number);
        let at = self.pending.now();
        let conflict = (at - self.accesses.handed[number as usize] - bytes - flight).max(0.0);
        let done = Done { at, latency: flight, conflict };
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

    fn flush(&mut self, rank: u32, window: (i32, Option<Rank>)) -> Step {
        self.ranks[rank as usize].call = self.pending.now();
        if self.end_flush(rank, window) { Step::Done } else { Step::Wait }
    }

    /// Whether the transfers of a rank are done; if so it is told, and gives back the lock that it had.
    fn end_flush(&mut self, rank: u32, (window, target): (i32, Option<Rank>)) -> bool {
        let Some(done) = self.accesses.transfers.flush(rank, window, target) else { return false };
        let (index, access) = self.current_access(rank);
        let now = self.pending.now();
        let mut accessed = done.awaited(index, self.ranks[rank as usize].call);
        accessed.end = now;
        self.observer.accessed(rank, accessed);
        if let Access::Unlock { window, target } = access {
            let accesses = &mut self.accesses;
            accesses.requests.unlock((window, target.0), now, &mut accesses.ready);
            self.answer();
        }
        true
    }

    /// A lock: the overhead of a send, and a latency for the request.
    fn lock(&mut self, rank: u32, target: Rank) -> Step {
        let (_, way) = self.way_to(rank, target);
        let overhead = self.ways[way].send;
        if self.ranks[rank as usize].phase == Phase::Begin {
            self.begin_call(rank, overhead.nanos);
            if overhead.nanos > 0.0 {
                return self.start_up(rank, overhead);
            }
        }
        let now = self.pending.now();
        self.ranks[rank as usize].before = now;
        let asked = now + self.costs.paths[way].latency;
        self.pending.at(asked, Event { kind: Kind::Turn, index: rank });
        Step::Asks(Phase::Asking)
    }

    /// A request for a lock has reached the target.
    pub(super) fn asked(&mut self, rank: u32) {
        let (_, access) = self.current_access(rank);
        self.ranks[rank as usize].phase = Phase::Waiting;
        self.accesses.requests.put(rank, self.pending.now(), access);
        let accesses = &mut self.accesses;
        accesses.requests.serve(self.costs.file_system(), &mut accesses.ready);
        self.answer();
    }

    /// Sends the answers to those whose requests for locks were granted.
    fn answer(&mut self) {
        while let Some(rank) = self.accesses.ready.pop() {
            let (_, access) = self.current_access(rank);
            let target = access.target().expect("only locks are granted");
            let (_, way) = self.way_to(rank, target);
            self.ranks[rank as usize].phase = Phase::Answered;
            let answered = self.pending.now() + self.costs.paths[way].latency;
            self.pending.at(answered, Event { kind: Kind::Turn, index: rank });
        }
    }

    /// A request to a file: the rank waits for a place, then for the file system.
    fn file(&mut self, rank: u32, access: Access) -> Step {
        let now = self.pending.now();
        let state = &mut self.ranks[rank as usize];
        (state.call, state.before, state.waited) = (now, now, 0.0);
        let accesses = &mut self.accesses;
        accesses.requests.put(rank, now, access);
        accesses.requests.serve(self.costs.file_system(), &mut accesses.ready);
        accesses.ready.clear();
        let (_, end) = accesses.requests.served(rank).expect("files find out at once when they are served");
        self.pending.at(end, Event { kind: Kind::Turn, index: rank });
        Step::Asks(Phase::Answered)
    }

    /// A rank has the answer to its request.
    pub(super) fn answered(&mut self, rank: u32) {
        let (index, access) = self.current_access(rank);
        let (begun, _) = self.accesses.requests.take(rank).expect("an answer follows a request that was served");
        let RankState { call, before: came, waited: processor, .. } = self.ranks[rank as usize];
        let (there, latency) = match access.target() {
            Some(target) => {
                let path = &self.costs.paths[self.way_to(rank, target).1];
                (path.latency, 2.0 * path.latency)
            }
            None => (0.0, self.costs.file_system().latency.as_nanos()),
        };
        let (queued, end) = (begun - (came + there), self.pending.now());
        self.observer
            .accessed(rank, Accessed { access: index, call, start: call, came, processor, queued, latency, end });
        self.advance(rank, Place::Back);
    }
}
