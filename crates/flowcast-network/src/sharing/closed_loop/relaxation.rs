//! Steady rates of the closed loop, solved link by link (nonlinear Gauss-Seidel relaxation).
//!
//! A visit to a link sets its delay to the value that fills it, or to 0 if its flows cannot fill it, while all other delays
//! are fixed. This changes the rates of its flows and the loads of other links, which are visited next, until the imbalance
//! of every link is below a tolerance ([`StopRule`]). For kappa = 0 each visit maximises the dual of the network utility
//! `sum of r^(1-alpha)/(1-alpha)` along one coordinate (Kelly, Maulloo and Tan, 1998; Mo and Walrand, 2000), so the visits
//! converge for every alpha. For kappa > 0 no such function exists, and cycles in which each link moves the next may
//! oscillate. After some visits each link therefore adapts its step: shorter if its delay oscillates, longer than the
//! distance to its balance (over-relaxation) if it converges slowly.
//!
//! When a flow starts or ends, the relaxation starts from the previous solution and visits only the links of the flow's path
//! at first. The cost depends on the reach of the change and not on the number of flows.
//!
//! A link has no queue if all its flows have crossed the same earlier link with at most the same capacity.

use std::collections::VecDeque;

use super::{Feedback, queues::Queues};
use crate::sharing::{
    Changes,
    active_flows::ActiveFlows,
    fabric::{AllocatedFraction, Allocation, Fabric, FlowPath, Limit, LinkId},
};

/// Precision with which links are balanced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sharing) struct StopRule {
    /// Maximum imbalance of a link at the start, relative to its capacity.
    pub close: f64,
    /// Maximum imbalance of a link at the end, relative to its capacity.
    pub far: f64,
    /// Number of visits after which the tolerance grows.
    pub visits: u32,
    /// Number of visits that multiply the tolerance by ten.
    pub tenfold: f64,
    /// Longest step of a link, as a fraction of the distance to its balance.
    pub boldness: f64,
}

impl StopRule {
    /// For flows whose rates are solved from scratch.
    pub(in crate::sharing) const EXACT: StopRule = StopRule {
        close: 1e-11,
        far: 1e-7,
        visits: 20_000,
        tenfold: 5_000.0,
        boldness: 1.5,
    };
    /// Used if the exact rule does not converge.
    pub(in crate::sharing) const CAUTIOUS: StopRule = StopRule {
        far: 1e-6,
        boldness: 0.3,
        ..StopRule::EXACT
    };
    /// For patterns of many flows. Their ends are precise to about 1e-4.
    pub(in crate::sharing) const HIGH: StopRule = StopRule {
        close: 1e-5,
        far: 3e-4,
        visits: 4,
        tenfold: 4.0,
        boldness: 1.5,
    };
    /// For programs with millions of messages.
    pub(in crate::sharing) const LOW: StopRule = StopRule {
        close: 1e-5,
        far: 1e-3,
        visits: 4,
        tenfold: 4.0,
        boldness: 1.5,
    };

    fn tolerance_after(self, visits: u32) -> f64 {
        let beyond = f64::from(visits.saturating_sub(self.visits)) / self.tenfold;
        if beyond < 8.0 {
            (self.close * 10f64.powf(beyond)).min(self.far)
        } else {
            self.far
        }
    }

    fn pace(self, visits: u32, tolerance: f64) -> RelaxationPace {
        RelaxationPace {
            tolerance,
            boldness: (visits >= ADAPT_FROM).then_some(self.boldness),
        }
    }
}

/// Number of visits after which the relaxation gives up.
const MOST_VISITS: u32 = 50_000;
/// Multiple of the tolerance up to which the imbalance after [`MOST_VISITS`] visits is accepted.
const ROUGH: f64 = 10.0;
/// Number of visits from which links adapt their steps.
const ADAPT_FROM: u32 = 64;
/// Factor of a step that follows one in the opposite direction, and of a step that follows one in the same direction.
const SHORTER: f64 = 0.7;
const LONGER: f64 = 1.05;
/// Shortest step, as a fraction of the distance to the balance.
const LEAST_STEP: f64 = 0.02;
/// Relative difference below which two rates are equal.
const SAME: f64 = 1e-9;
/// Relative step, in units of the tolerance, after which Newton's method stops: each step doubles the number of correct
/// digits.
const LAST_STEP: f64 = 1e-2;
/// Upper limit for rates. In a balanced state no flow is faster than its node's interface. Larger intermediate rates would
/// reduce the precision of the sums of rates.
const FASTEST: f64 = 2.0;

/// Error: the relaxation does not converge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sharing) struct NotConverged {
    /// Largest imbalance of a link, relative to its capacity.
    pub imbalance: f64,
}

