//! Times and costs on several networks, side by side in lanes; lane 0 is the first network.

use std::{array::from_fn, collections::HashMap};

use super::grid::LaneGrid;
use crate::costs::{Costs, PathCosts};
use flowcast_program::{program::CollectiveCall, slot::Slot};
use flowcast_units::{Rank, Time};

/// A time on each network.
pub(super) type Times<const W: usize> = [Time; W];

/// The later of two times.
#[inline(always)]
pub(super) fn later(a: Time, b: Time) -> Time {
    if a > b { a } else { b }
}

/// Sum of two sets of times, lane by lane.
#[inline(always)]
pub(super) fn plus<const W: usize>(times: &Times<W>, more: &Times<W>) -> Times<W> {
    from_fn(|lane| times[lane] + more[lane])
}

/// Times of one message class, as in [`ClassCost`](crate::costs::ClassCost).
pub(crate) struct LaneClass<const W: usize> {
    pub send: Times<W>,
    pub receive: Times<W>,
    pub delay: Times<W>,
    pub busy: Times<W>,
    pub held: Times<W>,
    pub leaves: Times<W>,
    pub rendezvous: bool,
    /// `true` if the sender continues while its interface is busy.
    pub queues: bool,
    /// `true` if ranks wait for messages to leave interfaces, so that all these times are recorded.
    pub is_noted: bool,
}

/// Costs of messages on one kind of route, as in [`PathCosts`].
pub(crate) struct LanePath<const W: usize> {
    pub recv_before: Times<W>,
    pub recv_after: Times<W>,
    pub classes: Vec<LaneClass<W>>,
}

/// Properties of interfaces on any of the networks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interfaces {
    /// `true` if an interface rests after a message. Otherwise the time at which an interface is free never matters.
    pub are_busy: bool,
    /// `true` if ranks wait for messages to leave interfaces.
    pub have_queues: bool,
}

/// Costs of up to `W` networks that agree on the sends that wait for their receiver, and on whether overheads depend on the
/// size.
pub(crate) struct LaneCosts<'a, const W: usize> {
    pub paths: Vec<LanePath<W>>,
    /// Speed of each processor, indexed by rank; `None` if all processors compute at the speed of the trace.
    pub speeds: Option<Vec<[f64; W]>>,
    pub interfaces: Interfaces,
    /// Network of each lane; lanes after the last network repeat it.
    pub networks: [&'a Costs; W],
    /// Grid on which all times lie.
    pub(super) grid: LaneGrid,
}

impl<'a, const W: usize> LaneCosts<'a, W> {
    /// Costs on at least one network.
    pub(crate) fn new(costs: &[&'a Costs]) -> LaneCosts<'a, W> {
        LaneCosts::of_part(costs, costs)
    }

    /// Costs of one part of a program. `parts` are the costs of all its parts: one part may leave interfaces busy for the
    /// next.
    pub(super) fn of_part(costs: &[&'a Costs], parts: &[&Costs]) -> LaneCosts<'a, W> {
        let networks: [&Costs; W] = from_fn(|lane| costs[lane.min(costs.len() - 1)]);
        let first = networks[0];
        let speeds = |rank| from_fn(|lane| networks[lane].speeds[rank]);
        let are_busy = parts.iter().any(|costs| costs.has_busy_interfaces());
        let interfaces = Interfaces {
            are_busy,
            have_queues: are_busy && costs.iter().any(|costs| costs.awaits_sends),
        };
        let as_traced = costs.iter().all(|costs| costs.is_as_traced);
        LaneCosts {
            paths: (0..first.paths.len())
                .map(|route| LanePath::new(|lane| &networks[lane].paths[route], interfaces))
                .collect(),
            speeds: (!as_traced).then(|| (0..first.speeds.len()).map(speeds).collect()),
            interfaces,
            networks,
            grid: LaneGrid::NONE,
        }
    }

    /// Rounds each cost to the nearest multiple of the grid's tick.
    pub(super) fn on(self, grid: LaneGrid) -> LaneCosts<'a, W> {
        let speeds = |rank| from_fn(|lane| self.networks[lane].speeds[rank]);
        LaneCosts {
            speeds: Some((0..self.networks[0].speeds.len()).map(speeds).collect()),
            paths: self.paths.into_iter().map(|path| path.on(grid)).collect(),
            grid,
            ..self
        }
    }

    /// Processor time of the receiver after the message of a slot has arrived.
    #[inline(always)]
    pub(super) fn received_after<'p>(&self, path: &'p LanePath<W>, slot: Slot) -> &'p Times<W> {
        match self.networks[0].class_of_slot.get(slot.index()) {
            Some(class) => &path.classes[*class as usize].receive,
            None => &path.recv_after,
        }
    }
}

impl<const W: usize> LanePath<W> {
    fn new<'a>(path: impl Fn(usize) -> &'a PathCosts, interfaces: Interfaces) -> LanePath<W> {
        let queues = |class: usize| interfaces.are_busy && path(0).classes[class].queues;
        LanePath {
            recv_before: from_fn(|lane| path(lane).recv_before),
            recv_after: from_fn(|lane| path(lane).recv_after),
            classes: (0..path(0).classes.len())
                .map(|class: usize| LaneClass {
                    send: from_fn(|lane| path(lane).classes[class].send),
                    receive: from_fn(|lane| path(lane).classes[class].receive),
                    delay: from_fn(|lane| path(lane).classes[class].delay),
                    busy: from_fn(|lane| path(lane).classes[class].busy),
                    held: from_fn(|lane| path(lane).classes[class].held),
                    leaves: from_fn(|lane| path(lane).classes[class].leaves()),
                    rendezvous: path(0).classes[class].rendezvous,
                    queues: queues(class),
                    is_noted: interfaces.have_queues,
                })
                .collect(),
        }
    }

