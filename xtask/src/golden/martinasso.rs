//! Cases of seed A, concurrent communications over SMP clusters (Martinasso and Méhaut, RR-5910).
//!
//! Where a case counts in units of its own, a byte is 1e-12 of a unit and the network takes a second for a unit.

use flowcast::cluster::flow::Flow;
use flowcast::cluster::racks::Racks;
use flowcast::cluster::staggered::{Direction, staggered_chain};
use flowcast::model::network::Network;
use flowcast::model::sharing::fabric::Limit;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::model::single::{Linear, SingleMessage, TwoPiece};
use flowcast::simulate::concurrent::{Method, Prediction, predict_flows};
use flowcast::stats::error_measures::error_summary;
use flowcast::stats::grouping::{GroupingRule, alpha_bands, interval_clusters};

use flowcast::units::{Bytes, Node, Rate, Time, TimePerByte};

use super::Check;
use super::case::{Case, Mismatch, same};
use super::field::Field;
use super::mapping::{mapping_search, table_four};
use super::simulation::built_in;

/// Kinds and their checks.
pub const KINDS: &[(&str, Check)] = &[
    ("linear", linear),
    ("rendezvous2lin", rendezvous2lin),
    ("sync", sync),
    ("ring_multiset", ring_multiset),
    ("async", asynchronous),
    ("async30", asynchronous_chain),
    ("cycle30", cycle),
    ("table4", table_four),
    ("mapping_search", mapping_search),
    ("error_metrics", error_metrics),
    ("interval_cluster", interval_cluster),
    ("alpha_band", alpha_band),
];

/// Bytes in a unit: enough digits for any fraction in the cases.
const UNIT: f64 = 1e12;

/// The model of the paper as it stands.
pub const METHOD: Method = Method { model: Model::FlowCuts, strictness: Strictness::Strict };

/// The built-in network of the profile has to agree with the case.
fn linear(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let rate = Rate::from_bytes_per_second(input.at("bandwidth_MBps")?.number()? * 1e6);
    let latency = Time::from_seconds(input.at("latency_s")?.number()?);
    let size = Bytes((input.at("size_MB")?.number()? * 1e6).round() as u64);
    case.near(&case.expected().at("time_s")?, Linear { latency, rate }.time(size).as_seconds())?;
    let profile = built_in(input.at("profile")?.text()?, &[])?;
    same("input.profile", (latency, rate), (profile.nic.latency, profile.nic.rate()))
}

fn rendezvous2lin(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let per_byte = |key: &str| Ok(TimePerByte::from_nanos(input.at(key)?.number()? * 1e9));
    let model = TwoPiece {
        latency: Time::from_seconds(input.at("L")?.number()?),
        below: per_byte("a_s_per_byte")?,
        from: per_byte("b_s_per_byte")?,
        threshold: Bytes(input.at("m0")?.whole()?),
    };
    let sizes: Vec<u64> = input.at("sizes")?.items()?.iter().map(Field::whole).collect::<Result<_, _>>()?;
    let found: Vec<f64> = sizes.into_iter().map(|size| model.time(Bytes(size)).as_seconds()).collect();
    case.near_each(&case.expected().at("time_s")?, &found)
}

/// Cuts are compared as the times that they stretch a flow by, 1 + α. Cuts and roles are given where the paper does.
fn sync(case: &Case) -> Result<(), Mismatch> {
    let expected = case.expected();
    let prediction = unit_prediction(case)?;
    let first = |id: &str, field: &Field| {
        let flow = index_of(&prediction, id, field)?;
        prediction.intervals_of(flow).first().ok_or_else(|| field.unlike("a flow that is under way at some time"))
    };
    for (id, cut) in expected.get("alpha_at_start").map_or(Ok(Vec::new()), |cuts| cuts.members())? {
        case.near_number(cut.path(), 1.0 + cut.number()?, 1.0 / first(id, &cut)?.share.0)?;
    }
    for (id, named) in expected.get("role").map_or(Ok(Vec::new()), |roles| roles.members())? {
        same(named.path(), named.text()?, &role(first(id, &named)?.limit))?;
    }
    ends(case, &prediction, &expected.at("finish_in_Tnc")?)
}

fn ring_multiset(case: &Case) -> Result<(), Mismatch> {
    let mut ends: Vec<f64> = unit_prediction(case)?.flows.iter().map(|flow| flow.end.as_seconds()).collect();
    ends.sort_by(f64::total_cmp);
    case.near_each(&case.expected().at("sorted_finish_in_Tnc")?, &ends)
}

fn asynchronous(case: &Case) -> Result<(), Mismatch> {
    let prediction = unit_prediction(case)?;
    ends(case, &prediction, &case.expected().at("finish")?)?;
    same("n_intervals", case.expected().at("n_intervals")?.whole()?, prediction.intervals.steps as u64)
}

