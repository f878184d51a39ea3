//! The walk of a replay with many lanes. Each function does what the one of the same name in [`crate::walk`]
//! does, to all lanes.

use super::collectives::{Collectives, Entry};
use super::lane_costs::{LaneClass, LaneCosts, LanePath};
use super::slots::{self, Known};
use super::times::{Pool, Times, later};
use super::{SetOutcome, Walked};
use crate::routes::Route;
use flowcast_trace::program::{CollectiveMode, Program};
use flowcast_trace::words::{self, Op};
use flowcast_units::{Rank, Time};

/// Replays the program in all lanes; `None` if ranks wait for each other.
pub fn walk<const W: usize>(walked: &Walked<'_>, costs: &LaneCosts<'_, W>) -> Option<Vec<SetOutcome>> {
    match (costs.has_rendezvous(), costs.has_busy_interfaces()) {
        (false, false) => Engine::<W, false, false>::new(walked, costs).run(),
        (false, true) => Engine::<W, false, true>::new(walked, costs).run(),
        (true, false) => Engine::<W, true, false>::new(walked, costs).run(),
        (true, true) => Engine::<W, true, true>::new(walked, costs).run(),
    }
}

/// What of a rank differs from lane to lane.
#[derive(Clone, Copy)]
struct RankTimes<const W: usize> {
    time: Times<W>,
    compute: Times<W>,
    /// When the sending interface may start the next message.
    interface_free: Times<W>,
}

/// Where a rank is, the same in all lanes.
#[derive(Debug, Clone, Copy, Default)]
struct RankState {
    at: usize,
    next_slot: u32,
    entered: bool,
    done: bool,
}

/// A rendezvous send whose receiver has not come.
#[derive(Debug, Clone, Copy)]
struct PendingSend {
    /// The block that says since when it is ready.
    ready: u32,
    class: u32,
}

enum Step {
    GoOn,
    Wait,
}

/// `BUSY`: some interface rests after a message. Without, when it is free never matters.
struct Engine<'a, const W: usize, const RENDEZVOUS: bool, const BUSY: bool> {
    program: &'a Program,
    walked: &'a Walked<'a>,
    costs: &'a LaneCosts<'a, W>,
    times: Vec<RankTimes<W>>,
    ranks: Vec<RankState>,
    ready: Vec<u32>,
    pool: Pool<W>,
    /// By slot: when the message arrives.
    arrivals: Vec<Known>,
    /// By slot, with rendezvous only: when the receiver came; or the pending send.
    posted: Vec<Known>,
    /// By slot, with rendezvous only: when the sender may go on.
    released: Vec<Known>,
    pending: Vec<PendingSend>,
    /// By rank, with rendezvous only: the slots of its sends.
    sends: Vec<Vec<u32>>,
    collectives: Collectives<'a, W>,
}

impl<'a, const W: usize, const RENDEZVOUS: bool, const BUSY: bool> Engine<'a, W, RENDEZVOUS, BUSY> {
    fn new(walked: &'a Walked<'a>, costs: &'a LaneCosts<'a, W>) -> Self {
        let program = walked.program;
        let slots = program.messages() as usize;
        let ranks = program.streams() as u32;
        let state = |rank| RankState { next_slot: program.first_slot(Rank(rank)), ..RankState::default() };
        let none = Times::all(0.0);
        let with_rendezvous = if RENDEZVOUS { slots } else { 0 };
        Engine {
            program,
            walked,
            costs,
            times: vec![RankTimes { time: none, compute: none, interface_free: none }; ranks as usize],
            ranks: (0..ranks).map(state).collect(),
            ready: (0..ranks).rev().collect(),
            pool: Pool::default(),
            arrivals: slots::table(slots),
            posted: slots::table(with_rendezvous),
            released: slots::table(with_rendezvous),
            pending: Vec::new(),
            sends: vec![Vec::new(); if RENDEZVOUS { ranks as usize } else { 0 }],
            collectives: Collectives::new(program, &costs.networks),
        }
    }

    fn run(mut self) -> Option<Vec<SetOutcome>> {
        while let Some(rank) = self.ready.pop() {
            self.advance(rank);
        }
        if self.ranks.iter().any(|state| !state.done) {
            return None;
        }
        let of_lane = |lane: usize| SetOutcome {
            ends: self
                .times
                .iter()
                .take(self.program.ranks())
                .map(|rank| Time::from_nanos(rank.time.0[lane]))
                .collect(),
            computes: self
                .times
                .iter()
                .take(self.program.ranks())
                .map(|rank| Time::from_nanos(rank.compute.0[lane]))
                .collect(),
        };
        Some((0..self.costs.lanes).map(of_lane).collect())
    }

