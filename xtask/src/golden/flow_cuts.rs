//! Cases of seed A that are predicted: single messages, conflicts, event stepping, and the mapping of a broadcast.

use std::collections::BTreeMap;

use flowcast::{
    Contention, Input, Options,
    flows::concurrent::{FlowsPrediction, Method},
    model::{
        cluster::{
            flow::Flow,
            pattern::Steps,
            racks::Racks,
            staggered::{ChainDirection, staggered_chain},
        },
        machine::inside::InsideNode,
        network::Network,
        sharing::{fabric::Limit, flow_cuts::Strictness, model::Model},
        single::{Linear, SingleMessage, TwoPiece},
    },
    units::{Bytes, Node, Rate, Time, TimePerByte},
};
use flowcast_place::exhaustive::{AllMappings, Ranking};

use super::{
    Check,
    case::{Case, Mismatch, field::Field, same},
    concurrent::{flow, index_of, network, predict},
};

/// Kinds and their checks.
pub(super) const KINDS: &[(&str, Check)] = &[
    ("linear", linear),
    ("rendezvous2lin", two_piece),
    ("sync", sync),
    ("ring_multiset", ring_multiset),
    ("async", asynchronous),
    ("table4", table_four),
    ("mapping_search", mapping_search),
    ("cycle30", cycle),
    ("async30", asynchronous_chain),
];

const METHOD: Method = Method {
    model: Model::FlowCuts,
    strictness: Strictness::Strict,
};

/// Bytes in a size of 1: digits enough for any fraction.
const UNIT: f64 = 1e12;

fn linear(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let rate = Rate::from_bytes_per_second(input.at("bandwidth_MBps")?.number()? * 1e6);
    let latency = Time::from_seconds(input.at("latency_s")?.number()?);
    let size = Bytes((input.at("size_MB")?.number()? * 1e6).round() as u64);
    let time = Linear { latency, rate }.time(size);
    case.near(&case.expected().at("time_s")?, time.as_seconds())
}

fn two_piece(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let per_byte =
        |field: &str| Ok::<_, Mismatch>(TimePerByte::from_nanos(input.at(field)?.number()? * 1e9));
    let model = TwoPiece {
        latency: Time::from_seconds(input.at("L")?.number()?),
        below: per_byte("a_s_per_byte")?,
        from: per_byte("b_s_per_byte")?,
        threshold: Bytes(input.at("m0")?.whole()?),
    };
    let (sizes, times) = (
        input.at("sizes")?.items()?,
        case.expected().at("time_s")?.items()?,
    );
    same("number of times", times.len(), sizes.len())?;
    for (size, time) in sizes.iter().zip(&times) {
        case.near(time, model.time(Bytes(size.whole()?)).as_seconds())?;
    }
    Ok(())
}

fn sync(case: &Case) -> Result<(), Mismatch> {
    let prediction = unit_prediction(case)?;
    let expected = case.expected();
    let first = |id: &str| {
        let flow = index_of(&prediction, id)?;
        let none = || Mismatch::Refused(format!("flow {id} is never in flight"));
        prediction.intervals_of(flow).first().ok_or_else(none)
    };
    for (id, alpha) in members(expected.get("alpha_at_start"))? {
        case.near(&alpha, 1.0 / first(id)?.share.0 - 1.0)?;
    }
    for (id, named) in members(expected.get("role"))? {
        same(
            named.path(),
            named.text()?.to_owned(),
            role(first(id)?.limit),
        )?;
    }
    finishes(case, &prediction, "finish_in_Tnc")
}

fn ring_multiset(case: &Case) -> Result<(), Mismatch> {
    let mut ends: Vec<f64> = unit_prediction(case)?
        .flows
        .iter()
        .map(|flow| flow.end.as_seconds())
        .collect();
    ends.sort_by(f64::total_cmp);
    let wanted = case.expected().at("sorted_finish_in_Tnc")?.items()?;
    same("number of flows", wanted.len(), ends.len())?;
    wanted
        .iter()
        .zip(ends)
        .try_for_each(|(wanted, end)| case.near(wanted, end))
}

fn asynchronous(case: &Case) -> Result<(), Mismatch> {
    let prediction = unit_prediction(case)?;
    finishes(case, &prediction, "finish")?;
    case.near(
        &case.expected().at("n_intervals")?,
        prediction.intervals.steps as f64,
    )
}

