//! What a trace takes under a mapping of its ranks, for the search for the best.

use std::error::Error;

use crate::place::step_cost::{Mapping, MappingCost};
use flowcast_units::Time;

use crate::{
    Options,
    model::{machine, network::Network},
    predict,
    trace::Trace,
};

/// A trace whose ranks are to be placed: each mapping is replayed.
pub struct TraceCost {
    /// The program, or a schedule.
    pub trace: Trace,
    /// What its nodes are joined by.
    pub network: Network,
    /// How it is replayed, but for the mapping.
    pub options: Options,
}

impl MappingCost for TraceCost {
    fn ranks(&self) -> usize {
        self.trace.ranks()
    }

    fn time(&self, mapping: &Mapping) -> Result<Time, Box<dyn Error + Send + Sync>> {
        let nodes = mapping.0.iter().map(|node| node.0).collect();
        let options = Options {
            mapping: Some(machine::Mapping::List(nodes)),
            ..self.options.clone()
        };
        Ok(predict(&self.trace, &self.network, &options)?
            .outcome
            .makespan())
    }
}
