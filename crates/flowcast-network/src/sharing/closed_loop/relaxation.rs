//! The steady rates of the closed loop, found link by link (nonlinear Gauss-Seidel relaxation).
//!
//! The delay of one link is set to what fills it, or to 0 if its flows cannot fill it, while all other delays stay as they
//! are. That changes the rates of its flows, and with them the loads of other links, which are visited next, until no
//! link is further from its balance than a tolerance ([`StopRule`]). For kappa = 0 each visit maximises the dual of the
//! network utility `sum of r^(1-alpha)/(1-alpha)` along one coordinate (Kelly, Maulloo and Tan, 1998; Mo and Walrand,
//! 2000), so the visits converge for every alpha. For kappa > 0 there is no such function, and rings in which each link
//! moves the next may oscillate. So after some visits each link adapts its step: shorter where its delay swings to and fro,
//! longer than the way to its balance (over-relaxation) where it creeps.
//!
//! When a flow starts or ends, the solution before is the start, and only the links of its path are visited at first: the
//! cost depends on how far the change is felt and not on the number of flows.
//!
//! A link whose flows have all come through the same earlier link that is no wider has no queue.

use std::collections::VecDeque;

use super::{Feedback, queues::Queues};
use crate::sharing::{
    Changes,
    active_flows::ActiveFlows,
    fabric::{AllocatedFraction, Allocation, Fabric, FlowPath, Limit, LinkId},
};

/// How closely links are balanced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sharing) struct StopRule {
    /// Largest part of its capacity by which a link may be off its balance at first.
    pub close: f64,
    /// The same in the end.
    pub far: f64,
    /// Visits after which the tolerance grows.
    pub visits: u32,
    /// Visits that make it ten times as large.
    pub tenfold: f64,
    /// The longest step of a link, as a part of the way to its balance.
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
    /// The same where that does not converge.
    pub(in crate::sharing) const CAUTIOUS: StopRule = StopRule {
        far: 1e-6,
        boldness: 0.3,
        ..StopRule::EXACT
    };
    /// For patterns of many flows, whose ends it tells to about 1e-4.
    pub(in crate::sharing) const HIGH: StopRule = StopRule {
        close: 1e-5,
        far: 3e-4,
        visits: 4,
        tenfold: 4.0,
        boldness: 1.5,
    };
    /// For programs, whose messages start and end by the million.
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

/// Visits after which the relaxation gives up.
const MOST_VISITS: u32 = 50_000;
/// What is left after so many visits is accepted up to this multiple of the tolerance.
const ROUGH: f64 = 10.0;
/// Visits from which on links adapt their steps.
const ADAPT_FROM: u32 = 64;
/// A step after one in the opposite direction, and after one in the same, as a multiple of the one before.
const SHORTER: f64 = 0.7;
const LONGER: f64 = 1.05;
/// The least step, as a part of the way to the balance.
const LEAST_STEP: f64 = 0.02;
/// Rates that differ by this part are the same.
const SAME: f64 = 1e-9;
/// Relative step, in units of the tolerance, that is the last: Newton's method doubles the digits with each.
const LAST_STEP: f64 = 1e-2;
/// No flow is faster than its node's interface once links are balanced. Larger rates on the way there would cost the sums
/// of rates their digits.
const FASTEST: f64 = 2.0;

/// The relaxation does not converge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sharing) struct Restless {
    /// The largest part of its capacity by which a link is off its balance.
    pub imbalance: f64,
}

/// Delays, loads and rates, and which links are out of balance.
#[derive(Debug, Clone)]
pub(in crate::sharing) struct Relaxation {
    queues: Queues,
    /// By link: the sum of its flows' rates.
    loads: Vec<f64>,
    is_waiting: Vec<bool>,
    /// Links that are visited even if they are in balance.
    is_asked_for: Vec<bool>,
    waiting: VecDeque<LinkId>,
    /// By link, or by the first of a pair.
    steps: Vec<RelaxationStep>,
    /// Links whose steps are not those at the start.
    adapted: Vec<LinkId>,
    /// By flow.
    states: Vec<RelaxationState>,
    /// The delays of a link's flows on all others.
    elsewhere: Vec<f64>,
    moved: Vec<u32>,
}

/// How closely a link is balanced, and its longest step once steps adapt.
#[derive(Debug, Clone, Copy)]
struct RelaxationPace {
    tolerance: f64,
    boldness: Option<f64>,
}

/// Which part of the way to its balance a link goes, and where the last step went.
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

    /// From a delay towards another; a delay that vanishes step by step becomes 0 in the end.
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
    /// The rate in the last changes.
    notified: f64,
    /// The links of its path at its nodes, and whether there are others.
    out: LinkId,
    into: LinkId,
    has_inner_links: bool,
    /// Its uncontended rate.
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
    /// Empty queues.
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

    /// Balances the links that the flows' changes have touched, and all links that these affect; adds the flows whose
    /// rates have changed to `changes`.
    pub(in crate::sharing) fn update(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        stop: StopRule,
        changes: &mut Changes,
    ) -> Result<(), Restless> {
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
                    return Err(Restless { imbalance });
                }
            }
        }
        self.collect_changes(fabric, tolerance, changes);
        Ok(())
    }

    /// As [`Relaxation::update`], where that has failed: from all links on, with shorter steps, by which rings of links that
    /// swing about their balance come to rest.
    pub(super) fn update_with_care(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        stop: StopRule,
        changes: &mut Changes,
    ) -> Result<(), Restless> {
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

    /// Which flows have started and ended.
    fn take_in(&mut self, fabric: &Fabric, active_flows: &ActiveFlows) {
        for flow in active_flows.started() {
            // Indices are used again: the last flow of this one counts no more.
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

    /// Whether a link that waited is still out of balance, or the opposite that is visited with it.
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

    /// The step of a link that is so far from its balance.
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

    /// After a shorter step a link may be out of balance although no rate has moved.
    fn come_again(&mut self, link: LinkId, pace: RelaxationPace) {
        if self.imbalance(link) > pace.tolerance {
            self.wait(link);
        }
    }

    /// Sets a flow's rate to what the delays say; links that get out of balance are visited later.
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

    /// The delay that fills a link while all others stay as they are.
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

    /// Whether all flows of a link have come through one earlier link that is no wider: then none of them waits here.
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

    /// The rates that differ from those in earlier changes.
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

    /// The longest queue on the way of the data or of their ACKs.
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
            // Of delays that differ by rounding the first is named.
            if delay > longest.0 * (1.0 + 1e-6) {
                longest = (delay, limit);
            }
        }
        longest.1
    }
}