    /// Runs a rank until it waits or ends.
    fn advance(&mut self, rank: u32) {
        let program = self.program;
        let words = program.words(Rank(rank));
        let mut state = self.ranks[rank as usize];
        while let Some((op, next)) = words::decode(words, state.at) {
            let step = match op {
                Op::Compute(time) => {
                    self.compute(rank, time.as_nanos());
                    Step::GoOn
                }
                Op::Send { class, slot } => self.send(rank, &mut state, class, slot),
                Op::Recv => {
                    let slot = state.next_slot;
                    let step = self.receive(rank, &mut state, slot, true);
                    if let Step::GoOn = step {
                        state.next_slot += 1;
                    }
                    step
                }
                Op::Irecv => {
                    if RENDEZVOUS {
                        let time = self.times[rank as usize].time;
                        self.post(state.next_slot, &time);
                    }
                    state.next_slot += 1;
                    Step::GoOn
                }
                Op::WaitRecv(own) => {
                    let slot = program.first_slot(Rank(rank)) + own;
                    self.receive(rank, &mut state, slot, false)
                }
                Op::WaitSend(ago) => self.wait_send(rank, ago),
                Op::Collective { call, instance } => self.collective(rank, &mut state, call, instance),
                Op::WaitCollective(instance) => self.wait_collective(rank, instance),
                Op::Accelerator(time) => {
                    let networks = &self.costs.networks;
                    let nanos = time.as_nanos();
                    add(&mut self.times[rank as usize], |lane| {
                        nanos / networks[lane].accelerator_speeds[rank as usize]
                    });
                    Step::GoOn
                }
                // Programs with accesses are replayed one by one.
                Op::Nothing | Op::Event(_) | Op::Ignored(_) | Op::Access(_) => Step::GoOn,
            };
            if let Step::Wait = step {
                self.ranks[rank as usize] = state;
                return;
            }
            state.at = next;
        }
        state.done = state.at == words.len();
        self.ranks[rank as usize] = state;
    }

    #[inline(always)]
    fn compute(&mut self, rank: u32, nanos: f64) {
        let times = &mut self.times[rank as usize];
        match &self.costs.speeds {
            None => add(times, |_| nanos),
            Some(speeds) => {
                let speeds = &speeds[rank as usize].0;
                // A division by 1 changes nothing, so that it needs no case of its own here.
                add(times, |lane| nanos / speeds[lane]);
            }
        }
    }

