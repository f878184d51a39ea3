//! The closed loop followed through time: queues that adapt, for traces whose messages come and go by the million.
//!
//! The conditions of the steady rates ([`closed_loop`](super::closed_loop)) may have several solutions if kappa > 0, so
//! that a replay that solved them at each event would depend on how, and how closely, it does. Here the past decides,
//! as in real queues. `F_l(q)` be the delay that fills link l while all others stay as they are, none if its flows cannot
//! fill it. Then
//!
//! - when a flow comes or goes, the links that it crosses take the delay that fills them, in two turns, the way out of its
//!   source before the way into its destination (`fit`): what shares a link with it adapts at once;
//! - between events all links go on towards their balance, `dq_l/dt = (F_l(q) - q_l) / lag`
//!   (`approach`), with one step of Newton's method for `F_l(q) - q_l`;
//!
//! and a flow moves at `(sum of q over data + kappa * sum of q over acknowledgements)^(-1/alpha)`. What stands still
//! satisfies the conditions. Between two directions of a node or rack `F` is that of both together (`of_pair`).
//!
//! Without racks and for kappa <= 1, `F` never widens a difference of delays: in terms of what flows out and in feel at a
//! node, a change of one node's delay moves another's by its flows' part of the whole, and these parts add up to one. So
//! neither do steps of it, and errors of the steps do not grow from delay to delay.

use super::active_flows::ActiveFlows;
use super::closed_loop::Feedback;
use super::fabric::{Fabric, LinkId, Path};
use super::queues::Queues;

/// Turns in which the links of a change are filled.
const TURNS: u32 = 2;
/// The last relative step of Newton's method for a link that is filled; it doubles the digits with each.
const LAST_STEP: f64 = 1e-6;
/// Largest alpha at which the delays, which grow with the power alpha of the inverse rates, can follow in such steps.
pub(super) const STEEPEST: f64 = 8.0;
/// A delay that no flow falls below.
const SHORTEST: f64 = 1e-6;
/// Links whose delays are off by no more than this are at rest.
const REST: f64 = 1e-10;

/// The queues, and what the flows feel of them.
#[derive(Debug, Clone)]
pub struct QuasiDynamicQueues {
    queues: Queues,
    /// By flow.
    ways: Vec<Way>,
    /// By link: the sum of the rates, and of each over the flow's delay.
    loads: Vec<(f64, f64)>,
    loaded: Vec<LinkId>,
    elsewhere: Vec<f64>,
}

/// Out link, in link, and whether there are more.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    out: u32,
    into: u32,
    is_longer: bool,
}

impl QuasiDynamicQueues {
    /// Empty queues.
    pub fn new(fabric: &Fabric, feedback: Feedback) -> QuasiDynamicQueues {
        QuasiDynamicQueues {
            queues: Queues::new(fabric, feedback),
            ways: Vec::new(),
            loads: vec![(0.0, 0.0); fabric.link_count()],
            loaded: Vec::new(),
            elsewhere: Vec::new(),
        }
    }

    /// A flow comes; [`QuasiDynamicQueues::fit`] has to be told too.
    pub fn enter(&mut self, flow: u32, path: &Path) {
        if self.ways.len() <= flow as usize {
            self.ways.resize(flow as usize + 1, Way::default());
        }
        let way = Way { out: path.out().0, into: path.into().0, is_longer: path.is_between_racks() };
        self.ways[flow as usize] = way;
    }

    /// What a flow gets now, and no more than alone.
    pub fn share(&self, fabric: &Fabric, flow: u32) -> f64 {
        let share = self.queues.rate(self.delay(fabric, flow));
        let is_longer = self.ways[flow as usize].is_longer;
        share.min(if is_longer { fabric.uncontended_share(&fabric.paths[flow as usize]).0 } else { 1.0 })
    }

    /// The delay of each link.
    pub fn delays(&self) -> &[f64] {
        self.queues.delays()
    }

    /// Fills the links that the active_flows's changes have touched.
    pub fn fit(&mut self, fabric: &Fabric, active_flows: &ActiveFlows) {
        for _ in 0..TURNS {
            for link in active_flows.touched() {
                self.fill(fabric, active_flows, *link);
            }
        }
    }

    /// All links go this part of the way to their balance; whether they are there.
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

    fn delay(&self, fabric: &Fabric, flow: u32) -> f64 {
        let way = self.ways[flow as usize];
        let ends = self.queues.seen(LinkId(way.out)) + self.queues.seen(LinkId(way.into));
        if way.is_longer { ends + self.queues.inner_delay(&fabric.paths[flow as usize]) } else { ends }
    }

    fn weigh(&mut self, fabric: &Fabric, flow: u32) {
        let delay = self.delay(fabric, flow).max(SHORTEST);
        let rate = self.queues.rate(delay);
        let (way, slope) = (self.ways[flow as usize], rate / delay);
        self.add(LinkId(way.out), rate, slope);
        self.add(LinkId(way.into), rate, slope);
        if way.is_longer {
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

    /// A step of one link, or of both directions with the first of them; how far it was from its balance.
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
        let goal = self.queues.split(out, (self.balance(out), self.balance(into)));
        let before = self.queues.pair(out);
        let apart = (goal.0 - before.0, goal.1 - before.1);
        self.queues.set_pair(out, (before.0 + part * apart.0, before.1 + part * apart.1));
        // Of what data see: at kappa = 1 the rates do not depend on which of the two links holds the queue.
        let kappa = self.queues.feedback.kappa;
        (apart.0 + kappa * apart.1).abs().max((apart.1 + kappa * apart.0).abs())
    }

    /// One step of Newton's method to the delay that fills the link.
    fn balance(&self, link: LinkId) -> f64 {
        let load = self.loads[link.index()];
        if load.0 == 0.0 { 0.0 } else { self.queues.newton_step(link, load) }
    }

    fn fill(&mut self, fabric: &Fabric, active_flows: &ActiveFlows, link: LinkId) {
        if !self.queues.is_paired(link) {
            let delay = self.filling(fabric, active_flows, link);
            return self.queues.set(link, delay);
        }
        let (out, into) = (LinkId(link.0 & !1), LinkId(link.0 | 1));
        let seen = (self.filling(fabric, active_flows, out), self.filling(fabric, active_flows, into));
        self.queues.set_pair(out, self.queues.split(out, seen));
    }

    fn filling(&mut self, fabric: &Fabric, active_flows: &ActiveFlows, link: LinkId) -> f64 {
        let (mut elsewhere, seen) = (std::mem::take(&mut self.elsewhere), self.queues.seen(link));
        elsewhere.clear();
        elsewhere.extend(active_flows.members(link).iter().map(|flow| (self.delay(fabric, *flow) - seen).max(0.0)));
        let delay = self.queues.filling_delay(link, elsewhere.iter().copied(), LAST_STEP);
        self.elsewhere = elsewhere;
        delay
    }
}
