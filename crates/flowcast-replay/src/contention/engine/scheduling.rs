//! Turns on a processor that are not simply first come, first served: slices, switches and preemption.
//!
//! A turn consists of a context switch (if that costs anything) and of one or more slices of processor time. Under
//! round robin a slice ends with the quantum; a rank that has lost its processor begins a new quantum, one that kept
//! it for a call goes on with the old one. Under preemptive priority a slice ends when a rank of a smaller number wants
//! the processor.

use super::Engine;
use crate::{
    contention::{events::Event, processors::Place, ranks::RankPhase},
    observer::Observer,
    transit::Transit,
};
use flowcast_model::machine::scheduler::{Policy, Scheduler};
use flowcast_trace::opcodes::{self, Op};
use flowcast_units::{Rank, Time};

/// What the scheduler knows about a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SchedulingShare {
    /// Processor time that the turn still needs, once that is known.
    rest: Option<Time>,
    /// How much of its quantum it has used.
    used: Time,
    /// Whether it has given its processor up since.
    lost: bool,
    switching: bool,
    /// Whether the slice belongs to a computation.
    computes: bool,
    slice_start: Time,
    /// When the slice ends.
    due: Time,
    running: bool,
}

const FRESH: SchedulingShare = SchedulingShare {
    rest: None,
    used: Time::ZERO,
    lost: true,
    switching: false,
    computes: false,
    slice_start: Time::ZERO,
    due: Time::ZERO,
    running: false,
};

/// The scheduler of all nodes.
#[derive(Debug, Clone)]
pub(in crate::contention) struct Scheduling {
    policy: Policy,
    quantum: Time,
    context_switch: Time,
    preemptive: bool,
    priorities: Vec<i32>,
    shares: Vec<SchedulingShare>,
    /// Ends of slices that were cut short: rank and time.
    cut: Vec<(Rank, Time)>,
    /// By node, if that matters: the ranks that run there.
    running: Vec<Vec<Rank>>,
}

/// What the end of a slice, or of a switch, means.
pub(in crate::contention) enum ProcessorSlice {
    /// The turn is done.
    Done,
    /// The rank needs a further slice.
    Cut,
    /// The rank has the processor now.
    Switched,
    /// Nothing: the slice was cut short before.
    Past,
}

impl Scheduling {
    /// `None` if turns are first come, first served, and cost nothing.
    pub(in crate::contention) fn new(
        scheduler: &Scheduler,
        ranks: usize,
        nodes: usize,
    ) -> Option<Scheduling> {
        let plain = scheduler.policy == Policy::Fifo && scheduler.context_switch == Time::ZERO;
        let preemptive = scheduler.policy == Policy::Priority && scheduler.preemptive;
        (!plain).then(|| Scheduling {
            policy: scheduler.policy,
            quantum: scheduler.quantum,
            context_switch: scheduler.context_switch,
            preemptive,
            priorities: priorities(scheduler, ranks),
            shares: vec![FRESH; ranks],
            cut: Vec::new(),
            running: vec![Vec::new(); if preemptive { nodes } else { 0 }],
        })
    }

    /// Whether a rank that goes on with a call keeps its processor without a look at the queue.
    pub(in crate::contention) fn keeps_processor(&self) -> bool {
        self.policy != Policy::Priority
    }

    /// A rank has been queued.
    pub(in crate::contention) fn queued(&mut self, rank: Rank, place: Place) {
        self.shares[rank].lost = place == Place::Back;
    }

    /// The rank that has to make room for this one, on a node without a free processor.
    fn victim(&self, rank: Rank, node: u32) -> Option<Rank> {
        let number = |rank: &Rank| self.priorities[*rank];
        let least_urgent = self.running[node as usize]
            .iter()
            .copied()
            .max_by_key(|running| (number(running), *running));
        least_urgent
            .filter(|running| number(running) > number(&rank) && !self.shares[*running].switching)
    }

    /// How long the next slice of a rank that still needs `rest` is.
    fn slice(&mut self, rank: Rank, rest: Time) -> Time {
        if self.policy != Policy::RoundRobin {
            return rest;
        }
        let fresh = self.context_switch > Time::ZERO;
        let share = &mut self.shares[rank];
        let slice = if share.lost || fresh || share.used == self.quantum {
            share.used = rest.min(self.quantum);
            share.used
        } else {
            let slice = rest.min(self.quantum - share.used);
            share.used += slice;
            slice
        };
        share.lost = true;
        slice
    }
}