    #[inline(always)]
    fn path(&self, slot: u32) -> &'a LanePath<W> {
        let way = self.walked.ways.get(slot as usize).map_or(0, |way| usize::from(*way));
        &self.costs.paths[way]
    }

    #[inline(always)]
    fn send(&mut self, rank: u32, state: &mut RankState, class: u32, slot: u32) -> Step {
        let path = self.path(slot);
        let cost = &path.classes[class as usize];
        if RENDEZVOUS && (cost.rendezvous || state.entered) {
            return self.send_rendezvous(rank, state, class, slot);
        }
        let block = self.pool.take();
        let arrival = &mut self.pool[block].0;
        overhead::<W, BUSY>(&mut self.times[rank as usize], path, cost, |lane, end| {
            arrival[lane] = end + cost.delay.0[lane];
        });
        self.fill(slot, block);
        if RENDEZVOUS {
            self.forget_post(slot);
            self.released[slot as usize] = slots::PAST;
            self.sends[rank as usize].push(slot);
        }
        Step::GoOn
    }

    /// Notes when the message of a slot arrives; whoever waits for it may go on.
    #[inline(always)]
    fn fill(&mut self, slot: u32, arrival: Known) {
        let before = std::mem::replace(&mut self.arrivals[slot as usize], arrival);
        if before != slots::EMPTY {
            self.ready.push(slots::who(before));
        }
    }

    /// When the receiver of a message came that waits for nobody does not matter.
    fn forget_post(&mut self, slot: u32) {
        let posted = std::mem::replace(&mut self.posted[slot as usize], slots::PAST);
        if slots::is_block(posted) {
            self.pool.give_back(posted);
        }
    }

    /// A receive (which posts itself) or a wait for one posted before.
    #[inline(always)]
    fn receive(&mut self, rank: u32, state: &mut RankState, slot: u32, posts: bool) -> Step {
        let path = self.path(slot);
        if RENDEZVOUS && posts && !state.entered {
            let before = plus(&self.times[rank as usize].time, &path.recv_before);
            self.post(slot, &before);
            state.entered = true;
        }
        let known = self.arrivals[slot as usize];
        let time = &mut self.times[rank as usize].time.0;
        if slots::is_block(known) {
            let arrival = &self.pool[known].0;
            for lane in 0..W {
                let before = time[lane] + path.recv_before.0[lane];
                time[lane] = later(arrival[lane], before) + path.recv_after.0[lane];
            }
            self.pool.give_back(known);
            self.arrivals[slot as usize] = slots::PAST;
        } else if known == slots::PAST {
            (0..W).for_each(|lane| time[lane] = time[lane] + path.recv_before.0[lane] + path.recv_after.0[lane]);
        } else {
            self.arrivals[slot as usize] = slots::waiting(rank);
            return Step::Wait;
        }
        if RENDEZVOUS {
            state.entered = false;
        }
        Step::GoOn
    }

    /// A receiver is ready for the message of a slot; a sender that waits for it starts the transfer.
    fn post(&mut self, slot: u32, time: &Times<W>) {
        let before = self.posted[slot as usize];
        if before == slots::PAST {
            return;
        }
        if before == slots::EMPTY {
            let block = self.pool.take();
            self.pool[block] = *time;
            self.posted[slot as usize] = block;
            return;
        }
        let PendingSend { ready, class } = self.pending[slots::who(before) as usize];
        self.posted[slot as usize] = slots::PAST;
        let start = &mut self.pool[ready].0;
        (0..W).for_each(|lane| start[lane] = later(start[lane], time.0[lane]));
        self.transfer(slot, ready, class);
    }

    /// A rendezvous transfer starts at the times of a block: the receiver learns of its arrival, the sender of its
    /// release.
    fn transfer(&mut self, slot: u32, start: u32, class: u32) {
        let cost = &self.path(slot).classes[class as usize];
        let release = if self.walked.awaited[slot as usize] {
            let block = self.pool.take();
            self.pool[block] = plus(&self.pool[start], &cost.held);
            block
        } else {
            slots::PAST
        };
        self.pool[start] = plus(&self.pool[start], &cost.delay);
        self.fill(slot, start);
        let before = std::mem::replace(&mut self.released[slot as usize], release);
        if before != slots::EMPTY {
            self.ready.push(slots::who(before));
        }
    }

    fn send_rendezvous(&mut self, rank: u32, state: &mut RankState, class: u32, slot: u32) -> Step {
        let immediate = self.program.classes()[class as usize].mode.immediate;
        if !state.entered {
            self.start_rendezvous(rank, class, slot);
            if immediate {
                return Step::GoOn;
            }
            state.entered = true;
        }
        let step = self.until_released(rank, slot);
        state.entered = matches!(step, Step::Wait);
        step
    }

    fn start_rendezvous(&mut self, rank: u32, class: u32, slot: u32) {
        let path = self.path(slot);
        let times = &mut self.times[rank as usize];
        overhead::<W, BUSY>(times, path, &path.classes[class as usize], |_, _| {});
        let ready = times.time;
        self.sends[rank as usize].push(slot);
        let posted = self.posted[slot as usize];
        if slots::is_block(posted) {
            self.posted[slot as usize] = slots::PAST;
            let start = &mut self.pool[posted].0;
            (0..W).for_each(|lane| start[lane] = later(ready.0[lane], start[lane]));
            self.transfer(slot, posted, class);
        } else {
            let block = self.pool.take();
            self.pool[block] = ready;
            self.posted[slot as usize] = slots::waiting(self.pending.len() as u32);
            self.pending.push(PendingSend { ready: block, class });
        }
    }

    /// Waits until the sender of a slot may go on.
    fn until_released(&mut self, rank: u32, slot: u32) -> Step {
        let known = self.released[slot as usize];
        if known == slots::PAST {
            return Step::GoOn;
        }
        if !slots::is_block(known) {
            self.released[slot as usize] = slots::waiting(rank);
            return Step::Wait;
        }
        let (time, release) = (&mut self.times[rank as usize].time.0, &self.pool[known].0);
        (0..W).for_each(|lane| time[lane] = later(release[lane], time[lane]));
        self.pool.give_back(known);
        self.released[slot as usize] = slots::PAST;
        Step::GoOn
    }

    fn wait_send(&mut self, rank: u32, ago: u32) -> Step {
        if !RENDEZVOUS {
            return Step::GoOn;
        }
        let sends = &self.sends[rank as usize];
        match (sends.len() as u32).checked_sub(ago + 1) {
            Some(index) => self.until_released(rank, sends[index as usize]),
            None => Step::GoOn,
        }
    }

    fn collective(&mut self, rank: u32, state: &mut RankState, call: u32, instance: u32) -> Step {
        let made = &self.program.calls()[call as usize];
        let time = &self.times[rank as usize].time;
        let came = match made.mode {
            CollectiveMode::Blocking => *time,
            _ => plus(time, &self.collectives.costs.startup(made.communicator, rank).of_call),
        };
        let own_end = self.own_end(rank, call, &came);
        if !state.entered {
            state.entered = true;
            self.collectives.enter(instance, &Entry { rank, call, came, own_end }, &mut self.ready);
        }
        let (end, asks_later) = match made.mode {
            CollectiveMode::Immediate => (came, true),
            CollectiveMode::RootSynchronous if !made.is_root => (own_end, false),
            _ => match self.collectives.finish(instance) {
                Some(finish) => (*finish, false),
                None => {
                    self.collectives.wait(instance, rank);
                    return Step::Wait;
                }
            },
        };
        state.entered = false;
        if !asks_later {
            self.collectives.leave(instance);
        }
        self.go_on_at(rank, &end, &came);
        Step::GoOn
    }

    /// When a rank's own data has reached the root of a root-synchronous collective.
    fn own_end(&self, rank: u32, call: u32, came: &Times<W>) -> Times<W> {
        let made = &self.program.calls()[call as usize];
        if made.mode != CollectiveMode::RootSynchronous || made.is_root {
            return *came;
        }
        let root = made.root.unwrap_or(Rank(rank));
        let placement = self.walked.placement;
        let same_node = placement.node(root) == placement.node(Rank(rank));
        let route = if same_node { Route::Inside } else { Route::Between };
        let networks = &self.costs.networks;
        Times::from_lanes(|lane| came.0[lane] + networks[lane].to_root(route, Rank(rank), made.send).0)
    }

    fn wait_collective(&mut self, rank: u32, instance: u32) -> Step {
        let communicator = self.program.instances()[instance as usize];
        let time = &self.times[rank as usize].time;
        let came = plus(time, &self.collectives.costs.startup(communicator, rank).of_wait);
        let Some(finish) = self.collectives.finish(instance).copied() else {
            self.collectives.wait(instance, rank);
            return Step::Wait;
        };
        self.collectives.leave(instance);
        self.go_on_at(rank, &finish, &came);
        Step::GoOn
    }

    fn go_on_at(&mut self, rank: u32, end: &Times<W>, came: &Times<W>) {
        let time = &mut self.times[rank as usize].time.0;
        (0..W).for_each(|lane| time[lane] = later(end.0[lane], came.0[lane]));
    }
}

#[inline(always)]
fn plus<const W: usize>(times: &Times<W>, more: &Times<W>) -> Times<W> {
    let mut sum = *times;
    (0..W).for_each(|lane| sum.0[lane] += more.0[lane]);
    sum
}

#[inline(always)]
fn add<const W: usize>(times: &mut RankTimes<W>, nanos: impl Fn(usize) -> f64) {
    for lane in 0..W {
        let nanos = nanos(lane);
        times.time.0[lane] += nanos;
        times.compute.0[lane] += nanos;
    }
}

/// The sender's overhead, after which `then` is called with its end in each lane.
#[inline(always)]
fn overhead<const W: usize, const BUSY: bool>(
    times: &mut RankTimes<W>,
    path: &LanePath<W>,
    cost: &LaneClass<W>,
    mut then: impl FnMut(usize, f64),
) {
    let (time, free) = (&mut times.time.0, &mut times.interface_free.0);
    for lane in 0..W {
        let mut start = time[lane];
        if BUSY {
            start = later(free[lane], start);
            free[lane] = start + cost.busy.0[lane];
        }
        let end = start + path.send_overhead.0[lane];
        time[lane] = end;
        then(lane, end);
    }
}
