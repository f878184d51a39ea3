//! Max-min fairness kept up while flows come and go: each link advertises a rate (Charny, 1994).
//!
//! A flow gets the least of the rates that the links of its path advertise. The rate of a link is the `a` that fills
//! it: `sum of min(m_i, a) = C` over its flows, with `m_i` the least rate that the other links of flow `i` advertise;
//! a link that its flows cannot fill advertises no limit. Where all these equations hold, each flow has a full link on
//! its path on which nobody gets more: the condition of max-min fairness, whose solution is unique.
//!
//! After a change only the equations of the links touched are in doubt. They are solved anew, one link after the
//! other, and a link whose rate changes brings those into doubt whose flows it held back, or holds back now. Rates that
//! differ by rounding are the same.

use std::collections::VecDeque;

use super::max_min;
use crate::sharing::Changes;
use crate::sharing::active_flows::ActiveFlows;
use crate::sharing::fabric::{AllocatedFraction, Allocation, Fabric, Limit, LinkId};

/// Relative difference below which two rates are one.
const ROUNDING: f64 = 1e-12;

/// So many times as many links as there are are solved anew after a change before all rates are.
const PATIENCE: usize = 16;

/// The rates advertised.
#[derive(Debug, Clone, Default)]
pub(super) struct Advertised {
    /// By link; infinite where the link is no limit.
    rates: Vec<f64>,
    in_doubt: VecDeque<LinkId>,
    is_in_doubt: Vec<bool>,
    changed: Vec<LinkId>,
    is_changed: Vec<bool>,
    /// What the flows of the link at hand could have elsewhere.
    elsewhere: Vec<f64>,
}

impl Advertised {
    /// Solves what the changes of the active flows have touched.
    pub(super) fn update(&mut self, fabric: &Fabric, active_flows: &ActiveFlows, changes: &mut Changes) {
        if self.rates.len() < fabric.link_count() {
            self.rates.resize(fabric.link_count(), f64::INFINITY);
            self.is_in_doubt.resize(fabric.link_count(), false);
            self.is_changed.resize(fabric.link_count(), false);
        }
        for link in active_flows.touched() {
            self.doubt(*link);
            self.note_change(*link);
        }
        let mut patience = PATIENCE * (fabric.link_count() + 1);
        while let Some(link) = self.in_doubt.pop_front() {
            self.is_in_doubt[link.index()] = false;
            if patience == 0 {
                continue;
            }
            patience -= 1;
            let (before, now) = (self.rates[link.index()], self.rate(fabric, active_flows, link));
            // Not so for two infinities, whose difference is no number.
            if (now - before).abs() > ROUNDING * now.min(before) {
                self.rates[link.index()] = now;
                self.note_change(link);
                self.pass_on(fabric, active_flows, link, now.min(before));
            }
        }
        if patience == 0 {
            self.fill(fabric, active_flows);
        }
        self.report(fabric, active_flows, changes);
    }

    /// All rates by water-filling: links that are just full may pass differences by rounding around for ever.
    fn fill(&mut self, fabric: &Fabric, active_flows: &ActiveFlows) {
        let links = || (0..fabric.link_count() as u32).map(LinkId);
        let mut active: Vec<usize> =
            links().flat_map(|link| active_flows.members(link)).map(|flow| *flow as usize).collect();
        active.sort_unstable();
        active.dedup();
        let mut shares = vec![0.0; fabric.paths.len()];
        for (flow, allocation) in active.iter().zip(max_min(fabric, &active)) {
            shares[*flow] = allocation.share.0;
        }
        for link in links() {
            let of_members = || active_flows.members(link).iter().map(|flow| shares[*flow as usize]);
            let is_full = of_members().sum::<f64>() >= fabric.capacity(link).0 * (1.0 - 1e-9);
            let rate = if is_full { of_members().fold(0.0, f64::max) } else { f64::INFINITY };
            if rate != self.rates[link.index()] {
                self.rates[link.index()] = rate;
                self.note_change(link);
            }
        }
    }

    fn doubt(&mut self, link: LinkId) {
        if !std::mem::replace(&mut self.is_in_doubt[link.index()], true) {
            self.in_doubt.push_back(link);
        }
    }

