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
    /// What messages, collectives and accesses cost.
    pub costs: Costs,
    /// The number of each message's route; empty if all messages take the same.
    pub route_of: Vec<u16>,
    pub(crate) threads: usize,
}

impl<'a> Replay<'a> {
    /// Computes the costs of all messages.
    ///
    /// # Errors
    /// [`SimulateError::Placement`] if the network has more kinds of nodes than routes can be numbered.
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

    /// The same; [`Replay::run`] may use so many threads where they make it faster. The result does not depend on it.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Replay<'a> {
        Replay { threads, ..self }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`].
    pub fn run(&self) -> Result<Outcome, SimulateError> {
        if self.threads > 1 && self.program.messages() >= blocks::MANY_MESSAGES {
            return self.divided(self.threads);
        }
        self.observed(&mut Unobserved)
    }

    /// Whether several threads can run it: no sender waits for its receiver, and ranks do nothing together but exchange
    /// messages.
    pub fn is_divisible(&self) -> bool {
        self.program.calls().is_empty()
            && self.program.accesses().is_empty()
            && !self.costs.has_rendezvous()
    }

    /// Runs to the end on so many threads, however short it is; on one if it is not divisible.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`].
    pub fn divided(&self, threads: usize) -> Result<Outcome, SimulateError> {
        let costs = LaneCosts::<1>::new(&[&self.costs]);
        if self.is_divisible()
            && let Some(ranks) = blocks::run(&self.walk(&costs), threads)
        {
            return Ok(Outcome::new(self.program, ranks.into_iter()));
        }
        // Why ranks wait for ever is seen where all of them are.
        self.observed(&mut Unobserved)
    }

    /// The program that is replayed.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// Where the ranks run.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The number of a message's route.
    #[inline]
    pub fn route_number(&self, slot: Slot) -> usize {
        self.route_of
            .get(slot.index())
            .map_or(0, |route| usize::from(*route))
    }

    /// What messages cost on the route that this one takes.
    pub fn path(&self, slot: Slot) -> &PathCosts {
        &self.costs.paths[self.route_number(slot)]
    }

    /// The costs in use.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Runs and tells an observer what happens.
    ///
    /// # Errors
    /// As [`Replay::run`].
    pub fn observed<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        if self.costs.needs_polling() {
            return self.in_calls(&mut ByPointer(observer));
        }
        self.through(observer, &mut Undisturbed)
    }

    /// Event by event, since ranks answer one another in MPI calls alone.
    fn in_calls(&self, observer: &mut ByPointer<'_>) -> Result<Outcome, SimulateError> {
        self.through(observer, &mut Handshakes::above(InOrder::default()))
    }

    /// Runs through a network and tells an observer what happens.
    ///
    /// # Errors
    /// As [`Replay::run`], and those of the network's model.
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
