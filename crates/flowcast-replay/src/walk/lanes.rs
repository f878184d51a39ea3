//! Times and costs on several networks, lane beside lane: lane 0 is the first network.

use std::collections::HashMap;

use crate::costs::{Costs, PathCosts};
use flowcast_trace::program::CollectiveCall;
use flowcast_units::{Rank, Time};

/// A time on each network.
pub(super) type Times<const W: usize> = [Time; W];

/// The later of two times.
#[inline(always)]
pub(super) fn later(a: Time, b: Time) -> Time {
    if a > b { a } else { b }
}

/// Lane by lane, the sum.
#[inline(always)]
pub(super) fn plus<const W: usize>(times: &Times<W>, more: &Times<W>) -> Times<W> {
    std::array::from_fn(|lane| times[lane] + more[lane])
}

/// Times of one message class, as in [`ClassCost`](crate::costs::ClassCost).
pub(crate) struct LaneClass<const W: usize> {
    pub delay: Times<W>,
    pub busy: Times<W>,
    pub held: Times<W>,
    pub rendezvous: bool,
}

/// What a message costs on one kind of route, as in [`PathCosts`].
pub(crate) struct LanePath<const W: usize> {
    pub send_overhead: Times<W>,
    pub recv_before: Times<W>,
    pub recv_after: Times<W>,
    pub classes: Vec<LaneClass<W>>,
}

/// The costs of up to `W` networks that agree on which sends wait for their receiver.
pub(crate) struct LaneCosts<'a, const W: usize> {
    pub paths: Vec<LanePath<W>>,
    /// By rank; absent if all processors compute at the speed of the trace.
    pub speeds: Option<Vec<[f64; W]>>,
    /// Whether an interface rests after a message on any network. If not, when it is free never matters.
    pub has_busy_interfaces: bool,
    /// By lane; the lanes behind the last network repeat it.
    pub networks: [&'a Costs; W],
}

impl<'a, const W: usize> LaneCosts<'a, W> {
    /// Of at least one network.
    pub(crate) fn new(costs: &[&'a Costs]) -> LaneCosts<'a, W> {
        let networks: [&Costs; W] = std::array::from_fn(|lane| costs[lane.min(costs.len() - 1)]);
        let first = networks[0];
        let speeds = |rank| std::array::from_fn(|lane| networks[lane].speeds[rank]);
        let as_traced = costs.iter().all(|costs| costs.is_as_traced);
        let paths = costs.iter().flat_map(|costs| &costs.paths);
        LaneCosts {
            paths: (0..first.paths.len()).map(|route| LanePath::new(|lane| &networks[lane].paths[route])).collect(),
            speeds: (!as_traced).then(|| (0..first.speeds.len()).map(speeds).collect()),
            has_busy_interfaces: paths
                .flat_map(|path| path.classes.iter().chain(&path.accesses))
                .any(|cost| cost.busy > Time::ZERO),
            networks,
        }
    }
}

impl<const W: usize> LanePath<W> {
    fn new<'a>(path: impl Fn(usize) -> &'a PathCosts) -> LanePath<W> {
        let class = |class: usize| LaneClass {
            delay: std::array::from_fn(|lane| path(lane).classes[class].delay),
            busy: std::array::from_fn(|lane| path(lane).classes[class].busy),
            held: std::array::from_fn(|lane| path(lane).classes[class].held),
            rendezvous: path(0).classes[class].rendezvous,
        };
        LanePath {
            send_overhead: std::array::from_fn(|lane| path(lane).send_overhead),
            recv_before: std::array::from_fn(|lane| path(lane).recv_before),
            recv_after: std::array::from_fn(|lane| path(lane).recv_after),
            classes: (0..path(0).classes.len()).map(class).collect(),
        }
    }
}

/// What collectives cost on all networks, each computed when it first occurs: by call or communicator, and by the group
/// of the rank that counts.
pub(super) struct CollectiveCosts<'a, const W: usize> {
    networks: &'a [&'a Costs; W],
    durations: HashMap<(u32, usize), Times<W>>,
    startups: HashMap<(u32, usize), Startup<W>>,
}

impl<'a, const W: usize> CollectiveCosts<'a, W> {
    /// None is known yet.
    pub(super) fn new(networks: &'a [&'a Costs; W]) -> Self {
        CollectiveCosts { networks, durations: HashMap::new(), startups: HashMap::new() }
    }

    /// What ranks of one group have in common.
    pub(super) fn group(&self, rank: Rank) -> usize {
        self.networks[0].group_index(rank)
    }

    /// What the operation takes after all have come if this rank's call, number `index`, decides.
    pub(super) fn duration(&mut self, index: u32, call: &CollectiveCall, rank: Rank) -> &Times<W> {
        let networks = self.networks;
        let of = |lane: usize| networks[lane].collective(call.op, call.communicator, rank, (call.send, call.recv));
        let key = (index, self.group(rank));
        self.durations.entry(key).or_insert_with(|| std::array::from_fn(of))
    }

    /// Start-up of a non-blocking or root-synchronous collective, and of the wait for one.
    pub(super) fn startup(&mut self, communicator: u32, rank: Rank) -> &Startup<W> {
        let networks = self.networks;
        let key = (communicator, self.group(rank));
        self.startups.entry(key).or_insert_with(|| {
            let of_wait: Times<W> = std::array::from_fn(|lane| networks[lane].collective_startup(communicator, rank));
            Startup { of_call: of_wait.map(Time::whole_nanos), of_wait }
        })
    }
}

/// Start-up of a collective.
pub(super) struct Startup<const W: usize> {
    /// Where it is called: whole nanoseconds.
    pub of_call: Times<W>,
    /// Where it is waited for.
    pub of_wait: Times<W>,
}
