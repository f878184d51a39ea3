//! Collectives in a walk: the ranks that have arrived, and the end of each operation. The last rank to arrive, whose bytes
//! determine the cost, may differ between networks.

use super::{
    RankState, WalkEngine,
    lanes::{CollectiveCosts, LaneCosts, Times, later, plus},
};
use crate::{
    observer::{ObservedCollective, Observer},
    slab::Slab,
    transit::Transit,
};
use flowcast_program::program::{CollectiveMode, Program};
use flowcast_units::{Rank, Time};
use std::array::from_fn;

/// A rank's arrival at a collective.
pub(super) struct Entry<const W: usize> {
    /// The arriving rank.
    pub rank: Rank,
    /// Index of its call among those of the program.
    pub call: u32,
    /// End of its start-up, on each network.
    pub came: Times<W>,
    /// End of its own part of a root-synchronous operation.
    pub own_end: Times<W>,
}

/// The last rank to arrive; among equal times, the highest rank.
#[derive(Clone, Copy)]
struct Last<const W: usize> {
    came: Times<W>,
    rank: [Rank; W],
    call: [u32; W],
}

/// One execution of a collective in progress.
#[derive(Clone, Copy)]
struct Execution<const W: usize> {
    last: Last<W>,
    /// The last rank to arrive among those that call themselves the root.
    root: Last<W>,
    has_root: bool,
    /// End of the last part of a root-synchronous operation.
    last_part: Times<W>,
    /// Rank of that part, and before it the rank's arrival time on the first network.
    last_part_of: (Time, Rank),
    finish: Times<W>,
    /// Rank that determined the end, and before it the rank's arrival time on the first network.
    decided: (Time, Rank),
}

/// End of an operation, and the rank that determined it on the first network, with that rank's arrival time.
type CollectiveEnd<const W: usize> = (Times<W>, (Time, Rank));

/// Progress of each execution.
#[derive(Clone, Copy)]
struct CollectivesProgress {
    entered: u32,
    left: u32,
    /// Its number in the slab, from the first arrival to the last departure.
    number: u32,
    /// The last rank that started to wait; the other ranks follow through `next_waiting`.
    waiting: u32,
}

const NOBODY: u32 = u32::MAX;

/// All executions of collectives in a walk.
pub(super) struct Collectives<'a, const W: usize> {
    program: &'a Program,
    /// Costs of collectives on each network.
    pub costs: CollectiveCosts<'a, W>,
    progress: Vec<CollectivesProgress>,
    next_waiting: Vec<u32>,
    executions: Slab<Execution<W>>,
}

impl<'a, const W: usize> Collectives<'a, W> {
    /// The collectives of a program before any of them has started.
    pub(super) fn new(program: &'a Program, costs: &'a LaneCosts<'a, W>) -> Self {
        let progress = CollectivesProgress {
            entered: 0,
            left: 0,
            number: NOBODY,
            waiting: NOBODY,
        };
        Collectives {
            program,
            costs: CollectiveCosts::new(costs),
            progress: vec![progress; program.instances().len()],
            next_waiting: vec![NOBODY; program.streams()],
            executions: Slab::default(),
        }
    }

    /// Records the arrival of a rank. If it is the last one, all waiting ranks become ready.
    pub(super) fn enter(&mut self, instance: u32, entry: &Entry<W>, ready: &mut Vec<Rank>) {
        let members = self.members(instance);
        let progress = &mut self.progress[instance as usize];
        if progress.number == NOBODY {
            progress.number = self.executions.insert(Execution::new());
        }
        let execution = &mut self.executions[progress.number];
        execution.enter(entry, self.program.call(entry.call).is_root);
        progress.entered += 1;
        if progress.entered < members {
            return;
        }
        execution.decide(self.program, &mut self.costs);
        let mut waiting = std::mem::replace(&mut progress.waiting, NOBODY);
        while waiting != NOBODY {
            ready.push(Rank(waiting));
            waiting = self.next_waiting[waiting as usize];
        }
    }

    /// Returns the end of an operation for a rank that leaves it. If the operation has not ended, returns `None`, and the
    /// rank becomes ready when the last rank arrives.
    pub(super) fn finish(&mut self, instance: u32, rank: Rank) -> Option<CollectiveEnd<W>> {
        let members = self.members(instance);
        let progress = &mut self.progress[instance as usize];
        if progress.entered < members || progress.number == NOBODY {
            self.next_waiting[rank] = std::mem::replace(&mut progress.waiting, rank.0);
            return None;
        }
        let Execution {
            finish, decided, ..
        } = self.executions[progress.number];
        self.leave(instance);
        Some((finish, decided))
    }

    /// Records that a rank no longer needs the execution. After the last rank, its place in the slab is reused.
    pub(super) fn leave(&mut self, instance: u32) {
        let members = self.members(instance);
        let progress = &mut self.progress[instance as usize];
        progress.left += 1;
        if progress.left == members {
            self.executions
                .give_back(std::mem::replace(&mut progress.number, NOBODY));
        }
    }

    fn members(&self, instance: u32) -> u32 {
        let communicator = self.program.communicator_of(instance);
        self.program.communicator(communicator).members.len() as u32
    }
}

