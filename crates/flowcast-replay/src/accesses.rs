//! Resources that ranks compete for, apart from the links of messages: locks on memory, and the limited number of concurrent
//! requests to the file system. The one-sided transfers in flight are also stored here. The engines add requests in the
//! order of their times.

mod instructions;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

pub(crate) use self::instructions::{AccessEngine, carry_out};
use super::{
    costs::{ClassCost, Costs},
    observer::Accessed,
    placement::Placement,
    routes::route_to_memory,
    slab::Slab,
    transit::Departure,
};
use flowcast_network::file_system::FileSystem;
use flowcast_program::{
    access::{Access, FileKind, LockKind},
    program::Program,
};
use flowcast_units::{Bytes, Rank, Time};

/// A window and the rank whose memory is accessed.
pub(crate) type Memory = (i32, Rank);

/// Requests and one-sided transfers of a program's ranks.
pub(crate) struct Accesses<'a> {
    program: &'a Program,
    placement: &'a Placement,
    costs: &'a Costs,
    pub requests: Requests,
    pub transfers: AccessTransfers,
}

impl<'a> Accesses<'a> {
    /// Starts without requests and transfers; allocates nothing for a program without accesses.
    pub(crate) fn new(
        program: &'a Program,
        placement: &'a Placement,
        costs: &'a Costs,
    ) -> Accesses<'a> {
        let mut accesses = Accesses {
            program,
            placement,
            costs,
            requests: Requests::default(),
            transfers: AccessTransfers::default(),
        };
        if !program.accesses().is_empty() {
            let ranks = program.streams();
            accesses.requests.served = vec![None; ranks];
            accesses.transfers.all = vec![BTreeMap::new(); ranks];
            accesses.transfers.awaited = vec![None; ranks];
        }
        accesses
    }
}

/// Costs of an access, apart from waiting for other ranks.
struct AccessCosts {
    /// Processor time of the rank.
    overhead: Time,
    /// Latency of one message: the data, the request or the answer.
    way: Time,
    /// Part of a request's time that does not depend on the bandwidth.
    latency: Time,
    /// Costs of the data of a transfer; `None` for other accesses.
    data: Option<ClassCost>,
}

impl AccessCosts {
    /// Costs of an access by a rank; `index` is the number of the access in the program.
    fn new(
        costs: &Costs,
        placement: &Placement,
        rank: Rank,
        (index, access): (u32, Access),
    ) -> AccessCosts {
        let (Access::Transfer { target, .. } | Access::Lock { target, .. }) = access else {
            return AccessCosts {
                overhead: Time::ZERO,
                way: Time::ZERO,
                latency: costs.file_system().latency,
                data: None,
            };
        };
        let (_, route) = route_to_memory(costs.network(), placement, rank, target);
        let path = &costs.paths[route];
        let is_transfer = matches!(access, Access::Transfer { .. });
        AccessCosts {
            overhead: path.send_overhead,
            way: path.latency,
            latency: path.latency * 2.0,
            data: is_transfer.then(|| path.accesses[index as usize]),
        }
    }
}

/// Locks on memory, and requests to the file system.
#[derive(Default)]
pub(crate) struct Requests {
    locks: BTreeMap<Memory, HeldLock>,
    /// Requests that have not been served, the earliest first; among equal times, the lowest rank first.
    waiting: BinaryHeap<Reverse<LockRequest>>,
    /// Times at which the file system completes the requests that it serves.
    places: BinaryHeap<Reverse<Time>>,
    /// Start of the execution of each rank's request, and arrival of the answer, indexed by rank.
    served: Vec<Option<(Time, Time)>>,
}

/// A request for a lock or to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockRequest {
    /// Time at which it reaches the memory or the file system.
    pub time: Time,
    /// Rank that makes the request.
    pub rank: Rank,
    /// Requested access, a lock or a request to the file system.
    pub access: Access,
    /// Latency of the answer.
    pub way: Time,
}

#[derive(Default)]
struct HeldLock {
    shared: u32,
    exclusive: bool,
    /// Time at which the last exclusive lock was released; `free` is the time at which the last lock of any kind was
    /// released.
    exclusive_free: Time,
    free: Time,
    waiting: VecDeque<LockRequest>,
}

