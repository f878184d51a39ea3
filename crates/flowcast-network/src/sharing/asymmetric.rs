//! Hierarchical Ethernet whose directions disturb each other (Zhu, Lastovetsky, Katrinis et al.), and a variant with
//! independent directions.
//!
//! With delta+ and delta- as the numbers of flows into and out of a node, the time per byte of a flow from a to b is
//!
//! `beta(a,b) = max(beta_E * delta_max(a), beta_E * delta_max(b), beta_O * delta_max(backbone))`,
//! `delta_max = max(delta+, delta-)`,
//!
//! where `beta_E` is the time per byte of the interface and `beta_O` is the time per byte of the backbone. The last term
//! applies only between racks. The maximum over the levels is our interpretation. Pure fairness ([`Counted::OwnDirection`])
//! counts only the flow's own direction; unlike max-min, it does not redistribute capacity that other flows leave unused.
//!
//! If both directions share a link, their flows add up: `delta_max` of a half-duplex port or of a bus is the number of all
//! flows that cross it.
//!
//! `backbone_from` is the number of flows from which the backbone is a limit; without it the ratio of the rates decides.
//! `backbone_share` caps the rate of a flow over a saturated backbone.

use super::{
    Allocations, Changes, RateModel, SharingError,
    active_flows::ActiveFlows,
    fabric::{AllocatedFraction, Allocation, Fabric, Limit, LinkId},
};

/// Conditions under which the backbone limits a flow.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Saturation {
    /// Number of flows from which the backbone is a limit. `None`: whenever it is slower than the interfaces.
    pub from: Option<u32>,
    /// Maximum share of a flow over a saturated backbone.
    pub cap: Option<AllocatedFraction>,
}

/// Each link divides its capacity equally among its flows, regardless of their other links.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EqualParts {
    /// Conditions under which the backbone limits flows between racks, and the limit.
    pub saturation: Saturation,
    /// Direction whose flows are counted.
    pub counted: Counted,
}

/// Direction whose flows are counted for a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The busier direction: both disturb each other.
    BusierDirection,
    /// The link's own direction: "pure fairness".
    OwnDirection,
}

impl RateModel for EqualParts {
    fn shares(&mut self, fabric: &Fabric, active: &[usize]) -> Allocations {
        let counts = fabric.flows_per_link(active);
        let allocations = active
            .iter()
            .map(|flow| self.allocation(fabric, *flow, &|link: LinkId| counts[link.index()]));
        Ok(allocations.collect())
    }

    fn is_by_path(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn update(
        &mut self,
        fabric: &Fabric,
        active_flows: &mut ActiveFlows,
        changes: &mut Changes,
    ) -> Result<(), SharingError> {
        for touched in active_flows.touched() {
            let links = match self.counted {
                Counted::OwnDirection => &[*touched][..],
                Counted::BusierDirection => &[*touched, fabric.opposite(*touched)],
            };
            for link in links {
                self.update_link(fabric, active_flows, *link, changes);
            }
        }
        Ok(())
    }
}

impl EqualParts {
    fn update_link(
        &self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
        link: LinkId,
        changes: &mut Changes,
    ) {
        let count = |link: LinkId| active_flows.flows_over(link);
        if !changes.may_name_links {
            for flow in active_flows.members(link) {
                let allocation = self.allocation(fabric, *flow as usize, &count);
                changes.flows.push((*flow, allocation));
            }
            return;
        }
        let share = |link: LinkId| {
            link_share(fabric, link, count(link), self.saturation).min(fabric.capacity(link).0)
        };
        changes.links.push((link, share(link)));
        for flow in active_flows.members(link) {
            let path = &fabric.paths[*flow as usize];
            let counted = path
                .data()
                .iter()
                .map(|own| self.counted_link(fabric, *own, &count));
            let narrowest = counted.min_by(|a, b| share(*a).total_cmp(&share(*b)));
            changes
                .held
                .extend(narrowest.map(|narrowest| (*flow, narrowest)));
        }
    }

    /// The link or its opposite direction, depending on which of them counts.
    fn counted_link(&self, fabric: &Fabric, own: LinkId, count: &impl Fn(LinkId) -> u32) -> LinkId {
        let opposite = fabric.opposite(own);
        match self.counted {
            Counted::BusierDirection if count(opposite) > count(own) => opposite,
            _ => own,
        }
    }

    fn allocation(
        &self,
        fabric: &Fabric,
        flow: usize,
        count: &impl Fn(LinkId) -> u32,
    ) -> Allocation {
        let path = &fabric.paths[flow];
        let mut best = Allocation {
            share: fabric.uncontended_share(path),
            limit: Limit::Alone,
        };
        for own in path.data() {
            let link = self.counted_link(fabric, *own, count);
            let share = link_share(fabric, link, count(link), self.saturation);
            // If two levels leave the same share up to rounding, the one closer to the node is reported.
            if share < best.share.0 * (1.0 - 1e-12) {
                best = Allocation {
                    share: AllocatedFraction(share),
                    limit: Limit::Link(link),
                };
            }
        }
        best
    }
}

fn link_share(fabric: &Fabric, link: LinkId, flows: u32, saturation: Saturation) -> f64 {
    let share = fabric.capacity(link).0 / f64::from(flows);
    if fabric.is_of_node(link) || fabric.is_shared(link) {
        return share;
    }
    let is_saturated = saturation.from.map_or(share < 1.0, |from| flows >= from);
    match (is_saturated, saturation.cap) {
        (false, _) => f64::INFINITY,
        (true, cap) => cap.map_or(share, |cap| share.min(cap.0)),
    }
}
