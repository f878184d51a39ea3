//! Fluid simulation of concurrent flows from event to event (RR-5910 section 5.3; Algorithm 1 of Zhu et al.).
//!
//! Events are starts and ends of flows. Between two of them the shares are constant, and a [`RateModel`] determines them. At
//! equal times, ends come before starts, and all flows that attain the minimum end together, so that no remainder is ever
//! compared with zero. Latency is not contended: it is added after the data have passed. A flow without bytes ends
//! immediately.
//!
//! A flow without others on its links takes `L + m*x` to the last bit, regardless of events elsewhere. A test compares
//! with the naive version, in which the model allocates to all flows anew at each event.

use super::{
    flow_classes::FlowClasses,
    in_flight::FlowsInFlight,
    progress::{FlowProgress, RateChange},
};
use flowcast_network::sharing::{
    RateModel, SharingError,
    completion::{FlowCompletion, RateInterval},
    fabric::{AllocatedFraction, Allocation, Fabric},
};
use flowcast_units::Time;

/// Relative difference up to which two times are one event.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// Start and work of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Time from which its data flow.
    pub start: Time,
    /// Time that its data would need at the share 1.
    pub work: Time,
}

/// Observer of the flows' rates and ends during a simulation.
pub trait Watcher {
    /// `true` if it observes rates: each event then takes time in proportion to the number of flows whose rates it changes.
    const OF_RATES: bool;
    /// The flow has this allocation from now on.
    fn changed(&mut self, _flow: usize, _now: Time, _allocation: Allocation) {}
    /// The flow's last byte has passed.
    fn ended(&mut self, _flow: usize, _now: Time) {}
    /// Time advances, with this many flows in flight.
    fn stepped(&mut self, _active: usize) {}
}

/// Ignores everything.
impl Watcher for () {
    const OF_RATES: bool = false;
}

/// Returns the completions of all flows; `watcher` is notified of everything else.
///
/// # Errors
/// Errors of the model.
pub fn simulate<W: Watcher>(
    demands: &[Demand],
    fabric: &Fabric,
    model: &mut dyn RateModel,
    watcher: &mut W,
) -> Result<Vec<FlowCompletion>, SharingError> {
    follow(demands, fabric, model, watcher).map(|followed| followed.completions)
}

/// Simulates like [`simulate`]. If flows choose between two paths, only the paths that they took remain in the fabric.
///
/// # Errors
/// Errors of the model.
pub(super) fn simulate_choosing<W: Watcher>(
    demands: &[Demand],
    fabric: &mut Fabric,
    model: &mut dyn RateModel,
    watcher: &mut W,
) -> Result<Vec<FlowCompletion>, SharingError> {
    let followed = follow(demands, fabric, model, watcher)?;
    fabric.settle_ways(&followed.taken);
    Ok(followed.completions)
}

/// Outcome for the flows.
struct FollowedFlows {
    completions: Vec<FlowCompletion>,
    /// Number of the path that each flow took, indexed by flow.
    taken: Vec<usize>,
}

fn follow<W: Watcher>(
    demands: &[Demand],
    fabric: &Fabric,
    model: &mut dyn RateModel,
    watcher: &mut W,
) -> Result<FollowedFlows, SharingError> {
    if model.is_by_path() && !W::OF_RATES {
        let in_flight = FlowClasses::new(fabric);
        return FluidEngine::new(demands, fabric, in_flight).run(model, watcher);
    }
    let mut in_flight = FlowsInFlight::new(fabric, model);
    if !W::OF_RATES {
        in_flight.ignore_limits();
    }
    FluidEngine::new(demands, fabric, in_flight).run(model, watcher)
}

/// Maximum number of intervals of a flow. At this number, pairs of neighbours are joined, because more intervals would take
/// memory without helping a reader.
const MOST_INTERVALS: usize = 128;

/// Collects each flow's intervals. Joins equal ones and, if a flow has many, neighbours.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Intervals {
    /// Intervals of each flow in time order, indexed by flow.
    pub of_flow: Vec<Vec<RateInterval>>,
    /// Number of steps in which the simulation passed from one set of rates to the next.
    pub steps: usize,
    /// Largest number of flows in flight at the same time.
    pub most_active: usize,
}

impl Intervals {
    /// Creates empty lists for this many flows.
    pub fn new(flows: usize) -> Intervals {
        Intervals {
            of_flow: vec![Vec::new(); flows],
            steps: 0,
            most_active: 0,
        }
    }
}

impl Watcher for Intervals {
    const OF_RATES: bool = true;

    fn changed(&mut self, flow: usize, now: Time, allocation: Allocation) {
        let Allocation { share, limit } = allocation;
        let intervals = &mut self.of_flow[flow];
        match intervals.last_mut() {
            Some(last) if is_same(last, &allocation) => {}
            Some(last) if last.from == now => (last.share, last.limit) = (share, limit),
            last => {
                if let Some(last) = last {
                    last.to = now;
                }
                if intervals.len() == MOST_INTERVALS {
                    join_neighbours(intervals);
                }
                intervals.push(RateInterval {
                    from: now,
                    to: now,
                    share,
                    limit,
                });
            }
        }
    }

    fn ended(&mut self, flow: usize, now: Time) {
        if let Some(last) = self.of_flow[flow].last_mut() {
            last.to = now;
        }
    }

    fn stepped(&mut self, active: usize) {
        self.steps += 1;
        self.most_active = self.most_active.max(active);
    }
}