fn asynchronous_chain(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let bandwidth = format!("{}MB/s", input.at("bandwidth_MBps")?.number()?);
    let overrides = [
        ("nic.latency", "0us"),
        ("nic.bandwidth", bandwidth.as_str()),
    ];
    let network = network(input.at("profile")?.text()?, &overrides)?;
    let flow = |comm: &Field| {
        flow(
            comm,
            comm.at("size_MB")?.number()? * 1e6,
            comm.at("start_s")?.number()?,
        )
    };
    let flows: Vec<Flow> = input
        .at("comms")?
        .items()?
        .iter()
        .map(flow)
        .collect::<Result<_, _>>()?;
    let prediction = predict(&flows, &Racks::default(), &network, METHOD)?;
    for (id, duration) in expected.at("duration_s")?.members()? {
        case.near(
            &duration,
            prediction.flows[index_of(&prediction, id)?]
                .duration
                .as_seconds(),
        )?;
    }
    case.near(
        &expected.at("max_concurrent")?,
        prediction.intervals.most_active as f64,
    )?;
    case.near(
        &expected.at("makespan_s")?,
        prediction.makespan().as_seconds(),
    )
}

fn cycle(case: &Case) -> Result<(), Mismatch> {
    let expected = case.expected();
    let flows = staggered_chain(&vec![ChainDirection::Up; case.input().at("n")?.whole()?]);
    let (starts, sizes) = (
        expected.at("start_ms")?.items()?,
        expected.at("size_MB")?.items()?,
    );
    same("number of flows", starts.len(), flows.len())?;
    for (flow, (start, size)) in flows.iter().zip(starts.iter().zip(&sizes)) {
        case.near(start, flow.start.as_nanos() / 1e6)?;
        case.near(size, flow.size.0 as f64 / 1e6)?;
    }
    let total: u64 = flows.iter().map(|flow| flow.size.0).sum();
    case.near(&expected.at("total_MB")?, total as f64 / 1e6)
}

/// Mapping B puts the four flows of step three on a directed ring of the four nodes.
fn table_four(case: &Case) -> Result<(), Mismatch> {
    const BROADCAST: [&[(u32, u32)]; 3] = [
        &[(0, 4)],
        &[(0, 2), (4, 6)],
        &[(0, 1), (2, 3), (4, 5), (6, 7)],
    ];
    let (input, expected) = (case.input(), case.expected());
    let size = size(&input)?;
    let step = |pairs: &&[(u32, u32)]| {
        pairs
            .iter()
            .map(|(src, dst)| between(*src, *dst, size))
            .collect()
    };
    let steps = Steps {
        steps: BROADCAST.iter().map(step).collect(),
        ..Steps::default()
    };
    let network = inside(&input, Time::ZERO)?;
    let mapping = [3, 0, 0, 1, 1, 2, 2, 3].map(Node);
    let time = |model| {
        let case = cluster_case(&steps, &network, model, true).with_mapping(&mapping);
        case.makespan()
            .map(Time::as_seconds)
            .map_err(Mismatch::refused)
    };
    case.near(&expected.at("T_B_s")?, time(Model::FlowCuts)?)?;
    case.near(&expected.at("T_B_indep_s")?, time(Model::Independent)?)?;
    case.near(
        &expected.at("Tnc_s")?,
        network.nic.time_for(size).as_seconds(),
    )
}

fn mapping_search(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let size = size(&input)?;
    let pair = |pair: &Field| {
        let ends = pair.items()?;
        same("ends of a flow", 2, ends.len())?;
        Ok(between(ends[0].whole()?, ends[1].whole()?, size))
    };
    let step = |step: &Field| {
        step.items()?
            .iter()
            .map(pair)
            .collect::<Result<Vec<Flow>, Mismatch>>()
    };
    let steps = Steps {
        steps: input
            .at("steps")?
            .items()?
            .iter()
            .map(step)
            .collect::<Result<_, _>>()?,
        ..Steps::default()
    };
    let network = inside(&input, Time::from_seconds(input.at("T_intra_s")?.number()?))?;
    let placed = cluster_case(&steps, &network, METHOD.model, false);
    let nodes: u32 = input.at("nodes")?.whole()?;
    let slots = vec![input.at("slots")?.whole()?; nodes as usize];
    let mappings = AllMappings::new(placed.ranks(), slots);
    let times = mappings
        .clone()
        .map(|mapping| placed.with_mapping(&mapping).makespan());
    let times: Vec<Time> = times.collect::<Result<_, _>>().map_err(Mismatch::refused)?;
    let ranking = Ranking::new(mappings, &times);
    case.near(
        &expected.at("best_time_s")?,
        ranking.histogram[0].0.as_seconds(),
    )?;
    let pairings = expected.at("best_pairings")?;
    same(
        pairings.path(),
        groups_of(&pairings)?,
        ranking.best.iter().map(|mapping| groups(mapping)).collect(),
    )?;
    let histogram = expected.at("histogram_time_s")?.members()?;
    same(
        "number of distinct times",
        histogram.len(),
        ranking.histogram.len(),
    )?;
    for (time, count) in histogram {
        let wanted: f64 = time
            .parse()
            .map_err(|_| count.unlike("a time as the name"))?;
        let near = |found: &&(Time, u64)| case.tolerance.accepts(wanted, found.0.as_seconds());
        same(
            count.path(),
            count.whole()?,
            ranking
                .histogram
                .iter()
                .find(near)
                .map_or(0, |(_, count)| *count),
        )?;
    }
    Ok(())
}

