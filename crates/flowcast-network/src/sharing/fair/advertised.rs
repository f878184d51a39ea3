//! Max-min fairness, updated while flows start and end: each link advertises a rate (Charny, 1994).
//!
//! A flow gets the lowest of the rates that the links of its path advertise. The rate of a link is the `a` that fills it:
//! `sum of min(m_i, a) = C` over its flows, where `m_i` is the lowest rate that the other links of flow `i` advertise. A
//! link that its flows cannot fill advertises no limit. If all these equations hold, each flow has a full link on its path
//! on which no flow gets more. This is the condition of max-min fairness, whose solution is unique.
//!
//! After a change only the equations of the touched links are in doubt. They are solved again, one link after the other. A
//! link whose rate changes puts other links in doubt if it held back their flows before or holds them back now. Rates that
//! differ by rounding count as equal. For many flows on few paths [`levels`](super::levels) solves the same equations.

use std::collections::BTreeSet;

use super::filled_rates;
use crate::sharing::{
    Changes,
    active_flows::ActiveFlows,
    fabric::{AllocatedFraction, Allocation, Fabric, Limit, LinkId},
};

/// Relative difference below which two rates are equal.
const ROUNDING: f64 = 1e-12;

/// Maximum number of rate changes of a link per change of its flows. After that, all flows connected with the link are
/// solved together, and no others: flows without shared links do not alter a bit of each other's rates.
const MOST_CHANGES: u16 = 256;

/// Stands for a flow whose path is not just one link out and another link in.
const LONG: u32 = u32::MAX;

/// Advertised rate of a link.
#[derive(Debug, Clone, Copy)]
struct AdvertisedOffer {
    /// Infinite if the link is not a limit.
    rate: f64,
    capacity: f64,
    is_in_doubt: bool,
    is_changed: bool,
    /// Number of changes since the flows last changed.
    changes: u16,
}

/// Advertised rates of all links, updated when flows start and end.
#[derive(Debug, Clone, Default)]
pub(super) struct Advertised {
    /// Advertised rates, indexed by link.
    offers: Vec<AdvertisedOffer>,
    /// Indexed by flow: the numbers of its two links, combined by XOR, so that each link finds the other one; or [`LONG`].
    links: Vec<u32>,
    has_long_paths: bool,
    /// Ring buffer with a place for each link; its size is a power of two.
    in_doubt: Vec<LinkId>,
    changed: Vec<LinkId>,
    /// Rates that the flows of the current link could have on their other links.
    elsewhere: Vec<f64>,
}

/// Direct references to the tables while a change is solved. `LONG_PATHS` is `true` if there are flows over more than two
/// links.
struct AdvertisedSolver<'a, const LONG_PATHS: bool> {
    fabric: &'a Fabric,
    active_flows: &'a ActiveFlows,
    offers: &'a mut [AdvertisedOffer],
    links: &'a [u32],
    in_doubt: &'a mut [LinkId],
    /// Numbers of links ever put into the ring, and taken from it.
    put: usize,
    taken: usize,
    changed: &'a mut Vec<LinkId>,
}

impl Advertised {
    /// Solves the equations that changes of the active flows have touched.
    pub(super) fn update(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        changes: &mut Changes,
    ) {
        self.know(fabric, active_flows);
        if self.has_long_paths {
            self.settle::<true>(fabric, active_flows, changes);
        } else {
            self.settle::<false>(fabric, active_flows, changes);
        }
    }

