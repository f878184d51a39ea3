//! Queueing delays of the links, and the delay that fills one link while all others are fixed. Both solvers of the closed
//! loop ([`relaxation`](super::relaxation), [`following`](crate::sharing::quasi_dynamic)) build on these.
//!
//! If the ACKs of all data over a link return over its opposite, as they do at a node, the two directions are solved
//! together. With queues `q_out` and `q_in`, outgoing data see the delay `x = q_out + kappa * q_in` and incoming data see
//! `y = q_in + kappa * q_out`. Solving one after the other would converge very slowly for kappa near 1.

use super::Feedback;
use crate::sharing::{
    active_flows::ActiveFlows,
    fabric::{Fabric, FlowPath, LinkId},
};

/// Steps of Newton's method for one link.
const NEWTON_STEPS: usize = 30;

/// The queues in front of all links. Delays are in units of the round trip of a flow without contention.
#[derive(Debug, Clone)]
pub(in crate::sharing) struct Queues {
    pub feedback: Feedback,
    capacities: Vec<f64>,
    /// Indexed by link: `true` if the opposite link carries the ACKs of all its data.
    is_paired: Vec<bool>,
    /// Indexed by link: `true` if data and their ACKs both cross it, so that its queue delays both. The delay of such a link
    /// is `1 + kappa` times the delay in its queue. It is therefore added for the data only, and not again for the ACKs.
    is_shared: Vec<bool>,
    delays: Vec<f64>,
    /// Indexed by link: delay that data see there. For a paired link it includes the delay of their ACKs on the opposite
    /// link.
    seen: Vec<f64>,
}

impl Queues {
    pub(in crate::sharing) fn new(fabric: &Fabric, feedback: Feedback) -> Queues {
        let is_paired = |link| feedback.kappa > 0.0 && fabric.acks_return_over_opposite(link);
        Queues {
            feedback,
            capacities: links(fabric).map(|link| fabric.capacity(link).0).collect(),
            is_paired: links(fabric).map(is_paired).collect(),
            is_shared: links(fabric).map(|link| fabric.is_shared(link)).collect(),
            delays: vec![0.0; fabric.link_count()],
            seen: vec![0.0; fabric.link_count()],
        }
    }

    /// Starts from the delays of an earlier solution, on links that carry data now.
    pub(in crate::sharing) fn start_from(&mut self, delays: &[f64], active_flows: &ActiveFlows) {
        for (link, delay) in (0..)
            .map(LinkId)
            .zip(delays)
            .filter(|(link, _)| !active_flows.members(*link).is_empty())
        {
            self.delays[link.index()] = *delay;
        }
        for link in (0..self.delays.len() as u32).map(LinkId) {
            match self.is_paired(link) {
                true => self.set_pair(LinkId(link.0 & !1), self.pair(LinkId(link.0 & !1))),
                false => self.set(link, self.delay(link)),
            }
        }
    }

    /// Increases the capacity of each link by the fraction `lean` for each position before it on a path.
    pub(in crate::sharing) fn lean(&mut self, fabric: &Fabric, lean: f64) {
        self.capacities = links(fabric)
            .map(|link| fabric.capacity(link).0 * (1.0 + lean * f64::from(fabric.place(link))))
            .collect();
    }

    pub(in crate::sharing) fn delays(&self) -> &[f64] {
        &self.delays
    }

    pub(in crate::sharing) fn capacity(&self, link: LinkId) -> f64 {
        self.capacities[link.index()]
    }

    pub(in crate::sharing) fn delay(&self, link: LinkId) -> f64 {
        self.delays[link.index()]
    }

    /// Delay that data over a link see there.
    pub(in crate::sharing) fn seen(&self, link: LinkId) -> f64 {
        self.seen[link.index()]
    }

    pub(in crate::sharing) fn is_paired(&self, link: LinkId) -> bool {
        self.is_paired[link.index()]
    }

    /// The part of `sum of q over the data path + kappa * sum of q over the ACKs' path` between the links of the two nodes.
    pub(in crate::sharing) fn inner_delay(&self, path: &FlowPath) -> f64 {
        let data: f64 = path.data()[2..].iter().map(|link| self.seen(*link)).sum();
        let acks = path.acknowledgements()[2..].iter();
        let acks = acks.filter(|link| !self.is_paired(**link) && !self.is_shared[link.index()]);
        data + self.feedback.kappa * acks.map(|link| self.seen(*link)).sum::<f64>()
    }

