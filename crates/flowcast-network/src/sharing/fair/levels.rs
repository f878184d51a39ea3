//! Max-min fairness, updated for many flows on few paths: the equations of [`advertised`](super::advertised) for flows that
//! share the number of their path, with their count.
//!
//! The rate that a link advertises depends only on links with lower rates. Links in doubt are therefore solved in the order
//! of their rates before the change, and most of them once. The first attempt assumes that no other link's rate has moved to
//! the other side of the link's own rate, so that one sum is sufficient. If the assumption is wrong, the link is solved
//! exactly. The result is the rate of each link and the link that holds back each path. The cost of a change is proportional
//! to the number of paths on the links that it reaches.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::filled_rates;
use crate::sharing::{
    Changes,
    active_flows::{ActiveFlows, Crossing},
    fabric::{Fabric, LinkId},
};

/// Relative difference below which two rates are equal.
const ROUNDING: f64 = 1e-12;

/// Maximum number of steps after a change, per link. After that, all rates are solved together.
const STEPS_PER_LINK: usize = 16;

/// Stands for no link.
const NONE: u32 = u32::MAX;

/// Advertised rate of a link.
#[derive(Debug, Clone, Copy)]
struct Offer {
    /// Infinite if the link is not a limit.
    rate: f64,
    /// The rate, but [`IN_DOUBT`] while the link waits to be solved, so that one comparison checks both.
    undoubted: f64,
    capacity: f64,
    is_changed: bool,
}

/// Lower than any rate.
const IN_DOUBT: f64 = -1.0;

/// Links to be solved, ordered by the bits of the rate that they advertised before.
type LinksInDoubt = BinaryHeap<Reverse<(u64, u32)>>;

/// Advertised rate of each link, as a multiple of the rate of a node's interface, and the link that limits each path.
#[derive(Debug, Clone, Default)]
pub(super) struct Levels {
    /// Advertised rates, indexed by link.
    offers: Vec<Offer>,
    /// Number of links that are a limit.
    limits: usize,
    /// Indexed by flow: the link last reported as holding it back; [`NONE`] at first.
    holders: Vec<u32>,
    in_doubt: LinksInDoubt,
    changed: Vec<LinkId>,
    /// Flows for which the order of their links' rates may have changed.
    crossed: Vec<u32>,
    /// Rates that the flows of the current link could have on their other links, with the number of flows for each.
    elsewhere: Vec<RateElsewhere>,
}

#[derive(Debug, Clone, Copy, Default)]
struct RateElsewhere {
    rate: f64,
    flows: f64,
}

/// Direct references to the tables while a change is solved. `LONG_PATHS` is `true` if there are flows over more than two
/// links.
struct Solver<'a, const LONG_PATHS: bool> {
    fabric: &'a Fabric,
    active_flows: &'a ActiveFlows,
    offers: &'a mut [Offer],
    limits: &'a mut usize,
    holders: &'a mut [u32],
    in_doubt: &'a mut LinksInDoubt,
    changed: &'a mut Vec<LinkId>,
    crossed: &'a mut Vec<u32>,
}

impl Levels {
    /// Solves the equations that changes of the active flows have touched.
    pub(super) fn update(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        changes: &mut Changes,
    ) {
        self.know(fabric, active_flows);
        if active_flows.has_long_paths() {
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
        let Levels {
            offers,
            limits,
            holders,
            in_doubt,
            changed,
            crossed,
            elsewhere,
        } = self;
        let stop = STEPS_PER_LINK * (offers.len() + 1);
        let mut solver: Solver<'_, LONG_PATHS> = Solver {
            fabric,
            active_flows,
            offers,
            limits,
            holders,
            in_doubt,
            changed,
            crossed,
        };
        if solver.limit_by_one_link() {
            // There is nothing else to solve.
        } else if solver.begins_anew() {
            solver.fill();
        } else {
            for link in active_flows.touched() {
                if !solver.settle_easily(*link) {
                    solver.doubt(*link);
                }
            }
            solver.solve(elsewhere, stop);
        }
        solver.report(changes);
    }

    /// Makes room for all links, and for flows that have started.
    fn know(&mut self, fabric: &Fabric, active_flows: &ActiveFlows) {
        if self.offers.len() < fabric.link_count() {
            let links = (self.offers.len()..fabric.link_count()).map(|link| LinkId(link as u32));
            self.offers.extend(links.map(|link| Offer {
                rate: f64::INFINITY,
                undoubted: f64::INFINITY,
                capacity: fabric.capacity(link).0,
                is_changed: false,
            }));
        }
        for flow in active_flows.started() {
            if self.holders.len() <= *flow as usize {
                self.holders.resize(*flow as usize + 1, NONE);
            }
            self.holders[*flow as usize] = NONE;
        }
    }
}