    fn settle<const LONG_PATHS: bool>(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        changes: &mut Changes,
    ) {
        let Advertised {
            offers,
            links,
            in_doubt,
            changed,
            elsewhere,
            ..
        } = self;
        let mut solver: AdvertisedSolver<'_, LONG_PATHS> = AdvertisedSolver {
            fabric,
            active_flows,
            offers,
            links,
            in_doubt,
            put: 0,
            taken: 0,
            changed,
        };
        for link in active_flows.touched() {
            if active_flows.members(*link).is_empty() {
                solver.offers[link.index()].rate = f64::INFINITY;
            } else {
                solver.doubt(*link);
                solver.note_change(*link);
            }
        }
        solver.solve(elsewhere);
        solver.report(changes);
    }

    /// Makes room for all links, and stores the links of flows that have started.
    fn know(&mut self, fabric: &Fabric, active_flows: &ActiveFlows) {
        if self.offers.len() < fabric.link_count() {
            let links = (self.offers.len()..fabric.link_count()).map(|link| LinkId(link as u32));
            self.offers.extend(links.map(|link| AdvertisedOffer {
                rate: f64::INFINITY,
                capacity: fabric.capacity(link).0,
                is_in_doubt: false,
                is_changed: false,
                changes: 0,
            }));
            self.in_doubt
                .resize(self.offers.len().next_power_of_two(), LinkId(0));
        }
        if self.links.len() < fabric.paths.len() {
            self.links.resize(fabric.paths.len(), LONG);
        }
        for flow in active_flows.started() {
            self.links[*flow as usize] = match fabric.paths[*flow as usize].data() {
                [out, into] if out != into => out.0 ^ into.0,
                _ => {
                    self.has_long_paths = true;
                    LONG
                }
            };
        }
    }
}