    /// Rate of a flow with this delay, in units of the rate without contention.
    pub(in crate::sharing) fn rate(&self, delay: f64) -> f64 {
        if self.feedback.alpha == 1.0 {
            1.0 / delay
        } else {
            delay.powf(-1.0 / self.feedback.alpha)
        }
    }

    pub(in crate::sharing) fn set(&mut self, link: LinkId, delay: f64) {
        self.delays[link.index()] = delay;
        self.seen[link.index()] = delay;
    }

    /// Delays of a paired link that points outward, and of its opposite.
    pub(in crate::sharing) fn pair(&self, out: LinkId) -> [f64; 2] {
        [self.delays[out.index()], self.delays[out.index() + 1]]
    }

    pub(in crate::sharing) fn set_pair(&mut self, out: LinkId, [delay, other]: [f64; 2]) {
        let (out, into, kappa) = (out.index(), out.index() + 1, self.feedback.kappa);
        (self.delays[out], self.delays[into]) = (delay, other);
        (self.seen[out], self.seen[into]) = (delay + kappa * other, other + kappa * delay);
    }

    /// Returns the delays of a paired outward link and of its opposite, from the delays that the data of each direction must
    /// see to fill its link. For kappa > 1 either link may hold the queue; the queue stays at the link with the longer
    /// delay.
    pub(in crate::sharing) fn split(&self, link: LinkId, [out, into]: [f64; 2]) -> [f64; 2] {
        let (kappa, before) = (self.feedback.kappa, self.pair(link));
        let stays_in = before[1] > before[0] && kappa * into >= out;
        if kappa * out >= into && !stays_in {
            [out, 0.0]
        } else if kappa * into >= out {
            [0.0, into]
        } else {
            let determinant = 1.0 - kappa * kappa;
            [
                (out - kappa * into) / determinant,
                (into - kappa * out) / determinant,
            ]
        }
    }

    /// Delay, seen by its data, that fills a link whose flows have the delays `elsewhere` on all other links; 0 if they
    /// cannot fill it. Newton's method ends with a step below `precision`, relative to the delay.
    ///
    /// `(sum of rates)^-alpha` is concave, increases with the delay, and is linear for flows with equal delays elsewhere.
    /// After its first step, Newton's method therefore approaches the solution from below.
    pub(in crate::sharing) fn filling_delay(
        &self,
        link: LinkId,
        elsewhere: impl ExactSizeIterator<Item = f64> + Clone,
        precision: f64,
    ) -> f64 {
        let (capacity, alpha, seen) = (self.capacity(link), self.feedback.alpha, self.seen(link));
        let (idle, _) = self.load(elsewhere.clone(), 0.0);
        if idle <= capacity {
            return 0.0;
        }
        let target = power(capacity, -alpha);
        let mut delay = if seen > 0.0 {
            seen
        } else {
            target * power(elsewhere.len() as f64, alpha)
        };
        for _ in 0..NEWTON_STEPS {
            let (load, slope) = self.load(elsewhere.clone(), delay);
            let height = power(load, -alpha);
            // d(load^-alpha) = load^(-alpha - 1) * sum of rate / delay
            let step = (target - height) / (height / load * slope);
            let next = delay + step;
            // The first step, from above, may end below the valid range.
            delay = if next > 0.0 { next } else { delay * 0.1 };
            if step.abs() <= precision * delay {
                break;
            }
        }
        delay
    }

    /// One step of Newton's method towards the delay that fills a link. `load` is the sum of the rates of its flows, `slope`
    /// the sum of each rate divided by the flow's delay.
    pub(in crate::sharing) fn newton_step(&self, link: LinkId, load: f64, slope: f64) -> f64 {
        let excess = power(load / self.capacity(link), self.feedback.alpha) - 1.0;
        (self.seen(link) + excess * load / slope).max(0.0)
    }

    /// Sum of the rates, and sum of each rate divided by the flow's delay.
    fn load(&self, elsewhere: impl Iterator<Item = f64>, delay: f64) -> (f64, f64) {
        elsewhere.fold((0.0, 0.0), |(load, slope), other| {
            let rate = self.rate(other + delay);
            (load + rate, slope + rate / (other + delay))
        })
    }
}

fn links(fabric: &Fabric) -> impl Iterator<Item = LinkId> {
    (0..fabric.link_count() as u32).map(LinkId)
}

/// Computes a power, without a library call for exponents of 1 and -1.
fn power(base: f64, exponent: f64) -> f64 {
    match exponent {
        1.0 => base,
        -1.0 => 1.0 / base,
        _ => base.powf(exponent),
    }
}
