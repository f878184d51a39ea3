//! The loop over the events, and the turns of the ranks.

mod accesses;
mod collective;
mod scheduling;
mod shared;

use super::{
    super::{
        SimulateError,
        costs::Costs,
        deadlock_report::{DeadlockReport, RankPosition},
        observer::Observer,
        outcome::{Outcome, RankOutcome, Waits},
        placement::Placement,
        routes::{Route, RouteNumbers},
        transit::Transit,
    },
    events::{Event, EventKind, Pending},
    links::Links,
    messages::{MessageStore, Purpose},
    perturbation::Perturbation,
    processors::{Place, Processors},
    ranks::{ContendedRank, RankPhase, Step},
    route_costs::{Delay, RouteCosts, route_costs},
};
use crate::{
    accesses::Accesses,
    last_sends::LastSends,
    prefetch::MANY_RANKS,
    walk::{Handshakes, Replay, Slots},
};
use collective::CollectiveState;
use flowcast_program::{
    opcodes::{self, Op},
    program::Program,
    slot::Slot,
};
use flowcast_units::{Rank, Time};
use scheduling::{Scheduling, priorities};
use shared::InTransit;

/// Approximate number of messages of one rank that are in flight or waiting at the same time.
const MESSAGES_OF_RANK: usize = 4;

/// Use of the processor after a turn.
pub(super) enum TurnEnd {
    /// The rank keeps its processor.
    Keeps,
    /// The processor becomes free.
    Leaves,
    /// The processor is free for another rank, but the rank also continues immediately.
    GoesOn,
}

/// A running replay.
pub(super) struct ContentionEngine<'a, O, T> {
    pub program: &'a Program,
    pub costs: &'a Costs,
    pub route_of: &'a [u16],
    pub observer: &'a mut O,
    /// Transport of messages to other nodes once they have their links and buses, if messages share the network.
    pub transit: &'a mut T,
    pub in_transit: InTransit,
    pub route_costs: Vec<RouteCosts>,
    pub ranks: Vec<ContendedRank<'a>>,
    /// `true` if any sender waits for its receiver.
    pub has_rendezvous: bool,
    /// Arrivals of messages, indexed by slot.
    pub arrivals: Slots<1>,
    pub handshakes: Handshakes<'a, 1>,
    /// Average number of ranks per slot, in units of 2^-32.
    pub ranks_per_slot: u64,
    /// Times at which the messages of the last sends leave their interfaces.
    pub leaving: LastSends<Time>,
    /// Slots of the last sends.
    pub sent: LastSends<Option<Slot>>,
    pub pending: Pending,
    pub processors: Processors,
    pub links: Links,
    pub messages: MessageStore,
    /// State of each collective, indexed by the number of the execution.
    pub collectives: Vec<CollectiveState>,
    pub placement: &'a Placement,
    /// Route of each route number.
    pub routes: Vec<Route>,
    pub scheduling: Scheduling,
    /// `None` if costs are constant.
    pub perturbation: Option<Box<Perturbation>>,
    pub waits: Waits,
    pub accesses: Accesses<'a>,
    /// Ranks whose requests for locks or to files have been served.
    pub ready: Vec<Rank>,
    /// `true` if messages on any route arrive after they have left the links. Prefetching depends on it.
    pub has_flights: bool,
}

