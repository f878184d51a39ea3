//! The curve over the costs of some ranks, pairs, links, sizes or collectives, which are not a field of the network.

use flowcast_graph::{EventGraph, selector::Selector};
use flowcast_network::network::Network;
use flowcast_program::Trace;
use flowcast_replay::time_part::TimePart;
use flowcast_sensitivity::Curve;
use flowcast_units::Time;

use super::{Inexact, Parameter, Sensitivity};
use crate::{Error, Options, PreparedProgram, error::finite};

/// Computes [`sensitivity`](super::sensitivity()) from the events of one replay.
pub(super) fn sensitivity(
    trace: &Trace,
    network: &Network,
    parameter: Parameter,
    selector: &Selector,
    most_passes: usize,
    options: &Options,
) -> Result<Sensitivity, Error> {
    let Trace::Program(program) = trace else {
        let found = format!("{selector} for a GOAL schedule");
        return Err(Error::option(
            "--parameter",
            found,
            "a field of the network, or a trace that is not a schedule",
        ));
    };
    let prepared = PreparedProgram::new(program, network, options)?;
    let engine = prepared.engine()?;
    let (outcome, graph) = EventGraph::record(&engine)?;
    let outcome = finite(outcome, Some(network), &[])?;
    let selected = graph.selected(selector);
    if selected.is_empty() {
        let found = format!("no costs `{selector}` in the program");
        return Err(Error::option(
            "--parameter",
            found,
            "costs that occur in it (flowcast explain gradient lists them)",
        ));
    }
    let (from, to) = parameter.range();
    let curve = graph.curve(&selected, from..to, most_passes);
    let inexact = match &curve {
        None => Some(Inexact::NotConvex),
        Some(_) if !graph.is_exact() => Some(Inexact::FixedOrder(prepared.model().name())),
        Some(curve) if curve.error > Time::ZERO => Some(Inexact::Error(most_passes)),
        Some(_) => None,
    };
    Ok(Sensitivity {
        base: selected.base().filter(|base| base.is_finite()),
        model: prepared.model().clone(),
        base_makespan: outcome.makespan(),
        curve: curve.unwrap_or(Curve {
            pieces: Vec::new(),
            walks: 0,
            error: Time::ZERO,
        }),
        inexact,
        fixed_order: None,
        notes: prepared.notes(),
        parameter,
    })
}

/// The curve over a field of the interface, for events that keep their order on the network as it is. `None` for other
/// fields, for schedules, and if the field is not the cost of all messages between nodes.
pub(super) fn fixed_order(
    trace: &Trace,
    network: &Network,
    parameter: &Parameter,
    most_passes: usize,
    options: &Options,
) -> Result<Option<Curve>, Error> {
    let quantity = match parameter.field() {
        "nic.latency" => TimePart::Latency,
        "nic.bandwidth" | "nic.gap_per_byte" => TimePart::Bandwidth,
        "nic.overhead" => TimePart::Overhead,
        "nic.gap" => TimePart::Gap,
        _ => return Ok(None),
    };
    let Trace::Program(program) = trace else {
        return Ok(None);
    };
    let prepared = PreparedProgram::new(program, network, options)?;
    let engine = prepared.engine()?;
    let (_, graph) = EventGraph::record(&engine)?;
    let selected = graph.selected(&Selector::between_nodes(quantity));
    let base = network
        .quantity(parameter.field())
        .map(|value| parameter.number(value));
    let is_same = selected
        .base()
        .zip(base)
        .is_some_and(|(found, base)| (found - base).abs() <= 1e-6 * base);
    let (from, to) = parameter.range();
    Ok(if is_same {
        graph.curve(&selected, from..to, most_passes)
    } else {
        None
    })
}