/// The case's network without latency, on which messages inside nodes take this time.
fn inside(input: &Field, latency: Time) -> Result<Network, Mismatch> {
    let mut network = network(input.at("profile")?.text()?, &[("nic.latency", "0us")])?;
    let rate = Rate::default();
    network.machine.set_inside(InsideNode { latency, rate });
    Ok(network)
}

fn cluster_case<'a>(
    steps: &'a Steps,
    network: &'a Network,
    model: Model,
    is_strict: bool,
) -> flowcast::Case<'a> {
    let options = Options {
        contention: Contention::Shared(model),
        is_strict,
        ..Options::default()
    };
    flowcast::Case::new(Input::Steps(steps), Some(network), options)
}

fn groups(mapping: &[Node]) -> Vec<Vec<u32>> {
    let mut groups: BTreeMap<Node, Vec<u32>> = BTreeMap::new();
    for (node, rank) in mapping.iter().zip(0..) {
        groups.entry(*node).or_default().push(rank);
    }
    groups.into_values().collect()
}

fn groups_of(pairings: &Field) -> Result<Vec<Vec<Vec<u32>>>, Mismatch> {
    let ranks = |group: &Field| {
        group
            .items()?
            .iter()
            .map(Field::whole)
            .collect::<Result<Vec<u32>, _>>()
    };
    let mapping = |mapping: &Field| {
        mapping
            .items()?
            .iter()
            .map(ranks)
            .collect::<Result<Vec<_>, _>>()
    };
    pairings.items()?.iter().map(mapping).collect()
}

fn size(input: &Field) -> Result<Bytes, Mismatch> {
    Ok(Bytes((input.at("size_MB")?.number()? * 1e6).round() as u64))
}

fn between(src: u32, dst: u32, size: Bytes) -> Flow {
    Flow {
        id: 1,
        src: Node(src),
        dst: Node(dst),
        size,
        start: Time::ZERO,
    }
}

fn role(limit: Limit) -> String {
    match limit {
        Limit::ZigZag { flows } => format!("zigzag{flows}"),
        Limit::IncomingOfPair { .. } => "inout-in".into(),
        Limit::OutgoingOfPair { .. } => "inout-out".into(),
        Limit::Between => "single-include".into(),
        Limit::StartOrEnd => "single-startend".into(),
        other => format!("{other:?}"),
    }
}

/// Times in units of a lone flow of size 1.
fn unit_prediction(case: &Case) -> Result<FlowsPrediction, Mismatch> {
    let input = case.input();
    let network = network(
        input.at("profile")?.text()?,
        &[("nic.latency", "0us"), ("nic.bandwidth", "1e12B/s")],
    )?;
    let flow = |comm: &Field| {
        flow(
            comm,
            comm.at("size")?.number()? * UNIT,
            comm.at("start")?.number()?,
        )
    };
    let flows: Vec<Flow> = input
        .at("comms")?
        .items()?
        .iter()
        .map(flow)
        .collect::<Result<_, _>>()?;
    predict(&flows, &Racks::default(), &network, METHOD)
}

fn finishes(case: &Case, prediction: &FlowsPrediction, field: &str) -> Result<(), Mismatch> {
    for (id, finish) in case.expected().at(field)?.members()? {
        case.near(
            &finish,
            prediction.flows[index_of(prediction, id)?].end.as_seconds(),
        )?;
    }
    Ok(())
}

fn members<'a>(field: Option<Field<'a>>) -> Result<Vec<(&'a str, Field<'a>)>, Mismatch> {
    field.map_or(Ok(Vec::new()), |field| field.members())
}
