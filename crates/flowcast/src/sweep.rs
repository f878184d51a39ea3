//! One program on many networks.

use flowcast_model::network::Network;
use flowcast_replay::sweep::{SetOutcome, WhatIf, run};
use flowcast_trace::Program;

use crate::{Collectives, Contention, Error, Options, PreparedProgram};

/// Replays a program on each of the networks; results in the order of the networks.
///
/// Without contention up to 32 networks share one walk over the program; under a sharing model, and where algorithms of
/// collectives come from the network, each network has a replay of its own. Equal to single replays, to the bit.
///
/// # Errors
/// As [`predict`](crate::predict()), of the first network that has one.
pub fn sweep(program: &Program, networks: &[Network], options: &Options) -> Result<Vec<SetOutcome>, Error> {
    let is_free = matches!(options.contention, Contention::AsGiven | Contention::Limits);
    let Some(first) = networks.first() else { return Ok(Vec::new()) };
    if !is_free || options.collectives == Collectives::OfNetwork {
        let one = |network| {
            let prepared = PreparedProgram::new(program, network, options)?;
            Ok(SetOutcome::from(&prepared.engine()?.run()?))
        };
        return networks.iter().map(one).collect();
    }
    let prepared = PreparedProgram::new(program, first, options)?;
    let what_if = |network: &Network| {
        WhatIf::new(prepared.program(), network.clone(), options.mapping.as_ref(), options.rendezvous_from)
    };
    let what_ifs: Vec<WhatIf> = networks.iter().map(what_if).collect::<Result<_, _>>()?;
    Ok(run(prepared.program(), &what_ifs)?)
}
