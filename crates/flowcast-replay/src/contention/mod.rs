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
mod slots;

use super::SimulateError;
use super::costs::Rendezvous;
use super::handshakes::{Handshakes, InOrder};
use super::observer::by_pointer::{ByPointer, Watch};
use super::observer::{Observer, Unobserved};
use super::outcome::Outcome;
use super::placement::Placement;
use super::transit::{Transit, Undisturbed};
use crate::walk::Replay;
use engine::Engine;
use flowcast_model::machine::NodeGroup;
use flowcast_model::network::Network;
use flowcast_trace::program::Program;
use flowcast_units::Time;
use links::Links;
use perturbation::Perturbation;

/// Whether anything in the machine is limited so that ranks or messages may have to wait for it.
pub fn is_needed(network: &Network, placement: &Placement) -> bool {
    let outside = |group: &NodeGroup| group.in_links + group.out_links > 0;
    let inside =
        |group: &NodeGroup| group.intra_in_links + group.intra_out_links + group.intra_buses > 0;
    let groups = placement.groups();
    let processors = network.machine.processors;
    network.machine.buses > 0
        || processors > 0 && placement.ranks() > processors as usize
        || placement.sites() > 1
        || network.machine.scheduler.context_switch > Time::ZERO
        || Perturbation::is_needed(network)
        || groups.iter().any(outside)
        || placement.is_shared() && groups.iter().any(inside)
        || placement.oversubscribed() > 0
}

/// A program on a network with limits, ready to run.
pub struct Contention<'a> {
    replay: Replay<'a>,
    links: Links,
}

impl<'a> Contention<'a> {
    /// Computes the costs of all messages.
    ///
    /// # Errors
    /// As [`Replay::new`].
    pub fn new(
        program: &'a Program,
        network: &Network,
        placement: Placement,
        rendezvous: Rendezvous,
    ) -> Result<Contention<'a>, SimulateError> {
        let links = Links::new(program, network, &placement);
        Ok(Contention {
            replay: Replay::new(program, network, placement, rendezvous)?,
            links,
        })
    }

    /// Of a replay without limits, with those of this machine and the nodes of this placement.
    pub(super) fn limiting(
        replay: Replay<'a>,
        network: &Network,
        placement: &Placement,
    ) -> Contention<'a> {
        Contention {
            links: Links::new(replay.program, network, placement),
            replay,
        }
    }

    /// The replay without limits.
    pub fn free(&self) -> &Replay<'a> {
        &self.replay
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`].
    pub fn run(&self) -> Result<Outcome, SimulateError> {
        if self.replay.costs.needs_polling() {
            return self.through(&mut Unobserved, &mut Handshakes::above(InOrder::default()));
        }
        self.through(&mut Unobserved, &mut Undisturbed)
    }

    /// Runs and tells an observer what happens.
    ///
    /// # Errors
    /// As [`Contention::run`].
    pub fn observed<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        self.observed_by(observer)
    }

    fn observed_by(&self, observer: &mut dyn Watch) -> Result<Outcome, SimulateError> {
        if self.replay.costs.needs_polling() {
            return self.through(
                &mut ByPointer(observer),
                &mut Handshakes::above(InOrder::default()),
            );
        }
        self.through(&mut ByPointer(observer), &mut Undisturbed)
    }

    /// Runs over a network that messages between nodes share once they have their links and buses.
    ///
    /// # Errors
    /// As [`Contention::run`], and those of the network's model.
    pub(super) fn through<O: Observer, T: Transit>(
        &self,
        observer: &mut O,
        transit: &mut T,
    ) -> Result<Outcome, SimulateError> {
        Engine::new(&self.replay, self.links.clone(), observer, transit).run()
    }
}