/// Delays, loads and rates, and the links that are out of balance.
#[derive(Debug, Clone)]
pub(in crate::sharing) struct Relaxation {
    queues: Queues,
    /// Sum of the rates of a link's flows, indexed by link.
    loads: Vec<f64>,
    is_waiting: Vec<bool>,
    /// Links that are visited even if they are balanced.
    is_asked_for: Vec<bool>,
    waiting: VecDeque<LinkId>,
    /// Indexed by link, or by the first link of a pair.
    steps: Vec<RelaxationStep>,
    /// Links whose steps differ from the initial ones.
    adapted: Vec<LinkId>,
    /// States of the flows, indexed by flow; the indices of ended flows are reused.
    states: Vec<RelaxationState>,
    /// Delays of a link's flows on all other links.
    elsewhere: Vec<f64>,
    moved: Vec<u32>,
}

/// Precision with which a link is balanced, and its longest step once steps adapt.
#[derive(Debug, Clone, Copy)]
struct RelaxationPace {
    tolerance: f64,
    boldness: Option<f64>,
}

/// Step of a link as a fraction of the distance to its balance, and the direction of the last step.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RelaxationStep {
    part: f64,
    last: [f64; 2],
}

impl RelaxationStep {
    const START: RelaxationStep = RelaxationStep {
        part: 1.0,
        last: [0.0; 2],
    };

    fn adapt(&mut self, apart: [f64; 2], boldness: f64) {
        let has_turned = apart[0] * self.last[0] + apart[1] * self.last[1] < 0.0;
        let part = self.part * if has_turned { SHORTER } else { LONGER };
        *self = RelaxationStep {
            part: part.clamp(LEAST_STEP, boldness),
            last: apart,
        };
    }

