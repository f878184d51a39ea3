//! Measured conflicts as a table and as JSON.

use anyhow::Result;
use flowcast::calibrate::conflict_samples::{ConflictSamples, Measured};
use flowcast::model::cluster::conflicts::Kind;
use flowcast::model::cluster::flow::Flow;
use flowcast::model::stats::interval::mean_interval;
use flowcast::units::{Rounded, Time};
use serde_json::{Value, json};

use crate::output::println_out;
use crate::tables::table;

/// A line for each conflict: how many times longer than alone its flows took.
pub fn print(samples: &ConflictSamples) -> Result<()> {
    let mut table = table(&["conflict", "flows", ">repetitions", ">longest", "times longer than alone"]);
    let alone = alone(samples);
    for measured in &samples.measured {
        let medians = measured.medians();
        let longest = medians.iter().copied().max().unwrap_or(Time::ZERO);
        let flows = measured.conflict.flows.iter().map(ends);
        let times = medians.iter().map(|time| format!("{:.2}", time.as_seconds() / alone));
        let is_plain = measured.conflict.kind != Kind::Random;
        let listed = |items: Vec<String>| items.join("  ");
        table.add_row([
            measured.conflict.name.clone(),
            if is_plain { listed(flows.collect()) } else { format!("{} flows", medians.len()) },
            measured.repetitions().to_string(),
            Rounded(longest).to_string(),
            if is_plain { listed(times.collect()) } else { String::new() },
        ]);
    }
    println_out!("{table}");
    Ok(())
}

/// The median of a message of whole size alone, in seconds.
fn alone(samples: &ConflictSamples) -> f64 {
    let of_one = |measured: &Measured| measured.medians().first().map(|time| time.as_seconds());
    let first = samples.measured.iter().find(|measured| measured.conflict.kind == Kind::Alone);
    first.and_then(of_one).unwrap_or(f64::NAN)
}

fn ends(flow: &Flow) -> String {
    format!("{}>{}", flow.src, flow.dst)
}

/// Every flow with its median, the interval of its mean, and its repetitions.
pub fn document(samples: &ConflictSamples) -> Result<Value> {
    let conflicts = samples.measured.iter().map(conflict).collect::<Result<Vec<_>>>()?;
    Ok(json!({
        "schema": "flowcast/conflict-measurement/1",
        "conflicts": conflicts,
        "provenance": samples.provenance,
    }))
}

fn conflict(measured: &Measured) -> Result<Value> {
    let mut flows = Vec::new();
    for ((flow, times), median) in measured.conflict.flows.iter().zip(&measured.durations).zip(measured.medians()) {
        let seconds: Vec<f64> = times.iter().map(|time| time.as_seconds()).collect();
        let half_width = mean_interval(&seconds, 0.95).ok().map(|interval| interval.relative_half_width());
        flows.push(json!({
            "id": flow.id, "src": flow.src.0, "dst": flow.dst.0, "bytes": flow.size.0, "start_s": flow.start.as_seconds(),
            "median_s": median.as_seconds(), "relative_half_width": half_width, "repetitions_s": seconds,
        }));
    }
    Ok(json!({ "conflict": measured.conflict.name, "kind": measured.conflict.kind.to_string(), "flows": flows }))
}
