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
//! Locks and files are the only things that ranks compete for here, so the order of requests in time counts. Ranks run
//! as far as they can; when none can, the earliest request is served. No earlier one can come after it, because
//! whatever else a rank waits for follows from a request that is served later.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::{Engine, RankState, Step, route};
use crate::model::file_system::FileSystem;
use crate::simulate::costs::PathCosts;
use crate::simulate::record::{Accessed, Observer};
use crate::simulate::routes::WayNumbers;
use crate::simulate::transit::Transit;
use crate::trace::access::{Access, FileKind, LockKind};
use crate::units::{Bytes, Rank, Time};

/// A window and the rank whose memory is meant.
type Memory = (i32, u32);

/// All accesses that are under way.
#[derive(Default)]
pub struct Accesses {
    /// By rank: when its transfers to each memory are done, and how much of the last of them is latency.
    outstanding: Vec<BTreeMap<Memory, (f64, f64)>>,
    locks: BTreeMap<Memory, Lock>,
    /// Requests that nobody has looked at, the earliest first, of equal times that of the lowest rank.
    requests: BinaryHeap<Reverse<Request>>,
    /// When the places at the file system become free.
    places: BinaryHeap<Reverse<Time>>,
    /// By rank: from when to when its request is carried out.
    served: Vec<Option<(f64, f64)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    time: Time,
    rank: u32,
    access: Access,
}

#[derive(Default)]
struct Lock {
    shared: u32,
    exclusive: bool,
    /// Since when no exclusive lock, and no lock at all, has been held.
    exclusive_free: f64,
    free: f64,
    waiting: VecDeque<Request>,
}

/// Of two transfers the one that is done later.
fn later(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    if other.0 > one.0 { other } else { one }
}

impl Lock {
    /// When a request that nobody stands before is granted.
    fn grant(&mut self, request: Request) -> Option<f64> {
        let Access::Lock { kind, .. } = request.access else { return None };
        let time = request.time.as_nanos();
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

    fn release(&mut self, time: f64) {
        if self.exclusive {
            self.exclusive = false;
            self.exclusive_free = time;
        }
        self.shared = self.shared.saturating_sub(1);
        self.free = self.free.max(time);
    }
}

impl Accesses {
    /// Of so many ranks.
    pub fn new(ranks: usize) -> Accesses {
        Accesses { outstanding: vec![BTreeMap::new(); ranks], served: vec![None; ranks], ..Accesses::default() }
    }

    /// When the transfers of a rank to a memory are done, and the latency of the last; they are forgotten.
    fn done(&mut self, rank: u32, window: i32, target: Option<Rank>) -> (f64, f64) {
        let outstanding = &mut self.outstanding[rank as usize];
        let Some(target) = target else {
            let of_window = outstanding.range((window, 0)..=(window, u32::MAX)).map(|(_, done)| *done);
            let last = of_window.fold((0.0, 0.0), later);
            outstanding.retain(|(own, _), _| *own != window);
            return last;
        };
        outstanding.remove(&(window, target.0)).unwrap_or_default()
    }

    /// Serves the earliest request; gives the ranks that may go on to `ready`. Whether there was one.
    pub fn serve(&mut self, file_system: &FileSystem, ready: &mut Vec<u32>) -> bool {
        let Some(Reverse(request)) = self.requests.pop() else { return false };
        match request.access {
            Access::File { kind, size, .. } => {
                let size = if matches!(kind, FileKind::Read | FileKind::Write) { size } else { Bytes(0) };
                let start = self.place(request.time, file_system);
                let end = start + file_system.time_for(size);
                self.places.push(Reverse(end));
                self.answer(request.rank, (start, end), ready);
            }
            Access::Lock { window, target, .. } => {
                let lock = self.locks.entry((window, target.0)).or_default();
                match if lock.waiting.is_empty() { lock.grant(request) } else { None } {
                    Some(start) => self.answer(request.rank, (Time::from_nanos(start), Time::from_nanos(start)), ready),
                    None => lock.waiting.push_back(request),
                }
            }
            _ => {}
        }
        true
    }

    /// When a request finds a place at the file system.
    fn place(&mut self, time: Time, file_system: &FileSystem) -> Time {
        let is_full = file_system.requests > 0 && self.places.len() >= file_system.requests as usize;
        let free = if is_full { self.places.pop() } else { None };
        if file_system.requests == 0 {
            self.places.clear();
        }
        free.map_or(time, |Reverse(free)| free.max(time))
    }

    fn answer(&mut self, rank: u32, (start, end): (Time, Time), ready: &mut Vec<u32>) {
        self.served[rank as usize] = Some((start.as_nanos(), end.as_nanos()));
        ready.push(rank);
    }