impl<const LONG_PATHS: bool> Solver<'_, LONG_PATHS> {
    /// Handles the case that all flows cross one link, such as a bus or the link into the only receiver, and their rates
    /// there do not fill any other link. Returns `true` in this case.
    fn limit_by_one_link(&mut self) -> bool {
        if *self.limits > 1 {
            return false;
        }
        let active_flows = self.active_flows;
        let crossed_by_all = active_flows
            .touched()
            .iter()
            .filter(|link| active_flows.flows_over(**link) as usize == active_flows.count());
        let equal_part = |link: LinkId| {
            self.offers[link.index()].capacity / f64::from(active_flows.flows_over(link))
        };
        let Some(narrowest) = crossed_by_all
            .copied()
            .min_by(|one, other| equal_part(*one).total_cmp(&equal_part(*other)))
        else {
            return false;
        };
        let others =
            *self.limits - usize::from(self.offers[narrowest.index()].rate < f64::INFINITY);
        let rate = equal_part(narrowest);
        let is_limit = others == 0
            && active_flows.count() > 0
            && rate < f64::INFINITY
            && (0..self.offers.len() as u32).all(|link| equal_part(LinkId(link)) >= rate);
        if is_limit {
            self.advertise(narrowest, rate);
        }
        is_limit
    }

    /// `true` if there were no flows before and flows start on many links. Water-filling, which visits each link, is then
    /// cheaper than solving the rates link by link.
    fn begins_anew(&self) -> bool {
        *self.limits == 0 && 4 * self.active_flows.touched().len() >= self.offers.len()
    }

    /// Settles a link without flows, or a link whose only flow is alone on both of its links. Returns `true` for such a
    /// link.
    #[inline(always)]
    fn settle_easily(&mut self, link: LinkId) -> bool {
        let active_flows = self.active_flows;
        match (active_flows.flows_over(link), active_flows.crossings(link)) {
            (0, _) => {
                self.advertise(link, f64::INFINITY);
                true
            }
            (1, [Crossing { other, .. }])
                if *other != Crossing::LONG && active_flows.flows_over(*other) == 1 =>
            {
                let capacity = |link: LinkId| self.offers[link.index()].capacity;
                let (narrow, wide) = if (capacity(link), link) < (capacity(*other), *other) {
                    (link, *other)
                } else {
                    (*other, link)
                };
                self.advertise(narrow, capacity(narrow));
                self.advertise(wide, f64::INFINITY);
                self.crossed.push(active_flows.members(link)[0]);
                true
            }
            _ => false,
        }
    }

    /// Solves links until none is in doubt. After `stop` steps, solves all links together.
    fn solve(&mut self, elsewhere: &mut Vec<RateElsewhere>, stop: usize) {
        for _ in 0..stop {
            let Some(Reverse((_, link))) = self.in_doubt.pop() else {
                return;
            };
            let link = LinkId(link);
            let offer = &mut self.offers[link.index()];
            offer.undoubted = offer.rate;
            let before = offer.rate;
            let likely = self.likely_rate(link, before);
            if let Some(likely) = likely
                && !self.change(link, before, likely)
            {
                continue;
            }
            let now = self.rate(elsewhere, link);
            self.change(link, likely.unwrap_or(before), now);
        }
        for Reverse((_, link)) in self.in_doubt.drain() {
            let offer = &mut self.offers[link as usize];
            offer.undoubted = offer.rate;
        }
        self.fill();
    }

    /// Changes the advertised rate of a link. Returns `true` if the rate of another link of its flows lies between the two
    /// rates.
    #[inline(always)]
    fn change(&mut self, link: LinkId, before: f64, now: f64) -> bool {
        let least = if now < before { now } else { before };
        // False for two infinities, whose difference is not a number.
        if (now - before).abs() > ROUNDING * least {
            self.advertise(link, now);
            self.pass_on(link, before, now)
        } else {
            false
        }
    }

    /// Computes all rates by water-filling, because links that are just full could pass rounding differences around forever.
    fn fill(&mut self) {
        let links: Vec<LinkId> = (0..self.fabric.link_count() as u32).map(LinkId).collect();
        let mut numbers: Vec<u32> = links
            .iter()
            .flat_map(|link| self.active_flows.members(*link))
            .copied()
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut active: Vec<usize> = Vec::with_capacity(self.active_flows.count());
        for number in numbers {
            let flows = self.active_flows.flows(number) as usize;
            active.resize(active.len() + flows, number as usize);
        }
        for (link, rate) in filled_rates(self.fabric, self.active_flows, &links, &active) {
            if rate != self.offers[link.index()].rate {
                self.advertise(link, rate);
                self.crossed.extend(self.active_flows.members(link));
            }
        }
    }

    #[inline(always)]
    fn doubt(&mut self, link: LinkId) {
        let offer = &mut self.offers[link.index()];
        if offer.undoubted != IN_DOUBT {
            offer.undoubted = IN_DOUBT;
            self.in_doubt.push(Reverse((offer.rate.to_bits(), link.0)));
        }
    }

    #[inline(always)]
    fn advertise(&mut self, link: LinkId, rate: f64) {
        let offer = &mut self.offers[link.index()];
        if offer.rate == rate {
            return;
        }
        *self.limits += usize::from(rate < f64::INFINITY);
        *self.limits -= usize::from(offer.rate < f64::INFINITY);
        (offer.rate, offer.undoubted) = (rate, rate);
        self.note_change(link);
    }

    #[inline(always)]
    fn note_change(&mut self, link: LinkId) {
        if !std::mem::replace(&mut self.offers[link.index()].is_changed, true) {
            self.changed.push(link);
        }
    }

    /// Lowest rate that the other links of a flow advertise.
    #[inline(always)]
    fn elsewhere(&self, link: LinkId, at: usize, crossing: &Crossing) -> f64 {
        if LONG_PATHS && crossing.other == Crossing::LONG {
            self.least_elsewhere(self.active_flows.members(link)[at], link)
        } else {
            self.offers[crossing.other.index()].rate
        }
    }

    /// Rate that fills a link if no other link's rate lies between it and the previous rate; `None` if this simple
    /// calculation is not possible.
    #[inline(always)]
    fn likely_rate(&self, link: LinkId, before: f64) -> Option<f64> {
        if before == f64::INFINITY {
            return None;
        }
        // Branch-free, because the branches would be unpredictable.
        let (mut used, mut free) = (0.0, 0.0);
        for (at, crossing) in self.active_flows.crossings(link).iter().enumerate() {
            let rate = self.elsewhere(link, at, crossing);
            let flows = f64::from(crossing.flows);
            used += flows * if rate < before { rate } else { before };
            free += if rate < before { 0.0 } else { flows };
        }
        let left = self.offers[link.index()].capacity - (used - free * before);
        (free > 0.0 && left > 0.0).then(|| left / free)
    }

    /// Rate that fills a link.
    #[inline(always)]
    fn rate(&self, elsewhere: &mut Vec<RateElsewhere>, link: LinkId) -> f64 {
        let crossings = self.active_flows.crossings(link);
        if elsewhere.len() < crossings.len() {
            elsewhere.resize(crossings.len(), RateElsewhere::default());
        }
        let elsewhere = &mut elsewhere[..crossings.len()];
        let (mut wanted, mut most) = (0.0, 0.0);
        for (at, (elsewhere, crossing)) in elsewhere.iter_mut().zip(crossings).enumerate() {
            let rate = self.elsewhere(link, at, crossing);
            let flows = f64::from(crossing.flows);
            *elsewhere = RateElsewhere { rate, flows };
            wanted += rate * flows;
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

    /// Puts each link in doubt that shares a flow with this link and advertises more than this link's previous or new rate.
    /// Notes the flows for which the order of their links' rates may have changed. Returns `true` if the rate of a link has
    /// moved to the other side of this link's rate.
    #[inline(always)]
    fn pass_on(&mut self, link: LinkId, before: f64, now: f64) -> bool {
        let (least, most) = if now < before {
            (now, before)
        } else {
            (before, now)
        };
        // Middle and half width of the range that may have been crossed, including its ends and rounding.
        let (middle, half) = if most == f64::INFINITY {
            (0.0, f64::INFINITY)
        } else {
            let middle = 0.5 * (least + most);
            (middle, most - middle + ROUNDING * most)
        };
        // A rate equal to the previous rate was not below it. A rate equal to the new one is neither below nor above it.
        let (from, to) = if now < before {
            (now * (1.0 + ROUNDING), before)
        } else {
            (before, now * (1.0 - ROUNDING))
        };
        let mut is_crossed = false;
        let active_flows = self.active_flows;
        for (at, crossing) in active_flows.crossings(link).iter().enumerate() {
            if LONG_PATHS && crossing.other == Crossing::LONG {
                let flow = active_flows.members(link)[at];
                let rate = self.pass_on_by_path(flow, link, least);
                is_crossed |= from <= rate && rate < to;
                if (rate - middle).abs() <= half {
                    self.crossed.push(flow);
                }
                continue;
            }
            let Offer {
                rate, undoubted, ..
            } = self.offers[crossing.other.index()];
            if least < undoubted {
                self.doubt(crossing.other);
            }
            if (rate - middle).abs() <= half {
                is_crossed |= from <= rate && rate < to;
                self.crossed.push(active_flows.members(link)[at]);
            }
        }
        is_crossed
    }

    /// Puts the other links of a flow's path in doubt if they advertise more than `least`. Returns their lowest rate.
    #[inline(never)]
    fn pass_on_by_path(&mut self, flow: u32, link: LinkId, least: f64) -> f64 {
        let path = &self.fabric.paths[flow as usize];
        let mut elsewhere = f64::INFINITY;
        for other in path.data().iter().filter(|other| **other != link) {
            let rate = self.offers[other.index()].rate;
            elsewhere = elsewhere.min(rate);
            if least < rate {
                self.doubt(*other);
            }
        }
        elsewhere
    }

    /// Reports the links whose rates have changed, and the flows that are now held back by another link.
    fn report(&mut self, changes: &mut Changes) {
        for link in self.changed.drain(..) {
            let offer = &mut self.offers[link.index()];
            offer.is_changed = false;
            changes.links.push((link, offer.rate));
        }
        let (active_flows, fabric) = (self.active_flows, self.fabric);
        self.crossed.extend(active_flows.started());
        while let Some(flow) = self.crossed.pop() {
            if active_flows.flows(flow) == 0 {
                continue;
            }
            let before = self.holders[flow as usize];
            let holder = self.holder(before, fabric.paths[flow as usize].data().iter());
            if holder.0 != before {
                self.holders[flow as usize] = holder.0;
                changes.held.push((flow, holder));
            }
        }
    }

    /// The link that holds back a flow: the previous one unless its rate exceeds the lowest rate by more than rounding.
    #[inline(always)]
    fn holder<'l>(&self, before: u32, links: impl Iterator<Item = &'l LinkId> + Clone) -> LinkId {
        let rate = |link: &LinkId| self.offers[link.index()].rate;
        let least = links.clone().map(rate).fold(f64::INFINITY, f64::min);
        let mut holders = links.filter(|link| rate(link) <= least * (1.0 + ROUNDING));
        let first = *holders.next().expect("the least is among them");
        if first.0 == before || holders.any(|link| link.0 == before) {
            LinkId(before)
        } else {
            first
        }
    }
}

