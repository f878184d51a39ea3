//! The costs of several networks, lane beside lane.

use std::collections::HashMap;

use super::times::Times;
use crate::costs::{Costs, PathCosts};
use flowcast_trace::program::CollectiveCall;
use flowcast_units::Rank;

/// Times of one message class, as in `ClassCost`.
pub struct LaneClass<const W: usize> {
    pub delay: Times<W>,
    pub busy: Times<W>,
    pub held: Times<W>,
    pub rendezvous: bool,
}

/// What a message costs on one kind of way, as in `PathCosts`.
pub struct LanePath<const W: usize> {
    pub send_overhead: Times<W>,
    pub recv_before: Times<W>,
    pub recv_after: Times<W>,
    pub classes: Vec<LaneClass<W>>,
}

/// The costs of up to `W` networks that agree on which sends wait for their receiver.
pub struct LaneCosts<'a, const W: usize> {
    pub paths: Vec<LanePath<W>>,
    /// By rank; absent if all processors compute at the speed of the trace.
    pub speeds: Option<Vec<Times<W>>>,
    /// By lane; the lanes behind the last network repeat it.
    pub networks: [&'a Costs; W],
    /// Lanes in use.
    pub lanes: usize,
}

impl<'a, const W: usize> LaneCosts<'a, W> {
    /// Of at least one network.
    pub fn new(costs: &[&'a Costs]) -> LaneCosts<'a, W> {
        let networks: [&Costs; W] = std::array::from_fn(|lane| costs[lane.min(costs.len() - 1)]);
        let first = networks[0];
        let speeds = |rank| Times::from_lanes(|lane| networks[lane].speeds[rank]);
        let as_traced = costs.iter().all(|costs| costs.speeds.iter().all(|speed| *speed == 1.0));
        LaneCosts {
            paths: (0..first.paths.len()).map(|way| LanePath::new(|lane| &networks[lane].paths[way])).collect(),
            speeds: if as_traced { None } else { Some((0..first.speeds.len()).map(speeds).collect()) },
            networks,
            lanes: costs.len(),
        }
    }

    /// Whether any sender waits for its receiver.
    pub fn has_rendezvous(&self) -> bool {
        self.networks[0].has_rendezvous()
    }

    /// Whether an interface rests after a message in any lane.
    pub fn has_busy_interfaces(&self) -> bool {
        let mut classes = self.paths.iter().flat_map(|path| &path.classes);
        classes.any(|class| class.busy.0.iter().any(|nanos| *nanos != 0.0))
    }
}

impl<const W: usize> LanePath<W> {
    fn new<'a>(path: impl Fn(usize) -> &'a PathCosts) -> LanePath<W> {
        LanePath {
            send_overhead: Times::from_lanes(|lane| path(lane).send_overhead),
            recv_before: Times::from_lanes(|lane| path(lane).recv_before),
            recv_after: Times::from_lanes(|lane| path(lane).recv_after),
            classes: (0..path(0).classes.len())
                .map(|class| LaneClass {
                    delay: Times::from_lanes(|lane| path(lane).classes[class].delay),
                    busy: Times::from_lanes(|lane| path(lane).classes[class].busy),
                    held: Times::from_lanes(|lane| path(lane).classes[class].held),
                    rendezvous: path(0).classes[class].rendezvous,
                })
                .collect(),
        }
    }
}

/// What collectives cost in all lanes, each computed when it first occurs: by call or communicator, and by the group of
/// the rank that counts.
pub struct CollectiveCosts<'a, const W: usize> {
    networks: &'a [&'a Costs; W],
    durations: HashMap<(u32, usize), Times<W>>,
    startups: HashMap<(u32, usize), Startup<W>>,
}

impl<'a, const W: usize> CollectiveCosts<'a, W> {
    /// None is known yet.
    pub fn new(networks: &'a [&'a Costs; W]) -> Self {
        CollectiveCosts { networks, durations: HashMap::new(), startups: HashMap::new() }
    }

    /// What ranks of one group have in common.
    pub fn group(&self, rank: u32) -> usize {
        self.networks[0].group_index(Rank(rank))
    }

    /// What the operation takes after all have come if this rank's call, number `index`, decides.
    pub fn duration(&mut self, index: u32, call: &CollectiveCall, rank: u32) -> &Times<W> {
        let networks = self.networks;
        let of =
            |lane: usize| networks[lane].collective(call.op, call.communicator, Rank(rank), (call.send, call.recv));
        let key = (index, self.group(rank));
        self.durations.entry(key).or_insert_with(|| Times::from_lanes(of))
    }

    /// Start-up of an immediate or root-synchronous collective, and of the wait for one.
    pub fn startup(&mut self, communicator: u32, rank: u32) -> &Startup<W> {
        let networks = self.networks;
        let key = (communicator, self.group(rank));
        self.startups.entry(key).or_insert_with(|| {
            let of_wait = Times::from_lanes(|lane| networks[lane].collective_startup(communicator, Rank(rank)));
            Startup { of_call: Times::from_lanes(|lane| of_wait.0[lane].trunc()), of_wait }
        })
    }
}

/// Start-up of a collective.
pub struct Startup<const W: usize> {
    /// Where it is called: whole nanoseconds.
    pub of_call: Times<W>,
    /// Where it is waited for.
    pub of_wait: Times<W>,
}
