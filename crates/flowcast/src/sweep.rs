//! One program on many networks.

use flowcast_network::{network::Network, sharing::model::Model};
use flowcast_program::Program;
use flowcast_replay::sweep::{SetOutcome, WhatIf, run};

use crate::{Contention, Error, ModelChoice, Options, PreparedProgram};
use flowcast_replay::outcome::finite_times;

/// Replays a program on each of the networks. The results are in the order of the networks.
///
/// Up to 32 networks without contention between messages share one walk over the program. Under a sharing model, and if
/// algorithms of collectives come from the network, each network has its own replay. The results are identical to single
/// replays, bit for bit.
///
/// # Errors
/// Error of [`predict`](crate::predict()) on the first network that has no prediction.
pub fn sweep(
    program: &Program,
    networks: &[Network],
    options: &Options,
) -> Result<Vec<SetOutcome>, Error> {
    let Some(first) = networks.first() else {
        return Ok(Vec::new());
    };
    let mut tables = networks
        .iter()
        .map(|network| options.collectives.table(program, Some(network)));
    let table = options.collectives.table(program, Some(first));
    if tables.all(|other| other == table) {
        return PreparedProgram::new(program, first, options)?.sweep(networks, options);
    }
    networks
        .iter()
        .map(|network| {
            let prepared = PreparedProgram::new(program, network, options)?;
            Ok(SetOutcome::from(&prepared.outcome()?))
        })
        .collect()
}

impl PreparedProgram<'_> {
    /// Sweeps like [`sweep()`], with this program's collectives as they are carried out here. `options` give contention,
    /// mapping and rendezvous.
    ///
    /// # Errors
    /// Errors of [`sweep()`].
    pub(crate) fn sweep(
        &self,
        networks: &[Network],
        options: &Options,
    ) -> Result<Vec<SetOutcome>, Error> {
        let choices: Vec<Contention> = networks
            .iter()
            .map(|network| {
                ModelChoice::for_program(options.contention, self.program(), network).contention
            })
            .collect();
        if !choices.iter().all(|choice: &Contention| {
            matches!(
                choice,
                Contention::Limits | Contention::Shared(Model::Independent)
            )
        }) {
            return networks
                .iter()
                .map(|network| Ok(SetOutcome::from(&self.moved(network, options)?.outcome()?)))
                .collect();
        }
        let what_ifs: Vec<WhatIf> = networks
            .iter()
            .zip(&choices)
            .map(|(network, choice): (&Network, &Contention)| {
                let (mapping, from) = (options.mapping.as_ref(), options.rendezvous_from);
                let what_if = WhatIf::new(self.program(), network.clone(), mapping, from)?;
                Ok(if *choice == Contention::Limits {
                    what_if
                } else {
                    what_if.unlimited()
                })
            })
            .collect::<Result<_, Error>>()?;
        let outcomes = run(self.program(), &what_ifs)?;
        for (outcome, network) in outcomes.iter().zip(networks) {
            finite_times(outcome.ends.iter().copied(), || {
                format!("the network {}", network.name)
            })?;
        }
        Ok(outcomes)
    }
}
