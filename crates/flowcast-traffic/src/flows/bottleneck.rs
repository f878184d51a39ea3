//! Links that limit flows in packet simulations, derived from the rates of the flows.

use flowcast_network::sharing::{
    completion::RateInterval,
    fabric::{Fabric, Limit, LinkId},
};
use flowcast_units::Time;

/// Fraction of its capacity below which a link limits no flow.
const BUSY: f64 = 0.8;

/// Share of an interface from which a flow counts as being as fast as alone; headers and acknowledgements need the rest.
const FULL: f64 = 0.9;

/// Ratio of a link's load to a flow's share up to which the flow counts as alone on the link.
const SAME: f64 = 1.01;

/// Sets the limit of each interval to the busiest link of the flow's data, or otherwise of its acknowledgements.
pub(super) fn name_links(intervals: &mut [Vec<RateInterval>], fabric: &Fabric) {
    let mut changes = vec![Vec::new(); fabric.link_count()];
    for (intervals, path) in intervals.iter().zip(&fabric.paths) {
        for interval in intervals {
            for link in path.data() {
                changes[link.index()].push((interval.from, interval.share.0));
                changes[link.index()].push((interval.to, -interval.share.0));
            }
        }
    }
    let loads: Vec<_> = changes.into_iter().map(LinkLoad::new).collect();
    for (intervals, path) in intervals.iter_mut().zip(&fabric.paths) {
        for interval in intervals {
            let mut of_data = path
                .data()
                .iter()
                .map(|link| loads[link.index()].mean(interval));
            let is_alone = of_data.all(|load| load <= SAME * interval.share.0);
            interval.limit =
                if !is_alone && let Some(link) = busiest(path.data(), interval, &loads, fabric) {
                    Limit::Link(link)
                } else if interval.share.0 < FULL
                    && let Some(link) = busiest(path.acknowledgements(), interval, &loads, fabric)
                {
                    Limit::Acknowledgements(link)
                } else if is_alone {
                    Limit::Alone
                } else {
                    Limit::Queues
                };
        }
    }
}

/// Link with the highest utilisation in an interval; `None` if the utilisation is below [`BUSY`].
fn busiest(
    links: &[LinkId],
    interval: &RateInterval,
    loads: &[LinkLoad],
    fabric: &Fabric,
) -> Option<LinkId> {
    let used = links.iter().map(|link| {
        let load = loads[link.index()].mean(interval);
        (load / fabric.capacity(*link).0, *link)
    });
    let (used, link) = used.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (used >= BUSY).then_some(link)
}

/// Total load of a link by its flows, over time.
struct LinkLoad {
    changes: Vec<LoadChange>,
}

/// Load from this time on, in interfaces, and its integral until this time, in interfaces times nanoseconds.
struct LoadChange {
    at: Time,
    load: f64,
    carried: f64,
}

impl LinkLoad {
    fn new(mut steps: Vec<(Time, f64)>) -> LinkLoad {
        steps.sort_by_key(|step| step.0);
        let mut changes: Vec<LoadChange> = Vec::with_capacity(steps.len());
        for (at, step) in steps {
            let (load, carried) = changes
                .last()
                .map_or((0.0, 0.0), |last| (last.load, last.until(at)));
            changes.push(LoadChange {
                at,
                load: load + step,
                carried,
            });
        }
        LinkLoad { changes }
    }

    fn mean(&self, interval: &RateInterval) -> f64 {
        let carried = self.carried_until(interval.to) - self.carried_until(interval.from);
        carried / (interval.to - interval.from).as_nanos()
    }

    fn carried_until(&self, at: Time) -> f64 {
        let after = self.changes.partition_point(|change| change.at <= at);
        let last = after.checked_sub(1);
        last.map_or(0.0, |last| self.changes[last].until(at))
    }
}

impl LoadChange {
    fn until(&self, at: Time) -> f64 {
        self.carried + self.load * (at - self.at).as_nanos()
    }
}
