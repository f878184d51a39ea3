//! Scheduling of processors other than first come, first served: slices, switches and preemption.
//!
//! A turn consists of a context switch (if that has a cost) and one or more slices of processor time. Under round robin, a
//! slice ends with the quantum. A rank that has lost its processor starts a new quantum; one that kept it for a call
//! continues with the old one. Under preemptive priority, a slice ends when a rank with a smaller number requests the
//! processor.

use super::ContentionEngine;
use crate::{
    contention::{events::Event, processors::Place},
    observer::Observer,
    transit::Transit,
};
use flowcast_network::machine::scheduler::{Policy, Scheduler};
use flowcast_program::opcodes::{self, Op};
use flowcast_units::{Rank, Time};

/// The scheduler's state of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct SchedulingShare {
    /// Processor time that the turn still needs, if it is known yet.
    rest: Option<Time>,
    /// Used part of its quantum.
    used: Time,
    /// `true` if it has kept its processor since its last slice.
    kept: bool,
    switching: bool,
    /// `true` if the slice belongs to a computation.
    computes: bool,
    slice_start: Time,
    /// End of the slice.
    due: Time,
}

/// The scheduler of all nodes.
#[derive(Debug, Clone)]
pub(crate) struct Scheduling {
    /// `true` unless turns are first come, first served, and switches are free.
    pub is_used: bool,
    policy: Policy,
    quantum: Time,
    context_switch: Time,
    priorities: Vec<i32>,
    /// Scheduler's state of each rank, indexed by rank; empty if scheduling is not used.
    shares: Vec<SchedulingShare>,
    /// Slices that were cut short: the rank, and the original end.
    cut: Vec<(Rank, Time)>,
    /// Running ranks of each node, indexed by node, if turns can be preempted; otherwise empty.
    running: Vec<Vec<Rank>>,
}

impl Scheduling {
    /// The scheduler before anything runs.
    pub(crate) fn new(scheduler: &Scheduler, ranks: usize, nodes: usize) -> Scheduling {
        let is_used = scheduler.policy != Policy::Fifo || scheduler.context_switch > Time::ZERO;
        let preemptive = scheduler.policy == Policy::Priority && scheduler.preemptive;
        Scheduling {
            is_used,
            policy: scheduler.policy,
            quantum: scheduler.quantum,
            context_switch: scheduler.context_switch,
            priorities: priorities(scheduler, ranks),
            shares: vec![SchedulingShare::default(); if is_used { ranks } else { 0 }],
            cut: Vec::new(),
            running: vec![Vec::new(); if preemptive { nodes } else { 0 }],
        }
    }

    /// `true` if a rank that continues with a call keeps its processor even if other ranks are queued.
    pub(crate) fn keeps_processor(&self) -> bool {
        self.policy != Policy::Priority
    }

    /// Records that a rank has been queued.
    #[inline(always)]
    pub(crate) fn queued(&mut self, rank: Rank, place: Place) {
        if let Some(share) = self.shares.get_mut(rank.index()) {
            share.kept = place == Place::Front;
        }
    }

    /// The running rank that has to give up its processor for `rank`, on a node without a free processor.
    fn victim(&self, rank: Rank, node: u32) -> Option<Rank> {
        let number = |rank: &Rank| self.priorities[*rank];
        let running = self.running.get(node as usize)?;
        let least_urgent = running
            .iter()
            .copied()
            .max_by_key(|running| (number(running), *running));
        least_urgent
            .filter(|running| number(running) > number(&rank) && !self.shares[*running].switching)
    }

    /// Duration of the next slice of a rank that still needs `rest`.
    fn slice(&mut self, rank: Rank, rest: Time) -> Time {
        if self.policy != Policy::RoundRobin {
            return rest;
        }
        let fresh = self.context_switch > Time::ZERO;
        let share = &mut self.shares[rank];
        if !share.kept || fresh || share.used == self.quantum {
            share.used = Time::ZERO;
        }
        let slice = rest.min(self.quantum - share.used);
        share.used += slice;
        share.kept = false;
        slice
    }
}

/// Priority number of each rank; empty without priorities.
pub(crate) fn priorities(scheduler: &Scheduler, ranks: usize) -> Vec<i32> {
    match scheduler.policy {
        Policy::Priority => (0..ranks)
            .map(|rank| scheduler.priorities.get(rank).copied().unwrap_or(0))
            .collect(),
        Policy::Fifo | Policy::RoundRobin => Vec::new(),
    }
}