impl<const LONG_PATHS: bool> AdvertisedSolver<'_, LONG_PATHS> {
    /// Solves links until none is in doubt.
    fn solve(&mut self, elsewhere: &mut Vec<f64>) {
        while self.taken < self.put {
            let link = self.in_doubt[self.taken & (self.in_doubt.len() - 1)];
            self.taken += 1;
            let offer = &mut self.offers[link.index()];
            if !std::mem::replace(&mut offer.is_in_doubt, false) {
                continue;
            }
            let before = offer.rate;
            let now = self.rate(elsewhere, link);
            let least = if now < before { now } else { before };
            // False for two infinities, whose difference is not a number.
            if (now - before).abs() > ROUNDING * least {
                self.note_change(link);
                let offer = &mut self.offers[link.index()];
                offer.rate = now;
                offer.changes += 1;
                if offer.changes < MOST_CHANGES {
                    self.pass_on(link, least);
                } else {
                    self.fill(link);
                }
            }
        }
    }

    /// Computes the rates of all flows connected with a link by water-filling, because links that are just full could pass
    /// rounding differences around forever.
    fn fill(&mut self, from: LinkId) {
        let (mut links, mut flows) = (vec![from], Vec::new());
        let (mut seen_links, mut seen_flows) = (BTreeSet::from([from]), BTreeSet::new());
        let mut next = 0;
        while let Some(link) = links.get(next).copied() {
            next += 1;
            for flow in self.active_flows.members(link) {
                if seen_flows.insert(*flow) {
                    flows.push(*flow as usize);
                    let path = self.fabric.paths[*flow as usize].data().iter();
                    links.extend(path.filter(|link| seen_links.insert(**link)));
                }
            }
        }
        for (link, rate) in filled_rates(self.fabric, self.active_flows, &links, &flows) {
            let offer = &mut self.offers[link.index()];
            offer.is_in_doubt = false;
            if rate != offer.rate {
                offer.rate = rate;
                self.note_change(link);
            }
        }
    }

    #[inline(always)]
    fn doubt(&mut self, link: LinkId) {
        if !std::mem::replace(&mut self.offers[link.index()].is_in_doubt, true) {
            let place = self.put & (self.in_doubt.len() - 1);
            self.in_doubt[place] = link;
            self.put += 1;
        }
    }

    #[inline(always)]
    fn note_change(&mut self, link: LinkId) {
        if !std::mem::replace(&mut self.offers[link.index()].is_changed, true) {
            self.changed.push(link);
        }
    }

    /// The other link of a flow over this one, if there is exactly one.
    #[inline(always)]
    fn other(&self, flow: u32, link: LinkId) -> Option<LinkId> {
        let links = self.links[flow as usize];
        (!LONG_PATHS || links != LONG).then_some(LinkId(links ^ link.0))
    }

    /// Rate that fills a link.
    #[inline(always)]
    fn rate(&self, elsewhere: &mut Vec<f64>, link: LinkId) -> f64 {
        let members = self.active_flows.members(link);
        if elsewhere.len() < members.len() {
            elsewhere.resize(members.len(), 0.0);
        }
        let elsewhere = &mut elsewhere[..members.len()];
        let (mut wanted, mut most) = (0.0, 0.0);
        for (elsewhere, flow) in elsewhere.iter_mut().zip(members) {
            let rate = match self.other(*flow, link) {
                Some(other) => self.offers[other.index()].rate,
                None => self.least_elsewhere(*flow, link),
            };
            *elsewhere = rate;
            wanted += rate;
            most = if rate > most { rate } else { most };
        }
        let capacity = self.offers[link.index()].capacity;
        if wanted < capacity * (1.0 - ROUNDING) || elsewhere.is_empty() || capacity == f64::INFINITY
        {
            return f64::INFINITY;
        }
        // The link is full with the rates that its flows have elsewhere, so it limits them together with other links.
        if wanted <= capacity * (1.0 + ROUNDING) {
            most
        } else {
            filling_rate(elsewhere, capacity)
        }
    }

    #[inline(never)]
    fn least_elsewhere(&self, flow: u32, link: LinkId) -> f64 {
        let others = self.fabric.paths[flow as usize]
            .data()
            .iter()
            .filter(|other| **other != link);
        others
            .map(|other| self.offers[other.index()].rate)
            .fold(f64::INFINITY, f64::min)
    }

    /// Puts each link in doubt that shares a flow with this link and advertises more than `least`, the lower of this link's
    /// previous and new rates.
    #[inline(always)]
    fn pass_on(&mut self, link: LinkId, least: f64) {
        for flow in self.active_flows.members(link) {
            match self.other(*flow, link) {
                Some(other) if least < self.offers[other.index()].rate => self.doubt(other),
                Some(_) => {}
                None => self.pass_on_by_path(*flow, link, least),
            }
        }
    }

    #[inline(never)]
    fn pass_on_by_path(&mut self, flow: u32, link: LinkId, least: f64) {
        let path = &self.fabric.paths[flow as usize];
        for other in path.data() {
            if *other != link && least < self.offers[other.index()].rate {
                self.doubt(*other);
            }
        }
    }

    fn report(&mut self, changes: &mut Changes) {
        while let Some(link) = self.changed.pop() {
            let offer = &mut self.offers[link.index()];
            (offer.is_changed, offer.changes) = (false, 0);
            for flow in self.active_flows.members(link) {
                match self.other(*flow, link) {
                    // This flow is reported with the other link.
                    Some(other) if self.offers[other.index()].is_changed => {}
                    Some(other) => changes.flows.push((*flow, self.lesser(link, other))),
                    None => changes.flows.push((*flow, self.allocation(*flow))),
                }
            }
        }
    }

    /// Allocation of a flow over these two links.
    #[inline(always)]
    fn lesser(&self, one: LinkId, other: LinkId) -> Allocation {
        let rate = |link: LinkId| self.offers[link.index()].rate;
        let share = if rate(other) < rate(one) {
            rate(other)
        } else {
            rate(one)
        };
        if share >= AllocatedFraction::WHOLE.0 {
            return Allocation {
                share: AllocatedFraction(share),
                limit: Limit::Alone,
            };
        }
        let as_much = as_limiting(share);
        let link = match (rate(one) <= as_much, rate(other) <= as_much) {
            (true, true) => one.min(other),
            (true, false) => one,
            _ => other,
        };
        Allocation {
            share: AllocatedFraction(share),
            limit: Limit::Link(link),
        }
    }

    #[inline(never)]
    fn allocation(&self, flow: u32) -> Allocation {
        let path = &self.fabric.paths[flow as usize];
        let rate = |link: &LinkId| self.offers[link.index()].rate;
        let share = path.data().iter().map(rate).fold(f64::INFINITY, f64::min);
        if share >= self.fabric.uncontended_share(path).0 {
            return Allocation {
                share: AllocatedFraction(share),
                limit: Limit::Alone,
            };
        }
        let link = path
            .data()
            .iter()
            .filter(|link: &&LinkId| rate(link) <= as_limiting(share))
            .min()
            .expect("the least is among them");
        Allocation {
            share: AllocatedFraction(share),
            limit: Limit::Link(*link),
        }
    }
}

