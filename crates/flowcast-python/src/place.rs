//! Placement.

use flowcast::PatternOptions;
use flowcast::model::cluster::pattern::Steps;
use flowcast::model::sharing::model::Model;
use flowcast::place::exhaustive::{Slots, search};
use flowcast::place::step_cost::{InsideNode, StepCost};
use flowcast::units::{Rate, Time};
use pyo3::prelude::*;

use crate::networks::Network;
use crate::work::beside;

/// Mappings, the time of each that is among the best, the best ones, and how many mappings take which time.
type Placed = (u64, Vec<Vec<u32>>, Vec<(f64, u64)>);

/// Tries all mappings of the ranks of a communication in steps: how many there are, the best of them, and the times with how
/// many mappings take each.
#[pyfunction]
#[pyo3(signature = (name, content, network, nodes, slots, model=None, inside=None))]
#[allow(clippy::too_many_arguments, reason = "Python hands them over one by one")]
pub(crate) fn place(
    py: Python<'_>,
    name: String,
    content: Vec<u8>,
    network: Network,
    nodes: u32,
    slots: u32,
    model: Option<String>,
    inside: Option<String>,
) -> PyResult<Placed> {
    beside(py, move || {
        let steps = Steps::read(&name, &content)?;
        let network = &network.network;
        let model = model.as_deref().map(Model::named).transpose()?;
        let method = PatternOptions { model, ..PatternOptions::default() }.method(network);
        let inside = match inside {
            Some(text) => InsideNode { latency: Time::parse(&text)?, rate: Rate::default() },
            None => InsideNode::of(network),
        };
        let cost = StepCost { steps: &steps, network, method, inside };
        let ranking = search(&cost, Slots { nodes, per_node: slots }, &mut |_, _| {})?;
        let best = ranking.best.iter().map(|mapping| mapping.0.iter().map(|node| node.0).collect()).collect();
        let histogram = ranking.histogram.iter().map(|(time, count)| (time.as_seconds(), *count)).collect();
        Ok((ranking.mappings, best, histogram))
    })
}