/// The `a` with `sum of min(m, a) = capacity`, if the sum of all `m` is larger. Flows that cannot use an equal share leave
/// the unused part to the other flows.
#[inline(always)]
fn filling_rate(elsewhere: &mut [RateElsewhere], capacity: f64) -> f64 {
    let (mut left, mut count) = (capacity, elsewhere.len());
    let mut flows: f64 = elsewhere.iter().map(|member| member.flows).sum();
    loop {
        let equal = left / flows;
        let mut kept = 0;
        for place in 0..count {
            let member = elsewhere[place];
            if member.rate < equal {
                left -= member.rate * member.flows;
                flows -= member.flows;
            } else {
                elsewhere[kept] = member;
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

    #[test]
    fn fast_flows_share_equally_what_groups_of_slow_flows_leave() {
        let rate = |members: &[(f64, f64)]| {
            let mut elsewhere = Vec::new();
            for (rate, flows) in members.iter().copied() {
                elsewhere.push(RateElsewhere { rate, flows });
            }
            filling_rate(&mut elsewhere, 1.0)
        };
        assert_eq!(rate(&[(f64::INFINITY, 4.0)]), 0.25);
        assert_eq!(rate(&[(0.25, 1.0), (f64::INFINITY, 2.0)]), 0.375);
        assert_eq!(rate(&[(0.125, 2.0), (0.3, 1.0), (1.0, 1.0)]), 0.45);
    }
}
