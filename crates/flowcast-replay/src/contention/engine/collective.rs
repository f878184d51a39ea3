//! Collectives: who has come, who waits, and when the operation begins and ends.

use super::ContentionEngine;
use crate::{
    contention::{
        events::EventKind,
        messages::{ContendedMessage, Purpose},
        processors::Place,
        ranks::{ContendedRank, RankPhase, Step},
        route_costs::Delay,
    },
    observer::{Gathered, Observer},
    routes::Route,
    transit::Transit,
};
use flowcast_program::{program::CollectiveMode, slot::Slot};
use flowcast_units::{Rank, Time};

/// A rank that has come, and its call.
#[derive(Debug, Clone, Copy, Default)]
struct CollectiveEntry {
    rank: Rank,
    call: u32,
}

/// One execution of a collective.
#[derive(Debug, Clone, Default)]
pub(crate) struct CollectiveState {
    entered: u32,
    /// Members whose part of a root-synchronous operation is done.
    parts: u32,
    begun: bool,
    done: bool,
    /// The last to come.
    last: CollectiveEntry,
    /// The last to come among those that call themselves the root.
    root: Option<CollectiveEntry>,
    /// Who decided the end and when that rank came: the last to come, or the one whose part was last at the root.
    decided: (Time, Rank),
    /// When that was decided.
    decided_at: Time,
    /// The ranks that wait, in the order of their coming.
    waiting: Vec<Rank>,
}

impl CollectiveState {
    /// A rank that came at `by.0` brings the end nearer now; of several at the same time the last to have come counts.
    fn decide(&mut self, now: Time, by: (Time, Rank)) {
        if now > self.decided_at || by.0 >= self.decided.0 {
            self.decided = by;
            self.decided_at = now;
        }
    }

    /// The call whose sizes count: that of the root, without one that of the last to come.
    fn deciding(&self) -> CollectiveEntry {
        self.root.unwrap_or(self.last)
    }
}

impl<O: Observer, T: Transit> ContentionEngine<'_, O, T> {
    /// A collective call.
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
            // The part of a rank goes to the root like a message that needs no start-up.
            let message = ContendedMessage::new(Slot(instance), rank, 0, Purpose::Part);
            let (route, times) = self.costs.to_root(self.placement, rank, made);
            self.send_beside(message, made.root.unwrap_or(rank), route, times);
        } else {
            self.collectives[instance as usize].parts += 1;
        }
        self.advance_collective(instance, made.communicator);
        if made.mode == CollectiveMode::NonBlocking {
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

    /// Sends what is no ordinary message and so long on the links and in flight.
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

    /// The part of a rank is with the root.
    pub(crate) fn part_arrived(&mut self, rank: Rank, instance: u32) {
        let communicator = self.program.communicator_of(instance);
        let came = self.ranks[rank].before;
        let collective = &mut self.collectives[instance as usize];
        collective.parts += 1;
        collective.decide(self.pending.now(), (came, rank));
        self.advance_collective(instance, communicator);
        // It waited for its own part only, even if that was what all were waiting for.
        self.leave_after(rank, instance, (came, rank));
        self.advance(rank, Place::Back);
    }

    /// Begins the operation once all have come; ends a root-synchronous one once all parts are with the root.
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

    /// A collective asks for the buses of the next of its sites, or has all and begins.
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

    /// A collective has all buses and takes its time.
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

    /// A collective is done: messages that waited for its buses start, then the ranks go on.
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

    /// Wakes all that wait, the one whose call decided last.
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

    /// A wait for a non-blocking collective, which costs a start-up of its own.
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

    /// A rank goes on from a collective, which it left behind without waiting or waited for to the end.
    fn leave(&mut self, rank: Rank, instance: u32) {
        let collective = &self.collectives[instance as usize];
        let decided = if collective.done {
            collective.decided
        } else {
            (self.ranks[rank].before, rank)
        };
        self.leave_after(rank, instance, decided);
    }

    /// A rank goes on from a collective whose end `last`, a time and a rank, decided.
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
            Gathered {
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
