//! A program on one network, walked once.

use super::{Walk, blocks, lanes::LaneCosts, rank_state::RankState};
use crate::{
    SimulateError,
    costs::PathCosts,
    costs::{Costs, Rendezvous},
    handshakes::{Handshakes, InOrder},
    observer::{Observer, Unobserved, by_pointer::ByPointer},
    outcome::Outcome,
    placement::Placement,
    routes::route_of_messages,
    transit::{Transit, Undisturbed},
};
use flowcast_network::network::Network;
use flowcast_program::{program::Program, slot::Slot};

/// A program on a network, ready to run.
pub struct Replay<'a> {
    pub(crate) program: &'a Program,
    pub(crate) placement: Placement,
    /// Costs of messages, collectives and accesses.
    pub costs: Costs,
    /// Route number of each message, indexed by slot; empty if all messages take the same route.
    pub route_of: Vec<u16>,
    pub(crate) threads: usize,
}

impl<'a> Replay<'a> {
    /// Computes the costs of all messages.
    ///
    /// # Errors
    /// [`SimulateError::Placement`] if there are more routes than route numbers.
    pub fn new(
        program: &'a Program,
        network: &Network,
        placement: Placement,
        rendezvous: Rendezvous,
    ) -> Result<Replay<'a>, SimulateError> {
        let costs = Costs::new(program, network, &placement, rendezvous);
        let route_of = route_of_messages(program, network, &placement)?;
        Ok(Replay {
            program,
            placement,
            costs,
            route_of,
            threads: 1,
        })
    }

    /// Lets [`Replay::run`] use up to this number of threads where that is faster. The result does not depend on it.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Replay<'a> {
        Replay { threads, ..self }
    }

    /// Runs the replay to the end.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`] if ranks wait for each other.
    pub fn run(&self) -> Result<Outcome, SimulateError> {
        if self.threads > 1 && self.program.messages() >= blocks::MANY_MESSAGES {
            return self.divided(self.threads);
        }
        self.observed(&mut Unobserved)
    }

    /// `true` if several threads can run it: no sender waits for its receiver, and ranks interact only through messages.
    pub fn is_divisible(&self) -> bool {
        self.program.calls().is_empty()
            && self.program.accesses().is_empty()
            && !self.costs.has_rendezvous()
    }

    /// Runs to the end on this number of threads, however short the program is, or on one thread if it is not divisible.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`] if ranks wait for each other.
    pub fn divided(&self, threads: usize) -> Result<Outcome, SimulateError> {
        let costs = LaneCosts::<1>::new(&[&self.costs]);
        if self.is_divisible()
            && let Some(ranks) = blocks::run(&self.walk(&costs), threads)
        {
            return Ok(Outcome::new(self.program, ranks.into_iter()));
        }
        // Only a replay of all ranks together shows why ranks wait forever.
        self.observed(&mut Unobserved)
    }

    /// The replayed program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// Mapping of the ranks to nodes.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Route number of a message.
    #[inline]
    pub fn route_number(&self, slot: Slot) -> usize {
        self.route_of
            .get(slot.index())
            .map_or(0, |route| usize::from(*route))
    }

    /// Costs of messages on the route of this message.
    pub fn path(&self, slot: Slot) -> &PathCosts {
        &self.costs.paths[self.route_number(slot)]
    }

    /// Costs of messages, collectives and accesses in this replay.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Runs and reports the events to an observer.
    ///
    /// # Errors
    /// The same as for [`Replay::run`].
    pub fn observed<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        if self.costs.needs_polling() {
            return self.in_calls(&mut ByPointer(observer));
        }
        self.through(observer, &mut Undisturbed)
    }

    /// Runs event by event, since ranks answer each other in MPI calls only.
    fn in_calls(&self, observer: &mut ByPointer<'_>) -> Result<Outcome, SimulateError> {
        self.through(observer, &mut Handshakes::above(InOrder::default()))
    }

    /// Runs through a network and reports the events to an observer.
    ///
    /// # Errors
    /// The same as for [`Replay::run`], and errors of the network's model.
    pub(crate) fn through<O: Observer, T: Transit>(
        &self,
        observer: &mut O,
        transit: &mut T,
    ) -> Result<Outcome, SimulateError> {
        let costs = LaneCosts::<1>::new(&[&self.costs]);
        let walk = self.walk(&costs);
        let ranks = walk.run(observer, transit)?;
        Ok(Outcome::new(
            self.program,
            ranks.iter().map(RankState::outcome),
        ))
    }

    pub(super) fn walk<'b>(&'b self, costs: &'b LaneCosts<'b, 1>) -> Walk<'b, 1> {
        let Replay {
            program,
            placement,
            route_of,
            ..
        } = self;
        Walk {
            program,
            placement,
            costs,
            route_of,
            awaited: &[],
        }
    }
}
