//! Measured conflicts as a table and as JSON.

use std::collections::BTreeMap;

use flowcast::calibrate::conflict_samples::{ConflictSamples, Measured};
use flowcast::model::cluster::conflicts::Kind;
use flowcast::model::cluster::flow::Flow;
use flowcast::model::stats::interval::mean_interval;
use flowcast::units::{Rounded, Time};
use serde::Serialize;

use crate::terminal::output::{Seconds, Shown, println_out};
use crate::terminal::tables::table;

/// Every flow with its median, the interval of its mean, and its repetitions.
#[derive(Serialize)]
pub(super) struct Summary {
    conflicts: Vec<Carried>,
    provenance: BTreeMap<String, String>,
}

/// One conflict.
#[derive(Serialize)]
struct Carried {
    conflict: String,
    #[serde(serialize_with = "by_name")]
    kind: Kind,
    #[serde(skip)]
    repetitions: usize,
    flows: Vec<CarriedFlow>,
}

fn by_name<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kind)
}

/// A flow of a conflict.
#[derive(Serialize)]
struct CarriedFlow {
    id: u32,
    src: u32,
    dst: u32,
    bytes: u64,
    start_s: Seconds,
    median_s: Seconds,
    relative_half_width: Option<f64>,
    repetitions_s: Vec<f64>,
}

impl From<&ConflictSamples> for Summary {
    fn from(samples: &ConflictSamples) -> Summary {
        let conflicts = samples.measured.iter().map(Carried::from).collect();
        Summary {
            conflicts,
            provenance: samples.provenance.clone(),
        }
    }
}

impl From<&Measured> for Carried {
    fn from(measured: &Measured) -> Carried {
        let flows = measured
            .conflict
            .flows
            .iter()
            .zip(&measured.durations)
            .zip(measured.medians());
        let flow = |((flow, times), median): ((&Flow, &Vec<Time>), Time)| {
            let repetitions_s: Vec<f64> = times.iter().map(|time| time.as_seconds()).collect();
            let interval = mean_interval(&repetitions_s, 0.95).ok();
            CarriedFlow {
                id: flow.id,
                src: flow.src.0,
                dst: flow.dst.0,
                bytes: flow.size.0,
                start_s: Seconds(flow.start),
                median_s: Seconds(median),
                relative_half_width: interval.map(|interval| interval.relative_half_width()),
                repetitions_s,
            }
        };
        Carried {
            conflict: measured.conflict.name.clone(),
            kind: measured.conflict.kind,
            repetitions: measured.repetitions(),
            flows: flows.map(flow).collect(),
        }
    }
}

impl Shown for Summary {
    const SCHEMA: &'static str = "flowcast/conflict-measurement/1";

    /// A line for each conflict: how many times longer than alone its flows took.
    fn print(&self) {
        let mut table = table(&[
            "conflict",
            "flows",
            ">repetitions",
            ">longest",
            "times longer than alone",
        ]);
        let alone = self.alone();
        for carried in &self.conflicts {
            let longest = carried
                .flows
                .iter()
                .map(|flow| flow.median_s.0)
                .max()
                .unwrap_or(Time::ZERO);
            let listed = |item: &dyn Fn(&CarriedFlow) -> String| {
                carried
                    .flows
                    .iter()
                    .map(item)
                    .collect::<Vec<_>>()
                    .join("  ")
            };
            let (flows, times) = if matches!(carried.kind, Kind::Random | Kind::Short) {
                (format!("{} flows", carried.flows.len()), String::new())
            } else {
                let times = listed(&|flow| format!("{:.2}", flow.median_s.0.as_seconds() / alone));
                (listed(&|flow| format!("{}>{}", flow.src, flow.dst)), times)
            };
            let repetitions = carried.repetitions.to_string();
            table.add_row([
                carried.conflict.clone(),
                flows,
                repetitions,
                Rounded(longest).to_string(),
                times,
            ]);
        }
        println_out!("{table}");
    }
}

impl Summary {
    /// The median of a message of whole size alone, in seconds.
    fn alone(&self) -> f64 {
        let first = self
            .conflicts
            .iter()
            .find(|carried| carried.kind == Kind::Alone);
        first
            .and_then(|carried| carried.flows.first())
            .map_or(f64::NAN, |flow| flow.median_s.0.as_seconds())
    }
}
