//! Replay of a program whose messages compete for links, buses and processors: Dimemas' rules, event by event.
//!
//! Each rank takes turns: it gets a processor of its node, executes its next instruction, and returns the processor while it
//! waits. A message between nodes needs an out link, an in link and a bus from the start to the end of its transfer
//! (`links`). A collective needs all buses. Events with equal times happen in the order in which they were caused
//! (`pending`): that order decides which message gets a link. Every turn is therefore an event, even if it takes no time.
//! `docs/explanation/dimemas.md` contains the full rules and the differences from Dimemas itself.
//!
//! Without limits the result is the same as with the walk in [`crate::walk`], which needs no events. Messages that also
//! share the network by a model depart into a [`Transit`](crate::transit) once they have their links and their bus
//! (`shared`).

mod buses;
mod calls;
mod engine;
mod events;
mod links;
pub(super) mod look_ahead;
mod messages;
mod perturbation;
mod pool;
mod processors;
mod ranks;
mod route_costs;

use super::{
    SimulateError, observer::Observer, outcome::Outcome, placement::Placement, transit::Transit,
};
use crate::walk::Replay;
use engine::ContentionEngine;
use flowcast_network::{machine::NodeGroup, network::Network};
use flowcast_units::Time;
pub(super) use links::Links;
use perturbation::Perturbation;

/// `true` if the machine has a limit for which ranks or messages may have to wait.
pub fn is_needed(network: &Network, placement: &Placement) -> bool {
    let inside =
        |group: &NodeGroup| group.intra_in_links + group.intra_out_links + group.intra_buses > 0;
    let groups = placement.groups();
    let processors = network.machine.processors;
    network.machine.buses > 0
        || processors > 0 && placement.ranks() > processors as usize
        || placement.sites() > 1
        || network.machine.scheduler.context_switch > Time::ZERO
        || Perturbation::is_needed(network)
        || groups
            .iter()
            .any(|group: &NodeGroup| group.in_links + group.out_links > 0)
        || placement.is_shared() && groups.iter().any(inside)
        || placement.oversubscribed() > 0
}

/// Replays a program with limits, over a network that messages between nodes may share once they have their links and buses.
///
/// # Errors
/// [`SimulateError::Deadlock`], and errors of the network's model.
pub(super) fn run<O: Observer, T: Transit>(
    replay: &Replay<'_>,
    links: &Links,
    observer: &mut O,
    transit: &mut T,
) -> Result<Outcome, SimulateError> {
    ContentionEngine::new(replay, links.clone(), observer, transit).run()
}
