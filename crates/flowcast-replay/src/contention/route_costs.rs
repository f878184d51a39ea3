//! Costs of messages, arranged for the engine: each delay with its lane in the queue of events.

use super::{
    super::costs::{ClassCost, Costs, PathCosts},
    events::{Event, Pending},
};
use flowcast_program::slot::Slot;
use flowcast_traffic::queues::lanes::Lane;
use flowcast_units::Time;

/// A delay shared by many events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delay {
    /// Length of the delay.
    pub time: Time,
    /// Lane of the events that come after this delay.
    pub lane: Lane,
}

impl Delay {
    /// A delay without a lane.
    pub(super) fn new(time: Time) -> Delay {
        Delay {
            time,
            lane: Lane::NONE,
        }
    }

    /// Inserts an event that is due after the delay; returns its time.
    #[inline(always)]
    pub(super) fn schedule(self, pending: &mut Pending, event: Event) -> Time {
        let time = pending.now() + self.time;
        pending.put(self.lane, time, event);
        time
    }
}

/// Costs of the messages of one class.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move {
    /// Processor time of the sender.
    pub send: Delay,
    /// Processor time of the receiver after the message has arrived.
    pub receive: Delay,
    /// Time from the start of the transfer to the arrival.
    pub arrives: Delay,
    /// Time for which the links are occupied; equal to `arrives` without additional latency.
    pub bytes: Delay,
    /// These and all other costs, without lanes.
    pub cost: ClassCost,
}

/// Costs of messages on one kind of route.
#[derive(Debug, Clone)]
pub(super) struct RouteCosts {
    /// Processor time of the receiver before it looks for the message.
    pub before: Delay,
    /// Processor time of the receiver after the message has arrived, if it does not depend on the size.
    after: Delay,
    /// `true` if messages arrive later than they leave the links.
    pub has_latency: bool,
    /// Costs of each message class, indexed by class.
    pub moves: Vec<Move>,
}

impl RouteCosts {
    /// Processor time of the receiver after the message of a slot has arrived.
    #[inline(always)]
    pub(super) fn received_after(&self, costs: &Costs, slot: Slot) -> Delay {
        match costs.class_of_slot.get(slot.index()) {
            Some(class) => self.moves[*class as usize].receive,
            None => self.after,
        }
    }
}

/// Costs of all routes, with lanes for their delays.
pub(super) fn route_costs(costs: &Costs, pending: &mut Pending) -> Vec<RouteCosts> {
    pending.open_lanes(
        costs
            .paths
            .iter()
            .flat_map(|path: &PathCosts| {
                let delays = path
                    .classes
                    .iter()
                    .flat_map(|class| [class.send, class.receive, class.delay, class.bytes]);
                [path.recv_before, path.recv_after]
                    .into_iter()
                    .chain(delays)
                    .collect::<Vec<Time>>()
            })
            .collect(),
    );
    costs
        .paths
        .iter()
        .map(|path| on_route(path, pending))
        .collect()
}

fn on_route(path: &PathCosts, pending: &Pending) -> RouteCosts {
    let delay = |time: Time| Delay {
        time,
        lane: pending.lane(time),
    };
    let moves = path.classes.iter().map(|class| Move {
        send: delay(class.send),
        receive: delay(class.receive),
        arrives: delay(class.delay),
        bytes: delay(class.bytes),
        cost: *class,
    });
    RouteCosts {
        before: delay(path.recv_before),
        after: delay(path.recv_after),
        has_latency: path.latency > Time::ZERO
            || path
                .classes
                .iter()
                .any(|class| class.added_latency > Time::ZERO),
        moves: moves.collect(),
    }
}
