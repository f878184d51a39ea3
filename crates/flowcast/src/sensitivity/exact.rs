//! The exact curve, for messages without contention: the events of a replay with costs that follow the field.

use std::collections::HashMap;

use flowcast_graph::EventGraph;
use flowcast_network::{network::Network, sharing::model::Model};
use flowcast_program::{Program, program::CollectiveMode};
use flowcast_replay::{
    contention,
    costs::{Costs, Rendezvous},
    placement::Placement,
};
use flowcast_sensitivity::Curve;
use flowcast_units::Time;

use super::{Inexact, Parameter};
use crate::{Contention, Error, ModelChoice, Options, PreparedProgram, error::finite};

/// Smallest start-up that counts in Dimemas' rules, in nanoseconds; shorter ones count as 0.
const NANOSECOND: f64 = 1.0;

/// Fractions of a range. Costs are assumed to be linear between the first two values, and are checked at the others.
const SAMPLES: [f64; 4] = [0.015_625, 0.984_375, 0.381_966, 0.75];

/// Largest number of messages of a program whose events are kept: they take about 240 bytes each.
pub(super) const MOST_MESSAGES: u32 = 4_000_000;

/// Returns the exact curve, or the reason why there is none.
pub(super) fn curve(
    program: &Program,
    network: &Network,
    parameter: &Parameter,
    most_passes: usize,
    options: &Options,
) -> Result<Result<Curve, Inexact>, Error> {
    let (from, to) = parameter.range();
    let first = parameter.network(network, from)?;
    let prepared = PreparedProgram::new(program, &first, options)?;
    if prepared.program().messages() > MOST_MESSAGES {
        return Ok(Err(Inexact::Messages));
    }
    let search = ExactSearch {
        prepared: &prepared,
        network,
        parameter,
        options,
        most_passes,
    };
    let whole = search.segment(from, to)?;
    let is_split = parameter.is_time() && from < NANOSECOND && NANOSECOND < to;
    if !is_split || whole != Err(Inexact::NotLinear) {
        return Ok(whole);
    }
    let below = search.segment(from, NANOSECOND.next_down())?;
    let above = search.segment(NANOSECOND, to)?;
    Ok(below.and_then(|below| above.map(|above| joined(below, above))))
}

/// Joins two curves, of which the second begins after the first.
fn joined(mut below: Curve, above: Curve) -> Curve {
    let begin = above.pieces.first().map(|piece| piece.from);
    below
        .pieces
        .last_mut()
        .zip(begin)
        .into_iter()
        .for_each(|(last, begin)| last.to = begin);
    below.pieces.extend(above.pieces);
    Curve {
        pieces: below.pieces,
        walks: below.walks + above.walks,
        error: below.error.max(above.error),
    }
}

struct ExactSearch<'a> {
    prepared: &'a PreparedProgram<'a>,
    network: &'a Network,
    parameter: &'a Parameter,
    options: &'a Options,
    most_passes: usize,
}

impl ExactSearch<'_> {
    /// Curve over a part of the range in which all costs are linear.
    fn segment(&self, from: f64, to: f64) -> Result<Result<Curve, Inexact>, Error> {
        let mut values = SAMPLES.map(|part| from + part * (to - from)).to_vec();
        if self.parameter.is_time() && (from..=to).contains(&NANOSECOND.next_down()) {
            values.push(NANOSECOND.next_down());
        }
        let samples = values.len();
        values.extend([from, to]);
        let networks = values
            .iter()
            .map(|at| self.parameter.network(self.network, *at))
            .collect::<Result<Vec<Network>, _>>()?;
        if let Some(reason) = self.differs(&networks)? {
            return Ok(Err(reason));
        }
        let engines = networks
            .iter()
            .map(|network| self.prepared.on(network))
            .collect::<Vec<_>>();
        let engines = engines
            .iter()
            .map(PreparedProgram::engine)
            .collect::<Result<Vec<_>, _>>()?;
        let costs = engines[0].free().costs();
        if sizes_differ(self.prepared.program(), costs) {
            return Ok(Err(Inexact::Sizes));
        }
        let (_, graph) = EventGraph::record(&engines[0])?;
        if !graph.is_exact() {
            return Ok(Err(Inexact::Order));
        }
        let (_, other) = EventGraph::record(&engines[1])?;
        let Some(following) = graph.following(&other, [values[0], values[1]]) else {
            return Ok(Err(Inexact::NotLinear));
        };
        drop(other);
        for (value, engine) in values[..samples].iter().zip(&engines).skip(2) {
            let (_, other) = EventGraph::record(engine)?;
            if !graph.is_with(&following, *value, &other) {
                return Ok(Err(Inexact::NotLinear));
            }
        }
        let Some(curve) = graph.curve(&following, from..to, self.most_passes) else {
            return Ok(Err(Inexact::NotConvex));
        };
        let rounding = graph.start_up_rounding(&following);
        for index in samples..values.len() {
            let outcome = finite(engines[index].run()?, Some(&networks[index]), &[])?;
            let makespan = outcome.makespan();
            let time = curve.at(values[index]).unwrap_or(makespan);
            if (time - makespan).as_nanos().abs() > graph.rounding() + rounding.as_nanos() {
                return Ok(Err(Inexact::NotLinear));
            }
        }
        let error = curve.error.max(rounding);
        Ok(Ok(Curve { error, ..curve }))
    }

    /// Reason why the networks do not share one program, one placement and one walk; `None` if they do.
    fn differs(&self, networks: &[Network]) -> Result<Option<Inexact>, Error> {
        let program = self.prepared.program();
        let choice = self.prepared.model().contention;
        let collectives = &self.options.collectives;
        for network in networks {
            let other =
                ModelChoice::for_program(self.options.contention, program, network).contention;
            let placement =
                Placement::of_program(&network.machine, self.options.mapping.as_ref(), program)?;
            let limited =
                choice == Contention::Limits && contention::is_needed(network, &placement);
            if limited
                || !matches!(
                    choice,
                    Contention::Limits | Contention::Shared(Model::Independent)
                )
            {
                return Ok(Some(Inexact::Model(self.prepared.model().name())));
            }
            if other != choice
                || collectives.table(program, Some(network))
                    != collectives.table(program, Some(&networks[0]))
                || !placement.places_like(&self.prepared.placement)
            {
                return Ok(Some(Inexact::Choice));
            }
            if Rendezvous::from_network(network, self.options.rendezvous_from)
                != self.prepared.rendezvous
            {
                return Ok(Some(Inexact::Rendezvous));
            }
        }
        Ok(None)
    }
}

/// `true` if the ranks of a collective give different sizes, and the last rank to arrive decides how long it takes.
fn sizes_differ(program: &Program, costs: &Costs) -> bool {
    /// `true` if a root decides, the time of the collective, and `true` if another rank gives a different time.
    type Deciding = (bool, Time, bool);
    let mut deciding: HashMap<u32, Deciding> = HashMap::new();
    for (rank, call, instance) in program.collective_ops() {
        let made = program.call(call);
        if made.mode == CollectiveMode::RootSynchronous {
            continue;
        }
        let takes = costs.collective(made.op, made.communicator, rank, made.send, made.recv);
        let first = (made.is_root, takes, false);
        let known = deciding.entry(instance).or_insert(first);
        if made.is_root && !known.0 {
            *known = first;
        } else if made.is_root == known.0 {
            known.2 |= known.1 != takes;
        }
    }
    deciding.values().any(|(_, _, differs)| *differs)
}