/// Rate up to which a link counts as a limit for a flow with this share. If there are several such links, the lowest number
/// is reported, as in water-filling.
fn as_limiting(share: f64) -> f64 {
    share * (1.0 + 1e-9)
}

/// The `a` with `sum of min(m, a) = capacity`, if the sum of all `m` is larger. Flows that cannot use an equal share leave
/// the unused part to the other flows.
#[inline(always)]
fn filling_rate(elsewhere: &mut [f64], capacity: f64) -> f64 {
    let (mut left, mut count) = (capacity, elsewhere.len());
    loop {
        let equal = left / count as f64;
        let mut kept = 0;
        for place in 0..count {
            let rate = elsewhere[place];
            if rate < equal {
                left -= rate;
            } else {
                elsewhere[kept] = rate;
                kept += 1;
            }
        }
        if kept == count || kept == 0 {
            return equal;
        }
        count = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{flow::Flow, racks::Racks};
    use flowcast_units::{Bytes, Node, Time};

    #[test]
    fn rates_from_filling_equal_the_rates_that_links_agree_on() {
        let ends = [(0, 1), (0, 2), (3, 2), (3, 1), (4, 5), (1, 5), (2, 5)];
        let flow = |(id, (src, dst)): (u32, &(u32, u32))| Flow {
            id,
            src: Node(*src),
            dst: Node(*dst),
            size: Bytes(1),
            start: Time::ZERO,
        };
        let flows: Vec<Flow> = (0..).zip(&ends).map(flow).collect();
        let fabric = Fabric::new(&flows, &Racks::default(), None);
        let mut active_flows = ActiveFlows::new(fabric.link_count());
        fabric
            .paths
            .iter()
            .enumerate()
            .for_each(|(flow, path)| active_flows.insert(flow as u32, path));
        let mut advertised = Advertised::default();
        advertised.update(&fabric, &active_flows, &mut Changes::default());
        let Advertised {
            offers,
            links,
            in_doubt,
            changed,
            ..
        } = &mut advertised;
        let (fabric, active_flows) = (&fabric, &active_flows);
        let mut solver: AdvertisedSolver<'_, false> = AdvertisedSolver {
            fabric,
            active_flows,
            offers,
            links,
            in_doubt,
            put: 0,
            taken: 0,
            changed,
        };
        let agreed: Vec<Allocation> = (0..ends.len() as u32)
            .map(|flow| solver.allocation(flow))
            .collect();
        solver.offers.iter_mut().for_each(|offer| offer.rate = 0.5);
        for path in &fabric.paths {
            solver.fill(path.out());
        }
        for (flow, agreed) in agreed.iter().enumerate() {
            let filled = solver.allocation(flow as u32);
            assert!(
                (filled.share.0 - agreed.share.0).abs() < 1e-12,
                "{filled:?} {agreed:?}"
            );
            assert_eq!(filled.limit, agreed.limit);
        }
    }

    #[test]
    fn fast_flows_share_equally_what_slow_flows_leave() {
        let rate = |rates: &[f64]| filling_rate(&mut rates.to_vec(), 1.0);
        assert_eq!(rate(&[f64::INFINITY]), 1.0);
        assert_eq!(rate(&[0.25, f64::INFINITY, f64::INFINITY]), 0.375);
        assert_eq!(rate(&[0.25, 0.3, 1.0]), 0.45);
    }
}
