//! Closed-loop sharing: flows with equal windows whose data and acknowledgements wait in the links' queues.
//!
//! Steady rates `r_i`, in units where a flow alone runs at 1, and queueing delays `q_l >= 0` of the links satisfy
//!
//! `r_i = (sum of q_l over the data path + kappa * sum of q_l over the acknowledgement path)^(-1/alpha)`,
//! `load_l = sum of r_i over the flows through l <= C_l`, and `q_l > 0` only where `load_l = C_l`.
//!
//! `alpha = 1, kappa = 0` is proportional fairness, `alpha` to infinity max-min; `alpha = 1, kappa = 1` is TCP with a
//! fixed window through lossless queues, and gives two flows in and one out of a node one half each. Zig-zags of
//! three measure alpha (end : middle = `2^(1/alpha)`), two-in-one-out kappa.
//!
//! With kappa > 0 the conditions leave open which of several saturated links on a path holds the queue, and the rates of
//! others depend on it. Data wait at the first of them, and that solution is taken.
//!
//! The unknowns are `u_l = q_l^(1/max(alpha, 1))`, so that they stay near 1 for any alpha.

use std::collections::BTreeMap;

use super::crowd::{Crowd, Reach};
use super::fabric::{Allocation, Fabric, Limit, LinkId, Share};
use super::newton::{Complementarity, Iterate, solve};
use super::relaxation::{Patience, Relaxation, Restless};
use super::{Changes, RateModel, SharingError};

/// Parameters of the loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feedback {
    /// Exponent of the fairness; positive.
    pub alpha: f64,
    /// Weight of the delay that acknowledgements meet; not negative.
    pub kappa: f64,
}

/// How much more each link of a path carries than the one before it, on the way to the exact capacities.
const LEANS: [f64; 2] = [1e-2, 1e-3];

/// Steps in which hard cases are approached, one try after the other.
const APPROACHES: [u32; 2] = [7, 20];

/// Largest alpha for which delays, which go with the power alpha of the inverse rates, are kept as such.
pub(super) const STEEPEST: f64 = 8.0;

/// Most flows that are solved at once; of larger sets of flows the relaxation keeps the solution up.
const LARGE: usize = 400;

/// How near to its capacity a full link is.
const FULL: f64 = 1e-6;

/// Tries from scattered starts after that.
const RESTARTS: u32 = 20;

/// Violation of the conditions below which no better solution is looked for.
pub const TOLERANCE: f64 = 1e-9;

/// Largest violation of the conditions that is accepted.
pub const ACCEPTED: f64 = 1e-6;

/// The model; it remembers the delays of the event before, from which the next solution is near.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedLoop {
    feedback: Feedback,
    delays: Vec<f64>,
    relaxation: Relaxation,
    patience: Patience,
    /// Whether the relaxation keeps the solution up; decided at the first change.
    is_large: Option<bool>,
}

impl ClosedLoop {
    /// With these parameters.
    pub fn new(feedback: Feedback) -> ClosedLoop {
        let (patience, relaxation) = (Patience::HIGH, Relaxation::default());
        ClosedLoop { feedback, delays: Vec::new(), relaxation, patience, is_large: None }
    }

    /// With these parameters, for the messages of a program: kept up by the relaxation from the first one on, and less
    /// closely.
    pub fn following(feedback: Feedback) -> ClosedLoop {
        let is_large = Some(feedback.alpha <= STEEPEST);
        ClosedLoop { patience: Patience::LOW, is_large, ..ClosedLoop::new(feedback) }
    }

    /// The queueing delay of each link as [`RateModel::update`] keeps it, in units of a lone flow's round trip.
    pub fn kept_delays(&self) -> &[f64] {
        self.relaxation.delays()
    }

    /// The queueing delay of each link in the last solution, in units of a lone flow's round trip.
    pub fn delays(&self) -> Vec<f64> {
        self.delays.iter().map(|delay| delay.powf(self.feedback.alpha.max(1.0))).collect()
    }
}

impl RateModel for ClosedLoop {
    fn shares(&mut self, fabric: &Fabric, active: &[usize]) -> Result<Vec<Allocation>, SharingError> {
        self.delays.resize(fabric.link_count(), 0.0);
        let mut shares = vec![Allocation { share: Share::WHOLE, limit: Limit::Alone }; active.len()];
        let counts = fabric.flows_per_link(active);
        for (link, count) in counts.iter().enumerate() {
            // The first guess for a link without a past: each of its flows gets an equal part.
            self.delays[link] = match (*count, self.delays[link]) {
                (0, _) => 0.0,
                (flows, 0.0) if flows > 1 => f64::from(flows) / fabric.capacity(LinkId(link as u32)).0,
                (_, delay) => delay,
            };
        }
        for group in connected_groups(fabric, active, self.feedback, &counts) {
            self.solve_group(fabric, active, &group, &mut shares)?;
        }
        Ok(shares)
    }

