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
//! The unknowns are `u_l = q_l^(1/max(alpha, 1))`, so that they stay near 1 for any alpha.

use super::fabric::{Allocation, Fabric, Limit, LinkId, Share};
use super::newton::{Complementarity, solve};
use super::{RateModel, SharingError};

/// Parameters of the loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feedback {
    /// Exponent of the fairness; positive.
    pub alpha: f64,
    /// Weight of the delay that acknowledgements meet; not negative.
    pub kappa: f64,
}

/// Largest violation of the conditions that is accepted.
pub const TOLERANCE: f64 = 1e-9;

/// The model; it remembers the delays of the event before, from which the next solution is near.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedLoop {
    feedback: Feedback,
    delays: Vec<f64>,
}

impl ClosedLoop {
    /// With these parameters.
    pub fn new(feedback: Feedback) -> ClosedLoop {
        ClosedLoop { feedback, delays: Vec::new() }
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
        let system = System::new(fabric, group.iter().map(|position| active[*position]).collect(), self.feedback);
        let start: Vec<f64> = system.links.iter().map(|link| self.delays[link.index()]).collect();
        let found = solve(&system, start);
        if found.residual > TOLERANCE {
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

/// The conditions for flows that influence each other.
struct System {
    feedback: Feedback,
    links: Vec<LinkId>,
    capacities: Vec<f64>,
    flows: Vec<Loop>,
}

/// One flow's way through the links of a [`System`].
struct Loop {
    data: Vec<usize>,
    /// Links that delay the flow and the weight of their delay; the data path first.
    delays: Vec<(usize, f64)>,
}

/// A flow's rate, and the part of its delay that each of its links has.
struct LoopState {
    rate: f64,
    largest: f64,
    sum: f64,
}

impl System {
    fn new(fabric: &Fabric, flows: Vec<usize>, feedback: Feedback) -> System {
        let mut links: Vec<LinkId> = flows.iter().flat_map(|flow| fabric.paths[*flow].data()).copied().collect();
        links.sort_unstable();
        links.dedup();
        let place = |link: &LinkId| links.binary_search(link).ok();
        let terms = |flow: &usize| {
            let path = &fabric.paths[*flow];
            let data: Vec<usize> = path.data().iter().filter_map(place).collect();
            let mut delays: Vec<(usize, f64)> = data.iter().map(|link| (*link, 1.0)).collect();
            if feedback.kappa > 0.0 {
                // A link that carries no data has no queue.
                delays.extend(path.acknowledgements().iter().filter_map(place).map(|link| (link, feedback.kappa)));
            }
            Loop { data, delays }
        };
        let flows = flows.iter().map(terms).collect();
        let capacities = links.iter().map(|link| fabric.capacity(*link).0).collect();
        System { feedback, links, capacities, flows }
    }

    fn power(&self) -> f64 {
        self.feedback.alpha.max(1.0)
    }

    /// Scaled by the largest delay, so that nothing overflows for a large alpha.
    fn state(&self, flow: &Loop, unknowns: &[f64]) -> LoopState {
        let largest = flow.delays.iter().map(|(link, _)| unknowns[*link]).fold(0.0, f64::max);
        let power = self.power();
        let part = |(link, weight): &(usize, f64)| weight * (unknowns[*link] / largest).powf(power);
        let sum: f64 = flow.delays.iter().map(part).sum();
        let rate = largest.powf(-power / self.feedback.alpha) * sum.powf(-1.0 / self.feedback.alpha);
        LoopState { rate, largest, sum }
    }

    fn allocation(&self, fabric: &Fabric, index: usize, flow: &Loop, unknowns: &[f64]) -> Allocation {
        let share = self.state(flow, unknowns).rate;
        if share >= fabric.lone_share(&fabric.paths[index]).0 * (1.0 - TOLERANCE) {
            return Allocation { share: fabric.lone_share(&fabric.paths[index]), limit: Limit::Alone };
        }
        let delay = |(link, weight): &(usize, f64)| weight.powf(1.0 / self.power()) * unknowns[*link];
        let mut longest = 0;
        for place in 1..flow.delays.len() {
            if delay(&flow.delays[place]) > delay(&flow.delays[longest]) * (1.0 + 1e-6) {
                longest = place;
            }
        }
        let link = self.links[flow.delays[longest].0];
        let is_data = longest < flow.data.len();
        let limit = if is_data { Limit::Link(link) } else { Limit::Acknowledgements(link) };
        Allocation { share: Share(share), limit }
    }
}

impl Complementarity for System {
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
            for (column, weight) in &flow.delays {
                let derivative = scale * weight * (unknowns[*column] / state.largest).powf(power - 1.0);
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
