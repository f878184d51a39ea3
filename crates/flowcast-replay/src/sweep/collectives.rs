//! Who has come to which collective, lane by lane: who is last, and so whose bytes decide, may differ between lanes.

use super::lane_costs::CollectiveCosts;
use super::times::{Times, later};
use crate::costs::Costs;
use flowcast_trace::program::{CollectiveMode, Program};

/// A rank's arrival at a collective.
pub struct Entry<const W: usize> {
    pub rank: u32,
    pub call: u32,
    pub came: Times<W>,
    pub own_end: Times<W>,
}

/// The last to come; of those of equal time the one with the highest rank.
#[derive(Clone, Copy)]
struct Last<const W: usize> {
    came: Times<W>,
    rank: [u32; W],
    call: [u32; W],
}

/// One execution of a collective on its way.
#[derive(Clone, Copy)]
struct Gathering<const W: usize> {
    last: Last<W>,
    /// The last among those that call themselves the root.
    root: Last<W>,
    has_root: bool,
    /// When the part of a root-synchronous operation that is done last is done.
    last_part: Times<W>,
    finish: Times<W>,
}

/// What is kept of every execution.
#[derive(Clone, Copy)]
struct Progress {
    entered: u32,
    left: u32,
    /// Where its gathering is kept, from the first arrival to the last departure.
    block: u32,
    /// The rank that came to wait last; the others follow through `next_waiting`.
    waiting: u32,
}

const NOBODY: u32 = u32::MAX;

/// All executions of collectives in a sweep.
pub struct Collectives<'a, const W: usize> {
    program: &'a Program,
    /// What they cost.
    pub costs: CollectiveCosts<'a, W>,
    progress: Vec<Progress>,
    next_waiting: Vec<u32>,
    gatherings: Vec<Gathering<W>>,
    free: Vec<u32>,
}

impl<'a, const W: usize> Collectives<'a, W> {
    /// None has begun.
    pub fn new(program: &'a Program, costs: &'a [&'a Costs; W]) -> Self {
        let progress = Progress { entered: 0, left: 0, block: NOBODY, waiting: NOBODY };
        Collectives {
            program,
            costs: CollectiveCosts::new(costs),
            progress: vec![progress; program.instances().len()],
            next_waiting: vec![NOBODY; program.streams()],
            gatherings: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A rank comes. If it is the one that all wait for, those that wait become ready.
    pub fn enter(&mut self, instance: u32, entry: &Entry<W>, ready: &mut Vec<u32>) {
        let at = instance as usize;
        if self.progress[at].block == NOBODY {
            self.progress[at].block = self.begin();
        }
        let call = &self.program.calls()[entry.call as usize];
        let gathering = &mut self.gatherings[self.progress[at].block as usize];
        gathering.last.replace_if_later(entry);
        if call.is_root {
            gathering.root.replace_if_later(entry);
            gathering.has_root = true;
        }
        for (last, own) in gathering.last_part.0.iter_mut().zip(&entry.own_end.0) {
            *last = later(*own, *last);
        }
        self.progress[at].entered += 1;
        if self.progress[at].entered < self.members(instance) {
            return;
        }
        self.decide(self.progress[at].block as usize);
        let mut waiting = std::mem::replace(&mut self.progress[at].waiting, NOBODY);
        while waiting != NOBODY {
            ready.push(waiting);
            waiting = self.next_waiting[waiting as usize];
        }
    }

    /// When the operation is done, once all have come.
    pub fn finish(&self, instance: u32) -> Option<&Times<W>> {
        let progress = &self.progress[instance as usize];
        let all = progress.entered >= self.members(instance) && progress.block != NOBODY;
        all.then(|| &self.gatherings[progress.block as usize].finish)
    }

    /// The rank becomes ready when the last has come.
    pub fn wait(&mut self, instance: u32, rank: u32) {
        let progress = &mut self.progress[instance as usize];
        self.next_waiting[rank as usize] = std::mem::replace(&mut progress.waiting, rank);
    }

    /// A rank asks no more; what the last one leaves behind serves another execution.
    pub fn leave(&mut self, instance: u32) {
        let members = self.members(instance);
        let progress = &mut self.progress[instance as usize];
        progress.left += 1;
        if progress.left == members {
            self.free.push(std::mem::replace(&mut progress.block, NOBODY));
        }
    }

    fn members(&self, instance: u32) -> u32 {
        let communicator = self.program.instances()[instance as usize];
        self.program.communicators()[communicator as usize].members.len() as u32
    }

    fn begin(&mut self) -> u32 {
        let block = self.free.pop().unwrap_or_else(|| {
            self.gatherings.push(Gathering::new());
            self.gatherings.len() as u32 - 1
        });
        self.gatherings[block as usize] = Gathering::new();
        block
    }

    fn decide(&mut self, block: usize) {
        let gathering = &mut self.gatherings[block];
        let deciding = if gathering.has_root { &gathering.root } else { &gathering.last };
        let mut duration = Times::all(0.0);
        let mut known = None;
        for lane in 0..W {
            let (call, rank) = (deciding.call[lane], deciding.rank[lane]);
            let decides = &self.program.calls()[call as usize];
            if decides.mode == CollectiveMode::RootSynchronous {
                gathering.finish.0[lane] = gathering.last_part.0[lane];
                continue;
            }
            let decider = Some((call, self.costs.group(rank)));
            if known != decider {
                duration = *self.costs.duration(call, decides, rank);
                known = decider;
            }
            gathering.finish.0[lane] = gathering.last.came.0[lane] + duration.0[lane];
        }
    }
}

impl<const W: usize> Gathering<W> {
    fn new() -> Gathering<W> {
        // Every arrival is later: times are not negative.
        let nobody = Last { came: Times::all(-1.0), rank: [0; W], call: [0; W] };
        Gathering { last: nobody, root: nobody, has_root: false, last_part: Times::all(-1.0), finish: Times::all(0.0) }
    }
}

impl<const W: usize> Last<W> {
    fn replace_if_later(&mut self, entry: &Entry<W>) {
        for lane in 0..W {
            let (came, kept) = (entry.came.0[lane], self.came.0[lane]);
            // Without a branch, so that several lanes are done at once.
            let is_later = (came > kept) | ((came == kept) & (entry.rank > self.rank[lane]));
            self.came.0[lane] = if is_later { came } else { kept };
            self.rank[lane] = if is_later { entry.rank } else { self.rank[lane] };
            self.call[lane] = if is_later { entry.call } else { self.call[lane] };
        }
    }
}
