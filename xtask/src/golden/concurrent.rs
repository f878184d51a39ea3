//! Flows in flight together: what the checks of seeds A and B share.

use flowcast::{
    flows::concurrent::{FlowsPrediction, Method, predict_flows},
    model::{
        builtin,
        cluster::{flow::Flow, racks::Racks},
        network::Network,
    },
    units::{Bytes, Node, Time},
};

use super::case::{Mismatch, field::Field};

/// A built-in network with fields replaced.
pub(super) fn network(name: &str, overrides: &[(&str, &str)]) -> Result<Network, Mismatch> {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    builtin::network(name)
        .and_then(|network| network.with_overrides(&overrides))
        .map_err(Mismatch::refused)
}

/// The flow of `id`, `src` and `dst` with this size and start.
pub(super) fn flow(comm: &Field, bytes: f64, start_s: f64) -> Result<Flow, Mismatch> {
    Ok(Flow {
        id: comm.at("id")?.whole()?,
        src: Node(comm.at("src")?.whole()?),
        dst: Node(comm.at("dst")?.whole()?),
        size: Bytes(bytes.round() as u64),
        start: Time::from_seconds(start_s),
    })
}

/// Predicts through the library.
pub(super) fn predict(
    flows: &[Flow],
    racks: &Racks,
    network: &Network,
    method: Method,
) -> Result<FlowsPrediction, Mismatch> {
    predict_flows(flows, racks, network, method).map_err(Mismatch::refused)
}

/// The place of the flow with this number.
pub(super) fn index_of(prediction: &FlowsPrediction, id: &str) -> Result<usize, Mismatch> {
    let found = prediction
        .flows
        .iter()
        .position(|flow| flow.flow.id.to_string() == id);
    found.ok_or_else(|| {
        Mismatch::Malformed(format!("`expected` names flow {id}, which the input lacks"))
    })
}