    fn note_change(&mut self, link: LinkId) {
        if !std::mem::replace(&mut self.is_changed[link.index()], true) {
            self.changed.push(link);
        }
    }

    /// The rate that fills a link.
    fn rate(&mut self, fabric: &Fabric, active_flows: &ActiveFlows, link: LinkId) -> f64 {
        let capacity = fabric.capacity(link).0;
        self.elsewhere.clear();
        let (mut wanted, mut most) = (0.0, 0.0f64);
        for flow in active_flows.members(link) {
            let others = fabric.paths[*flow as usize].data().iter().filter(|other| **other != link);
            let rate = others.map(|other| self.rates[other.index()]).fold(f64::INFINITY, f64::min);
            self.elsewhere.push(rate);
            wanted += rate;
            most = most.max(rate);
        }
        if wanted < capacity * (1.0 - ROUNDING) || self.elsewhere.is_empty() || capacity == f64::INFINITY {
            return f64::INFINITY;
        }
        // Full with what they have: the link is a limit beside others.
        if wanted <= capacity * (1.0 + ROUNDING) { most } else { filling_rate(&mut self.elsewhere, capacity) }
    }

    /// Links whose flows have or had a rate from this link that they could feel.
    fn pass_on(&mut self, fabric: &Fabric, active_flows: &ActiveFlows, link: LinkId, least: f64) {
        for flow in active_flows.members(link) {
            for other in fabric.paths[*flow as usize].data() {
                if *other != link && least < self.rates[other.index()] * (1.0 + ROUNDING) {
                    self.doubt(*other);
                }
            }
        }
    }

    fn report(&mut self, fabric: &Fabric, active_flows: &ActiveFlows, changes: &mut Changes) {
        while let Some(link) = self.changed.pop() {
            self.is_changed[link.index()] = false;
            changes.extend(active_flows.members(link).iter().map(|flow| (*flow, self.allocation(fabric, *flow))));
        }
    }

    fn allocation(&self, fabric: &Fabric, flow: u32) -> Allocation {
        let path = &fabric.paths[flow as usize];
        let share = path.data().iter().map(|link| self.rates[link.index()]).fold(f64::INFINITY, f64::min);
        if share >= fabric.uncontended_share(path).0 {
            return Allocation { share: AllocatedFraction(share), limit: Limit::Alone };
        }
        // Of links that are as much of a limit the lowest number is named, as water-filling does.
        let is_limit = |link: &&LinkId| self.rates[link.index()] <= share * (1.0 + 1e-9);
        let link = path.data().iter().filter(is_limit).min().expect("the least is among them");
        Allocation { share: AllocatedFraction(share), limit: Limit::Link(*link) }
    }
}

/// The `a` with `sum of min(m, a) = capacity`, where the sum of all `m` is greater. Flows that cannot use an equal part
/// leave what they do not use to the others.
fn filling_rate(elsewhere: &mut Vec<f64>, capacity: f64) -> f64 {
    let mut left = capacity;
    loop {
        let count = elsewhere.len();
        let equal = left / count as f64;
        elsewhere.retain(|rate| {
            let is_below = *rate < equal;
            left -= if is_below { *rate } else { 0.0 };
            !is_below
        });
        if elsewhere.len() == count || elsewhere.is_empty() {
            return equal;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::flow::Flow;
    use crate::cluster::racks::Racks;
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
        fabric.paths.iter().enumerate().for_each(|(flow, path)| active_flows.insert(flow as u32, path));
        let mut advertised = Advertised::default();
        advertised.update(&fabric, &active_flows, &mut Changes::new());
        let agreed: Vec<Allocation> = (0..ends.len() as u32).map(|flow| advertised.allocation(&fabric, flow)).collect();
        advertised.rates.fill(0.5);
        advertised.fill(&fabric, &active_flows);
        for (flow, agreed) in agreed.iter().enumerate() {
            let filled = advertised.allocation(&fabric, flow as u32);
            assert!((filled.share.0 - agreed.share.0).abs() < 1e-12, "{filled:?} {agreed:?}");
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