impl<'a, O: Observer, T: Transit> ContentionEngine<'a, O, T> {
    pub(super) fn new(
        replay: &'a Replay<'_>,
        links: Links,
        observer: &'a mut O,
        transit: &'a mut T,
    ) -> Self {
        let Replay {
            program,
            placement,
            costs,
            route_of,
            ..
        } = replay;
        let ranks = program.streams();
        let mut pending = Pending::default();
        let numbers = RouteNumbers::new(placement);
        let routes: Vec<Route> = (0..costs.paths.len())
            .map(|number| numbers.route(number))
            .collect();
        let network = costs.network();
        let scheduler = &network.machine.scheduler;
        let processors = Processors::new(
            placement,
            ranks,
            priorities(scheduler, ranks),
            network.machine.processors,
        );
        let scheduling = Scheduling::new(scheduler, ranks, processors.nodes());
        let perturbation =
            Perturbation::is_needed(network).then(|| Box::new(Perturbation::new(costs, &routes)));
        let route_costs = route_costs(costs, &mut pending);
        let has_rendezvous = costs.has_rendezvous();
        ContentionEngine {
            has_flights: route_costs.iter().any(|costs| costs.has_latency),
            program,
            costs,
            route_of,
            observer,
            transit,
            in_transit: InTransit::new::<T>(program),
            route_costs,
            ranks: Rank::all(ranks)
                .map(|rank| ContendedRank::new(program.words(rank), program.first_slot(rank)))
                .collect(),
            has_rendezvous,
            arrivals: Slots::new(Slot(0)..Slot(program.messages())),
            handshakes: Handshakes::new::<T>(program, has_rendezvous, &[]),
            // Rounded up, so that the first slots of a rank are not mistaken for the last slots of the rank before.
            ranks_per_slot: ((ranks as u64) << 32).div_ceil(u64::from(program.messages().max(1))),
            leaving: LastSends::new(program, Time::ZERO, costs.has_send_queues()),
            sent: LastSends::new(program, None, has_rendezvous || costs.has_send_queues()),
            pending,
            processors,
            links,
            messages: MessageStore::with_capacity(
                (MESSAGES_OF_RANK * ranks).min(program.messages() as usize),
            ),
            collectives: vec![CollectiveState::default(); program.instances().len()],
            placement,
            routes,
            scheduling,
            perturbation,
            waits: Waits::default(),
            accesses: Accesses::new(program, placement, costs),
            ready: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Result<Outcome, SimulateError> {
        for rank in Rank::all(self.ranks.len()) {
            self.queue(rank, Place::Back);
        }
        self.dispatch();
        let is_large = self.ranks.len() >= MANY_RANKS;
        loop {
            if T::SHARED && self.carry()? {
                self.dispatch();
                continue;
            }
            let Some(event) = self.pending.pop() else {
                break;
            };
            if is_large {
                self.look_ahead();
            }
            let index = event.index();
            match event.kind() {
                EventKind::Turn => self.turn(Rank(index)),
                EventKind::IdleTurn => self.pending.push_due_now(event.after_idle_turn()),
                EventKind::Departs => self.launch(index),
                EventKind::Moved => self.moved(index),
                EventKind::Arrived => self.arrived(index),
                EventKind::Gathered => self.gathered(index),
            }
            self.dispatch();
        }
        if self
            .ranks
            .iter()
            .any(|state| state.phase != RankPhase::Ended)
        {
            return Err(self.explain_stop());
        }
        let waits = Waits {
            processors: self.waits.processors,
            preemptions: self.waits.preemptions,
            ..self.links.waits
        };
        let outcome = Outcome::new(
            self.program,
            self.ranks
                .iter()
                .map(|state| RankOutcome::new(state.end, state.compute, state.overhead)),
        );
        Ok(Outcome { waits, ..outcome })
    }

    /// Assigns free processors to ranks that wait for one.
    #[inline(always)]
    fn dispatch(&mut self) {
        while let Some(rank) = self.processors.next() {
            self.start_turn(rank);
        }
    }

    /// Queues a rank for a processor for its next instruction, or ends a rank without further instructions.
    #[inline(always)]
    pub(super) fn queue(&mut self, rank: Rank, place: Place) {
        let state = &mut self.ranks[rank];
        if state.phase == RankPhase::Begin && state.at as usize >= state.words.len() {
            state.end = self.pending.now();
            state.phase = RankPhase::Ended;
            self.observer.ended(rank, state.end);
            return self.enter_call(rank);
        }
        self.stop_polling(rank);
        let state = &mut self.ranks[rank];
        state.queued = self.pending.now();
        self.processors.queue(rank, place);
        if self.scheduling.is_used {
            self.scheduling.queued(rank, place);
            self.make_room(rank);
        }
    }

    /// Completes the current instruction of a rank.
    #[inline(always)]
    pub(super) fn advance(&mut self, rank: Rank, place: Place) {
        let state = &mut self.ranks[rank];
        state.at = state.next;
        state.phase = RankPhase::Begin;
        self.queue(rank, place);
    }

    /// Schedules the turn of a rank that has got a processor: after its computation, after its overhead, or immediately.
    #[inline(always)]
    fn start_turn(&mut self, rank: Rank) {
        let now = self.pending.now();
        let event = Event::turn(rank);
        let state = &mut self.ranks[rank];
        if now > state.queued {
            state.waited += now - state.queued;
            self.waits.processors += 1;
        }
        if self.scheduling.is_used {
            return self.start_scheduled_turn(rank);
        }
        let state = &mut self.ranks[rank];
        let Some(spent) = state.phase.spent() else {
            return self.start_instruction(rank);
        };
        state.phase = spent;
        let until = state.until + (now - state.queued);
        self.pending.put(state.lane, until, event);
    }

    #[inline(always)]
    fn start_instruction(&mut self, rank: Rank) {
        let state = &mut self.ranks[rank];
        if opcodes::computes(state.words, state.at as usize) == Some(true)
            && let Some((Op::Compute(time), next)) = opcodes::decode(state.words, state.at as usize)
        {
            state.at = next as u32;
            let takes = self.scaled(rank, time);
            return self.compute(rank, takes);
        }
        self.pending.push_due_now(Event::turn(rank));
    }

    #[inline(always)]
    fn compute(&mut self, rank: Rank, takes: Time) {
        let start = self.pending.now();
        self.ranks[rank].compute += takes;
        self.observer.computed(rank, start, start + takes);
        self.pending.at(start + takes, Event::turn(rank));
    }

    /// Duration of a computation on a rank's processor.
    #[inline(always)]
    pub(super) fn scaled(&mut self, rank: Rank, time: Time) -> Time {
        let mut speed = if self.costs.is_as_traced {
            1.0
        } else {
            self.costs.speeds[rank]
        };
        if let Some(perturbation) = &mut self.perturbation {
            speed = perturbation.speed(speed);
        }
        if speed == 1.0 { time } else { time / speed }
    }

    /// Starts a computation on an accelerator; the rank's processor is free for other ranks.
    fn accelerate(&mut self, rank: Rank, time: Time) -> TurnEnd {
        let speed = self.costs.accelerator_speeds[rank];
        self.ranks[rank].phase = RankPhase::Accelerated;
        self.compute(rank, time / speed);
        TurnEnd::Leaves
    }

    /// Continues a rank at its event. If the rank leaves its processor, another waiting rank gets it.
    #[inline(always)]
    fn turn(&mut self, rank: Rank) {
        if self.ranks[rank].phase >= RankPhase::Accelerated {
            return self.without_processor(rank);
        }
        if self.scheduling.is_used && !self.ends_turn(rank) {
            return;
        }
        self.processors.release(rank);
        loop {
            let end = self.step(rank);
            if let TurnEnd::Keeps = end {
                return;
            }
            if let Some(next) = self.processors.next_beside(rank) {
                self.start_turn(next);
            }
            if let TurnEnd::Leaves = end {
                return;
            }
        }
    }

    /// Continues a rank at the end of its time without a processor: after a computation on an accelerator, an access, or the
    /// departure of a message from its interface.
    #[inline(never)]
    fn without_processor(&mut self, rank: Rank) {
        match self.ranks[rank].phase {
            RankPhase::Asking => self.go_on_with_access(rank),
            RankPhase::Leaving => {
                self.leave_call(rank, self.pending.now());
                self.advance(rank, Place::Front);
            }
            _ => self.advance(rank, Place::Back),
        }
    }

    /// Executes instructions until one needs a turn of its own.
    #[inline(always)]
    fn step(&mut self, rank: Rank) -> TurnEnd {
        let words = self.ranks[rank].words;
        if self.ranks[rank].phase == RankPhase::Finishing {
            self.go_on(rank);
            if let Some(end) = self.keep_processor(rank) {
                return end;
            }
        }
        // Between two computations, other ranks get the processor.
        let mut place = Place::Back;
        loop {
            let at = self.ranks[rank].at as usize;
            let Some((op, next)) = opcodes::decode(words, at) else {
                // A rank stays forever at a damaged place of its stream.
                if at >= words.len() {
                    self.queue(rank, Place::Back);
                }
                return TurnEnd::Leaves;
            };
            self.ranks[rank].next = next as u32;
            let step = match op {
                Op::Compute(_) => {
                    self.queue(rank, place);
                    return TurnEnd::Leaves;
                }
                Op::Accelerator(time) => return self.accelerate(rank, time),
                Op::Send { class, slot } => self.send(rank, class, slot),
                Op::Recv => self.receive(rank, self.ranks[rank].next_slot),
                Op::Irecv if self.may_post_together() && opcodes::is_irecv(words, next) => {
                    return self.post_together(rank);
                }
                Op::Irecv => self.post(rank),
                Op::WaitRecv(own) => self.receive(rank, self.program.first_slot(rank) + own),
                Op::WaitSend(ago) => self.wait_send(rank, ago),
                Op::Collective { call, instance } => self.collective(rank, call, instance),
                Op::WaitCollective(instance) => self.wait_collective(rank, instance),
                Op::Event(event) => {
                    self.observer.marked(rank, event, self.pending.now());
                    Step::Skip
                }
                Op::Access(access) => self.access(rank, access),
                Op::Nothing => Step::Skip,
                Op::Ignored(_) => {
                    self.advance(rank, Place::Back);
                    return TurnEnd::Leaves;
                }
            };
            match step {
                Step::Done => {
                    self.go_on(rank);
                    if let Some(end) = self.keep_processor(rank) {
                        return end;
                    }
                    place = Place::Back;
                }
                Step::Spend => return self.start_next_turn(rank),
                Step::Wait => {
                    self.ranks[rank].phase = RankPhase::Waiting;
                    self.enter_call(rank);
                    return TurnEnd::Leaves;
                }
                Step::Asks(phase) => {
                    self.ranks[rank].phase = phase;
                    self.enter_call(rank);
                    return TurnEnd::Leaves;
                }
                Step::Skip => {
                    place = if matches!(op, Op::Nothing) {
                        Place::Front
                    } else {
                        Place::Back
                    };
                    self.go_on(rank);
                }
                Step::GoOn => {
                    self.go_on(rank);
                    return TurnEnd::GoesOn;
                }
            }
        }
    }

    #[inline(always)]
    fn go_on(&mut self, rank: Rank) {
        let state = &mut self.ranks[rank];
        state.at = state.next;
        state.phase = RankPhase::Begin;
    }

    /// Ends the turn of a rank that has completed a call. Returns `None` if the rank's next turn would be the very next
    /// event, so that the rank may simply continue.
    #[inline(always)]
    fn keep_processor(&mut self, rank: Rank) -> Option<TurnEnd> {
        let state = &self.ranks[rank];
        let Some(computes) = opcodes::computes(state.words, state.at as usize) else {
            self.queue(rank, Place::Front);
            return Some(TurnEnd::Leaves);
        };
        if !computes
            && !self.scheduling.is_used
            && self.processors.nobody_waits(rank)
            && self.pending.nothing_is_due()
        {
            return None;
        }
        Some(self.start_next_turn(rank))
    }

    /// Starts the next turn of a rank in the middle of a call or directly after one: on the processor that it has just
    /// released if the scheduler allows this, otherwise from the front of the queue.
    #[inline(always)]
    fn start_next_turn(&mut self, rank: Rank) -> TurnEnd {
        self.ranks[rank].queued = self.pending.now();
        self.scheduling.queued(rank, Place::Front);
        if self.scheduling.keeps_processor() && self.processors.keep(rank) {
            self.start_turn(rank);
            return TurnEnd::Keeps;
        }
        self.processors.queue(rank, Place::Front);
        TurnEnd::Leaves
    }

    /// Lets a rank spend processor time before it continues with its call. The caller records that time.
    #[inline(always)]
    pub(super) fn start_up(&mut self, rank: Rank, delay: Delay) -> Step {
        let now = self.pending.now();
        let state = &mut self.ranks[rank];
        state.phase = RankPhase::StartUp;
        state.until = now + delay.time;
        state.lane = delay.lane;
        state.spend = delay.time;
        Step::Spend
    }

    /// Starts all transfers and collectives that have everything they need.
    #[inline(always)]
    pub(super) fn start_granted(&mut self) {
        let mut taken = 0;
        while let Some(number) = self.links.next_granted(&mut taken) {
            self.start_transfer(number);
        }
    }

    /// Starts a transfer or a collective that has everything it needs.
    #[inline(always)]
    pub(super) fn start_transfer(&mut self, number: u32) {
        match self.messages[number].purpose {
            Purpose::Deliver => self.begin_transfer(number),
            Purpose::Part => {
                let end = self.pending.now() + self.messages.times(number).part.0;
                self.pending.at(end, EventKind::Moved.event(number));
            }
            Purpose::Transfer => self.begin_one_sided(number),
            Purpose::Collective => self.ask_next_site(number),
        }
    }

    fn explain_stop(&self) -> SimulateError {
        DeadlockReport {
            program: self.program,
            sent: &self.sent,
            ranks: self
                .ranks
                .iter()
                .map(|state| RankPosition {
                    at: state.at as usize,
                    next_slot: state.next_slot,
                    entered: state.phase == RankPhase::Waiting,
                    done: state.phase == RankPhase::Ended,
                })
                .collect(),
        }
        .explain()
    }
}
