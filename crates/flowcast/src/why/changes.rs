//! Changes that would help a program most: candidates from the slopes of its time, each then replayed.

use flowcast_graph::gradient::EventGradient;
use flowcast_network::{
    algorithm::{Algorithm, AlgorithmRule, AlgorithmTable},
    network::Network,
};
use flowcast_program::{Program, Trace};
use flowcast_table::{self as table, Rows, figure, rows};
use flowcast_units::{CollectiveOp, Rank, Time};
use std::cmp::Reverse;

use super::{recorded, relative_change};
use crate::{Collectives, Error, Options, PreparedProgram, predict};

/// A change, and the prediction with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// A field, as `--set` names it, the computing of a rank, or the algorithm of a collective.
    pub what: String,
    /// Value before the change, with its unit.
    pub from: String,
    /// Value after the change, with its unit.
    pub to: String,
    /// Predicted time with the change.
    pub makespan: Time,
}

/// Fields, each with the factor that makes it better: halved times, doubled rates, processors that are a tenth faster.
const FIELDS: [(&str, f64); 10] = [
    ("nic.latency", 0.5),
    ("nic.bandwidth", 2.0),
    ("nic.overhead", 0.5),
    ("nic.gap", 0.5),
    ("machine.nodes.*.speed", 1.1),
    ("machine.nodes.*.accelerator_speed", 1.1),
    ("machine.nodes.*.intra_latency", 0.5),
    ("machine.nodes.*.intra_bandwidth", 2.0),
    ("backbone.bandwidth", 2.0),
    ("file_system.bandwidth", 2.0),
];

/// Factor by which a rank is made faster, and number of ranks that are tried: those with the largest slopes.
const FASTER: f64 = 1.1;
const RANKS: usize = 3;

/// Number of collectives for which other algorithms are tried: those with the largest share of the time.
const COLLECTIVES: usize = 3;

/// Smallest saving of a reported change, as a fraction of the time.
const LEAST_SAVING: f64 = 5e-4;

/// Largest number of reported changes.
const MOST_CHANGES: usize = 10;

impl Change {
    /// Difference from the time without the change, as a fraction of it; negative if the change helps.
    pub fn difference(&self, makespan: Time) -> f64 {
        relative_change(makespan, self.makespan)
    }

    /// The change in words.
    pub fn sentence(&self) -> String {
        format!("{} of {} instead of {}", self.what, self.to, self.from)
    }
}

/// Up to ten changes, the most helpful first, each with the predicted time of the trace. The candidates are the network's
/// main fields, made better; the ranks whose computing the time depends on most, a tenth faster; and the collectives whose
/// messages it depends on most, with other algorithms. Fields that the network does not set, or that are 0, are left out.
/// Changes that save less than a twentieth of a per cent are also left out.
///
/// # Errors
/// Errors of [`predict`](crate::predict()).
pub fn changes(trace: &Trace, network: &Network, options: &Options) -> Result<Vec<Change>, Error> {
    let trace = &*trace.unfolded()?;
    let gradient = match trace {
        Trace::Program(_) => {
            Some(recorded(trace, network, options, |graph| Ok(graph.gradient()))?.1)
        }
        _ => None,
    };
    changes_by(trace, network, options, gradient.as_ref())
}

/// [`changes`] for slopes that are known.
pub(super) fn changes_by(
    trace: &Trace,
    network: &Network,
    options: &Options,
    gradient: Option<&EventGradient>,
) -> Result<Vec<Change>, Error> {
    let base = predict(trace, network, options)?.outcome.makespan();
    let mut changes = of_fields(trace, network, options)?;
    if let (Trace::Program(program), Some(gradient)) = (trace, gradient) {
        changes.extend(of_ranks(program, network, options, gradient)?);
        changes.extend(of_algorithms(program, network, options, gradient)?);
    }
    changes.retain(|change| change.difference(base) < -LEAST_SAVING);
    changes.sort_by_key(|change| change.makespan);
    changes.truncate(MOST_CHANGES);
    Ok(changes)
}