impl HeldLock {
    /// Grants a request and returns the time of the grant; `None` if it has to wait. No other request may be waiting before
    /// it.
    fn grant(&mut self, request: LockRequest) -> Option<Time> {
        let Access::Lock { kind, .. } = request.access else {
            return None;
        };
        let time = request.time;
        match kind {
            LockKind::Shared if !self.exclusive => {
                self.shared += 1;
                Some(time.max(self.exclusive_free))
            }
            LockKind::Exclusive if !self.exclusive && self.shared == 0 => {
                self.exclusive = true;
                Some(time.max(self.free))
            }
            _ => None,
        }
    }

    fn release(&mut self, time: Time) {
        if self.exclusive {
            self.exclusive = false;
            self.exclusive_free = time;
        }
        self.shared = self.shared.saturating_sub(1);
        self.free = self.free.max(time);
    }
}

impl Requests {
    /// Adds a request of a rank.
    pub(crate) fn put(&mut self, request: LockRequest) {
        self.waiting.push(Reverse(request));
    }

    /// Time of the earliest request.
    pub(crate) fn first(&self) -> Option<Time> {
        self.waiting.peek().map(|Reverse(request)| request.time)
    }

    /// Start of the execution of a rank's request, and arrival of the answer, if they are known yet.
    pub(crate) fn served(&self, rank: Rank) -> Option<(Time, Time)> {
        self.served[rank]
    }

    /// Removes and returns the start of a rank's request and the arrival of its answer.
    pub(crate) fn take(&mut self, rank: Rank) -> Option<(Time, Time)> {
        self.served[rank].take()
    }

    /// Serves the earliest request and adds the ranks that may continue to `ready`. Returns `true` if there was a request.
    pub(crate) fn serve(&mut self, file_system: &FileSystem, ready: &mut Vec<Rank>) -> bool {
        let Some(Reverse(request)) = self.waiting.pop() else {
            return false;
        };
        match request.access {
            Access::File { kind, size, .. } => {
                let size = if matches!(kind, FileKind::Read | FileKind::Write) {
                    size
                } else {
                    Bytes(0)
                };
                let start = self.place(request.time, file_system);
                let end = start + file_system.time_for(size);
                self.places.push(Reverse(end));
                self.answer(request, start, end, ready);
            }
            Access::Lock { window, target, .. } => {
                let lock = self.locks.entry((window, target)).or_default();
                match if lock.waiting.is_empty() {
                    lock.grant(request)
                } else {
                    None
                } {
                    Some(start) => self.answer(request, start, start, ready),
                    None => lock.waiting.push_back(request),
                }
            }
            _ => {}
        }
        true
    }

    /// Time at which the file system can start a request that arrives at `time`.
    fn place(&mut self, time: Time, file_system: &FileSystem) -> Time {
        let is_full =
            file_system.requests > 0 && self.places.len() >= file_system.requests as usize;
        let free = if is_full { self.places.pop() } else { None };
        if file_system.requests == 0 {
            self.places.clear();
        }
        free.map_or(time, |Reverse(free)| free.max(time))
    }

    fn answer(&mut self, request: LockRequest, start: Time, end: Time, ready: &mut Vec<Rank>) {
        self.served[request.rank] = Some((start, end + request.way));
        ready.push(request.rank);
    }

    /// Releases a lock and grants it to waiting requests where possible.
    pub(crate) fn unlock(&mut self, memory: Memory, time: Time, ready: &mut Vec<Rank>) {
        let Some(lock) = self.locks.get_mut(&memory) else {
            return;
        };
        lock.release(time);
        let mut granted = Vec::new();
        while let Some(request) = lock.waiting.front().copied() {
            let Some(start) = lock.grant(request) else {
                break;
            };
            lock.waiting.pop_front();
            granted.push((request, start));
        }
        granted
            .into_iter()
            .for_each(|(request, start)| self.answer(request, start, start, ready));
    }
}

/// Completion of transfers: time, latency and delay of the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Done {
    pub at: Time,
    pub latency: Time,
    /// Delay of the completion, compared with the transfer alone.
    pub conflict: Time,
}