    fn reach(&self) -> Reach {
        Reach::Queues
    }

    fn update(&mut self, fabric: &Fabric, crowd: &mut Crowd, changes: &mut Changes) -> Result<(), SharingError> {
        let large = *self.is_large.get_or_insert(fabric.paths.len() > LARGE && self.feedback.alpha <= STEEPEST);
        if !large {
            for group in crowd.reached(fabric, self.reach()) {
                let allocations = self.shares(fabric, &group)?;
                changes.extend(group.iter().map(|flow| *flow as u32).zip(allocations));
            }
            return Ok(());
        }
        if let Err(Restless { imbalance }) =
            self.relaxation.update(fabric, crowd, self.feedback, self.patience, changes)
        {
            let delays = self.update_groups(fabric, crowd, imbalance, changes)?;
            self.relaxation.set_delays(fabric, crowd, self.feedback, &delays);
        }
        Ok(())
    }
}

impl ClosedLoop {
    /// Solves whole groups of flows that influence each other; the delays of their links.
    fn update_groups(
        &mut self,
        fabric: &Fabric,
        crowd: &mut Crowd,
        residual: f64,
        changes: &mut Changes,
    ) -> Result<Vec<(LinkId, f64)>, SharingError> {
        let mut kept = Vec::new();
        for group in crowd.reached(fabric, Reach::Queues) {
            if group.len() > LARGE {
                return Err(SharingError::Unsettled { flows: group.len(), residual });
            }
            let mut solver = ClosedLoop::new(self.feedback);
            let allocations = solver.shares(fabric, &group)?;
            let delays = solver.delays();
            let mut loads = BTreeMap::new();
            for (flow, allocation) in group.iter().zip(&allocations) {
                fabric.paths[*flow]
                    .data()
                    .iter()
                    .for_each(|link| *loads.entry(*link).or_insert(0.0) += allocation.share.0);
            }
            // The solver leaves a little delay on links that are not full.
            let is_full = |link: LinkId, load: f64| load >= fabric.capacity(link).0 * (1.0 - FULL);
            let delay =
                |(link, load): (LinkId, f64)| (link, if is_full(link, load) { delays[link.index()] } else { 0.0 });
            kept.extend(loads.into_iter().map(delay));
            changes.extend(group.iter().map(|flow| *flow as u32).zip(allocations));
        }
        Ok(kept)
    }
}

impl ClosedLoop {
    fn solve_group(
        &mut self,
        fabric: &Fabric,
        active: &[usize],
        group: &[usize],
        shares: &mut [Allocation],
    ) -> Result<(), SharingError> {
        if let [position] = *group {
            shares[position].share = fabric.lone_share(&fabric.paths[active[position]]);
            return Ok(());
        }
        let mut system = System::new(fabric, group.iter().map(|position| active[*position]).collect(), self.feedback);
        let start: Vec<f64> = system.links.iter().map(|link| self.delays[link.index()]).collect();
        let found = system.solve_leaning(start);
        if found.residual > ACCEPTED {
            return Err(SharingError::Unsettled { flows: group.len(), residual: found.residual });
        }
        for (link, delay) in system.links.iter().zip(&found.unknowns) {
            self.delays[link.index()] = *delay;
        }
        for (position, flow) in group.iter().zip(&system.flows) {
            shares[*position] = system.allocation(fabric, active[*position], flow, &found.unknowns);
        }
        Ok(())
    }
}

/// Comes to the parameters in steps from alpha = 1, kappa = 0, where the conditions are those of a convex problem; each
/// solution is the start for the next.
fn approach(system: &mut System<'_>, steps: u32) -> Iterate {
    let target = system.feedback;
    let mut found = Iterate { unknowns: vec![1.0; system.links.len()], residual: f64::INFINITY };
    let mut alpha = 1.0f64;
    for step in 0..=steps {
        let part = f64::from(step) / f64::from(steps);
        system.feedback = Feedback { alpha: target.alpha.powf(part), kappa: target.kappa * part };
        // Below alpha = 1 the unknowns are delays, which go with the power alpha of the inverse rates.
        let power = system.feedback.alpha.min(1.0) / alpha.min(1.0);
        alpha = system.feedback.alpha;
        found = solve(system, found.unknowns.iter().map(|unknown| unknown.powf(power)).collect());
    }
    system.feedback = target;
    found
}

