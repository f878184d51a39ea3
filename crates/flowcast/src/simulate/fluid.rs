//! Flows under way together, stepped from event to event (RR-5910 section 5.3; Algorithm 1 of Zhu et al.).
//!
//! Events are starts and ends of flows; between two of them the shares are constant, and a [`RateModel`] says what
//! they are. Ends come before starts at equal time, and all flows that attain the minimum end together, so that
//! nothing is ever compared with zero. Latency is not contended: it is added when the data are through. A flow of no
//! bytes ends at once.
//!
//! A flow's progress is brought up to date only when its share changes; one that meets nobody therefore takes
//! `L + m*x` to the last bit, whatever goes on elsewhere.

use crate::model::sharing::fabric::{Allocation, Fabric, Limit, Share};
use crate::model::sharing::{RateModel, SharingError};
use crate::units::Time;

/// What the engine needs to know of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// When it starts.
    pub start: Time,
    /// How long its data would take at the share 1.
    pub work: Time,
}

/// When a flow's data were through.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Passage {
    /// The end.
    pub end: Time,
    /// Time under way.
    pub duration: Time,
}

/// A stretch of time between two events, with what each flow under way got.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Its beginning.
    pub from: Time,
    /// Its end, later than the beginning.
    pub to: Time,
    /// Indices of the flows under way, ascending.
    pub active: &'a [usize],
    /// What each of them got.
    pub allocations: &'a [Allocation],
}

/// A stretch of a flow's life with one share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// What the flow got.
    pub share: Share,
    /// Why not more.
    pub limit: Limit,
}

/// The equations' times, and all steps for an observer.
///
/// # Errors
/// Those of the model.
pub fn simulate(
    demands: &[Demand],
    fabric: &Fabric,
    model: &mut dyn RateModel,
    observe: &mut dyn FnMut(&Step<'_>),
) -> Result<Vec<Passage>, SharingError> {
    let mut engine = Engine::new(demands);
    loop {
        engine.end_flows();
        engine.start_flows();
        if engine.active.is_empty() {
            match engine.next_start() {
                Some(start) => engine.now = start,
                None => return Ok(engine.passages),
            }
            continue;
        }
        let allocations = model.shares(fabric, &engine.active)?;
        engine.apply(&allocations);
        let from = engine.now;
        engine.advance();
        if engine.now > from {
            observe(&Step { from, to: engine.now, active: &engine.active, allocations: &allocations });
        }
    }
}

/// Gathers each flow's intervals, joining those that differ in nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Intervals {
    /// By flow, in time order.
    pub of_flow: Vec<Vec<Interval>>,
    /// Steps seen.
    pub steps: usize,
    /// Most flows under way at a time.
    pub most_active: usize,
}

impl Intervals {
    /// For so many flows.
    pub fn new(flows: usize) -> Intervals {
        Intervals { of_flow: vec![Vec::new(); flows], steps: 0, most_active: 0 }
    }

    /// Takes in a step.
    pub fn record(&mut self, step: &Step<'_>) {
        self.steps += 1;
        self.most_active = self.most_active.max(step.active.len());
        for (flow, allocation) in step.active.iter().zip(step.allocations) {
            let Allocation { share, limit } = *allocation;
            match self.of_flow[*flow].last_mut() {
                Some(last) if last.to == step.from && is_same(last, allocation) => last.to = step.to,
                _ => self.of_flow[*flow].push(Interval { from: step.from, to: step.to, share, limit }),
            }
        }
    }
}

fn is_same(interval: &Interval, allocation: &Allocation) -> bool {
    interval.limit == allocation.limit && (interval.share.0 - allocation.share.0).abs() <= 1e-9 * allocation.share.0
}

#[derive(Clone, Copy)]
struct Progress {
    /// When the share last changed.
    since: Time,
    /// Work left then.
    left: Time,
    /// Time under way until then.
    before: Time,
    share: f64,
}

impl Progress {
    fn remaining_time(&self) -> Time {
        Time::from_nanos(self.left.as_nanos() / self.share)
    }

    fn end(&self) -> Time {
        self.since + self.remaining_time()
    }
}

struct Engine<'a> {
    demands: &'a [Demand],
    /// Flows by start, the latest first.
    waiting: Vec<usize>,
    now: Time,
    active: Vec<usize>,
    progress: Vec<Progress>,
    passages: Vec<Passage>,
}

impl<'a> Engine<'a> {
    fn new(demands: &'a [Demand]) -> Engine<'a> {
        let mut waiting: Vec<usize> = (0..demands.len()).collect();
        waiting.sort_by_key(|flow| std::cmp::Reverse((demands[*flow].start, *flow)));
        Engine {
            demands,
            waiting,
            now: Time::ZERO,
            active: Vec::new(),
            progress: Vec::new(),
            passages: vec![Passage::default(); demands.len()],
        }
    }

    fn next_start(&self) -> Option<Time> {
        self.waiting.last().map(|flow| self.demands[*flow].start)
    }

    /// Two times that differ by rounding are one event.
    fn is_now(&self, time: Time) -> bool {
        time.as_nanos() <= self.now.as_nanos() * (1.0 + 64.0 * f64::EPSILON)
    }

    fn end_flows(&mut self) {
        let mut kept = 0;
        for place in 0..self.active.len() {
            let (flow, progress) = (self.active[place], self.progress[place]);
            if progress.share > 0.0 && self.is_now(progress.end()) {
                let duration = progress.before + progress.remaining_time();
                self.passages[flow] = Passage { end: self.demands[flow].start + duration, duration };
            } else {
                (self.active[kept], self.progress[kept]) = (flow, progress);
                kept += 1;
            }
        }
        self.active.truncate(kept);
        self.progress.truncate(kept);
    }

    fn start_flows(&mut self) {
        let before = self.active.len();
        while let Some(flow) = self.waiting.pop_if(|flow| {
            let limit = self.now.as_nanos() * (1.0 + 64.0 * f64::EPSILON);
            self.demands[*flow].start.as_nanos() <= limit
        }) {
            let Demand { start, work } = self.demands[flow];
            if work == Time::ZERO {
                self.passages[flow] = Passage { end: start, duration: Time::ZERO };
            } else {
                self.active.push(flow);
                self.progress.push(Progress { since: start, left: work, before: Time::ZERO, share: 0.0 });
            }
        }
        if self.active.len() > before {
            let mut order: Vec<(usize, Progress)> = self.active.drain(..).zip(self.progress.drain(..)).collect();
            order.sort_unstable_by_key(|(flow, _)| *flow);
            (self.active, self.progress) = order.into_iter().unzip();
        }
    }

    fn apply(&mut self, allocations: &[Allocation]) {
        for (progress, allocation) in self.progress.iter_mut().zip(allocations) {
            let share = allocation.share.0;
            if share == progress.share {
                continue;
            }
            if progress.share > 0.0 {
                let elapsed = self.now - progress.since;
                progress.left = (progress.left - elapsed * progress.share).max(Time::ZERO);
                progress.before += elapsed;
                progress.since = self.now;
            }
            progress.share = share;
        }
    }

    /// To the next end or start, whichever is first.
    fn advance(&mut self) {
        let ends = self.progress.iter().map(Progress::end);
        let next = ends.chain(self.next_start()).min().expect("a flow is under way");
        self.now = self.now.max(next);
    }
}
