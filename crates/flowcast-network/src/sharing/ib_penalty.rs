//! The InfiniBand penalty model (Vienne, Martinasso, Vincent and Méhaut, 2008): a flow from s to e takes `max(ps, pe)` times
//! as long as a single flow.
//!
//! `ps = 1` if s sends one flow; otherwise it is the maximum over the flows of s of `outdeg(s) * beta_s` (times `gamma` if
//! the receiver has more than two flows). `pe = 1` if e receives one flow; otherwise it is
//! `(flows s->e) * beta_e * (senders to e)`. The shares of a link may sum to slightly more than 1.
//!
//! At half-duplex ports, the flows and pairs of both directions count. If the shares exceed the capacity of a bus, they are
//! scaled down by the same factor.

use std::collections::BTreeMap;

use super::{
    Allocations, RateModel, bus,
    fabric::{AllocatedFraction, Allocation, Fabric, Limit, LinkId},
};

/// The penalties and their published weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IbPenalty {
    /// `beta_s`: weight of the flows out of a node; 0.925 as published.
    pub out: f64,
    /// `beta_e`: weight of the flows into a node; 0.965 as published.
    pub into: f64,
    /// `gamma`: factor for a sender whose receiver has more than two flows; 1.35 as published.
    pub crowded: f64,
}

impl Default for IbPenalty {
    fn default() -> IbPenalty {
        IbPenalty {
            out: 0.925,
            into: 0.965,
            crowded: 1.35,
        }
    }
}

impl RateModel for IbPenalty {
    fn shares(&mut self, fabric: &Fabric, active: &[usize]) -> Allocations {
        let counts = fabric.flows_per_link(active);
        let pairs = flows_by_pair(fabric, active);
        let mut senders = vec![0u32; counts.len()];
        for link in pairs.values().flat_map(|pair| pair.ends) {
            senders[link.index()] += 1;
        }
        let mut sender_penalties = vec![1.0f64; counts.len()];
        for path in active.iter().map(|flow| &fabric.paths[*flow]) {
            let (out, into) = (path.out().index(), path.into().index());
            if counts[out] > 1 {
                let crowding = if counts[into] > 2 { self.crowded } else { 1.0 };
                sender_penalties[out] =
                    sender_penalties[out].max(f64::from(counts[out]) * self.out * crowding);
            }
        }
        let mut allocations: Vec<Allocation> = active
            .iter()
            .map(|flow: &usize| {
                let path = &fabric.paths[*flow];
                let into = path.into().index();
                let parallel = pairs[&(path.src, path.dst)].flows;
                let receiver = f64::from(parallel) * self.into * f64::from(senders[into]);
                let receiver = if counts[into] > 1 { receiver } else { 1.0 };
                allocation(
                    sender_penalties[path.out().index()],
                    receiver,
                    fabric,
                    *flow,
                )
            })
            .collect();
        bus::fit_into_buses(fabric, active, &mut allocations);
        Ok(allocations)
    }
}

/// Flows from one node to another.
struct IbPenaltyPair {
    flows: u32,
    /// Links out of the sender and into the receiver.
    ends: [LinkId; 2],
}

fn flows_by_pair(fabric: &Fabric, active: &[usize]) -> BTreeMap<(u32, u32), IbPenaltyPair> {
    let mut pairs = BTreeMap::new();
    for path in active.iter().map(|flow| &fabric.paths[*flow]) {
        pairs
            .entry((path.src, path.dst))
            .or_insert_with(|| IbPenaltyPair {
                flows: 0,
                ends: [path.out(), path.into()],
            })
            .flows += 1;
    }
    pairs
}

fn allocation(sender: f64, receiver: f64, fabric: &Fabric, flow: usize) -> Allocation {
    let path = &fabric.paths[flow];
    let penalty = sender.max(receiver).max(1.0);
    let link = if sender >= receiver {
        path.out()
    } else {
        path.into()
    };
    let limit = if penalty > 1.0 {
        Limit::Link(link)
    } else {
        Limit::Alone
    };
    Allocation {
        share: AllocatedFraction(fabric.uncontended_share(path).0 / penalty),
        limit,
    }
}