fn is_same(interval: &RateInterval, allocation: &Allocation) -> bool {
    interval.limit == allocation.limit
        && (interval.share.0 - allocation.share.0).abs() <= 1e-9 * allocation.share.0
}

/// Joins intervals in pairs, with the average share and the limit of the longer of the two.
fn join_neighbours(intervals: &mut Vec<RateInterval>) {
    for place in 0..intervals.len() / 2 {
        let [first, second] = [intervals[2 * place], intervals[2 * place + 1]];
        let (before, after) = (first.to - first.from, second.to - second.from);
        let service = before * first.share.0 + after * second.share.0;
        intervals[place] = RateInterval {
            from: first.from,
            to: second.to,
            share: AllocatedFraction(service.as_nanos() / (before + after).as_nanos()),
            limit: if after > before {
                second.limit
            } else {
                first.limit
            },
        };
    }
    intervals.truncate(intervals.len() / 2);
}

struct FluidEngine<'a, P> {
    demands: &'a [Demand],
    fabric: &'a Fabric,
    /// Flows ordered by start, the latest first.
    waiting: Vec<usize>,
    now: Time,
    tolerance: f64,
    in_flight: P,
    completions: Vec<FlowCompletion>,
    /// Number of the path that each flow takes, indexed by flow.
    taken: Vec<usize>,
}

impl<'a, P: FlowProgress> FluidEngine<'a, P> {
    fn new(demands: &'a [Demand], fabric: &'a Fabric, in_flight: P) -> FluidEngine<'a, P> {
        let mut waiting: Vec<usize> = (0..demands.len()).collect();
        waiting.sort_unstable_by_key(|flow| std::cmp::Reverse((demands[*flow].start, *flow)));
        FluidEngine {
            demands,
            fabric,
            waiting,
            now: Time::ZERO,
            tolerance: ROUNDING,
            in_flight,
            completions: vec![FlowCompletion::default(); demands.len()],
            taken: (0..demands.len()).collect(),
        }
    }

    fn run(
        mut self,
        model: &mut dyn RateModel,
        watcher: &mut impl Watcher,
    ) -> Result<FollowedFlows, SharingError> {
        self.tolerance = model.tolerance(self.fabric).max(ROUNDING);
        loop {
            self.end_flows(watcher);
            self.start_flows();
            if self.in_flight.count() == 0 {
                // The model must be informed of the ends even if no flow remains.
                self.update_rates(model, watcher)?;
                match self.next_start() {
                    Some(start) => self.now = start,
                    None => {
                        return Ok(FollowedFlows {
                            completions: self.completions,
                            taken: self.taken,
                        });
                    }
                }
                continue;
            }
            self.update_rates(model, watcher)?;
            self.advance(watcher)?;
        }
    }

    fn next_start(&self) -> Option<Time> {
        self.waiting.last().map(|flow| self.demands[*flow].start)
    }

    /// Latest time that counts as now: times that differ by rounding, or by the tolerance of the model, are one event.
    fn about_now(&self) -> Time {
        self.now * (1.0 + self.tolerance)
    }

    fn end_flows(&mut self, watcher: &mut impl Watcher) {
        while let Some((path, completion)) = self.in_flight.end_next(self.fabric, self.about_now())
        {
            let flow = self.fabric.flow_on(path as usize);
            watcher.ended(flow, self.now);
            let duration = completion.duration;
            self.completions[flow] = FlowCompletion {
                end: self.demands[flow].start + duration,
                duration,
            };
        }
    }

    fn start_flows(&mut self) {
        let limit = self.about_now();
        while let Some(flow) = self
            .waiting
            .pop_if(|flow| self.demands[*flow].start <= limit)
        {
            let Demand { start, work } = self.demands[flow];
            if work == Time::ZERO {
                self.completions[flow] = FlowCompletion {
                    end: start,
                    duration: Time::ZERO,
                };
            } else {
                let path = self.choose_path(flow) as u32;
                self.in_flight.start(self.fabric, path, start, work);
            }
        }
    }

    /// Chooses the path of a flow that starts. Returns its number.
    fn choose_path(&mut self, flow: usize) -> usize {
        let fabric = self.fabric;
        if let Some(detour) = fabric.detour(flow) {
            let [shortest, longer] = [flow, detour].map(|path| &fabric.paths[path]);
            if fabric.is_less_loaded(longer, shortest, |link| self.in_flight.flows_over(link)) {
                self.taken[flow] = detour;
            }
        }
        self.taken[flow]
    }

    fn update_rates(
        &mut self,
        model: &mut dyn RateModel,
        watcher: &mut impl Watcher,
    ) -> Result<(), SharingError> {
        let now = self.now;
        self.in_flight
            .update_rates(self.fabric, model, now, |change: RateChange| {
                let flow = self.fabric.flow_on(change.flow as usize);
                watcher.changed(flow, now, change.allocation)
            })
    }

    /// Advances to the next end or start, whichever is first.
    fn advance(&mut self, watcher: &mut impl Watcher) -> Result<(), SharingError> {
        let flows = self.in_flight.count();
        let ends = self.in_flight.next_end().into_iter();
        let next = ends.chain(self.next_start()).min();
        let next = next.filter(|next| *next < Time::NEVER);
        let next = next.ok_or(SharingError::Endless { flows })?;
        if next > self.now {
            watcher.stepped(flows);
            self.now = next;
        }
        Ok(())
    }
}