    /// A lock is given back; those that waited for it may have it now.
    fn unlock(&mut self, memory: Memory, time: f64, ready: &mut Vec<u32>) {
        let Some(lock) = self.locks.get_mut(&memory) else { return };
        lock.release(time);
        let mut granted = Vec::new();
        while let Some(request) = lock.waiting.front().copied() {
            let Some(start) = lock.grant(request) else { break };
            lock.waiting.pop_front();
            granted.push((request.rank, Time::from_nanos(start)));
        }
        granted.into_iter().for_each(|(rank, start)| self.answer(rank, (start, start), ready));
    }
}

impl<'a, O, T, const RENDEZVOUS: bool, const MANY_WAYS: bool> Engine<'a, O, T, RENDEZVOUS, MANY_WAYS>
where
    O: Observer,
    T: Transit,
{
    #[inline(never)]
    pub(super) fn access(&mut self, rank: u32, state: &mut RankState, index: u32) -> Step {
        match self.program.accesses()[index as usize] {
            Access::Transfer { window, target, .. } => self.transfer_data(rank, state, index, (window, target)),
            Access::Flush { window, target } => self.flush(rank, state, index, (window, target)),
            Access::Unlock { window, target } => {
                self.flush(rank, state, index, (window, Some(target)));
                self.accesses.unlock((window, target.0), state.time, &mut self.ready);
            }
            access @ Access::Lock { target, .. } => return self.lock(rank, state, (index, access), target),
            access @ Access::File { .. } => return self.file(rank, state, index, access),
        }
        Step::GoOn
    }

    fn path_to(&self, rank: u32, target: Rank) -> &'a PathCosts {
        let (from, to) = (self.placement.node(Rank(rank)), self.placement.node(target));
        // One-sided communication has no tag by which a dedicated connection could be chosen, and no size yet.
        let route = route(self.costs.network(), self.placement, (from, to), (0, Bytes(0)));
        &self.costs.paths[WayNumbers::new(self.placement).number(self.placement.group_index(from), route)]
    }

    fn transfer_data(&mut self, rank: u32, state: &mut RankState, index: u32, (window, target): (i32, Rank)) {
        let path = self.path_to(rank, target);
        let cost = &path.accesses[index as usize];
        let (call, start, came) = state.begin_send(path.send_overhead, cost.busy);
        let done = self.accesses.outstanding[rank as usize].entry((window, target.0)).or_default();
        *done = later(*done, (came + cost.delay, path.latency));
        let accessed = Accessed { access: index, call, start, came, queued: 0.0, latency: 0.0, end: came };
        self.observer.accessed(rank, accessed);
    }

    fn flush(&mut self, rank: u32, state: &mut RankState, index: u32, (window, target): (i32, Option<Rank>)) {
        let call = state.time;
        let (done, latency) = self.accesses.done(rank, window, target);
        let end = done.max(call);
        state.blocked += end - call;
        state.time = end;
        let accessed = Accessed { access: index, call, start: call, came: call, queued: 0.0, latency, end };
        self.observer.accessed(rank, accessed);
    }

    fn lock(&mut self, rank: u32, state: &mut RankState, (index, access): (u32, Access), target: Rank) -> Step {
        let path = self.path_to(rank, target);
        let (call, came) = (state.time, state.time + path.send_overhead);
        let asked = came + path.latency;
        let Some((granted, _)) = self.ask(rank, state, asked, access) else { return Step::Wait };
        let end = granted + path.latency;
        state.overhead += path.send_overhead;
        state.blocked += end - came;
        state.time = end;
        let latency = 2.0 * path.latency;
        let accessed = Accessed { access: index, call, start: call, came, queued: granted - asked, latency, end };
        self.observer.accessed(rank, accessed);
        Step::GoOn
    }

    fn file(&mut self, rank: u32, state: &mut RankState, index: u32, access: Access) -> Step {
        let call = state.time;
        let Some((begun, end)) = self.ask(rank, state, call, access) else { return Step::Wait };
        state.blocked += end - call;
        state.time = end;
        let latency = self.costs.file_system().latency.as_nanos();
        let accessed = Accessed { access: index, call, start: call, came: call, queued: begun - call, latency, end };
        self.observer.accessed(rank, accessed);
        Step::GoOn
    }

    /// When a request is carried out; the first time it is put to the others.
    fn ask(&mut self, rank: u32, state: &mut RankState, time: f64, access: Access) -> Option<(f64, f64)> {
        let served = self.accesses.served[rank as usize].take();
        if served.is_none() && !state.entered {
            self.accesses.requests.push(Reverse(Request { time: Time::from_nanos(time), rank, access }));
        }
        state.entered = served.is_none();
        served
    }
}