/// Table of changes that would help, with the prediction for each.
pub(super) fn change_table(changes: &[Change], makespan: Time) -> Rows<&Change> {
    rows(changes)
        .column("field", "change", |change| &change.what)
        .field("from", |change| &change.from)
        .field("to", |change| &change.to)
        .cell("from", |change| figure(&change.from))
        .cell("to", |change| figure(&change.to))
        .column("makespan_s", "predicted time", |change| change.makespan)
        .column("change", "difference", |change| {
            table::percent(change.difference(makespan), 1)
        })
        .bars(move |change| -change.difference(makespan))
}

fn of_fields(trace: &Trace, network: &Network, options: &Options) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    for (field, factor) in FIELDS {
        let Some(from) = network.quantity(field).filter(|value| value.number() > 0.0) else {
            continue;
        };
        let to = from.with_number(from.number() * factor);
        let changed = network.with_overrides(&[(field.to_owned(), to.to_string())])?;
        let makespan = predict(trace, &changed, options)?.outcome.makespan();
        changes.push(Change {
            what: field.to_owned(),
            from: from.rounded(),
            to: to.rounded(),
            makespan,
        });
    }
    Ok(changes)
}

/// The ranks with the largest slopes, each a tenth faster. A single rank is left out, because its speed is the machine's
/// speed.
fn of_ranks(
    program: &Program,
    network: &Network,
    options: &Options,
    gradient: &EventGradient,
) -> Result<Vec<Change>, Error> {
    let mut ranks: Vec<usize> = (0..gradient.compute.len()).collect();
    ranks.sort_by_key(|rank| (Reverse(gradient.compute[*rank].now), *rank));
    ranks.retain(|rank| gradient.compute.len() > 1 && gradient.compute[*rank].now > Time::ZERO);
    ranks.truncate(RANKS);
    let prepared = PreparedProgram::new(program, network, options)?;
    ranks
        .into_iter()
        .map(|rank: usize| {
            let paced = prepared.clone().paced(Rank(rank as u32), FASTER);
            let makespan = paced.engine()?.run()?.makespan();
            let what = format!("speed of rank {rank}");
            Ok(Change {
                what,
                from: "1".to_owned(),
                to: FASTER.to_string(),
                makespan,
            })
        })
        .collect()
}

/// The best other algorithm for each of the collectives whose messages the time depends on most.
fn of_algorithms(
    program: &Program,
    network: &Network,
    options: &Options,
    gradient: &EventGradient,
) -> Result<Vec<Change>, Error> {
    let Some(table) = options.collectives.table(program, Some(network)) else {
        return Ok(Vec::new());
    };
    let mut ops: Vec<(CollectiveOp, Time)> = gradient.within.clone().into_iter().collect();
    ops.sort_by_key(|(op, time)| (Reverse(*time), *op));
    let mut changes = Vec::new();
    for (op, _) in ops.into_iter().take(COLLECTIVES) {
        let from = used(program, network, options, op)?;
        let mut tried = Vec::new();
        for algorithm in Algorithm::all_for(op)
            .iter()
            .filter(|algorithm| from != algorithm.name())
        {
            let Ok(rule) = algorithm.name().parse::<AlgorithmRule>() else {
                continue;
            };
            let mut other: AlgorithmTable = table.clone();
            other.rows.insert(op, vec![rule]);
            let options = Options {
                collectives: Collectives::Table(other),
                ..options.clone()
            };
            let makespan = PreparedProgram::new(program, network, &options)?
                .engine()?
                .run()?
                .makespan();
            tried.push(Change {
                what: op.name().to_owned(),
                from: from.clone(),
                to: algorithm.name().to_owned(),
                makespan,
            });
        }
        changes.extend(tried.into_iter().min_by_key(|change| change.makespan));
    }
    Ok(changes)
}

/// Names of the algorithms that carry out an operation now.
fn used(
    program: &Program,
    network: &Network,
    options: &Options,
    op: CollectiveOp,
) -> Result<String, Error> {
    let carried_out = options
        .collectives
        .carry_out(program, Some(network), options.threads)?;
    let uses = carried_out
        .expanded
        .iter()
        .flat_map(|expanded| &expanded.uses)
        .filter(|used| used.op == op);
    let mut names: Vec<String> = uses
        .filter_map(|used| used.choice.map(|choice| choice.to_string()))
        .collect();
    names.sort();
    names.dedup();
    Ok(names.join(", "))
}
