//! Golden kinds of RR-5910: single messages, conflicts, event stepping, and the mapping of a broadcast.

use flowcast::cluster::flow::Flow;
use flowcast::cluster::pattern::Steps;
use flowcast::cluster::racks::Racks;
use flowcast::cluster::staggered::{Direction, staggered_chain};
use flowcast::model::builtin;
use flowcast::model::network::Network;
use flowcast::model::sharing::fabric::Limit;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::model::single::{Linear, SingleMessage, TwoPiece};
use flowcast::place::exhaustive::{Slots, search};
use flowcast::place::step_cost::{InsideNode, Mapping, StepCost};
use flowcast::simulate::concurrent::{Method, Prediction, predict_flows};
use flowcast::units::{Bytes, Node, Rate, Time, TimePerByte};
use serde_json::Value;

type Check = fn(&Value, &Value, &Value) -> Result<(), String>;

/// Every kind that this file knows.
pub const KINDS: &[(&str, Check)] = &[
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

const METHOD: Method = Method { model: Model::FlowCuts, strictness: Strictness::Strict };

/// Bytes in a size of 1: enough digits for any fraction in the files.
const UNIT: f64 = 1e12;

fn linear(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let rate = Rate::from_bytes_per_second(number(&input["bandwidth_MBps"])? * 1e6);
    let latency = Time::from_seconds(number(&input["latency_s"])?);
    let size = Bytes((number(&input["size_MB"])? * 1e6).round() as u64);
    let model = Linear { latency, rate };
    close("time_s", model.time(size).as_seconds(), &expected["time_s"], tolerance)?;
    let profile = network(text(&input["profile"])?, &[])?;
    if (profile.nic.latency, profile.nic.rate()) != (latency, rate) {
        return Err(format!("the built-in network has {} and {}", profile.nic.latency, profile.nic.rate()));
    }
    Ok(())
}

fn two_piece(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let per_byte = |field: &str| Ok::<_, String>(TimePerByte::from_nanos(number(&input[field])? * 1e9));
    let model = TwoPiece {
        latency: Time::from_seconds(number(&input["L"])?),
        below: per_byte("a_s_per_byte")?,
        from: per_byte("b_s_per_byte")?,
        threshold: Bytes(number(&input["m0"])? as u64),
    };
    let times = list(&expected["time_s"])?;
    for (size, expected) in list(&input["sizes"])?.iter().zip(times) {
        let time = model.time(Bytes(number(size)? as u64));
        close(&format!("time of {size} bytes"), time.as_seconds(), expected, tolerance)?;
    }
    Ok(())
}

fn sync(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let prediction = unit_prediction(input)?;
    let first = |id: &str| {
        let flow = index_of(&prediction, id)?;
        prediction.intervals_of(flow).first().ok_or(format!("flow {id} is never under way"))
    };
    for (id, alpha) in expected["alpha_at_start"].as_object().into_iter().flatten() {
        close(&format!("cut of flow {id}"), 1.0 / first(id)?.share.0 - 1.0, alpha, tolerance)?;
    }
    for (id, named) in expected["role"].as_object().into_iter().flatten() {
        let role = role(first(id)?.limit);
        if named.as_str() != Some(&role) {
            return Err(format!("role of flow {id}: found {role}, expected {named}"));
        }
    }
    finishes(&prediction, &expected["finish_in_Tnc"], tolerance)
}

fn ring_multiset(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let prediction = unit_prediction(input)?;
    let mut ends: Vec<f64> = prediction.flows.iter().map(|flow| flow.end.as_seconds()).collect();
    ends.sort_by(f64::total_cmp);
    let wanted = list(&expected["sorted_finish_in_Tnc"])?;
    same_length(ends.len(), wanted.len())?;
    ends.iter().zip(wanted).try_for_each(|(end, wanted)| close("finish", *end, wanted, tolerance))
}

fn asynchronous(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let prediction = unit_prediction(input)?;
    finishes(&prediction, &expected["finish"], tolerance)?;
    close("n_intervals", prediction.intervals.steps as f64, &expected["n_intervals"], tolerance)
}

fn asynchronous_chain(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let bandwidth = format!("{}MB/s", number(&input["bandwidth_MBps"])?);
    let network = network(text(&input["profile"])?, &[("nic.latency", "0us"), ("nic.bandwidth", &bandwidth)])?;
    let flow = |comm: &Value| flow(comm, number(&comm["size_MB"])? * 1e6, number(&comm["start_s"])?);
    let flows: Vec<Flow> = list(&input["comms"])?.iter().map(flow).collect::<Result<_, _>>()?;
    let prediction = predict(&flows, &network)?;
    for (id, duration) in fields(&expected["duration_s"])? {
        let found = prediction.flows[index_of(&prediction, id)?].duration;
        close(&format!("duration of flow {id}"), found.as_seconds(), duration, tolerance)?;
    }
    close("max_concurrent", prediction.intervals.most_active as f64, &expected["max_concurrent"], tolerance)?;
    close("makespan_s", prediction.makespan().as_seconds(), &expected["makespan_s"], tolerance)
}

fn cycle(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let flows = staggered_chain(&vec![Direction::Up; number(&input["n"])? as usize]);
    let (starts, sizes) = (list(&expected["start_ms"])?, list(&expected["size_MB"])?);
    same_length(flows.len(), starts.len())?;
    for (flow, (start, size)) in flows.iter().zip(starts.iter().zip(sizes)) {
        close("start_ms", flow.start.as_nanos() / 1e6, start, tolerance)?;
        close("size_MB", flow.size.0 as f64 / 1e6, size, tolerance)?;
    }
    let total: u64 = flows.iter().map(|flow| flow.size.0).sum();
    close("total_MB", total as f64 / 1e6, &expected["total_MB"], tolerance)
}

/// Mapping B puts step three's four flows on a directed ring of the four nodes.
fn table_four(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let steps = binomial_broadcast(number(&input["size_MB"])? * 1e6);
    let network = network(text(&input["profile"])?, &[("nic.latency", "0us")])?;
    let inside = InsideNode { latency: Time::ZERO, rate: Rate::default() };
    let mapping = Mapping([3, 0, 0, 1, 1, 2, 2, 3].map(Node).to_vec());
    let time = |model| {
        let method = Method { model, ..METHOD };
        let cost = StepCost { steps: &steps, network: &network, method, inside };
        cost.time(&mapping).map(Time::as_seconds).map_err(|error| error.to_string())
    };
    close("T_B_s", time(Model::FlowCuts)?, &expected["T_B_s"], tolerance)?;
    close("T_B_indep_s", time(Model::Independent)?, &expected["T_B_indep_s"], tolerance)?;
    let alone = network.nic.time_for(steps.steps[0][0].size).as_seconds();
    close("Tnc_s", alone, &expected["Tnc_s"], tolerance)
}

fn mapping_search(input: &Value, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let steps = steps(&input["steps"], number(&input["size_MB"])? * 1e6)?;
    let network = network(text(&input["profile"])?, &[("nic.latency", "0us")])?;
    let inside = InsideNode { latency: Time::from_seconds(number(&input["T_intra_s"])?), rate: Rate::default() };
    let method = Method { strictness: Strictness::Extended, ..METHOD };
    let cost = StepCost { steps: &steps, network: &network, method, inside };
    let slots = Slots { nodes: number(&input["nodes"])? as u32, per_node: number(&input["slots"])? as u32 };
    let ranking = search(&cost, slots).map_err(|error| error.to_string())?;
    close("best_time_s", ranking.histogram[0].0.as_seconds(), &expected["best_time_s"], tolerance)?;
    let groups = |mapping: &Mapping| -> Vec<Vec<u32>> {
        mapping.groups().iter().map(|ranks| ranks.iter().map(|rank| rank.0).collect()).collect()
    };
    let best = serde_json::json!(ranking.best.iter().map(groups).collect::<Vec<_>>());
    if best != expected["best_pairings"] {
        return Err(format!("best mappings: found {best}, expected {}", expected["best_pairings"]));
    }
    let histogram = fields(&expected["histogram_time_s"])?;
    same_length(ranking.histogram.len(), histogram.len())?;
    for (time, count) in histogram {
        let wanted: f64 = time.parse().map_err(|_| format!("{time} is no time"))?;
        let is_it =
            |found: &&(Time, u64)| (found.0.as_seconds() - wanted).abs() <= tolerance["abs"].as_f64().unwrap_or(0.0);
        let found = ranking.histogram.iter().find(is_it).map_or(0, |(_, count)| *count);
        if count.as_u64() != Some(found) {
            return Err(format!("mappings that take {time} s: found {found}, expected {count}"));
        }
    }
    Ok(())
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

fn unit_prediction(input: &Value) -> Result<Prediction, String> {
    let network = network(text(&input["profile"])?, &[("nic.latency", "0us"), ("nic.bandwidth", "1e12B/s")])?;
    let flow = |comm: &Value| flow(comm, number(&comm["size"])? * UNIT, number(&comm["start"])?);
    let flows: Vec<Flow> = list(&input["comms"])?.iter().map(flow).collect::<Result<_, _>>()?;
    predict(&flows, &network)
}

fn predict(flows: &[Flow], network: &Network) -> Result<Prediction, String> {
    predict_flows(flows, &Racks::default(), network, METHOD).map_err(|error| error.to_string())
}

fn finishes(prediction: &Prediction, expected: &Value, tolerance: &Value) -> Result<(), String> {
    for (id, finish) in fields(expected)? {
        let found = prediction.flows[index_of(prediction, id)?].end;
        close(&format!("finish of flow {id}"), found.as_seconds(), finish, tolerance)?;
    }
    Ok(())
}

fn index_of(prediction: &Prediction, id: &str) -> Result<usize, String> {
    let found = prediction.flows.iter().position(|flow| flow.flow.id.to_string() == id);
    found.ok_or_else(|| format!("no flow {id}"))
}

fn binomial_broadcast(bytes: f64) -> Steps {
    let steps = serde_json::json!([[[0, 4]], [[0, 2], [4, 6]], [[0, 1], [2, 3], [4, 5], [6, 7]]]);
    self::steps(&steps, bytes).expect("the steps are written above")
}

fn steps(value: &Value, bytes: f64) -> Result<Steps, String> {
    let size = Bytes(bytes.round() as u64);
    let flow = |pair: &Value| {
        let (src, dst) = (Node(number(&pair[0])? as u32), Node(number(&pair[1])? as u32));
        Ok::<_, String>(Flow { id: 1, src, dst, size, start: Time::ZERO })
    };
    let step = |step: &Value| list(step)?.iter().map(flow).collect::<Result<Vec<Flow>, String>>();
    Ok(Steps { steps: list(value)?.iter().map(step).collect::<Result<_, _>>()? })
}

fn network(profile: &str, overrides: &[(&str, &str)]) -> Result<Network, String> {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let network = builtin::network(profile).map_err(|error| error.to_string())?;
    network.with_overrides(&overrides).map_err(|error| error.to_string())
}

fn flow(comm: &Value, bytes: f64, start_s: f64) -> Result<Flow, String> {
    let whole = |field: &str| Ok::<_, String>(number(&comm[field])? as u32);
    Ok(Flow {
        id: whole("id")?,
        src: Node(whole("src")?),
        dst: Node(whole("dst")?),
        size: Bytes(bytes.round() as u64),
        start: Time::from_seconds(start_s),
    })
}

/// A plain number, or an exact fraction.
pub fn number(value: &Value) -> Result<f64, String> {
    let fraction = || Some(value["num"].as_f64()? / value["den"].as_f64()?);
    value.as_f64().or_else(fraction).ok_or_else(|| format!("found {value}, expected a number"))
}

/// An array.
pub fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("found {value}, expected a list"))
}

/// An object.
pub fn fields(value: &Value) -> Result<&serde_json::Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("found {value}, expected an object"))
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("found {value}, expected a text"))
}

fn same_length(found: usize, expected: usize) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("found {found} entries, expected {expected}")) }
}

/// Within the case's relative or absolute tolerance.
pub fn close(what: &str, found: f64, expected: &Value, tolerance: &Value) -> Result<(), String> {
    let wanted = number(expected)?;
    let relative = tolerance["rel"].as_f64().unwrap_or(0.0) * wanted.abs().max(1e-300);
    let allowed = relative.max(tolerance["abs"].as_f64().unwrap_or(0.0));
    // A cut of 0 has no relative error; rounding of 1/share - 1 is allowed for.
    if (found - wanted).abs() <= allowed.max(if wanted == 0.0 { 1e-12 } else { 0.0 }) {
        Ok(())
    } else {
        Err(format!("{what}: found {found}, expected {wanted}"))
    }
}
