//! Replay of a program without contention: a walk over the ranks' streams without an event queue.
//!
//! If messages do not compete for links, the history of a rank depends only on its own past and on the arrival times of the
//! messages that it receives. Each rank therefore runs as far as it can. When it needs a message that has not been sent, the
//! sender runs, and its send wakes the receiver. The order in which ranks run cannot change a time. The result equals the
//! result of an event-driven simulation, but the streams are read only once.

mod accesses;
mod blocks;
mod collectives;
mod folded;
mod grid;
mod jump;
mod lanes;
mod rank_state;
mod rendezvous;
mod replay;
mod ring;
mod sends;
mod slots;

use self::{
    collectives::Collectives,
    lanes::{LanePath, Times, later},
};
pub use self::{
    folded::{FoldedOutcome, FoldedReplay},
    replay::Replay,
};
pub(super) use self::{
    lanes::LaneCosts,
    rank_state::RankState,
    rendezvous::Handshakes,
    slots::{Known, Slots, awaited_sends},
};
use super::{
    SimulateError,
    accesses::{Accesses, carry_out},
    deadlock_report::{DeadlockReport, RankPosition},
    last_sends::LastSends,
    observer::{Observer, ReceivedMessage},
    placement::Placement,
    prefetch::{prefetch, prefetch_at},
    transit::{Delivery, Departure, Progress, Transit},
};
use flowcast_program::{
    opcodes::{self, Op},
    program::Program,
    slot::Slot,
};
use flowcast_units::{Rank, Time};
use std::ops::Range;

/// Prefetch distance in instruction words, ahead of the rank's current instruction: about one iteration of the program. The
/// rank needs these words when it next runs.
const WORDS_AHEAD: u32 = 24;

/// Prefetch distance in ranks: the instructions of a rank are prefetched this many ranks before it runs, its state twice as
/// many.
const RANKS_AHEAD: usize = 4;

/// Number of ranks whose state, next instructions and messages in flight fit into a 1 MiB cache.
const RANKS_IN_CACHE: usize = 1024;

/// Input of a walk: a program, and its costs on networks that differ only in their parameters.
pub(super) struct Walk<'a, const W: usize> {
    pub program: &'a Program,
    pub placement: &'a Placement,
    pub costs: &'a LaneCosts<'a, W>,
    /// Route number of each message, indexed by slot; empty if all messages take the same route.
    pub route_of: &'a [u16],
    /// `true` if the sender ever waits for its release, indexed by slot; empty if that is not known.
    pub awaited: &'a [bool],
}

impl<'a, const W: usize> Walk<'a, W> {
    /// Walks to the end; returns the final states of the ranks.
    pub(crate) fn run<O: Observer, T: Transit>(
        &'a self,
        observer: &'a mut O,
        transit: &'a mut T,
    ) -> Result<Vec<RankState<'a, W>>, SimulateError> {
        self.run_from(
            self.beginning(&(0..self.program.streams() as u32)),
            observer,
            transit,
        )
    }

    /// Walks to the end from given states of the ranks; returns their final states.
    pub(crate) fn run_from<O: Observer, T: Transit>(
        &'a self,
        states: Vec<RankState<'a, W>>,
        observer: &'a mut O,
        transit: &'a mut T,
    ) -> Result<Vec<RankState<'a, W>>, SimulateError> {
        let ranks = 0..self.program.streams() as u32;
        match (
            self.costs.networks[0].has_rendezvous(),
            self.route_of.is_empty(),
        ) {
            (false, true) => {
                WalkEngine::<W, O, T, false, false>::new(self, ranks, observer, transit).run(states)
            }
            (false, false) => {
                WalkEngine::<W, O, T, false, true>::new(self, ranks, observer, transit).run(states)
            }
            (true, true) => {
                WalkEngine::<W, O, T, true, false>::new(self, ranks, observer, transit).run(states)
            }
            (true, false) => {
                WalkEngine::<W, O, T, true, true>::new(self, ranks, observer, transit).run(states)
            }
        }
    }

    /// Initial states of the ranks.
    fn beginning(&self, ranks: &Range<u32>) -> Vec<RankState<'a, W>> {
        ranks
            .clone()
            .map(|rank| RankState::new(self.program, Rank(rank)))
            .collect()
    }

    /// Slots into which a range of ranks receives.
    fn slots(&self, ranks: &Range<u32>) -> Range<Slot> {
        let first = |rank: u32| match (rank as usize) < self.program.streams() {
            true => self.program.first_slot(Rank(rank)),
            false => Slot(self.program.messages()),
        };
        first(ranks.start)..first(ranks.end)
    }
}

