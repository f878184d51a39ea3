//! Media shared by groups of nodes, for models whose rule for a flow considers only the nodes' own links.

use super::fabric::{AllocatedFraction, Allocation, Fabric, Limit, LinkId};

/// If the shares of the flows over a bus add up to more than its capacity, all of them are scaled down by the same factor. A
/// flow over two such buses gets the factor of the fuller bus.
pub(super) fn fit_into_buses(fabric: &Fabric, active: &[usize], allocations: &mut [Allocation]) {
    let buses = |flow: usize| {
        fabric.paths[flow].data()[2..]
            .iter()
            .copied()
            .filter(|link| fabric.is_bus(*link))
    };
    let mut loads = vec![0.0; fabric.link_count()];
    for (flow, allocation) in active.iter().zip(&*allocations) {
        buses(*flow).for_each(|bus| loads[bus.index()] += allocation.share.0);
    }
    let part = |bus: &LinkId| fabric.capacity(*bus).0 / loads[bus.index()];
    for (flow, allocation) in active.iter().zip(allocations) {
        let fullest = buses(*flow).min_by(|a, b| part(a).total_cmp(&part(b)));
        // Below 1 by more than rounding errors.
        if let Some(bus) = fullest.filter(|bus| part(bus) < 1.0 - 1e-12) {
            let share = AllocatedFraction(allocation.share.0 * part(&bus));
            *allocation = Allocation {
                share,
                limit: Limit::Link(bus),
            };
        }
    }
}
