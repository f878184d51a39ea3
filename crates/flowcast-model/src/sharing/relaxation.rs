//! The closed loop kept up while flows come and go: the equations of the links are solved one after the other.
//!
//! A change puts the links of one flow out of balance. The delay of each is set to what fills it, or to none, with all
//! others as they are; that moves the rates of its flows, and with them the loads of other links, by less and less the
//! further they are away (nonlinear Gauss-Seidel iteration). Only links whose balance is off by more than a tolerance
//! are visited: a small one for the first links of a change, which grows with the number of visits ([`Patience`]), so that
//! what one flow does to the far side of a large group costs nothing until it adds up.
//!
//! Where all flows of a link have come through the same earlier link that is no wider, they wait there.

use std::collections::VecDeque;

use super::closed_loop::Feedback;
use super::crowd::Crowd;
use super::fabric::{Allocation, Fabric, Limit, LinkId, Share};
use super::filling::{filling_delay, of_pair, rate};
use super::{Changes, fabric::Path};

/// How closely links are balanced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Patience {
    /// Largest part of its capacity by which a link may be off its balance at first.
    pub close: f64,
    /// The same in the end.
    pub far: f64,
    /// Visits after which the tolerance grows.
    pub visits: u32,
    /// Visits that make it ten times as large.
    pub tenfold: f64,
}

impl Patience {
    /// For patterns.
    pub const HIGH: Patience = Patience { close: 1e-9, far: 1e-4, visits: 64, tenfold: 12.0 };
    /// For programs, whose messages come and go by the million.
    pub const LOW: Patience = Patience { close: 1e-5, far: 1e-3, visits: 4, tenfold: 4.0 };
    /// For a start that is near.
    pub const ENDLESS: Patience = Patience { close: 1e-7, far: 1e-7, visits: u32::MAX, tenfold: 1.0 };

    fn tolerance_after(self, visits: u32) -> f64 {
        let beyond = f64::from(visits.saturating_sub(self.visits)) / self.tenfold;
        if beyond < 8.0 { (self.close * 10f64.powf(beyond)).min(self.far) } else { self.far }
    }
}

/// Visits after which there is no hope.
const MOST_VISITS: u32 = 50_000;
/// What is left after so many visits is accepted up to this multiple of the tolerance.
const ROUGH: f64 = 10.0;
/// How far a link goes toward its balance from so many visits on: rings in which each link pushes the next would swing
/// for ever without damping.
const DAMPING: [(u32, f64); 4] = [(64, 0.75), (2_000, 0.5), (8_000, 0.25), (20_000, 0.1)];
/// Relative step, in units of the tolerance, that is the last: Newton's method doubles the digits with each.
const LAST_STEP: f64 = 1e-2;

/// The iteration does not come to rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Restless {
    /// The largest part of its capacity by which a link is off its balance.
    pub imbalance: f64,
}

/// Delays, loads and rates, and which links are out of balance.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Relaxation {
    /// By link: how long data wait.
    delays: Vec<f64>,
    loads: Vec<f64>,
    is_waiting: Vec<bool>,
    /// Links that are visited even if they are in balance.
    is_asked_for: Vec<bool>,
    waiting: VecDeque<LinkId>,
    /// By flow.
    states: Vec<State>,
    moved: Vec<u32>,
}

/// How closely and how boldly a link is visited.
#[derive(Debug, Clone, Copy)]
struct Pace {
    tolerance: f64,
    step: f64,
}