struct WalkEngine<'a, const W: usize, O, T, const RENDEZVOUS: bool, const MANY_ROUTES: bool> {
    program: &'a Program,
    placement: &'a Placement,
    costs: &'a LaneCosts<'a, W>,
    route_of: &'a [u16],
    observer: &'a mut O,
    transit: &'a mut T,
    /// Costs of the only route, if there is only one.
    path: &'a LanePath<W>,
    /// Ranks that it follows.
    ranks: Range<u32>,
    ready: Vec<Rank>,
    /// Arrival times of messages.
    arrivals: Slots<W>,
    handshakes: Handshakes<'a, W>,
    /// Times at which the messages of the last sends leave their interfaces.
    leaving: LastSends<Times<W>>,
    /// Slots of the last sends.
    sent: LastSends<Option<Slot>>,
    collectives: Collectives<'a, W>,
    accesses: Accesses<'a>,
}

impl<'a, const W: usize, O: Observer, T: Transit, const RENDEZVOUS: bool, const MANY_ROUTES: bool>
    WalkEngine<'a, W, O, T, RENDEZVOUS, MANY_ROUTES>
{
    fn new(
        walk: &'a Walk<'a, W>,
        followed: Range<u32>,
        observer: &'a mut O,
        transit: &'a mut T,
    ) -> Self {
        let Walk { program, costs, .. } = *walk;
        WalkEngine {
            program,
            placement: walk.placement,
            costs,
            route_of: walk.route_of,
            observer,
            transit,
            path: &costs.paths[0],
            ready: followed.clone().map(Rank).rev().collect(),
            arrivals: Slots::new(walk.slots(&followed)),
            ranks: followed,
            handshakes: Handshakes::new::<T>(program, RENDEZVOUS, walk.awaited),
            leaving: LastSends::new(program, [Time::ZERO; W], costs.interfaces.have_queues),
            sent: LastSends::new(
                program,
                None,
                RENDEZVOUS || O::WATCHES && costs.interfaces.have_queues,
            ),
            collectives: Collectives::new(program, costs),
            accesses: Accesses::new(program, walk.placement, costs.networks[0]),
        }
    }

    fn run(
        mut self,
        states: Vec<RankState<'a, W>>,
    ) -> Result<Vec<RankState<'a, W>>, SimulateError> {
        let ranks = self.walk(states)?;
        if ranks.iter().any(|state| !state.done) {
            return Err(self.explain_stop(&ranks));
        }
        Ok(ranks)
    }

    /// Follows the ranks until none can continue.
    fn walk(
        &mut self,
        mut ranks: Vec<RankState<'a, W>>,
    ) -> Result<Vec<RankState<'a, W>>, SimulateError> {
        let by_rounds = self.goes_by_rounds();
        let mut round = Vec::new();
        loop {
            if by_rounds {
                self.follow_rounds(&mut ranks, &mut round)
            } else {
                self.follow_woken(&mut ranks)
            }
            if T::SHARED
                && let Some(progress) = self.transit.deliver(self.accesses.requests.first())?
            {
                self.happen(progress);
                while by_rounds && let Some(progress) = self.transit.deliver_more() {
                    self.happen(progress);
                }
            } else if !self
                .accesses
                .requests
                .serve(self.costs.networks[0].file_system(), &mut self.ready)
            {
                return Ok(ranks);
            }
        }
    }

    /// `true` if ranks are followed round by round. This requires that nothing depends on their order, and that all of them
    /// fit into the caches from one round to the next.
    fn goes_by_rounds(&self) -> bool {
        let is_unseen = !O::WATCHES && !T::IS_ORDERED && self.program.accesses().is_empty();
        W == 1 && is_unseen && self.ranks.len() <= RANKS_IN_CACHE
    }

    /// Follows the ranks that are ready, and those that they wake, until none is left. The rank that was woken last comes
    /// next.
    fn follow_woken(&mut self, ranks: &mut [RankState<'a, W>]) {
        while let Some(rank) = self.ready.pop() {
            self.advance(rank, &mut ranks[(rank.0 - self.ranks.start) as usize]);
        }
    }

    /// Follows these ranks round by round. When a rank's turn comes again, most messages that it waits for have been sent.
    /// It is therefore followed about once instead of stopping at each message. The order within a round is known, so the
    /// next ranks are prefetched.
    fn follow_rounds(&mut self, ranks: &mut [RankState<'a, W>], round: &mut Vec<Rank>) {
        let first = self.ranks.start;
        let place = |rank: Rank| (rank.0 - first) as usize;
        while !self.ready.is_empty() {
            std::mem::swap(&mut self.ready, round);
            for (index, rank) in round.iter().enumerate() {
                if let Some(later) = round.get(index + 2 * RANKS_AHEAD) {
                    prefetch(&ranks[place(*later)]);
                }
                if let Some(soon) = round.get(index + RANKS_AHEAD) {
                    let RankState { words, at, .. } = ranks[place(*soon)];
                    prefetch_at(words, at as u32);
                }
                self.advance(*rank, &mut ranks[place(*rank)]);
            }
            round.clear();
        }
    }

    /// Runs a rank until it waits or ends.
    fn advance(&mut self, rank: Rank, state: &mut RankState<'a, W>) {
        if T::HANDSHAKES {
            self.transit.go_on(rank);
        }
        while self.follow(rank, state).is_some() && self.follow_rare(rank, state).is_some() {}
        if T::HANDSHAKES {
            self.transit.wait(rank, state.time[0]);
        }
    }

    /// Follows the instructions of a rank up to a rare one; `None` if the rank waits or ends before that.
    #[inline(never)]
    fn follow(&mut self, rank: Rank, state: &mut RankState<'a, W>) -> Option<()> {
        if W > 1 {
            return self.follow_common(rank, state);
        }
        // A value whose address is taken lives in memory, so each instruction would wait for the store of the one before. No
        // function gets the address of this copy, so it stays in registers.
        let mut own = *state;
        prefetch_at(own.words, (own.at as u32).saturating_add(WORDS_AHEAD));
        let followed = self.follow_common(rank, &mut own);
        *state = own;
        followed
    }

    #[inline(always)]
    fn follow_common(&mut self, rank: Rank, state: &mut RankState<'a, W>) -> Option<()> {
        while let Some((op, mut next)) = opcodes::decode(state.words, state.at) {
            match op {
                Op::Compute(time) => match &self.costs.speeds {
                    None => self.compute(rank, state, |_| time),
                    Some(speeds) => {
                        let (grid, speeds) = (self.costs.grid, &speeds[rank]);
                        // A division by 1 changes nothing and needs no special case here.
                        self.compute(rank, state, |lane| grid.round(time / speeds[lane]))
                    }
                },
                Op::Send { class, slot } => {
                    let send = self.send_costs(class, slot);
                    if RENDEZVOUS && (send.cost.rendezvous || state.entered) {
                        return Some(());
                    }
                    self.send(rank, state, &send);
                }
                Op::Recv if !RENDEZVOUS => {
                    self.receive(rank, state, state.next_slot)?;
                    state.next_slot += 1;
                }
                Op::Irecv if !RENDEZVOUS => {
                    self.observer.posted(state.next_slot, state.time[0]);
                    state.next_slot += 1;
                    // Receives are usually posted several at a time.
                    while opcodes::is_irecv(state.words, next) {
                        self.observer.posted(state.next_slot, state.time[0]);
                        state.next_slot += 1;
                        next += 1;
                    }
                }
                Op::WaitRecv(own) => self.receive(rank, state, state.first_slot + own)?,
                Op::WaitSend(ago) if !RENDEZVOUS => self.until_left(rank, state, ago),
                Op::Event(event) => self.observer.marked(rank, event, state.time[0]),
                Op::Nothing | Op::Ignored(_) => {}
                _ => return Some(()),
            }
            state.at = next;
        }
        state.done = state.at == state.words.len();
        None
    }

    /// Follows the instructions that [`WalkEngine::follow`] leaves out. Several usually come in a row.
    #[inline(never)]
    fn follow_rare(&mut self, rank: Rank, state: &mut RankState<'a, W>) -> Option<()> {
        while let Some((op, next)) = opcodes::decode(state.words, state.at) {
            match op {
                Op::Send { class, slot } if RENDEZVOUS => {
                    let send = self.send_costs(class, slot);
                    if !(state.entered || send.cost.rendezvous) {
                        break;
                    }
                    self.send_rendezvous(rank, state, &send)?;
                }
                Op::Recv if RENDEZVOUS => self.post_and_receive(rank, state)?,
                Op::Irecv if RENDEZVOUS => {
                    self.observer.posted(state.next_slot, state.time[0]);
                    self.post(state.next_slot, &state.time, state.polled);
                    state.next_slot += 1;
                }
                Op::WaitSend(ago) if RENDEZVOUS => self.wait_send(rank, state, ago)?,
                Op::Collective { call, instance } => {
                    self.collective(rank, state, call, instance)?
                }
                Op::WaitCollective(instance) => self.wait_collective(rank, state, instance)?,
                Op::Accelerator(time) => {
                    let LaneCosts { grid, networks, .. } = self.costs;
                    self.compute(rank, state, |lane| {
                        grid.round(time / networks[lane].accelerator_speeds[rank])
                    });
                }
                // The order in which accesses are served depends on times, so they need a single network.
                Op::Access(index) if W == 1 => carry_out(self, rank, state, index)?,
                Op::Access(_) => {}
                _ => break,
            }
            state.at = next;
        }
        Some(())
    }

    #[inline(always)]
    fn compute(&mut self, rank: Rank, state: &mut RankState<'a, W>, takes: impl Fn(usize) -> Time) {
        let start = state.time[0];
        for lane in 0..W {
            let takes = takes(lane);
            state.time[lane] += takes;
            state.compute[lane] += takes;
        }
        self.observer.computed(rank, start, state.time[0]);
    }

    /// Route number of a message.
    #[inline(always)]
    fn route_number(&self, slot: Slot) -> usize {
        if MANY_ROUTES {
            usize::from(self.route_of[slot])
        } else {
            0
        }
    }

    #[inline(always)]
    fn path(&self, slot: Slot) -> &'a LanePath<W> {
        if MANY_ROUTES {
            &self.costs.paths[self.route_number(slot)]
        } else {
            self.path
        }
    }

    /// Records the arrival time of a slot's message; a rank that waits for it becomes ready.
    #[inline(always)]
    fn fill(&mut self, slot: Slot, arrival: impl Fn(usize) -> Time) {
        if let Some(rank) = self.arrivals.fill(slot, arrival) {
            self.ready.push(Rank(rank));
        }
    }

    /// Returns the departure of a message into the shared network, with its size and costs.
    fn departure(&self, slot: Slot, class: u32, start: Time) -> Departure {
        let path = &self.costs.networks[0].paths[self.route_number(slot)];
        let cost = path.classes[class as usize];
        Departure {
            slot,
            start,
            size: self.program.class(class).size,
            cost,
            rts: None,
            latency: path.latency + cost.added_latency,
            ends: None,
        }
    }

    /// Completes a posted receive, or a wait for one.
    #[inline(always)]
    fn receive(&mut self, rank: Rank, state: &mut RankState<'a, W>, slot: Slot) -> Option<()> {
        let path = self.path(slot);
        let Known::Time(known) = self.arrivals.look(slot) else {
            self.arrivals.wait(slot, rank.0);
            return None;
        };
        let arrival = self.arrivals.take(slot, known);
        let after = if MANY_ROUTES {
            self.costs.received_after(path, slot)
        } else {
            &path.recv_after
        };
        let call = state.time[0];
        let before = call + path.recv_before[0];
        let taken = later(arrival(0), before);
        for (lane, after) in after.iter().copied().enumerate() {
            let before = state.time[lane] + path.recv_before[lane];
            state.time[lane] = later(arrival(lane), before) + after;
        }
        self.observer.received(
            rank,
            slot,
            ReceivedMessage {
                call,
                processor: Time::ZERO,
                before,
                taken,
                end: state.time[0],
            },
        );
        state.overhead += path.recv_before[0] + after[0];
        if RENDEZVOUS {
            state.polled = state.time[0];
        }
        Some(())
    }

    /// Handles an event of a message in the network.
    fn happen(&mut self, progress: Progress) {
        match progress {
            Progress::Held { slot, since } => self.let_go(slot, since),
            Progress::Met(departure) => self.meet(departure),
            Progress::Arrived(delivery) => self.arrive(delivery),
        }
    }

    /// Handles the arrival of a message or one-sided transfer that shared the network.
    fn arrive(&mut self, delivery: Delivery) {
        let Delivery {
            slot,
            start,
            arrival,
            left,
        } = delivery;
        if let Some(number) = slot.0.checked_sub(self.program.messages()) {
            let transfers = &mut self.accesses.transfers;
            return self.ready.extend(transfers.end(number, start, arrival));
        }
        self.observer.moved(slot, start, arrival);
        self.fill(slot, |_| arrival);
        self.let_go(slot, left);
    }

    /// `true` if the message of a slot goes to another node: messages inside a node do not use the network.
    #[inline(always)]
    fn is_between_nodes(&self, slot: Slot) -> bool {
        !MANY_ROUTES || self.route_of[slot].is_multiple_of(2)
    }

    fn explain_stop(&self, ranks: &[RankState<'a, W>]) -> SimulateError {
        DeadlockReport {
            program: self.program,
            sent: &self.sent,
            ranks: ranks
                .iter()
                .map(|state| RankPosition {
                    at: state.at,
                    next_slot: state.next_slot,
                    entered: state.entered,
                    done: state.done,
                })
                .collect(),
        }
        .explain()
    }
}