impl<const W: usize> Execution<W> {
    fn new() -> Execution<W> {
        // Every arrival is later, since times are not negative.
        let before_all = Time::from_nanos(-1.0);
        let nobody = Last {
            came: [before_all; W],
            rank: [Rank(0); W],
            call: [0; W],
        };
        Execution {
            last: nobody,
            root: nobody,
            has_root: false,
            last_part: [before_all; W],
            last_part_of: (before_all, Rank(0)),
            finish: [Time::ZERO; W],
            decided: (Time::ZERO, Rank(0)),
        }
    }

    fn enter(&mut self, entry: &Entry<W>, is_root: bool) {
        self.last.replace_if_later(entry);
        if is_root {
            self.root.replace_if_later(entry);
            self.has_root = true;
        }
        // Among equal ends, the rank that arrived later decides; among equal arrivals, the highest rank.
        let (end, own) = (entry.own_end[0], (entry.came[0], entry.rank));
        if (end, own) > (self.last_part[0], self.last_part_of) {
            self.last_part_of = own;
        }
        for (last, own) in self.last_part.iter_mut().zip(&entry.own_end) {
            *last = later(*own, *last);
        }
    }

    fn decide(&mut self, program: &Program, costs: &mut CollectiveCosts<'_, W>) {
        let deciding = if self.has_root {
            &self.root
        } else {
            &self.last
        };
        self.decided = (self.last.came[0], self.last.rank[0]);
        let mut duration = [Time::ZERO; W];
        let mut known = None;
        for lane in 0..W {
            let (call, rank) = (deciding.call[lane], deciding.rank[lane]);
            let decides = program.call(call);
            if decides.mode == CollectiveMode::RootSynchronous {
                self.finish[lane] = self.last_part[lane];
                if lane == 0 {
                    self.decided = self.last_part_of;
                }
                continue;
            }
            let decider = Some((call, costs.group(rank)));
            if known != decider {
                duration = *costs.duration(call, decides, rank);
                known = decider;
            }
            self.finish[lane] = self.last.came[lane] + duration[lane];
        }
    }
}

impl<const W: usize> Last<W> {
    fn replace_if_later(&mut self, entry: &Entry<W>) {
        for lane in 0..W {
            let (came, kept) = (entry.came[lane], self.came[lane]);
            // Without a branch, so that several lanes are processed at the same time.
            let is_later = (came > kept) | ((came == kept) & (entry.rank > self.rank[lane]));
            self.came[lane] = if is_later { came } else { kept };
            self.rank[lane] = if is_later {
                entry.rank
            } else {
                self.rank[lane]
            };
            self.call[lane] = if is_later {
                entry.call
            } else {
                self.call[lane]
            };
        }
    }
}

impl<'a, const W: usize, O: Observer, T: Transit, const RENDEZVOUS: bool, const MANY_ROUTES: bool>
    WalkEngine<'a, W, O, T, RENDEZVOUS, MANY_ROUTES>
{
    pub(super) fn collective(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        call: u32,
        instance: u32,
    ) -> Option<()> {
        let made = self.program.call(call);
        let startup = match made.mode {
            CollectiveMode::Blocking => [Time::ZERO; W],
            _ => {
                self.collectives
                    .costs
                    .startup(made.communicator, rank)
                    .of_call
            }
        };
        let came = plus(&state.time, &startup);
        let own_end = self.own_end(rank, call, &came);
        if !state.entered {
            state.entered = true;
            let entry = Entry {
                rank,
                call,
                came,
                own_end,
            };
            self.collectives.enter(instance, &entry, &mut self.ready);
        }
        let own = (came[0], rank);
        let end = match made.mode {
            CollectiveMode::NonBlocking => (came, own),
            CollectiveMode::RootSynchronous if !made.is_root => {
                self.collectives.leave(instance);
                (own_end, own)
            }
            _ => self.collectives.finish(instance, rank)?,
        };
        state.entered = false;
        self.leave_collective(rank, state, instance, &startup, end);
        Some(())
    }

    /// Time at which a rank's own data has reached the root of a root-synchronous collective.
    fn own_end(&self, rank: Rank, call: u32, came: &Times<W>) -> Times<W> {
        let made = self.program.call(call);
        if made.mode != CollectiveMode::RootSynchronous || made.is_root {
            return *came;
        }
        from_fn(|lane| {
            let costs = self.costs.networks[lane];
            let (_, (bytes, flight)) = costs.to_root(self.placement, rank, made);
            came[lane] + self.costs.grid.round(bytes + flight)
        })
    }

    pub(super) fn wait_collective(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        instance: u32,
    ) -> Option<()> {
        let end = self.collectives.finish(instance, rank)?;
        let communicator = self.program.communicator_of(instance);
        let startup = self.collectives.costs.startup(communicator, rank).of_wait;
        self.leave_collective(rank, state, instance, &startup, end);
        Some(())
    }

    /// Lets a rank spend `startup` and leave a collective at the collective's end.
    fn leave_collective(
        &mut self,
        rank: Rank,
        state: &mut RankState<'a, W>,
        instance: u32,
        startup: &Times<W>,
        (end, (last, last_rank)): CollectiveEnd<W>,
    ) {
        let (call, came) = (state.time[0], plus(&state.time, startup));
        state.overhead += startup[0];
        state.time = from_fn(|lane| later(end[lane], came[lane]));
        state.polled = state.time[0];
        self.observer.gathered(
            rank,
            ObservedCollective {
                instance,
                call,
                processor: Time::ZERO,
                came: came[0],
                last,
                last_rank,
                end: state.time[0],
            },
        );
    }
}
