//! Cases of seed B, resource-constrained hierarchical Ethernet (Zhu, Lastovetsky and others).

use flowcast::cluster::flow::Flow;
use flowcast::cluster::racks::Racks;
use flowcast::model::network::Network;
use flowcast::model::sharing::fabric::Limit;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::simulate::concurrent::{Method, Prediction, predict_flows};
use flowcast::stats::error_measures::signed_errors;
use flowcast::stats::interval::mean_interval;
use flowcast::units::{Bytes, Node, Time};

use super::Check;
use super::case::{Case, Mismatch, same};
use super::field::Field;
use super::simulation::built_in;

/// Kinds and their checks.
pub const KINDS: &[(&str, Check)] = &[("algo1", algorithm_one), ("error_metric", error_metric), ("ci_stop", ci_stop)];

/// Algorithm 1 with the asymmetric property and with pure fairness.
fn algorithm_one(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let (network, racks) = (network(&input)?, racks(&input.at("rack")?)?);
    let flows: Vec<Flow> = input.at("comms")?.items()?.iter().map(flow).collect::<Result<_, _>>()?;
    for (name, expected) in case.expected().members()? {
        let model = match name {
            "asymmetric" => Model::Asymmetric,
            "fair" => Model::DegreeFair,
            _ => return Err(expected.unlike("asymmetric or fair")),
        };
        let method = Method { model, strictness: Strictness::Strict };
        let prediction = predict_flows(&flows, &racks, &network, method).map_err(Mismatch::refused)?;
        compare(case, &prediction, &network, &expected)?;
    }
    Ok(())
}

/// A flow of size 0 is never under way and has no first rate.
fn compare(case: &Case, prediction: &Prediction, network: &Network, expected: &Field) -> Result<(), Mismatch> {
    for (index, flow) in prediction.flows.iter().enumerate() {
        let id = flow.flow.id.to_string();
        let of_flow = |key: &str| expected.get(key).and_then(|times| times.get(&id));
        for time in ["T_s", "T_exact"].into_iter().filter_map(of_flow) {
            case.near(&time, flow.end.as_seconds())?;
        }
        let Some(first) = prediction.intervals_of(index).first() else { continue };
        if let Some(rate) = of_flow("rate0_Mbps") {
            case.near(&rate, first.share.0 * network.nic.rate().as_bytes_per_second() * 8e-6)?;
        }
        if let Some(limiter) = of_flow("limiter0") {
            same(limiter.path(), limiter.text()?, limiter_of(prediction, first.limit))?;
        }
    }
    same("steps", expected.at("steps")?.whole()?, prediction.intervals.steps as u64)?;
    case.near(&expected.at("makespan_s")?, prediction.makespan().as_seconds())
}

fn limiter_of(prediction: &Prediction, limit: Limit) -> &'static str {
    match limit {
        Limit::Link(link) if !prediction.fabric.is_of_node(link) => "backbone",
        _ => "nic",
    }
}

/// The paper's threshold is the most flows that the backbone takes without being the limit.
fn network(input: &Field) -> Result<Network, Mismatch> {
    let rate = |key: &str| Ok(format!("{}B/s", 1.0 / input.at(key)?.number()?));
    let (nic, backbone) = (rate("beta_E_s_per_byte")?, rate("beta_O_s_per_byte")?);
    let threshold = input.get("threshold").map(|threshold| threshold.whole::<u32>()).transpose()?;
    let from = threshold.map(|most| (most + 1).to_string());
    let mut overrides = vec![("nic.bandwidth", nic.as_str()), ("backbone.bandwidth", backbone.as_str())];
    overrides.extend(from.as_deref().map(|from| ("sharing.backbone_from", from)));
    built_in("ethernet-1g-10g", &overrides)
}

fn racks(field: &Field) -> Result<Racks, Mismatch> {
    let mut racks = Racks::default();
    for (node, rack) in field.members()? {
        let node = Node(node.parse().map_err(|_| field.unlike("nodes as names"))?);
        racks.place(node, node, &rack.whole::<u32>()?.to_string()).map_err(Mismatch::refused)?;
    }
    Ok(racks)
}

fn flow(field: &Field) -> Result<Flow, Mismatch> {
    Ok(Flow {
        id: field.at("id")?.whole()?,
        src: Node(field.at("src")?.whole()?),
        dst: Node(field.at("dst")?.whole()?),
        size: Bytes(field.at("size_B")?.whole()?),
        start: Time::from_seconds(field.get("start_s").map_or(Ok(0.0), |start| start.number())?),
    })
}

fn error_metric(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let (predicted, measured) = (input.at("pred")?.numbers()?, input.at("meas")?.numbers()?);
    let found = signed_errors(&predicted, &measured).map_err(Mismatch::refused)?;
    case.near_each(&case.expected().at("err")?, &found)
}

fn ci_stop(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let samples = input.at("samples")?.numbers()?;
    let found = mean_interval(&samples, input.at("level")?.number()?).map_err(Mismatch::refused)?;
    case.near(&expected.at("mean")?, found.mean)?;
    case.near(&expected.at("sd")?, found.standard_deviation)?;
    case.near(&expected.at("half_width")?, found.half_width)?;
    case.near(&expected.at("rel_half_width")?, found.relative_half_width())
}