    fn on(mut self, grid: LaneGrid) -> LanePath<W> {
        let round =
            |times: &mut Times<W>| times.iter_mut().for_each(|time| *time = grid.round(*time));
        round(&mut self.recv_before);
        round(&mut self.recv_after);
        self.classes
            .iter_mut()
            .flat_map(|class| {
                [
                    &mut class.send,
                    &mut class.receive,
                    &mut class.delay,
                    &mut class.busy,
                    &mut class.held,
                    &mut class.leaves,
                ]
            })
            .for_each(round);
        self
    }
}

/// Costs of collectives on all networks, each computed on first use. The key is the call or communicator, and the group of
/// the rank that determines the cost.
pub(super) struct CollectiveCosts<'a, const W: usize> {
    networks: &'a [&'a Costs; W],
    grid: LaneGrid,
    durations: HashMap<(u32, usize), Times<W>>,
    startups: HashMap<(u32, usize), Startup<W>>,
}

impl<'a, const W: usize> CollectiveCosts<'a, W> {
    /// Creates a table without costs, which are computed on first use.
    pub(super) fn new(costs: &'a LaneCosts<'a, W>) -> Self {
        let LaneCosts { networks, grid, .. } = costs;
        CollectiveCosts {
            networks,
            grid: *grid,
            durations: HashMap::new(),
            startups: HashMap::new(),
        }
    }

    /// Group of a rank; ranks of the same group have the same costs.
    pub(super) fn group(&self, rank: Rank) -> usize {
        self.networks[0].group_index(rank)
    }

    /// Duration of the operation after all ranks have arrived, if the call of this rank, with the number `index`, determines
    /// it.
    pub(super) fn duration(&mut self, index: u32, call: &CollectiveCall, rank: Rank) -> &Times<W> {
        let networks = self.networks;
        let key = (index, self.group(rank));
        self.durations.entry(key).or_insert_with(|| {
            from_fn(|lane: usize| {
                let takes = networks[lane].collective(
                    call.op,
                    call.communicator,
                    rank,
                    call.send,
                    call.recv,
                );
                self.grid.round(takes)
            })
        })
    }

    /// Start-up of a non-blocking or root-synchronous collective, and of the wait for one.
    pub(super) fn startup(&mut self, communicator: u32, rank: Rank) -> &Startup<W> {
        let networks = self.networks;
        let key = (communicator, self.group(rank));
        self.startups.entry(key).or_insert_with(|| {
            let of_wait: Times<W> =
                from_fn(|lane| networks[lane].collective_startup(communicator, rank));
            let of_call = of_wait.map(Time::whole_nanos);
            Startup {
                of_call: of_call.map(|time| self.grid.round(time)),
                of_wait: of_wait.map(|time| self.grid.round(time)),
            }
        })
    }
}

/// Start-up of a collective.
pub(super) struct Startup<const W: usize> {
    /// Start-up of the call, in whole nanoseconds.
    pub of_call: Times<W>,
    /// Start-up of the wait.
    pub of_wait: Times<W>,
}
