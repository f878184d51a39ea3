//! No sharing: each flow runs as if it were alone. This is the baseline for the other models.

use super::{
    Allocations, RateModel,
    active_flows::Reach,
    fabric::{Allocation, Fabric, Limit},
};

/// Flows that do not affect each other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Independent;

impl RateModel for Independent {
    fn shares(&mut self, fabric: &Fabric, active: &[usize]) -> Allocations {
        Ok(active
            .iter()
            .map(|flow: &usize| Allocation {
                share: fabric.uncontended_share(&fabric.paths[*flow]),
                limit: Limit::Alone,
            })
            .collect())
    }

    fn reach(&self) -> Reach {
        Reach::Itself
    }
}
