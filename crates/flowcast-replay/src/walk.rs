//! Replay of a program without contention: a walk over the ranks' streams, no event queue.
//!
//! Where messages do not compete for links, what happens to a rank depends only on its own past and on the arrival
//! times of the messages that it receives. So each rank runs as far as it can; when it needs a message that has not
//! been sent, the sender runs, and its send wakes the receiver. The order in which ranks run cannot change a time,
//! and the result is that of an event-driven simulation, at the cost of reading the streams once.

mod accesses;
mod rendezvous;

use self::accesses::Accesses;
use super::SimulateError;
use super::collectives::{Collectives, Done, Entry};
use super::costs::{Costs, PathCosts, Rendezvous};
use super::outcome::{Outcome, RankOutcome};
use super::placement::Placement;
use super::record::{Gathered, Observer, Received, Sent, Unobserved};
use super::routes::{route, ways_of};
use super::standstill::{Stand, Standstill};
use super::transit::{Delivery, Departure, Progress, Transit, Undisturbed};
use flowcast_model::network::Network;
use flowcast_trace::program::{CollectiveMode, Program};
use flowcast_trace::words::{self, Op};
use flowcast_units::{Rank, Time};

/// A program on a network, ready to run.
pub struct Replay<'a> {
    pub(super) program: &'a Program,
    pub(super) placement: Placement,
    pub(super) costs: Costs,
    /// The kind of way of each message; empty if all messages go the same kind of way.
    pub(super) ways: Vec<u16>,
}

