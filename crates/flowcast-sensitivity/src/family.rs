//! A program on networks that differ in one parameter.

use super::{
    curve::Tangent,
    linear_costs::{CostSlopes, Samples},
    obstacle::Obstacle,
    slopes::Slopes,
};
use flowcast_network::network::Network;
use flowcast_program::program::Program;
use flowcast_replay::{
    SimulateError,
    costs::{Costs, Rendezvous},
    placement::Placement,
    walk::Replay,
};
use flowcast_units::Time;

/// A program on networks that differ in one parameter, of which all costs are linear functions.
#[derive(Debug)]
pub struct Family<'a> {
    program: &'a Program,
    placement: &'a Placement,
    rendezvous: Rendezvous,
    slopes: CostSlopes,
}

impl<'a> Family<'a> {
    /// Of the networks at several values of the parameter in ascending order: the ends of the range, and between them
    /// values at which it is checked that costs are linear. The placement is that of any of them.
    ///
    /// # Errors
    /// The obstacle, if the makespan is not piecewise linear.
    pub fn new(
        program: &'a Program,
        placement: &'a Placement,
        rendezvous: Rendezvous,
        values: &[f64],
        networks: &[Network],
    ) -> Result<Family<'a>, Obstacle> {
        if !program.accesses().is_empty() {
            return Err(Obstacle::Accesses);
        }
        let costs = |network: &Network| {
            Costs::new(
                program,
                network,
                &placement.on(&network.machine),
                rendezvous,
            )
        };
        let costs: Vec<Costs> = networks.iter().map(costs).collect();
        if costs.iter().any(Costs::needs_polling) {
            return Err(Obstacle::Progress);
        }
        let slopes = CostSlopes::new(
            program,
            &Samples {
                values,
                costs: &costs,
                placement,
            },
        )?;
        Ok(Family {
            program,
            placement,
            rendezvous,
            slopes,
        })
    }

    /// By how much a makespan may lie beside the line of its tangent, because the start-up of collectives that do not block
    /// is cut to whole nanoseconds and changes with the parameter.
    pub fn rounding(&self) -> Time {
        Time::from_nanos(self.slopes.truncated.len() as f64)
    }

    /// The makespan on the network of a value of the parameter, and its slope there.
    ///
    /// # Errors
    /// As [`Replay::run`].
    pub fn tangent(&self, at: f64, network: &Network) -> Result<Tangent, SimulateError> {
        let replay = Replay::new(
            self.program,
            network,
            self.placement.on(&network.machine),
            self.rendezvous,
        )?;
        let mut slopes = Slopes::new(&replay, &self.slopes);
        let outcome = replay.observed(&mut slopes)?;
        let slope = outcome
            .slowest()
            .map_or(0.0, |rank| slopes.end(rank.index()));
        Ok(Tangent {
            at,
            makespan: outcome.makespan(),
            slope,
        })
    }
}
