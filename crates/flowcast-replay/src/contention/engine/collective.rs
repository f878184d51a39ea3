//! Collectives: the ranks that have arrived or wait, and the start and the end of the operation.

use super::ContentionEngine;
use crate::{
    contention::{
        events::EventKind,
        messages::{ContendedMessage, Purpose},
        processors::Place,
        ranks::{ContendedRank, RankPhase, Step},
        route_costs::Delay,
    },
    observer::{ObservedCollective, Observer},
    routes::Route,
    transit::Transit,
};
use flowcast_program::{program::CollectiveMode, slot::Slot};
use flowcast_units::{Rank, Time};

/// A rank that has arrived, and its call.
#[derive(Debug, Clone, Copy, Default)]
struct CollectiveEntry {
    rank: Rank,
    call: u32,
}

/// One execution of a collective.
#[derive(Debug, Clone, Default)]
pub(crate) struct CollectiveState {
    entered: u32,
    /// Number of members whose part of a root-synchronous operation is complete.
    parts: u32,
    begun: bool,
    done: bool,
    /// The last rank to arrive.
    last: CollectiveEntry,
    /// The last rank to arrive among those that call themselves the root.
    root: Option<CollectiveEntry>,
    /// The arrival time and the rank that determine the end: the last rank to arrive, or the one whose part reached the root
    /// last.
    decided: (Time, Rank),
    /// Time at which `decided` was set.
    decided_at: Time,
    /// Waiting ranks, in the order of their arrival.
    waiting: Vec<Rank>,
}

impl CollectiveState {
    /// Sets `decided` to `by`, the arrival time and the rank of the latest progress. If several ranks make progress at the
    /// same time, the one that arrived last is stored.
    fn decide(&mut self, now: Time, by: (Time, Rank)) {
        if now > self.decided_at || by.0 >= self.decided.0 {
            self.decided = by;
            self.decided_at = now;
        }
    }

    /// The call whose sizes apply: the root's call, or without a root the call of the last rank to arrive.
    fn deciding(&self) -> CollectiveEntry {
        self.root.unwrap_or(self.last)
    }
}