/// A start that differs from try to try: multiples of the golden ratio modulo 1, from 0.1 to 10.
fn scattered(unknowns: usize, restart: u32) -> Vec<f64> {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let place = |unknown: usize| (unknown as f64 * GOLDEN * f64::from(restart)).fract();
    (1..=unknowns).map(|unknown| 10f64.powf(2.0 * place(unknown) - 1.0)).collect()
}

/// The conditions for flows that influence each other.
struct System<'a> {
    fabric: &'a Fabric,
    /// The flows' numbers in the fabric.
    members: Vec<usize>,
    feedback: Feedback,
    links: Vec<LinkId>,
    capacities: Vec<f64>,
    /// How far along a path each link stands.
    places: Vec<f64>,
    flows: Vec<Loop>,
}

/// One flow's way through the links of a [`System`].
struct Loop {
    data: Vec<usize>,
    acknowledgements: Vec<usize>,
}

/// A flow's rate, and the part of its delay that each of its links has.
struct LoopState {
    rate: f64,
    largest: f64,
    sum: f64,
}

impl<'a> System<'a> {
    fn new(fabric: &'a Fabric, members: Vec<usize>, feedback: Feedback) -> System<'a> {
        let mut links: Vec<LinkId> = members.iter().flat_map(|flow| fabric.paths[*flow].data()).copied().collect();
        links.sort_unstable();
        links.dedup();
        let place = |link: &LinkId| links.binary_search(link).ok();
        let terms = |flow: &usize| {
            let path = &fabric.paths[*flow];
            // A link that carries no data has no queue, and no place here.
            let places = |links: &[LinkId]| links.iter().filter_map(place).collect();
            Loop { data: places(path.data()), acknowledgements: places(path.acknowledgements()) }
        };
        let flows = members.iter().map(terms).collect();
        let capacities = links.iter().map(|link| fabric.capacity(*link).0).collect();
        let place = |link: &LinkId| f64::from(fabric.place(*link));
        let places = links.iter().map(place).collect();
        System { fabric, members, feedback, links, capacities, places, flows }
    }

    /// With kappa > 0 the rates depend on which of a path's saturated links holds the queue, and the conditions leave
    /// that open. Data wait at the first: the solution is followed from capacities that grow along the path to the
    /// exact ones.
    fn solve_leaning(&mut self, start: Vec<f64>) -> Iterate {
        let exact = self.capacities.clone();
        let mut unknowns = start;
        if self.feedback.kappa > 0.0 {
            for lean in LEANS {
                let leaning = exact.iter().zip(&self.places).map(|(capacity, place)| capacity * (1.0 + lean * place));
                self.capacities = leaning.collect();
                unknowns = self.solve_hard(unknowns).unknowns;
            }
            self.capacities = exact;
        }
        self.solve_hard(unknowns)
    }

    fn solve_hard(&mut self, start: Vec<f64>) -> Iterate {
        let mut found = solve(self, start);
        if found.residual > TOLERANCE && self.feedback.alpha <= STEEPEST {
            found = solve(self, self.relaxed());
        }
        for steps in APPROACHES {
            if found.residual > TOLERANCE {
                found = approach(self, steps);
            }
        }
        for restart in 1..=RESTARTS {
            if found.residual > TOLERANCE {
                found = solve(self, scattered(self.links.len(), restart));
            }
        }
        found
    }

    /// What the relaxation comes to; it knows nothing of capacities that lean.
    fn relaxed(&self) -> Vec<f64> {
        let mut crowd = Crowd::new(self.fabric.link_count());
        for flow in &self.members {
            crowd.insert(*flow as u32, &self.fabric.paths[*flow]);
        }
        let mut relaxation = Relaxation::default();
        // Delays that have not come to rest are a start all the same.
        let _ = relaxation.update(self.fabric, &crowd, self.feedback, Patience::ENDLESS, &mut Changes::new());
        let unknown = |link: &LinkId| relaxation.delays()[link.index()].powf(1.0 / self.power());
        self.links.iter().map(unknown).collect()
    }

    fn power(&self) -> f64 {
        self.feedback.alpha.max(1.0)
    }

    /// Links that delay the flow and the weight of their delay; the data path first.
    fn delays(&self, flow: &Loop) -> impl Iterator<Item = (usize, f64)> {
        let data = flow.data.iter().map(|link| (*link, 1.0));
        data.chain(flow.acknowledgements.iter().map(|link| (*link, self.feedback.kappa)))
    }

    /// Scaled by the largest delay, so that nothing overflows for a large alpha.
    fn state(&self, flow: &Loop, unknowns: &[f64]) -> LoopState {
        let delaying = self.delays(flow).filter(|(_, weight)| *weight > 0.0);
        let largest = delaying.map(|(link, _)| unknowns[link]).fold(0.0, f64::max);
        let power = self.power();
        let part = |(link, weight): (usize, f64)| weight * (unknowns[link] / largest).powf(power);
        let sum: f64 = self.delays(flow).filter(|(_, weight)| *weight > 0.0).map(part).sum();
        let rate = largest.powf(-power / self.feedback.alpha) * sum.powf(-1.0 / self.feedback.alpha);
        LoopState { rate, largest, sum }
    }

    fn allocation(&self, fabric: &Fabric, index: usize, flow: &Loop, unknowns: &[f64]) -> Allocation {
        let share = self.state(flow, unknowns).rate;
        if share >= fabric.lone_share(&fabric.paths[index]).0 * (1.0 - TOLERANCE) {
            return Allocation { share: fabric.lone_share(&fabric.paths[index]), limit: Limit::Alone };
        }
        let mut longest = (0.0, Limit::Alone);
        for (place, (link, weight)) in self.delays(flow).enumerate() {
            let delay = weight.powf(1.0 / self.power()) * unknowns[link];
            // Of delays that differ by the solver's rounding the first is named.
            if delay > longest.0 * (1.0 + 1e-6) {
                let (link, is_data) = (self.links[link], place < flow.data.len());
                longest = (delay, if is_data { Limit::Link(link) } else { Limit::Acknowledgements(link) });
            }
        }
        Allocation { share: Share(share), limit: longest.1 }
    }
}

impl Complementarity for System<'_> {
    fn len(&self) -> usize {
        self.links.len()
    }

