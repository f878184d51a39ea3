//! Replay of a program whose messages compete for links, buses and processors: Dimemas' rules, event by event.
//!
//! Each rank takes turns: it gets a processor of its node, does its next instruction, and gives the processor back
//! while it waits. A message between nodes needs an out link, an in link and a bus from the start to the end of its
//! transfer (`links`); a collective needs all buses. Events of equal time happen in the order in which they were
//! caused (`pending`), so every turn goes through the events even where it takes no time: that order decides who
//! gets a link. The rules in full, and where they differ from the original tool's,
//! are in `docs/explanation/dimemas.md`.
//!
//! Where nothing is limited the result is that of the walk in [`crate::walk`], which needs no events. Messages that also share
//! the network by a model depart into a [`Transit`](crate::transit) once they have their links and their bus (`shared`).

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

/// Whether anything in the machine is limited so that ranks or messages may have to wait for it.
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
/// [`SimulateError::Deadlock`], and those of the network's model.
pub(super) fn run<O: Observer, T: Transit>(
    replay: &Replay<'_>,
    links: &Links,
    observer: &mut O,
    transit: &mut T,
) -> Result<Outcome, SimulateError> {
    ContentionEngine::new(replay, links.clone(), observer, transit).run()
}
