//! The curve where messages do not disturb one another: by tangents.

use flowcast_network::{
    network::{Network, Overheads},
    sharing::model::Model,
};
use flowcast_program::{Program, parallel};
use flowcast_replay::{contention, costs::Rendezvous, placement::Placement};
use flowcast_sensitivity::{Curve, Family, Obstacle, Tangent, trace_curve};

use super::{Inexact, Parameter};
use crate::{Contention, Error, ModelChoice, Options, PreparedProgram};

/// Dimemas' rules count a start-up below a nanosecond as none.
const NANOSECOND: f64 = 1.0;

/// Where in a range it is checked that costs are linear, beside its ends.
const CHECKED: [f64; 2] = [0.381_966, 0.75];

/// The exact curve, or why there is none.
pub(super) fn curve(
    program: &Program,
    network: &Network,
    parameter: &Parameter,
    most_walks: usize,
    options: &Options,
) -> Result<Result<Curve, Inexact>, Error> {
    let (from, to) = parameter.range();
    if network.overheads != Overheads::default() {
        return Ok(Err(Inexact::Obstacle(Obstacle::Overheads)));
    }
    let first = parameter.network(network, from)?;
    let prepared = PreparedProgram::new(program, &first, options)?;
    let search = ExactSearch {
        prepared: &prepared,
        network,
        parameter,
        options,
        most_walks,
    };
    let whole = search.segment(from, to)?;
    let is_split = parameter.is_time() && from < NANOSECOND && NANOSECOND < to;
    if !is_split || whole != Err(Inexact::Obstacle(Obstacle::NotLinear)) {
        return Ok(whole);
    }
    let below = search.segment(from, NANOSECOND.next_down())?;
    let above = search.segment(NANOSECOND, to)?;
    Ok(below.and_then(|below| above.map(|above| joined(below, above))))
}

/// Two curves of which the second begins behind the first.
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
    most_walks: usize,
}

impl ExactSearch<'_> {
    /// A part of the range in which all costs are linear.
    fn segment(&self, from: f64, to: f64) -> Result<Result<Curve, Inexact>, Error> {
        let mut values = vec![from, to];
        values.extend(CHECKED.map(|part| from + part * (to - from)));
        if self.parameter.is_time() {
            values.push(NANOSECOND.next_down());
        }
        values.retain(|value| (from..=to).contains(value));
        values.sort_by(f64::total_cmp);
        let networks = values
            .iter()
            .map(|at| self.parameter.network(self.network, *at))
            .collect::<Result<Vec<Network>, _>>()?;
        if let Some(reason) = self.differs(&networks)? {
            return Ok(Err(reason));
        }
        let prepared = self.prepared;
        let family = match Family::new(
            prepared.program(),
            &prepared.placement,
            prepared.rendezvous,
            &values,
            &networks,
        ) {
            Ok(family) => family,
            Err(obstacle) => return Ok(Err(Inexact::Obstacle(obstacle))),
        };
        let rounding = family.rounding();
        let curve = trace_curve(from, to, self.most_walks, rounding, |values| {
            self.tangents(&family, values)
        })?;
        Ok(curve
            .map(|curve: Curve| Curve {
                error: curve.error.max(rounding),
                ..curve
            })
            .ok_or(Inexact::NotConvex))
    }

    /// Why the networks do not share one program, one placement and one walk.
    fn differs(&self, networks: &[Network]) -> Result<Option<Inexact>, Error> {
        let program = self.prepared.program();
        let choice = self.prepared.model().contention;
        let algorithms = |network| self.options.collectives.table(program, Some(network));
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
                || algorithms(network) != algorithms(&networks[0])
                || !placement.places_like(&self.prepared.placement)
            {
                return Ok(Some(Inexact::Choice));
            }
            if Rendezvous::from_network(network, self.options.rendezvous_from)
                != self.prepared.rendezvous
            {
                return Ok(Some(Inexact::Obstacle(Obstacle::Rendezvous)));
            }
        }
        Ok(None)
    }

    /// Walks at several values, on as many threads as the options allow.
    fn tangents(&self, family: &Family<'_>, values: &[f64]) -> Result<Vec<Tangent>, Error> {
        parallel::map(
            values,
            self.options.threads,
            |at: &f64| -> Result<Tangent, Error> {
                let tangent = family.tangent(*at, &self.parameter.network(self.network, *at)?)?;
                if tangent.makespan.as_nanos().is_finite() {
                    return Ok(tangent);
                }
                Err(flowcast_replay::outcome::NotFiniteTime(format!(
                    "{}={}",
                    self.parameter.field(),
                    self.parameter.text(*at)
                ))
                .into())
            },
        )
        .into_iter()
        .collect()
    }
}