/// The number of each rank.
pub(in crate::contention) fn priorities(scheduler: &Scheduler, ranks: usize) -> Vec<i32> {
    match scheduler.policy {
        Policy::Priority => (0..ranks)
            .map(|rank| scheduler.priorities.get(rank).copied().unwrap_or(0))
            .collect(),
        Policy::Fifo | Policy::RoundRobin => Vec::new(),
    }
}

impl<O: Observer, T: Transit> Engine<'_, O, T> {
    /// A rank has got a processor.
    #[cold]
    pub(in crate::contention) fn start_scheduled_turn(&mut self, rank: Rank) {
        let now = self.pending.now();
        let node = self.processors.home(rank);
        let scheduling = self.scheduling.as_mut().expect("turns are scheduled");
        if let Some(running) = scheduling.running.get_mut(node as usize) {
            running.push(rank);
        }
        let switch = scheduling.context_switch;
        let share = &mut scheduling.shares[rank];
        share.running = true;
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
        let scheduling = self.scheduling.as_ref().expect("turns are scheduled");
        let rest = match scheduling.shares[rank].rest {
            Some(rest) => rest,
            None => self.needs(rank),
        };
        let scheduling = self.scheduling.as_mut().expect("turns are scheduled");
        let slice = scheduling.slice(rank, rest);
        let share = &mut scheduling.shares[rank];
        share.rest = Some(rest - slice);
        share.slice_start = now;
        share.due = now + slice;
        self.pending.at(now + slice, Event::turn(rank));
    }

    /// Processor time that the turn needs in all.
    fn needs(&mut self, rank: Rank) -> Time {
        let state = &mut self.ranks[rank];
        let mut computes = false;
        let needs = match state.phase {
            RankPhase::StartUp => {
                state.phase = RankPhase::Started;
                state.spend
            }
            RankPhase::Finish => {
                state.phase = RankPhase::Finishing;
                state.spend
            }
            _ => match opcodes::decode(state.words, state.at as usize) {
                Some((Op::Compute(time), next)) => {
                    state.at = next as u32;
                    computes = true;
                    self.scaled(rank, time)
                }
                _ => Time::ZERO,
            },
        };
        let scheduling = self.scheduling.as_mut().expect("turns are scheduled");
        scheduling.shares[rank].computes = computes;
        needs
    }

    /// A slice, or a switch, of a rank has ended.
    #[cold]
    pub(in crate::contention) fn end_slice(&mut self, rank: Rank) -> ProcessorSlice {
        let now = self.pending.now();
        let scheduling = self.scheduling.as_mut().expect("turns are scheduled");
        if let Some(place) = scheduling.cut.iter().position(|cut| *cut == (rank, now)) {
            scheduling.cut.remove(place);
            return ProcessorSlice::Past;
        }
        let share = &mut scheduling.shares[rank];
        if share.switching {
            share.switching = false;
            self.start_slice(rank);
            return ProcessorSlice::Switched;
        }
        share.running = false;
        let node = self.processors.home(rank);
        if let Some(running) = scheduling.running.get_mut(node as usize) {
            running.retain(|other| *other != rank);
        }
        self.book_slice(rank);
        let scheduling = self.scheduling.as_mut().expect("turns are scheduled");
        let share = &mut scheduling.shares[rank];
        if share.rest > Some(Time::ZERO) {
            self.waits.preemptions += 1;
            return ProcessorSlice::Cut;
        }
        share.rest = None;
        ProcessorSlice::Done
    }

    fn book_slice(&mut self, rank: Rank) {
        let now = self.pending.now();
        let share = &self
            .scheduling
            .as_ref()
            .expect("turns are scheduled")
            .shares[rank];
        if share.computes {
            let start = share.slice_start;
            self.ranks[rank].compute += now - start;
            self.observer.computed(rank, start, now);
        }
    }

    /// A rank wants a processor: one that runs on its node may have to make room.
    #[cold]
    pub(in crate::contention) fn make_room(&mut self, rank: Rank) {
        let node = self.processors.home(rank);
        let Some(scheduling) = self
            .scheduling
            .as_mut()
            .filter(|scheduling| scheduling.preemptive)
        else {
            return;
        };
        if self.processors.has_free(node) {
            return;
        }
        let Some(victim) = scheduling.victim(rank, node) else {
            return;
        };
        scheduling.running[node as usize].retain(|other| *other != victim);
        let now = self.pending.now();
        let share = &mut scheduling.shares[victim];
        share.running = false;
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
