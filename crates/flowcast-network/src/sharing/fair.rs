//! Max-min fairness: no flow can get more without taking from one that has less (Bertsekas and Gallager,
//! *Data Networks*, section 6.5.2). The limit of the closed loop for alpha to infinity and kappa = 0.
//!
//! Water-filling: the link with the least capacity per unfixed flow fixes these flows at that share. The capacity that they
//! use on other links is subtracted, and the next link follows. A link's level never falls while other flows are fixed, so a
//! heap with outdated levels still yields the next link.

mod advertised;
mod levels;

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use super::{
    Allocations, Changes, RateModel, SharingError,
    active_flows::{ActiveFlows, Reach},
    fabric::{AllocatedFraction, Allocation, Fabric, Limit, LinkId},
};
use advertised::Advertised;
use levels::Levels;

/// Max-min fairness over all links. It uses water-filling for a given set of flows, and advertised rates for flows that
/// start and end.
#[derive(Debug, Clone, Default)]
pub struct Fair {
    advertised: Advertised,
    levels: Levels,
}

impl RateModel for Fair {
    fn shares(&mut self, fabric: &Fabric, active: &[usize]) -> Allocations {
        Ok(max_min(fabric, active))
    }

    fn reach(&self) -> Reach {
        Reach::Links
    }

    fn is_local(&self) -> bool {
        true
    }

    fn is_by_path(&self) -> bool {
        true
    }

    fn spares_lone_flows(&self) -> bool {
        true
    }

    fn update(
        &mut self,
        fabric: &Fabric,
        active_flows: &mut ActiveFlows,
        changes: &mut Changes,
    ) -> Result<(), SharingError> {
        if changes.may_name_links {
            self.levels.update(fabric, active_flows, changes);
        } else {
            self.advertised.update(fabric, active_flows, changes);
        }
        Ok(())
    }
}

/// Max-min fair shares of these flows.
pub(crate) fn max_min(fabric: &Fabric, active: &[usize]) -> Vec<Allocation> {
    let mut filling = Filling::new(fabric, active);
    while let Some(Reverse(level)) = filling.heap.pop() {
        let link = level.link.index();
        if filling.unfixed[link] == 0 {
            continue;
        }
        let now = filling.level(level.link);
        if now > level {
            filling.heap.push(Reverse(now));
        } else {
            filling.fix_flows_of(level.link, level.share);
        }
    }
    filling.allocations
}

/// Rates that links advertise when the flows `active`, which are all flows over these links, have their max-min fair shares.
/// A full link advertises the largest share of its flows, any other link an infinite rate.
fn filled_rates(
    fabric: &Fabric,
    active_flows: &ActiveFlows,
    links: &[LinkId],
    active: &[usize],
) -> Vec<(LinkId, f64)> {
    let mut shares = vec![0.0; fabric.paths.len()];
    for (flow, allocation) in active.iter().zip(max_min(fabric, active)) {
        shares[*flow] = allocation.share.0;
    }
    let mut rates = Vec::with_capacity(links.len());
    for link in links {
        let (mut load, mut most) = (0.0, 0.0_f64);
        for flow in active_flows.members(*link) {
            let share = shares[*flow as usize];
            load += share * f64::from(active_flows.flows(*flow));
            most = most.max(share);
        }
        let is_full = load >= fabric.capacity(*link).0 * (1.0 - 1e-9);
        rates.push((*link, if is_full { most } else { f64::INFINITY }));
    }
    rates
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct FairLevel {
    share: f64,
    link: LinkId,
}

impl Eq for FairLevel {}

impl Ord for FairLevel {
    fn cmp(&self, other: &FairLevel) -> Ordering {
        self.share
            .total_cmp(&other.share)
            .then(self.link.cmp(&other.link))
    }
}

impl PartialOrd for FairLevel {
    fn partial_cmp(&self, other: &FairLevel) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

struct Filling<'a> {
    fabric: &'a Fabric,
    active: &'a [usize],
    free: Vec<f64>,
    unfixed: Vec<u32>,
    /// Positions in `active`, grouped by link; `first[link]` is the start of a link's group.
    members: Vec<u32>,
    first: Vec<u32>,
    is_fixed: Vec<bool>,
    heap: BinaryHeap<Reverse<FairLevel>>,
    allocations: Vec<Allocation>,
}

impl<'a> Filling<'a> {
    fn new(fabric: &'a Fabric, active: &'a [usize]) -> Filling<'a> {
        let unfixed = fabric.flows_per_link(active);
        let (first, members) = group_by_link(fabric, active, &unfixed);
        let mut filling = Filling {
            fabric,
            active,
            free: (0..unfixed.len() as u32)
                .map(|link| fabric.capacity(LinkId(link)).0)
                .collect(),
            unfixed,
            members,
            first,
            is_fixed: vec![false; active.len()],
            heap: BinaryHeap::new(),
            allocations: vec![
                Allocation {
                    share: AllocatedFraction::WHOLE,
                    limit: Limit::Alone
                };
                active.len()
            ],
        };
        let used =
            (0..filling.unfixed.len() as u32).filter(|link| filling.unfixed[*link as usize] > 0);
        filling.heap = used
            .map(|link| Reverse(filling.level(LinkId(link))))
            .collect();
        filling
    }

    fn level(&self, link: LinkId) -> FairLevel {
        FairLevel {
            share: self.free[link.index()].max(0.0) / f64::from(self.unfixed[link.index()]),
            link,
        }
    }

    fn fix_flows_of(&mut self, link: LinkId, share: f64) {
        let group = self.first[link.index()] as usize..self.first[link.index() + 1] as usize;
        for member in group {
            let position = self.members[member] as usize;
            if !std::mem::replace(&mut self.is_fixed[position], true) {
                self.fix(position, link, share);
            }
        }
    }

    fn fix(&mut self, position: usize, link: LinkId, share: f64) {
        let path = &self.fabric.paths[self.active[position]];
        let is_alone = share >= self.fabric.uncontended_share(path).0;
        let limit = if is_alone {
            Limit::Alone
        } else {
            Limit::Link(link)
        };
        self.allocations[position] = Allocation {
            share: AllocatedFraction(share),
            limit,
        };
        for crossed in path.data() {
            self.free[crossed.index()] -= share;
            self.unfixed[crossed.index()] -= 1;
        }
    }
}

fn group_by_link(fabric: &Fabric, active: &[usize], counts: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; counts.len() + 1];
    for (link, count) in counts.iter().enumerate() {
        first[link + 1] = first[link] + count;
    }
    let mut next = first.clone();
    let mut members = vec![0u32; *first.last().expect("there is one more than links") as usize];
    for (position, flow) in active.iter().enumerate() {
        for link in fabric.paths[*flow].data() {
            members[next[link.index()] as usize] = position as u32;
            next[link.index()] += 1;
        }
    }
    (first, members)
}
