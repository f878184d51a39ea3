//! Quasi-dynamic queues: the closed loop for programs, with millions of messages that start and end.
//!
//! For kappa > 0 the conditions of the steady rates ([`closed_loop`](super::closed_loop)) may have several solutions. A
//! replay that solved them at each event would depend on the method and precision of the solver. Here the past decides, as
//! in real queues. Let `F_l(q)` be the delay that fills link `l` while all others are fixed, and 0 if its flows cannot fill
//! it.
//!
//! - When flows start or end, the links of their paths get the delay that fills them, in two turns, with links out of
//!   sources before links into destinations (`fit`). Flows that share a link with them adapt immediately.
//! - Between events all links approach their balance, `dq_l/dt = (F_l(q) - q_l) / lag` (`approach`), with one step of
//!   Newton's method for `F_l(q) - q_l`.
//!
//! A flow's rate is `(sum of q over data + kappa * sum of q over ACKs)^(-1/alpha)`. A state at rest satisfies the
//! conditions. For the two directions of a node or rack, `F` is solved for both together (`Queues::split`).
//!
//! Without racks and for kappa <= 1, `F` does not increase differences of delays. A change in the delay that data see at one
//! node changes the delay at another node by the share of the other's load that belongs to the shared flows, and these
//! shares add up to at most 1. The steps therefore do not increase differences either, and their errors do not grow.

use super::{
    active_flows::ActiveFlows,
    closed_loop::{Feedback, queues::Queues},
    fabric::{Fabric, FlowPath, LinkId},
};

/// Number of turns in which the links of a change are filled.
const TURNS: u32 = 2;
/// Relative step after which Newton's method stops for a filled link; each step doubles the number of correct digits.
const LAST_STEP: f64 = 1e-6;
/// Largest alpha for which the steps can follow the delays, which grow with the power alpha of the inverse rates.
pub(super) const STEEPEST: f64 = 8.0;
/// Minimum delay of a flow.
const SHORTEST: f64 = 1e-6;
/// Largest distance from balance at which a link counts as at rest.
const REST: f64 = 1e-10;

/// The queues, and the links of the flows.
#[derive(Debug, Clone)]
pub struct QuasiDynamicQueues {
    queues: Queues,
    /// Links of each flow at its two nodes, indexed by flow.
    ends: Vec<FlowEnds>,
    /// Indexed by link: sum of the rates, and sum of each rate divided by the flow's delay.
    loads: Vec<(f64, f64)>,
    loaded: Vec<LinkId>,
    elsewhere: Vec<f64>,
    touched: Vec<LinkId>,
}

/// Out link and in link of a flow, and a flag for further links.
#[derive(Debug, Clone, Copy, Default)]
struct FlowEnds {
    out: u32,
    into: u32,
    is_longer: bool,
}