fn asynchronous_chain(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let bandwidth = format!("{}MB/s", input.at("bandwidth_MBps")?.number()?);
    let network = built_in(input.at("profile")?.text()?, &[("nic.latency", "0us"), ("nic.bandwidth", &bandwidth)])?;
    let flows = flows(&input.at("comms")?, ("size_MB", 1e6), "start_s")?;
    let prediction = predict(&flows, &network)?;
    for (id, duration) in expected.at("duration_s")?.members()? {
        let flow = &prediction.flows[index_of(&prediction, id, &duration)?];
        case.near(&duration, flow.duration.as_seconds())?;
    }
    same("max_concurrent", expected.at("max_concurrent")?.whole()?, prediction.intervals.most_active as u64)?;
    case.near(&expected.at("makespan_s")?, prediction.makespan().as_seconds())
}

fn cycle(case: &Case) -> Result<(), Mismatch> {
    let expected = case.expected();
    let flows = staggered_chain(&vec![Direction::Up; case.input().at("n")?.whole()?]);
    let starts: Vec<f64> = flows.iter().map(|flow| flow.start.as_nanos() / 1e6).collect();
    let sizes: Vec<f64> = flows.iter().map(|flow| flow.size.0 as f64 / 1e6).collect();
    case.near_each(&expected.at("start_ms")?, &starts)?;
    case.near_each(&expected.at("size_MB")?, &sizes)?;
    case.near(&expected.at("total_MB")?, sizes.iter().sum())
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

fn unit_prediction(case: &Case) -> Result<Prediction, Mismatch> {
    let input = case.input();
    let unit_rate = format!("{UNIT:e}B/s");
    let network = built_in(input.at("profile")?.text()?, &[("nic.latency", "0us"), ("nic.bandwidth", &unit_rate)])?;
    predict(&flows(&input.at("comms")?, ("size", UNIT), "start")?, &network)
}

fn predict(flows: &[Flow], network: &Network) -> Result<Prediction, Mismatch> {
    predict_flows(flows, &Racks::default(), network, METHOD).map_err(Mismatch::refused)
}

fn ends(case: &Case, prediction: &Prediction, expected: &Field) -> Result<(), Mismatch> {
    for (id, end) in expected.members()? {
        case.near(&end, prediction.flows[index_of(prediction, id, &end)?].end.as_seconds())?;
    }
    Ok(())
}

fn index_of(prediction: &Prediction, id: &str, field: &Field) -> Result<usize, Mismatch> {
    let found = prediction.flows.iter().position(|flow| flow.flow.id.to_string() == id);
    found.ok_or_else(|| field.unlike("the id of a flow of the input"))
}

/// Flows whose sizes are in units of so many bytes and whose starts are in seconds.
fn flows(list: &Field, (size, unit): (&str, f64), start: &str) -> Result<Vec<Flow>, Mismatch> {
    let flow = |field: &Field| {
        Ok(Flow {
            id: field.at("id")?.whole()?,
            src: Node(field.at("src")?.whole()?),
            dst: Node(field.at("dst")?.whole()?),
            size: Bytes((field.at(size)?.number()? * unit).round() as u64),
            start: Time::from_seconds(field.at(start)?.number()?),
        })
    };
    list.items()?.iter().map(flow).collect()
}

/// Errors in percent; flows are counted from 1.
fn error_metrics(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let (predicted, measured) = (input.at("pred")?.numbers()?, input.at("meas")?.numbers()?);
    let summary = error_summary(&predicted, &measured).map_err(Mismatch::refused)?;
    case.near(&expected.at("abs_err_ave_pct")?, summary.mean_absolute * 100.0)?;
    case.near(&expected.at("abs_global_err_pct")?, summary.global * 100.0)?;
    case.near(&expected.at("best_pct")?, summary.best.error * 100.0)?;
    case.near(&expected.at("worst_pct")?, summary.worst.error * 100.0)?;
    same("best_id", expected.at("best_id")?.whole()?, summary.best.index + 1)?;
    same("worst_id", expected.at("worst_id")?.whole()?, summary.worst.index + 1)
}

fn interval_cluster(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let rule =
        GroupingRule { relative_gap: input.at("gap_rel")?.number()?, min_share: input.at("min_share")?.number()? };
    let found = interval_clusters(&input.at("values")?.numbers()?, rule).map_err(Mismatch::refused)?;
    let kept = case.expected().at("kept")?.items()?;
    same("number of groups", kept.len(), found.len())?;
    for (expected, found) in kept.iter().zip(&found) {
        case.near(&expected.at("min")?, found.min)?;
        case.near(&expected.at("median")?, found.median)?;
        case.near(&expected.at("max")?, found.max)?;
        same("n", expected.at("n")?.whole()?, found.count)?;
    }
    Ok(())
}

/// A value outside all bands is null.
fn alpha_band(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let (values, alphas) = (input.at("values")?.numbers()?, input.at("alphas")?.numbers()?);
    let found = alpha_bands(&values, input.at("t_nc")?.number()?, &alphas, input.at("half")?.number()?);
    let expected = case.expected().at("band")?.items()?.iter().map(|band| band.number().ok()).collect::<Vec<_>>();
    same("band", expected, found)
}