impl<O: Observer, T: Transit> ContentionEngine<'_, O, T> {
    /// Executes a collective call.
    pub(crate) fn collective(&mut self, rank: Rank, call: u32, instance: u32) -> Step {
        let made = self.program.call(call);
        if self.ranks[rank].phase == RankPhase::Begin {
            let startup = match made.mode {
                CollectiveMode::Blocking => Time::ZERO,
                _ => self
                    .costs
                    .collective_startup(made.communicator, rank)
                    .whole_nanos(),
            };
            if made.mode != CollectiveMode::NonBlocking {
                self.enter_call(rank);
            }
            if let Some(step) = self.begin_call(rank, Delay::new(startup)) {
                return step;
            }
        }
        self.enter(rank, call, instance);
        let waits_for_own_part = made.mode == CollectiveMode::RootSynchronous && !made.is_root;
        if waits_for_own_part {
            // A rank's part travels to the root like a message without a start-up.
            let message = ContendedMessage::new(Slot(instance), rank, 0, Purpose::Part);
            let (route, times) = self.costs.to_root(self.placement, rank, made);
            self.send_beside(message, made.root.unwrap_or(rank), route, times);
        } else {
            self.collectives[instance as usize].parts += 1;
        }
        self.advance_collective(instance, made.communicator);
        if made.is_non_blocking() {
            self.leave(rank, instance);
            return Step::GoOn;
        }
        if !waits_for_own_part {
            return self.until_done(rank, instance);
        }
        Step::Wait
    }

    fn until_done(&mut self, rank: Rank, instance: u32) -> Step {
        let collective = &mut self.collectives[instance as usize];
        if collective.done {
            self.leave(rank, instance);
            return Step::Done;
        }
        collective.waiting.push(rank);
        Step::Wait
    }

    fn enter(&mut self, rank: Rank, call: u32, instance: u32) {
        let came = self.pending.now();
        let state = &mut self.ranks[rank];
        state.before = came;
        let entry = CollectiveEntry { rank, call };
        let collective = &mut self.collectives[instance as usize];
        collective.entered += 1;
        collective.last = entry;
        collective.decide(came, (came, rank));
        if self.program.call(call).is_root {
            collective.root = Some(entry);
        }
    }

    /// Sends a part of a root-synchronous collective or a one-sided transfer, with the given times on the links and in
    /// flight.
    pub(super) fn send_beside(
        &mut self,
        mut message: ContendedMessage,
        to: Rank,
        route: Route,
        times: (Time, Time),
    ) {
        self.links.route(&mut message, to, route);
        let number = self.messages.add(message);
        self.messages.times(number).part = times;
        self.hand_over(number);
    }

    /// Handles the arrival of a rank's part at the root.
    pub(crate) fn part_arrived(&mut self, rank: Rank, instance: u32) {
        let communicator = self.program.communicator_of(instance);
        let came = self.ranks[rank].before;
        let collective = &mut self.collectives[instance as usize];
        collective.parts += 1;
        collective.decide(self.pending.now(), (came, rank));
        self.advance_collective(instance, communicator);
        // The rank waited for its own part only, even if all other ranks waited for this part, too.
        self.leave_after(rank, instance, (came, rank));
        self.advance(rank, Place::Back);
    }

    /// Starts the operation once all members have arrived; ends a root-synchronous operation once all parts have reached the
    /// root.
    fn advance_collective(&mut self, instance: u32, communicator: u32) {
        let collective = &mut self.collectives[instance as usize];
        let members = self.program.communicator(communicator).members.len() as u32;
        if collective.entered < members || collective.begun {
            return;
        }
        let deciding = collective.deciding();
        let synchronous = self.program.call(deciding.call).mode == CollectiveMode::RootSynchronous;
        if synchronous && collective.parts < members {
            return;
        }
        collective.begun = true;
        // A rank and its progress stream meet without a network.
        if synchronous || self.costs.sites(communicator).next().is_none() {
            self.end_collective(instance);
        } else {
            let number = self.messages.add(ContendedMessage::new(
                Slot(instance),
                Rank(0),
                0,
                Purpose::Collective,
            ));
            self.messages[number].source = 0;
            self.ask_next_site(number);
            self.start_granted();
        }
    }

    /// Requests the buses of the next site of a collective, or starts the collective if it has the buses of all sites.
    pub(crate) fn ask_next_site(&mut self, number: u32) {
        let message = &mut self.messages[number];
        let communicator = self.program.instances()[message.slot];
        match self.costs.sites(communicator).nth(message.source as usize) {
            Some(site) => {
                message.source += 1;
                message.class = 0;
                self.links.request_all(&mut self.messages, number, site);
            }
            None => self.begin_collective(number),
        }
    }

    /// Starts a collective that has all buses; it takes the time of its cost.
    fn begin_collective(&mut self, number: u32) {
        let collective = &self.collectives[self.messages[number].slot];
        let CollectiveEntry { rank, call } = collective.deciding();
        let call = self.program.call(call);
        let takes = self
            .costs
            .collective(call.op, call.communicator, rank, call.send, call.recv);
        self.pending.at(
            self.pending.now() + takes,
            EventKind::Gathered.event(number),
        );
    }

    /// Ends a collective: messages that waited for its buses start, then the ranks continue.
    pub(crate) fn gathered(&mut self, number: u32) {
        let Slot(instance) = self.messages[number].slot;
        let costs = self.costs;
        for site in costs.sites(self.program.communicator_of(instance)) {
            self.links.release_all(&mut self.messages, site);
        }
        self.start_granted();
        self.messages.remove(number);
        self.end_collective(instance);
    }

    /// Wakes all waiting ranks; the rank whose call determined the sizes comes last.
    fn end_collective(&mut self, instance: u32) {
        let collective = &mut self.collectives[instance as usize];
        collective.done = true;
        let deciding = collective.deciding().rank;
        let mut waiting = std::mem::take(&mut collective.waiting);
        waiting.sort_by_key(|rank| *rank == deciding);
        for rank in waiting {
            self.leave(rank, instance);
            self.advance(rank, Place::Back);
        }
    }

    /// Executes a wait for a non-blocking collective. The wait has a start-up of its own.
    pub(crate) fn wait_collective(&mut self, rank: Rank, instance: u32) -> Step {
        if self.ranks[rank].phase == RankPhase::Begin {
            let communicator = self.program.communicator_of(instance);
            let startup = self.costs.collective_startup(communicator, rank);
            self.enter_call(rank);
            if let Some(step) = self.begin_call(rank, Delay::new(startup)) {
                return step;
            }
        }
        self.ranks[rank].before = self.pending.now();
        self.until_done(rank, instance)
    }

    /// Reports that a rank continues after a collective, either at the collective's end or without waiting for it.
    fn leave(&mut self, rank: Rank, instance: u32) {
        let collective = &self.collectives[instance as usize];
        let decided = if collective.done {
            collective.decided
        } else {
            (self.ranks[rank].before, rank)
        };
        self.leave_after(rank, instance, decided);
    }

    /// Reports that a rank continues after a collective whose end was determined by `last`, a time and a rank.
    fn leave_after(&mut self, rank: Rank, instance: u32, last: (Time, Rank)) {
        let ContendedRank {
            call,
            before: came,
            waited: processor,
            ..
        } = self.ranks[rank];
        let end = self.pending.now();
        let (last, last_rank) = last;
        self.observer.gathered(
            rank,
            ObservedCollective {
                instance,
                call,
                processor,
                came,
                last,
                last_rank,
                end,
            },
        );
        self.leave_call(rank, end);
    }
}
