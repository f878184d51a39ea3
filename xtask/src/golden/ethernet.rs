//! Cases of seed B that are predicted: Algorithm 1 with the asymmetric property and with pure fairness.

use flowcast::{
    flows::concurrent::{FlowsPrediction, Method},
    model::{
        cluster::{flow::Flow, racks::Racks},
        network::Network,
        sharing::{fabric::Limit, flow_cuts::Strictness, model::Model},
    },
    units::Node,
};

use super::{
    Check,
    case::{Case, Mismatch, field::Field, same},
    concurrent::{flow, index_of, network, predict},
};

/// Kinds and their checks.
pub(super) const KINDS: &[(&str, Check)] = &[("algo1", algorithm_one)];

fn algorithm_one(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let network = resource_constrained(&input)?;
    let racks = racks(&input)?;
    let start = |comm: &Field| comm.get("start_s").map_or(Ok(0.0), |start| start.number());
    let flow = |comm: &Field| flow(comm, comm.at("size_B")?.number()?, start(comm)?);
    let flows: Vec<Flow> = input
        .at("comms")?
        .items()?
        .iter()
        .map(flow)
        .collect::<Result<_, _>>()?;
    for (name, expected) in case.expected().members()? {
        let model = match name {
            "asymmetric" => Model::Asymmetric,
            "fair" => Model::DegreeFair,
            _ => return Err(expected.unlike("`asymmetric` or `fair`")),
        };
        let method = Method {
            model,
            strictness: Strictness::Strict,
        };
        check(
            case,
            &predict(&flows, &racks, &network, method)?,
            &network,
            &expected,
        )?;
    }
    Ok(())
}

fn check(
    case: &Case,
    prediction: &FlowsPrediction,
    network: &Network,
    expected: &Field,
) -> Result<(), Mismatch> {
    for field in ["T_s", "T_exact"] {
        for (id, wanted) in expected.at(field)?.members()? {
            case.near(
                &wanted,
                prediction.flows[index_of(prediction, id)?].end.as_seconds(),
            )?;
        }
    }
    for (id, wanted) in expected.at("rate0_Mbps")?.members()? {
        let first = prediction.intervals_of(index_of(prediction, id)?).first();
        let share = first.map_or(0.0, |interval| interval.share.0);
        case.near(
            &wanted,
            share * network.nic.rate().as_bytes_per_second() * 8e-6,
        )?;
    }
    for (id, wanted) in expected.at("limiter0")?.members()? {
        let first = prediction.intervals_of(index_of(prediction, id)?).first();
        let found = first.map_or("nobody", |interval| limiter(prediction, interval.limit));
        same(wanted.path(), wanted.text()?, found)?;
    }
    case.near(&expected.at("steps")?, prediction.intervals.steps as f64)?;
    case.near(
        &expected.at("makespan_s")?,
        prediction.makespan().as_seconds(),
    )
}

fn limiter(prediction: &FlowsPrediction, limit: Limit) -> &'static str {
    match limit {
        Limit::Link(link) if !prediction.fabric.is_of_node(link) => "backbone",
        _ => "nic",
    }
}

/// The paper's threshold is the most flows that the backbone takes without being the limit.
fn resource_constrained(input: &Field) -> Result<Network, Mismatch> {
    let rate = |field: &str| Ok::<_, Mismatch>(format!("{}B/s", 1.0 / input.at(field)?.number()?));
    let (nic, backbone) = (rate("beta_E_s_per_byte")?, rate("beta_O_s_per_byte")?);
    let from = input
        .get("threshold")
        .map(|threshold| threshold.whole::<u32>())
        .transpose()?;
    let from = from.map(|threshold| (threshold + 1).to_string());
    let mut overrides = vec![
        ("nic.bandwidth", nic.as_str()),
        ("backbone.bandwidth", backbone.as_str()),
    ];
    overrides.extend(from.as_deref().map(|from| ("sharing.backbone_from", from)));
    network("ethernet-1g-10g", &overrides)
}

fn racks(input: &Field) -> Result<Racks, Mismatch> {
    let mut racks = Racks::default();
    for (node, rack) in input.at("rack")?.members()? {
        let node = Node(
            node.parse()
                .map_err(|_| rack.unlike("a node number as the name"))?,
        );
        racks
            .place(node, node, &rack.whole::<u32>()?.to_string())
            .map_err(Mismatch::refused)?;
    }
    Ok(racks)
}
