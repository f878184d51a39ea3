//! Max-min fairness kept up for many flows of few paths: the equations of [`advertised`](super::advertised) for flows that
//! stand under the number of their path, with their count.
//!
//! What a link advertises depends only on links that advertise less. So links in doubt are solved in the order of their rates
//! before the change, and most of them once: first as if no other link's rate had come to the other side of the link's own,
//! which one sum answers, and exactly where that turns out wrong. What comes out is the rate of each link, and which link
//! holds each path back; a change costs as much as the links that it reaches have paths.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::filled_rates;
use crate::sharing::{
    Changes,
    active_flows::{ActiveFlows, Crossing},
    fabric::{Fabric, LinkId},
};

/// Relative difference below which two rates are one.
const ROUNDING: f64 = 1e-12;

/// So many times as many links as there are are solved anew after a change before all rates are.
const STEPS_PER_LINK: usize = 16;

/// Stands for no link.
const NONE: u32 = u32::MAX;

/// What a link advertises.
#[derive(Debug, Clone, Copy)]
struct Offer {
    /// Infinite where the link is no limit.
    rate: f64,
    /// The same, but [`IN_DOUBT`] while the link waits to be solved: one comparison asks for both.
    undoubted: f64,
    capacity: f64,
    is_changed: bool,
}

/// Less than any rate.
const IN_DOUBT: f64 = -1.0;

/// Links to be solved, by the bits of the rate that they advertised before.
type LinksInDoubt = BinaryHeap<Reverse<(u64, u32)>>;

/// The rate that each link advertises, in units of a node's interface, and which link holds each path back.
#[derive(Debug, Clone, Default)]
pub(super) struct Levels {
    /// What each link advertises, by link.
    offers: Vec<Offer>,
    /// How many links are a limit.
    limits: usize,
    /// By flow: the link that was last named as holding it back; [`NONE`] at first.
    holders: Vec<u32>,
    in_doubt: LinksInDoubt,
    changed: Vec<LinkId>,
    /// Flows whose links may have changed their order.
    crossed: Vec<u32>,
    /// What the flows of the link at hand could have elsewhere, and how many each number stands for.
    elsewhere: Vec<RateElsewhere>,
}

#[derive(Debug, Clone, Copy, Default)]
struct RateElsewhere {
    rate: f64,
    flows: f64,
}

/// The tables of a change that is solved, each at hand; `LONG_PATHS`: whether there are flows over more than two links.
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
    /// Solves what the changes of the active flows have touched.
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
            // Nothing else is to be solved.
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

    /// Makes place for all links, and for flows that have started.
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
    /// Where all flows cross one link, as a bus or the only receiver, and no other link is full with what that leaves them.
    /// Whether it is so.
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

    /// Whether flows start where none were, on so many of the links that water-filling, which looks at each link, costs less than
    /// to find their rates from one another.
    fn begins_anew(&self) -> bool {
        *self.limits == 0 && 4 * self.active_flows.touched().len() >= self.offers.len()
    }

    /// Settles a link that nothing crosses any more, or one of a flow that shares none of its two links. Whether it is such
    /// a link.
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

    /// Until no link is in doubt, or, after so many, all at once.
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

    /// Lets a link advertise another rate. Whether the rate of another link of its flows is between the two.
    #[inline(always)]
    fn change(&mut self, link: LinkId, before: f64, now: f64) -> bool {
        let least = if now < before { now } else { before };
        // Not so for two infinities, whose difference is no number.
        if (now - before).abs() > ROUNDING * least {
            self.advertise(link, now);
            self.pass_on(link, before, now)
        } else {
            false
        }
    }

    /// All rates by water-filling: links that are just full may pass differences by rounding around for ever.
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

    /// The least rate that the other links of a flow advertise.
    #[inline(always)]
    fn elsewhere(&self, link: LinkId, at: usize, crossing: &Crossing) -> f64 {
        if LONG_PATHS && crossing.other == Crossing::LONG {
            self.least_elsewhere(self.active_flows.members(link)[at], link)
        } else {
            self.offers[crossing.other.index()].rate
        }
    }

    /// The rate that fills a link if no other link's rate is between that and the rate before; none where nothing can be
    /// said so easily.
    #[inline(always)]
    fn likely_rate(&self, link: LinkId, before: f64) -> Option<f64> {
        if before == f64::INFINITY {
            return None;
        }
        // Without branches, which nobody could predict.
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

    /// The rate that fills a link.
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

    /// Brings links into doubt whose flows have or had a lower rate from this link than from them, and notes the flows whose
    /// links may have changed their order. Whether the rate of a link has come to the other side of this link's.
    #[inline(always)]
    fn pass_on(&mut self, link: LinkId, before: f64, now: f64) -> bool {
        let (least, most) = if now < before {
            (now, before)
        } else {
            (before, now)
        };
        // The middle and half the width of what may have been crossed, ends and rounding included.
        let (middle, half) = if most == f64::INFINITY {
            (0.0, f64::INFINITY)
        } else {
            let middle = 0.5 * (least + most);
            (middle, most - middle + ROUNDING * most)
        };
        // A rate like the one before was not less than that; one like this is no less and no more.
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

    /// The least rate of the other links.
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

    /// Names the links whose rates have changed, and the flows that change from one link to another.
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

    /// Which of these links holds a flow back: the one before unless its rate is more than rounding above the least.
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

/// The `a` with `sum of min(m, a) = capacity`, where the sum of all `m` is greater. Flows that cannot use an equal part
/// leave what they do not use to the others.
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
    fn a_link_is_filled_by_equal_parts_of_what_the_slow_leave_each_counted() {
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