    fn slack(&self, unknowns: &[f64]) -> Option<Vec<f64>> {
        let mut slack = vec![1.0; self.links.len()];
        for flow in &self.flows {
            let rate = self.state(flow, unknowns).rate;
            if !rate.is_finite() {
                return None;
            }
            for link in &flow.data {
                slack[*link] -= rate / self.capacities[*link];
            }
        }
        Some(slack)
    }

    fn jacobian(&self, unknowns: &[f64]) -> Vec<f64> {
        let size = self.links.len();
        let power = self.power();
        let mut jacobian = vec![0.0; size * size];
        for flow in &self.flows {
            let state = self.state(flow, unknowns);
            let scale = power / self.feedback.alpha * state.rate / (state.sum * state.largest);
            for (column, weight) in self.delays(flow).filter(|(_, weight)| *weight > 0.0) {
                let derivative = scale * weight * (unknowns[column] / state.largest).powf(power - 1.0);
                for row in &flow.data {
                    jacobian[row * size + column] += derivative / self.capacities[*row];
                }
            }
        }
        jacobian
    }

    fn damping(&self) -> f64 {
        0.7 * self.feedback.alpha.min(1.0) / (1.0 + self.feedback.kappa / 2.0)
    }
}

/// Positions of flows that influence each other, directly or through others.
fn connected_groups(fabric: &Fabric, active: &[usize], feedback: Feedback, counts: &[u32]) -> Vec<Vec<usize>> {
    let mut groups = Groups { parents: (0..fabric.link_count()).collect() };
    for flow in active {
        let path = &fabric.paths[*flow];
        let first = path.out().index();
        path.data().iter().for_each(|link| groups.join(first, link.index()));
        if feedback.kappa > 0.0 {
            let queues = path.acknowledgements().iter().filter(|link| counts[link.index()] > 0);
            queues.for_each(|link| groups.join(first, link.index()));
        }
    }
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); fabric.link_count()];
    for (position, flow) in active.iter().enumerate() {
        members[groups.root(fabric.paths[*flow].out().index())].push(position);
    }
    members.retain(|group| !group.is_empty());
    members
}

struct Groups {
    parents: Vec<usize>,
}

impl Groups {
    fn root(&mut self, mut link: usize) -> usize {
        while self.parents[link] != link {
            self.parents[link] = self.parents[self.parents[link]];
            link = self.parents[link];
        }
        link
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one.max(other)] = one.min(other);
    }
}