impl Done {
    fn later(self, other: Done) -> Done {
        if other.at > self.at { other } else { self }
    }

    /// Returns the access after the rank has waited for the completion.
    fn awaited(self, begun: Accessed) -> Accessed {
        let end = self.at.max(begun.call);
        Accessed {
            queued: self.conflict.min(end - begun.call),
            latency: self.latency,
            end,
            ..begun
        }
    }
}

/// A transfer that other messages may delay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccessFlight {
    pub rank: Rank,
    pub memory: Memory,
    /// Departure of its data; the latency does not depend on the bandwidth.
    pub departure: Departure,
    /// Time that it takes alone, in addition to the departure's delay.
    pub flight: Time,
}

#[derive(Debug, Clone, Copy, Default)]
struct AccessInFlight {
    count: u32,
    done: Done,
}

/// Transfers of each rank since its last flush.
#[derive(Default)]
pub(crate) struct AccessTransfers {
    /// Transfers, indexed by rank.
    all: Vec<BTreeMap<Memory, AccessInFlight>>,
    /// Window and target that each rank waits for, indexed by rank. A target of `None` is the whole window.
    awaited: Vec<Option<(i32, Option<Rank>)>>,
    /// Transfers that other messages may delay, indexed by number.
    pub flights: Slab<AccessFlight>,
}

impl AccessTransfers {
    /// Starts a transfer that other messages may delay; returns its number.
    pub(crate) fn start(&mut self, flight: AccessFlight) -> u32 {
        self.under_way(flight.rank, flight.memory).count += 1;
        self.flights.insert(flight)
    }

    /// Ends a transfer that started at `start`. Returns its rank if the rank has waited for it and may continue.
    pub(crate) fn end(&mut self, number: u32, start: Time, at: Time) -> Option<Rank> {
        let AccessFlight {
            rank,
            memory,
            departure: Departure { cost, latency, .. },
            flight,
        } = self.flights[number];
        self.flights.give_back(number);
        let under_way = self.all[rank].get_mut(&memory);
        under_way.expect("an access that ends has started").count -= 1;
        let conflict = (at - start - cost.delay - flight).max(Time::ZERO);
        let done = Done {
            at,
            latency,
            conflict,
        };
        self.finish(rank, memory, done);
        let (window, target) = self.awaited[rank]?;
        if self.is_busy(rank, window, target) {
            return None;
        }
        self.awaited[rank] = None;
        Some(rank)
    }

    /// Records the completion of a transfer.
    pub(crate) fn finish(&mut self, rank: Rank, memory: Memory, done: Done) {
        let under_way = self.under_way(rank, memory);
        under_way.done = under_way.done.later(done);
    }

    fn under_way(&mut self, rank: Rank, memory: Memory) -> &mut AccessInFlight {
        self.all[rank].entry(memory).or_default()
    }

    fn is_busy(&self, rank: Rank, window: i32, target: Option<Rank>) -> bool {
        let all = &self.all[rank];
        match target {
            Some(target) => all
                .get(&(window, target))
                .is_some_and(|under_way| under_way.count > 0),
            None => all
                .range((window, Rank(0))..=(window, Rank(u32::MAX)))
                .any(|(_, under_way)| under_way.count > 0),
        }
    }

    /// Removes the transfers of a rank to a memory, or to all memories of a window, and returns their completion. Returns
    /// `None` if some are in flight; the rank then waits for them.
    pub(crate) fn flush(&mut self, rank: Rank, window: i32, target: Option<Rank>) -> Option<Done> {
        if self.is_busy(rank, window, target) {
            self.awaited[rank] = Some((window, target));
            return None;
        }
        let all = &mut self.all[rank];
        let Some(target) = target else {
            let of_window = all
                .range((window, Rank(0))..=(window, Rank(u32::MAX)))
                .map(|(_, under_way)| under_way.done);
            let last = of_window.fold(Done::default(), Done::later);
            all.retain(|(own, _), _| *own != window);
            return Some(last);
        };
        Some(all.remove(&(window, target)).unwrap_or_default().done)
    }
}