impl Pace {
    /// From a delay towards another; what is next to nothing is nothing.
    fn toward(self, before: f64, after: f64) -> f64 {
        let delay = if self.step == 1.0 { after } else { before + self.step * (after - before) };
        if after == 0.0 && delay < 1e-4 { 0.0 } else { delay }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct State {
    delay: f64,
    rate: f64,
    /// The rate that was told last.
    told: f64,
    has_moved: bool,
}

impl Relaxation {
    /// The queueing delay of each link.
    pub(super) fn delays(&self) -> &[f64] {
        &self.delays
    }

    /// Sets delays found in another way; [`Relaxation::update`] goes on from there.
    pub(super) fn set_delays(&mut self, fabric: &Fabric, crowd: &Crowd, feedback: Feedback, delays: &[(LinkId, f64)]) {
        for (link, delay) in delays {
            self.delays[link.index()] = *delay;
        }
        for (link, _) in delays {
            for flow in crowd.members(*link).iter().chain(crowd.answering(*link)) {
                self.move_flow(fabric, feedback, *flow, f64::INFINITY);
            }
        }
    }

    /// Brings the links that the crowd's changes have touched, and all that feel it, into balance.
    pub(super) fn update(
        &mut self,
        fabric: &Fabric,
        crowd: &Crowd,
        feedback: Feedback,
        patience: Patience,
        changes: &mut Changes,
    ) -> Result<(), Restless> {
        self.take_in(fabric, crowd, feedback);
        let (mut visits, mut tolerance) = (0, patience.close);
        while let Some(link) = self.waiting.pop_front() {
            self.is_waiting[link.index()] = false;
            if !self.needs_visit(fabric, feedback, link, tolerance) {
                continue;
            }
            let pace = Pace { tolerance, step: step_after(visits) };
            self.visit(fabric, crowd, feedback, link, pace);
            visits += 1;
            tolerance = patience.tolerance_after(visits);
            if visits > MOST_VISITS {
                let imbalance = self.waiting.iter().map(|link| self.imbalance(fabric, *link)).fold(0.0, f64::max);
                self.waiting.drain(..).for_each(|link| self.is_waiting[link.index()] = false);
                if imbalance > patience.far * ROUGH {
                    return Err(Restless { imbalance });
                }
            }
        }
        self.tell(fabric, feedback, tolerance, changes);
        Ok(())
    }

    /// Who has come and gone.
    fn take_in(&mut self, fabric: &Fabric, crowd: &Crowd, feedback: Feedback) {
        if self.delays.len() < fabric.link_count() {
            self.delays.resize(fabric.link_count(), 0.0);
            self.loads.resize(fabric.link_count(), 0.0);
            self.is_waiting.resize(fabric.link_count(), false);
            self.is_asked_for.resize(fabric.link_count(), false);
        }
        for flow in crowd.started() {
            let size = self.states.len().max(*flow as usize + 1);
            self.states.resize(size, State::default());
            // Never told, whatever the last flow of this number got.
            self.states[*flow as usize] = State::default();
            self.note(*flow);
        }
        for link in crowd.touched() {
            self.loads[link.index()] = crowd.members(*link).iter().map(|flow| self.states[*flow as usize].rate).sum();
            self.ask_for(*link);
        }
        for flow in crowd.started() {
            let path = &fabric.paths[*flow as usize];
            if crowd.members(path.out()).contains(flow) {
                self.move_flow(fabric, feedback, *flow, f64::INFINITY);
            }
        }
    }

    fn wait(&mut self, link: LinkId) {
        if !std::mem::replace(&mut self.is_waiting[link.index()], true) {
            self.waiting.push_back(link);
        }
    }

    fn ask_for(&mut self, link: LinkId) {
        self.is_asked_for[link.index()] = true;
        self.wait(link);
    }

    /// Whether a link that waited is still out of balance, or the other direction that is visited with it.
    fn needs_visit(&mut self, fabric: &Fabric, feedback: Feedback, link: LinkId, tolerance: f64) -> bool {
        std::mem::take(&mut self.is_asked_for[link.index()])
            || self.imbalance(fabric, link) > tolerance
            || feedback.kappa > 0.0 && self.imbalance(fabric, fabric.opposite(link)) > tolerance
    }

    fn note(&mut self, flow: u32) {
        if !std::mem::replace(&mut self.states[flow as usize].has_moved, true) {
            self.moved.push(flow);
        }
    }

    fn visit(&mut self, fabric: &Fabric, crowd: &Crowd, feedback: Feedback, link: LinkId, pace: Pace) {
        if feedback.kappa > 0.0 && fabric.answers_come_back(link) {
            return self.visit_pair(fabric, crowd, feedback, LinkId(link.0 & !1), pace);
        }
        let own = self.delays[link.index()];
        let delay = pace.toward(own, self.filling_delay(fabric, crowd, feedback, link, (own, pace)));
        if std::mem::replace(&mut self.delays[link.index()], delay) == delay {
            return;
        }
        for flow in crowd.members(link) {
            self.move_flow(fabric, feedback, *flow, pace.tolerance);
        }
        if feedback.kappa > 0.0 {
            for flow in crowd.answering(link) {
                self.move_flow(fabric, feedback, *flow, pace.tolerance);
            }
        }
        self.come_again(fabric, link, pace);
    }

    /// After a damped visit a link may be out of balance although no rate has moved.
    fn come_again(&mut self, fabric: &Fabric, link: LinkId, pace: Pace) {
        if self.imbalance(fabric, link) > pace.tolerance {
            self.wait(link);
        }
    }

    /// Both directions of a node, or of a rack, at once: what goes out is answered by what comes in, so that flows out feel
    /// `x = q_out + kappa * q_in` and flows in `y = q_in + kappa * q_out`. One after the other they would push each
    /// other away in ever so many steps.
    fn visit_pair(&mut self, fabric: &Fabric, crowd: &Crowd, feedback: Feedback, out: LinkId, pace: Pace) {
        let (into, kappa) = (fabric.opposite(out), feedback.kappa);
        let before = (self.delays[out.index()], self.delays[into.index()]);
        let x = self.filling_delay(fabric, crowd, feedback, out, (before.0 + kappa * before.1, pace));
        let y = self.filling_delay(fabric, crowd, feedback, into, (before.1 + kappa * before.0, pace));
        let delays = of_pair(x, y, kappa);
        let delays = (pace.toward(before.0, delays.0), pace.toward(before.1, delays.1));
        (self.delays[out.index()], self.delays[into.index()]) = delays;
        if delays == before {
            return;
        }
        for flow in crowd.members(out).iter().chain(crowd.members(into)) {
            self.move_flow(fabric, feedback, *flow, pace.tolerance);
        }
        self.come_again(fabric, out, pace);
        self.come_again(fabric, into, pace);
    }

    /// A flow's rate from the delays as they are; links that get out of balance have to wait.
    fn move_flow(&mut self, fabric: &Fabric, feedback: Feedback, flow: u32, tolerance: f64) {
        let path = &fabric.paths[flow as usize];
        let delay = self.delay_of(path, feedback);
        let rate = rate(delay, feedback);
        let has_rate = rate.is_finite();
        if !has_rate {
            // It weighs nothing until one of its links has a delay for it.
            path.data().iter().for_each(|link| self.ask_for(*link));
        }
        let rate = if has_rate { rate } else { 0.0 };
        let state = &mut self.states[flow as usize];
        let change = rate - state.rate;
        (state.delay, state.rate) = (delay, rate);
        if change == 0.0 {
            return;
        }
        self.note(flow);
        for link in path.data() {
            self.loads[link.index()] += change;
            if self.imbalance(fabric, *link) > tolerance {
                self.wait(*link);
            }
        }
    }

    fn delay_of(&self, path: &Path, feedback: Feedback) -> f64 {
        let sum = |links: &[LinkId]| links.iter().map(|link| self.delays[link.index()]).sum::<f64>();
        let data = sum(path.data());
        if feedback.kappa > 0.0 { data + feedback.kappa * sum(path.acknowledgements()) } else { data }
    }

    fn imbalance(&self, fabric: &Fabric, link: LinkId) -> f64 {
        let excess = self.loads[link.index()] / fabric.capacity(link).0 - 1.0;
        if self.delays[link.index()] > 0.0 { excess.abs() } else { excess }
    }

    /// The delay that fills a link while all others stay as they are; none if its flows cannot fill it, or wait before.
    /// Of the delays of its flows `own` is the part in question.
    fn filling_delay(
        &self,
        fabric: &Fabric,
        crowd: &Crowd,
        feedback: Feedback,
        link: LinkId,
        (own, pace): (f64, Pace),
    ) -> f64 {
        let (capacity, members) = (fabric.capacity(link).0, crowd.members(link));
        if capacity == f64::INFINITY || is_served_before(fabric, crowd, link) {
            return 0.0;
        }
        let elsewhere = |flow: &u32| (self.states[*flow as usize].delay - own).max(0.0);
        filling_delay(members.iter().map(elsewhere), capacity, feedback, (own, LAST_STEP * pace.tolerance))
    }

    /// Tells the rates that are not what they were.
    fn tell(&mut self, fabric: &Fabric, feedback: Feedback, tolerance: f64, changes: &mut Changes) {
        while let Some(flow) = self.moved.pop() {
            let state = &mut self.states[flow as usize];
            state.has_moved = false;
            if (state.rate - state.told).abs() > tolerance * state.rate {
                state.told = state.rate;
                changes.push((flow, self.allocation(fabric, feedback, flow as usize, tolerance)));
            }
        }
    }

    fn allocation(&self, fabric: &Fabric, feedback: Feedback, flow: usize, tolerance: f64) -> Allocation {
        let path = &fabric.paths[flow];
        let (share, alone) = (self.states[flow].rate, fabric.lone_share(path));
        if share >= alone.0 * (1.0 - tolerance) {
            return Allocation { share: alone, limit: Limit::Alone };
        }
        let mut longest = (0.0, Limit::Alone);
        let mut weigh = |links: &[LinkId], weight: f64, limit: fn(LinkId) -> Limit| {
            for link in links {
                let delay = weight * self.delays[link.index()];
                // Of delays that differ by rounding the first is named.
                if delay > longest.0 * (1.0 + 1e-6) {
                    longest = (delay, limit(*link));
                }
            }
        };
        weigh(path.data(), 1.0, Limit::Link);
        weigh(path.acknowledgements(), feedback.kappa, Limit::Acknowledgements);
        Allocation { share: Share(share), limit: longest.1 }
    }
}

fn step_after(visits: u32) -> f64 {
    DAMPING.iter().rev().find(|(from, _)| visits >= *from).map_or(1.0, |(_, step)| *step)
}

/// Whether all flows of a link have come through one earlier link that is no wider: then none of them waits here.
fn is_served_before(fabric: &Fabric, crowd: &Crowd, link: LinkId) -> bool {
    let [first, others @ ..] = crowd.members(link) else { return true };
    let path = |flow: &u32| &fabric.paths[*flow as usize];
    let mut earlier = path(first).data_in_order().take_while(|earlier| *earlier != link);
    earlier.any(|earlier| {
        fabric.capacity(earlier) <= fabric.capacity(link)
            && others.iter().all(|flow| path(flow).data().contains(&earlier))
    })
}
