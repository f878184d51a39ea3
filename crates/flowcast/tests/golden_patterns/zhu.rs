//! Golden kinds of hierarchical Ethernet: Algorithm 1 with the asymmetric property and with pure fairness.

use flowcast::cluster::flow::Flow;
use flowcast::cluster::racks::Racks;
use flowcast::model::builtin;
use flowcast::model::network::Network;
use flowcast::model::sharing::fabric::{Limit, LinkId};
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::simulate::concurrent::{Method, Prediction, predict_flows};
use flowcast::units::{Bytes, Node, Time};
use serde_json::Value;

use super::martinasso::{close, fields, list, number};

type Check = fn(&Value, &Value, &Value) -> Result<(), String>;

/// Every kind that this file knows.
pub const KINDS: &[(&str, Check)] = &[("algo1", algorithm_one)];

fn algorithm_one(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let network = network(input)?;
    let racks = racks(&input["rack"])?;
    let flows: Vec<Flow> = list(&input["comms"])?.iter().map(flow).collect::<Result<_, _>>()?;
    for (name, expected) in fields(expected)? {
        let model = match name.as_str() {
            "asymmetric" => Model::Asymmetric,
            "fair" => Model::DegreeFair,
            other => return Err(format!("found the model {other}, expected asymmetric or fair")),
        };
        let method = Method { model, strictness: Strictness::Strict };
        let prediction = predict_flows(&flows, &racks, &network, method).map_err(|error| error.to_string())?;
        check(&prediction, &network, expected, tolerance).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn check(prediction: &Prediction, network: &Network, expected: &Value, tolerance: &Value) -> Result<(), String> {
    for (index, flow) in prediction.flows.iter().enumerate() {
        let id = flow.flow.id.to_string();
        for field in ["T_s", "T_exact"] {
            if let Some(wanted) = expected[field].get(&id) {
                close(&format!("{field} of flow {id}"), flow.end.as_seconds(), wanted, tolerance)?;
            }
        }
        let Some(first) = prediction.intervals_of(index).first() else { continue };
        if let Some(wanted) = expected["rate0_Mbps"].get(&id) {
            let rate = first.share.0 * network.nic.rate().as_bytes_per_second() * 8e-6;
            close(&format!("first rate of flow {id}"), rate, wanted, tolerance)?;
        }
        if let Some(wanted) = expected["limiter0"].get(&id).and_then(Value::as_str) {
            let limiter = limiter(prediction, first.limit);
            if limiter != wanted {
                return Err(format!("first limit of flow {id}: found {limiter}, expected {wanted}"));
            }
        }
    }
    close("steps", prediction.intervals.steps as f64, &expected["steps"], tolerance)?;
    close("makespan_s", prediction.makespan().as_seconds(), &expected["makespan_s"], tolerance)
}

fn limiter(prediction: &Prediction, limit: Limit) -> &'static str {
    let is_of_node = |link: LinkId| prediction.fabric.is_of_node(link);
    match limit {
        Limit::Link(link) if !is_of_node(link) => "backbone",
        _ => "nic",
    }
}

/// The paper's threshold is the most flows that the backbone takes without being the limit.
fn network(input: &Value) -> Result<Network, String> {
    let rate = |field: &str| Ok::<_, String>(format!("{}B/s", 1.0 / number(&input[field])?));
    let mut overrides = vec![
        ("nic.bandwidth".to_owned(), rate("beta_E_s_per_byte")?),
        ("backbone.bandwidth".to_owned(), rate("beta_O_s_per_byte")?),
    ];
    if let Some(threshold) = input["threshold"].as_u64() {
        overrides.push(("sharing.backbone_from".to_owned(), (threshold + 1).to_string()));
    }
    let network = builtin::network("ethernet-1g-10g").map_err(|error| error.to_string())?;
    network.with_overrides(&overrides).map_err(|error| error.to_string())
}

fn racks(input: &Value) -> Result<Racks, String> {
    let mut racks = Racks::default();
    for (node, rack) in fields(input)? {
        let node = Node(node.parse().map_err(|_| format!("found node {node}, expected a number"))?);
        racks.place(node, node, &rack.to_string()).map_err(|error| error.to_string())?;
    }
    Ok(racks)
}

fn flow(comm: &Value) -> Result<Flow, String> {
    let whole = |field: &str| Ok::<_, String>(number(&comm[field])? as u32);
    let start = if comm["start_s"].is_null() { 0.0 } else { number(&comm["start_s"])? };
    Ok(Flow {
        id: whole("id")?,
        src: Node(whole("src")?),
        dst: Node(whole("dst")?),
        size: Bytes(number(&comm["size_B"])? as u64),
        start: Time::from_seconds(start),
    })
}
