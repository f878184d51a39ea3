//! Which changes of a network would help a program most.

use flowcast_model::network::Network;
use flowcast_model::quantity::Quantity;
use flowcast_trace::Trace;
use flowcast_units::Time;

use crate::{Error, Options, predict};

/// A field with another value, and what is predicted then.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The field, as `--set` names it.
    pub field: String,
    /// Its value on the network as it is.
    pub from: Quantity,
    /// Its value after the change, in the same unit.
    pub to: Quantity,
    /// The predicted time with it.
    pub makespan: Time,
}

/// Fields and the factor that makes each better: halved times, doubled rates, processors that are a tenth faster.
const CHANGES: [(&str, f64); 10] = [
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

/// Predicts the trace with each of the network's main fields made better, one at a time; the most helpful first. Fields that
/// the network does not set, or that are 0, are left out, and so are those that shorten nothing.
///
/// # Errors
/// As [`predict`](crate::predict()).
pub fn changes(trace: &Trace, network: &Network, options: &Options) -> Result<Vec<Change>, Error> {
    let base = predict(trace, network, options)?.outcome.makespan();
    let mut changes = Vec::new();
    for (field, factor) in CHANGES {
        let Some(from) = network.quantity(field).filter(|value| value.number() > 0.0) else { continue };
        let to = from.with_number(from.number() * factor);
        let changed = network.with_overrides(&[(field.to_owned(), to.to_string())])?;
        let makespan = predict(trace, &changed, options)?.outcome.makespan();
        changes.push(Change { field: field.to_owned(), from, to, makespan });
    }
    changes.retain(|change| change.makespan < base);
    changes.sort_by_key(|change| change.makespan);
    Ok(changes)
}