impl<'a> Replay<'a> {
    /// Computes the costs of all messages.
    ///
    /// # Errors
    /// [`SimulateError::Placement`] if the network has more kinds of nodes than ways can be numbered.
    pub fn new(
        program: &'a Program,
        network: &Network,
        placement: Placement,
        rendezvous: Rendezvous,
    ) -> Result<Replay<'a>, SimulateError> {
        let costs = Costs::new(program, network, &placement, rendezvous);
        let ways = ways_of(program, network, &placement)?;
        Ok(Replay { program, placement, costs, ways })
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`].
    pub fn run(&self) -> Result<Outcome, SimulateError> {
        self.observed(&mut Unobserved)
    }

    /// The costs in use.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Runs and tells an observer what happens.
    ///
    /// # Errors
    /// As [`Replay::run`].
    pub fn observed<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        self.through(observer, &mut Undisturbed)
    }

    /// Runs through a network and tells an observer what happens.
    ///
    /// # Errors
    /// As [`Replay::run`], and those of the network's model.
    pub(super) fn through<O: Observer, T: Transit>(
        &self,
        observer: &mut O,
        transit: &mut T,
    ) -> Result<Outcome, SimulateError> {
        match (self.costs.has_rendezvous(), self.ways.is_empty()) {
            (false, true) => Engine::<O, T, false, false>::new(self, observer, transit).run(),
            (false, false) => Engine::<O, T, false, true>::new(self, observer, transit).run(),
            (true, true) => Engine::<O, T, true, false>::new(self, observer, transit).run(),
            (true, false) => Engine::<O, T, true, true>::new(self, observer, transit).run(),
        }
    }
}

/// A slot of a table of times: a time that is not negative, or one of these.
mod mark {
    /// Nothing is known yet.
    pub const EMPTY: u64 = 1 << 63 | 0xFFFF_FFFF;

    /// Rank (or pending send) number `index` waits for the time.
    pub const fn waiting(index: u32) -> u64 {
        1 << 63 | index as u64
    }

    /// Whether this is a time.
    #[inline(always)]
    pub const fn is_time(bits: u64) -> bool {
        bits >> 63 == 0
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct RankState {
    /// The next instruction.
    at: usize,
    time: f64,
    /// When the sending interface may start the next message.
    interface_free: f64,
    /// The slot of the next receive to post.
    next_slot: u32,
    /// Whether the instruction was begun and waits for others.
    entered: bool,
    done: bool,
    /// When it last left a call in which it looks at what comes.
    looked: f64,
    compute: f64,
    blocked: f64,
    overhead: f64,
}

impl RankState {
    /// The processor's part of a send, once the interface is free: when it was called, begun and done.
    #[inline(always)]
    fn begin_send(&mut self, overhead: f64, busy: f64) -> (f64, f64, f64) {
        let call = self.time;
        let start = if self.interface_free > call { self.interface_free } else { call };
        let end = start + overhead;
        self.blocked += start - call;
        self.overhead += overhead;
        self.interface_free = start + busy;
        self.time = end;
        (call, start, end)
    }
}

/// A rendezvous send whose receiver has not come.
#[derive(Debug, Clone, Copy)]
struct PendingSend {
    ready: f64,
    class: u32,
}

enum Step {
    GoOn,
    Wait,
}

struct Engine<'a, O, T, const RENDEZVOUS: bool, const MANY_WAYS: bool> {
    program: &'a Program,
    placement: &'a Placement,
    costs: &'a Costs,
    ways: &'a [u16],
    observer: &'a mut O,
    transit: &'a mut T,
    ranks: Vec<RankState>,
    ready: Vec<u32>,
    /// By slot: when the message arrives.
    arrivals: Vec<u64>,
    /// By slot, with rendezvous only: when the receiver came; or the pending send.
    posted: Vec<u64>,
    /// By slot, with rendezvous that takes the network only: when the receiver had last looked, when it came.
    looked: Vec<f64>,
    /// By slot, with rendezvous only: when the sender may go on.
    released: Vec<u64>,
    pending: Vec<PendingSend>,
    /// By rank, with rendezvous only: the slots of its sends.
    sends: Vec<Vec<u32>>,
    collectives: Collectives<'a>,
    accesses: Accesses,
}

impl<'a, O, T, const RENDEZVOUS: bool, const MANY_WAYS: bool> Engine<'a, O, T, RENDEZVOUS, MANY_WAYS>
where
    O: Observer,
    T: Transit,
{
    fn new(replay: &'a Replay<'_>, observer: &'a mut O, transit: &'a mut T) -> Self {
        let program = replay.program;
        let slots = program.messages() as usize;
        let ranks = program.streams() as u32;
        let state = |rank| RankState { next_slot: program.first_slot(Rank(rank)), ..RankState::default() };
        let with_rendezvous = if RENDEZVOUS { slots } else { 0 };
        Engine {
            program,
            placement: &replay.placement,
            costs: &replay.costs,
            ways: &replay.ways,
            observer,
            transit,
            ranks: (0..ranks).map(state).collect(),
            ready: (0..ranks).rev().collect(),
            arrivals: vec![mark::EMPTY; slots],
            posted: vec![mark::EMPTY; with_rendezvous],
            looked: vec![0.0; if T::HANDSHAKES { with_rendezvous } else { 0 }],
            released: vec![mark::EMPTY; with_rendezvous],
            pending: Vec::new(),
            sends: vec![Vec::new(); if RENDEZVOUS { ranks as usize } else { 0 }],
            collectives: Collectives::new(program),
            accesses: Accesses::new(if program.accesses().is_empty() { 0 } else { ranks as usize }),
        }
    }

    fn run(mut self) -> Result<Outcome, SimulateError> {
        loop {
            while let Some(rank) = self.ready.pop() {
                self.advance(rank);
            }
            if T::SHARED
                && let Some(progress) = self.transit.deliver(self.accesses.requests.first())?
            {
                match progress {
                    Progress::Held { slot, since } => self.let_go(slot, since),
                    Progress::Arrived(delivery) => self.arrive(delivery),
                }
            } else if !self.accesses.requests.serve(self.costs.file_system(), &mut self.ready) {
                break;
            }
        }
        if self.ranks.iter().any(|state| !state.done) {
            return Err(self.explain_stop());
        }
        Ok(Outcome::of(
            self.program,
            self.ranks.iter().map(|state| RankOutcome {
                end: Time::from_nanos(state.time),
                compute: Time::from_nanos(state.compute),
                blocked: Time::from_nanos(state.blocked),
                overhead: Time::from_nanos(state.overhead),
            }),
        ))
    }

    /// Runs a rank until it waits or ends.
    fn advance(&mut self, rank: u32) {
        let program = self.program;
        let words = program.words(Rank(rank));
        let mut state = self.ranks[rank as usize];
        if T::HANDSHAKES {
            self.transit.go_on(rank);
        }
        while let Some((op, next)) = words::decode(words, state.at) {
            let step = match op {
                Op::Compute(time) => {
                    let speed = self.costs.speeds[rank as usize];
                    self.compute(rank, &mut state, time.as_nanos(), speed);
                    Step::GoOn
                }
                Op::Accelerator(time) => {
                    let speed = self.costs.accelerator_speeds[rank as usize];
                    self.compute(rank, &mut state, time.as_nanos(), speed);
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
                        self.post(state.next_slot, state.time, state.looked);
                    }
                    self.observer.posted(state.next_slot, state.time);
                    state.next_slot += 1;
                    Step::GoOn
                }
                Op::WaitRecv(own) => {
                    let slot = program.first_slot(Rank(rank)) + own;
                    self.receive(rank, &mut state, slot, false)
                }
                Op::WaitSend(ago) => self.wait_send(rank, &mut state, ago),
                Op::Collective { call, instance } => self.collective(rank, &mut state, call, instance),
                Op::WaitCollective(instance) => self.wait_collective(rank, &mut state, instance),
                Op::Event(event) => {
                    self.observer.marked(rank, event, state.time);
                    Step::GoOn
                }
                Op::Access(index) => self.access(rank, &mut state, index),
                Op::Nothing | Op::Ignored(_) => Step::GoOn,
            };
            if let Step::Wait = step {
                if T::HANDSHAKES {
                    self.transit.wait(rank, state.time);
                }
                self.ranks[rank as usize] = state;
                return;
            }
            state.at = next;
        }
        state.done = state.at == words.len();
        if T::HANDSHAKES {
            self.transit.wait(rank, state.time);
        }
        self.ranks[rank as usize] = state;
    }

    #[inline(always)]
    fn compute(&mut self, rank: u32, state: &mut RankState, nanos: f64, speed: f64) {
        let nanos = if speed == 1.0 { nanos } else { nanos / speed };
        let start = state.time;
        state.time += nanos;
        state.compute += nanos;
        self.observer.computed(rank, start, state.time);
    }

    #[inline(always)]
    fn path(&self, slot: u32) -> &'a PathCosts {
        let way = if MANY_WAYS { usize::from(self.ways[slot as usize]) } else { 0 };
        &self.costs.paths[way]
    }

    #[inline(always)]
    fn send(&mut self, rank: u32, state: &mut RankState, class: u32, slot: u32) -> Step {
        let path = self.path(slot);
        let cost = &path.classes[class as usize];
        if RENDEZVOUS && (cost.rendezvous || state.entered) {
            return self.send_rendezvous(rank, state, class, slot);
        }
        let (call, start, end) = state.begin_send(path.send_overhead, cost.busy);
        if T::SHARED && self.is_between_nodes(slot) {
            self.observer.sent(rank, slot, Sent { class, call, start, end, arrival: f64::INFINITY });
            self.transit.depart(Departure {
                slot,
                start: end,
                size: self.program.classes()[class as usize].size,
                cost: *cost,
                offer: None,
                latency: path.latency,
                ends: None,
            });
        } else {
            let arrival = end + cost.delay;
            self.observer.sent(rank, slot, Sent { class, call, start, end, arrival });
            self.fill(slot, arrival);
        }
        if RENDEZVOUS {
            self.released[slot as usize] = end.to_bits();
            self.sends[rank as usize].push(slot);
        }
        Step::GoOn
    }

    /// Notes when the message of a slot arrives; whoever waits for it may go on.
    #[inline(always)]
    fn fill(&mut self, slot: u32, arrival: f64) {
        let before = std::mem::replace(&mut self.arrivals[slot as usize], arrival.to_bits());
        if before != mark::EMPTY {
            self.ready.push(before as u32);
        }
    }

    /// A receive (which posts itself) or a wait for one posted before.
    #[inline(always)]
    fn receive(&mut self, rank: u32, state: &mut RankState, slot: u32, posts: bool) -> Step {
        let path = self.path(slot);
        let before = state.time + path.recv_before;
        if RENDEZVOUS && posts && !state.entered {
            self.post(slot, before, state.looked);
            state.entered = true;
        }
        let bits = self.arrivals[slot as usize];
        if !mark::is_time(bits) {
            self.arrivals[slot as usize] = mark::waiting(rank);
            return Step::Wait;
        }
        let arrival = f64::from_bits(bits);
        let taken = if arrival > before { arrival } else { before };
        let end = taken + path.recv_after;
        self.observer.received(rank, slot, Received { call: state.time, before, taken, end });
        state.overhead += path.recv_before + path.recv_after;
        state.blocked += taken - before;
        state.time = end;
        if RENDEZVOUS {
            state.entered = false;
            state.looked = end;
        }
        Step::GoOn
    }

    /// A message that shared the network has arrived.
    fn arrive(&mut self, delivery: Delivery) {
        let Delivery { slot, start, arrival, left } = delivery;
        if let Some(number) = slot.checked_sub(self.program.messages()) {
            return self.transferred(number, delivery);
        }
        self.observer.moved(slot, start, arrival);
        self.fill(slot, arrival);
        self.let_go(slot, left);
    }

    /// Messages inside a node do not touch the network.
    #[inline(always)]
    fn is_between_nodes(&self, slot: u32) -> bool {
        !MANY_WAYS || self.ways[slot as usize].is_multiple_of(2)
    }

    fn collective(&mut self, rank: u32, state: &mut RankState, call: u32, instance: u32) -> Step {
        let made = &self.program.calls()[call as usize];
        let startup = match made.mode {
            CollectiveMode::Blocking => 0.0,
            _ => self.costs.collective_startup(made.communicator, Rank(rank)).trunc(),
        };
        let came = state.time + startup;
        if !state.entered {
            state.entered = true;
            let entry = Entry { rank, call, came, own_end: self.own_end(rank, call, came) };
            self.collectives.enter(instance, entry, self.costs, &mut self.ready);
        }
        let own = (came, rank);
        let left = match made.mode {
            CollectiveMode::Immediate => Some((came, own)),
            CollectiveMode::RootSynchronous if !made.is_root => Some((self.own_end(rank, call, came), own)),
            _ => self.collectives.finish(instance),
        };
        let Some((end, last)) = left else {
            self.collectives.wait(instance, rank);
            return Step::Wait;
        };
        state.entered = false;
        state.overhead += startup;
        self.leave_collective(rank, state, instance, came, (end.max(came), last));
        Step::GoOn
    }

    /// When a rank's own data has reached the root of a root-synchronous collective.
    fn own_end(&self, rank: u32, call: u32, came: f64) -> f64 {
        let made = &self.program.calls()[call as usize];
        if made.mode != CollectiveMode::RootSynchronous || made.is_root {
            return came;
        }
        let root = made.root.unwrap_or(Rank(rank));
        let nodes = (self.placement.node(Rank(rank)), self.placement.node(root));
        let route = route(self.costs.network(), self.placement, nodes, (0, made.send));
        let (bytes, flight) = self.costs.to_root(route, Rank(rank), made.send);
        came + (bytes + flight)
    }

    fn leave_collective(&mut self, rank: u32, state: &mut RankState, instance: u32, came: f64, done: Done) {
        let (end, (last, last_rank)) = done;
        self.observer.gathered(rank, Gathered { instance, call: state.time, came, last, last_rank, end });
        state.blocked += end - came;
        state.time = end;
        state.looked = end;
    }

    fn wait_collective(&mut self, rank: u32, state: &mut RankState, instance: u32) -> Step {
        let communicator = self.program.instances()[instance as usize];
        let startup = self.costs.collective_startup(communicator, Rank(rank));
        let came = state.time + startup;
        let Some((finish, last)) = self.collectives.finish(instance) else {
            self.collectives.wait(instance, rank);
            return Step::Wait;
        };
        state.overhead += startup;
        self.leave_collective(rank, state, instance, came, (finish.max(came), last));
        Step::GoOn
    }

    fn explain_stop(&self) -> SimulateError {
        let stand = |(rank, state): (usize, &RankState)| {
            let words = self.program.words(Rank(rank as u32));
            let send = match words::decode(words, state.at) {
                Some((Op::WaitSend(ago), _)) => {
                    let sends = &self.sends[rank];
                    Some(sends[sends.len() - 1 - ago as usize])
                }
                _ => None,
            };
            let RankState { at, next_slot, entered, done, .. } = *state;
            Stand { at, next_slot, entered, done, send }
        };
        Standstill { program: self.program, ranks: self.ranks.iter().enumerate().map(stand).collect() }.explain()
    }
}
