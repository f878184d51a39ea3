//! Max-min fairness kept up while flows come and go: each link advertises a rate (Charny, 1994).
//!
//! A flow gets the least of the rates that the links of its path advertise. The rate of a link is the `a` that fills
//! it: `sum of min(m_i, a) = C` over its flows, with `m_i` the least rate that the other links of flow `i` advertise;
//! a link that its flows cannot fill advertises no limit. Where all these equations hold, each flow has a full link on
//! its path on which nobody gets more: the condition of max-min fairness, whose solution is unique.
//!
//! After a change only the equations of the links touched are in doubt. They are solved anew, one link after the
//! other, and a link whose rate changes brings those into doubt whose flows it held back, or holds back now. Rates that
//! differ by rounding are the same. For many flows of few paths [`levels`](super::levels) solves the same equations.

use std::collections::BTreeSet;

use super::filled_rates;
use crate::sharing::{
    Changes,
    active_flows::ActiveFlows,
    fabric::{AllocatedFraction, Allocation, Fabric, Limit, LinkId},
};

/// Relative difference below which two rates are one.
const ROUNDING: f64 = 1e-12;

/// So often the rate of a link may change after a change of its flows. Then all flows that hang together with it are solved
/// anew, and no others: what shares no link with a flow does not alter a bit of its rate.
const MOST_CHANGES: u16 = 256;

/// Stands for a flow whose path is not just one link out and another one in.
const LONG: u32 = u32::MAX;

/// What a link advertises.
#[derive(Debug, Clone, Copy)]
struct AdvertisedOffer {
    /// Infinite where the link is no limit.
    rate: f64,
    capacity: f64,
    is_in_doubt: bool,
    is_changed: bool,
    /// How often it has changed since the flows did.
    changes: u16,
}

/// The rates advertised.
#[derive(Debug, Clone, Default)]
pub(super) struct Advertised {
    /// By link.
    offers: Vec<AdvertisedOffer>,
    /// By flow: the numbers of its two links, one XOR the other, so that each link finds the other one; or [`LONG`].
    links: Vec<u32>,
    has_long_paths: bool,
    /// A ring with a place for each link, as many as a power of two.
    in_doubt: Vec<LinkId>,
    changed: Vec<LinkId>,
    /// What the flows of the link at hand could have elsewhere.
    elsewhere: Vec<f64>,
}

/// The tables of a change that is solved, each at hand; `LONG_PATHS`: whether there are flows over more than two links.
struct AdvertisedSolver<'a, const LONG_PATHS: bool> {
    fabric: &'a Fabric,
    active_flows: &'a ActiveFlows,
    offers: &'a mut [AdvertisedOffer],
    links: &'a [u32],
    in_doubt: &'a mut [LinkId],
    /// How many links were ever put into the ring, and taken out of it.
    put: usize,
    taken: usize,
    changed: &'a mut Vec<LinkId>,
}

impl Advertised {
    /// Solves what the changes of the active flows have touched.
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

    /// Makes place for all links, and notes the links of flows that have started.
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
    /// Until no link is in doubt.
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
            // Not so for two infinities, whose difference is no number.
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

    /// The rates of all that hangs together with a link by water-filling: links that are just full may pass differences by
    /// rounding around for ever.
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

    /// The other link of a flow over this one, if there is just one.
    #[inline(always)]
    fn other(&self, flow: u32, link: LinkId) -> Option<LinkId> {
        let links = self.links[flow as usize];
        (!LONG_PATHS || links != LONG).then_some(LinkId(links ^ link.0))
    }

    /// The rate that fills a link.
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
        // Full with what they have: the link is a limit beside others.
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

    /// Links whose flows have or had a lower rate from this link than from them.
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
                    // Its turn comes with the other link.
                    Some(other) if self.offers[other.index()].is_changed => {}
                    Some(other) => changes.flows.push((*flow, self.lesser(link, other))),
                    None => changes.flows.push((*flow, self.allocation(*flow))),
                }
            }
        }
    }

    /// What a flow over these two links gets.
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

/// Up to this rate a link is as much of a limit to a flow with this share as any. Of such links the lowest number is named,
/// as water-filling does.
fn as_limiting(share: f64) -> f64 {
    share * (1.0 + 1e-9)
}

/// The `a` with `sum of min(m, a) = capacity`, where the sum of all `m` is greater. Flows that cannot use an equal part
/// leave what they do not use to the others.
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
    fn rates_filled_at_once_are_those_that_links_agree_on() {
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
    fn a_link_is_filled_by_equal_parts_of_what_the_slow_leave() {
        let rate = |rates: &[f64]| filling_rate(&mut rates.to_vec(), 1.0);
        assert_eq!(rate(&[f64::INFINITY]), 1.0);
        assert_eq!(rate(&[0.25, f64::INFINITY, f64::INFINITY]), 0.375);
        assert_eq!(rate(&[0.25, 0.3, 1.0]), 0.45);
    }
}