    /// Returns the delay after a step from `before` towards `after`. A delay that decreases towards 0 becomes 0 once it is
    /// small.
    fn toward(self, before: f64, after: f64) -> f64 {
        let delay = if self.part == 1.0 {
            after
        } else {
            (before + self.part * (after - before)).max(0.0)
        };
        if after == 0.0 && delay < 1e-4 {
            0.0
        } else {
            delay
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct RelaxationState {
    delay: f64,
    rate: f64,
    /// Rate in the last reported changes.
    notified: f64,
    /// The links of the path at its two nodes, and `true` if it has further links.
    out: LinkId,
    into: LinkId,
    has_inner_links: bool,
    /// Rate without contention, as a fraction of the interface's rate.
    alone: f64,
    has_moved: bool,
}

impl RelaxationState {
    fn new(fabric: &Fabric, path: &FlowPath) -> RelaxationState {
        RelaxationState {
            delay: 0.0,
            rate: 0.0,
            notified: 0.0,
            out: path.out(),
            into: path.into(),
            has_inner_links: path.is_between_racks(),
            alone: fabric.uncontended_share(path).0,
            has_moved: false,
        }
    }
}

impl Relaxation {
    /// Creates a relaxation with empty queues.
    pub(in crate::sharing) fn new(fabric: &Fabric, feedback: Feedback) -> Relaxation {
        let links = fabric.link_count();
        Relaxation {
            queues: Queues::new(fabric, feedback),
            loads: vec![0.0; links],
            is_waiting: vec![false; links],
            is_asked_for: vec![false; links],
            waiting: VecDeque::new(),
            steps: vec![RelaxationStep::START; links],
            adapted: Vec::new(),
            states: Vec::new(),
            elsewhere: Vec::new(),
            moved: Vec::new(),
        }
    }

    pub(in crate::sharing) fn queues(&self) -> &Queues {
        &self.queues
    }

    pub(in crate::sharing) fn queues_mut(&mut self) -> &mut Queues {
        &mut self.queues
    }

    /// Balances the links that changes of flows have touched, and all links that these affect. Adds the flows whose rates
    /// have changed to `changes`.
    pub(in crate::sharing) fn update(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        stop: StopRule,
        changes: &mut Changes,
    ) -> Result<(), NotConverged> {
        self.take_in(fabric, active_flows);
        self.adapted
            .drain(..)
            .for_each(|link| self.steps[link.index()] = RelaxationStep::START);
        let (mut visits, mut tolerance) = (0, stop.close);
        while let Some(link) = self.waiting.pop_front() {
            self.is_waiting[link.index()] = false;
            if !self.needs_visit(fabric, link, tolerance) {
                continue;
            }
            self.visit(fabric, active_flows, link, stop.pace(visits, tolerance));
            visits += 1;
            tolerance = stop.tolerance_after(visits);
            if visits > MOST_VISITS {
                let imbalance = self
                    .waiting
                    .iter()
                    .map(|link| self.imbalance(*link))
                    .fold(0.0, f64::max);
                self.waiting
                    .drain(..)
                    .for_each(|link| self.is_waiting[link.index()] = false);
                if imbalance > stop.far * ROUGH {
                    return Err(NotConverged { imbalance });
                }
            }
        }
        self.collect_changes(fabric, tolerance, changes);
        Ok(())
    }

    /// Balances as [`Relaxation::update`] does, for cases in which that has failed. It starts from all links and takes
    /// shorter steps, so that cycles of oscillating links converge.
    pub(super) fn update_with_care(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        stop: StopRule,
        changes: &mut Changes,
    ) -> Result<(), NotConverged> {
        (0..self.loads.len() as u32).for_each(|link| self.wait(LinkId(link)));
        self.update(
            fabric,
            active_flows,
            StopRule {
                boldness: StopRule::CAUTIOUS.boldness,
                ..stop
            },
            changes,
        )
    }

    /// Registers the flows that have started and ended.
    fn take_in(&mut self, fabric: &Fabric, active_flows: &ActiveFlows) {
        for flow in active_flows.started() {
            // Indices are reused: the previous flow with this index no longer counts.
            let state = RelaxationState::new(fabric, &fabric.paths[*flow as usize]);
            let size = self.states.len().max(*flow as usize + 1);
            self.states.resize(size, state);
            self.states[*flow as usize] = state;
            self.note(*flow);
        }
        for link in active_flows.touched() {
            self.loads[link.index()] = active_flows
                .members(*link)
                .iter()
                .map(|flow| self.states[*flow as usize].rate)
                .sum();
            self.is_asked_for[link.index()] = true;
            self.wait(*link);
        }
        for flow in active_flows.started() {
            let path = &fabric.paths[*flow as usize];
            if active_flows.members(path.out()).contains(flow) {
                self.move_flow(fabric, *flow, f64::INFINITY);
            }
        }
    }

    fn wait(&mut self, link: LinkId) {
        if !std::mem::replace(&mut self.is_waiting[link.index()], true) {
            self.waiting.push_back(link);
        }
    }

    /// `true` if a link that waited for a visit, or its opposite link, is still out of balance, or if the visit was
    /// requested.
    fn needs_visit(&mut self, fabric: &Fabric, link: LinkId, tolerance: f64) -> bool {
        std::mem::take(&mut self.is_asked_for[link.index()])
            || self.imbalance(link) > tolerance
            || self.queues.feedback.kappa > 0.0 && self.imbalance(fabric.opposite(link)) > tolerance
    }

    fn note(&mut self, flow: u32) {
        if !std::mem::replace(&mut self.states[flow as usize].has_moved, true) {
            self.moved.push(flow);
        }
    }

    fn visit(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        link: LinkId,
        pace: RelaxationPace,
    ) {
        if self.queues.is_paired(link) {
            return self.visit_pair(fabric, active_flows, LinkId(link.0 & !1), pace);
        }
        let before = self.queues.delay(link);
        let filling = self.filling_delay(fabric, active_flows, link, pace);
        let delay = self
            .step(link, [filling - before, 0.0], pace)
            .toward(before, filling);
        if delay == before {
            return;
        }
        self.queues.set(link, delay);
        let acknowledged: &[u32] = if self.queues.feedback.kappa > 0.0 {
            active_flows.acknowledging(link)
        } else {
            &[]
        };
        for flow in active_flows.members(link).iter().chain(acknowledged) {
            self.move_flow(fabric, *flow, pace.tolerance);
        }
        self.come_again(link, pace);
    }

    fn visit_pair(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        out: LinkId,
        pace: RelaxationPace,
    ) {
        let (into, before) = (fabric.opposite(out), self.queues.pair(out));
        let filling = [out, into].map(|link| self.filling_delay(fabric, active_flows, link, pace));
        let delays = self.queues.split(out, filling);
        let step = self.step(out, [0, 1].map(|at| delays[at] - before[at]), pace);
        let delays = [0, 1].map(|at| step.toward(before[at], delays[at]));
        if delays == before {
            return;
        }
        self.queues.set_pair(out, delays);
        for flow in active_flows
            .members(out)
            .iter()
            .chain(active_flows.members(into))
        {
            self.move_flow(fabric, *flow, pace.tolerance);
        }
        self.come_again(out, pace);
        self.come_again(into, pace);
    }

    /// Step of a link whose delays differ from their targets by `apart`.
    fn step(&mut self, link: LinkId, apart: [f64; 2], pace: RelaxationPace) -> RelaxationStep {
        let step = &mut self.steps[link.index()];
        if let Some(boldness) = pace.boldness {
            if *step == RelaxationStep::START {
                self.adapted.push(link);
            }
            step.adapt(apart, boldness);
        }
        *step
    }

    /// Queues the link for another visit: after a shorter step it may be out of balance although no rate has changed.
    fn come_again(&mut self, link: LinkId, pace: RelaxationPace) {
        if self.imbalance(link) > pace.tolerance {
            self.wait(link);
        }
    }

    /// Sets the rate of a flow according to the delays. Links that get out of balance are queued for a visit.
    fn move_flow(&mut self, fabric: &Fabric, flow: u32, tolerance: f64) {
        let state = &mut self.states[flow as usize];
        let mut delay = self.queues.seen(state.out) + self.queues.seen(state.into);
        if state.has_inner_links {
            delay += self.queues.inner_delay(&fabric.paths[flow as usize]);
        }
        let rate = self.queues.rate(delay).min(FASTEST);
        let change = rate - state.rate;
        (state.delay, state.rate) = (delay, rate);
        if change == 0.0 {
            return;
        }
        let (out, into, has_inner_links) = (state.out, state.into, state.has_inner_links);
        self.note(flow);
        self.change_load(out, change, tolerance);
        self.change_load(into, change, tolerance);
        if has_inner_links {
            for link in &fabric.paths[flow as usize].data()[2..] {
                self.change_load(*link, change, tolerance);
            }
        }
    }

    fn change_load(&mut self, link: LinkId, change: f64, tolerance: f64) {
        self.loads[link.index()] += change;
        let capacity = self.queues.capacity(link);
        let (excess, most) = (self.loads[link.index()] - capacity, tolerance * capacity);
        if excess > most || excess < -most && self.queues.delay(link) > 0.0 {
            self.wait(link);
        }
    }

    fn imbalance(&self, link: LinkId) -> f64 {
        let excess = self.loads[link.index()] / self.queues.capacity(link) - 1.0;
        if self.queues.delay(link) > 0.0 {
            excess.abs()
        } else {
            excess
        }
    }

    /// Delay that fills a link while all others are fixed.
    fn filling_delay(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        link: LinkId,
        pace: RelaxationPace,
    ) -> f64 {
        if self.queues.capacity(link) == f64::INFINITY
            || self.is_served_before(fabric, active_flows, link)
        {
            return 0.0;
        }
        let seen = self.queues.seen(link);
        let members = active_flows.members(link).iter();
        self.elsewhere.clear();
        self.elsewhere
            .extend(members.map(|flow| (self.states[*flow as usize].delay - seen).max(0.0)));
        let precision = LAST_STEP * pace.tolerance;
        self.queues
            .filling_delay(link, self.elsewhere.iter().copied(), precision)
    }

    /// `true` if all flows of a link have crossed one earlier link with at most the same capacity, so that none of them
    /// waits here.
    fn is_served_before(&self, fabric: &Fabric, active_flows: &ActiveFlows, link: LinkId) -> bool {
        let [first, others @ ..] = active_flows.members(link) else {
            return true;
        };
        let before = |flow: &u32| {
            fabric.paths[*flow as usize]
                .data_in_order()
                .take_while(|earlier| *earlier != link)
        };
        before(first).any(|earlier| {
            self.queues.capacity(earlier) <= self.queues.capacity(link)
                && others
                    .iter()
                    .all(|flow| before(flow).any(|link| link == earlier))
        })
    }

    /// Collects the rates that differ from those reported earlier.
    fn collect_changes(&mut self, fabric: &Fabric, tolerance: f64, changes: &mut Changes) {
        while let Some(flow) = self.moved.pop() {
            let state = &mut self.states[flow as usize];
            state.has_moved = false;
            let RelaxationState { rate, alone, .. } = *state;
            if (rate - state.notified).abs() <= tolerance * rate {
                continue;
            }
            state.notified = rate;
            let allocation = if rate >= alone * (1.0 - tolerance.max(SAME)) {
                Allocation {
                    share: AllocatedFraction(alone),
                    limit: Limit::Alone,
                }
            } else {
                Allocation {
                    share: AllocatedFraction(rate),
                    limit: if changes.ignores_limits {
                        Limit::Queues
                    } else {
                        self.limit(&fabric.paths[flow as usize])
                    },
                }
            };
            changes.flows.push((flow, allocation));
        }
    }

    /// The longest queue on the path of the data or of their ACKs.
    fn limit(&self, path: &FlowPath) -> Limit {
        let mut longest = (0.0, Limit::Alone);
        let data = path
            .data()
            .iter()
            .map(|link| (self.queues.delay(*link), Limit::Link(*link)));
        let kappa = self.queues.feedback.kappa;
        let acks = path
            .acknowledgements()
            .iter()
            .filter(|link| !path.data().contains(link));
        let acks = acks.map(|link| {
            (
                kappa * self.queues.delay(*link),
                Limit::Acknowledgements(*link),
            )
        });
        for (delay, limit) in data.chain(acks) {
            // If delays differ only by rounding, the first one is reported.
            if delay > longest.0 * (1.0 + 1e-6) {
                longest = (delay, limit);
            }
        }
        longest.1
    }
}