impl<O: Observer, T: Transit> ContentionEngine<'_, O, T> {
    /// Starts the switch to a rank that has got a processor, or its slice if switches are free.
    #[cold]
    pub(crate) fn start_scheduled_turn(&mut self, rank: Rank) {
        let now = self.pending.now();
        let node = self.processors.home(rank);
        let scheduling = &mut self.scheduling;
        if let Some(running) = scheduling.running.get_mut(node as usize) {
            running.push(rank);
        }
        let switch = scheduling.context_switch;
        let share = &mut scheduling.shares[rank];
        if switch == Time::ZERO {
            return self.start_slice(rank);
        }
        share.switching = true;
        share.due = now + switch;
        self.ranks[rank].waited += switch;
        self.pending.at(now + switch, Event::turn(rank));
    }

    fn start_slice(&mut self, rank: Rank) {
        let now = self.pending.now();
        let rest = match self.scheduling.shares[rank].rest {
            Some(rest) => rest,
            None => self.needs(rank),
        };
        let slice = self.scheduling.slice(rank, rest);
        let share = &mut self.scheduling.shares[rank];
        share.rest = Some(rest - slice);
        share.slice_start = now;
        share.due = now + slice;
        self.pending.at(now + slice, Event::turn(rank));
    }

    /// Total processor time that the turn needs.
    fn needs(&mut self, rank: Rank) -> Time {
        let state = &mut self.ranks[rank];
        let computes = &mut self.scheduling.shares[rank].computes;
        *computes = false;
        if let Some(spent) = state.phase.spent() {
            state.phase = spent;
            return state.spend;
        }
        match opcodes::decode(state.words, state.at as usize) {
            Some((Op::Compute(time), next)) => {
                state.at = next as u32;
                *computes = true;
                self.scaled(rank, time)
            }
            _ => Time::ZERO,
        }
    }

    /// Ends a slice of a rank, or the switch to it, unless the slice was cut short before. Returns `true` if the rank
    /// continues.
    #[cold]
    pub(crate) fn ends_turn(&mut self, rank: Rank) -> bool {
        let now = self.pending.now();
        let scheduling = &mut self.scheduling;
        if let Some(place) = scheduling.cut.iter().position(|cut| *cut == (rank, now)) {
            scheduling.cut.remove(place);
            return false;
        }
        let share = &mut scheduling.shares[rank];
        if share.switching {
            share.switching = false;
            self.start_slice(rank);
            return false;
        }
        let node = self.processors.home(rank);
        if let Some(running) = scheduling.running.get_mut(node as usize) {
            running.retain(|other| *other != rank);
        }
        self.book_slice(rank);
        let share = &mut self.scheduling.shares[rank];
        if share.rest <= Some(Time::ZERO) {
            share.rest = None;
            return true;
        }
        self.waits.preemptions += 1;
        self.processors.release(rank);
        // Its computation may be its last instruction: it is queued even without a further instruction.
        self.ranks[rank].queued = now;
        self.processors.queue(rank, Place::Back);
        if let Some(next) = self.processors.next_beside(rank) {
            self.start_turn(next);
        }
        false
    }

    fn book_slice(&mut self, rank: Rank) {
        let now = self.pending.now();
        let share = &self.scheduling.shares[rank];
        if share.computes {
            let start = share.slice_start;
            self.ranks[rank].compute += now - start;
            self.observer.computed(rank, start, now);
        }
    }

    /// Preempts a less urgent rank of the same node for a rank that requests a processor, if no processor is free.
    #[cold]
    pub(crate) fn make_room(&mut self, rank: Rank) {
        let node = self.processors.home(rank);
        if self.processors.has_free(node) {
            return;
        }
        let scheduling = &mut self.scheduling;
        let Some(victim) = scheduling.victim(rank, node) else {
            return;
        };
        scheduling.running[node as usize].retain(|other| *other != victim);
        let now = self.pending.now();
        let share = &mut scheduling.shares[victim];
        let due = share.due;
        share.rest = Some(due - now + share.rest.unwrap_or_default());
        scheduling.cut.push((victim, due));
        self.waits.preemptions += 1;
        self.book_slice(victim);
        self.processors.release(victim);
        self.ranks[victim].queued = now;
        self.processors.queue(victim, Place::Front);
    }
}