impl QuasiDynamicQueues {
    /// Creates empty queues for all links of the fabric.
    pub fn new(fabric: &Fabric, feedback: Feedback) -> QuasiDynamicQueues {
        QuasiDynamicQueues {
            queues: Queues::new(fabric, feedback),
            ends: Vec::new(),
            loads: vec![(0.0, 0.0); fabric.link_count()],
            loaded: Vec::new(),
            elsewhere: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Registers a flow that starts; [`QuasiDynamicQueues::fit`] must follow.
    pub fn enter(&mut self, flow: u32, path: &FlowPath) {
        if self.ends.len() <= flow as usize {
            self.ends.resize(flow as usize + 1, FlowEnds::default());
        }
        let ends = FlowEnds {
            out: path.out().0,
            into: path.into().0,
            is_longer: path.is_between_racks(),
        };
        self.ends[flow as usize] = ends;
    }

    /// Rate of a flow in units of a node's interface, at most its rate without contention.
    pub fn share(&self, fabric: &Fabric, flow: u32) -> f64 {
        let ends = self.ends[flow as usize];
        if ends.is_longer {
            return self.share_between_racks(fabric, flow);
        }
        self.queues.rate(self.delay_of_nodes(ends)).min(1.0)
    }

    /// Share of a flow over more links than those of its nodes. It is a separate function, so that the share of other flows
    /// needs no saved registers.
    #[cold]
    fn share_between_racks(&self, fabric: &Fabric, flow: u32) -> f64 {
        let share = self.queues.rate(self.delay(fabric, flow));
        share.min(fabric.uncontended_share(&fabric.paths[flow as usize]).0)
    }

    /// Delay of each link.
    pub fn delays(&self) -> &[f64] {
        self.queues.delays()
    }

    /// Fills the links of the flows that have started or ended.
    pub fn fit(&mut self, fabric: &Fabric, active_flows: &ActiveFlows) {
        // Links are filled one after the other. They are sorted so that the result does not depend on which flow started
        // first at this instant.
        let mut links = std::mem::take(&mut self.touched);
        links.clear();
        links.extend_from_slice(active_flows.touched());
        links.sort_unstable_by_key(|link| (!fabric.is_of_node(*link), link.0 % 2, *link));
        for _ in 0..TURNS {
            for link in &links {
                self.fill(fabric, active_flows, *link);
            }
        }
        self.touched = links;
    }

    /// Moves all links by the fraction `part` of the distance to their balance. Returns `true` if they were at rest.
    pub fn approach(&mut self, fabric: &Fabric, flows: &[u32], part: f64) -> bool {
        for flow in flows {
            self.weigh(fabric, *flow);
        }
        let mut furthest = 0f64;
        let mut loaded = std::mem::take(&mut self.loaded);
        for link in &loaded {
            furthest = furthest.max(self.go(fabric, *link, part));
        }
        for link in loaded.drain(..) {
            self.loads[link.index()] = (0.0, 0.0);
        }
        self.loaded = loaded;
        furthest <= REST
    }

    #[inline(always)]
    fn delay(&self, fabric: &Fabric, flow: u32) -> f64 {
        let ends = self.ends[flow as usize];
        let delay = self.delay_of_nodes(ends);
        if ends.is_longer {
            delay + self.queues.inner_delay(&fabric.paths[flow as usize])
        } else {
            delay
        }
    }

    /// Delay of the links of a flow's two nodes.
    fn delay_of_nodes(&self, ends: FlowEnds) -> f64 {
        self.queues.seen(LinkId(ends.out)) + self.queues.seen(LinkId(ends.into))
    }

    fn weigh(&mut self, fabric: &Fabric, flow: u32) {
        let delay = self.delay(fabric, flow).max(SHORTEST);
        let rate = self.queues.rate(delay);
        let (ends, slope) = (self.ends[flow as usize], rate / delay);
        self.add(LinkId(ends.out), rate, slope);
        self.add(LinkId(ends.into), rate, slope);
        if ends.is_longer {
            for link in &fabric.paths[flow as usize].data()[2..] {
                self.add(*link, rate, slope);
            }
        }
    }

    fn add(&mut self, link: LinkId, rate: f64, slope: f64) {
        let sums = &mut self.loads[link.index()];
        if sums.0 == 0.0 {
            self.loaded.push(link);
        }
        *sums = (sums.0 + rate, sums.1 + slope);
    }

    /// Makes a step for one link, or for both directions at the first of them. Returns the distance from balance.
    fn go(&mut self, fabric: &Fabric, link: LinkId, part: f64) -> f64 {
        let other = fabric.opposite(link);
        if !self.queues.is_paired(link) {
            let before = self.queues.delay(link);
            let apart = self.balance(link) - before;
            self.queues.set(link, before + part * apart);
            return apart.abs();
        }
        if other < link && self.loads[other.index()].0 > 0.0 {
            return 0.0;
        }
        let (out, into) = (link.min(other), link.max(other));
        let goal = self
            .queues
            .split(out, [self.balance(out), self.balance(into)]);
        let before = self.queues.pair(out);
        let [near, far] = [0, 1].map(|at| goal[at] - before[at]);
        self.queues
            .set_pair(out, [before[0] + part * near, before[1] + part * far]);
        // The distance counts the delays that data see: at kappa = 1 the rates do not depend on which of the two links holds
        // the queue.
        let kappa = self.queues.feedback.kappa;
        (near + kappa * far).abs().max((far + kappa * near).abs())
    }

    /// One step of Newton's method towards the delay that fills the link.
    fn balance(&self, link: LinkId) -> f64 {
        let (load, slope) = self.loads[link.index()];
        if load == 0.0 {
            0.0
        } else {
            self.queues.newton_step(link, load, slope)
        }
    }

    fn fill(&mut self, fabric: &Fabric, active_flows: &ActiveFlows, link: LinkId) {
        if !self.queues.is_paired(link) {
            let delay = self.filling(fabric, active_flows, link);
            return self.queues.set(link, delay);
        }
        let (out, into) = (LinkId(link.0 & !1), LinkId(link.0 | 1));
        let seen = [out, into].map(|link| self.filling(fabric, active_flows, link));
        self.queues.set_pair(out, self.queues.split(out, seen));
    }

    fn filling(&mut self, fabric: &Fabric, active_flows: &ActiveFlows, link: LinkId) -> f64 {
        let (mut elsewhere, seen) = (std::mem::take(&mut self.elsewhere), self.queues.seen(link));
        elsewhere.clear();
        elsewhere.extend(
            active_flows
                .members(link)
                .iter()
                .map(|flow| (self.delay(fabric, *flow) - seen).max(0.0)),
        );
        let delay = self
            .queues
            .filling_delay(link, elsewhere.iter().copied(), LAST_STEP);
        self.elsewhere = elsewhere;
        delay
    }
}
